"""Budgets and plans as JSON and YAML, and back, exactly.

A saved state is data and is read as data only. It names its version and what it holds; an unknown key or
version is an error, so that nothing is lost in silence. The texts behind the items of a plan are saved where that is
asked for, and then the plan comes back equal; without them it has all its numbers and no messages to send.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from budgetkit.budget import Budget
from budgetkit.budget.quoting import brief, one_line
from budgetkit.plan import Plan
from budgetkit.state.budgets import budget_from, budget_to
from budgetkit.state.plain import keys, plain
from budgetkit.state.plans import plan_from, plan_to
from budgetkit.state.reading import from_json_text, from_yaml_text

__all__ = ["from_dict", "from_json", "from_yaml", "to_dict", "to_json", "to_yaml"]

VERSION = 1
_HALVES = re.compile("[\ud800-\udfff]")
_NEXT_LINE = "\x85"


def to_dict(value: Budget | Plan, texts: bool = False) -> dict[str, Any]:
    """Return a budget or a plan as plain data.

    Parameters
    ----------
    value : Budget or Plan
        What is saved.
    texts : bool, default False
        Save what a plan's items stand for too: messages, texts, plain data. They may be private, and are long.

    Returns
    -------
    dict
        Only dict, list, str, int, float, bool and None; fields at their default are left out.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If an item's group, or with `texts` what it stands for, is something that plain data cannot hold.

    Examples
    --------
    >>> from budgetkit import Budget, Reserve, Share
    >>> to_dict(Budget(8192, [Reserve("output", Share(.15))]))
    {'budgetkit': 1, 'budget': {'window': 8192, 'reserves': [{'name': 'output', 'size': {'ratio': '0.15'}}]}}
    """
    if isinstance(value, Budget):
        return {"budgetkit": VERSION, "budget": plain(budget_to(value), "this budget")}
    if isinstance(value, Plan):
        return {"budgetkit": VERSION, "plan": plain(plan_to(value, texts), "this plan")}
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
        Equal to what was saved; a plan without its texts, where it was saved without them.

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
    if type(top.get("budgetkit")) is not int or top["budgetkit"] != VERSION:  # true == 1, and is no version
        raise ValueError(
            f"saved state has version {brief(top.get('budgetkit'))}; this budgetkit reads {VERSION}; "
            "save it again with this version"
        )
    if ("budget" in top) == ("plan" in top):
        raise ValueError("saved state holds both or none of 'budget' and 'plan'; one is known; keep one of them")
    try:
        return budget_from(top["budget"]) if "budget" in top else plan_from(top["plan"])
    except (TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise ValueError(
            f"saved state cannot be read: {one_line(str(error))}; it was made by to_json or to_yaml; "
            "copy the whole text"
        ) from error


def to_json(value: Budget | Plan, texts: bool = False) -> str:
    """Return a budget or a plan as JSON.

    Parameters
    ----------
    value : Budget or Plan
        What is saved.
    texts : bool, default False
        Save what a plan's items stand for too: messages, texts, plain data. They may be private, and are long.

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
    text = json.dumps(to_dict(value, texts), indent=2, ensure_ascii=False)
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
        If it is no JSON or no saved state, or a key stands twice.

    Examples
    --------
    >>> from_json('{"budgetkit": 1, "budget": {"window": 8192}}').window
    8192
    """
    return from_dict(from_json_text(text))


def to_yaml(value: Budget | Plan, texts: bool = False) -> str:
    """Return a budget or a plan as YAML.

    Parameters
    ----------
    value : Budget or Plan
        What is saved.
    texts : bool, default False
        Save what a plan's items stand for too: messages, texts, plain data. They may be private, and are long.

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
    data = to_dict(value, texts)
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    # YAML reads this one as the end of a line, although it was written as it is.
    return text if _NEXT_LINE not in text else yaml.safe_dump(data, sort_keys=False)


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
        If it is no YAML or no saved state, or a key stands twice.

    Examples
    --------
    >>> from_yaml("budgetkit: 1\nbudget: {window: 8192}").window
    8192
    """
    return from_dict(from_yaml_text(text))
