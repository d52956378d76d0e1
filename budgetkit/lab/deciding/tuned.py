"""Tuned: the setting that was chosen, and what it gains on conversations that it was not chosen on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.lab.deciding.gain import Floats, Gain, gain_of, percent
from budgetkit.pruning.policies import Policy

#: What may be made small: in words, how a budget is said to bring less of it, and how it is written.
OBJECTIVES: Mapping[str, tuple[str, str, str]] = {
    "evidence": (
        "needed messages lost",
        "loses {}fewer needed messages than at present",
        "{:,.2f}",
    ),
    "cut": ("tokens cut", "cuts {}fewer tokens than at present", "{:,.0f}"),
    "cost": ("US dollars", "costs {}less than at present", "${:,.4f}"),
    "uncached": (
        "share of input not cached",
        "sends {}less outside the cache than at present",
        "{:.1%}",
    ),
}


@dataclass(frozen=True)
class Tuned:
    """The setting that was chosen, and what it gains on conversations that it was not chosen on.

    Parameters
    ----------
    best : dict
        The chosen values, by line; "policy" by name. The present ones where no setting is better.
    budget : Budget
        The budget with them.
    policy : Policy
        The policy with them.
    table : DataFrame
        One row a setting: its values, for each objective the mean over the conversations that were chosen on, whether
        it is on the Pareto front of these, and "left out": why it may not be chosen, empty where it may.
    gain, low, high : float
        Share by which the first objective is smaller than at the present setting, on the part held out, and its
        95 % interval; not a number with fewer than six conversations held out.
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
        How the settings that were tried were found: "all", or "drawn by the seed".
    row : int, optional
        The row of the table that was chosen; None where the present setting, which is none of them, stays.
    stays : bool
        Whether the chosen setting is the present one.
    notices : tuple of str
        What must be said beside it: settings that were left out, a setting at the end of all that was tried.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> tuned = bk.tune(bk.load_traces("made-up-chats"), budget, {"output": [100, 150, 200]}, "cut")
    >>> tuned.best, tuned.stays, tuned.holds_out
    ({'output': 100}, False, True)
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
    row: int | None = None
    stays: bool = False
    notices: tuple[str, ...] = ()

    def gains(self, row: int, objective: int = 0) -> tuple[float, float, float]:
        """Return the gain of a row of the table on the part held out, and its 95 % interval.

        The interval of a row that was not chosen is as wide as all rows of the front need it together, or all rows
        where it is not on the front: who looks at many settings finds one that was lucky.
        """
        gain = self.gain_at(row, objective)
        return gain.share, gain.low, gain.high

    def gain_at(self, row: int | None, objective: int = 0) -> Gain:
        """Return the gain of a row of the table, None for the present setting, on the part held out."""
        held_out = self.scores[self.parts[1]]
        before = held_out[:, 0, objective]
        if row is None:
            after = before
        else:
            after = held_out[:, 1 + row, objective]
        return gain_of(before, after, self.seed, rows=self._looked_at(row))

    def _looked_at(self, row: int | None) -> int:
        """Return among how many rows one was picked by hand: 1 for the one that the other part chose."""
        if row is None or row == self.row:
            return 1
        front = self.table["front"].to_numpy()
        return max(1, int(front.sum()) if front[row] else len(self.table))

    @property
    def holds_out(self) -> bool:
        """Whether the gain on conversations held out has a 95 % interval that lies above 0."""
        return self.low > 0

    @property
    def front(self) -> pd.DataFrame:
        """The settings that no other beats in all objectives."""
        return self.table[self.table["front"]].reset_index(drop=True)

    def __str__(self) -> str:
        default = ("", f"has {{}}less {self.objective} than at present", "")
        _, less, _ = OBJECTIVES.get(self.objective, default)
        values = ", ".join(f"{line} {value}" for line, value in self.best.items())

        if np.isnan(self.gain):
            sentences = [
                "The present setting cannot be planned for every conversation, so that no gain is measured."
            ]
        elif self.stays:
            sentences = [f"No setting that was tried {less.format('')}: stay."]
        else:
            sentences = [saving("this setting", less, self.gain_at(self.row))]
        sentences.append(f"The setting: {values}.")
        sentences += self.notices
        if self.tried < self.of:
            sentences.append(f"{self.tried:,} of {self.of:,} settings were tried, {self.search}.")
        return " ".join(sentences)


def saving(what: str, less: str, gain: Gain, aside: str = "") -> str:
    """Say what a setting saves on conversations that it was not chosen on, and how sure that is.

    Examples
    --------
    >>> gain = gain_of(np.array([100.0] * 40), np.linspace(85, 99, 40), seed=0)
    >>> saving("this budget", OBJECTIVES["cost"][1], gain)[:62]
    'This budget costs 8 % less than at present on 40 conversations'
    >>> saving("this budget", OBJECTIVES["cost"][1], gain_of(np.ones(40), np.full(40, 1.2), seed=0))[:47]
    'No gain that holds: this budget costs 20 % more'
    >>> saving("this budget", OBJECTIVES["cut"][1], gain_of(np.zeros(40), np.full(40, 5.0), seed=0))[:63]
    'No gain: this budget cuts 200 tokens where the present one cuts'
    """
    where = f" on {gain.conversations:,} conversations that it was not chosen on"
    if not gain.before and gain.after:
        words = less.partition("{}")[0].strip()
        noun = _noun(less)
        instead = f"{gain.after:,.4g}{noun} where the present one {words} none"
        return f"No gain: {what} {words} {instead}{where}.{_more(gain)}"

    if gain.share >= 0:
        worded = less
    else:
        worded = less.replace("{}fewer", "{}more").replace("{}less", "{}more")
    if abs(gain.share) >= 0.0005:
        size = percent(abs(gain.share))
    else:
        size = "under 0.1"
    sentence = f"{what} {worded.format(f'{size} % ' if gain.share else 'no ')}{aside}{where}"
    if gain.holds:
        sentence = sentence[:1].upper() + sentence[1:]
    else:
        sentence = f"No gain that holds: {sentence}"
    if np.isneginf(gain.low):
        sentence += f"; the true saving is at most {percent(gain.high)} % with 95 % confidence"
    elif gain.high > gain.low:
        ends = f"{percent(gain.low)} and {percent(gain.high)} %"
        sentence += f"; the true saving lies between {ends} with 95 % confidence"
    return f"{sentence}.{_more(gain)}"


def _more(gain: Gain) -> str:
    return "".join(f" {notice}" for notice in gain.notices)


def _noun(less: str) -> str:
    """Return what there is less of: " tokens" of "cuts {}fewer tokens than at present"."""
    after = less.partition("fewer")[2] or less.partition("less")[2]
    noun = after.partition(" than at present")[0].strip()
    return f" {noun}" if noun else ""
