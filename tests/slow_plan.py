"""Planning as it was before it was made fast: the twin that the fast one is compared with.

Every column is made at once, every plan makes its units anew, and nothing is left for later. It is slow and plain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetkit import Allocation, Budget, Item
from budgetkit.budget.allocation import Fill, Keep, Overflow
from budgetkit.budget.quoting import brief
from budgetkit.plan.decisions import BEYOND_BEST, FITS, OVER_CAP, PAIR, UNCUT, WINDOW_FULL, Decisions
from budgetkit.plan.fitting import Cut
from budgetkit.plan.grant import Grant
from budgetkit.plan.items import Items
from budgetkit.plan.losses import full
from budgetkit.plan.plan import Plan
from budgetkit.plan.selection import KNAPSACK_CELLS
from budgetkit.plan.walk import by_weight, raise_if_overrun, with_undeclared

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def slow_fit(budget: Budget, items: Iterable[Item], cut: Cut | None = None) -> Plan:
    """Choose which whole items stay."""
    columns = _Columns(items)
    demand = columns.demand
    budget = with_undeclared(budget, demand, columns.roles)
    choice = _Choice(budget, columns, cut)
    asked = {s: demand.get(s, 0) for s in budget.sections}
    limits = {}
    for allocation, limit, _ in allocate_in_order(budget, asked, choice.take, choice.required_cap, choice.floor_of):
        limits[allocation.section] = limit
    choice.part_no_pair()
    grants = [Grant(s, asked[s], limits[s], int(choice.kept[columns.rows(s)].sum())) for s in budget.sections]
    decisions = Decisions(Items(columns.items), lambda: (choice.kept, choice.reasons), choice.cuts)
    plan = Plan(budget, tuple(grants), decisions, partial(slow_fit, cut=cut))
    for allocation in budget.allocations:  # only now is it known whether the window was full, or the pool alone
        rows = columns.rows(allocation.section)
        rows = rows[choice.reasons[rows] == WINDOW_FULL]
        choice.reasons[rows] = full(budget, allocation, plan.free)
    return raise_if_overrun(plan)


class _Choice:
    """The answers of sections made of items, collected as columns while the walk asks."""

    def __init__(self, budget: Budget, columns: _Columns, cut: Cut | None) -> None:
        self.budget, self.columns, self.cut = budget, columns, cut
        self.kept: Ints = np.zeros(len(columns), dtype=np.int64)
        self.reasons = np.zeros(len(columns), dtype=np.int8)
        self.cuts: dict[int, Item] = {}
        self.pool = tuple(a for a in budget.asked if budget.competes and self._in_pool(a))
        self.pool_is_served = False

    @staticmethod
    def _in_pool(allocation: Allocation) -> bool:
        return allocation.cap is None and not allocation.required

    def floor_of(self, allocation: Allocation, floor: int) -> int:
        units = self.columns.units((allocation.section,), allocation.keep, (allocation.importance,))
        return units.reaching(floor, allocation.limit_items)

    def required_cap(self, allocation: Allocation, cap: int) -> int:
        # What is required never vanishes: its first item stays whole where nothing can cut it to the cap.
        rows = self.columns.rows(allocation.section)
        if not len(rows):
            return cap
        units = self.columns.units((allocation.section,), allocation.keep, (allocation.importance,))
        filled = np.flatnonzero(units.tokens[: allocation.limit_items])
        if not len(filled) or units.tokens[filled[0]] <= cap or self._can_cut(allocation, rows, units, filled[0], cap):
            return cap
        return int(units.tokens[filled[0]])

    def _can_cut(self, allocation: Allocation, rows: Ints, units: Units, unit: int, room: int) -> bool:
        return self._shorter(allocation, rows[units.unit == unit], room) is not None

    def take(self, allocation: Allocation, limit: int, cap: int | None, demand: int) -> int:
        together = self.pool if allocation in self.pool else (allocation,)
        if together is not self.pool or not self.pool_is_served:
            self._serve(together, limit, cap)
            self.pool_is_served = self.pool_is_served or together is self.pool
        return int(self.kept[self.columns.rows(allocation.section)].sum())

    def _serve(self, together: tuple[Allocation, ...], limit: int, cap: int | None) -> None:
        first = together[0]
        sections = tuple(a.section for a in together)
        rows = self.columns.rows(*sections)
        if not len(rows):
            return
        units = self.columns.units(sections, first.keep, tuple(a.importance for a in together))
        reasons = _reasons(first, units, limit, cap)
        self.reasons[rows] = reasons[units.unit]
        stays = self.reasons[rows] == FITS
        self.kept[rows] = np.where(stays, self.columns.tokens[rows], 0)
        if first.granularity != "item":
            room = limit - int(units.tokens[reasons == FITS].sum())
            total = int(units.tokens[reasons != BEYOND_BEST].sum())
            if room > 0 and not _drops_whole(first, total, limit, cap):
                self._cut_first(first, rows, units, reasons, room)

    def _cut_first(self, allocation: Allocation, rows: Ints, units: Units, reasons: Ints, room: int) -> None:
        dropped = np.flatnonzero((reasons != FITS) & (reasons != BEYOND_BEST))
        if not len(dropped):
            return
        members = rows[units.unit == dropped[0]]
        if self.cut is None and self.columns.group[members[0]] < 0:
            self.reasons[members] = UNCUT
        shorter = self._shorter(allocation, members, room)
        if shorter is not None:
            i = int(members[0])
            self.cuts[i], self.kept[i] = shorter, shorter.tokens

    def _shorter(self, allocation: Allocation, members: Ints, room: int) -> Item | None:
        # A group stays or goes together, uncut, also where its other members stand in another section.
        if self.cut is None or allocation.granularity == "item" or self.columns.group[members[0]] >= 0:
            return None
        shorter = self.cut(self.columns.items[int(members[0])], room, allocation)
        if shorter is not None and not isinstance(shorter, Item):
            raise TypeError(f"cut returned {brief(shorter)}; known are an Item and None; give one of them back")
        if shorter is None or shorter.tokens == 0:
            return None
        if shorter.tokens > room:
            raise ValueError(
                f"cut returned an item of {shorter.tokens:,} tokens for a limit of {room:,} in section "
                f"{brief(allocation.section)}; a cut must stay within its limit; check its counter and marker"
            )
        return shorter

    def part_no_pair(self) -> None:
        """Drop what is left of a group of which another section dropped a part."""
        group = self.columns.group
        gone = (self.reasons != FITS) & (group >= 0)
        if not gone.any():
            return
        broken = np.isin(group, np.unique(group[gone])) & (self.reasons == FITS)
        self._refuse_required(np.flatnonzero(broken))
        self.kept[broken], self.reasons[broken] = 0, PAIR

    def _refuse_required(self, broken: Ints) -> None:
        required = {a.section for a in self.budget.allocations if a.required}
        parted = sorted({self.columns.items[i].section for i in broken} & required)
        if parted:
            raise ValueError(
                f"items of the required section {brief(parted[0])} are grouped with items that were dropped; "
                "a group stays or goes together; make both sections required, or the roles put both into one"
            )


def _reasons(allocation: Allocation, units: Units, limit: int, cap: int | None) -> Ints:
    best = len(units.tokens) if allocation.limit_items is None else allocation.limit_items
    reasons = np.full(len(units.tokens), BEYOND_BEST, dtype=np.int64)
    reasons[:best] = FITS
    if cap is not None:
        _let_go(reasons, OVER_CAP, units, cap, allocation.overflow, allocation.fill)
    if not allocation.required and (cap is None or limit < cap):
        _let_go(reasons, WINDOW_FULL, units, limit, allocation.when_full, allocation.fill)
    return reasons


def _let_go(reasons: Ints, reason: int, units: Units, limit: int, overflow: Overflow, how: Fill) -> None:
    if units.total <= limit:
        return  # all of them fit, so any of them do
    standing = reasons == FITS
    if not standing.all():
        units = Units(units.tokens[standing], units.scores[standing], units.unit)
    stays = select(units, limit, how) if overflow == "truncate" else np.full(len(units.tokens), units.total <= limit)
    reasons[np.flatnonzero(standing)[~stays]] = reason


def _drops_whole(allocation: Allocation, total: int, limit: int, cap: int | None) -> bool:
    over_cap = cap is not None and total > cap
    wanted = total if cap is None else min(total, cap)
    return (over_cap and allocation.overflow == "drop") or (wanted > limit and allocation.when_full == "drop")


def allocate_in_order(
    budget: Budget,
    demand: Mapping[str, Any],
    take: Callable[[Allocation, Any, Any, Any], Any],
    required_cap: Callable[[Allocation, Any], Any] = lambda allocation, cap: cap,
    floor_of: Callable[[Allocation, int], Any] = lambda allocation, floor: floor,
    least: Callable[[Any, Any], Any] = min,
    most: Callable[[Any, Any], Any] = max,
) -> Iterator[tuple[Allocation, Any, Any]]:
    """Ask every section once; numbers may be int or arrays, with `least` and `most` to match.

    A generator of (allocation, limit, granted): what is granted lowers the room before the next is asked.
    `required_cap` and `floor_of` say what a cap and a floor come to where a section is made of whole items.
    """
    room: Any = budget.window - budget.reserved
    pool: Any = max(0, budget.unclaimed)
    wanted = {s: demand[s] if cap is None else least(demand[s], cap) for s, cap in budget.caps.items()}
    floors = [(a, budget.floors[a.section]) for a in budget.allocations]
    promised = {a.section: least(floor_of(a, floor), wanted[a.section]) if floor else 0 for a, floor in floors}
    weighted = [a for a in budget.asked if a.weight]
    waiting: Any = sum(promised.values())
    waiting_uncapped: Any = sum(promised[s] for s, cap in budget.caps.items() if cap is None)
    for allocation in budget.asked:
        section = allocation.section
        cap, held = budget.caps[section], budget.held.get(section, 0)
        uncapped = cap is None
        waiting = waiting - promised[section]
        limit = room - waiting + held
        if uncapped and budget.pool != "open":
            waiting_uncapped = waiting_uncapped - promised[section]
            limit = least(limit, pool - (waiting_uncapped if budget.pool == "together" else 0))
        if allocation.weight:
            weighted.remove(allocation)
            others = [(a.weight, most(wanted[a.section] - promised[a.section], 0)) for a in weighted]
            own = promised[section] + held
            limit = own + by_weight(limit - own, allocation.weight, others)
        limit = most(limit, promised[section])
        if allocation.required:
            limit = most(limit, demand[section])
            if cap is not None and not allocation.is_off:
                cap = most(cap, demand[section]) if allocation.stands_whole else required_cap(allocation, cap)
        limit = most(limit if cap is None else least(limit, cap), 0)
        granted = take(allocation, limit, cap, demand[section])
        room = room - most(granted - held, 0)
        if uncapped and budget.pool == "together":
            pool = pool - most(granted - held, 0)
        yield allocation, limit, granted


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


class _Columns:
    """Counted items as columns, all made at once."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)
        self.tokens: Ints = np.array([item.tokens for item in self.items], np.int64)
        self.scores: Floats = np.array([item.score for item in self.items], np.float64)
        codes = {name: code for code, name in enumerate(dict.fromkeys(item.section for item in self.items))}
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
        """Return where the items of some sections stand."""
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
        if keep == "best":
            order = self._best_first(rows, unit, count, dict(zip(sections, importance, strict=True)))
        else:
            order = np.arange(count)[:: -1 if keep == "newest" else 1]
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        return Units(tokens[order], scores[order], place[unit])

    def _best_first(self, rows: Ints, unit: Ints, count: int, importance: dict[str, int]) -> Ints:
        of_section = np.array([importance.get(name, 0) for name in self.sections], dtype=np.float64)
        weight = of_section[self.section[rows]]
        if self._importance is not None:
            weight = np.where(np.isnan(self._importance[rows]), weight, self._importance[rows])
        top_weight, top_score = weight, self.scores[rows]
        if count < len(rows):
            top_weight, top_score = np.full(count, -np.inf), np.full(count, -np.inf)
            np.maximum.at(top_weight, unit, weight)
            np.maximum.at(top_score, unit, self.scores[rows])
        order: Ints = np.lexsort((-top_score, -top_weight))
        return order


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
