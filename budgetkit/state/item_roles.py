"""The role tables that a plan's items were made with, each written once; states of 0.1.0 have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from budgetkit.plan.item import Item


def roles_of(items: Sequence[Item]) -> dict[str, Any]:
    """Return the different tables, and for each item the place of its own; nothing where no item has one.

    >>> roles_of([Item("history", 5, roles={"user": "history"}), Item("notes", 5)])
    {'tables': [{'user': 'history'}], 'items': [0, None]}
    """
    tables: list[dict[str, str]] = []
    for item in items:
        if isinstance(item.roles, Mapping) and item.roles not in tables:
            tables.append(dict(item.roles))
    places = [tables.index(dict(i.roles)) if isinstance(i.roles, Mapping) else None for i in items]
    return {"tables": tables, "items": places} if tables else {}


def with_roles(items: list[Item], roles: Mapping[str, Any] | None) -> list[Item]:
    """Give items the tables that they were made with."""
    if roles is None:
        return items
    tables, places = roles["tables"], roles["items"]
    if len(places) != len(items) or any(place is not None and not 0 <= place < len(tables) for place in places):
        raise ValueError(
            f"roles have {len(tables)} tables and {len(places)} items; the plan has {len(items)} items, each with the "
            "place of its table or null; save it again"
        )
    given = (None if place is None else tables[place] for place in places)
    return [replace(item, roles=table) for item, table in zip(items, given, strict=True)]
