"""Budgets as plain data: the fields of each line that differ from their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any, TypeVar

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, Reserve
from budgetkit.budget.amounts import Amount, Share
from budgetkit.state.plain import keys, made, rows

T = TypeVar("T")


def budget_to(budget: Budget) -> dict[str, Any]:
    """Return a budget as plain data.

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
