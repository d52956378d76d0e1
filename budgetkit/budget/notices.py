"""Warnings name the line of the user's program that led to them, however many functions of this kit stand between."""

from __future__ import annotations

import sys
import warnings

#: Packages whose functions stand between: this one, and those that call it back for a decorator, a property or a type.
_BETWEEN = {"budgetkit", "contextlib", "functools", "pydantic"}


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the line outside this package that is being carried out.

    Python 3.12 has something like it as ``skip_file_prefixes``; this kit runs on 3.11, too.
    """
    level = 2
    frame = sys._getframe(1)
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
