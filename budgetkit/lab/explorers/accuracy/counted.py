"""CountedTexts: the texts that are looked at, each counted once for each counter, in portions that tell of progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget.quoting import one_line
from budgetkit.counters import Counter
from budgetkit.lab.accuracy.corpora import Corpus
from budgetkit.lab.explorers.accuracy.speed import speed
from budgetkit.lab.explorers.library import Library

Ints = npt.NDArray[np.int64]
BATCH = 400_000  # characters counted between two reports


@dataclass(frozen=True, slots=True)
class CorpusSelection:
    """Which texts, cut to which length: what counts depend on beside the counter."""

    corpus: str
    pieces: int | None


@dataclass(frozen=True, slots=True)
class CountedTexts:
    """Chosen texts, and what was counted of them; the library keeps it."""

    library: Library
    selection: CorpusSelection

    @property
    def corpus(self) -> Corpus:
        """The documents, cut to pieces where that was chosen."""
        return self.library.once((self.selection, "corpus"), self._cut)

    def counts(self, counter: Counter) -> Ints:
        """Count every document, in tokens."""
        return self.library.once(
            (self.selection, counter.name, "counts"), lambda: self._count(counter)
        )

    def errors(self, counter: Counter, exact: Counter) -> pd.DataFrame:
        """Compare two counters on every document."""
        key = (self.selection, counter.name, exact.name, "errors")
        return self.library.once(key, lambda: self._compared(counter, exact))

    def speed(self, counter: Counter) -> float:
        """Measure how fast a counter is on these texts, on this machine, once; in megabytes a second."""
        key = (self.selection, counter.name, "speed")
        return self.library.once(key, lambda: speed(counter, self.corpus.texts))

    def _cut(self) -> Corpus:
        whole = self.library.texts(self.selection.corpus)
        pieces = self.selection.pieces
        if pieces is None:
            return whole
        cut = whole.pieces(pieces // 2, pieces * 3 // 2)
        if not cut.documents:
            raise ValueError(
                f"pieces of about {pieces:,} characters were asked for; no document of "
                f"{one_line(self.selection.corpus)} has {pieces // 2:,}; choose shorter pieces, or whole documents"
            )
        return cut

    def _count(self, counter: Counter) -> Ints:
        texts = self.corpus.texts
        counts: list[int] = []
        for batch in batches(texts):
            if len(batch) < len(texts):
                sentence = (
                    f"Counting with {counter.name}: {len(counts):,} of {len(texts):,} documents"
                )
                self.library.report(sentence, len(counts) / len(texts))
            counts += counter.many(batch)
        return np.array(counts, "int64")

    def _compared(self, counter: Counter, exact: Counter) -> pd.DataFrame:
        right = self.counts(exact)
        estimate = self.counts(counter)
        documents = self.library.once((self.selection, "frame"), self.corpus.frame)
        errors: pd.DataFrame = documents.assign(
            counter=counter.name, exact=right, estimate=estimate
        )
        return errors.assign(error=errors["estimate"] / errors["exact"] - 1)


def batches(texts: Sequence[str]) -> list[Sequence[str]]:
    """Cut a list of texts into lists of about so many characters.

    Examples
    --------
    >>> [len(batch) for batch in batches(["a" * 300_000] * 5)]
    [1, 1, 1, 2]
    """
    ends = np.cumsum([len(text) for text in texts]) // BATCH
    places = [*np.flatnonzero(np.diff(ends, prepend=ends[:1])).tolist(), len(texts)]
    return [texts[a:b] for a, b in zip([0, *places[:-1]], places, strict=True) if a < b]
