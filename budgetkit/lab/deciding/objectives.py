"""Objectives to minimise, and the gain of a setting.

    gain = 1 - (sum of the objective with the setting) / (sum of the objective with the current setting)

Both sums are over conversations that were not used to choose the setting. The interval of a gain uses Hartigan's
typical values (:mod:`budgetkit.promise`) over subsets of these conversations. Conversations in which the objective
is 0 with both settings are left out of the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil, log2
from typing import Any, Literal

import numpy as np
import pandas as pd

from budgetkit.budget import brief, quoted
from budgetkit.lab.replay.losses import evidence, needed_there
from budgetkit.lab.replay.outcome import Replay
from budgetkit.plan import Flags, Floats
from budgetkit.promise import typical
from budgetkit.pruning import SUMMARISED

Summaries = Literal["lost", "kept"]
AnyObjective = str | Callable[[Replay], float]
_ALL_PARTS_UP_TO = 11  # conversations; with more, not all subsets are used, but a random sample
_PARTS = 1_999
_MOST_PARTS = 39_999
_LARGE = 1 / 3  # share of the whole in one conversation
_UNSEEN = "conversations not used to choose it"


@dataclass(frozen=True)
class Objective:
    """A number to minimise, computed from a replay, and its wording."""

    measure: Callable[..., float]
    noun: str  # "tokens cut"
    verb: str  # the action of a budget: "cuts"
    less: str = "less"  # "fewer tokens"
    form: str = "{:,.0f}"
    at_a_corner: str = ""  # why an extreme value always wins

    def __call__(self, outcome: Replay, **options: Any) -> float:
        """Return the number for one replay."""
        return self.measure(outcome, **options)

    def than_at_present(self, size: str = "", more: bool = False) -> str:
        """Describe the change from the current setting in words."""
        change = f"more{self.unit}" if more else self.less
        return f"{self.verb} {size}{change} than the current setting"

    @property
    def unit(self) -> str:
        """The unit of the objective, such as " tokens"."""
        return self.less.removeprefix("fewer").removeprefix("less")


def _cut(outcome: Replay, summaries: Summaries = "lost") -> float:
    """Sum the tokens that were dropped or cut.

    If `summaries` is "lost", summarised tokens count too.
    """
    cut = sum(outcome.kept.dropped)
    for section, column in outcome.columns.items():
        if section != outcome.section:
            cut += int(column["cut"].sum())
    if summaries == "lost":
        cut += int(outcome.placed.tokens[np.array(outcome.kept.state) == SUMMARISED].sum())
    return float(cut)


def _lost_evidence(
    outcome: Replay, pairs: pd.DataFrame | None = None, summaries: Summaries = "lost"
) -> float:
    """Count the needed messages that a replay lost.

    If `summaries` is "kept", summarised messages do not count.
    """
    if pairs is None:
        pairs = evidence(outcome.trace)
    _, needs, is_there = needed_there(outcome, pairs)
    if summaries == "kept":
        is_there = is_there | (np.array(outcome.kept.state, "int64")[needs] == SUMMARISED)
    return float(np.sum(~is_there))


def _cost(outcome: Replay) -> float:
    return float(np.sum(outcome.cost))


def _uncached(outcome: Replay) -> float:
    return 1 - float(np.sum(outcome.cached)) / max(1, int(np.sum(outcome.sent)))


_MORE_SPACE = "The cost of that space, in money and in answer tokens, is not counted."
#: Objectives by name, in the order of menus and messages.
OBJECTIVES: Mapping[str, Objective] = {
    "evidence": Objective(
        _lost_evidence,
        "needed messages lost",
        "loses",
        "fewer needed messages",
        "{:,.2f}",
        f"only losses, so more space for the history is always better. {_MORE_SPACE}",
    ),
    "cut": Objective(
        _cut,
        "tokens cut",
        "cuts",
        "fewer tokens",
        "{:,.0f}",
        f"only cuts, so more space for the history is always better. {_MORE_SPACE}",
    ),
    "cost": Objective(
        _cost,
        "US dollars",
        "costs",
        "less",
        "${:,.4f}",
        "only money, so sending less is always better. Lost messages are not counted.",
    ),
    "uncached": Objective(
        _uncached,
        "share of input not cached",
        "sends",
        "less outside the cache",
        "{:.1%}",
        "only uncached input, so never cutting is always better. The cost of more space is not counted.",
    ),
}


def objective_of(objective: AnyObjective, summaries: Summaries = "lost") -> tuple[str, Objective]:
    """Look up an objective by name, or make one from a function.

    The first value returned is the name of the objective.
    """
    if callable(objective):
        name = getattr(objective, "__name__", "objective")
        return name, Objective(objective, name, "has", f"less {name}")
    if objective not in OBJECTIVES:
        raise LookupError(
            f"Unknown objective {brief(objective)}. Choose one of {quoted(OBJECTIVES)}, or pass a function of a Replay."
        )
    known = OBJECTIVES[objective]
    if summaries == "kept" and objective in ("cut", "evidence"):
        known = replace(known, measure=partial(known.measure, summaries="kept"))
    return objective, known


@dataclass(frozen=True, eq=False)
class Gain:
    """The saving of a setting on held-out conversations.

    Parameters
    ----------
    before, after : float64 array, shape (conversations,)
        The objective of each conversation, without and with the setting.
    seed : int, default 0
        Seed for drawing subsets of the conversations.
    risk : float, default 0.05
        Probability that the true share lies outside the interval.

    Attributes
    ----------
    share : float
        Relative reduction of the sum; minus infinity if the sum is 0 only without the setting.
    low, high : float
        Interval of the true share; NaN if the objective is above 0 in too few conversations.

    Examples
    --------
    >>> gain = Gain(np.array([100.0] * 6), np.array([80.0, 90.0, 70.0, 80.0, 85.0, 75.0]))
    >>> round(gain.share, 3), round(gain.low, 3), round(gain.high, 3), gain.holds
    (0.2, 0.1, 0.3, True)
    """

    before: Floats = field(repr=False)
    after: Floats = field(repr=False)
    seed: int = 0
    risk: float = 0.05

    @cached_property
    def share(self) -> float:
        """The share of the objective that the setting saves."""
        return float(_saved(self.before.sum(), self.after.sum()))

    @cached_property
    def _interval(self) -> tuple[float, float]:
        # An objective that is 0 both before and after says nothing about the ratio, but would count as 0 saved.
        is_affected = self._affected
        parts = _parts(int(is_affected.sum()), self.seed, self.risk)
        saved = _saved(parts @ self.before[is_affected], parts @ self.after[is_affected])
        return typical(saved.tolist(), self.risk) or (float("nan"), float("nan"))

    @property
    def _affected(self) -> Flags:
        return np.asarray((self.before != 0) | (self.after != 0))

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self._interval[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._interval[1]

    @property
    def holds(self) -> bool:
        """True if the interval is entirely above 0."""
        return self.low > 0

    def notices(self, objective: Objective) -> list[str]:
        """List limitations of the gain, such as too few conversations.

        Another limitation is a single conversation with more than a third of the total.
        """
        notices = []
        needed = ceil(log2(2 / self.risk))
        affected = int(self._affected.sum())
        if affected < needed:
            which = "" if affected == len(self.before) else f" with {objective.noun}"
            notices.append(
                f"An interval for the gain needs {needed} conversations{which}, not just {affected}."
            )
        elif np.isnan(self.low):
            notices.append(
                f"{affected} conversations are too few for an interval after choosing among several settings."
            )
        whole = self.before.sum()
        largest = float(self.before.max()) / whole if whole else 0.0
        if largest > _LARGE and len(self.before) > 1:
            others = np.arange(len(self.before)) != np.argmax(self.before)
            share = float(_saved(self.before[others].sum(), self.after[others].sum()))
            saved = f"{percent(share)} %" if np.isfinite(share) else "nothing"
            notices.append(
                f"One conversation accounts for {percent(largest)} % of the total; the others save {saved}."
            )
        return notices

    def sentence(self, what: str, objective: Objective, aside: str = "") -> str:
        """Describe the saving of a setting, with an interval, in sentences.

        Examples
        --------
        >>> gain = Gain(np.full(40, 100.0), np.linspace(85, 99, 40))
        >>> gain.sentence("this budget", OBJECTIVES["cost"])[:71]
        'This budget costs 8 % less than the current setting on 40 conversations'
        >>> Gain(np.ones(40), np.full(40, 1.2)).sentence("this budget", OBJECTIVES["cost"])[:45]
        'No reliable gain: this budget costs 20 % more'
        >>> Gain(np.zeros(40), np.full(40, 5.0)).sentence("this budget", OBJECTIVES["cut"])[:67]
        'No gain: this budget cuts 200 tokens where the current setting cuts'
        """
        where = f" on {len(self.before):,} {_UNSEEN}"
        if not self.before.any():
            if not self.after.any():
                return f"Nothing to gain: none of {len(self.before):,} conversations has any {objective.noun} now."
            instead = f"{self.after.sum():,.4g}{objective.unit} where the current setting {objective.verb} none"
            return f"No gain: {what} {objective.verb} {instead}{where}."

        size = percent(abs(self.share)) if abs(self.share) >= 0.0005 else "under 0.1"
        size = f"{size} % " if self.share else "no "
        sentence = f"{what} {objective.than_at_present(size, more=self.share < 0)}{aside}{where}"
        if self.holds:
            sentence = f"{sentence[:1].upper()}{sentence[1:]}"
        else:
            sentence = f"No reliable gain: {sentence}"
        if np.isneginf(self.low):
            sentence += f"; the true saving is at most {percent(self.high)} % with 95 % confidence"
        elif self.high > self.low:
            ends = f"{percent(self.low)} and {percent(self.high)} %"
            sentence += f"; the true saving lies between {ends} with 95 % confidence"
        return " ".join([f"{sentence}.", *self.notices(objective)])


def _saved(before: Any, after: Any) -> Floats:
    """Return the share of a sum that is saved.

    If both sums are 0, the share is 0. If only the sum before is 0, the share is minus infinity.
    """
    before, after = np.asarray(before), np.asarray(after)
    ratio = np.where(after == 0, 1.0, np.inf)
    np.divide(after, before, out=ratio, where=before != 0)
    return 1 - ratio


def _parts(conversations: int, seed: int, risk: float) -> Floats:
    """Return all non-empty subsets of the conversations, or a random sample.

    Each row is a subset, with 1 for each of its conversations and 0 for all others.
    """
    if conversations <= _ALL_PARTS_UP_TO:
        numbers = np.arange(1, 2**conversations)
        return np.asarray((numbers[:, None] >> np.arange(conversations)) & 1, "float64")
    many = min(_MOST_PARTS, max(_PARTS, round(20 / risk) - 1))
    drawn = np.random.default_rng(seed).random((many, conversations)) < 0.5
    drawn[~drawn.any(axis=1)] = True
    return drawn.astype("float64")


def percent(share: float) -> str:
    """Format a share in percent, with up to one decimal below 10.

    Examples
    --------
    >>> percent(0.5), percent(0.0321), percent(0.08), percent(-0.0004)
    ('50', '3.2', '8', '0')
    """
    number = round(100 * share, 1) + 0.0  # no minus before 0
    if abs(number) >= 10 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.1f}"
