"""Counted items as columns, and the units that each section chooses from.

The items are read once, into arrays; every plan after that only computes with these. Which units a section keeps is
decided in :mod:`budgetkit.plan.selection`.
"""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from budgetkit.budget.allocation import Keep
from budgetkit.budget.quoting import brief
from budgetkit.plan.item import Item
from budgetkit.plan.selection import Flags, Floats, Ints, Units

__all__ = ["Flags", "Floats", "Ints", "Items", "Units"]

Number = TypeVar("Number", np.int64, np.float64)
_FEW = 1_000  # units that one stable sort orders sooner


class Items:
    """Counted items as columns, so that planning again costs no walk over objects.

    `budgetkit.fit` makes one by itself; make it once where many budgets meet the same items.

    Examples
    --------
    >>> columns = Items([Item("history", 30), Item("history", 20), Item("system", 10)])
    >>> len(columns), columns.demand
    (3, {'history': 50, 'system': 10})
    """

    def __init__(self, items: Iterable[Item]) -> None:
        if not isinstance(items, Iterable):
            raise TypeError(f"items is {brief(items)}; known is an iterable of Item; give a list of them")
        self.items = tuple(items)
        try:
            self._fill(_codes())
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise _not_items(self.items) or error from None
        self._units: dict[tuple[tuple[str, ...], Keep, tuple[int, ...]], Units] = {}

    def _fill(self, codes: dict[str, int]) -> None:
        # Whoever plans once pays for these lines more than for the plan: what only some plans ask for is made later.
        size = len(self.items)
        self.tokens: Ints = np.fromiter([item.tokens for item in self.items], np.int64, size)
        self.section: Ints = np.fromiter([codes[item.section] for item in self.items], np.int64, size)
        groups = [item.group for item in self.items]
        self.is_grouped = any(group is not None for group in groups)
        self.group = _group_codes(groups) if self.is_grouped else _alone(size)
        self.sections = tuple(codes)
        self._rows = {name: np.flatnonzero(self.section == code) for name, code in codes.items()}

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def demand(self) -> Mapping[str, int]:
        """Tokens of each section, by name, in order of appearance."""
        return {name: int(self.tokens[self._rows[name]].sum()) for name in self.sections}

    @cached_property
    def roles(self) -> tuple[Any, ...]:
        """The role tables that the items were made with, each once."""
        return _each_once([item.roles for item in self.items])

    @cached_property
    def scores(self) -> Floats:
        """How relevant each item is."""
        try:
            return np.array([item.score for item in self.items], dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise _not_items(self.items) or error from None

    @cached_property
    def _importance(self) -> Floats | None:
        """Importance of each item, missing where it has none of its own; None where no item has."""
        own = [item.importance for item in self.items]
        try:
            return None if all(each is None for each in own) else np.array(own, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise _not_items(self.items) or error from None

    def rows(self, *sections: str) -> Ints:
        """Return where the items of some sections stand.

        Examples
        --------
        >>> Items([Item("a", 1), Item("b", 1), Item("a", 1)]).rows("a").tolist()
        [0, 2]
        """
        if len(sections) == 1 and sections[0] in self._rows:
            return self._rows[sections[0]]
        found = [self._rows[s] for s in sections if s in self._rows]
        return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def units(
        self, sections: tuple[str, ...], keep: Keep, importance: tuple[int, ...], with_scores: bool = False
    ) -> Units:
        """Return what some sections choose from, in the order of keeping; computed once.

        Examples
        --------
        >>> Items([Item("a", 30, .1), Item("a", 20, .9)]).units(("a",), "best", (5,)).tokens.tolist()
        [20, 30]
        """
        key = (sections, keep, importance)
        found = self._units.get(key)
        if found is None or (with_scores and found.scores is None):
            found = self._units[key] = self._make_units(sections, keep, importance, with_scores)
        return found

    def _make_units(
        self, sections: tuple[str, ...], keep: Keep, importance: tuple[int, ...], with_scores: bool
    ) -> Units:
        rows = self.rows(*sections)
        unit, count = _unit_numbers(self.group[rows]) if self.is_grouped else (None, len(rows))
        if count == len(rows):
            unit = None  # every item is a unit of its own
        tokens = _by_unit(self.tokens[rows], unit, count)
        scores = _by_unit(self.scores[rows], unit, count) if with_scores else None
        if keep == "best":
            order = self._best_first(rows, unit, count, dict(zip(sections, importance, strict=True)))
        else:
            order = np.arange(count)[:: -1 if keep == "newest" else 1]
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        ordered = None if scores is None else scores[order]
        return Units(tokens[order], ordered, place if unit is None else place[unit])

    def _best_first(self, rows: Ints, unit: Ints | None, count: int, importance: dict[str, int]) -> Ints:
        scores = self.scores[rows]
        if unit is None and self._importance is None and len(set(importance.values())) == 1:
            return _falling_scores(scores)
        of_section = np.array([importance.get(name, 0) for name in self.sections], dtype=np.float64)
        weight = of_section[self.section[rows]]
        if self._importance is not None:
            weight = np.where(np.isnan(self._importance[rows]), weight, self._importance[rows])
        if unit is not None:
            alone, top = (weight, scores), (np.full(count, -np.inf), np.full(count, -np.inf))
            for each, highest in zip(alone, top, strict=True):
                np.maximum.at(highest, unit, each)
            weight, scores = top
        return np.lexsort((-scores, -weight)) if (weight != weight[:1]).any() else _falling_scores(scores)


def _by_unit(column: NDArray[Number], unit: Ints | None, count: int) -> NDArray[Number]:
    """Add up a column by unit; None says that each row is one."""
    if unit is None:
        return column
    sums = np.zeros(count, column.dtype)
    np.add.at(sums, unit, column)
    return sums


def _not_items(items: tuple[Any, ...]) -> TypeError | None:
    """Return the error for the first entry that is not a proper item."""
    for place, item in enumerate(items):
        if not isinstance(item, Item):
            return TypeError(f"item {place} is {brief(item)}; known is Item; make one: Item('history', 40)")
        for name, known in _KNOWN.items():
            value = getattr(item, name)
            if not known(value):
                kinds = "sections are texts, scores and importances numbers, groups what a dict can have as a key"
                return TypeError(f"{name} of item {place} is {brief(value)}; {kinds}; mend that item")
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, float | np.number) or (isinstance(value, int) and abs(value) <= sys.float_info.max)


def _is_key(value: object) -> bool:
    try:
        return isinstance(hash(value), int)
    except TypeError:
        return False


_KNOWN: dict[str, Callable[[Any], bool]] = {
    "section": lambda value: isinstance(value, str),
    "score": _is_number,
    "importance": lambda value: value is None or _is_number(value),
    "group": _is_key,
}


def _each_once(tables: list[Any]) -> tuple[Any, ...]:
    """Return every table once; mostly all items share one, or have none."""
    if not tables or tables.count(tables[0]) == len(tables):
        return tuple(tables[:1])
    return tuple({id(table): table for table in tables}.values())


def _codes() -> defaultdict[str, int]:
    """Return a table that numbers names in the order in which they are asked for."""
    return defaultdict(itertools.count().__next__)


def _falling_scores(score: Floats) -> Ints:
    """Order by falling score, the first of equals first."""
    if len(score) < _FEW or np.isnan(score).any():
        return np.argsort(-score, kind="stable")
    # One key: a sort that may swap equals and a sort of their places take half the time of a stable one.
    order = np.argsort(-score)
    falling = score[order]
    equals = np.concatenate(([0], np.cumsum(falling[1:] < falling[:-1])))
    places: Ints = equals * len(order) + order
    places.sort()
    return places % len(order)


def _alone(size: int) -> Ints:
    return np.full(size, -1, dtype=np.int64)


def _group_codes(groups: list[Hashable]) -> Ints:
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
