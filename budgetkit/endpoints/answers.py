"""Answers of providers, kept on disk by a checksum of what was asked, so that nobody is asked twice."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any


def asked_name(url: str, model: str, body: Mapping[str, Any]) -> str:
    """Return the checksum of a request; what was asked cannot be read back from it."""
    asked = json.dumps([url, model, body], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()


def cache_file() -> Path:
    """Return where answers are kept when nobody says otherwise: in the user's cache folder."""
    folder = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "budgetkit" / "provider-counts.sqlite"


@contextmanager
def kept_answers(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the answers in a file, making it where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as kept:
        kept.execute("CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, tokens INTEGER NOT NULL)")
        yield kept


def known_answer(kept: sqlite3.Connection, name: str) -> int | None:
    """Return the tokens kept under a name, or None."""
    row = kept.execute("SELECT tokens FROM counts WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])
