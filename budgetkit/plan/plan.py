"""Plan: grants for sections, decisions about items, and the tokens left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from warnings import warn

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import Budget
from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.html import POOL, block
from budgetkit.budget.quoting import brief, printable, quoted
from budgetkit.budget.validation import OUTPUT, unknown_section
from budgetkit.plan.advice import misspelt, warnings_of
from budgetkit.plan.decisions import (
    NO_DECISIONS,
    OVER_CAP,
    POOL_FULL,
    UNCUT,
    WINDOW_FULL,
    Decisions,
    Grant,
    Loss,
    losses_of,
)
from budgetkit.plan.items import Item
from budgetkit.plan.reasons import Replan, Why, explain


def free_tokens(budget: Budget, columns: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the window's free tokens in each request.

    The number is negative if the grants exceed the window.
    """
    held_tokens = budget.held
    free: Any = budget.window - budget.reserved
    for section, column in columns.items():
        free = free - np.maximum(column["granted"] - held_tokens.get(section, 0), 0)
    return free


def remainder(budget: Budget, columns: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the tokens left for the section that is the budget's remainder.

    The result is an integer if the columns hold integers, or an array if they hold arrays.

    Examples
    --------
    The system prompt leaves only 100 tokens, although the history has a floor of 400.

    >>> from budgetkit.budget.allocation import Allocation
    >>> sections = [Allocation("system", required=True), Allocation("history", floor=400)]
    >>> system = {"demand": 900, "limit": 900, "granted": 900}
    >>> history = {"demand": 600, "limit": 400, "granted": 400}
    >>> int(remainder(Budget(1_000, (), sections, remainder="history"), {"system": system, "history": history}))
    100
    """
    remainder_section = budget.remainder
    if remainder_section is None:
        raise ValueError(
            f"The budget has no remainder. Pass remainder= to Budget, one of: {quoted(budget.sections)}."
        )
    sections = [allocation.section for allocation in budget.asked]
    place = sections.index(remainder_section)
    remaining = free_tokens(budget, {section: columns[section] for section in sections[:place]})
    remaining = remaining + budget.held.get(remainder_section, 0)
    for section in sections[place + 1 :]:
        remaining = remaining - np.minimum(budget.floors[section], columns[section]["demand"])
    left = np.minimum(columns[remainder_section]["limit"], remaining)
    if budget.deficit == "clamp":
        return np.maximum(left, 0)
    return left


_DROPPED = {
    "dropped_by_cap": OVER_CAP,
    "dropped_by_window": WINDOW_FULL,
    "dropped_by_pool": POOL_FULL,
    "uncut": UNCUT,
}


@dataclass(frozen=True, eq=False)
class Plan:
    """A budget's grants, one per section, and decisions, one per item.

    Parameters
    ----------
    budget : Budget
        The budget of the plan.
    grants : tuple of Grant
        One grant per section, in the order of the prompt.
    decisions : Decisions
        One decision per item, or none for a plan of plain numbers.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(1000, (), [bk.Allocation("system", 300), bk.Allocation("history")])
    >>> plan = bk.allocate(budget, {"history": 2_000})
    >>> plan["history"].granted, plan.free
    (1000, 0)
    """

    budget: Budget
    grants: tuple[Grant, ...]
    decisions: Decisions = NO_DECISIONS
    #: Function for planning again in the same way.
    replan: Replan | None = field(default=None, repr=False)

    def __getitem__(self, section: str) -> Grant:
        for grant in self.grants:
            if isinstance(section, str) and grant.section == section:
                return grant
        raise unknown_section([section], self.budget.sections)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        same = self.budget == other.budget and self.grants == other.grants
        return same and list(self.decisions) == list(other.decisions)

    __hash__ = None  # type: ignore[assignment]  # as every value that holds a mapping

    @property
    def used(self) -> int:
        """Tokens granted to all sections."""
        return sum([g.granted for g in self.grants])

    @property
    def reserved(self) -> int:
        """Reserved tokens, without those that the served sections have used."""
        held_tokens = self.budget.held
        if held_tokens:
            used = sum([min(g.granted, held_tokens.get(g.section, 0)) for g in self.grants])
        else:
            used = 0
        return self.budget.reserved - used

    @property
    def free(self) -> int:
        """Tokens left in the window; negative if the grants overflow it."""
        return self.budget.window - self.used - self.reserved

    @property
    def remainder(self) -> int:
        """Tokens left for the budget's remainder, regardless of its demand.

        If the number is negative, that many tokens are missing.

        Raises
        ------
        ValueError
            If the budget has no remainder.
        """
        return int(remainder(self.budget, {g.section: vars(g) for g in self.grants}))

    @property
    def is_constrained(self) -> bool:
        """True if the remainder has fewer tokens than the budget's `constrained_below`."""
        threshold = self.budget.constrained_below
        return threshold is not None and self.remainder < threshold

    @property
    def shared_pool_use(self) -> int:
        """Tokens granted to sections without a cap."""
        return sum(g.granted for g in self.grants if self.budget.caps[g.section] is None)

    @property
    def diagnostics(self) -> dict[str, int | dict[str, int]]:
        """Token use and overflow, by section.

        The fields are named as in anchor's "Token Budget Management" (document 004). ``token_usage_by_source`` has the
        tokens of each section with a grant, and ``shared_pool_usage`` the tokens of all sections without a cap.
        ``budget_overflow_by_source`` is the number of items dropped or cut because of their section's cap, and
        ``window_overflow_by_source`` the number lost because the window or the pool was full. For a plan of plain
        numbers, these two fields count tokens instead of items.

        Examples
        --------
        >>> from budgetkit.budget import Allocation, Budget
        >>> from budgetkit.plan import allocate
        >>> budget = Budget(1_000, (), [Allocation("retrieval", 300), Allocation("memory")])
        >>> allocate(budget, {"retrieval": 500, "memory": 100}).diagnostics["budget_overflow_by_source"]
        {'retrieval': 200}
        """
        overflow: dict[bool, dict[str, int]] = {True: {}, False: {}}
        for loss in self.losses:
            by_section = overflow[loss.reason == OVER_CAP]
            lost = loss.items + loss.cut if len(self.decisions) else loss.tokens
            if lost:
                section = loss.allocation.section
                by_section[section] = by_section.get(section, 0) + lost
        return {
            "token_usage_by_source": {
                grant.section: grant.granted for grant in self.grants if grant.granted
            },
            "shared_pool_usage": self.shared_pool_use,
            "budget_overflow_by_source": overflow[True],
            "window_overflow_by_source": overflow[False],
        }

    @property
    def contents(self) -> Any:
        """The planned items or, in a plan without items, each section's demand.

        Pass the result to `replan` to plan again.
        """
        if len(self.decisions):
            return self.decisions.columns
        return {grant.section: grant.demand for grant in self.grants}

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about losses and conflicts, each with a fix.

        Losses are sorted by tokens, largest first.
        """
        return tuple(warnings_of(self))

    @cached_property
    def losses(self) -> list[Loss]:
        """Losses by section and reason, largest first."""
        return losses_of(self.budget, self.grants, self.decisions, self.free)

    def why(self, of: int | Item | str) -> Why:
        """Explain why an item was kept or lost, and suggest changes.

        Parameters
        ----------
        of : int, Item or str
            The item's position among `decisions`, the item itself, or a section's name.

        Returns
        -------
        Why
            The reasons, and the smallest changes that would keep the item or section, each verified by planning again.

        Raises
        ------
        LookupError
            If the plan has no such item or section.
        ValueError
            If the plan was loaded from a saved state, so that it cannot be planned again.

        Examples
        --------
        >>> import budgetkit as bk
        >>> budget = bk.Budget(1_000, [bk.Reserve("output", 200)], [bk.Allocation("history")])
        >>> print(bk.allocate(budget, {"history": 900}).why("history"))
        history asked for 900 tokens and got 800 of a limit of 800.
        Its limit is the rest of the 800 usable tokens; earlier sections took none.
        To keep it, make one of these changes:
        - Lower the reserve output from 200 to 100 tokens.
        - Enlarge the window from 1,000 to 1,100 tokens.
        """
        if self.replan is None:
            raise ValueError(
                "A plan from a saved state cannot be explained. Fit its items again, and use the new plan."
            )
        return explain(self, of, self.replan)

    def frame(self) -> pd.DataFrame:
        """Return a frame with the result of each section.

        Returns
        -------
        DataFrame
            A frame with one row per section. The columns cap (Int64, missing for an uncapped section), demand, limit,
            granted and cut are in tokens. The columns dropped_by_cap, dropped_by_window, dropped_by_pool and uncut are
            numbers of items, which are 0 in a plan of plain numbers. The column section has the name of the section.

        Examples
        --------
        >>> import budgetkit as bk
        >>> frame = bk.allocate(bk.Budget(100, (), [bk.Allocation("system", 30)]), {"system": 40}).frame()
        >>> frame[["section", "cap", "demand", "limit", "granted", "cut", "dropped_by_cap"]]
          section  cap  demand  limit  granted  cut  dropped_by_cap
        0  system   30      40     30       30   10               0
        """
        rows = [
            (g.section, self.budget.caps[g.section], g.demand, g.limit, g.granted, g.cut)
            for g in self.grants
        ]
        frame = pd.DataFrame(rows, columns=["section", "cap", "demand", "limit", "granted", "cut"])
        for name, reason in _DROPPED.items():
            frame[name] = [self.decisions.dropped(g.section, reason) for g in self.grants]
        return frame.astype({"cap": "Int64"})

    def __repr__(self) -> str:
        grants = ", ".join(f"{g.section}={g.granted}/{g.demand}" for g in self.grants)
        return printable(
            f"Plan({grants}, free={self.free}, reserved={self.reserved}, window={self.budget.window})"
        )

    def _repr_html_(self) -> str:
        rows = [(g.section, g.demand, g.limit, g.granted, g.cut or "") for g in self.grants]
        rest = f"{self.free:,} free" if self.free >= 0 else f"{-self.free:,} too many"
        return block(
            f"Plan of {self.budget.window:,} tokens: {self.used:,} used, {self.reserved:,} reserved, {rest}",
            [
                *((g.section, g.granted) for g in self.grants),
                (OUTPUT, self.reserved),
                (POOL, self.free),
            ],
            [("section", "demand", "limit", "granted", "cut"), *rows],
            self.warnings,
        )


def plan_of(budget: Budget, grants: Sequence[Grant], decisions: Decisions) -> Plan:
    """Build a plan from saved parts, rejecting impossible grants.

    >>> plan_of(Budget(100), [], Plan(Budget(100), ()).decisions).free
    100
    """
    if [grant.section for grant in grants] != [*budget.sections]:
        raise ValueError(
            f"The grants ({quoted(grant.section for grant in grants)}) do not match the sections "
            f"({quoted(budget.sections)}). "
            "Save the plan again."
        )
    for grant in grants:
        demand, limit, granted = (
            check_tokens(n, getattr(grant, n)) for n in ("demand", "limit", "granted")
        )
        if granted > min(demand, limit):
            raise ValueError(
                f"The grant of {brief(grant.section)} ({granted:,}) exceeds its demand ({demand:,}) or limit "
                f"({limit:,}). "
                "Save the plan again."
            )
        rows = decisions.columns.rows(grant.section)
        sums = int(decisions.columns.tokens[rows].sum()), int(decisions.kept[rows].sum())
        if len(decisions) and sums != (demand, granted):
            raise ValueError(
                f"The items of {brief(grant.section)} have {sums[0]:,} tokens and keep {sums[1]:,}, but its grant has "
                f"{demand:,} and {granted:,}. Save the plan again."
            )
    return Plan(budget, tuple(grants), decisions)


def raise_if_overrun(plan: Plan) -> Plan:
    """Return a plan, or raise an error if the plan overflows.

    An overflow is an error only with ``deficit="raise"``. Sections with misspelled names cause a warning.

    Examples
    --------
    >>> raise_if_overrun(Plan(Budget(100), ())).free
    100
    """
    if plan.budget.deficit == "raise" and plan.free < 0:
        raise ValueError(plan.warnings[0])
    for notice in misspelt(plan.budget, plan.grants):
        warn(notice, stacklevel=3)
    return plan
