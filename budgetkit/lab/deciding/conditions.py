"""Conditions: a statement about all plans that :func:`budgetkit.deciding.solve` finds a size for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, brief, check_tokens
from budgetkit.lab.replay.cost import MILLION, Prices, prices_of
from budgetkit.plan import Ints, allocate_columns
from budgetkit.promise import allowed_misses, is_controlled, lacking

Room = Literal["helps", "harms", "unknown"]


@dataclass(frozen=True)
class PlannedDemand:
    """The grants of many demands under one budget, one row per demand."""

    budget: Budget
    columns: Mapping[str, Mapping[str, Ints]]
    index: pd.MultiIndex | pd.Index

    def total(self, column: str) -> Ints:
        """Sum a column over all sections, in each row."""
        return sum((c[column] for c in self.columns.values()), np.zeros(len(self.index), "int64"))

    @property
    def cut(self) -> Ints:
        """Tokens cut in each row."""
        return self.total("cut")

    @property
    def granted(self) -> Ints:
        """Tokens sent in each row."""
        return self.total("granted")

    @property
    def overrun(self) -> bool:
        """Whether some row requires more than the window holds."""
        claims = self.budget.held.items()
        reserved = sum(
            np.minimum(self.columns[section]["granted"], tokens) for section, tokens in claims
        )
        return bool((self.granted - reserved > self.budget.window - self.budget.reserved).any())

    @property
    def conversations(self) -> Ints:
        """The conversation number of each row."""
        return conversations_of(self.index)


def conversations_of(index: pd.MultiIndex | pd.Index) -> Ints:
    """Return the number of the conversation that each row of demands belongs to."""
    level = index.get_level_values(0) if index.nlevels > 1 else index
    return np.asarray(pd.factorize(level)[0], "int64")


def plan_demands(budget: Budget, demands: pd.DataFrame) -> PlannedDemand:
    """Plan all rows of a frame of demands."""
    by_section = {str(name): demands[name].to_numpy() for name in demands.columns}
    return PlannedDemand(budget, allocate_columns(budget, by_section, len(demands)), demands.index)


@dataclass(frozen=True)
class Condition:
    """A statement that must be true of all plans.

    Parameters
    ----------
    name : str
        In words, as in an answer: "nothing is cut".
    holds : callable
        Function that takes the plans and tells whether they meet it.
    room : {"unknown", "helps", "harms"}
        Effect of more room: where it helps, the smallest window is searched for, where it harms, the largest. "No
        window will do" is said only if this is known.
    risk : float, optional
        Where it promises something of the next conversation: the chance that this misses it.
    tokens : int, default 0
        The most tokens that it needs in a section beyond the demands.

    Examples
    --------
    >>> import budgetkit as bk
    >>> fewer = Condition("at most 900 tokens are sent", lambda plans: plans.granted.max() <= 900)
    >>> bk.deciding.solve({"history": 5_000}, bk.Budget(1_000, (), [bk.Allocation("history")]), "window", fewer).holds
    True
    """

    name: str
    holds: Callable[[PlannedDemand], bool]
    room: Room = "unknown"
    risk: float | None = None
    tokens: int = 0

    def lacking(self, conversations: int) -> str:
        """Describe the lack of conversations; empty if there are enough."""
        if self.risk is None:
            return ""
        return lacking(conversations, self.risk)


def nothing_cut(section: str | None = None) -> Condition:
    """Require that nothing is cut, of one section or of any.

    Parameters
    ----------
    section : str, optional
        The section; default: all.

    Returns
    -------
    Condition
        For :func:`budgetkit.deciding.solve`.

    Examples
    --------
    >>> nothing_cut("history").name
    'nothing of history is cut'
    """
    if section is None:
        return Condition("nothing is cut", lambda plans: not plans.cut.any(), "helps")
    return Condition(
        f"nothing of {section} is cut",
        lambda plans: not plans.columns[section]["cut"].any(),
        "helps",
    )


def cut_at_most(
    share: float,
    of: Literal["conversations", "turns"] = "conversations",
    *,
    only_these: bool = False,
) -> Condition:
    """Limit the share of conversations or turns that lose something.

    It is a promise about the next conversation, so it needs 19 of them for a share of 5 %, and 99 for 1 %.

    Parameters
    ----------
    share : float
        From 0 to 1; above 0 for a promise.
    of : {"conversations", "turns"}
        The unit: conversations with a cut, or turns with a cut, averaged over conversations.
    only_these : bool, default False
        Whether the condition covers only the given conversations; then nothing is promised for the next ones.

    Returns
    -------
    Condition
        For :func:`budgetkit.deciding.solve`.

    Raises
    ------
    ValueError
        If the share is not between 0 and 1, or it is of something else.

    Examples
    --------
    >>> cut_at_most(0.05).name
    'at most 5 % of the next conversations are cut on average'
    >>> cut_at_most(0.05).lacking(8)
    'a promise of 5 % needs 19 conversations, and there are 8'
    """
    if not 0 <= share <= 1 or of not in ("conversations", "turns"):
        raise ValueError(
            f"Invalid share {share} of {brief(of)}. Pass 0 to 1, of 'conversations' or 'turns'."
        )
    is_promise = not only_these and 0 < share < 1

    def holds(plans: PlannedDemand) -> bool:
        is_cut = plans.cut > 0
        conversations = plans.conversations
        turns = np.bincount(conversations)
        cut_turns = np.bincount(conversations, is_cut)
        if of == "turns":
            if is_promise:
                return is_controlled((cut_turns / turns).tolist(), share)
            return bool(is_cut.mean() <= share)
        if is_promise:
            return int((cut_turns > 0).sum()) <= allowed_misses(len(turns), share)
        return bool((cut_turns > 0).mean() <= share)

    whose = "these" if only_these else "the"
    name = f"at most {100 * share:g} % of {whose} {of} are cut"
    if is_promise:
        name = f"at most {100 * share:g} % of the next {of} are cut on average"
    return Condition(name, holds, "helps", share if is_promise else None)


def holds_turns(turns: int, section: str = "history") -> Condition:
    """Require that a section holds the last turns whole.

    Parameters
    ----------
    turns : int
        How many, at least 1.
    section : str, default "history"
        The section.

    Returns
    -------
    Condition
        For :func:`budgetkit.deciding.solve`.

    Examples
    --------
    >>> holds_turns(20).name
    'history holds 20 turns'
    """
    check_tokens("number of turns", turns, 1)

    def holds(plans: PlannedDemand) -> bool:
        column = plans.columns[section]
        before = np.zeros(len(column["demand"]), "int64")
        for number in np.unique(plans.conversations):
            rows = np.flatnonzero(plans.conversations == number)
            before[rows[turns:]] = column["demand"][rows[:-turns]]
        return bool((column["granted"] >= np.maximum(column["demand"] - before, 0)).all())

    return Condition(f"{section} holds {turns} turns", holds, "helps")


def at_least(section: str, tokens: int) -> Condition:
    """Require that a section may take at least so many tokens.

    Parameters
    ----------
    section : str
        The section.
    tokens : int
        Its smallest limit, in tokens, whatever its demand.

    Returns
    -------
    Condition
        For :func:`budgetkit.deciding.solve`.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("system"), bk.Allocation("history")])
    >>> print(bk.deciding.solve({"system": 500, "history": 0}, budget, "window", at_least("history", 4_000)))
    The smallest window in which history may take 4,000 tokens is 5,500 tokens.
    """
    check_tokens("tokens", tokens)
    name = f"{section} may take {tokens:,} tokens"

    def holds(plans: PlannedDemand) -> bool:
        return bool((plans.columns[section]["limit"] >= tokens).all())

    return Condition(name, holds, "helps", tokens=tokens)


def bill_at_most(dollars: float, prices: Prices | str, answer: int = 0) -> Condition:
    """Limit the cost of all rows together.

    Every row is a request. Its input costs the full price, as if nothing were read from a cache, so the true bill is at
    most that.

    Parameters
    ----------
    dollars : float
        The sum, in US dollars.
    prices : Prices or str
        Token prices, or the name of a model to take them from.
    answer : int, default 0
        Tokens of each answer.

    Returns
    -------
    Condition
        For :func:`budgetkit.deciding.solve`, which then looks for the largest window.

    Raises
    ------
    ValueError
        If the sum is below 0, or a price is unknown.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("history")])
    >>> print(bk.deciding.solve({"history": 500_000}, budget, "window", bill_at_most(0.10, "gpt-5.4")))
    The largest window in which the bill is at most $0.10 is 41,000 tokens.
    """
    if not dollars >= 0:
        raise ValueError(
            f"Invalid bill {brief(dollars)}. Pass US dollars, 0 or more, such as 1.50."
        )
    paid = prices_of(prices)
    if paid is None or paid.input is None or (answer and paid.output is None):
        raise ValueError(
            "The input price is missing. Pass prices='gpt-5.4' or another model's name."
        )

    def holds(plans: PlannedDemand) -> bool:
        sent = plans.granted
        cost = sent * paid.input.of(sent)  # type: ignore[union-attr]
        if answer and paid.output is not None:
            cost = cost + answer * paid.output.of(sent)
        return float(cost.sum()) / MILLION <= dollars

    return Condition(f"the bill is at most ${dollars:,.2f}", holds, "harms")
