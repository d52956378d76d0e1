"""Texts: the corpora that can be looked at, each counted once for each counter.

What a move of a slider needs is looked up here, and nothing is counted again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters import Count, Counter, counter
from budgetkit.counters.memory import Memo
from budgetkit.lab.accuracy.corpora import Corpus
from budgetkit.lab.accuracy.corpora.opening import KNOWN, read
from budgetkit.lab.accuracy.simulation import FilledWindows, filled_windows
from budgetkit.lab.explorers.accuracy.chosen import CorpusSelection, batches
from budgetkit.lab.explorers.accuracy.settings import AccuracySettings
from budgetkit.lab.explorers.accuracy.speed import speed
from budgetkit.models import Model

Report = Callable[[str, float], None]
Ints = npt.NDArray[np.int64]
# what is slow to make stays longer than figures and filled windows
MOST_COUNTED = 4_000
MOST_DRAWN = 200


class Texts:
    """Corpora by name, and their counts."""

    def __init__(self, report: Report, start: AccuracySettings) -> None:
        self.report = report
        self.start = start
        self._corpora: dict[str, Corpus] = {}
        self._counters: dict[str, Counter] = {}
        self._once, self.remember = Memo(MOST_COUNTED).once, Memo(MOST_DRAWN).once

    @property
    def names(self) -> tuple[str, ...]:
        """What can be looked at: what any installation has, then what was opened."""
        return tuple(dict.fromkeys([*KNOWN, *self._corpora]))

    def add(self, name: str, corpus: Corpus) -> str:
        """Take in texts that are there already."""
        corpus_with_text = corpus.where(lambda document: bool(document.text))
        if not corpus_with_text.documents:
            raise ValueError(f"{one_line(name)} was to be counted; it has no text; give at least one document")
        free_name = self._free(name, corpus_with_text)
        self._corpora[free_name] = corpus_with_text
        return free_name

    def open(self, path: str) -> str:
        """Take in the texts at a path."""
        if path in self.names:
            return path
        self.report(f"Reading {path}", 0)
        return self.add(path, read(path))

    def take(self, name: str, content: bytes) -> str:
        """Take in a file that was sent."""
        with tempfile.TemporaryDirectory() as place:
            # a folder of its own, since documents name their folder as their source: never that of a random name
            path = Path(place, "upload", Path(name.replace("\\", "/")).name)
            try:
                path.parent.mkdir()
                path.write_bytes(content)
                return self.add(name, read(str(path)))
            except (ValueError, OSError) as problem:
                raise ValueError(str(problem).replace(str(path), name).replace(f"{path.parent}/", "")) from None

    def corpus(self, chosen: CorpusSelection) -> Corpus:
        """Return the documents."""
        return self._once((chosen, "corpus"), lambda: self._cut(chosen))

    def given(self, count: Count) -> str:
        """Return the name under which a counter is known from now on; two that differ may not share one."""
        given_counter = counter(count)
        if self._counters.setdefault(given_counter.name, given_counter) != given_counter:
            raise ValueError(
                f"two counters are called {brief(given_counter.name)}; name one of the functions otherwise"
            )
        return given_counter.name

    def counter(self, name: str | Model) -> Counter:
        """Return a counter, always the same for the same name; of a model the best that is known."""
        key = name if isinstance(name, str) else f"{name.name}, {name.encoding}"
        if key not in self._counters:
            self._counters[key] = counter(name)
        return self._counters[key]

    def counts(self, chosen: CorpusSelection, count: Counter) -> Ints:
        """Count every document."""
        return self._once((chosen, count.name, "counts"), lambda: self._count(chosen, count))

    def errors(self, chosen: CorpusSelection, count: Counter, exact: Counter) -> pd.DataFrame:
        """Compare two counters on every document."""
        return self._once((chosen, count.name, exact.name, "errors"), lambda: self._compared(chosen, count, exact))

    def filled(self, key: Hashable, errors: pd.DataFrame, window: int, window_mix: str | None) -> FilledWindows:
        """Fill windows with documents drawn at random, once for each choice of documents."""
        return self.remember((key, window, window_mix, "filled"), lambda: filled_windows(errors, window, window_mix))

    def speed(self, chosen: CorpusSelection, count: Counter) -> float:
        """Measure how fast a counter is on these texts, on this machine, once."""
        return self._once((chosen, count.name, "speed"), lambda: speed(count, self.corpus(chosen).texts))

    def _free(self, name: str, corpus: Corpus) -> str:
        """Return a name that no other texts have; the same texts keep theirs."""
        number = 1
        free_name = name
        while free_name in self.names and self._corpora.get(free_name) != corpus:
            number += 1
            free_name = f"{name} ({number})"
        return free_name

    def _cut(self, chosen: CorpusSelection) -> Corpus:
        if chosen.corpus not in self._corpora:
            if chosen.corpus not in KNOWN:
                corpus_names = quoted(self.names)
                raise LookupError(
                    f"no texts {brief(chosen.corpus)}; known are {corpus_names}; name one, or give a path"
                )
            self._corpora[chosen.corpus] = KNOWN[chosen.corpus]()
        whole = self._corpora[chosen.corpus]
        if chosen.pieces is None:
            return whole
        cut = whole.pieces(chosen.pieces // 2, chosen.pieces * 3 // 2)
        if not cut.documents:
            raise ValueError(
                f"pieces of about {chosen.pieces:,} characters were asked for; no document of "
                f"{one_line(chosen.corpus)} has {chosen.pieces // 2:,}; choose shorter pieces, or whole documents"
            )
        return cut

    def _count(self, chosen: CorpusSelection, count: Counter) -> Ints:
        texts = self.corpus(chosen).texts
        results: list[int] = []
        for batch in batches(texts):
            if len(batch) < len(texts):
                self.report(
                    f"Counting with {count.name}: {len(results):,} of {len(texts):,} documents",
                    len(results) / len(texts),
                )
            results += count.many(batch)
        return np.array(results, "int64")

    def _compared(self, chosen: CorpusSelection, count: Counter, exact: Counter) -> pd.DataFrame:
        right = self.counts(chosen, exact)
        estimate = self.counts(chosen, count)
        frame = self._once((chosen, "frame"), self.corpus(chosen).frame)
        results: pd.DataFrame = frame.assign(counter=count.name, exact=right, estimate=estimate)
        return results.assign(error=results["estimate"] / results["exact"] - 1)
