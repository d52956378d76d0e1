"""Tuned: the setting that was chosen, and what it gains on conversations that it was not chosen on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.pruning.policies import Policy

Floats = npt.NDArray[np.float64]
_DRAWS = 2_000
_NOISE = 0.05  # share of the draws outside the interval
_IN_WORDS = {"cut": "tokens cut", "evidence": "evidence lost", "cost": "cost", "uncached": "input not cached"}


@dataclass(frozen=True)
class Tuned:
    """The setting that was chosen, and what it gains on conversations that it was not chosen on.

    Parameters
    ----------
    best : dict
        The chosen values, by line; "policy" by name.
    budget : Budget
        The budget with them.
    policy : Policy
        The policy with them.
    table : DataFrame
        One row a setting: its values, then for each objective the mean over the conversations of both parts
        (``cost``, ``cost held out``), and whether it is on the Pareto front of the part it was chosen on.
    gain, low, high : float
        Share by which the first objective is smaller than at the present setting, on the part held out, and its
        95 % interval.
    conversations : tuple of int
        How many it was chosen on, and how many were held out.
    objective : str
        The first objective's name.
    tried : int
        Settings tried, of how many there are: `of`.
    of : int
        All settings there are.
    scores : ndarray
        Every measure: conversations x settings, the present one first, x objectives.
    parts : tuple of list of int
        The conversations that it was chosen on, and those that were held out.
    seed : int
        What split them.
    """

    best: dict[str, Any]
    budget: Budget
    policy: Policy
    table: pd.DataFrame
    gain: float
    low: float
    high: float
    conversations: tuple[int, int]
    objective: str
    tried: int
    of: int
    scores: Floats = field(repr=False)
    parts: tuple[list[int], list[int]] = field(repr=False)
    seed: int = 0

    def gains(self, row: int, objective: int = 0) -> tuple[float, float, float]:
        """Return the gain of a row of the table on the part held out, and its 95 % interval."""
        held = self.scores[self.parts[1]]
        return gain_of(held[:, 0, objective], held[:, 1 + row, objective], self.seed)

    @property
    def holds_out(self) -> bool:
        """Whether the gain is above 0 on conversations held out, with 95 % of the draws."""
        return self.low > 0

    @property
    def front(self) -> pd.DataFrame:
        """The settings that no other beats in all objectives."""
        return self.table[self.table["front"]].reset_index(drop=True)

    def __str__(self) -> str:
        many = f"{self.conversations[1]} conversations that it was not chosen on"
        between = f"95 % sure between {100 * self.low:.1f} and {100 * self.high:.1f} %"
        what = _IN_WORDS.get(self.objective, self.objective)
        values = ", ".join(f"{line} {value}" for line, value in self.best.items())
        if not self.holds_out:
            change = f"{what} changes by {0.0 - 100 * self.gain:+.1f} % on {many}"
            return f"No gain that holds: {change} ({between}); {values}."
        return f"{100 * self.gain:.1f} % less {what} on {many}, {between}: {values}."


def gain_of(before: Floats, after: Floats, seed: int) -> tuple[float, float, float]:
    """Return the share gained over all conversations, and its interval from drawing conversations again."""
    draws = np.random.default_rng(seed).integers(0, len(before), (_DRAWS, len(before)))
    sums = np.column_stack([before[draws].sum(axis=1), after[draws].sum(axis=1)])
    shares = 1 - sums[:, 1] / np.where(sums[:, 0] == 0, np.inf, sums[:, 0])
    low, high = np.quantile(np.where(sums[:, 0] == 0, 0.0, shares), [_NOISE / 2, 1 - _NOISE / 2])
    whole = float(before.sum())
    return (1 - float(after.sum()) / whole if whole else 0.0), float(low), float(high)
