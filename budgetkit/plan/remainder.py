"""What the window leaves for one section, whatever that section asks for; it may be negative.

    remainder = window - reserves - what is taken by those asked before - what is promised to those asked after

A section's *limit* is what it may take. It is never below the section's floor, and never below 0. The remainder is
at most the limit. It is smaller where a floor needs more than the window has: the section is granted its floor all
the same, and the remainder says how much room there really was.
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
    remainder_section = budget.remainder
    if remainder_section is None:
        raise ValueError(
            f"this budget names no remainder; its sections are {quoted(budget.sections)}; pass remainder=... to Budget"
        )
    held_tokens = budget.held
    floors = budget.floors
    sections = [allocation.section for allocation in budget.asked]
    place = sections.index(remainder_section)
    room: Any = budget.window - budget.reserved + held_tokens.get(remainder_section, 0)
    for section in sections[:place]:
        room = room - most(columns[section]["granted"] - held_tokens.get(section, 0), 0)
    for section in sections[place + 1 :]:
        room = room - least(floors[section], columns[section]["demand"])
    left = least(columns[remainder_section]["limit"], room)
    if budget.deficit == "clamp":
        return most(left, 0)
    return left
