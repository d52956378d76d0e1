"""Estimators that lack a part: each is trained without it, and does not look it up.

What an estimate gains by a part, in error, and what it loses, in time, is then seen beside the estimator that has all
of them and learned from the same text. That is little text, so that training takes seconds: their errors compare with
one another, and not with the estimator that is shipped.
"""

from __future__ import annotations

import sys
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np

from budgetkit import files
from budgetkit.counters.estimate import (
    BEFORE,
    LEAST,
    LEVELS,
    WINDOW,
    Weights,
    look_up_entries,
    windows,
)

__all__ = ["PARTS", "Part", "trained", "training"]

FIRST = BEFORE // WINDOW  # the first window that is not context
GOLDEN = np.uint32(2_654_435_761)  # by which the keys of windows are spread
LEARN_FROM = 60_000  # characters of a class and language of one source


class WithoutLong(Weights):
    """Looks up no windows with the two units before them."""

    def values(self, units: Any) -> Any:
        """Look up what each window adds."""
        stretch = windows(units, self.classes)
        own = (stretch.pairs[FIRST:] * GOLDEN)[np.newaxis]
        found, missing = look_up_entries(self.hashed[:1], own)
        return self._completed(
            stretch, (found[0] + np.uint32(LEAST)).astype(np.int16), missing[0], raw=True
        )

    def _completed(self, stretch: Any, total: Any, missing: Any, raw: bool) -> Any:
        """Add what the levels after the hashed ones say."""
        at = missing.nonzero()[0]
        if len(at):
            total[at] += self._unknown(stretch, at)
        if raw and stretch.units is not None:
            first, second = look_up_entries(self.raw, stretch.raw())[0].view(np.int32)
            total[stretch.wide] += (first + second - 2 * LEAST).astype(np.int16)
        at = stretch.runs()
        return self._with_runs(total, at, stretch) if len(at) else total


class WithoutRaw(WithoutLong):
    """Looks up no pairs of units that are not ASCII, only their classes."""

    def values(self, units: Any) -> Any:
        """Look up what each window adds."""
        stretch = windows(units, self.classes)
        found, missing = look_up_entries(self.hashed, stretch.keys())
        found[0] += found[1]
        return self._completed(stretch, found[0].astype(np.int16), missing[0], raw=False)


class WithoutShapes(Weights):
    """Looks up pairs alone where a window is not held."""

    def _unknown(self, stretch: Any, at: Any) -> Any:
        both = self.pairs.take(stretch.pairs[FIRST:][at].view(np.uint16), mode="wrap")
        return both[0::2] + both[1::2]


class PairsAlone(WithoutLong):
    """Looks up nothing but pairs."""

    def values(self, units: Any) -> Any:
        """Look up what each window adds."""
        stretch = windows(units, self.classes)
        both = self.pairs.take(stretch.pairs[FIRST:].view(np.uint16), mode="wrap")
        total = both[0::2] + both[1::2] + np.int16(2 * LEAST)
        at = stretch.runs()
        return self._with_runs(total, at, stretch) if len(at) else total


@dataclass(frozen=True, slots=True)
class Part:
    """What an estimator is trained and read without."""

    reads: type[Weights] = Weights
    without: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    knobs: Mapping[str, object] = field(default_factory=dict)
    text: int = 1  # every so many documents are learned from


PARTS: Mapping[str, Part] = {
    "all of it": Part(),
    "without shapes": Part(WithoutShapes, ("shape",)),
    "without the units themselves": Part(WithoutRaw, ("raw",)),
    "without the two units before": Part(WithoutLong, ("long",)),
    "pairs of classes alone": Part(PairsAlone, ("own", "raw", "long", "shape")),
    "tables an eighth as large": Part(sizes={"own": 2**16, "raw": 2**14, "long": 2**16}),
    "windows seen once held too": Part(knobs={"SEEN": 1}),
    "from a quarter of the text": Part(text=4),
}


def training() -> Any:
    """Return the module that trains the estimator, which is a script."""
    folder = str(files.data_folder().parent / "scripts")
    sys.path[:] = [*(path for path in sys.path if path != folder), folder]
    return import_module("train_estimator")


def trained(
    exact: str, lessons: Sequence[Any], parts: Mapping[str, Part]
) -> Iterator[tuple[str, Weights]]:
    """Train a table without each part."""
    train = training()
    runs = train.runs(exact)
    learned_from = [*some(lessons), *[*train.odd()][::4]]
    for name, part in parts.items():
        print(f"training: {name}", flush=True)
        yield name, one_table(train, exact, learned_from[:: part.text], part, runs)


def some(lessons: Iterable[Any]) -> Iterator[Any]:
    """Take so many characters of each class, language and source, so that training takes seconds."""
    taken: Tally[tuple[str, str]] = Tally()
    for document in lessons:
        if taken[document.kind, document.source] < LEARN_FROM:
            taken[document.kind, document.source] += len(document.text)
            yield document


def one_table(
    train: Any, exact: str, lessons: Sequence[Any], part: Part, runs: tuple[Any, Any]
) -> Weights:
    """Train one table; levels that are left out are empty in it."""
    sizes = {level: part.sizes.get(level, size) for level, size in LEVELS.items()}
    kept = {level: size for level, size in sizes.items() if level not in part.without}
    with (
        mock.patch.dict(LEVELS, kept, clear=True),
        mock.patch.multiple(train, **{"SEEN": train.SEEN, **part.knobs}),
    ):
        lesson = train.lay_out(exact, lessons)
        classes, rates = train.classified(exact, lesson)
        found = train.learned(lesson, classes, rates)
    levels = {level: np.zeros(size, np.int16) for level, size in sizes.items()} | found
    stored = {"classes": classes, "run_pairs": runs[0], "run_units": runs[1]}
    return part.reads.of(stored | {f"level_{level}": values for level, values in levels.items()})
