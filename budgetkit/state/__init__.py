"""Budgets and plans as JSON and YAML, and back, exactly.

A saved state is data and is read as data only. It names its version and what it holds; an unknown key or
version is an error, so that nothing is lost in silence. The texts behind the items of a plan are not saved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import yaml

from budgetkit.budget import Budget
from budgetkit.plan import Plan
from budgetkit.state.budgets import budget_from, budget_to
from budgetkit.state.plain import keys, plain
from budgetkit.state.plans import plan_from, plan_to

__all__ = ["from_dict", "from_json", "from_yaml", "to_dict", "to_json", "to_yaml"]

VERSION = 1
_HALVES = re.compile("[\ud800-\udfff]")
_NEXT_LINE = "\x85"


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
    ValueError
        If an item's group is something that plain data cannot hold.

    Examples
    --------
    >>> from budgetkit import Budget, Reserve, Share
    >>> to_dict(Budget(8192, [Reserve("output", Share(.15))]))
    {'budgetkit': 1, 'budget': {'window': 8192, 'reserves': [{'name': 'output', 'size': {'ratio': '0.15'}}]}}
    """
    if isinstance(value, Budget):
        return {"budgetkit": VERSION, "budget": plain(budget_to(value), "this budget")}
    if isinstance(value, Plan):
        return {"budgetkit": VERSION, "plan": plain(plan_to(value), "this plan")}
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
        If the version or a key is unknown, or a value is none. Whatever is wrong in a file, no other error comes out.

    Examples
    --------
    >>> from_dict({"budgetkit": 1, "budget": {"window": 8192}})
    Budget(window=8192, shared_pool=8192)
    """
    top = keys("saved state", data, {"budgetkit", "budget", "plan"})
    if top.get("budgetkit") != VERSION:
        raise ValueError(
            f"saved state has version {top.get('budgetkit')!r}; this budgetkit reads {VERSION}; "
            "save it again with this version"
        )
    if ("budget" in top) == ("plan" in top):
        raise ValueError("saved state holds both or none of 'budget' and 'plan'; one is known; keep one of them")
    try:
        return budget_from(top["budget"]) if "budget" in top else plan_from(top["plan"])
    except (TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise ValueError(
            f"saved state cannot be read: {error}; it was made by to_json or to_yaml; copy the whole text"
        ) from error


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
    text = json.dumps(to_dict(value), indent=2, ensure_ascii=False)
    # Half a surrogate pair is a character to Python, and to no file.
    return _HALVES.sub(lambda half: f"\\u{ord(half.group()):04x}", text)


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
    >>> from budgetkit import Budget, Reserve
    >>> print(to_yaml(Budget(8192, [Reserve("output", 1200)])), end="")
    budgetkit: 1
    budget:
      window: 8192
      reserves:
      - name: output
        size: 1200
    """
    text: str = yaml.safe_dump(to_dict(value), sort_keys=False, allow_unicode=True)
    # YAML reads this one as the end of a line, although it was written as it is.
    return text if _NEXT_LINE not in text else yaml.safe_dump(to_dict(value), sort_keys=False)


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
