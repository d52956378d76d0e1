"""Resampled texts: windows of one kind and one source of it, where nobody says which kind.

What is known of kinds is what was seen of them: each window is drawn from a corpus resampled at three steps (kinds, the
sources of each, the documents of each; A. C. Davison, D. V. Hinkley, Bootstrap Methods, 1997, section 3.8), so that its
quantiles hold for sources that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
REPEATS: Final = 120  # resampled corpora
EACH: Final = 100  # windows of each
_AT_ONCE: Final = 2_000_000  # documents drawn at once, so that memory stays small
# Most documents drawn for one window. A window that holds more of them spreads less about the mean, by the root of
# how many more: the spread is scaled, the mean is exact.
DRAWN: Final = 150


@dataclass(frozen=True, slots=True, eq=False)
class Resampled:
    """Exact and estimated tokens of documents, sorted by group: a source of a kind; groups are sorted by kind."""

    exact: Floats
    estimate: Floats
    documents: Ints
    groups: Ints
    seed: int
    units: int = 0
    label: tuple[str, ...] = ()

    @classmethod
    def of(cls, errors: pd.DataFrame, column: str | None, seed: int) -> Resampled:
        """Sort documents by the kinds of a column, and by the sources of each."""
        if column is None:
            kind = np.zeros(len(errors), "int64")
        else:
            kind = pd.factorize(errors[column])[0]
        if "source" in errors and column:
            source = pd.factorize(errors["source"])[0]
        else:
            source = np.zeros(len(errors), "int64")
        order = np.lexsort((source, kind))
        group = np.unique(np.stack((kind, source)), axis=1, return_counts=True)
        exact, estimate = (errors[name].to_numpy(float)[order] for name in ("exact", "estimate"))
        return cls(exact, np.maximum(estimate, 1), group[1], np.bincount(group[0][0]), seed)

    def allowed(self, risk: float) -> float:
        """Return how many of the windows drawn may overflow: resampled kinds speak of the next one as they are."""
        return risk

    def needed(self, size: float, risk: float) -> float:
        """Return the share that windows of the kinds that were seen need, each as often as it has documents."""
        kind = np.repeat(np.repeat(np.arange(len(self.groups)), self.groups), self.documents)
        exact, estimate = (np.bincount(kind, column) for column in (self.exact, self.estimate))
        ratio = np.quantile((exact / estimate)[kind], 1 - risk, method="higher")
        if not ratio:
            return 0.0
        return max(0.0, 1 - 1 / float(ratio))

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
        exact = self.exact[drawn]
        estimate = self.estimate[drawn]
        starts = np.cumsum(many) - many
        sums = np.add.reduceat(estimate, starts)
        documents = np.maximum(1, np.rint(size * many / sums)).astype("int64")  # in a window
        fill = np.minimum(documents, DRAWN)
        mean = np.add.reduceat(exact, starts) / sums
        narrower = np.sqrt(fill / documents)
        chosen = np.repeat(np.arange(len(many)), many)[random.integers(0, len(drawn), EACH)]
        ratios = []
        for part in _parts(chosen, fill[chosen]):
            first = np.cumsum(fill[part]) - fill[part]
            inside = np.repeat(starts[part], fill[part]) + _below(
                np.repeat(many[part], fill[part]), random
            )
            ratio = np.add.reduceat(exact[inside], first) / np.add.reduceat(estimate[inside], first)
            ratios.append(
                np.where(
                    narrower[part] < 1, mean[part] + (ratio - mean[part]) * narrower[part], ratio
                )
            )
        return np.concatenate(ratios)


def _within(many: Ints, chosen: Ints, random: np.random.Generator) -> Ints:
    """Draw from each chosen group as many members as it has, with replacement; members have running numbers."""
    starts = np.cumsum(many) - many
    room = np.repeat(many[chosen], many[chosen])
    return np.asarray(np.repeat(starts[chosen], many[chosen]) + _below(room, random))


def _below(room: Ints, random: np.random.Generator) -> Ints:
    """Draw for each number a whole number from 0 up to it, itself left out."""
    drawn: Ints = np.minimum((random.random(len(room)) * room).astype("int64"), room - 1)
    return drawn


def _parts(chosen: Ints, documents: Ints) -> Iterator[Ints]:
    """Cut windows into parts of at most so many documents, at least one window each."""
    piece = np.cumsum(documents) // _AT_ONCE
    yield from (chosen[piece == number] for number in np.unique(piece))
