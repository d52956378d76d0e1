"""Running totals: how much of one section fits, for many requests at once.

The units of all requests stand in one array, request after request, each in the order in which they are kept. Beside
it stands the running sum of their sizes. How many units of a request fit a limit is then one search: where does the
sum, counted from the request's first unit, pass the limit?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetkit.budget.allocation import Allocation
from budgetkit.plan.items import Flags, Ints, Items


@dataclass(frozen=True, slots=True)
class Stack:
    """One section's units of many requests.

    Examples
    --------
    Two requests, of 30 and 20 tokens, and of 50.

    >>> stack = Stack(np.array([0, 30, 50, 100]), np.array([0, 50]), np.array([50, 50]), np.array([30, 50]))
    >>> stack.fitting(np.array([40, 40])).tolist()
    [30, 0]
    """

    sums: Ints
    base: Ints
    total: Ints
    first: Ints

    def fitting(self, limit: Ints | int) -> Ints:
        """Return how many tokens of each request's units fit from the front."""
        goal = self.base + np.minimum(limit, self.total)
        last: Ints = self.sums[np.searchsorted(self.sums, goal, side="right") - 1]
        return last - self.base

    def reaching(self, floor: int) -> Ints:
        """Return how many tokens the first units have that together reach a floor."""
        goal = self.base + np.minimum(floor, self.total)
        return np.asarray(self.sums[np.searchsorted(self.sums, goal)] - self.base)


class Stacks:
    """The sections of many requests; each stack is made once.

    Attributes
    ----------
    parted : bool array, shape (requests,)
        Whether a group, such as a call and its result, has members in two sections.
    """

    def __init__(self, items: Sequence[Items]) -> None:
        self.items = tuple(items)
        self.parted: Flags = np.array([_is_parted(each) for each in items], dtype=np.bool_)
        self._made: dict[tuple[object, ...], Stack] = {}

    def take(self, allocation: Allocation, limit: Any, cap: Any, demand: Any) -> Ints:
        """Answer the walk: how much of a section stays, request by request."""
        stack = self.stack(allocation)
        granted = stack.total
        if cap is not None:
            granted = stack.fitting(cap) if allocation.overflow == "truncate" else np.where(granted <= cap, granted, 0)
        if not allocation.required:
            within = stack.fitting(limit) if allocation.when_full == "truncate" else 0
            granted = np.where(granted <= limit, granted, within)
        return granted

    def floor_of(self, allocation: Allocation, floor: int) -> Ints:
        """Return what a floor comes to in whole units."""
        return self.stack(allocation).reaching(floor)

    def required_cap(self, allocation: Allocation, cap: int) -> Ints:
        """Return a required section's cap, raised to its first unit where that is larger."""
        return np.asarray(np.maximum(self.stack(allocation).first, cap))

    def stack(self, allocation: Allocation) -> Stack:
        """Return a section's units."""
        key = (allocation.section, allocation.keep, allocation.importance, allocation.limit_items)
        if key not in self._made:
            self._made[key] = self._make(allocation)
        return self._made[key]

    def _make(self, allocation: Allocation) -> Stack:
        order = (allocation.section,), allocation.keep, (allocation.importance,)
        best = [each.units(*order).tokens[: allocation.limit_items] for each in self.items]
        sums = np.concatenate(([0], np.cumsum(np.concatenate([*best, np.zeros(0, np.int64)])))).astype(np.int64)
        ends = np.cumsum([len(units) for units in best], dtype=np.int64)
        starts = np.concatenate(([0], ends[:-1])) if len(best) else ends
        first = [int(units[np.flatnonzero(units)[0]]) if units.any() else 0 for units in best]
        return Stack(sums, sums[starts], sums[ends] - sums[starts], np.array(first, dtype=np.int64))


def _is_parted(items: Items) -> bool:
    grouped = items.group >= 0
    if not grouped.any():
        return False
    pairs = np.unique(np.stack([items.group[grouped], items.section[grouped]]), axis=1)
    return len(pairs[0]) > len(np.unique(pairs[0]))
