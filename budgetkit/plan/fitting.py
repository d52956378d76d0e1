"""Plans of whole items, with a reason for each item's outcome.

Sections are allocated one by one, and `fit` chooses the items that each section keeps. There are two main reasons to
drop an item: the section is over its cap, so a higher cap would keep the item, or the window is full, so a larger
window would keep it.

An example shows the state during the allocation. A window of 100 tokens has the sections system (with a cap of 20) and
history (which keeps the newest items first). The system item has 15 tokens; the history items have 50, 40 and 30. The
system section is allocated first, then the history with a limit of 85:

    outcomes["system"]    units [15]           reasons [FITS]                        granted 15
    outcomes["history"]   units [30, 40, 50]   reasons [FITS, FITS, WINDOW_FULL]     granted 70

A unit is an item or a group of items. Units are in the order in which the section keeps them, here from the newest to
the oldest. At the end the reasons are sorted into the order of the items, with one decision per item: 15 kept, 50
dropped (window full), 40 kept, 30 kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, Fill, Overflow, check_all
from budgetkit.budget.amounts import MOST_TOKENS, check_tokens
from budgetkit.budget.errors import wrong_kind, wrong_type
from budgetkit.budget.quoting import brief
from budgetkit.plan.allocating import Sections, allocate_in_order, with_undeclared
from budgetkit.plan.decisions import (
    BEYOND_BEST,
    FITS,
    OVER_CAP,
    PAIR,
    POOL_FULL,
    UNCUT,
    WINDOW_FULL,
    Decisions,
    Reasons,
    grants_of,
    reason_when_full,
)
from budgetkit.plan.items import Ints, Item, Items, Units, select
from budgetkit.plan.plan import Plan, raise_if_overrun

Cut = Callable[[Item, int, Allocation], Item | None]


def allocate(budget: Budget, demand: Mapping[str, int]) -> Plan:
    """Grant tokens to sections that can be cut anywhere.

    Parameters
    ----------
    budget : Budget
        The window, its reserves and its sections.
    demand : mapping of str to int
        The demand of each section, in tokens. Sections not listed have no demand.

    Returns
    -------
    Plan
        A plan with one grant per section.

    Raises
    ------
    LookupError
        If a section is not declared and the budget has ``undeclared="error"``.
    ValueError
        If a demand is negative, or the window overflows with ``deficit="raise"``.

    Examples
    --------
    >>> import budgetkit as bk
    >>> sections = [bk.Allocation("system", required=True), bk.Allocation("history")]
    >>> budget = bk.Budget(1000, [bk.Reserve("output", 200)], sections)
    >>> bk.allocate(budget, {"system": 300, "history": 900})
    Plan(system=300/300, history=500/900, free=0, reserved=200, window=1000)
    """
    if type(demand) is not dict:
        check_all("demand", [demand], Mapping)  # type: ignore[type-abstract]
    budget = with_undeclared(budget, demand)
    demands = {s: _tokens(s, demand.get(s, 0)) for s in budget.sections}
    steps = allocate_in_order(budget, demands, Sections())
    return raise_if_overrun(Plan(budget, grants_of(budget, demands, steps), replan=allocate))


def fit(budget: Budget, items: Iterable[Item] | Items, cut: Cut | None = None) -> Plan:
    """Choose the items to keep, with a reason for each decision.

    Parameters
    ----------
    budget : Budget
        The window, its reserves and its sections.
    items : iterable of Item, or Items
        The items to fit, oldest first within a section.
    cut : callable, optional
        A function of an item, a limit and an allocation. It returns the item shortened to at most `limit` tokens, or
        None if nothing of the item remains. In a section of granularity "line" or "token", the function is called for
        the first item that does not fit. `budgetkit.truncation.cutter` returns such a function for texts.

    Returns
    -------
    Plan
        A plan with one grant per section and one decision per item.

    Raises
    ------
    LookupError
        If a section is not declared and the budget has ``undeclared="error"``.
    ValueError
        If the window overflows with ``deficit="raise"``, or `cut` returns more than its limit.

    Examples
    --------
    Four passages compete for 2,000 tokens; `fill` decides about the last passage.

    >>> items = [Item("retrieval", t, s) for t, s in [(800, .95), (700, .85), (600, .7), (400, .6)]]
    >>> budget = Budget(4_000, (), [Allocation("retrieval", 2_000, keep="best")])
    >>> fit(budget, items)["retrieval"].granted
    1500
    >>> fit(budget.assign(retrieval={"fill": "skip"}), items)["retrieval"].granted
    1900
    """
    if cut is not None and not callable(cut):
        raise TypeError(wrong_type("cut", cut, "a function of an item, a limit and an allocation"))
    columns = items if isinstance(items, Items) else Items(items)
    role_tables = (table for table in columns.roles)  # read only where a section is unknown
    budget = with_undeclared(budget, columns.demand, role_tables)
    demands = {section: columns.demand.get(section, 0) for section in budget.sections}

    # Allocate each section once; the choice records the outcome of its units.
    choice = _Choice(budget, columns, cut)
    steps = allocate_in_order(budget, demands, choice)
    grants = grants_of(budget, demands, steps)

    # A call is dropped with its result, even across sections.
    if columns.is_grouped and choice.drop_orphans():
        grants = tuple([replace(grant, granted=choice.granted(grant.section)) for grant in grants])

    # A plan without items is made again from its demands (`Plan.contents`).
    replan = partial(fit, cut=cut) if len(columns) else allocate
    plan = Plan(budget, grants, Decisions(columns, choice.item_columns, choice.cuts), replan)
    # Only after all allocations is it known whether the pool or the window was full.
    if budget.pool != "open":
        choice.settle(plan.free)
    return raise_if_overrun(plan)


@dataclass(slots=True)
class _Outcome:
    """The outcome of all units in one section or in the pool."""

    lines: tuple[Allocation, ...]  # of the sections whose units these are
    units: Units
    reasons: bytearray  # why each unit is dropped, in the units' order, or FITS (0) if it is kept
    granted: int  # tokens of the units that stay


class _Choice(Sections):
    """The items chosen by each section during the allocation.

    The reason for each dropped unit is recorded during the allocation. Columns with one number per item are built from
    these reasons on first access.
    """

    def __init__(self, budget: Budget, columns: Items, cut: Cut | None) -> None:
        self.budget = budget
        self.columns = columns
        self.cut = cut
        self.outcomes: dict[str, _Outcome] = {}  # by section, once it is allocated
        self.cuts: dict[int, Item] = {}  # the shortened item, by the position of the original item
        self.pool: tuple[Allocation, ...] = ()
        if budget.competes:
            self.pool = tuple(a for a in budget.asked if a.cap is None and not a.required)
        # Positions of items that are dropped because other items of their group were.
        self.orphans: Ints | list[int] = []
        self._item_columns: tuple[Ints, Reasons] | None = None

    def item_columns(self) -> tuple[Ints, Reasons]:
        """Return the kept tokens and the reason of each item.

        The two columns are computed once, after the last decision.
        """
        if self._item_columns is None:
            self._item_columns = self._columns()
        return self._item_columns

    def _columns(self) -> tuple[Ints, Reasons]:
        # Each item has the reason of its unit.
        reasons = np.zeros(len(self.columns), np.int8)
        for outcome in self.outcomes.values():
            of_units = np.frombuffer(outcome.reasons, np.int8)
            reasons[self._rows(outcome)] = of_units[outcome.units.unit]

        # An item keeps all of its tokens or none, unless it was cut or its group is gone.
        kept_tokens = np.where(reasons == FITS, self.columns.tokens, 0)
        kept_tokens[[*self.cuts]] = [shorter.tokens for shorter in self.cuts.values()]
        kept_tokens[self.orphans] = 0
        reasons[self.orphans] = PAIR
        return kept_tokens, reasons

    def _rows(self, outcome: _Outcome) -> Ints:
        """Return the positions of an outcome's items."""
        return self.columns.rows(*[line.section for line in outcome.lines])

    def granted(self, section: str) -> int:
        """Return the kept tokens of one section."""
        outcome = self.outcomes.get(section)
        if outcome is None:
            return 0
        if len(outcome.lines) == 1 and not len(self.orphans):
            return outcome.granted
        # Sections of the pool share one outcome, and orphans are in no unit's sum: add up the items.
        return int(self._columns()[0][self.columns.rows(section)].sum())

    def settle(self, free: int) -> None:
        """Correct the reason "window full" where only the pool was full.

        Whether the window was full is known only after all allocations.
        """
        for outcome in self.outcomes.values():
            if reason_when_full(self.budget, outcome.lines[0], free) != WINDOW_FULL:
                outcome.reasons = outcome.reasons.replace(bytes([WINDOW_FULL]), bytes([POOL_FULL]))

    def _units(self, lines: tuple[Allocation, ...]) -> Units:
        """Return the units of sections, ordered by the first section's `keep`."""
        sections = tuple([line.section for line in lines])
        importance = tuple([line.importance for line in lines])
        keep = lines[0].keep
        # By default, items that share the pool compete by importance and score.
        if lines is self.pool and keep == "first":
            keep = "best"
        return self.columns.units(sections, keep, importance, lines[0].fill == "knapsack")

    def floor_of(self, allocation: Allocation, floor: int) -> int:
        """Return the tokens of the whole units guaranteed by a floor."""
        return self._units((allocation,)).reaching(floor, allocation.limit_items)

    def required_cap(self, allocation: Allocation, cap: int) -> int:
        """Return a required section's cap, raised if its first item needs more.

        The first item of a required section is never dropped. If that item cannot be cut to the cap, the item's size
        replaces the cap.
        """
        units = self._units((allocation,))
        for place, tokens in enumerate(units.tokens[: allocation.limit_items]):
            if tokens:
                members = self.columns.rows(allocation.section)[units.unit == place]
                is_cut = tokens <= cap or self._shorter(allocation, members, cap) is not None
                return cap if is_cut else tokens
        return cap

    def take(self, allocation: Allocation, limit: int, cap: int | None, _demand: int) -> int:
        """Return the tokens that a section takes within its limit.

        The demand is not needed, since it is the sum of the section's items.
        """
        section = allocation.section
        if section not in self.outcomes and section in self.columns.demand:
            lines = self.pool if allocation in self.pool else (allocation,)
            self._choose(lines, limit, cap)
        return self.granted(section)

    def _choose(self, lines: tuple[Allocation, ...], limit: int, cap: int | None) -> None:
        """Choose units within a limit, and cut the next unit if allowed."""
        allocation = lines[0]  # its rules apply to all lines
        units = self._units(lines)
        reasons, granted = _reasons(allocation, units, limit, cap)
        outcome = _Outcome(lines, units, reasons, granted)
        for line in lines:
            self.outcomes[line.section] = outcome

        # Remaining tokens go to a part of the first dropped unit, if units may be cut inside and the section
        # is not dropped whole.
        if allocation.granularity == "item" or limit <= granted:
            return
        total = units.sums[len(reasons) - reasons.count(BEYOND_BEST)]
        if cap is not None and total > cap:
            if allocation.overflow == "drop":
                return
            total = cap
        if total <= limit or allocation.when_full != "drop":
            self._cut_first(allocation, outcome, limit - granted)

    def _cut_first(self, allocation: Allocation, outcome: _Outcome, remaining: int) -> None:
        """Shorten the first dropped unit to the tokens left.

        A single item that is dropped only because no cut function was given gets the reason `UNCUT`.
        """
        gone = [n for n, why in enumerate(outcome.reasons) if why not in (FITS, BEYOND_BEST)]
        if not gone:
            return
        place = gone[0]
        members = self._rows(outcome)[outcome.units.unit == place]
        is_alone = self.columns.group[members[0]] < 0
        if self.cut is None and is_alone and not allocation.required:
            outcome.reasons[place] = UNCUT
        shorter = self._shorter(allocation, members, remaining)
        if shorter is not None:
            self.cuts[int(members[0])] = shorter
            outcome.granted += shorter.tokens

    def _shorter(self, allocation: Allocation, members: Ints, remaining: int) -> Item | None:
        """Return a shortened item, or None if it cannot be cut.

        Groups are kept or dropped as a whole, even across sections, and never cut. If there is no cut function, an item
        of a required section is cut by its number of tokens only and loses its payload.
        """
        if allocation.granularity == "item" or self.columns.group[members[0]] >= 0:
            return None
        item = self.columns.items[int(members[0])]
        if self.cut is not None:
            shorter = self.cut(item, remaining, allocation)
        elif allocation.required and getattr(item.payload, "role", "") != "tools":
            # As in `allocate`, only the number is cut, so that no text is left to send. Tool schemas cannot be cut at
            # all.
            shorter = replace(item, tokens=min(item.tokens, remaining), payload=None)
        else:
            return None
        if shorter is not None and not isinstance(shorter, Item):
            raise TypeError(wrong_kind("result of cut", shorter, "an Item or None"))
        if shorter is None or shorter.tokens == 0:
            return None
        if shorter.tokens > remaining:
            raise ValueError(
                f"cut returned an item of {shorter.tokens:,} tokens for a limit of {remaining:,} in section "
                f"{brief(allocation.section)}. Return an item within the limit; check the counter and the marker."
            )
        return shorter

    def drop_orphans(self) -> bool:
        """Drop the remaining items of groups that have lost an item.

        Return True if any item was dropped.

        For example, if a call in "history" is dropped, its result in "tools" is an orphan and is dropped, too. An
        orphan in a required section is an error.
        """
        if not self.columns.has_split_groups:
            return False
        group = self.columns.group
        _, reasons = self._columns()
        is_gone = (reasons != FITS) & (group >= 0)
        broken_groups = np.unique(group[is_gone])
        orphans = np.flatnonzero(np.isin(group, broken_groups) & (reasons == FITS))
        required = {a.section for a in self.budget.allocations if a.required}
        losers = sorted({self.columns.items[i].section for i in orphans} & required)
        if losers:
            raise ValueError(
                f"Items of the required section {brief(losers[0])} belong to a group whose other items were dropped. "
                "Make both sections required, or assign both roles to one section."
            )
        self.orphans = orphans
        return len(orphans) > 0


def _reasons(
    allocation: Allocation, units: Units, limit: int, cap: int | None
) -> tuple[bytearray, int]:
    """Return a reason for each unit, and the kept units' tokens."""
    reasons = bytearray(len(units.tokens))  # FITS is 0
    granted = units.total

    # Apply the limit of items, then the cap, then the limit of the section.
    most_units = allocation.limit_items
    if most_units is not None and most_units < len(reasons):
        reasons[most_units:] = bytes([BEYOND_BEST]) * (len(reasons) - most_units)
        granted = units.sums[most_units]
    if cap is not None and granted > cap:
        granted = _drop_to(reasons, OVER_CAP, units, cap, allocation.overflow, allocation.fill)
        # If the first dropped unit begins within the remaining window and ends beyond it, no higher cap keeps it.
        if granted < limit < cap and allocation.overflow == "truncate":
            reasons[reasons.index(OVER_CAP)] = WINDOW_FULL
    if granted > limit and not allocation.required:
        granted = _drop_to(
            reasons, WINDOW_FULL, units, limit, allocation.when_full, allocation.fill
        )
    return reasons, granted


def _drop_to(
    reasons: bytearray, reason: int, units: Units, limit: int, overflow: Overflow, fill: Fill
) -> int:
    """Drop units until the remaining units fit, and return their tokens.

    With `overflow` "drop", all units are dropped.
    """
    # Either the whole section is dropped, or a number of its first units is kept.
    if overflow == "drop" or fill == "prefix":
        number_kept = 0 if overflow == "drop" else units.fitting(limit)
        reasons[number_kept:] = reasons[number_kept:].replace(bytes([FITS]), bytes([reason]))
        return units.sums[number_kept]

    # Otherwise units are chosen one by one from the units that earlier limits kept; `places` has their positions.
    places: Sequence[int] = range(len(reasons))
    if reasons.count(FITS) < len(reasons):
        places = [place for place in places if reasons[place] == FITS]
        scores = units.scores and [units.scores[place] for place in places]
        units = Units([units.tokens[place] for place in places], scores, range(len(places)))

    # Keep the first units, and the listed later units.
    number_kept, later_units = select(units, limit, fill)
    for place in places[number_kept:]:
        reasons[place] = reason
    for unit in later_units:
        reasons[places[unit]] = FITS
    return units.sums[number_kept] + sum([units.tokens[unit] for unit in later_units])


def _tokens(section: str, value: object) -> int:
    """Check and return a section's demand."""
    if type(value) is int and 0 <= value <= MOST_TOKENS:
        return value
    return check_tokens(f"demand of {brief(section)}", value)
