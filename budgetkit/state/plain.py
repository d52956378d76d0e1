"""Plain data: what of it may be saved, and checks of what a file holds, each failure a ValueError in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from budgetkit.budget.quoting import brief, one_line, quoted

T = TypeVar("T")
# YAML writes exactly these; a member of an enumeration is one of them too.
_EXACTLY: dict[type, Callable[..., Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}


def plain(value: object, where: str) -> Any:
    """Return a value as JSON and YAML can hold it, or say why they cannot.

    Examples
    --------
    >>> plain({"group": ("call", np.int64(3))}, "item 1")
    {'group': ['call', 3]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    for kind, exactly in _EXACTLY.items():
        if isinstance(value, kind):
            return exactly(value)
    if isinstance(value, list | tuple):
        return [plain(each, where) for each in value]
    if isinstance(value, Mapping):
        return {plain(key, where): plain(each, f"{one_line(str(key))} of {where}") for key, each in value.items()}
    raise ValueError(
        f"{where} holds {brief(value)}, a {type(value).__name__}; texts, numbers and tuples of them can be saved; "
        "give one of these"
    )


def keys(what: str, data: object, known: set[str]) -> dict[str, Any]:
    """Return a mapping as a dict, if it has no unknown key.

    Examples
    --------
    >>> keys("share", {"ratio": 0.1}, {"ratio"})
    {'ratio': 0.1}
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"{what} is a {type(data).__name__}; it has keys {quoted(sorted(known))}; write a mapping")
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        raise ValueError(f"{what} has unknown {quoted(unknown)}; known are {quoted(sorted(known))}; remove them")
    return dict(data)


def rows(what: str, rows: object) -> list[Any]:
    """Return a list unchanged, if it is one.

    Examples
    --------
    >>> rows("items", [])
    []
    """
    if not isinstance(rows, list):
        raise ValueError(f"{what} is a {type(rows).__name__}; it holds one mapping a line; write a list")
    return rows


def made(what: str, kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Make an object of plain values, any failure told as one kind of error.

    Examples
    --------
    >>> from budgetkit import Share
    >>> made("share", Share, {"ratio": 0.1})
    Share(0.1)
    """
    try:
        return kind(**values)
    except (TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{what} cannot be made of {brief(values)}: {error}; mend that value") from None
