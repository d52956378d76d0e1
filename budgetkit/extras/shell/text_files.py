"""Texts that commands are given, from files or standard input; nothing slow is imported for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from budgetkit.budget.quoting import one_line

PIPE: Final = "-"


def text_of(source: str) -> str:
    """Read a text in UTF-8, from a file or standard input."""
    if source == PIPE:
        raw = sys.stdin.buffer.read()
    else:
        raw = Path(source).expanduser().read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start:,}"
        raise ValueError(
            f"{one_line(source)} is no UTF-8 text ({where}); save it as UTF-8"
        ) from None
