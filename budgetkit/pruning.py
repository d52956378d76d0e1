"""Which items stay when a section is over: the fills, on columns.

Items of one group stay or go together, so what is chosen from are *units*: a group, or an item by itself. A
section puts its units in the order of its `keep`, and a fill takes from the front:

- prefix: up to the first unit that does not fit;
- skip: every unit that still fits, in order;
- knapsack: the units of the greatest total score that fit together (exact, by dynamic programming).

Prefix is monotone in the limit; skip and knapsack are not: more room can push a unit out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from budgetkit.items import Item
from budgetkit.lines import Fill, Keep

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SKIP_ROUNDS = 8
KNAPSACK_CELLS = 2_000_000_000  # units times limit: beyond it the table takes minutes and gigabytes


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What one section chooses from, in the order in which it would keep it.

    Parameters
    ----------
    tokens : int64 array, shape (units,)
        Size of each unit, in tokens.
    scores : float64 array, shape (units,)
        Total score of each unit.
    unit : int64 array, shape (items,)
        Position in that order of the unit to which each of the section's items belongs.

    Examples
    --------
    >>> Units(np.array([3, 2]), np.array([.5, .5]), np.array([0, 1])).total
    5
    """

    tokens: Ints
    scores: Floats
    unit: Ints
    _ends: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ends", np.cumsum(self.tokens))

    @property
    def total(self) -> int:
        """Tokens of all units."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def fitting(self, limit: int) -> int:
        """Return how many units from the front fit into a limit.

        Parameters
        ----------
        limit : int
            Room, in tokens.

        Returns
        -------
        int
            The number of units.

        Examples
        --------
        >>> Units(np.array([3, 2]), np.array([.5, .5]), np.array([0, 1])).fitting(4)
        1
        """
        return int(np.searchsorted(self._ends, limit, side="right"))


def fill(units: Units, limit: int, how: Fill = "prefix") -> Flags:
    """Choose the units that stay within a limit.

    Parameters
    ----------
    units : Units
        What there is, in the order of keeping.
    limit : int
        Room, in tokens.
    how : {"prefix", "skip", "knapsack"}
        The rule.

    Returns
    -------
    bool array, shape (units,)
        True for a unit that stays.

    Examples
    --------
    Four passages for 2,000 tokens.

    >>> units = Units(np.array([800, 700, 600, 400]), np.array([.95, .85, .7, .6]), np.arange(4))
    >>> fill(units, 2_000).tolist(), fill(units, 2_000, "skip").tolist()
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
    # fall one by one would make it as many as there are units, so the rest is walked.
    room = limit - (int(units._ends[first - 1]) if first else 0)
    places, sizes = np.arange(first, len(stays)), units.tokens[first:]
    for _ in range(_SKIP_ROUNDS):
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
    for size, score in zip(units.tokens.tolist(), units.scores.tolist(), strict=True):
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


class Items:
    """Counted items as columns, so that planning again costs no walk over objects.

    `budgetkit.fit` makes one by itself; make it once where many budgets meet the same items.

    Parameters
    ----------
    items : iterable of Item
        The items, oldest first within a section.

    Examples
    --------
    >>> columns = Items([Item("history", 30), Item("history", 20), Item("system", 10)])
    >>> len(columns), columns.demand
    (3, {'history': 50, 'system': 10})
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)
        sections = [item.section for item in self.items]
        self.tokens: Ints = np.array([item.tokens for item in self.items], dtype=np.int64)
        self.scores: Floats = np.array([item.score for item in self.items], dtype=np.float64)
        self.importance: Floats = _or_nan([item.importance for item in self.items])
        self.sections = tuple(dict.fromkeys(sections))
        codes = {name: code for code, name in enumerate(self.sections)}
        self.section: Ints = np.fromiter(map(codes.__getitem__, sections), np.int64, len(sections))
        self.group = _group_codes([item.group for item in self.items])
        self._rows = {name: np.flatnonzero(self.section == code) for name, code in codes.items()}
        self._units: dict[tuple[tuple[str, ...], Keep, tuple[int, ...]], Units] = {}

    def __len__(self) -> int:
        return len(self.items)

    @property
    def demand(self) -> dict[str, int]:
        """Tokens of each section, by name, in order of appearance."""
        return {name: int(self.tokens[self._rows[name]].sum()) for name in self.sections}

    def rows(self, *sections: str) -> Ints:
        """Return where the items of some sections stand.

        Parameters
        ----------
        *sections : str
            Names of sections.

        Returns
        -------
        int64 array
            Positions, ascending.

        Examples
        --------
        >>> Items([Item("a", 1), Item("b", 1), Item("a", 1)]).rows("a").tolist()
        [0, 2]
        """
        found = [self._rows[s] for s in sections if s in self._rows]
        if len(found) == 1:
            return found[0]
        return np.sort(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def units(self, sections: tuple[str, ...], keep: Keep, importance: tuple[int, ...]) -> Units:
        """Return what some sections choose from, in the order of keeping; computed once.

        Parameters
        ----------
        sections : tuple of str
            Sections that choose together; mostly one.
        keep : {"first", "newest", "best"}
            The order: as they come, the latest first, or by (importance, score), the first of equals first.
        importance : tuple of int
            Importance of each section, for items without one of their own.

        Returns
        -------
        Units
            Sizes, scores, and the unit of each item in `rows`.

        Examples
        --------
        >>> Items([Item("a", 30, .1), Item("a", 20, .9)]).units(("a",), "best", (5,)).tokens.tolist()
        [20, 30]
        """
        key = (sections, keep, importance)
        if key not in self._units:
            self._units[key] = self._make_units(sections, keep, importance)
        return self._units[key]

    def _make_units(self, sections: tuple[str, ...], keep: Keep, importance: tuple[int, ...]) -> Units:
        rows = self.rows(*sections)
        unit, count = _unit_numbers(self.group[rows])
        tokens, scores = self.tokens[rows], self.scores[rows]
        if count < len(rows):
            tokens, scores = np.zeros(count, np.int64), np.zeros(count)
            np.add.at(tokens, unit, self.tokens[rows])
            np.add.at(scores, unit, self.scores[rows])
        if keep == "best":
            order = self._best_first(rows, unit, count, dict(zip(sections, importance, strict=True)))
        else:
            order = np.arange(count)[:: -1 if keep == "newest" else 1]
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        return Units(tokens[order], scores[order], place[unit])

    def _best_first(self, rows: Ints, unit: Ints, count: int, importance: dict[str, int]) -> Ints:
        of_section = np.array([importance.get(name, 0) for name in self.sections], dtype=np.float64)
        own = self.importance[rows]
        weight = np.where(np.isnan(own), of_section[self.section[rows]], own)
        top_weight, top_score = weight, self.scores[rows]
        if count < len(rows):
            top_weight, top_score = np.full(count, -np.inf), np.full(count, -np.inf)
            np.maximum.at(top_weight, unit, weight)
            np.maximum.at(top_score, unit, self.scores[rows])
        return np.lexsort((-top_score, -top_weight))  # stable: the first of equals first


def _or_nan(importance: list[int | None]) -> Floats:
    if importance.count(None) == len(importance):
        return np.full(len(importance), np.nan)
    return np.array(importance, dtype=np.float64)  # None becomes nan


def _group_codes(groups: list[Hashable]) -> Ints:
    if groups.count(None) == len(groups):
        return np.full(len(groups), -1, dtype=np.int64)
    codes = {group: code for code, group in enumerate(dict.fromkeys(groups))} | {None: -1}
    return np.array([codes[group] for group in groups], dtype=np.int64)


def _unit_numbers(group: Ints) -> tuple[Ints, int]:
    # Units are numbered by their first item, so "first" and "newest" are the order of the conversation.
    if not (group >= 0).any():
        return np.arange(len(group)), len(group)
    alone = -1 - np.arange(len(group))
    _, first, inverse = np.unique(np.where(group >= 0, group, alone), return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse], len(first)
