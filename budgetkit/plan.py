"""The outcome of a plan: one grant a section, one decision an item, and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, unknown_section
from budgetkit.items import Item
from budgetkit.pruning import Ints, Items
from budgetkit.remainder import remainder

Outcome = Literal["kept", "cut", "dropped"]
FITS, OVER_CAP, WINDOW_FULL, BEYOND_BEST, PAIR = range(5)
REASONS = ("fits", "over its cap", "window full", "beyond the best", "its pair was dropped")


@dataclass(frozen=True, slots=True)
class Grant:
    """What one section asked for and got.

    Parameters
    ----------
    section : str
        Name of the section.
    demand : int
        What it asked for, in tokens.
    limit : int
        What it might have taken when it was asked, in tokens.
    granted : int
        What it took, in tokens.

    Examples
    --------
    >>> Grant("history", 5_000, 3_000, 3_000).cut
    2000
    """

    section: str
    demand: int
    limit: int
    granted: int

    @property
    def cut(self) -> int:
        """Demand less grant, in tokens."""
        return self.demand - self.granted


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one item, and why.

    Parameters
    ----------
    item : Item
        The item; the shorter one where it was cut.
    section : str
        Its section.
    tokens : int
        Its size before, in tokens.
    kept : int
        What stays of it, in tokens.
    outcome : {"kept", "cut", "dropped"}
        What was decided.
    reason : str
        Why.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(100, (), [bk.Allocation("history", 50, keep="newest")])
    >>> bk.fit(budget, [bk.Item("history", 40), bk.Item("history", 30)]).decisions[0].reason
    'over its cap'
    """

    item: Item
    section: str
    tokens: int
    kept: int
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """Decisions as columns; one `Decision` is a view of a row.

    Parameters
    ----------
    columns : Items
        The items that were decided on.
    kept : int64 array, shape (items,)
        What stays of each, in tokens.
    reasons : int8 array, shape (items,)
        Index into `REASONS`.
    cuts : mapping of int to Item
        The shorter items, by position.

    Examples
    --------
    >>> import budgetkit as bk
    >>> len(bk.fit(bk.Budget(100, (), [bk.Allocation("history")]), [bk.Item("history", 40)]).decisions)
    1
    """

    columns: Items
    kept: Ints
    reasons: np.ndarray[Any, np.dtype[np.int8]]
    cuts: Mapping[int, Item] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, i: int) -> Decision:
        before = self.columns.items[i]
        position = range(len(self))[i]
        outcome = self._outcome(position)
        item = self.cuts.get(position, before)
        return Decision(item, before.section, before.tokens, int(self.kept[i]), outcome, REASONS[self.reasons[i]])

    def __iter__(self) -> Iterator[Decision]:
        return (self[i] for i in range(len(self)))

    def _outcome(self, i: int) -> Outcome:
        return "cut" if i in self.cuts else "kept" if self.reasons[i] == FITS else "dropped"

    @property
    def items(self) -> list[Item]:
        """The items that stay, whole or cut, in their order."""
        whole = self.columns.items
        return [self.cuts.get(i, whole[i]) for i in range(len(self)) if i in self.cuts or self.reasons[i] == FITS]

    def dropped(self, section: str, reason: int) -> int:
        """Return how many items of a section were dropped for one reason.

        Parameters
        ----------
        section : str
            Name of the section.
        reason : int
            Index into `REASONS`.

        Returns
        -------
        int
            Number of items; one that was cut is not counted.

        Examples
        --------
        >>> import budgetkit as bk
        >>> budget = bk.Budget(100, (), [bk.Allocation("history", 50, keep="newest")])
        >>> import budgetkit as bk
        >>> plan = bk.fit(budget, [bk.Item("history", 40), bk.Item("history", 30)])
        >>> plan.decisions.dropped("history", OVER_CAP)
        1
        """
        rows = self.columns.rows(section)
        return int((self.reasons[rows] == reason).sum()) - sum(
            1 for i in self.cuts if i in rows and self.reasons[i] == reason
        )

    def frame(self) -> pd.DataFrame:
        """Return one row an item.

        Returns
        -------
        DataFrame
            Columns section, tokens (int64), kept (int64), outcome, reason.

        Examples
        --------
        >>> import budgetkit as bk
        >>> bk.fit(bk.Budget(100, (), [bk.Allocation("history")]), [bk.Item("history", 40)]).decisions.frame()
           section  tokens  kept outcome reason
        0  history      40    40    kept   fits
        """
        return pd.DataFrame(
            {
                "section": [item.section for item in self.columns.items],
                "tokens": self.columns.tokens,
                "kept": self.kept,
                "outcome": [self._outcome(i) for i in range(len(self))],
                "reason": [REASONS[i] for i in self.reasons],
            }
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """The outcome of a walk.

    Parameters
    ----------
    budget : Budget
        What was planned with.
    grants : tuple of Grant
        One a section, in the order of the prompt.
    decisions : Decisions
        One an item; empty for a plan of plain numbers.

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
    decisions: Decisions = field(
        default_factory=lambda: Decisions(Items(()), np.zeros(0, np.int64), np.zeros(0, np.int8))
    )

    def __getitem__(self, section: str) -> Grant:
        for grant in self.grants:
            if grant.section == section:
                return grant
        raise unknown_section([section], self.budget)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        same = self.budget == other.budget and self.grants == other.grants
        return same and list(self.decisions) == list(other.decisions)

    __hash__ = None  # type: ignore[assignment]  # as every value that holds a mapping

    @cached_property
    def used(self) -> int:
        """Tokens granted to all sections."""
        return sum(g.granted for g in self.grants)

    @cached_property
    def reserved(self) -> int:
        """Tokens that reserves claim, less what their own sections took of them."""
        held = self.budget.held
        return self.budget.reserved - sum(min(g.granted, held.get(g.section, 0)) for g in self.grants)

    @property
    def free(self) -> int:
        """Window less used less reserved, in tokens; negative when what is required overruns it."""
        return self.budget.window - self.used - self.reserved

    @property
    def remainder(self) -> int:
        """What is left for the budget's remainder, in tokens, whatever it asks for itself; below 0 what is missing.

        Raises
        ------
        ValueError
            If the budget names no remainder.
        """
        columns = {g.section: {"demand": g.demand, "limit": g.limit, "granted": g.granted} for g in self.grants}
        found: int = remainder(self.budget, columns)
        return found

    @property
    def is_constrained(self) -> bool:
        """Whether the remainder is below the budget's `constrained_below`."""
        threshold = self.budget.constrained_below
        return threshold is not None and self.remainder < threshold

    @property
    def shared_pool_use(self) -> int:
        """Tokens granted to sections without a cap."""
        return sum(g.granted for g in self.grants if self.budget.caps[g.section] is None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what does not fit and how to mend it."""
        found = []
        if self.free < 0:
            needs = ", ".join(f"{g.section} {g.granted:,}" for g in self.grants if g.granted)
            found.append(
                f"The window ({self.budget.window:,}) is overrun by {-self.free:,} tokens: {needs}, "
                f"reserves {self.reserved:,}; lower a reserve or a floor, or choose a larger window."
            )
        if self.budget.unclaimed < 0:
            found.append(
                f"Reserves ({self.budget.reserved:,}) and caps ({self.budget.capped:,}) exceed the window "
                f"({self.budget.window:,}) by {-self.budget.unclaimed:,} tokens; lower a cap or a reserve."
            )
        for grant in self.grants:
            cap = self.budget.caps[grant.section]
            if cap is not None and grant.granted > cap:
                found.append(
                    f"{grant.section} is required and needs {grant.granted:,} tokens, "
                    f"{grant.granted - cap:,} above its cap ({cap:,}); raise the cap, shorten the text, "
                    "or let it be cut (granularity and cut)."
                )
        for allocation in self.budget.allocations:
            lost = self.decisions.dropped(allocation.section, OVER_CAP) if allocation.required else 0
            if lost:
                found.append(
                    f"{allocation.section} is required and loses {lost:,} whole items over its cap "
                    f"({self.budget.caps[allocation.section]:,}); raise the cap, or shorten what stands before them."
                )
        return tuple(found)

    def frame(self) -> pd.DataFrame:
        """Return the diagnostics, one row a section.

        Returns
        -------
        DataFrame
            Columns section, cap (Int64, missing without one), demand, limit, granted, cut (int64, tokens),
            and dropped_by_cap, dropped_by_window (int64, items).

        Examples
        --------
        >>> import budgetkit as bk
        >>> bk.allocate(bk.Budget(100, (), [bk.Allocation("system", 30)]), {"system": 40}).frame()
          section  cap  demand  limit  granted  cut  dropped_by_cap  dropped_by_window
        0  system   30      40     30       30   10               0                  0
        """
        rows = [(g.section, self.budget.caps[g.section], g.demand, g.limit, g.granted, g.cut) for g in self.grants]
        frame = pd.DataFrame(rows, columns=["section", "cap", "demand", "limit", "granted", "cut"])
        for name, reason in (("dropped_by_cap", OVER_CAP), ("dropped_by_window", WINDOW_FULL)):
            frame[name] = [self.decisions.dropped(g.section, reason) for g in self.grants]
        return frame.astype({"cap": "Int64"})

    def __repr__(self) -> str:
        grants = ", ".join(f"{g.section}={g.granted}/{g.demand}" for g in self.grants)
        return f"Plan({grants}, free={self.free}, reserved={self.reserved}, window={self.budget.window})"
