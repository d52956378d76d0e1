"""Windows that predict the next source of a known kind of text.

    y         = log(exact / estimate)                       of a source of one kind, such as a class in a language
    w         = n t / (n t + s)
    expected  = w * (mean y of the kind) + (1 - w) * (mean y of the class)
    variance  = s + (1 - w) t + (1 - w)^2 * (variance of the mean y of the class)
    score     = (y of a window - expected) / sqrt(variance)
    ratio     = exp(expected + (score of any window) * sqrt(variance))

Here n is the number of observed sources of the kind, s is the variance between sources of one kind, and t is the
variance between kinds of one class. For the score of a window, the expected value and the variance are computed without
the source of that window. This is the credibility formula of H. Bühlmann, "Experience rating and credibility", 1967.
The only assumption is that the scores of all sources have the same distribution as the observed scores. The arithmetic
of :mod:`budgetkit.promise` then holds for the next source: the share of observed windows that may overflow is smaller
than the risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.random import Generator

from budgetkit.plan import Floats, Ints
from budgetkit.promise import FEWEST_FOR_A_GAIN

REPEATS = 120  # resampled corpora
EACH = 100  # windows of each resampled corpus
# Maximum documents drawn for one window. For a window with more, the mean is exact, and the spread is divided by the
# square root of the ratio of both numbers.
DRAWN = 150


@dataclass(frozen=True, eq=False)
class Resampled:
    """Exact and estimated tokens of documents, sorted by kind and source."""

    exact: Floats
    estimate: Floats
    documents: Ints
    groups: Ints
    seed: int
    sources: int = 0
    label: tuple[str, ...] = ()

    @classmethod
    def of(cls, errors: pd.DataFrame, column: str | None, seed: int) -> Resampled:
        """Sort documents by the kinds in a column, then by source.

        If `column` is None, all documents count as one kind from one source.
        """
        kind = source = np.zeros(len(errors), "int64")
        if column is not None:
            kind = pd.factorize(errors[column])[0]
            if "source" in errors:
                source = pd.factorize(errors["source"])[0]
        groups, sizes = np.unique(np.stack((kind, source)), axis=1, return_counts=True)
        exact, estimate = _tokens(errors)[:, np.lexsort((source, kind))]
        return cls(exact, estimate, sizes, np.bincount(groups[0]), seed)

    def allowed(self, risk: float) -> float:
        """Return the share of drawn windows that may overflow."""
        return risk

    def needed(self, _: float, risk: float) -> float:
        """Return the share to reserve if only the observed documents occur."""
        kind = np.repeat(np.repeat(np.arange(len(self.groups)), self.groups), self.documents)
        exact, estimate = (np.bincount(kind, column) for column in (self.exact, self.estimate))
        ratio = float(np.quantile((exact / estimate)[kind], 1 - risk, method="higher"))
        return 1 - 1 / max(ratio, 1)

    def ratios(self, size: float) -> Floats:
        """Return ratios of exact to estimated tokens in windows of resampled corpora.

        Each row of the result contains the windows of one resampled corpus.
        """
        random = np.random.default_rng(self.seed)
        ratios = []
        for _ in range(REPEATS):
            # Kinds, then sources of each kind, then documents of each source.
            kinds = random.integers(0, len(self.groups), len(self.groups))
            groups = _within(self.groups, kinds, random)
            drawn = _within(self.documents, groups, random)
            ratios.append(self._filled(size, drawn, self.documents[groups], random))
        return np.array(ratios)

    def _filled(self, size: float, drawn: Ints, many: Ints, random: Generator) -> Floats:
        """Return the ratios of windows, each filled from one of the drawn groups.

        `drawn` are the positions of the documents, and `many` are the sizes of their groups.
        """
        starts = np.cumsum(many) - many
        group = np.repeat(np.arange(len(many)), many)[random.integers(0, len(drawn), EACH)]
        exact, estimate = (
            np.add.reduceat(column[drawn], starts)[group] for column in (self.exact, self.estimate)
        )
        documents = np.maximum(1, np.rint(size * many[group] / estimate)).astype("int64")
        fill = np.minimum(documents, DRAWN)
        first = np.cumsum(fill) - fill
        inside = _below(np.repeat(many[group], fill), random)
        places = drawn[np.repeat(starts[group], fill) + inside]
        ratio = np.add.reduceat(self.exact[places], first) / np.add.reduceat(
            self.estimate[places], first
        )
        mean = exact / estimate
        narrowed = mean + (ratio - mean) * np.sqrt(fill / documents)
        return np.where(fill < documents, narrowed, ratio)


def _tokens(errors: pd.DataFrame) -> Floats:
    """Return the exact and the estimated tokens of documents, as two rows.

    An estimate is at least 1.
    """
    return np.stack((errors["exact"].to_numpy(float), np.maximum(errors["estimate"], 1)))


def _within(many: Ints, chosen: Ints, random: Generator) -> Ints:
    """Resample the members of each chosen group, and return their positions."""
    starts = np.cumsum(many) - many
    sizes = np.repeat(many[chosen], many[chosen])
    return np.repeat(starts[chosen], many[chosen]) + _below(sizes, random)


def _below(sizes: Ints, random: Generator) -> Ints:
    """Draw a random index below each size."""
    drawn: Ints = np.minimum((random.random(sizes.shape) * sizes).astype("int64"), sizes - 1)
    return drawn


_WINDOWS = 40  # drawn for each source in each kind
# weights of the mean variances over all classes, toward which those of one class are shrunk
_PRIOR_SOURCES = 5
_PRIOR_KINDS = 3
_LEAST_VARIANCE = 1e-8
# Sizes are rounded to so many steps per doubling, because windows of similar sizes spread alike.
_SIZES_BETWEEN_DOUBLES = 4


def has_sources(errors: pd.DataFrame) -> bool:
    """Return True if the documents come from at least six sources."""
    return "source" in errors and errors["source"].nunique() >= FEWEST_FOR_A_GAIN


@dataclass(frozen=True)
class Sources:
    """Documents grouped by source and kind.

    Attributes
    ----------
    documents : list of float64 array, shape (2, documents of the group)
        The exact and the estimated tokens of each group's documents.
    classes, kinds, sources : int64 array, shape (groups,)
        Numbers of each group's class, kind and source.
    labels : list of tuple of str
        The name of each kind.
    names : list of str
        The source of each group; a document without a source is its own source.
    """

    documents: Sequence[Floats]
    classes: Ints
    kinds: Ints
    sources: Ints
    labels: Sequence[tuple[str, ...]]
    names: Sequence[str]
    _windows: dict[int, Floats] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, errors: pd.DataFrame, columns: Sequence[str]) -> Sources:
        """Group documents by the given columns and by source.

        If there are fewer than six sources, each document counts as a source.
        """
        if has_sources(errors):
            source = pd.factorize(errors["source"])[0]
        else:
            source = np.arange(len(errors))
        labels = list(zip(*(errors[column].astype(str) for column in columns), strict=True))
        kind, names = pd.factorize(pd.Series(labels, dtype=object))
        (group_kinds, group_sources), first, sizes = np.unique(
            np.stack((kind, source)), axis=1, return_index=True, return_counts=True
        )
        # Documents used as sources vary as sources do, but only named sources count.
        named = np.arange(len(errors)).astype(str)
        if "source" in errors:
            named = np.where(errors["source"] == "", named, errors["source"].astype(str))
        tokens = _tokens(errors)[:, np.lexsort((source, kind))]
        parents = [label[:-1] for label in names]
        parent = pd.factorize(pd.Series(parents, dtype=object))[0]
        return cls(
            documents=np.split(tokens, np.cumsum(sizes)[:-1], axis=1),
            classes=parent[group_kinds],
            kinds=group_kinds,
            sources=group_sources,
            labels=list(names),
            names=[str(name) for name in named[first]],
        )

    @cached_property
    def middle(self) -> Floats:
        """Logarithm of the ratio of exact to estimated tokens in each group."""
        return np.array(
            [np.log(max(exact.sum(), 1) / estimate.sum()) for exact, estimate in self.documents]
        )

    @cached_property
    def variances(self) -> tuple[Floats, Floats]:
        """Each class's variances between sources of a kind and between kinds.

        The variances are estimated by the method of moments and shrunk towards their means over all classes.
        """
        classes = int(self.classes.max()) + 1
        many = np.bincount(self.kinds)
        means = np.bincount(self.kinds, self.middle) / many
        class_of = np.zeros(len(many), "int64")
        class_of[self.kinds] = self.classes

        # Between sources of one kind.
        squares = np.bincount(
            self.classes, (self.middle - means[self.kinds]) ** 2, minlength=classes
        )
        freedom = np.bincount(class_of, many - 1, minlength=classes)
        pooled = squares.sum() / max(1, freedom.sum())
        within = (squares + _PRIOR_SOURCES * pooled) / (freedom + _PRIOR_SOURCES)

        # Between kinds of one class, beyond the variance of their sources.
        degrees = np.bincount(class_of, minlength=classes) - 1.0
        of_class = pd.DataFrame({"mean": means, "inverse": 1 / many}).groupby(class_of)
        explained = within * of_class["inverse"].mean()
        # The variance of a class with one kind is NaN.
        apart = np.nan_to_num(np.maximum(0.0, of_class["mean"].var() - explained))
        shared = float((apart * degrees).sum() / max(1.0, degrees.sum()))
        between = (apart * degrees + _PRIOR_KINDS * shared) / (degrees + _PRIOR_KINDS)
        return np.maximum(within, _LEAST_VARIANCE), between

    def predicted(self, kind: int, without: int | None = None) -> tuple[float, float]:
        """Predict the log ratio of a kind's next source.

        The variance of the prediction is returned too. The source `without`, if any, is left out.
        """
        number = int(self.classes[self.kinds == kind][0])
        others = self.sources != without
        seen = (self.classes == number) & others
        within, between = (float(variances[number]) for variances in self.variances)
        if not seen.any():
            mean = float(self.middle[others].mean()) if others.any() else 0.0
            return mean, within + 2 * between + float(self.middle.var())

        # The mean of the class: of its kinds, each weighted by its precision.
        many = np.bincount(self.kinds[seen], minlength=kind + 1)
        sums = np.bincount(self.kinds[seen], self.middle[seen], minlength=kind + 1)
        here = many > 0
        sureness = 1 / (between + within / many[here])
        of_class = float((sureness * sums[here] / many[here]).sum() / sureness.sum())

        sources = int(many[kind])
        weight = sources * between / (sources * between + within)
        mean = sums[kind] / sources if sources else 0.0
        variance = within + (1 - weight) * between + (1 - weight) ** 2 / float(sureness.sum())
        return float(weight * mean + (1 - weight) * of_class), float(variance)

    @cached_property
    def predictions(self) -> Floats:
        """Each group's prediction from the other sources, with its standard deviation."""
        groups = zip(self.kinds.tolist(), self.sources.tolist(), strict=True)
        mean, variance = np.array([self.predicted(kind, source) for kind, source in groups]).T
        return np.stack((mean, np.sqrt(variance)))

    def windows(self, size: float) -> Floats:
        """Return the log ratios of windows filled from each group.

        Sizes are rounded, and windows of equal rounded sizes are filled only once.
        """
        step = round(_SIZES_BETWEEN_DOUBLES * float(np.log2(max(size, 1))))
        if step not in self._windows:
            random = np.random.default_rng(step)
            rounded = 2 ** (step / _SIZES_BETWEEN_DOUBLES)
            self._windows[step] = np.array(
                [_filled(exact, estimate, rounded, random) for exact, estimate in self.documents]
            )
        return self._windows[step]


def _filled(exact: Floats, estimate: Floats, size: float, random: Generator) -> Floats:
    """Return the log ratios of windows filled with documents of one group."""
    documents = max(1, round(size * len(estimate) / estimate.sum()))
    fill = min(documents, DRAWN)
    places = random.integers(0, len(estimate), (_WINDOWS, fill))
    ratio = exact[places].sum(axis=1) / estimate[places].sum(axis=1)
    mean = exact.sum() / estimate.sum()
    narrower = np.sqrt(fill / documents)
    return np.asarray(np.log(np.maximum(mean + (ratio - mean) * narrower, 1e-9)))


@dataclass(frozen=True, eq=False)
class KindWindows:
    """Windows of the next source of one kind."""

    groups: Sources
    kind: int
    seed: int

    @property
    def label(self) -> tuple[str, ...]:
        """The name of the kind."""
        return self.groups.labels[self.kind]

    @property
    def sources(self) -> int:
        """The number of sources that support the statistical guarantee.

        These are all sources of the kind's class.
        """
        groups = zip(self.groups.names, self.groups.kinds.tolist(), strict=True)
        labels = self.groups.labels
        return len({name for name, kind in groups if labels[kind][0] == self.label[0]})

    def allowed(self, risk: float) -> float:
        """Return the share of observed windows that may overflow."""
        units = len(np.unique(self.groups.sources))
        return max(0.0, (risk * (units + 1) - 1) / units)

    def needed(self, size: float, risk: float) -> float:
        """Return the share to reserve if only observed texts occur."""
        seen = self.groups.windows(size)[self.groups.kinds == self.kind]
        return max(0.0, 1 - float(np.exp(-np.quantile(seen, 1 - risk, method="higher"))))

    def ratios(self, size: float) -> Floats:
        """Return the ratios of exact to estimated tokens in windows.

        The windows have `size` estimated tokens.

        Each row of the result contains the windows of one resample of the sources.
        """
        random = np.random.default_rng(self.seed)
        expected, spread = self.groups.predictions
        scores = (self.groups.windows(size) - expected[:, None]) / spread[:, None]
        source = pd.factorize(self.groups.sources)[0]
        order = np.argsort(source, kind="stable")
        many = np.bincount(source)
        starts = np.cumsum(many) - many

        # Every source has the same weight, however many kinds it has.
        sources = random.integers(0, len(many), (REPEATS, len(many)))
        chosen = np.take_along_axis(sources, random.integers(0, len(many), (REPEATS, EACH)), axis=1)
        group = order[starts[chosen] + _below(many[chosen], random)]
        drawn = scores[group, random.integers(0, scores.shape[1], chosen.shape)]

        mean, variance = self.groups.predicted(self.kind)
        return np.asarray(np.exp(mean + drawn * np.sqrt(variance)))
