"""Windows filled with documents drawn at random: how many tokens one that an estimate calls full really holds.

    ratio  = sum of exact / sum of estimates            of one window
    safety = 1 - 1 / (quantile of the ratio at 1 - risk)

The windows are drawn once; every risk is read off the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["FilledWindows", "filled_windows", "ratios"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
WINDOWS: Final = 2_000  # windows filled at random
REPEATS: Final = 200  # resamples of the documents, for the uncertainty
_EACH: Final = 300  # windows of one resample
_AT_ONCE: Final = 2_000_000  # documents drawn at once, so that memory stays small
# Most documents drawn for one window, and for one of a resample. A window that holds more of them spreads less about
# the mean, by the root of how many more: the spread is scaled, the mean is exact.
_DRAWN: Final = 2_000
_DRAWN_AGAIN: Final = 150


@dataclass(frozen=True, slots=True)
class FilledWindows:
    """Windows filled at random, to read the safety share of any risk off."""

    ratios: Floats
    repeated: Floats

    def share(self, risk: float) -> float:
        """Return the smallest share to hold back so that at most so many windows overflow.

        Examples
        --------
        >>> FilledWindows(np.array([0.8, 1.0, 1.25]), np.ones((1, 3))).share(0.05)
        0.2
        """
        return round(float(_shares(self.ratios, risk)), 12)

    def interval(self, risk: float) -> tuple[float, float]:
        """Return the 95 % interval of that share."""
        low, high = np.quantile(_shares(self.repeated, risk), (0.025, 0.975))
        return float(low), float(high)


def _shares(ratio: Floats, risk: float) -> Floats:
    found: Floats = np.maximum(0.0, 1 - 1 / np.quantile(ratio, 1 - risk, axis=-1, method="higher"))
    return found


def filled_windows(errors: pd.DataFrame, window: int, together: str | None = None, seed: int = 0) -> FilledWindows:
    """Fill windows with documents drawn at random.

    Examples
    --------
    >>> errors = pd.DataFrame({"exact": [110, 100, 90] * 40, "estimate": [100] * 120})
    >>> filled_windows(errors, window=100).share(0.05).__round__(3)
    0.091
    """
    random = np.random.default_rng(seed)
    sizes = _Sizes.of(errors, together)
    ratio = sizes.ratios(window, random, WINDOWS, _DRAWN)
    repeated = [sizes.resampled(random).ratios(window, random, _EACH, _DRAWN_AGAIN) for _ in range(REPEATS)]
    return FilledWindows(ratio, np.array(repeated))


def ratios(errors: pd.DataFrame, window: int, together: str | None = None, seed: int = 0) -> Floats:
    """Fill windows and give each one's exact tokens for an estimated one, without the uncertainty.

    Examples
    --------
    >>> errors = pd.DataFrame({"exact": [50] * 9, "estimate": [100] * 9})
    >>> set(ratios(errors, window=1_000).tolist())
    {0.5}
    """
    return _Sizes.of(errors, together).ratios(window, np.random.default_rng(seed), WINDOWS, _DRAWN)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Exact and estimated tokens of each document, and the number of the group that it belongs to, from 0."""

    exact: Floats
    estimate: Floats
    group: Ints

    @classmethod
    def of(cls, errors: pd.DataFrame, together: str | None) -> _Sizes:
        group = np.zeros(len(errors), "int64") if together is None else pd.factorize(errors[together])[0]
        return cls(errors["exact"].to_numpy(float), np.maximum(errors["estimate"].to_numpy(float), 1), group)

    def resampled(self, random: np.random.Generator) -> _Sizes:
        drawn = random.integers(0, len(self.exact), len(self.exact))
        return _Sizes(self.exact[drawn], self.estimate[drawn], self.group[drawn])

    def ratios(self, window: int, random: np.random.Generator, windows: int, most: int) -> Floats:
        """Fill windows; which group fills one is chosen as often as it has documents."""
        order = np.argsort(self.group, kind="stable")
        exact, estimate = self.exact[order], self.estimate[order]
        many = np.bincount(self.group)
        sums = np.bincount(self.group, self.estimate)
        documents = np.maximum(1, np.rint(window * many / np.maximum(sums, 1))).astype("int64")  # in a window
        fill = np.minimum(documents, most)
        mean, narrower = np.bincount(self.group, self.exact) / np.maximum(sums, 1), np.sqrt(fill / documents)
        chosen = self.group[random.integers(0, len(exact), windows)]
        starts = np.cumsum(many) - many
        found = []
        for part in _parts(chosen, fill[chosen]):
            first = np.cumsum(fill[part]) - fill[part]
            room = np.repeat(many[part], fill[part])
            drawn = (random.random(len(room), dtype="float32") * room).astype("int64")
            drawn = np.minimum(drawn, room - 1) + np.repeat(starts[part], fill[part])
            ratio = np.add.reduceat(exact[drawn], first) / np.add.reduceat(estimate[drawn], first)
            found.append(np.where(narrower[part] < 1, mean[part] + (ratio - mean[part]) * narrower[part], ratio))
        return np.concatenate(found)


def _parts(chosen: Ints, documents: Ints) -> Iterator[Ints]:
    """Cut windows into parts of at most so many documents, at least one window each."""
    piece = np.cumsum(documents) // _AT_ONCE
    yield from (chosen[piece == number] for number in np.unique(piece))
