"""Decisions: the outcome of every item, and its reason, as columns.

A plan of a million items has a million decisions, so decisions are stored as numbers and converted to objects on
access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import Allocation, Budget
from budgetkit.budget.quoting import brief
from budgetkit.plan.items import Ints, Item, Items


@dataclass(frozen=True, init=False)
class Grant:
    """The demand, limit and grant of one section.

    Parameters
    ----------
    section : str
        Name of the section.
    demand : int
        Demand of the section, in tokens.
    limit : int
        Limit of the section when it was allocated, in tokens.
    granted : int
        Tokens granted to the section.

    Examples
    --------
    >>> Grant("history", 5_000, 3_000, 3_000).cut
    2000
    """

    section: str
    demand: int
    limit: int
    granted: int

    # Planning makes many grants; this explicit method takes a third of the time of the generated method.
    def __init__(self, section: str, demand: int, limit: int, granted: int) -> None:
        fields = self.__dict__
        fields["section"], fields["demand"], fields["limit"], fields["granted"] = (
            section,
            demand,
            limit,
            granted,
        )

    @property
    def cut(self) -> int:
        """Demand minus grant, in tokens."""
        return self.demand - self.granted


def grants_of(
    budget: Budget, demands: Mapping[str, int], steps: Iterable[tuple[Allocation, int, int]]
) -> tuple[Grant, ...]:
    """Return a grant for each section, in the order of the prompt."""
    grants = {
        line.section: Grant(line.section, demands[line.section], limit, granted)
        for line, limit, granted in steps
    }
    return tuple([grants[section] for section in budget.sections])


Reasons = np.ndarray[Any, np.dtype[np.int8]]
Outcome = Literal["kept", "cut", "dropped"]
FITS, OVER_CAP, WINDOW_FULL, BEYOND_BEST, PAIR, POOL_FULL, UNCUT = range(7)
REASONS = (
    *("fits", "over its cap", "window full", "beyond the best", "its pair was dropped"),
    *("shared pool full", "no cut was given"),
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one item, and its reason.

    Parameters
    ----------
    item : Item
        The item, shortened if it was cut.
    section : str
        Name of the item's section.
    tokens : int
        Original size of the item, in tokens.
    kept : int
        Tokens of the item that are kept.
    outcome : {"kept", "cut", "dropped"}
        The outcome for the item.
    reason : str
        The reason for the outcome, one of `REASONS`.

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


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions as columns that are computed on first access.

    Indexing returns a `Decision` about one item.

    Examples
    --------
    >>> import budgetkit as bk
    >>> len(bk.fit(bk.Budget(100, (), [bk.Allocation("history")]), [bk.Item("history", 40)]).decisions)
    1
    """

    columns: Items
    made: Callable[[], tuple[Ints, Reasons]]
    cuts: Mapping[int, Item] = field(default_factory=dict)

    @property
    def kept(self) -> Ints:
        """Number of tokens that are kept of each item."""
        return self.made()[0]

    @property
    def reasons(self) -> Reasons:
        """The reason for each item's outcome, as an index into `REASONS`."""
        return self.made()[1]

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return (
            f"Decisions({len(self):,}: {len(self.items):,} stay, of which {len(self.cuts):,} cut)"
        )

    def __getitem__(self, i: int) -> Decision:
        before = self.columns.items[i]
        position = range(len(self))[i]
        outcome = self._outcome(position)
        item = self.cuts.get(position, before)
        return Decision(
            item,
            before.section,
            before.tokens,
            int(self.kept[i]),
            outcome,
            REASONS[self.reasons[i]],
        )

    def __iter__(self) -> Iterator[Decision]:
        return (self[i] for i in range(len(self)))

    def _outcome(self, i: int) -> Outcome:
        if i in self.cuts:
            return "cut"
        if self.reasons[i] == FITS:
            return "kept"
        return "dropped"

    @property
    def items(self) -> list[Item]:
        """The kept items, whole or cut, in order."""
        whole = self.columns.items
        stays = self.reasons == FITS
        stays[list(self.cuts)] = True
        places = np.flatnonzero(stays).tolist()
        if not self.cuts:
            return [whole[i] for i in places]
        return [self.cuts.get(i, whole[i]) for i in places]

    def dropped(self, section: str, reason: int) -> int:
        """Return the number of a section's items dropped for one reason.

        Examples
        --------
        >>> import budgetkit as bk
        >>> budget = bk.Budget(100, (), [bk.Allocation("history", 50, keep="newest")])
        >>> plan = bk.fit(budget, [bk.Item("history", 40), bk.Item("history", 30)])
        >>> plan.decisions.dropped("history", OVER_CAP)
        1
        """
        return int((self.reasons[self._uncut(section)] == reason).sum())

    def lost(self, section: str) -> int:
        """Return the number of a section's items that are cut or dropped.

        Examples
        --------
        >>> import budgetkit as bk
        >>> budget = bk.Budget(100, (), [bk.Allocation("history", 50, keep="newest")])
        >>> bk.fit(budget, [bk.Item("history", 40), bk.Item("history", 30)]).decisions.lost("history")
        1
        """
        return len(self.columns.rows(section)) - int(
            (self.reasons[self._uncut(section)] == FITS).sum()
        )

    def _uncut(self, section: str) -> Ints:
        """Return the positions of a section's items that are not cut."""
        rows = self.columns.rows(section)
        if not self.cuts:
            return rows
        return rows[~np.isin(rows, [*self.cuts])]

    def frame(self) -> pd.DataFrame:
        """Return a frame with one row per item.

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


def _stored_columns(columns: tuple[Ints, Reasons]) -> tuple[Ints, Reasons]:
    """Return stored columns, for decisions read from a file.

    The decisions of a new plan compute their columns instead.
    """
    return columns


#: The decisions of a plan of plain numbers.
NO_DECISIONS = Decisions(
    Items(()), partial(_stored_columns, (np.zeros(0, np.int64), np.zeros(0, np.int8)))
)


def decisions_of(
    items: Sequence[Item],
    kept: Sequence[int],
    reasons: Sequence[str],
    cuts: Sequence[int],
    texts: Mapping[str, Sequence[object]] | None = None,
) -> Decisions:
    """Build decisions from saved columns, rejecting impossible decisions.

    >>> decisions_of([Item("history", 40)], [30], ["over its cap"], [0])[0].outcome
    'cut'
    """
    columns = texts or {"items": [None] * len(items), "cuts": [None] * len(cuts)}
    if not len(items) == len(kept) == len(reasons) == len(columns["items"]) or len(
        columns["cuts"]
    ) != len(cuts):
        raise ValueError(
            f"Invalid plan: {len(items)} items, {len(kept)} kept, {len(reasons)} reasons, "
            f"{len(columns['items'])} texts; "
            f"{len(cuts)} cuts with {len(columns['cuts'])} texts. Save the plan again."
        )
    if [*cuts] != sorted({*cuts} & {*range(len(items))}):
        raise ValueError(
            f"Invalid cuts: {brief(cuts)}. Expected increasing positions of {len(items):,} items. Save the plan again."
        )
    for item, tokens in zip(items, kept, strict=True):
        if not 0 <= tokens <= item.tokens:
            raise ValueError(
                f"An item of {brief(item.section)} keeps {brief(tokens)} of its {item.tokens:,} tokens. Save "
                "the plan again."
            )
    numbers = np.array([REASONS.index(reason) for reason in reasons], dtype=np.int8)
    whole = Items(
        replace(item, payload=payload)
        for item, payload in zip(items, columns["items"], strict=True)
    )
    shorter = zip(cuts, columns["cuts"], strict=True)
    return Decisions(
        whole,
        partial(_stored_columns, (np.array(kept, dtype=np.int64), numbers)),
        {i: replace(items[i], tokens=kept[i], payload=payload) for i, payload in shorter},
    )


@dataclass(frozen=True, slots=True)
class Loss:
    """A section's loss for one reason: tokens, dropped items and cut items."""

    allocation: Allocation
    demand: int
    reason: int
    tokens: int
    items: int = 0
    cut: int = 0


def reason_when_full(budget: Budget, allocation: Allocation, free: int) -> int:
    """Return the reason for a loss: a full window or pool.

    The pool can be full although the window is not: capped sections may have tokens left.

    Examples
    --------
    >>> chat = Budget(100, (), [Allocation("system", 80), Allocation("notes")], order="pool together")
    >>> notes = Allocation("notes")
    >>> reason_when_full(chat, notes, free=70) == POOL_FULL, reason_when_full(chat, notes, free=0) == WINDOW_FULL
    (True, True)
    """
    in_pool = allocation.cap is None and budget.pool != "open"
    if in_pool and free > 0:
        return POOL_FULL
    return WINDOW_FULL


def losses_of(
    budget: Budget, grants: Iterable[Grant], decisions: Decisions, free: int
) -> list[Loss]:
    """List a plan's losses, largest first."""
    lines = {a.section: a for a in budget.allocations}
    losses: list[Loss] = []
    for grant in grants:
        allocation = lines[grant.section]
        demand = grant.demand
        if len(decisions):
            rows = decisions.columns.rows(grant.section)
            reasons = decisions.reasons[rows]
            lost = decisions.columns.tokens[rows] - decisions.kept[rows]
            is_cut = np.isin(rows, list(decisions.cuts))
            for reason in np.unique(reasons[reasons != FITS]).tolist():
                mine = reasons == reason
                cut = int((mine & is_cut).sum())
                tokens = int(lost[mine].sum())
                losses.append(Loss(allocation, demand, reason, tokens, int(mine.sum()) - cut, cut))
            continue

        # With plain numbers, a cap cuts the excess or the whole section; any further loss is due to the full window.
        cap = budget.caps[grant.section]
        over = 0
        if cap is not None and demand > cap:
            over = grant.cut if allocation.overflow == "drop" else min(demand - cap, grant.cut)
        beyond = reason_when_full(budget, allocation, free)
        losses += [
            Loss(allocation, demand, reason, tokens)
            for reason, tokens in ((OVER_CAP, over), (beyond, grant.cut - over))
            if tokens
        ]
    return sorted(losses, key=lambda loss: -loss.tokens)
