"""Orders: which section is asked first after the required ones, and what sections without a cap may take.

- "importance": by importance; a section without a cap takes what is left.
- "caps first": those with a cap before those without, which take what is left.
- "pool together", "pool each": by importance; those without a cap take up to the shared pool, together or each.
- "pool by item": those with a cap first; then items of all others compete for the shared pool, by importance and score.
- "open by item": so too, but for all that is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from budgetkit.budget.notices import warn_caller
from budgetkit.budget.quoting import brief

Order = Literal[
    "importance", "caps first", "pool together", "pool each", "pool by item", "open by item"
]
Pool = Literal["open", "together", "each"]

#: Whether sections with a cap are asked first, what those without may take, and whether their items compete for it.
ORDERS: dict[str, tuple[bool, Pool, bool]] = {
    "importance": (False, "open", False),
    "caps first": (True, "open", False),
    "pool together": (False, "together", False),
    "pool each": (False, "each", False),
    "pool by item": (True, "together", True),
    "open by item": (True, "open", True),
}
# What 0.1.0 wrote as order, pool and compete; items that compete were asked last in either order.
_FIRST = {"importance": False, "pool": True}
_SAME = {"section": False, "item": True}


def with_order(data: Any) -> Any:
    """Return the fields of a saved budget, the three that 0.1.0 had for it as one order.

    >>> with_order({"window": 8192, "order": "pool", "pool": "together", "compete": "item"})
    {'window': 8192, 'order': 'pool by item'}
    """
    if not isinstance(data, Mapping) or not (
        {"pool", "compete"} & data.keys() or data.get("order") == "pool"
    ):
        return data
    order, pool, compete = (
        data.get(name, usual)
        for name, usual in (("order", "importance"), ("pool", "open"), ("compete", "section"))
    )
    try:
        old = (_FIRST[order] or _SAME[compete], pool, _SAME[compete])
        names = [name for name, known_order in ORDERS.items() if known_order == old] or [
            _nearest(pool, old)
        ]
    except (LookupError, TypeError):
        raise ValueError(
            f"order, pool and compete are {brief((order, pool, compete))}; known are the names of 0.1.0; "
            "write an order alone"
        ) from None
    rest = {name: value for name, value in data.items() if name not in ("order", "pool", "compete")}
    return rest | {"order": names[0]}


def _nearest(pool: str, old: tuple[bool, str, bool]) -> str:
    """Name the order for what 0.1.0 could be told and no preset did, and say so."""
    name = {
        ("together", False): "pool together",
        ("each", False): "pool each",
        ("each", True): "pool by item",
    }[pool, old[2]]
    warn_caller(
        f"this state of 0.1.0 divides its window in a way that is gone; {brief(name)} is the nearest; look at its plan",
    )
    return name
