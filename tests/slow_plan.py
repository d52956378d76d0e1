"""Planning as it was before it was made fast: the twin that the fast one is compared with.

Every column is made at once, every plan makes its units anew, and nothing is left for later. It is slow and plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from budgetkit import Allocation, Budget, Item
from budgetkit.budget.allocation import Fill, Overflow
from budgetkit.budget.errors import wrong_type
from budgetkit.budget.quoting import brief
from budgetkit.plan.allocating import by_weight, with_undeclared
from budgetkit.plan.decisions import (
    BEYOND_BEST,
    FITS,
    OVER_CAP,
    PAIR,
    UNCUT,
    WINDOW_FULL,
    Decisions,
    Grant,
    reason_when_full,
)
from budgetkit.plan.fitting import Cut
from budgetkit.plan.items import Items
from budgetkit.plan.plan import Plan, raise_if_overrun
from tests.slow_columns import Columns, Ints, Units, select


def slow_fit(budget: Budget, items: Iterable[Item] | Items, cut: Cut | None = None) -> Plan:
    """Choose which whole items stay."""
    columns = Columns(items.items if isinstance(items, Items) else items)
    demand = columns.demand
    budget = with_undeclared(budget, demand, columns.roles)
    choice = _Choice(budget, columns, cut)
    asked = {s: demand.get(s, 0) for s in budget.sections}
    limits = {}
    for allocation, limit, _ in allocate_in_order(
        budget, asked, choice.take, choice.required_cap, choice.floor_of
    ):
        limits[allocation.section] = limit
    choice.part_no_pair()
    grants = [
        Grant(s, asked[s], limits[s], int(choice.kept[columns.rows(s)].sum()))
        for s in budget.sections
    ]
    decisions = Decisions(Items(columns.items), lambda: (choice.kept, choice.reasons), choice.cuts)
    plan = Plan(budget, tuple(grants), decisions, partial(slow_fit, cut=cut))
    for (
        allocation
    ) in budget.allocations:  # only now is it known whether the window was full, or the pool alone
        rows = columns.rows(allocation.section)
        rows = rows[choice.reasons[rows] == WINDOW_FULL]
        choice.reasons[rows] = reason_when_full(budget, allocation, plan.free)
    return raise_if_overrun(plan)


class _Choice:
    """The answers of sections made of items, collected as columns while the walk asks."""

    def __init__(self, budget: Budget, columns: Columns, cut: Cut | None) -> None:
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
        if (
            not len(filled)
            or units.tokens[filled[0]] <= cap
            or self._can_cut(allocation, rows, units, filled[0], cap)
        ):
            return cap
        return int(units.tokens[filled[0]])

    def _can_cut(
        self, allocation: Allocation, rows: Ints, units: Units, unit: int, room: int
    ) -> bool:
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
        keep = "best" if together is self.pool and first.keep == "first" else first.keep
        units = self.columns.units(sections, keep, tuple(a.importance for a in together))
        reasons = _reasons(first, units, limit, cap)
        self.reasons[rows] = reasons[units.unit]
        stays = self.reasons[rows] == FITS
        self.kept[rows] = np.where(stays, self.columns.tokens[rows], 0)
        if first.granularity != "item":
            room = limit - int(units.tokens[reasons == FITS].sum())
            total = int(units.tokens[reasons != BEYOND_BEST].sum())
            if room > 0 and not _drops_whole(first, total, limit, cap):
                self._cut_first(first, rows, units, reasons, room)

    def _cut_first(
        self, allocation: Allocation, rows: Ints, units: Units, reasons: Ints, room: int
    ) -> None:
        dropped = np.flatnonzero((reasons != FITS) & (reasons != BEYOND_BEST))
        if not len(dropped):
            return
        members = rows[units.unit == dropped[0]]
        is_alone = self.columns.group[members[0]] < 0
        if self.cut is None and is_alone and not allocation.required:
            self.reasons[members] = UNCUT
        shorter = self._shorter(allocation, members, room)
        if shorter is not None:
            i = int(members[0])
            self.cuts[i], self.kept[i] = shorter, shorter.tokens

    def _shorter(self, allocation: Allocation, members: Ints, room: int) -> Item | None:
        # A group stays or goes together, uncut, also where its other members stand in another section.
        if allocation.granularity == "item" or self.columns.group[members[0]] >= 0:
            return None
        item = self.columns.items[int(members[0])]
        if self.cut is None:
            if not allocation.required or getattr(item.payload, "role", "") == "tools":
                return None
            return replace(item, tokens=min(item.tokens, room), payload=None)
        shorter = self.cut(item, room, allocation)
        if shorter is not None and not isinstance(shorter, Item):
            raise TypeError(wrong_type("result of cut", shorter, "an Item or None"))
        if shorter is None or shorter.tokens == 0:
            return None
        if shorter.tokens > room:
            raise ValueError(
                f"cut returned an item of {shorter.tokens:,} tokens for a limit of {room:,} in section "
                f"{brief(allocation.section)}. Return an item within the limit; check the counter and the marker."
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
                f"Items of the required section {brief(parted[0])} belong to a group whose other items were dropped. "
                "Make both sections required, or assign both roles to one section."
            )


def _reasons(allocation: Allocation, units: Units, limit: int, cap: int | None) -> Ints:
    best = len(units.tokens) if allocation.limit_items is None else allocation.limit_items
    reasons = np.full(len(units.tokens), BEYOND_BEST, dtype=np.int64)
    reasons[:best] = FITS
    if cap is not None:
        _let_go(reasons, OVER_CAP, units, cap, allocation.overflow, allocation.fill)
        over = np.flatnonzero(reasons == OVER_CAP)
        fitting = int(units.tokens[reasons == FITS].sum())
        if len(over) and fitting < limit < cap and allocation.overflow == "truncate":
            reasons[over[0]] = WINDOW_FULL
    if not allocation.required and (cap is None or limit < cap):
        _let_go(reasons, WINDOW_FULL, units, limit, allocation.when_full, allocation.fill)
    return reasons


def _let_go(
    reasons: Ints, reason: int, units: Units, limit: int, overflow: Overflow, how: Fill
) -> None:
    if units.total <= limit:
        return  # all of them fit, so any of them do
    standing = reasons == FITS
    if not standing.all():
        units = Units(units.tokens[standing], units.scores[standing], units.unit)
    stays = (
        select(units, limit, how)
        if overflow == "truncate"
        else np.full(len(units.tokens), units.total <= limit)
    )
    reasons[np.flatnonzero(standing)[~stays]] = reason


def _drops_whole(allocation: Allocation, total: int, limit: int, cap: int | None) -> bool:
    over_cap = cap is not None and total > cap
    wanted = total if cap is None else min(total, cap)
    return (over_cap and allocation.overflow == "drop") or (
        wanted > limit and allocation.when_full == "drop"
    )


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
    wanted = {
        s: demand[s] if cap is None else least(demand[s], cap) for s, cap in budget.caps.items()
    }
    floors = [(a, budget.floors[a.section]) for a in budget.allocations]
    promised = {
        a.section: least(floor_of(a, floor), wanted[a.section]) if floor else 0
        for a, floor in floors
    }
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
            others = [
                (a.weight, most(wanted[a.section] - promised[a.section], 0)) for a in weighted
            ]
            own = promised[section] + held
            limit = own + least(limit - own, by_weight(limit - own, allocation.weight, others))
        limit = most(limit, promised[section])
        if allocation.required:
            limit = most(limit, demand[section])
            if cap is not None and not allocation.is_off:
                cap = (
                    most(cap, demand[section])
                    if allocation.stands_whole
                    else required_cap(allocation, cap)
                )
        limit = most(limit if cap is None else least(limit, cap), 0)
        granted = take(allocation, limit, cap, demand[section])
        room = room - most(granted - held, 0)
        if uncapped and budget.pool == "together":
            pool = pool - most(granted - held, 0)
        yield allocation, limit, granted
