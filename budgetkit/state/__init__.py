"""Budgets and plans as JSON and YAML, and back, exactly.

    {"budgetkit": 1, "budget": {"window": 8192, ...}}    or    {"budgetkit": 1, "plan": {"budget": ..., "grants": ...}}

It is read as data only, by the fields of the dataclasses. An unknown key or version is an error: nothing is lost in
silence. The texts behind a plan's items are saved where that is asked for; without them it has no messages to send.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from budgetkit.budget import Budget, quoted
from budgetkit.budget.errors import wrong_type
from budgetkit.plan import Plan
from budgetkit.state.plain_data import (
    SAVED_STATE,
    changed,
    json_data,
    plain,
    read,
    schema_of,
    yaml_data,
)
from budgetkit.state.saved import VERSION, check_version, plan_parts, reader

__all__ = ["from_dict", "from_json", "from_yaml", "schema", "to_dict", "to_json", "to_yaml"]

# PyYAML's part in C writes what is short and plain as its Python does, in a fifth of the time; not every wheel has it.
_FAST = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
# Written in two ways: other letters, escapes, empty and long keys.
_ELSE = re.compile(r"""[^\0-~]|["?]|'':|.{100}""")


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
        return {"budgetkit": VERSION, "budget": plain(changed(value), "this budget")}
    if isinstance(value, Plan):
        return {"budgetkit": VERSION, "plan": plain(plan_parts(value, texts), "this plan")}
    raise TypeError(wrong_type("value to save", value, "a Budget or a Plan"))


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
    if isinstance(data, Mapping) and "budgetkit" not in data:
        problem = f"no saved state: it has {quoted(data) or 'nothing'}; a saved one says its version under 'budgetkit'"
        raise ValueError(
            f"{problem}, and has 'budget' or 'plan'; give one that to_json or to_yaml wrote"
        )
    version = data["budgetkit"] if isinstance(data, Mapping) else VERSION
    check_version(version, SAVED_STATE)
    value: Budget | Plan = read(reader(), data)
    return value


def to_json(value: Budget | Plan, texts: bool = False) -> str:
    """Return a budget or a plan as JSON.

    Parameters
    ----------
    value, texts
        As `to_dict` takes them.

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
    return json.dumps(to_dict(value, texts), indent=2, ensure_ascii=False)


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
        As `from_dict`; also if it is no JSON or has a key twice.

    Examples
    --------
    >>> from_json('{"budgetkit": 1, "budget": {"window": 8192}}').window
    8192
    """
    return from_dict(json_data(text))


def to_yaml(value: Budget | Plan, texts: bool = False) -> str:
    """Return a budget or a plan as YAML.

    Parameters
    ----------
    value, texts
        As `to_dict` takes them.

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
    text: str = yaml.dump(data, Dumper=_FAST, sort_keys=False, allow_unicode=True)
    if _ELSE.search(text):
        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    # YAML reads a next line (U+0085) as the end of a line, although it was written as it is.
    if "\x85" not in text:
        return text
    return yaml.safe_dump(data, sort_keys=False)


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
        As `from_dict`, and if it is no YAML, has an alias or a tag, or a key stands twice.

    Examples
    --------
    >>> from_yaml("budgetkit: 1\nbudget: {window: 8192}").window
    8192
    """
    return from_dict(yaml_data(text))


def schema() -> dict[str, Any]:
    """Return the schema that every saved state satisfies.

    Returns
    -------
    dict
        JSON Schema, draft 2020-12.

    Examples
    --------
    >>> sorted(schema()["properties"])
    ['budget', 'budgetkit', 'plan']
    """
    one = {"oneOf": [{"required": ["budget"]}, {"required": ["plan"]}]}
    return schema_of(reader()) | {"title": "budgetkit saved state"} | one


def __dir__() -> list[str]:
    return __all__
