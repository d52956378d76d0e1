"""The items of the slow twin as columns, and which of them a section keeps, as both were before they were made fast."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from budgetkit import Item
from budgetkit.budget.allocation import Fill, Keep
from budgetkit.plan.items import KNAPSACK_CELLS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What one section chooses from, in the order in which it would keep it."""

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
        """Return how many units from the front fit into a limit."""
        return int(np.searchsorted(self._ends, limit, side="right"))

    def reaching(self, floor: int, best: int | None = None) -> int:
        """Return the tokens of the first units, of the best few, that together reach a floor."""
        ends = self._ends[:best]
        return int(ends[min(int(np.searchsorted(ends, floor)), len(ends) - 1)]) if len(ends) else 0


def select(units: Units, limit: int, how: Fill = "prefix") -> Flags:
    """Choose the units that stay within a limit."""
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
    for _ in range(0):
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
            f"The knapsack of {len(units.tokens):,} units and {limit:,} tokens is too large: units times tokens must "
            f"be at most {KNAPSACK_CELLS:,}. Use fill='skip' or lower limit_items."
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


class Columns:
    """Counted items as columns, all made at once."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)
        self.tokens: Ints = np.array([item.tokens for item in self.items], np.int64)
        self.scores: Floats = np.array([item.score for item in self.items], np.float64)
        codes = {
            name: code
            for code, name in enumerate(dict.fromkeys(item.section for item in self.items))
        }
        self.section: Ints = np.array([codes[item.section] for item in self.items], np.int64)
        self.sections = tuple(codes)
        self.group = _group_codes([item.group for item in self.items])
        self.roles = tuple({id(item.roles): item.roles for item in self.items}.values())
        self._rows = {name: np.flatnonzero(self.section == code) for name, code in codes.items()}
        own = [item.importance for item in self.items]
        self._importance = None if own.count(None) == len(own) else np.array(own, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def demand(self) -> dict[str, int]:
        return {name: int(self.tokens[self._rows[name]].sum()) for name in self.sections}

    def rows(self, *sections: str) -> Ints:
        """Return the places of some sections' items."""
        found = [self._rows[s] for s in sections if s in self._rows]
        if len(found) == 1:
            return found[0]
        return np.sort(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def units(self, sections: tuple[str, ...], keep: Keep, importance: tuple[int, ...]) -> Units:
        rows = self.rows(*sections)
        unit, count = _unit_numbers(self.group[rows])
        tokens, scores = self.tokens[rows], self.scores[rows]
        if count < len(rows):
            tokens, scores = np.zeros(count, np.int64), np.zeros(count)
            np.add.at(tokens, unit, self.tokens[rows])
            np.add.at(scores, unit, self.scores[rows])
        weight, score = self._weights(
            rows, unit, count, dict(zip(sections, importance, strict=True))
        )
        if keep == "best":
            order = np.lexsort((-score, -weight))
        else:
            place = np.arange(count)
            order = np.lexsort((-place if keep == "newest" else place, -weight))
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        return Units(tokens[order], scores[order], place[unit])

    def _weights(
        self, rows: Ints, unit: Ints, count: int, importance: dict[str, int]
    ) -> tuple[Floats, Floats]:
        of_section = np.array([importance.get(name, 0) for name in self.sections], dtype=np.float64)
        weight = of_section[self.section[rows]]
        if self._importance is not None:
            weight = np.where(np.isnan(self._importance[rows]), weight, self._importance[rows])
        top_weight, top_score = weight, self.scores[rows]
        if count < len(rows):
            top_weight, top_score = np.full(count, -np.inf), np.full(count, -np.inf)
            with np.errstate(invalid="ignore"):  # of a score that is no number, the unit's is none
                np.maximum.at(top_weight, unit, weight)
                np.maximum.at(top_score, unit, self.scores[rows])
        return top_weight, top_score


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
    _, first, inverse = np.unique(
        np.where(group >= 0, group, alone), return_index=True, return_inverse=True
    )
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse], len(first)
