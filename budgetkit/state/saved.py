"""Saved state, field by field, and the readers of its fields.

The role tables that a plan's items were made with are each written once.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, TypeAdapter, WithJsonSchema

from budgetkit.budget import Allocation, Budget, Reserve, brief
from budgetkit.message import Message
from budgetkit.plan import Item, Plan
from budgetkit.plan.decisions import REASONS, Grant, decisions_of
from budgetkit.plan.plan import plan_of
from budgetkit.state.plain_data import TEXT, TOKENS, changed, list_of, plain, shape, shape_of

VERSION = 1


def check_version(version: object, what: str) -> None:
    """Refuse a file of another version."""
    if type(version) is not int or version != VERSION:  # true == 1, and is no version
        raise ValueError(
            f"{what} has version {brief(version)}, but this budgetkit reads version {VERSION}; save it again"
        )


def plan_parts(plan: Plan, texts: bool) -> dict[str, Any]:
    """Return the saved fields of a plan."""
    decisions = plan.decisions
    whole = decisions.columns.items
    cut = [decisions.cuts[i] for i in sorted(decisions.cuts)]
    parts: dict[str, Any] = {
        "budget": changed(plan.budget),
        "grants": changed(plan.grants),
        "items": changed(whole),
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


def _text(item: Item) -> dict[str, Any]:
    kind, value = (
        ("message", item.payload.raw)
        if isinstance(item.payload, Message)
        else ("value", item.payload)
    )
    return {kind: plain(value, f"the {kind} of an item of section {brief(item.section)}")}


@cache
def reader() -> TypeAdapter[Any]:
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
    texts = list_of(
        shape("text", {"message": dict[str, Any], "value": Any}, _payload, ("message", "value"))
    )
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


def _one(budgetkit: int, **values: Budget | Plan) -> Budget | Plan:
    if len(values) != 1:
        raise ValueError(
            "saved state holds both or none of 'budget' and 'plan'; one is known; keep one of them"
        )
    return next(iter(values.values()))


def _allocation(section: str, **fields: Any) -> Allocation:
    """Make an allocation of a file, where a blank cap is a mistake and not a section without one."""
    if None in fields.values():
        blank = next(name for name, value in fields.items() if value is None)
        raise ValueError(
            f"The {blank} of {brief(section)} is blank. Give a number, or leave it out."
        )
    return Allocation(section, **fields)


def _item(score: object = 0.0, **rest: Any) -> Item:
    """Make an item of a file; `Item` itself is made too often to look at every score."""
    if type(score) not in (int, float) or (type(score) is int and abs(score) > sys.float_info.max):
        raise ValueError(
            f"score is {brief(score)}; scores are numbers such as 0.85; give one, or leave it out"
        )
    return Item(score=score, **rest)  # type: ignore[arg-type]


def _group(group: Any) -> Any:
    """Read a group, whose tuples are saved as lists."""
    if isinstance(group, list):
        return tuple(map(_group, group))
    if isinstance(group, Mapping):
        raise ValueError(
            f"group of an item is {brief(group)}; groups are texts, numbers and lists of them; write one"
        )
    return group


def _payload(**fields: Any) -> object:
    if len(fields) != 1:
        raise ValueError(
            "text of an item holds both or none of 'message' and 'value'; one is known; keep one of them"
        )
    if "message" in fields:
        return Message(fields["message"])
    return fields["value"]


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


def roles_of(items: Sequence[Item]) -> dict[str, Any]:
    """Return each role table once, with every item's table number.

    The result is empty where no item has a table.

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


def with_roles(items: list[Item], roles: Mapping[str, Any] | None) -> list[Item]:
    """Give items the tables that they were made with."""
    if roles is None:
        return items
    tables = roles["tables"]
    places = roles["items"]
    if len(places) != len(items) or any(
        place is not None and not 0 <= place < len(tables) for place in places
    ):
        raise ValueError(
            f"roles have {len(tables)} tables and {len(places)} items; the plan has {len(items)} items, each with the "
            "place of its table or null; save it again"
        )
    item_roles = (None if place is None else tables[place] for place in places)
    return [replace(item, roles=table) for item, table in zip(items, item_roles, strict=True)]
