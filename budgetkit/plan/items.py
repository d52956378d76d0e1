"""Counted items by section, and the units that each section chooses from.

The items are read once; every plan after that only chooses. Sizes are lists, because most conversations have few items;
arrays of all items, in which decisions are told, are made where somebody reads them. Which units a section keeps is
decided in :mod:`budgetkit.plan.selection`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from budgetkit.budget.allocation import Keep
from budgetkit.budget.quoting import brief
from budgetkit.plan.item import Item
from budgetkit.plan.selection import Flags, Floats, Ints, Units

__all__ = ["Flags", "Floats", "Ints", "Items", "Units"]
Number = TypeVar("Number", int, float)


class Items:
    """Counted items by section, so that planning again costs no walk over objects.

    `budgetkit.fit` makes one by itself; make it once where many budgets meet the same items.

    Examples
    --------
    >>> columns = Items([Item("history", 30), Item("history", 20), Item("system", 10)])
    >>> len(columns), columns.demand
    (3, {'history': 50, 'system': 10})
    """

    def __repr__(self) -> str:
        demand = ", ".join(f"{section}={tokens:,}" for section, tokens in self.demand.items())
        return f"Items({len(self):,}: {demand or 'none'})"

    def __init__(self, items: Iterable[Item]) -> None:
        if type(items) is not list and not isinstance(items, Iterable):
            raise TypeError(
                f"items is {brief(items)}; known is an iterable of Item; give a list of them"
            )
        self.items = tuple(items)
        by_section: dict[str, list[Item]] = defaultdict(list)
        self.is_grouped = False
        try:
            for item in self.items:
                by_section[item.section].append(item)
                if item.group is not None:
                    self.is_grouped = True
            self._tokens = {
                section: [item.tokens for item in section_items]
                for section, section_items in by_section.items()
            }
            if self.is_grouped:
                hash(tuple([item.group for item in self.items]))
        except (AttributeError, TypeError, ValueError) as error:
            raise _not_items(self.items) or error from None
        #: Tokens of each section, by name, in order of appearance.
        self.demand: Mapping[str, int] = {
            section: sum(tokens) for section, tokens in self._tokens.items()
        }
        self.sections = tuple(by_section)
        self._own = dict(by_section)
        self._units: dict[tuple[tuple[str, ...], Keep, tuple[int, ...]], Units] = {}

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def tokens(self) -> Ints:
        """Tokens of each item."""
        return np.array([item.tokens for item in self.items], np.int64)

    @cached_property
    def group(self) -> Ints:
        """A number for the group of each item, -1 for none."""
        codes = {
            group: code for code, group in enumerate({item.group: 0 for item in self.items})
        } | {None: -1}
        return np.array([codes[item.group] for item in self.items], np.int64)

    @cached_property
    def has_split_groups(self) -> bool:
        """Whether a group, such as a call and its result, has members in two sections."""
        if not self.is_grouped:
            return False
        pairs = {(item.group, item.section) for item in self.items if item.group is not None}
        return len(pairs) > len({group for group, _ in pairs})

    @cached_property
    def roles(self) -> tuple[Any, ...]:
        """The role tables that the items were made with, each once."""
        return tuple({id(item.roles): item.roles for item in self.items}.values())

    @cached_property
    def _rows(self) -> dict[str, Ints]:
        codes = {section: code for code, section in enumerate(self.sections)}
        section = np.array([codes[item.section] for item in self.items], np.int64)
        return {name: np.flatnonzero(section == code) for name, code in codes.items()}

    def rows(self, *sections: str) -> Ints:
        """Return where the items of some sections stand.

        Examples
        --------
        >>> Items([Item("a", 1), Item("b", 1), Item("a", 1)]).rows("a").tolist()
        [0, 2]
        """
        places = [self._rows[s] for s in sections if s in self._rows]
        if len(places) == 1:
            return places[0]
        if places:
            return np.sort(np.concatenate(places))
        return np.zeros(0, np.int64)

    def units(
        self,
        sections: tuple[str, ...],
        keep: Keep,
        importance: tuple[int, ...],
        with_scores: bool = False,
    ) -> Units:
        """Return what some sections choose from, in the order of keeping; computed once.

        Examples
        --------
        >>> Items([Item("a", 30, .1), Item("a", 20, .9)]).units(("a",), "best", (5,)).tokens
        [20, 30]
        """
        key = (sections, keep, importance)
        units = self._units.get(key)
        if units is None or (with_scores and units.scores is None):
            try:
                units = self._units[key] = self._make_units(sections, keep, importance, with_scores)
            except (TypeError, ValueError, OverflowError) as error:
                raise _not_items(self.items) or error from None
        return units

    def _make_units(
        self, sections: tuple[str, ...], keep: Keep, importance: tuple[int, ...], with_scores: bool
    ) -> Units:
        if len(sections) == 1:
            section_items = self._own.get(sections[0], [])
            tokens = self._tokens.get(sections[0], [])
        else:
            section_items = [item for item in self.items if item.section in sections]
            tokens = [item.tokens for item in section_items]
        number = None
        if self.is_grouped:
            number = _unit_numbers(section_items)
        tokens = _by_unit(tokens, number)
        scores = None
        if with_scores:
            scores = _by_unit(_floats([item.score for item in section_items]), number)
        of_section = dict(zip(sections, importance, strict=True))
        if keep == "best":
            order = _best_first(section_items, number, of_section)
        else:
            step = -1 if keep == "newest" else 1
            if len({*importance}) < 2 and all(item.importance is None for item in section_items):
                return Units(
                    tokens[::step], scores and scores[::step], range(len(tokens))[::step], number
                )
            weights = _weights(section_items, number, of_section)
            order = sorted(range(len(tokens))[::step], key=weights.__getitem__, reverse=True)
        return Units(
            [tokens[unit] for unit in order],
            scores and [scores[unit] for unit in order],
            order,
            number,
        )


def _best_first(
    section_items: list[Item], number: list[int] | None, importance: dict[str, int]
) -> list[int]:
    """Order units by falling importance, then falling score; the first of equals first, what is no number last."""
    scores = _floats([item.score for item in section_items])
    one = (
        number is None
        and len(importance) == 1
        and all(item.importance is None for item in section_items)
    )
    if one and _have_order(scores):
        return sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    weights = _weights(section_items, number, importance)
    if number is not None:
        scores = _highest(scores, number)
    keys = [
        (-weight, score != score, -score) for weight, score in zip(weights, scores, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _weights(
    section_items: list[Item], number: list[int] | None, importance: dict[str, int]
) -> list[float]:
    """Return how much each unit matters: as its item says, else as its section does; of a group, the most."""
    weights = []
    for item in section_items:
        weight: float = importance[item.section]
        if item.importance is not None:
            own_weight = _float(item.importance)
            if own_weight == own_weight:  # nan is none
                weight = own_weight
        weights.append(weight)
    if number is None:
        return weights
    return _highest(weights, number)


def _have_order(scores: list[float]) -> bool:
    """Say whether none of some scores is nan, which is neither above nor below another."""
    return (total := sum(scores)) == total or all(score == score for score in scores)


def _unit_numbers(section_items: list[Item]) -> list[int]:
    """Return the unit of each item; units are numbered by their first item, so in the order of the conversation.

    >>> _unit_numbers([Item("a", 1, group=group) for group in (None, 7, None, 7)])
    [0, 1, 2, 1]
    """
    numbers: dict[Hashable, int] = {}
    return [
        numbers.setdefault(place if item.group is None else (item.group,), len(numbers))
        for place, item in enumerate(section_items)
    ]


def _by_unit(column: list[Number], number: list[int] | None) -> list[Number]:
    """Add up a column by unit; without numbers each item is one."""
    if number is None:
        return column
    sums: list[Any] = [0] * (max(number, default=-1) + 1)
    for unit, value in zip(number, column, strict=True):
        sums[unit] += value
    return sums


def _highest(column: Sequence[float], number: list[int]) -> list[float]:
    """Return the highest number of each unit, and nan where it has one."""
    tops: dict[int, float] = {}
    for unit, value in zip(number, column, strict=True):
        top = tops.get(unit, value)
        tops[unit] = top if top >= value or top != top else value
    return [*tops.values()]


def _not_items(items: tuple[Any, ...]) -> TypeError | None:
    """Return the error for the first entry that is not a proper item."""
    for place, item in enumerate(items):
        if not isinstance(item, Item):
            return TypeError(
                f"item {place} is {brief(item)}; known is Item; make one: Item('history', 40)"
            )
        for name, is_valid in _KNOWN.items():
            value = getattr(item, name)
            if not is_valid(value):
                kinds = "sections are texts, scores and importances numbers, groups what a dict can have as a key"
                return TypeError(
                    f"{name} of item {place} is {brief(value)}; {kinds}; mend that item"
                )
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, float | np.number) or (
        isinstance(value, int) and abs(value) <= sys.float_info.max
    )


def _floats(values: list[Any]) -> list[float]:
    """Return numbers as floats; most often they are all of them already."""
    if {*map(type, values)} <= {float}:
        return values
    return [*map(_float, values)]


def _float(value: Any) -> float:
    if not _is_number(value):
        raise TypeError("scores and importances are numbers")
    return float(value)


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
