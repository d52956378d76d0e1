"""Conditions that a budget is solved for: what must hold of the plans of all turns.

A condition looks at the grants of many demands at once, as columns, so that it costs as much as one plan.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.plan.allocating import allocate_columns
from budgetkit.plan.items import Ints


@dataclass(frozen=True)
class Planned:
    """The grants of many demands under one budget; a row is a turn, or a conversation."""

    budget: Budget
    columns: Mapping[str, Mapping[str, Ints]]
    index: pd.MultiIndex | pd.Index

    def total(self, column: str) -> Ints:
        """Sum a column over all sections, in each row."""
        return sum((c[column] for c in self.columns.values()), np.zeros(len(self.index), np.int64))

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
        """Whether what is required in some row is more than the window holds."""
        own = sum(np.minimum(self.columns[s]["granted"], held) for s, held in self.budget.held.items())
        return bool((self.granted - own > self.budget.window - self.budget.reserved).any())

    @property
    def conversations(self) -> Ints:
        """The number of the conversation that each row belongs to; every row its own where nothing says so."""
        level = self.index.get_level_values(0) if self.index.nlevels > 1 else self.index
        return np.asarray(pd.factorize(level)[0], dtype=np.int64)


def planned(budget: Budget, demands: pd.DataFrame) -> Planned:
    """Plan all rows of a frame of demands."""
    given = {str(name): demands[name].to_numpy() for name in demands.columns}
    return Planned(budget, allocate_columns(budget, given, len(demands)), demands.index)


@dataclass(frozen=True)
class Condition:
    """Something that must hold of all plans.

    Parameters
    ----------
    name : str
        In words, as it stands in an answer: "nothing is cut".
    holds : callable
        From the plans to whether it holds.

    Examples
    --------
    >>> import budgetkit as bk
    >>> fewer = Condition("at most 900 tokens are sent", lambda plans: plans.granted.max() <= 900)
    >>> bk.solve({"history": 5_000}, bk.Budget(1_000, (), [bk.Allocation("history")]), "window", fewer).holds
    True
    """

    name: str
    holds: Callable[[Planned], bool]


def nothing_cut(section: str | None = None) -> Condition:
    """Say that nothing is cut, of one section or of any.

    Examples
    --------
    >>> nothing_cut("history").name
    'nothing of history is cut'
    """
    if section is None:
        return Condition("nothing is cut", lambda plans: not plans.cut.any())
    return Condition(f"nothing of {section} is cut", lambda plans: not plans.columns[section]["cut"].any())


def cut_at_most(share: float, of: Literal["conversations", "turns"] = "conversations") -> Condition:
    """Say that at most a share of the conversations, or of the turns, loses something.

    Examples
    --------
    >>> cut_at_most(0.05).name
    'at most 5 % of conversations are cut'
    """
    if not 0 <= share <= 1 or of not in ("conversations", "turns"):
        raise ValueError(f"a share of {share} of {of}; known are 0 to 1, of 'conversations' or 'turns'; give these")

    def holds(plans: Planned) -> bool:
        if of == "turns":
            return bool((plans.cut > 0).mean() <= share)
        return bool((np.bincount(plans.conversations, plans.cut) > 0).mean() <= share)

    return Condition(f"at most {100 * share:g} % of {of} are cut", holds)


def holds_turns(turns: int, section: str = "history") -> Condition:
    """Say that a section holds the last turns whole, in every row of a frame with a level "turn".

    Examples
    --------
    >>> holds_turns(20).name
    'history holds 20 turns'
    """
    if turns < 1:
        raise ValueError(f"the last {turns} turns are to be held; known is a number of turns; give 1 or more")

    def holds(plans: Planned) -> bool:
        column = plans.columns[section]
        before = np.zeros(len(column["demand"]), dtype=np.int64)
        for number in np.unique(plans.conversations):
            rows = np.flatnonzero(plans.conversations == number)
            before[rows[turns:]] = column["demand"][rows[:-turns]]
        return bool((column["granted"] >= np.maximum(column["demand"] - before, 0)).all())

    return Condition(f"{section} holds {turns} turns", holds)


def sent_at_most(tokens: int) -> Condition:
    """Say that all rows together send at most so many tokens; a sum of money over the price of a token is one.

    Examples
    --------
    >>> sent_at_most(1_000_000).name
    'at most 1,000,000 tokens are sent in all'
    """
    return Condition(f"at most {tokens:,} tokens are sent in all", lambda plans: int(plans.granted.sum()) <= tokens)
