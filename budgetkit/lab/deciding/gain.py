"""Gain: what a setting saves on conversations that it was not chosen on, and between which numbers the truth lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from budgetkit.promise import FEWEST_FOR_A_GAIN, typical

Floats = npt.NDArray[np.float64]
_ALL_PARTS_UP_TO: Final = 11  # conversations, of which every part is taken; of more, some are drawn
_PARTS: Final = 1_999
_MOST_PARTS: Final = 39_999
_LARGE: Final = 1 / 3  # of the whole, in one conversation


@dataclass(frozen=True)
class Gain:
    """What a setting saves on conversations that it was not chosen on.

    Parameters
    ----------
    share : float
        By which share the objective is smaller than at the present setting; minus infinity where it is 0 at present
        and not with the setting.
    low, high : float
        The interval of the true share; not a number where the conversations are too few for one.
    before, after : float
        The objective at present and with the setting, summed over the conversations.
    conversations : int
        How many there are.
    largest : float
        Share of the whole, at present, that the largest conversation carries.
    without : float
        The share saved without that conversation.

    Examples
    --------
    >>> gain = gain_of(np.array([100.0] * 6), np.array([80.0, 90.0, 70.0, 80.0, 85.0, 75.0]), seed=0)
    >>> round(gain.share, 3), round(gain.low, 3), round(gain.high, 3), gain.holds
    (0.2, 0.1, 0.3, True)
    """

    share: float
    low: float
    high: float
    before: float
    after: float
    conversations: int
    largest: float
    without: float

    @property
    def holds(self) -> bool:
        """Whether the gain is above 0 in its whole interval."""
        return self.low > 0

    @property
    def notices(self) -> list[str]:
        """What must be said beside the number: too few conversations, or one that outweighs the others."""
        notices = []
        if self.conversations < FEWEST_FOR_A_GAIN:
            needs = f"An interval of a gain needs {FEWEST_FOR_A_GAIN} conversations"
            notices.append(f"{needs}; there are {self.conversations}.")
        elif np.isnan(self.low):
            notices.append(
                f"{self.conversations} conversations are too few for an interval of one setting among all."
            )
        if self.largest > _LARGE and self.conversations > 1:
            if not np.isfinite(self.without):
                rest = "nothing"
            else:
                rest = f"{percent(self.without)} %"
            notices.append(
                f"One conversation carries {percent(self.largest)} % of it; the others save {rest}."
            )
        return notices


def gain_of(before: Floats, after: Floats, seed: int, rows: int = 1) -> Gain:
    """Return what is saved, and its 95 % interval from random parts of the conversations.

    A part has each conversation or not, by a coin. The interval is that of Hartigan's typical values, see
    :mod:`budgetkit.promise`; where it is asked for several settings, it is as wide as they need it together.
    """
    is_largest = np.zeros(len(before), dtype=np.bool_)
    is_largest[np.argmax(before)] = True
    whole = float(before.sum())

    parts = _parts(len(before), seed, 0.05 / rows)
    saved = _saved(parts @ before, parts @ after)
    ends = typical(saved.tolist(), 0.05 / rows)
    low, high = (float("nan"), float("nan")) if ends is None else ends

    return Gain(
        share=float(_saved(before.sum(), after.sum())),
        low=low,
        high=high,
        before=whole,
        after=float(after.sum()),
        conversations=len(before),
        largest=float(before.max()) / whole if whole else 0.0,
        without=float(_saved(before[~is_largest].sum(), after[~is_largest].sum())),
    )


def _saved(before: Floats, after: Floats) -> Floats:
    """Return the share saved: 0 of nothing and for nothing, minus infinity where nothing becomes something."""
    ratio = np.divide(
        after, before, out=np.full(np.shape(before), np.inf), where=np.asarray(before) != 0
    )
    return np.asarray(
        1 - np.where((np.asarray(before) == 0) & (np.asarray(after) == 0), 1.0, ratio)
    )


def _parts(conversations: int, seed: int, risk: float) -> Floats:
    """Return which conversations are in each part: all parts that there are, but for the empty one, or random ones."""
    if conversations <= _ALL_PARTS_UP_TO:
        numbers = np.arange(1, 2**conversations)
        return np.asarray((numbers[:, None] >> np.arange(conversations)) & 1, dtype=np.float64)
    many = min(_MOST_PARTS, max(_PARTS, round(20 / risk) - 1))
    drawn = np.random.default_rng(seed).random((many, conversations)) < 0.5
    drawn[~drawn.any(axis=1)] = True
    parts: Floats = drawn.astype(np.float64)
    return parts


def percent(share: float) -> str:
    """Write a share in percent: whole numbers from 10 on, one digit below.

    Examples
    --------
    >>> percent(0.5), percent(0.0321), percent(0.08), percent(-0.0004)
    ('50', '3.2', '8', '0')
    """
    number = round(100 * share, 1) + 0.0  # no minus before 0
    if abs(number) >= 10 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.1f}"
