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

from budgetkit.accuracy.corpora import Corpus
from budgetkit.accuracy.explorer.chosen import CorpusSelection, batches
from budgetkit.accuracy.explorer.settings import Settings
from budgetkit.accuracy.explorer.sources import KNOWN, read
from budgetkit.accuracy.explorer.speed import speed
from budgetkit.accuracy.simulation import FilledWindows, filled_windows
from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters import Count, Counter, counter
from budgetkit.counters.memory import Memo

Report = Callable[[str, float], None]
Ints = npt.NDArray[np.int64]
MOST_COUNTED, MOST_DRAWN = 4_000, 200  # what is slow to make stays longer than figures and filled windows


class Texts:
    """Corpora by name, and their counts."""

    def __init__(self, report: Report, start: Settings) -> None:
        self.report, self.start = report, start
        self._corpora: dict[str, Corpus] = {}
        self._counters: dict[str, Counter] = {}
        self._once, self.remember = Memo(MOST_COUNTED).once, Memo(MOST_DRAWN).once

    @property
    def names(self) -> tuple[str, ...]:
        """What can be looked at: what any installation has, then what was opened."""
        return tuple(dict.fromkeys([*KNOWN, *self._corpora]))

    def add(self, name: str, corpus: Corpus) -> str:
        """Take in texts that are there already."""
        kept = corpus.where(lambda document: bool(document.text))
        if not kept.documents:
            raise ValueError(f"{one_line(name)} was to be counted; it has no text; give at least one document")
        own = self._free(name, kept)
        self._corpora[own] = kept
        return own

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
        made = counter(count)
        if self._counters.setdefault(made.name, made) != made:
            raise ValueError(f"two counters are called {brief(made.name)}; name one of the functions otherwise")
        return made.name

    def counter(self, name: str | Counter) -> Counter:
        """Return a counter, always the same for the same name."""
        if not isinstance(name, str):
            self._counters[name.name] = name
            return name
        if name not in self._counters:
            self._counters[name] = counter(name)
        return self._counters[name]

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
        number, own = 1, name
        while own in self.names and self._corpora.get(own) != corpus:
            number += 1
            own = f"{name} ({number})"
        return own

    def _cut(self, chosen: CorpusSelection) -> Corpus:
        if chosen.corpus not in self._corpora:
            if chosen.corpus not in KNOWN:
                known = quoted(self.names)
                raise LookupError(f"no texts {brief(chosen.corpus)}; known are {known}; name one, or give a path")
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
        found: list[int] = []
        for batch in batches(texts):
            if len(batch) < len(texts):
                self.report(
                    f"Counting with {count.name}: {len(found):,} of {len(texts):,} documents", len(found) / len(texts)
                )
            found += count.many(batch)
        return np.array(found, "int64")

    def _compared(self, chosen: CorpusSelection, count: Counter, exact: Counter) -> pd.DataFrame:
        right, estimate = self.counts(chosen, exact), self.counts(chosen, count)
        frame = self._once((chosen, "frame"), self.corpus(chosen).frame)
        found: pd.DataFrame = frame.assign(counter=count.name, exact=right, estimate=estimate)
        return found.assign(error=found["estimate"] / found["exact"] - 1)
