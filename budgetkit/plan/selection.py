"""Which units stay when a section asks for more than its limit: the three ways to fill it.

Items of one group stay or go together. So a section chooses among *units*: a unit is a group, or an item that has
no group. The section's `keep` puts its units in an order, and its `fill` chooses from the front:

- prefix: up to the first unit that does not fit;
- skip: every unit that still fits, in order;
- knapsack: the units that fit together and have the greatest total score (exact, by dynamic programming).

With prefix, a larger limit keeps all that a smaller one keeps. With skip and knapsack it may not: a large unit that
now fits can take the room of several small ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from budgetkit.budget.allocation import Fill

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SKIP_ROUNDS, _FEW = 8, 100
KNAPSACK_CELLS = 2_000_000_000  # units times limit: beyond it the table takes minutes and gigabytes


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What one section chooses from, in the order in which it would keep it.

    Examples
    --------
    >>> Units(np.array([3, 2]), np.array([.5, .5]), np.array([0, 1])).total
    5
    """

    tokens: Ints
    scores: Floats | None  # None where nobody asked for them
    unit: Ints
    _ends: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ends", self.tokens.cumsum())

    @property
    def total(self) -> int:
        """Tokens of all units."""
        return self.first(len(self._ends))

    def first(self, count: int) -> int:
        """Return the tokens of the first so many units.

        Examples
        --------
        >>> Units(np.array([3, 2]), np.array([.5, .5]), np.array([0, 1])).first(1)
        3
        """
        return int(self._ends[count - 1]) if count else 0

    def fitting(self, limit: int) -> int:
        """Return how many units from the front fit into a limit.

        Examples
        --------
        >>> Units(np.array([3, 2]), np.array([.5, .5]), np.array([0, 1])).fitting(4)
        1
        """
        return int(self._ends.searchsorted(limit, "right"))

    def reaching(self, floor: int, best: int | None = None) -> int:
        """Return the tokens of the first units, of the best few, that together reach a floor.

        Examples
        --------
        >>> units = Units(np.array([3, 2, 4]), np.zeros(3), np.arange(3))
        >>> units.reaching(4), units.reaching(40)
        (5, 9)
        """
        ends = self._ends[:best]
        return int(ends[min(int(np.searchsorted(ends, floor)), len(ends) - 1)]) if len(ends) else 0


def select(units: Units, limit: int, how: Fill = "prefix") -> Flags:
    """Choose the units that stay within a limit.

    Examples
    --------
    Four passages for 2,000 tokens.

    >>> units = Units(np.array([800, 700, 600, 400]), np.array([.95, .85, .7, .6]), np.arange(4))
    >>> select(units, 2_000).tolist(), select(units, 2_000, "skip").tolist()
    ([True, True, False, False], [True, True, False, True])
    """
    stays = np.zeros(len(units.tokens), dtype=np.bool_)
    first = units.fitting(limit)
    if how == "knapsack" and first < len(stays):
        return _knapsack(units, limit)
    stays[:first] = True
    if how == "skip" and first < len(stays):
        _skip(units, limit, first, stays)
    return stays


def _skip(units: Units, limit: int, first: int, stays: Flags) -> None:
    # In rounds: of what still fits by itself, the first ones that fit together stay. Few rounds do, but sizes that
    # fall one by one would make it as many as there are units, so the rest is walked, and so are a few from the start.
    room = limit - (int(units._ends[first - 1]) if first else 0)
    places, sizes = np.arange(first, len(stays)), units.tokens[first:]
    for _ in range(_SKIP_ROUNDS if len(sizes) > _FEW else 0):
        fits = sizes <= room
        places, sizes = places[fits], sizes[fits]
        if not len(sizes):
            return
        ends = np.cumsum(sizes)
        together = int(np.searchsorted(ends, room, side="right"))
        stays[places[:together]] = True
        room -= int(ends[together - 1])
        places, sizes = places[together:], sizes[together:]
    _skip_one_by_one(places.tolist(), sizes.tolist(), room, stays)


def _skip_one_by_one(places: list[int], sizes: list[int], room: int, stays: Flags) -> None:
    smallest_after = list(accumulate(reversed(sizes), min))[::-1]
    for place, size, smallest in zip(places, sizes, smallest_after, strict=True):
        if smallest > room:
            return
        if size <= room:
            room -= size
            stays[place] = True


def _knapsack(units: Units, limit: int) -> Flags:
    # One row a unit: whether it belongs to the best choice among those up to it, for each room.
    limit = max(0, min(limit, units.total))
    if len(units.tokens) * (limit + 1) > KNAPSACK_CELLS:
        raise ValueError(
            f"knapsack over {len(units.tokens):,} units and {limit:,} tokens is too large to solve exactly; "
            f"units times tokens may be {KNAPSACK_CELLS:,}; use fill='skip' or lower limit_items"
        )
    best, taken = np.zeros(limit + 1), []
    scores = units.scores if units.scores is not None else np.zeros(len(units.tokens))
    for size, score in zip(units.tokens.tolist(), scores.tolist(), strict=True):
        with_it = np.full(limit + 1, -np.inf)
        with_it[size:] = best[: max(0, limit + 1 - size)] + score
        better = with_it > best
        taken.append(np.packbits(better))
        best = np.where(better, with_it, best)
    return _traced_back(units, limit, taken)


def _traced_back(units: Units, room: int, taken: list[NDArray[np.uint8]]) -> Flags:
    stays = np.zeros(len(taken), dtype=np.bool_)
    for i in range(len(taken) - 1, -1, -1):
        if taken[i][room >> 3] >> (7 - (room & 7)) & 1:
            stays[i] = True
            room -= int(units.tokens[i])
    for i in np.flatnonzero(~stays).tolist():  # what adds no score may still use the room
        if units.tokens[i] <= room:
            stays[i] = True
            room -= int(units.tokens[i])
    return stays
