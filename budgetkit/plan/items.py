"""Counted items by section, and the units that each section selects.

Items are read once, and each plan only selects among them. Sizes are stored as lists, because most conversations have
few items; arrays of all items are built on first access. A *unit* is an item, or all items of a group, and is kept or
dropped as a whole. :func:`select` chooses the units that a section keeps.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from budgetkit.budget.allocation import Fill, Keep
from budgetkit.budget.amounts import MOST_TOKENS, whole_number
from budgetkit.budget.errors import wrong_kind, wrong_type
from budgetkit.budget.quoting import brief, printable


@dataclass(frozen=True, slots=True)
class Item:
    """An item that may go into the context window.

    Parameters
    ----------
    section : str
        Name of the section the item belongs to, e.g. ``"history"``.
    tokens : int
        Size of the item with its framing, in tokens, at least 0.
    score : float
        Relevance of the item. In a section with ``keep="best"``, the highest score is kept first among items of equal
        importance.
    importance : int or None
        Importance of the item. The most important items are kept first. Default: the importance of the section.
    group : Hashable or None
        Group of items that are kept or dropped together, such as a tool call and its results; default: none.
    payload : object
        Content of the item, such as a message, passed through unchanged.
    roles : mapping of str to str or None
        The role table that assigned the item's section, used to detect a budget with a different table. This field is
        ignored when items are compared.

    Raises
    ------
    ValueError
        If ``tokens`` is negative, not a whole number, or above `budgetkit.budget.amounts.MOST_TOKENS`.

    Examples
    --------
    >>> Item("history", 12)
    Item(section='history', tokens=12, score=0.0, importance=None, group=None, payload=None)
    >>> Item("history", -1)
    Traceback (most recent call last):
        ...
    ValueError: Invalid token count of an item in section 'history': -1. Use a whole number from 0 to \
1,099,511,627,776, such as a counter returns.
    """

    section: str
    tokens: int
    score: float = 0.0
    importance: int | None = None
    group: Hashable | None = None
    payload: Any = None
    roles: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The exact type is tested, not isinstance: True is an int, and True tokens are a mistake.
        if type(self.tokens) is not int and (number := whole_number(self.tokens)) is not None:
            object.__setattr__(self, "tokens", number)  # a numpy integer, from a frame
        if type(self.tokens) is not int or not 0 <= self.tokens <= MOST_TOKENS:
            raise ValueError(
                f"Invalid token count of an item in section {brief(self.section)}: {brief(self.tokens)}. "
                f"Use a whole number from 0 to {MOST_TOKENS:,}, such as a counter returns."
            )


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

KNAPSACK_CELLS = 2_000_000_000  # units times limit; a larger table takes minutes and gigabytes


@dataclass(eq=False)
class Units:
    """Units of a section, in the order in which they are kept.

    Attributes
    ----------
    tokens : list of int
        Size of each unit.
    scores : list of float or None
        Scores of the units, or None if they are not needed.
    order : sequence of int
        Numbers of the units, in the order in which they are kept. Units are numbered by their first items.
    number : list of int or None
        Number of each item's unit, or None if each item is a unit of its own.
    sums : list of int
        Running sum of the units' tokens, from 0 to the total.

    Examples
    --------
    >>> Units([3, 2], [.5, .5], range(2)).total
    5
    """

    tokens: list[int]
    scores: list[float] | None
    order: Sequence[int]
    number: list[int] | None = None

    def __post_init__(self) -> None:
        self.sums = [*accumulate(self.tokens, initial=0)]

    @cached_property
    def unit(self) -> Ints:
        """The position of each item's unit in the keeping order."""
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
        """Return the number of leading units that fit in a limit.

        Examples
        --------
        >>> Units([3, 2], [.5, .5], range(2)).fitting(4)
        1
        """
        return max(0, bisect_right(self.sums, limit) - 1)

    def reaching(self, floor: int, most_units: int | None = None) -> int:
        """Return the tokens of the leading units that reach a floor.

        At most `most_units` units are counted. If even all of them do not reach the floor, the result is their sum.

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
    """Choose the units that fit in a limit.

    The result is the number of leading units that are kept, and the positions of the later units that are kept.

    Examples
    --------
    Four passages compete for 2,000 tokens.

    >>> units = Units([800, 700, 600, 400], [.95, .85, .7, .6], range(4))
    >>> select(units, 2_000), select(units, 2_000, "skip")
    ((2, []), (2, [3]))
    """
    number_kept = units.fitting(limit)
    if how == "prefix" or number_kept == len(units.tokens):
        return number_kept, []
    if how == "knapsack":
        return 0, _knapsack(units, limit)

    # go on past the first misfit, until not even the smallest fits
    places = []
    later_sizes = units.tokens[number_kept:]
    smallest = min(later_sizes)
    remaining = limit - units.sums[number_kept]
    for place, size in enumerate(later_sizes, number_kept):
        if size <= remaining:
            places.append(place)
            remaining -= size
            if remaining < smallest:
                break
    return number_kept, places


def _knapsack(units: Units, limit: int) -> list[int]:
    """Choose the units with the greatest total score, as a 0/1 knapsack.

    `best[n]` is the greatest total score that the units considered so far reach within n tokens. For each unit, a row
    of bits records for every n whether the best choice within n tokens includes that unit. Units that add no score may
    take the tokens that remain.
    """
    limit = max(0, min(limit, units.total))
    if len(units.tokens) * (limit + 1) > KNAPSACK_CELLS:
        raise ValueError(
            f"The knapsack of {len(units.tokens):,} units and {limit:,} tokens is too large: units times tokens must "
            f"be at most {KNAPSACK_CELLS:,}. Use fill='skip' or lower limit_items."
        )
    best = np.zeros(limit + 1)
    taken: list[NDArray[np.uint8]] = []
    for size, score in zip(units.tokens, units.scores or [0.0] * len(units.tokens), strict=True):
        with_it = np.full(limit + 1, -np.inf)
        with_it[size:] = best[: max(0, limit + 1 - size)] + score
        better = with_it > best
        taken.append(np.packbits(better))
        best = np.where(better, with_it, best)

    # Collect the units of the best choice, from the last unit to the first.
    stays = []
    remaining = limit
    for place in reversed(range(len(taken))):
        byte = taken[place][remaining >> 3]
        if byte >> (7 - (remaining & 7)) & 1:
            stays.append(place)
            remaining -= units.tokens[place]

    # Units that add no score may still use the remaining tokens.
    for place in sorted({*range(len(taken))} - {*stays}):
        if units.tokens[place] <= remaining:
            stays.append(place)
            remaining -= units.tokens[place]
    return stays


Number = TypeVar("Number", int, float)


class Items:
    """Counted items by section, prepared for repeated planning.

    `budgetkit.fit` builds this object in each call. Build it yourself to plan the same items with many budgets.

    Examples
    --------
    >>> columns = Items([Item("history", 30), Item("history", 20), Item("system", 10)])
    >>> len(columns), columns.demand
    (3, {'history': 50, 'system': 10})
    """

    def __repr__(self) -> str:
        demand = ", ".join(f"{section}={tokens:,}" for section, tokens in self.demand.items())
        return printable(f"Items({len(self):,}: {demand or 'none'})")

    def __init__(self, items: Iterable[Item]) -> None:
        if type(items) is not list and not isinstance(items, Iterable):
            raise TypeError(wrong_kind("items", items, "a list of Item"))
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
        """Group number of each item, or -1 if it has no group."""
        codes = {
            group: code for code, group in enumerate({item.group: 0 for item in self.items})
        } | {None: -1}
        return np.array([codes[item.group] for item in self.items], np.int64)

    @cached_property
    def has_split_groups(self) -> bool:
        """True if a group (such as a call and result) spans sections."""
        if not self.is_grouped:
            return False
        pairs = {(item.group, item.section) for item in self.items if item.group is not None}
        return len(pairs) > len({group for group, _ in pairs})

    @cached_property
    def roles(self) -> tuple[Any, ...]:
        """The distinct role tables of the items."""
        return tuple({id(item.roles): item.roles for item in self.items}.values())

    @cached_property
    def _rows(self) -> dict[str, Ints]:
        codes = {section: code for code, section in enumerate(self.sections)}
        section = np.array([codes[item.section] for item in self.items], np.int64)
        return {name: np.flatnonzero(section == code) for name, code in codes.items()}

    def rows(self, *sections: str) -> Ints:
        """Return the positions of the items in the given sections.

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
        """Return the units of the given sections, ordered by `keep`.

        The units are cached.

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
    """Order units by descending importance, then by descending score.

    Equal units keep their order, and units with a score of NaN come last.
    """
    scores = _floats([item.score for item in section_items])
    one = (
        number is None
        and len(importance) == 1
        and all(item.importance is None for item in section_items)
    )
    has_order = (total := sum(scores)) == total or all(score == score for score in scores)  # no nan
    if one and has_order:
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
    """Return each unit's importance: the highest importance of its items."""
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


def _unit_numbers(section_items: list[Item]) -> list[int]:
    """Return each item's unit number, in order of the units' first items.

    >>> _unit_numbers([Item("a", 1, group=group) for group in (None, 7, None, 7)])
    [0, 1, 2, 1]
    """
    numbers: dict[Hashable, int] = {}
    return [
        numbers.setdefault(place if item.group is None else (item.group,), len(numbers))
        for place, item in enumerate(section_items)
    ]


def _by_unit(column: list[Number], number: list[int] | None) -> list[Number]:
    """Add up a column by unit, unless each item is a unit."""
    if number is None:
        return column
    sums: list[Any] = [0] * (max(number, default=-1) + 1)
    for unit, value in zip(number, column, strict=True):
        sums[unit] += value
    return sums


def _highest(column: Sequence[float], number: list[int]) -> list[float]:
    """Return the maximum of each unit, or NaN for units with NaN."""
    tops: dict[int, float] = {}
    for unit, value in zip(number, column, strict=True):
        top = tops.get(unit, value)
        tops[unit] = top if top >= value or top != top else value
    return [*tops.values()]


def _not_items(items: tuple[Any, ...]) -> TypeError | None:
    """Return an error for the first invalid item, or None."""
    for place, item in enumerate(items):
        if not isinstance(item, Item):
            return TypeError(
                wrong_kind(f"item {place}", item, "an Item, such as Item('history', 40)")
            )
        for name, is_valid in _KNOWN.items():
            value = getattr(item, name)
            if not is_valid(value):
                kinds = "a string as section, numbers as score and importance, a hashable value as group"
                return TypeError(wrong_type(f"{name} of item {place}", value, kinds))
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, float | np.number) or (
        isinstance(value, int) and abs(value) <= sys.float_info.max
    )


def _floats(values: list[Any]) -> list[float]:
    """Convert numbers to floats if they are not floats already."""
    if {*map(type, values)} <= {float}:
        return values
    return [*map(_float, values)]


def _float(value: Any) -> float:
    if not _is_number(value):
        raise TypeError("Invalid score or importance. Use a number.")
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
