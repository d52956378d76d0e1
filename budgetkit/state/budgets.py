"""Budgets as plain data: the fields of each line that differ from their defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any, TypeVar

from budgetkit.amounts import Amount, Share
from budgetkit.budget import Budget
from budgetkit.lines import Allocation, Reserve, quoted

T = TypeVar("T")


def budget_to(budget: Budget) -> dict[str, Any]:
    """Return a budget as plain data.

    Parameters
    ----------
    budget : Budget
        What is saved.

    Returns
    -------
    dict
        Fields that differ from their defaults.

    Examples
    --------
    >>> budget_to(Budget(8192))
    {'window': 8192}
    """
    lines = {
        "reserves": [changed_fields(reserve) for reserve in budget.reserves],
        "allocations": [changed_fields(allocation) for allocation in budget.allocations],
    }
    data = changed_fields(budget)
    return {key: lines.get(key, value) for key, value in data.items()}


def budget_from(data: object) -> Budget:
    """Return the budget that plain data holds.

    Parameters
    ----------
    data : mapping
        As `budget_to` made it.

    Returns
    -------
    Budget
        Equal to what was saved.

    Raises
    ------
    ValueError
        If it cannot be; the sentence says what is known.

    Examples
    --------
    >>> budget_from({"window": 8192}).window
    8192
    """
    found = keys("budget", data, {f.name for f in fields(Budget)})
    for name, kind in (("reserves", Reserve), ("allocations", Allocation)):
        found[name] = [_line_from(kind, row) for row in rows(name, found.get(name, []))]
    return made("budget", Budget, found)


def _line_from(kind: type[T], row: object) -> T:
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    found = keys(kind.__name__.lower(), row, known)
    for name in ("size", "cap", "floor"):
        if isinstance(found.get(name), Mapping):
            found[name] = _share_from(found[name])
    return made(kind.__name__.lower(), kind, found)


def _share_from(data: object) -> Share:
    return made("share", Share, keys("share", data, {"ratio", "at_least", "at_most"}))


def changed_fields(line: object) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, shares as mappings.

    Parameters
    ----------
    line : dataclass
        A budget, a line or an item.

    Returns
    -------
    dict
        Values by field name.

    Examples
    --------
    >>> changed_fields(Reserve("output", Share(0.15)))
    {'name': 'output', 'size': {'ratio': '0.15'}}
    """
    changed = {}
    for f in fields(line):  # type: ignore[arg-type]
        value = getattr(line, f.name)
        empty = isinstance(value, tuple | dict) and not value
        if f.init and not empty and value != f.default:
            changed[f.name] = _amount_to(value) if isinstance(value, Share) else value
    return changed


def _amount_to(amount: Amount) -> Any:
    if not isinstance(amount, Share):
        return amount
    limits = {"at_least": amount.at_least or None, "at_most": amount.at_most}
    return {"ratio": str(Decimal(str(amount.ratio)))} | {n: t for n, t in limits.items() if t is not None}


def keys(what: str, data: object, known: set[str]) -> dict[str, Any]:
    """Return a mapping as a dict, if it has no unknown key.

    Parameters
    ----------
    what : str
        What it is; the error's first word.
    data : object
        What should be a mapping.
    known : set of str
        The keys it may have.

    Returns
    -------
    dict
        A copy.

    Raises
    ------
    ValueError
        If it cannot be; the sentence says what is known.

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

    Parameters
    ----------
    what : str
        What it is; the error's first word.
    rows : object
        What should be a list.

    Returns
    -------
    list
        The same list.

    Raises
    ------
    ValueError
        If it cannot be; the sentence says what is known.

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

    Parameters
    ----------
    what : str
        What it is; the error's first word.
    kind : callable
        Makes it.
    values : mapping
        Its arguments.

    Returns
    -------
    object
        What `kind` made.

    Raises
    ------
    ValueError
        If it cannot be; the sentence says what is known.

    Examples
    --------
    >>> made("share", Share, {"ratio": 0.1})
    Share(0.1)
    """
    try:
        return kind(**values)
    except (TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{what} cannot be made of {dict(values)!r}: {error}; mend that value") from None
