"""Budgets and plans as JSON and YAML, and back, exactly.

A saved state is data and is read as data only. It names its version and what it holds; an unknown key or
version is an error, so that nothing is lost in silence. The texts behind the items of a plan are not saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
import yaml

from budgetkit.amounts import Amount, Share
from budgetkit.budget import Budget
from budgetkit.items import Item
from budgetkit.lines import Allocation, Reserve, quoted
from budgetkit.plan import REASONS, Decisions, Grant, Plan
from budgetkit.pruning import Items

VERSION = 1
T = TypeVar("T")


def to_dict(value: Budget | Plan) -> dict[str, Any]:
    """Return a budget or a plan as plain data.

    Parameters
    ----------
    value : Budget or Plan
        What is saved.

    Returns
    -------
    dict
        Only dict, list, str, int, float, bool and None; fields at their default are left out.

    Raises
    ------
    TypeError
        If it is neither.

    Examples
    --------
    >>> to_dict(Budget(8192, [Reserve("output", Share(.15))]))
    {'budgetkit': 1, 'budget': {'window': 8192, 'reserves': [{'name': 'output', 'size': {'ratio': '0.15'}}]}}
    """
    if isinstance(value, Budget):
        return {"budgetkit": VERSION, "budget": _budget_to(value)}
    if isinstance(value, Plan):
        return {"budgetkit": VERSION, "plan": _plan_to(value)}
    raise TypeError(
        f"a {type(value).__name__} was to be saved; known are Budget and Plan; pass explorer.budget or explorer.plan"
    )


def from_dict(data: object) -> Budget | Plan:
    """Return the budget or plan that plain data holds.

    Parameters
    ----------
    data : dict
        As `to_dict` made it.

    Returns
    -------
    Budget or Plan
        Equal to what was saved.

    Raises
    ------
    ValueError
        If the version or a key is unknown, or a value is none.

    Examples
    --------
    >>> from_dict({"budgetkit": 1, "budget": {"window": 8192}})
    Budget(window=8192, shared_pool=8192)
    """
    top = _keys("saved state", data, {"budgetkit", "budget", "plan"})
    if top.get("budgetkit") != VERSION:
        raise ValueError(
            f"saved state has version {top.get('budgetkit')!r}; this budgetkit reads {VERSION}; "
            "save it again with this version"
        )
    if ("budget" in top) == ("plan" in top):
        raise ValueError("saved state holds both or none of 'budget' and 'plan'; one is known; keep one of them")
    return _budget_from(top["budget"]) if "budget" in top else _plan_from(top["plan"])


def to_json(value: Budget | Plan) -> str:
    """Return a budget or a plan as JSON.

    Parameters
    ----------
    value : Budget or Plan
        What is saved.

    Returns
    -------
    str
        The same text for the same value.

    Examples
    --------
    >>> print(to_json(Budget(8192)))
    {
      "budgetkit": 1,
      "budget": {
        "window": 8192
      }
    }
    """
    return json.dumps(to_dict(value), indent=2, ensure_ascii=False)


def from_json(text: str) -> Budget | Plan:
    """Return the budget or plan that a JSON text holds.

    Parameters
    ----------
    text : str
        As `to_json` made it.

    Returns
    -------
    Budget or Plan
        Equal to what was saved.

    Raises
    ------
    ValueError
        If it is no JSON, or no saved state.

    Examples
    --------
    >>> from_json('{"budgetkit": 1, "budget": {"window": 8192}}').window
    8192
    """
    return from_dict(_parsed("JSON", json.loads, text, (ValueError, RecursionError)))


def to_yaml(value: Budget | Plan) -> str:
    """Return a budget or a plan as YAML.

    Parameters
    ----------
    value : Budget or Plan
        What is saved.

    Returns
    -------
    str
        The same text for the same value.

    Examples
    --------
    >>> print(to_yaml(Budget(8192, [Reserve("output", 1200)])), end="")
    budgetkit: 1
    budget:
      window: 8192
      reserves:
      - name: output
        size: 1200
    """
    return yaml.safe_dump(to_dict(value), sort_keys=False, allow_unicode=True)


def from_yaml(text: str) -> Budget | Plan:
    r"""Return the budget or plan that a YAML text holds.

    Parameters
    ----------
    text : str
        As `to_yaml` made it; read as data only.

    Returns
    -------
    Budget or Plan
        Equal to what was saved.

    Raises
    ------
    ValueError
        If it is no YAML, or no saved state.

    Examples
    --------
    >>> from_yaml("budgetkit: 1\nbudget: {window: 8192}").window
    8192
    """
    return from_dict(_parsed("YAML", yaml.safe_load, text, (yaml.YAMLError, ValueError, RecursionError)))


def _parsed(what: str, parse: Callable[[str], Any], text: str, errors: tuple[type[Exception], ...]) -> object:
    try:
        return parse(text)
    except errors as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"saved state is no {what} ({first}); it starts with 'budgetkit'; copy the whole text"
        ) from None


def _budget_to(budget: Budget) -> dict[str, Any]:
    lines = {
        "reserves": [_plain(reserve) for reserve in budget.reserves],
        "allocations": [_plain(allocation) for allocation in budget.allocations],
    }
    data = _plain(budget)
    return {key: lines.get(key, value) for key, value in data.items()}


def _budget_from(data: object) -> Budget:
    found = _keys("budget", data, {f.name for f in fields(Budget)})
    for name, kind in (("reserves", Reserve), ("allocations", Allocation)):
        found[name] = [_line_from(kind, row) for row in _rows(name, found.get(name, []))]
    return _made("budget", Budget, found)


def _line_from(kind: type[T], row: object) -> T:
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    found = _keys(kind.__name__.lower(), row, known)
    for name in ("size", "cap", "floor"):
        if isinstance(found.get(name), Mapping):
            found[name] = _share_from(found[name])
    return _made(kind.__name__.lower(), kind, found)


def _share_from(data: object) -> Share:
    return _made("share", Share, _keys("share", data, {"ratio", "at_least", "at_most"}))


def _plain(line: object) -> dict[str, Any]:
    """Give the fields of a dataclass that differ from their defaults, shares as mappings."""
    changed = {}
    for f in fields(line):  # type: ignore[arg-type]
        value = getattr(line, f.name)
        if f.init and value != f.default and value not in ((), {}):
            changed[f.name] = _amount_to(value) if isinstance(value, Share) else value
    return changed


def _amount_to(amount: Amount) -> Any:
    if not isinstance(amount, Share):
        return amount
    return {"ratio": str(Decimal(str(amount.ratio)))} | {
        name: getattr(amount, name) for name in ("at_least", "at_most") if getattr(amount, name)
    }


def _plan_to(plan: Plan) -> dict[str, Any]:
    decisions = plan.decisions
    items = [_item_to(item) for item in decisions.columns.items]
    return {
        "budget": _budget_to(plan.budget),
        "grants": [{f.name: getattr(g, f.name) for f in fields(Grant)} for g in plan.grants],
        "items": items,
        "kept": decisions.kept.tolist(),
        "reasons": [REASONS[i] for i in decisions.reasons],
        "cuts": sorted(decisions.cuts),
    }


def _item_to(item: Item) -> dict[str, Any]:
    data = {"section": item.section, "tokens": item.tokens} | _plain(item)
    data.pop("payload", None)
    if isinstance(item.group, tuple):
        data["group"] = list(item.group)
    return data


def _item_from(row: object) -> Item:
    found = _keys("item", row, {f.name for f in fields(Item)} - {"payload"})
    if isinstance(found.get("group"), list):
        found["group"] = tuple(found["group"])
    return _made("item", Item, found)


def _plan_from(data: object) -> Plan:
    keys = {"budget", "grants", "items", "kept", "reasons", "cuts"}
    found = _keys("plan", data, keys)
    missing = sorted(keys - set(found))
    if missing:
        raise ValueError(f"plan lacks {quoted(missing)}; it has {quoted(sorted(keys))}; save it again")
    grants = [_made("grant", Grant, _keys("grant", g, {f.name for f in fields(Grant)})) for g in found["grants"]]
    return Plan(_budget_from(found["budget"]), tuple(grants), _decisions_from(found))


def _decisions_from(found: Mapping[str, Any]) -> Decisions:
    items = [_item_from(row) for row in _rows("items", found["items"])]
    unknown = sorted(set(found["reasons"]) - set(REASONS))
    if unknown or not len(items) == len(found["kept"]) == len(found["reasons"]):
        raise ValueError(
            f"plan has {len(items)} items, {len(found['kept'])} kept and {len(found['reasons'])} reasons, "
            f"unknown {unknown}; there is one of each an item, of {quoted(REASONS)}; save it again"
        )
    kept = np.array(found["kept"], dtype=np.int64)
    cuts = {i: _cut(items[i], int(kept[i])) for i in found["cuts"]}
    reasons = np.array([REASONS.index(r) for r in found["reasons"]], dtype=np.int8)
    return Decisions(Items(items), kept, reasons, cuts)


def _cut(item: Item, tokens: int) -> Item:
    return Item(item.section, tokens, item.score, item.importance, item.group)


def _keys(what: str, data: object, known: set[str]) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise ValueError(f"{what} is a {type(data).__name__}; it has keys {quoted(sorted(known))}; write a mapping")
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        raise ValueError(f"{what} has unknown {quoted(unknown)}; known are {quoted(sorted(known))}; remove them")
    return dict(data)


def _rows(what: str, rows: object) -> list[Any]:
    if not isinstance(rows, list):
        raise ValueError(f"{what} is a {type(rows).__name__}; it holds one mapping a line; write a list")
    return rows


def _made(what: str, kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    try:
        return kind(**values)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{what} cannot be made of {dict(values)!r}: {error}; mend that value") from None
