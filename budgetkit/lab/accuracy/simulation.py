"""Windows filled with documents drawn at random: how many tokens one that an estimate calls full really holds.

    ratio  = sum of exact / sum of estimates            of one window
    safety = 1 - usable / window                        usable x (quantile of its ratio at 1 - risk) = window

A window is of one kind and of one source of it. Where the kind at hand is known, it is one of the next source of that
kind (:mod:`budgetkit.lab.accuracy.kind_windows`); where it is not, of any kind, and the one that asks for most decides
(:mod:`budgetkit.lab.accuracy.resampled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.lab.accuracy.kind_windows import OfOneKind, Sources
from budgetkit.lab.accuracy.kinds import CLASS, LANGUAGE, cells_of
from budgetkit.lab.accuracy.resampled import Resampled
from budgetkit.promise import needed

Floats = npt.NDArray[np.float64]
MIXED: Final = "mixed"  # the mix in which a window has documents of all kinds
KINDS: Final = (CLASS, LANGUAGE)  # by default a window is of one of these, whichever asks for more
_STEPS: Final = 12  # most rounds until usable part and ratio agree
_NEAR: Final = 1e-4
#: Sources from which windows of one kind are told: as many as a risk of 5 % needs; a smaller risk is said to lack some.
FEWEST_TO_SPREAD: Final = needed(0.05)


@dataclass(frozen=True, slots=True)
class FilledWindows:
    """Windows of a size, filled at random in one mix or several, to read the safety share of any risk off."""

    window: int
    corpora: tuple[Resampled, ...] | tuple[OfOneKind, ...]
    seen: int = 0  # sources, where kinds were named
    units_are: str = "sources"
    _known: dict[tuple[int, float], Floats] = field(default_factory=dict, compare=False, repr=False)

    def ratios(self, size: float, mix: int = 0) -> Floats:
        """Fill windows until the estimate says `size`; return exact tokens for an estimated one, by resample."""
        if (mix, size) not in self._known:
            self._known[mix, size] = self.corpora[mix].ratios(size)
        return self._known[mix, size]

    @property
    def units(self) -> int:
        """On how many sources the windows of kinds that are known rest; 0 where no kind is."""
        return min(mix.units for mix in self.corpora)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The classes and languages that the windows are of, where these are known."""
        return tuple(dict.fromkeys(label for mix in self.corpora for label in mix.label))

    def share(self, risk: float) -> float:
        """Return the smallest share to hold back so that at most so many windows overflow.

        Examples
        --------
        >>> errors = pd.DataFrame({"exact": [125], "estimate": [100]})
        >>> filled_windows(errors, 1_000).share(0.05)
        0.2
        """
        return max(self._found(mix, risk) for mix in range(len(self.corpora)))

    def interval(self, risk: float) -> tuple[float, float]:
        """Return the 95 % interval of that share, over the resampled corpora."""
        mix = self.worst(risk)
        ratio = self.ratios(self.window * (1 - self._found(mix, risk)), mix)
        shares = _quantile(ratio, self.corpora[mix].allowed(risk), axis=1)
        low, high = np.quantile(np.maximum(0.0, 1 - 1 / shares), (0.025, 0.975))
        return float(low), float(high)

    def needed(self, risk: float) -> float:
        """Return the share that the texts that were seen need, in the mix that asks for most."""
        mix = self.worst(risk)
        return self.corpora[mix].needed(self.window * (1 - self._found(mix, risk)), risk)

    def worst(self, risk: float) -> int:
        """Return the number of the mix that asks for most."""
        return int(np.argmax([self._found(mix, risk) for mix in range(len(self.corpora))]))

    def at(self, risk: float) -> Floats:
        """Return the ratios of windows that are filled to the whole size, in the mix that asks for most."""
        return self.ratios(float(self.window), self.worst(risk)).ravel()

    def _found(self, mix: int, risk: float) -> float:
        """Fill less and less, until what is filled holds no more than the window."""
        allowed = self.corpora[mix].allowed(risk)
        share = 0.0
        before = -1.0
        for _ in range(_STEPS):
            if share - before < _NEAR:
                break
            ratio = float(_quantile(self.ratios(self.window * (1 - share), mix), allowed))
            share, before = max(share, 1 - 1 / ratio), share
        return round(share, 12)


def _quantile(ratio: Floats, risk: float, axis: int | None = None) -> Floats:
    return np.asarray(np.quantile(ratio, 1 - risk, axis=axis, method="higher"))


def filled_windows(
    errors: pd.DataFrame,
    window: int,
    window_mix: str | None = None,
    seed: int = 0,
    kinds: Sequence[str] = (),
) -> FilledWindows:
    """Make windows of documents drawn at random; they are filled when they are asked for.

    Of kinds that are known they are those of the next source of each, where there are sources enough for the risk.

    Examples
    --------
    >>> errors = pd.DataFrame({"exact": [110, 100, 90] * 400, "estimate": [100] * 1_200})
    >>> filled_windows(errors, window=100).share(0.05).__round__(3)
    0.091
    """
    columns = columns_of(errors, window_mix)
    of_any_kind = FilledWindows(
        window, tuple(Resampled.of(errors, column, seed) for column in columns)
    )
    if window_mix is None:
        cells = cells_of(errors, kinds)
    else:
        cells = None
    if cells is None:
        return of_any_kind

    groups = Sources.of(errors, cells.columns)
    seen = len(np.unique(groups.sources))
    if seen < FEWEST_TO_SPREAD:
        return replace(of_any_kind, seen=seen, units_are=groups.units_are)
    numbers = [groups.labels.index(label) for label in cells.labels]
    return FilledWindows(window, tuple(OfOneKind.of(groups, numbers, seed)), seen, groups.units_are)


def columns_of(errors: pd.DataFrame, window_mix: str | None) -> Sequence[str | None]:
    """Return the columns of which a window has only one value; None stands for windows that mix all documents."""
    if window_mix is not None:
        if window_mix == MIXED:
            return (None,)
        return (window_mix,)
    return [column for column in KINDS if column in errors] or (None,)
