"""Which units stay when a section asks for more than its limit: the three ways to fill it.

Items of one group stay or go together. So a section chooses among *units*: a unit is a group, or an item that has
no group. The section's `keep` puts its units in an order, and its `fill` chooses from the front:

- prefix: up to the first unit that does not fit;
- skip: every unit that still fits, in order;
- knapsack: the units that fit together and have the greatest total score (exact, by dynamic programming).

A worked example. Units of 800, 700, 600 and 400 tokens stand in the order of keeping, and the limit is 2,000:

    sums       [0, 800, 1500, 2100, 2500]    tokens of the first 0, 1, 2, 3, 4 units
    prefix     2 from the front (1,500)      the third would make 2,100
    skip       2 from the front, and place 3: 400 of the 500 that are left
    knapsack   the best total score of all that fit into 2,000, wherever they stand

With prefix, a larger limit keeps all that a smaller one keeps. With skip and knapsack it may not: a large unit that
now fits can take the room of several small ones.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from budgetkit.budget.allocation import Fill

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

KNAPSACK_CELLS = 2_000_000_000  # units times limit: beyond it the table takes minutes and gigabytes


class Units:
    """What one section chooses from, in the order in which it would keep it.

    Attributes
    ----------
    tokens : list of int
        Size of each unit.
    scores : list of float or None
        What the units are worth; None where nobody asked for it.
    order : sequence of int
        Number of the unit at each place.
    number : list of int or None
        Number of each item's unit; None where every item is one.
    sums : list of int
        Tokens of the first so many units, from none to all.

    Examples
    --------
    >>> Units([3, 2], [.5, .5], range(2)).total
    5
    """

    def __init__(
        self,
        tokens: list[int],
        scores: list[float] | None,
        order: Sequence[int],
        number: list[int] | None = None,
    ) -> None:
        self.tokens = tokens
        self.scores = scores
        self.order = order
        self.number = number
        self.sums = [*accumulate(tokens, initial=0)]

    @cached_property
    def unit(self) -> Ints:
        """The place of each item's unit."""
        place = np.empty(len(self.order), np.int64)
        place[np.array(self.order, np.int64)] = np.arange(len(place))
        if self.number is None:
            return place
        return place[self.number]

    @property
    def total(self) -> int:
        """Tokens of all units."""
        return self.sums[-1]

    def fitting(self, limit: int) -> int:
        """Return how many units from the front fit into a limit.

        Examples
        --------
        >>> Units([3, 2], [.5, .5], range(2)).fitting(4)
        1
        """
        return max(0, bisect_right(self.sums, limit) - 1)

    def reaching(self, floor: int, most_units: int | None = None) -> int:
        """Return the tokens of the first units, but no more than so many, that together reach a floor.

        Examples
        --------
        >>> units = Units([3, 2, 4], None, range(3))
        >>> units.reaching(4), units.reaching(40)
        (5, 9)
        """
        if not floor:
            return 0
        number = min(bisect_left(self.sums, floor), len(self.tokens))
        if most_units is not None:
            number = min(number, most_units)
        return self.sums[number]


def select(units: Units, limit: int, how: Fill = "prefix") -> tuple[int, list[int]]:
    """Choose the units that stay within a limit: how many from the front, and which places beyond them.

    Examples
    --------
    Four passages for 2,000 tokens.

    >>> units = Units([800, 700, 600, 400], [.95, .85, .7, .6], range(4))
    >>> select(units, 2_000), select(units, 2_000, "skip")
    ((2, []), (2, [3]))
    """
    number_kept = units.fitting(limit)
    if how == "prefix" or number_kept == len(units.tokens):
        return number_kept, []
    if how == "knapsack":
        return 0, _knapsack(units, limit)
    return number_kept, _skip(units.tokens, limit - units.sums[number_kept], number_kept)


def _skip(sizes: list[int], room: int, start: int) -> list[int]:
    """Walk on from a place, and return the places of units that still fit, until not even the smallest does.

    Of [800, 700, 600, 400] with a room of 500 from place 2 on: 600 is too large, 400 fits, so [3].
    """
    places = []
    later_sizes = sizes[start:]
    smallest = min(later_sizes)
    for place, size in enumerate(later_sizes, start):
        if size <= room:
            places.append(place)
            room -= size
            if room < smallest:
                break
    return places


def _knapsack(units: Units, limit: int) -> list[int]:
    """Choose the units with the greatest total score: the table of the 0/1 knapsack, and the way back through it.

    `best[room]` is the greatest score that the units so far can have within a room. One row of bits a unit says for
    each room whether the unit belongs to that choice.
    """
    limit = max(0, min(limit, units.total))
    if len(units.tokens) * (limit + 1) > KNAPSACK_CELLS:
        raise ValueError(
            f"knapsack over {len(units.tokens):,} units and {limit:,} tokens is too large to solve exactly; "
            f"units times tokens may be {KNAPSACK_CELLS:,}; use fill='skip' or lower limit_items"
        )
    best = np.zeros(limit + 1)
    taken = []
    for size, score in zip(units.tokens, units.scores or [0.0] * len(units.tokens), strict=True):
        with_it = np.full(limit + 1, -np.inf)
        with_it[size:] = best[: max(0, limit + 1 - size)] + score
        better = with_it > best
        taken.append(np.packbits(better))
        best = np.where(better, with_it, best)
    return _traced_back(units, limit, taken)


def _traced_back(units: Units, room: int, taken: list[NDArray[np.uint8]]) -> list[int]:
    """Read off, from the last unit to the first, which belong to the best choice for a room."""
    stays = []
    for place in reversed(range(len(taken))):
        byte = taken[place][room >> 3]
        belongs = byte >> (7 - (room & 7)) & 1
        if belongs:
            stays.append(place)
            room -= units.tokens[place]

    # What adds no score may still use the room.
    for place in sorted({*range(len(taken))} - {*stays}):
        if units.tokens[place] <= room:
            stays.append(place)
            room -= units.tokens[place]
    return stays
