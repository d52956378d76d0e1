"""Settings of the accuracy explorer, and the results of these settings.

The library counts each text once. Everything else here is arithmetic that runs at every move of a slider.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, takewhile
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, Share
from budgetkit.budget.errors import unknown_name
from budgetkit.counters import Counter
from budgetkit.lab.accuracy import Buffer, consequences
from budgetkit.lab.accuracy.buffers import WORST, FilledWindows, filled_windows
from budgetkit.lab.accuracy.corpora import Corpus
from budgetkit.lab.accuracy.corpora.opening import SHIPPED
from budgetkit.lab.accuracy.kinds import meaning
from budgetkit.lab.explorers.budget.results import BudgetStage, kept_deficit
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.shelves import Library, kept
from budgetkit.message import Data, Raw, replace_surrogates
from budgetkit.plan import Flags, Ints
from budgetkit.trace import DEFAULT_ROLES


@dataclass(frozen=True)
class AccuracySettings(BudgetSettings):
    """Settings of the accuracy explorer."""

    #: The cheap counter whose error is measured.
    estimate: str = "chars/4"
    exact: str | None = None
    corpus: str = SHIPPED
    #: Class and language of the texts; None for the kind of most texts, () for all chosen classes.
    kind: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    risk: float = 0.05
    window_mix: str | None = None
    document: int | None = None

    shelf: ClassVar[str] = "texts"
    kept: ClassVar[Sequence[str]] = (*BudgetSettings.kept, "corpus")
    afresh: ClassVar[Raw] = {"exact": None}

    def showing(self, name: str | None, _path: str = "", _number: int = 0) -> Self:
        """Return the settings for other texts, showing all of them."""
        return replace(self, corpus=str(name), kind=None, classes=None, document=None)


# Values of the language column for an unknown language, besides the roles.
_NO_LANGUAGE = ("text", "conversation")


def kinds_in(every: pd.DataFrame) -> list[tuple[str, ...]]:
    """List the kinds of text, each a class and a language.

    Examples
    --------
    >>> kinds_in(pd.DataFrame({"class": ["prose", "code", "prose"], "language": ["en", "go", "en"]}))
    [('prose', 'en'), ('code', 'go')]
    """
    rows = every[["class", "language"]].astype(str).drop_duplicates()
    return [*rows.itertuples(index=False, name=None)]


def named_kind(labels: Sequence[str], every: pd.DataFrame) -> tuple[str, ...]:
    """Return the kind of text that these labels name, in any spelling.

    Examples
    --------
    >>> named_kind(["text", "German"], pd.DataFrame({"class": ["code", "prose"], "language": ["go", "de"]}))
    ('prose', 'de')
    """
    if not labels:
        return ()
    kinds = kinds_in(every)
    wanted = [meaning(label) for label in labels]
    for kind in kinds:
        if kind == tuple(labels) or [*map(meaning, kind)] == wanted:
            return kind
    raise LookupError(unknown_name("kind of text", ", ".join(labels), map(kind_name, kinds)))


def kind_name(kind: tuple[str, ...]) -> str:
    """Return a kind of text in words.

    Examples
    --------
    >>> kind_name(("prose", "en")), kind_name(("text", "text"))
    ('prose, en', 'text')
    """
    return replace_surrogates(", ".join(dict.fromkeys(kind)))


def kind_at_hand(every: pd.DataFrame) -> tuple[str, ...]:
    """Return the kind of more than half of the documents.

    The result is () if there is no such kind, if all documents have the same kind, or if the language is unknown.

    Examples
    --------
    >>> kind_at_hand(pd.DataFrame({"class": ["prose", "code", "code"], "language": ["en", "go", "go"]}))
    ('code', 'go')
    >>> kind_at_hand(pd.DataFrame({"class": ["code", "prose", "code"], "language": ["go", "en", "c"]}))
    ()
    """
    kinds = kinds_in(every)
    many = every.groupby(["class", "language"], sort=False).size().to_numpy()
    most = kinds[int(many.argmax())]
    if len(kinds) < 2 or most[1] in (*_NO_LANGUAGE, *DEFAULT_ROLES):
        return ()
    return most if many.max() > len(every) / 2 else ()


SAMPLE = 300_000  # characters
ROUNDS = 3
_LONG = 0.15  # seconds; a slower counter is measured once


def speed(count: Counter, texts: Sequence[str]) -> float:
    """Measure a counter's speed, in megabytes per second.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> speed(counter("chars/4"), ["Hello world"] * 100) > 0
    True
    """
    ends = accumulate(len(text) for text in texts)
    sample = texts[: max(1, sum(1 for _ in takewhile(lambda end: end <= SAMPLE, ends)))]
    sample = [text[:SAMPLE] for text in sample]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in sample)
    best = float("inf")
    for _ in range(ROUNDS):
        mark = f" {time.perf_counter_ns()}"
        marked = [text + mark for text in sample]
        start = time.perf_counter()
        count.many(marked)
        best = min(best, time.perf_counter() - start)
        if best > _LONG:
            break
    return size / 1e6 / max(best, 1e-9)


BATCH = 400_000  # characters counted between two reports


@dataclass(frozen=True)
class CountedTexts:
    """A corpus and its counts, kept in the library."""

    library: Library
    name: str

    @property
    def corpus(self) -> Corpus:
        """The documents."""
        return self.library.texts(self.name)

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The key of the counts, apart from the counters."""
        return (self.name,)

    @kept
    def counts(self, counter: Counter) -> Ints:
        """Count the tokens of every document."""
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

    @kept
    def documents(self) -> pd.DataFrame:
        """Return one row per document."""
        return self.corpus.frame()

    @kept
    def errors(self, counter: Counter, exact: Counter) -> pd.DataFrame:
        """Compare two counters on every document."""
        right = self.counts(exact)
        estimate = self.counts(counter)
        errors: pd.DataFrame = self.documents().assign(
            counter=counter.name, exact=right, estimate=estimate
        )
        return errors.assign(error=errors["estimate"] / errors["exact"] - 1)

    @kept
    def speed(self, counter: Counter) -> float:
        """Return a counter's speed on these texts, in megabytes per second.

        The speed is measured once.
        """
        return speed(counter, self.corpus.texts)


def batches(texts: Sequence[str]) -> list[Sequence[str]]:
    """Split texts into batches of about `BATCH` characters.

    Examples
    --------
    >>> [len(batch) for batch in batches(["a" * 300_000] * 5)]
    [1, 1, 1, 2]
    """
    ends = np.cumsum([len(text) for text in texts]) // BATCH
    places = [*np.flatnonzero(np.diff(ends, prepend=ends[:1])).tolist(), len(texts)]
    return [texts[a:b] for a, b in zip([0, *places[:-1]], places, strict=True) if a < b]


@dataclass(frozen=True)
class AccuracyStage(BudgetStage):
    """The settings and results of the accuracy explorer."""

    settings: AccuracySettings

    plans_turns: ClassVar[bool] = False

    @cached_property
    def estimate(self) -> Counter:
        """The cheap counter."""
        return self.library.counter(self.settings.estimate)

    @cached_property
    def exact(self) -> Counter:
        """The reference counter."""
        best = self.model.encoding if self.model.encoding_is_own else self.model
        return self.library.counter(best if self.settings.exact is None else self.settings.exact)

    @cached_property
    def texts(self) -> CountedTexts:
        """The texts with their counts."""
        return CountedTexts(self.library, self.settings.corpus)

    @cached_property
    def all_errors(self) -> pd.DataFrame:
        """The errors of all documents."""
        return self.texts.errors(self.estimate, self.exact)

    @cached_property
    def kind(self) -> tuple[str, ...]:
        """Class and language of the texts; () for all chosen classes."""
        if self.settings.kind is None:
            return kind_at_hand(self.all_errors)
        return named_kind(self.settings.kind, self.all_errors)

    @cached_property
    def is_selected(self) -> Flags:
        """True for each document of the chosen kind or classes."""
        every = self.all_errors
        if self.kind:
            return (every[["class", "language"]] == [*self.kind]).all(axis=1).to_numpy()
        if self.settings.classes is None:
            return np.ones(len(every), bool)
        return every["class"].isin(self.settings.classes).to_numpy(bool)

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The errors of the chosen documents."""
        return self.all_errors[self.is_selected]

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        """The key of all results that depend on the errors."""
        names = self.settings.corpus, self.estimate.name, self.exact.name
        return (*names, self.kind, self.settings.classes)

    @cached_property
    def buffer_kinds(self) -> tuple[str, ...]:
        """The kind or the classes that the buffer is for."""
        return self.kind or self.settings.classes or ()

    @cached_property
    def buffer_errors(self) -> pd.DataFrame:
        """The document errors that the buffer is computed from.

        If the kind or the classes are known, these are documents of all kinds, unless their sources are too few for a
        buffer of one kind. Otherwise, or if a mix is given, they are the chosen documents only.
        """
        if not self.buffer_kinds or self.settings.window_mix is not None:
            return self.errors
        buffer = self._filled(self.all_errors).read_off(self.settings.risk)
        return self.errors if WORST in buffer.warning else self.all_errors

    @cached_property
    def filled_windows(self) -> FilledWindows:
        """The windows filled with documents."""
        return self._filled(self.buffer_errors)

    @cached_property
    def buffer(self) -> Buffer:
        """The buffer for the accepted risk."""
        return self.filled_windows.read_off(self.settings.risk)

    @cached_property
    def buffered(self) -> AccuracySettings:
        """The settings with the buffer as the safety reserve."""
        size = self.buffer.reserve.size
        safety = size if isinstance(size, Share) else Share(0)
        return replace(self.settings, lines={**self.settings.lines, "safety": safety})

    @cached_property
    def budget(self) -> Budget:
        """The budget to copy or save, with the buffer."""
        return kept_deficit(self.buffered.budget, self.settings.base.deficit)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The entered or typical sizes of the sections, or else their caps."""
        demand = self.typed_demand
        if any(demand.values()):
            return demand
        return {section: cap or 0 for section, cap in self.signed_budget.caps.items()}

    @cached_property
    def document(self) -> int:
        """The chosen document or, if it is hidden, the worst one.

        The worst document is the shown document with the largest error.
        """
        document = self.settings.document
        if document is None or document not in self.errors.index:
            document = int(self.errors.index[int(self.errors["error"].abs().to_numpy().argmax())])
        return document

    @cached_property
    def costs(self) -> Data:
        """The consequences of the count for the budget."""
        return self._costs(self.signed_budget)

    @cached_property
    def buffered_costs(self) -> Data:
        """The consequences of the count for the budget with the buffer."""
        return self._costs(self.buffered.budget)

    def _filled(self, errors: pd.DataFrame) -> FilledWindows:
        """Return windows filled with documents, computed once."""
        window, mix = self.signed_budget.window, self.settings.window_mix
        return self.library.once_large(
            (self.key, window, mix, len(errors), "filled"),
            lambda: filled_windows(errors, window, mix, kinds=self.buffer_kinds),
        )

    def _costs(self, budget: Budget) -> Data:
        """Return the consequences of the count for a budget, computed once."""
        sizes = budget.usable, budget.sizes.get("safety", 0)
        errors, mix = self.buffer_errors, self.settings.window_mix

        def measure() -> Data:
            row = consequences(budget, errors, mix, kinds=self.buffer_kinds).iloc[0]
            return {str(name): value for name, value in row.items()}

        return self.library.once_large((self.key, *sizes, mix, len(errors), "costs"), measure)
