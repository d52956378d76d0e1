"""What the window leaves for one section, signed, whatever that section itself asks for.

    remainder = window - reserves - what is taken by those asked before - what is promised to those asked after

A section's *limit* is what it may take, and is never below its floor nor below 0. The remainder is never above the
limit, but falls below it where a floor overruns the window: the floor is granted, and this says what room there was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.quoting import quoted


def remainder(
    budget: Budget,
    columns: Mapping[str, Mapping[str, Any]],
    least: Callable[[Any, Any], Any] = min,
    most: Callable[[Any, Any], Any] = max,
) -> Any:
    """Return what is left for the budget's remainder.

    Examples
    --------
    A floor of 400 overruns the window, in which the system prompt leaves 100.

    >>> from budgetkit.budget.allocation import Allocation
    >>> sections = [Allocation("system", required=True), Allocation("history", floor=400)]
    >>> system = {"demand": 900, "limit": 900, "granted": 900}
    >>> history = {"demand": 600, "limit": 400, "granted": 400}
    >>> remainder(Budget(1_000, (), sections, remainder="history"), {"system": system, "history": history})
    100
    """
    own = budget.remainder
    if own is None:
        raise ValueError(
            f"this budget names no remainder; its sections are {quoted(budget.sections)}; pass remainder=... to Budget"
        )
    held, floors = budget.held, budget.floors
    asked = [allocation.section for allocation in budget.asked]
    place = asked.index(own)
    room: Any = budget.window - budget.reserved + held.get(own, 0)
    for section in asked[:place]:
        room = room - most(columns[section]["granted"] - held.get(section, 0), 0)
    for section in asked[place + 1 :]:
        room = room - least(floors[section], columns[section]["demand"])
    left = least(columns[own]["limit"], room)
    return most(left, 0) if budget.deficit == "clamp" else left
