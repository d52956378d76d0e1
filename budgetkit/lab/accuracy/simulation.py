"""Windows filled with documents drawn at random: how many tokens one that an estimate calls full really holds.

    ratio  = sum of exact / sum of estimates            of one window
    safety = 1 - usable / window                        usable x (quantile of its ratio at 1 - risk) = window

A window is of one kind and of one source of it. What is known of kinds is what was seen of them: each window is drawn
from a corpus resampled at three steps (kinds, the sources of each, the documents of each; A. C. Davison, D. V. Hinkley,
Bootstrap Methods, 1997, section 3.8), so that its quantiles hold for sources that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MIXED: Final = "mixed"  # the mix in which a window has documents of all kinds
KINDS: Final = ("class", "language")  # by default a window is of one of these, whichever asks for more
REPEATS: Final = 120  # resampled corpora
_EACH: Final = 100  # windows of each
_AT_ONCE: Final = 2_000_000  # documents drawn at once, so that memory stays small
# Most documents drawn for one window. A window that holds more of them spreads less about the mean, by the root of
# how many more: the spread is scaled, the mean is exact.
_DRAWN: Final = 150
_STEPS: Final = 12  # most rounds until usable part and ratio agree
_NEAR: Final = 1e-4


@dataclass(frozen=True, slots=True)
class FilledWindows:
    """Windows of a size, filled at random in one mix or several, to read the safety share of any risk off."""

    window: int
    corpora: tuple[_Resampled, ...]
    _known: dict[tuple[int, float], Floats] = field(default_factory=dict, compare=False, repr=False)

    def ratios(self, size: float, mix: int = 0) -> Floats:
        """Fill windows until the estimate says `size`; return exact tokens for an estimated one, by resample."""
        if (mix, size) not in self._known:
            self._known[mix, size] = self.corpora[mix].ratios(size)
        return self._known[mix, size]

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
        shares = _quantile(self.ratios(self.window * (1 - self._found(mix, risk)), mix), risk, axis=1)
        low, high = np.quantile(np.maximum(0.0, 1 - 1 / shares), (0.025, 0.975))
        return float(low), float(high)

    def worst(self, risk: float) -> int:
        """Return the number of the mix that asks for most."""
        return int(np.argmax([self._found(mix, risk) for mix in range(len(self.corpora))]))

    def at(self, risk: float) -> Floats:
        """Return the ratios of windows that are filled to the whole size, in the mix that asks for most."""
        return self.ratios(float(self.window), self.worst(risk)).ravel()

    def _found(self, mix: int, risk: float) -> float:
        """Fill less and less, until what is filled holds no more than the window."""
        share, before = 0.0, -1.0
        for _ in range(_STEPS):
            if share - before < _NEAR:
                break
            ratio = float(_quantile(self.ratios(self.window * (1 - share), mix), risk))
            share, before = max(share, 1 - 1 / ratio), share
        return round(share, 12)


def _quantile(ratio: Floats, risk: float, axis: int | None = None) -> Floats:
    return np.asarray(np.quantile(ratio, 1 - risk, axis=axis, method="higher"))


def filled_windows(errors: pd.DataFrame, window: int, window_mix: str | None = None, seed: int = 0) -> FilledWindows:
    """Make windows of documents drawn at random; they are filled when they are asked for.

    Examples
    --------
    >>> errors = pd.DataFrame({"exact": [110, 100, 90] * 400, "estimate": [100] * 1_200})
    >>> filled_windows(errors, window=100).share(0.05).__round__(3)
    0.091
    """
    return FilledWindows(
        window, tuple(_Resampled.of(errors, column, seed) for column in columns_of(errors, window_mix))
    )


def columns_of(errors: pd.DataFrame, window_mix: str | None) -> Sequence[str | None]:
    """Return the columns of which a window has only one value; None stands for windows that mix all documents."""
    if window_mix is not None:
        return (None,) if window_mix == MIXED else (window_mix,)
    return [column for column in KINDS if column in errors] or (None,)


@dataclass(frozen=True, slots=True, eq=False)
class _Resampled:
    """Exact and estimated tokens of documents, sorted by group: a source of a kind; groups are sorted by kind."""

    exact: Floats
    estimate: Floats
    documents: Ints
    groups: Ints
    seed: int

    @classmethod
    def of(cls, errors: pd.DataFrame, column: str | None, seed: int) -> _Resampled:
        kind = np.zeros(len(errors), "int64") if column is None else pd.factorize(errors[column])[0]
        source = pd.factorize(errors["source"])[0] if "source" in errors and column else np.zeros(len(errors), "int64")
        order = np.lexsort((source, kind))
        group = np.unique(np.stack((kind, source)), axis=1, return_counts=True)
        exact, estimate = (errors[name].to_numpy(float)[order] for name in ("exact", "estimate"))
        return cls(exact, np.maximum(estimate, 1), group[1], np.bincount(group[0][0]), seed)

    def ratios(self, size: float) -> Floats:
        """Fill windows from each resampled corpus; the group that fills one is drawn in proportion to its documents."""
        random = np.random.default_rng(self.seed)
        return np.array([self._filled(size, *self._drawn(random), random) for _ in range(REPEATS)])

    def _drawn(self, random: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw kinds, sources of each, and documents of each source; return these and how many each source has."""
        kinds = random.integers(0, len(self.groups), len(self.groups))
        groups = _within(self.groups, kinds, random)
        return _within(self.documents, groups, random), self.documents[groups]

    def _filled(self, size: float, drawn: Ints, many: Ints, random: np.random.Generator) -> Floats:
        exact, estimate = self.exact[drawn], self.estimate[drawn]
        starts = np.cumsum(many) - many
        sums = np.add.reduceat(estimate, starts)
        documents = np.maximum(1, np.rint(size * many / sums)).astype("int64")  # in a window
        fill = np.minimum(documents, _DRAWN)
        mean, narrower = np.add.reduceat(exact, starts) / sums, np.sqrt(fill / documents)
        chosen = np.repeat(np.arange(len(many)), many)[random.integers(0, len(drawn), _EACH)]
        ratios = []
        for part in _parts(chosen, fill[chosen]):
            first = np.cumsum(fill[part]) - fill[part]
            inside = np.repeat(starts[part], fill[part]) + _below(np.repeat(many[part], fill[part]), random)
            ratio = np.add.reduceat(exact[inside], first) / np.add.reduceat(estimate[inside], first)
            ratios.append(np.where(narrower[part] < 1, mean[part] + (ratio - mean[part]) * narrower[part], ratio))
        return np.concatenate(ratios)


def _within(many: Ints, chosen: Ints, random: np.random.Generator) -> Ints:
    """Draw from each chosen group as many members as it has, with replacement; members have running numbers."""
    starts = np.cumsum(many) - many
    room = np.repeat(many[chosen], many[chosen])
    return np.asarray(np.repeat(starts[chosen], many[chosen]) + _below(room, random))


def _below(room: Ints, random: np.random.Generator) -> Ints:
    """Draw a whole number from 0 up to each of these."""
    drawn: Ints = np.minimum((random.random(len(room)) * room).astype("int64"), room - 1)
    return drawn


def _parts(chosen: Ints, documents: Ints) -> Iterator[Ints]:
    """Cut windows into parts of at most so many documents, at least one window each."""
    piece = np.cumsum(documents) // _AT_ONCE
    yield from (chosen[piece == number] for number in np.unique(piece))
