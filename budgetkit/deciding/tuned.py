"""Tuned: the setting that was chosen, and what it gains on conversations that it was not chosen on."""

from __future__ import annotations

from collections.abc import Mapping
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
#: What may be made small: in words, how a budget is said to bring less of it, and how it is written.
OBJECTIVES: Mapping[str, tuple[str, str, str]] = {
    "evidence": ("needed messages lost", "loses {}fewer needed messages than at present", "{:,.2f}"),
    "cut": ("tokens cut", "cuts {}fewer tokens than at present", "{:,.0f}"),
    "cost": ("US dollars", "costs {}less than at present", "${:,.4f}"),
    "uncached": ("share of input not cached", "sends {}less outside the cache than at present", "{:.1%}"),
}


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
    search : str
        How the settings that were tried were found: "all", "proposed by Optuna" or "drawn by the seed".
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
    search: str = "all"

    def gains(self, row: int, objective: int = 0) -> tuple[float, float, float]:
        """Return the gain of a row of the table on the part held out, and its 95 % interval."""
        held = self.scores[self.parts[1]]
        return gain_of(held[:, 0, objective], held[:, 1 + row, objective], self.seed)

    @property
    def holds_out(self) -> bool:
        """Whether the gain on conversations held out has a 95 % interval that lies above 0."""
        return self.low > 0

    @property
    def front(self) -> pd.DataFrame:
        """The settings that no other beats in all objectives."""
        return self.table[self.table["front"]].reset_index(drop=True)

    def __str__(self) -> str:
        _, less, _ = OBJECTIVES.get(self.objective, ("", f"has {{}}less {self.objective} than at present", ""))
        gains = self.gain, self.low, self.high
        values = ", ".join(f"{line} {value}" for line, value in self.best.items())
        few = "" if self.tried == self.of else f" {self.tried:,} of {self.of:,} settings were tried, {self.search}."
        return f"{saving('this setting', less, gains, self.conversations[1])} The setting: {values}.{few}"


def saving(what: str, less: str, gains: tuple[float, float, float], many: int, aside: str = "") -> str:
    """Say what a setting saves on conversations that it was not chosen on, and how sure that is.

    Examples
    --------
    >>> saving("this budget", OBJECTIVES["cost"][1], (0.081, 0.03, 0.118), 40)[:64]
    'This budget costs 8.1 % less than at present on 40 conversations'
    >>> saving("this budget", OBJECTIVES["cost"][1], (-0.2, -0.3, -0.1), 40)[:47]
    'No gain that holds: this budget costs 20 % more'
    >>> saving("this budget", "has {}less useless", (-0.2, -0.3, -0.1), 40)[:50]
    'No gain that holds: this budget has 20 % more usel'
    >>> saving("this setting", OBJECTIVES["cut"][1], (0.0002, 0.0001, 0.001), 40)[:42]
    'This setting cuts under 0.1 % fewer tokens'
    """
    gain, low, high = gains
    worded = less if gain >= 0 else less.replace("{}fewer", "{}more").replace("{}less", "{}more")
    size = percent(abs(gain)) if abs(gain) >= 0.0005 else "under 0.1"
    said = f"{what} {worded.format(f'{size} % ' if gain else 'no ')}{aside}"
    said = f"No gain that holds: {said}" if low <= 0 else said[:1].upper() + said[1:]
    between = f"; the true saving lies between {percent(low)} and {percent(high)} % with 95 % confidence"
    return f"{said} on {many:,} conversations that it was not chosen on{between if high > low else ''}."


def percent(share: float) -> str:
    """Write a share in percent: whole numbers from 10 on, one digit below.

    Examples
    --------
    >>> percent(0.5), percent(0.0321), percent(0.08), percent(-0.0004)
    ('50', '3.2', '8', '0')
    """
    number = round(100 * share, 1) + 0.0  # no minus before 0
    return f"{number:,.0f}" if abs(number) >= 10 or number == int(number) else f"{number:.1f}"


def gain_of(before: Floats, after: Floats, seed: int) -> tuple[float, float, float]:
    """Return the share gained over all conversations, and its interval from drawing conversations again."""
    draws = np.random.default_rng(seed).integers(0, len(before), (_DRAWS, len(before)))
    sums = np.column_stack([before[draws].sum(axis=1), after[draws].sum(axis=1)])
    shares = 1 - sums[:, 1] / np.where(sums[:, 0] == 0, np.inf, sums[:, 0])
    low, high = np.quantile(np.where(sums[:, 0] == 0, 0.0, shares), [_NOISE / 2, 1 - _NOISE / 2])
    whole = float(before.sum())
    return (1 - float(after.sum()) / whole if whole else 0.0), float(low), float(high)
