"""The count of a large text, found from exact counts of some slices of it, with an interval.

    tokens = estimate of the whole x sum of exact counts of slices / sum of their estimates

(the ratio estimator of survey sampling, after Cochran, *Sampling Techniques*, 1977, chapter 6). The estimate reads the
whole text, and the slices show how far the estimate is off. The text is divided into equal parts, and one slice is
drawn from each. A text often has several kinds of content, one after the other. So the spread behind the interval is
taken half from how far the slices are off, and half from how much this changes from one slice to the next (Wolter,
*Introduction to Variance Estimation*, 2007, chapter 8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random
from typing import Final

import numpy as np
import numpy.typing as npt

from budgetkit.counters import encodings
from budgetkit.counters.estimate import SCALE, WINDOW, load_weights, stretches

__all__ = ["Sample", "sampled"]

_SLICE: Final = 1_000  # characters
_MOVE: Final = 60  # characters that an end is moved by at most
_LEAST: Final = 24  # slices
_SHARE: Final = 0.02  # of the text that is counted exactly
_SMALL: Final = 200_000  # characters; a shorter text is counted whole


@dataclass(frozen=True, slots=True)
class Sample:
    """An estimated count and the interval that holds the true one in about 95 of 100 texts.

    Examples
    --------
    >>> Sample(1_000, 980, 1_020, 40).error
    0.02
    """

    tokens: int
    low: int
    high: int
    slices: int

    @property
    def error(self) -> float:
        """Half of the interval, as a share of the estimate."""
        return (self.high - self.low) / 2 / max(self.tokens, 1)


def sampled(text: str, encoding: str = "o200k_base", seed: int = 0) -> Sample:
    """Count a large text by slices.

    Examples
    --------
    >>> found = sampled("The quick brown fox jumps over the lazy dog. " * 10_000)
    >>> found.low <= 100_001 <= found.high, found.slices
    (True, 24)
    """
    count = encodings.counting_function(encoding)
    if len(text) <= _SMALL:
        tokens = count(text)
        return Sample(tokens, tokens, tokens, 0)
    slices = max(_LEAST, int(len(text) * _SHARE / _SLICE))
    spans = _spans(text, slices, Random(seed))
    exact = np.array([count(text[start:end]) for start, end in spans], float)
    rough = _between(encoding, text, [0, *(place for span in spans for place in span), len(text)])
    return _ratio(
        float(rough.sum()), exact, rough[1::2], sum(end - start for start, end in spans) / len(text)
    )


def _between(encoding: str, text: str, places: list[int]) -> npt.NDArray[np.float64]:
    """Estimate the tokens between places of a text, in one pass."""
    weights = np.concatenate([*map(load_weights(encoding).values, stretches(text))])
    units = [len(text[a:b].encode("utf-16-le", "surrogatepass")) // 2 for a, b in pairwise(places)]
    ends = [-(-end // WINDOW) for end in accumulate(units, initial=places[0])]
    return np.array([weights[a:b].sum(dtype=np.int64) / SCALE for a, b in pairwise(ends)])


def _spans(text: str, slices: int, random: Random) -> list[tuple[int, int]]:
    """Draw a slice in each stratum, its ends moved to before a blank, where a token always ends."""
    stratum = len(text) / slices
    found = []
    for number in range(slices):
        start = int(number * stratum + random.random() * (stratum - _SLICE - _MOVE))
        found.append((_cut(text, start), _cut(text, start + _SLICE)))
    return found


def _cut(text: str, place: int) -> int:
    blank = text.find(" ", place, place + _MOVE)
    return min(place, len(text)) if blank < 1 or text[blank - 1].isspace() else blank


def _ratio(
    whole: float, exact: npt.NDArray[np.float64], rough: npt.NDArray[np.float64], part: float
) -> Sample:
    ratio = exact.sum() / max(rough.sum(), 1.0)
    n = len(exact)
    off = exact - ratio * rough
    # How far slices are off is too much where kinds follow one another, how it changes too little where few are odd.
    spread = float((off**2).sum() + (np.diff(off) ** 2).sum() / 2) / 2
    deviation = math.sqrt(spread * n / (n - 1) * (1 - part)) / max(float(rough.sum()), 1.0)
    # Half as many degrees of freedom, for what is off is skew.
    half = _student((n - 1) / 2) * deviation * whole
    tokens = ratio * whole
    return Sample(round(tokens), max(0, math.floor(tokens - half)), math.ceil(tokens + half), n)


def _student(freedom: float) -> float:
    """Give the 97.5 % quantile of Student's t (Cornish and Fisher's expansion, good to 0.001 from 10 on)."""
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
