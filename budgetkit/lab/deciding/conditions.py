"""Conditions for :func:`budgetkit.deciding.solve`: statements about all plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, brief, check_tokens
from budgetkit.lab.replay.cost import MILLION, Prices, prices_of
from budgetkit.plan import Ints
from budgetkit.plan.plan import free_tokens
from budgetkit.promise import allowed_misses, is_controlled, lacking

Room = Literal["helps", "harms", "unknown"]


@dataclass(frozen=True)
class PlannedDemand:
    """The grants of many demands under one budget, one row per demand."""

    budget: Budget
    columns: Mapping[str, Mapping[str, Ints]]
    index: pd.Index

    @property
    def cut(self) -> Ints:
        """Tokens cut in each row."""
        return self._total("cut")

    @property
    def granted(self) -> Ints:
        """Tokens sent in each row."""
        return self._total("granted")

    def _total(self, column: str) -> Ints:
        return sum((c[column] for c in self.columns.values()), np.zeros(len(self.index), "int64"))

    @property
    def overrun(self) -> bool:
        """True if any row's request exceeds the window minus the reserves."""
        return bool(np.any(free_tokens(self.budget, self.columns) < 0))

    @property
    def conversations(self) -> Ints:
        """The conversation number of each row."""
        return np.asarray(pd.factorize(self.index.get_level_values(0))[0], "int64")


@dataclass(frozen=True)
class Condition:
    """A statement that must hold for all plans.

    Parameters
    ----------
    name : str
        The condition in words, such as "nothing is cut".
    holds : callable
        Function that returns True if the plans meet the condition.
    room : {"unknown", "helps", "harms"}
        Effect of a larger window on the condition. If a larger window "harms" the condition, the search is for the
        largest window; otherwise, it is for the smallest window. If the effect is "unknown", a failed search does not
        prove that there is no solution.
    risk : float, optional
        Accepted probability that the next conversation breaks the condition. None if the condition covers only the
        given conversations.
    tokens : int, default 0
        Most tokens that the condition may require in a section beyond the section's demand.

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
        """Explain that there are too few conversations, or return ""."""
        if self.risk is None:
            return ""
        return lacking(conversations, self.risk)


def nothing_cut(section: str | None = None) -> Condition:
    """Require that nothing is cut from one section, or from any section.

    Parameters
    ----------
    section : str, optional
        The section that must not be cut; default: all sections.

    Returns
    -------
    Condition
        A condition for :func:`budgetkit.deciding.solve`.

    Examples
    --------
    >>> nothing_cut("history").name
    'nothing is cut from history'
    """
    if section is None:
        return Condition("nothing is cut", lambda plans: not plans.cut.any(), "helps")
    return Condition(
        name=f"nothing is cut from {section}",
        holds=lambda plans: not plans.columns[section]["cut"].any(),
        room="helps",
    )


def cut_at_most(
    share: float,
    of: Literal["conversations", "turns"] = "conversations",
    *,
    only_these: bool = False,
) -> Condition:
    """Limit the share of conversations or turns that are cut.

    By default, the limit is a statistical guarantee about the next conversation. A share of 5 % then needs 19 known
    conversations, and a share of 1 % needs 99.

    Parameters
    ----------
    share : float
        Maximum share, from 0 to 1. At 0 or 1, the condition covers only the given conversations.
    of : {"conversations", "turns"}
        Whether the share counts conversations with a cut, or turns with a cut, averaged over the conversations.
    only_these : bool, default False
        If True, the condition covers only the given conversations and guarantees nothing about the next conversation.

    Returns
    -------
    Condition
        A condition for :func:`budgetkit.deciding.solve`.

    Raises
    ------
    ValueError
        If the share is not between 0 and 1, or `of` is unknown.

    Examples
    --------
    >>> cut_at_most(0.05).name
    'at most 5 % of the next conversations are cut on average'
    >>> cut_at_most(0.05).lacking(8)
    'a promise at 5 % risk needs 19 conversations, but there are 8'
    """
    if not 0 <= share <= 1 or of not in ("conversations", "turns"):
        raise ValueError(
            f"Invalid share {share} or unit {brief(of)}. Pass a share from 0 to 1, and of='conversations' or 'turns'."
        )
    is_promise = not only_these and 0 < share < 1

    def holds(plans: PlannedDemand) -> bool:
        is_cut = plans.cut > 0
        cut_turns = np.bincount(plans.conversations, is_cut)
        units = is_cut if of == "turns" else cut_turns > 0
        if not is_promise:
            return bool(units.mean() <= share)
        if of == "turns":
            return is_controlled((cut_turns / np.bincount(plans.conversations)).tolist(), share)
        return int(units.sum()) <= allowed_misses(len(units), share)

    whose = "these" if only_these else "the"
    name = f"at most {100 * share:g} % of {whose} {of} are cut"
    if is_promise:
        name = f"at most {100 * share:g} % of the next {of} are cut on average"
    return Condition(name, holds, "helps", share if is_promise else None)


def holds_turns(turns: int, section: str = "history") -> Condition:
    """Require a section to keep the last turns whole.

    Parameters
    ----------
    turns : int
        Number of last turns to keep whole, at least 1.
    section : str, default "history"
        The section that must keep these turns.

    Returns
    -------
    Condition
        A condition for :func:`budgetkit.deciding.solve`.

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
    """Require a minimum limit for a section.

    Parameters
    ----------
    section : str
        The section that needs the limit.
    tokens : int
        Minimum limit of the section, in tokens, regardless of its demand.

    Returns
    -------
    Condition
        A condition for :func:`budgetkit.deciding.solve`.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("system"), bk.Allocation("history")])
    >>> print(bk.deciding.solve({"system": 500, "history": 0}, budget, "window", at_least("history", 4_000)))
    The smallest window in which history may take 4,000 tokens is 5,500 tokens.
    """
    check_tokens("tokens", tokens)
    return Condition(
        name=f"{section} may take {tokens:,} tokens",
        holds=lambda plans: bool((plans.columns[section]["limit"] >= tokens).all()),
        room="helps",
        tokens=tokens,
    )


def bill_at_most(dollars: float, prices: Prices | str, answer: int = 0) -> Condition:
    """Limit the total cost of all requests.

    Each row of demands is one request. Its input is priced in full, as if there were no cache, so reads from a cache
    can only lower the actual bill.

    Parameters
    ----------
    dollars : float
        Maximum cost of all requests together, in US dollars.
    prices : Prices or str
        Token prices, or the name of a model with these prices.
    answer : int, default 0
        Number of output tokens of each answer.

    Returns
    -------
    Condition
        A condition for :func:`budgetkit.deciding.solve`, which then searches for the largest window.

    Raises
    ------
    ValueError
        If the cost is below 0, or a needed price is unknown.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("history")])
    >>> print(bk.deciding.solve({"history": 500_000}, budget, "window", bill_at_most(0.10, "gpt-5.4")))
    The largest window in which the bill is at most $0.10 is 41,000 tokens.
    """
    if not dollars >= 0:
        raise ValueError(
            f"Invalid bill {brief(dollars)}. Pass an amount in US dollars, such as 1.50."
        )
    paid = prices_of(prices)
    if paid is None or paid.input is None or (answer and paid.output is None):
        raise ValueError(
            "The input or output price is missing. Pass prices='gpt-5.4' or another model's name."
        )

    def holds(plans: PlannedDemand) -> bool:
        sent = plans.granted
        cost = sent * paid.input.of(sent)  # type: ignore[union-attr]
        if answer and paid.output is not None:
            cost = cost + answer * paid.output.of(sent)
        return float(cost.sum()) / MILLION <= dollars

    return Condition(f"the bill is at most ${dollars:,.2f}", holds, "harms")
