"""Convert budgets and plans to and from JSON and YAML without loss.

    {"budgetkit": 1, "budget": {"window": 8192, ...}}    or    {"budgetkit": 1, "plan": {"budget": ..., "grants": ...}}

A state is read as plain data, field by field, and never as code. An unknown key or version is an error, so nothing is
lost silently. The texts of a plan's items are saved only on request. Without texts, a loaded plan has no messages to
send.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal

import yaml
from pydantic import PlainValidator, TypeAdapter, WithJsonSchema

from budgetkit.budget import Allocation, Budget, Reserve, brief, quoted
from budgetkit.budget.errors import wrong_kind, wrong_type
from budgetkit.message import Data, Message, Raw, json_value
from budgetkit.plan import Item, Plan
from budgetkit.plan.decisions import REASONS, Grant, decisions_of
from budgetkit.plan.plan import plan_of
from budgetkit.state.plain_data import (
    SAVED_STATE,
    TEXT,
    TOKENS,
    as_plain_data,
    changed_fields,
    json_data,
    list_of,
    schema_of,
    shape,
    shape_of,
    validate_data,
    yaml_data,
)

VERSION = 1


def check_version(version: object, what: str) -> None:
    """Reject a version that this release cannot read."""
    if type(version) is not int or version != VERSION:  # True == 1, but is no version
        raise ValueError(
            f"Unknown version {brief(version)} of {what}. This budgetkit reads version {VERSION}; save it again."
        )


def plan_parts(plan: Plan, texts: bool) -> Data:
    """Return a plan's data for saving, as a dictionary."""
    decisions = plan.decisions
    whole = decisions.columns.items
    cut = [decisions.cuts[i] for i in sorted(decisions.cuts)]
    parts: Data = {
        "budget": changed_fields(plan.budget),
        "grants": changed_fields(plan.grants),
        "items": changed_fields(whole),
        "kept": decisions.kept.tolist(),
        "reasons": [REASONS[i] for i in decisions.reasons],
        "cuts": sorted(decisions.cuts),
    }
    if roles := roles_of(whole):
        parts["roles"] = roles
    if texts:
        parts["texts"] = {
            "items": [_text(item) for item in whole],
            "cuts": [_text(item) for item in cut],
        }
    return parts


def _text(item: Item) -> Data:
    kind = "value"
    value = item.payload
    if isinstance(value, Message):
        kind = "message"
        value = value.raw
    return {kind: as_plain_data(value, f"the {kind} of an item of section {brief(item.section)}")}


@cache
def state_reader() -> TypeAdapter[Any]:
    """Return the pydantic adapter that reads a saved state."""
    lines = {
        "reserves": list_of(shape_of(Reserve)),
        "allocations": list_of(shape_of(Allocation, _allocation, importance=int)),
    }
    budget = shape_of(Budget, **lines, name=str)
    number = Annotated[Any, WithJsonSchema({"type": "number"})]
    kinds = {"type": ["string", "number", "boolean", "null", "array"]}
    group = Annotated[Any, PlainValidator(_group), WithJsonSchema(kinds)]
    item = shape_of(
        Item, _item, importance=int | None, score=number, group=group, payload=None, roles=None
    )
    texts = list_of(shape("text", {"message": Data, "value": Any}, _payload, ("message", "value")))
    plan = {
        "budget": budget,
        "grants": list_of(shape_of(Grant)),
        "items": list_of(item),
        "kept": list_of(TOKENS),
        "reasons": list_of(Literal[REASONS]),
        "cuts": list_of(TOKENS),
        "roles": shape(
            "roles", {"tables": list_of(dict[str, TEXT]), "items": list_of(TOKENS | None)}, dict
        ),
        "texts": shape("texts", {"items": texts, "cuts": texts}, dict),
    }
    whole = {
        "budgetkit": Literal[VERSION],
        "budget": budget,
        "plan": shape("plan", plan, _plan, ("texts", "roles")),
    }
    return TypeAdapter(shape("saved state", whole, _one, ("budget", "plan")))


def _one(**values: Any) -> Budget | Plan:
    del values["budgetkit"]
    if len(values) != 1:
        raise ValueError(
            "A saved state needs exactly one of 'budget' and 'plan'. Add or remove one."
        )
    value: Budget | Plan = next(iter(values.values()))
    return value


def _allocation(section: str, **fields: Any) -> Allocation:
    """Build an allocation from saved fields, rejecting blank values."""
    if None in fields.values():
        blank = next(name for name, value in fields.items() if value is None)
        raise ValueError(
            f"The {blank} of {brief(section)} is blank. Give a number, or leave it out."
        )
    return Allocation(section, **fields)


def _item(score: object = 0.0, **rest: Any) -> Item:
    """Build an item from saved fields, rejecting invalid scores."""
    if type(score) not in (int, float) or (type(score) is int and abs(score) > sys.float_info.max):
        raise ValueError(wrong_type("score", score, "a number, such as 0.85"))
    return Item(score=score, **rest)  # type: ignore[arg-type]


def _group(group: Any) -> Any:
    """Restore an item's group, turning lists back into tuples."""
    group = json_value(group)
    if isinstance(group, list):
        return tuple(map(_group, group))
    if isinstance(group, Mapping):
        raise ValueError(wrong_type("group of an item", group, "texts, numbers or lists of them"))
    return group


def _payload(**fields: Any) -> object:
    if len(fields) != 1:
        raise ValueError(
            "The text of an item needs exactly one of 'message' and 'value'. Add or remove one."
        )
    if "message" in fields:
        return Message(json_value(fields["message"]))
    return json_value(fields["value"])


def _plan(
    budget: Budget,
    grants: list[Grant],
    items: list[Item],
    texts: Any = None,
    roles: Any = None,
    **columns: Any,
) -> Plan:
    return plan_of(
        budget, grants, decisions_of(texts=texts, items=with_roles(items, roles), **columns)
    )


def roles_of(items: Sequence[Item]) -> Data:
    """Return the distinct role tables, and the index of each item's table.

    A role table maps message roles to sections. The result is empty if no item has a table.

    >>> roles_of([Item("history", 5, roles={"user": "history"}), Item("notes", 5)])
    {'tables': [{'user': 'history'}], 'items': [0, None]}
    """
    tables: list[dict[str, str]] = []
    for item in items:
        if isinstance(item.roles, Mapping) and item.roles not in tables:
            tables.append(dict(item.roles))
    places = [tables.index(dict(i.roles)) if isinstance(i.roles, Mapping) else None for i in items]
    if not tables:
        return {}
    return {"tables": tables, "items": places}


def with_roles(items: list[Item], roles: Raw | None) -> list[Item]:
    """Return the items with their saved role tables."""
    if roles is None:
        return items
    tables = json_value(roles["tables"])
    places = roles["items"]
    if len(places) != len(items) or any(
        place is not None and not 0 <= place < len(tables) for place in places
    ):
        raise ValueError(
            "Invalid roles: the saved table numbers do not match the items and tables. Save the plan again."
        )
    item_roles = (None if place is None else tables[place] for place in places)
    return [replace(item, roles=table) for item, table in zip(items, item_roles, strict=True)]


__all__ = ["from_dict", "from_json", "from_yaml", "schema", "to_dict", "to_json", "to_yaml"]

# PyYAML's C extension writes short, plain text as its Python code does, five times faster; not every wheel has it.
_FAST = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
# Text that the extension and the Python code write differently: other letters, escapes, empty or long keys.
_ELSE = re.compile(r"""[^\0-~]|["?]|'':|.{100}""")


def to_dict(value: Budget | Plan, texts: bool = False) -> dict[str, Any]:
    """Return a budget or a plan as plain data.

    Parameters
    ----------
    value : Budget or Plan
        The object to save.
    texts : bool, default False
        If true, also save the contents of a plan's items (messages, texts, plain data), which may be private and long.

    Returns
    -------
    dict
        Plain data (dict, list, str, int, float, bool and None), without fields that have their default value.

    Raises
    ------
    TypeError
        If the value is neither a budget nor a plan.
    ValueError
        If an item's group cannot be written as plain data or, with `texts`, if its content cannot.

    Examples
    --------
    >>> from budgetkit import Budget, Reserve, Share
    >>> to_dict(Budget(8192, [Reserve("output", Share(.15))]))
    {'budgetkit': 1, 'budget': {'window': 8192, 'reserves': [{'name': 'output', 'size': {'ratio': '0.15'}}]}}
    """
    if isinstance(value, Budget):
        return {"budgetkit": VERSION, "budget": as_plain_data(changed_fields(value), "this budget")}
    if isinstance(value, Plan):
        return {"budgetkit": VERSION, "plan": as_plain_data(plan_parts(value, texts), "this plan")}
    raise TypeError(wrong_kind("value to save", value, "a Budget or a Plan"))


def from_dict(data: object) -> Budget | Plan:
    """Restore a budget or plan from plain data.

    Parameters
    ----------
    data : dict
        Data returned by `to_dict`.

    Returns
    -------
    Budget or Plan
        An object equal to the saved one. A plan has no texts if it was saved without them. In its texts, half of a
        surrogate pair is replaced by U+FFFD, as for counting.

    Raises
    ------
    ValueError
        If the data are invalid, for example if the version or a key is unknown. No other exception is raised.

    Examples
    --------
    >>> from_dict({"budgetkit": 1, "budget": {"window": 8192}})
    Budget(window=8192, shared_pool=8192)
    """
    if isinstance(data, Mapping) and "budgetkit" not in data:
        raise ValueError(
            f"Not a saved state (its keys: {quoted(data) or 'none'}). Pass a state saved by to_json or to_yaml, with "
            "'budgetkit' and 'budget' "
            "or 'plan'."
        )
    version = data["budgetkit"] if isinstance(data, Mapping) else VERSION
    check_version(version, SAVED_STATE)
    value: Budget | Plan = validate_data(state_reader(), data)
    return value


def to_json(value: Budget | Plan, texts: bool = False) -> str:
    """Return a budget or a plan as JSON.

    Parameters
    ----------
    value, texts
        As in `to_dict`.

    Returns
    -------
    str
        The JSON text. Equal values give equal texts.

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
    """Restore a budget or plan from JSON.

    Parameters
    ----------
    text : str
        Text returned by `to_json`.

    Returns
    -------
    Budget or Plan
        An object equal to the saved one.

    Raises
    ------
    ValueError
        As in `from_dict`, or if the text is not JSON or repeats a key.

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
        As in `to_dict`.

    Returns
    -------
    str
        The YAML text. Equal values give equal texts.

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
    # PyYAML writes a next-line character (U+0085) as it is, but reads it as the end of a line.
    if "\x85" not in text:
        return text
    return yaml.safe_dump(data, sort_keys=False)


def from_yaml(text: str) -> Budget | Plan:
    r"""Restore a budget or plan from YAML.

    Parameters
    ----------
    text : str
        Text returned by `to_yaml`. It is read as data and never as code.

    Returns
    -------
    Budget or Plan
        An object equal to the saved one.

    Raises
    ------
    ValueError
        As in `from_dict`, or if the text is not YAML, has an alias or a tag, or repeats a key.

    Examples
    --------
    >>> from_yaml("budgetkit: 1\nbudget: {window: 8192}").window
    8192
    """
    return from_dict(yaml_data(text))


def schema() -> dict[str, Any]:
    """Return the JSON Schema of saved states.

    Returns
    -------
    dict
        A JSON Schema (draft 2020-12).

    Examples
    --------
    >>> sorted(schema()["properties"])
    ['budget', 'budgetkit', 'plan']
    """
    one = {"oneOf": [{"required": ["budget"]}, {"required": ["plan"]}]}
    return schema_of(state_reader()) | {"title": "budgetkit saved state"} | one


__dir__ = __all__.copy  # completion shows no other names
