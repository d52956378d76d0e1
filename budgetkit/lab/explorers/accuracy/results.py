"""Settings of the accuracy explorer, and the results of these settings.

The library counts each text once. Everything else here is arithmetic that runs at every move of a slider.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget import Budget, Share
from budgetkit.budget.errors import unknown_name
from budgetkit.counters import Counter
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.lab.accuracy import Buffer, consequences
from budgetkit.lab.accuracy.buffers import WORST, FilledWindows, filled_windows
from budgetkit.lab.accuracy.corpora import Corpus
from budgetkit.lab.accuracy.corpora.opening import SHIPPED
from budgetkit.lab.accuracy.kinds import meaning
from budgetkit.lab.explorers.budget.results import BudgetResults, kept_deficit, typed_demand
from budgetkit.lab.explorers.budget.results import results as results_of_budget
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.stage import Stage
from budgetkit.message import Data
from budgetkit.models import Model
from budgetkit.trace import DEFAULT_ROLES


@dataclass(frozen=True)
class AccuracySettings:
    """Settings of the accuracy explorer."""

    counter: str = "chars/4"
    exact: str | None = None
    corpus: str = SHIPPED
    #: Class and language of the texts; None for the kind of most texts, () for all chosen classes.
    kind: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    risk: float = 0.05
    window_mix: str | None = None
    document: int | None = None
    budget_settings: BudgetSettings = field(default_factory=BudgetSettings)

    #: The shelf of the library with the shown contents.
    shelf: ClassVar[str] = "texts"

    def with_budget(self, budget_settings: BudgetSettings) -> AccuracySettings:
        """Return the settings with another budget.

        Another model resets the reference counter.
        """
        if budget_settings.model == self.budget_settings.model:
            return replace(self, budget_settings=budget_settings)
        return replace(self, budget_settings=budget_settings, exact=None)

    def showing(self, name: str | None, _path: str = "") -> AccuracySettings:
        """Return the settings for other texts, showing all of them."""
        return replace(
            self,
            corpus=str(name),
            kind=None,
            classes=None,
            document=None,
        )

    def as_at(self, start: AccuracySettings) -> AccuracySettings:
        """Return the initial settings with the current texts."""
        return replace(start, corpus=self.corpus)


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


Ints = npt.NDArray[np.int64]
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

    def counts(self, counter: Counter) -> Ints:
        """Count the tokens of every document."""
        key = (self.name, counter.name, "counts")
        return self.library.once(key, lambda: self._count(counter))

    def errors(self, counter: Counter, exact: Counter) -> pd.DataFrame:
        """Compare two counters on every document."""

        def compare() -> pd.DataFrame:
            right = self.counts(exact)
            estimate = self.counts(counter)
            documents = self.library.once((self.name, "frame"), self.corpus.frame)
            errors: pd.DataFrame = documents.assign(
                counter=counter.name, exact=right, estimate=estimate
            )
            return errors.assign(error=errors["estimate"] / errors["exact"] - 1)

        return self.library.once((self.name, counter.name, exact.name, "errors"), compare)

    def speed(self, counter: Counter) -> float:
        """Return a counter's speed on these texts, in megabytes per second.

        The speed is measured once.
        """
        key = (self.name, counter.name, "speed")
        return self.library.once(key, lambda: speed(counter, self.corpus.texts))

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


Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class AccuracyResults:
    """Results of the accuracy settings."""

    settings: AccuracySettings
    budget_results: BudgetResults
    model: Model
    counter: Counter
    exact: Counter
    texts: CountedTexts
    all_errors: pd.DataFrame
    errors: pd.DataFrame
    #: Documents that the buffer is computed from: all kinds, with the chosen one marked.
    buffer_errors: pd.DataFrame
    #: Class and language of the texts; () for all chosen classes.
    kind: tuple[str, ...]
    filled_windows: FilledWindows
    buffer: Buffer
    budget: Budget
    buffered_budget: Budget
    exported_budget: Budget
    demand: dict[str, int]
    costs: Data
    buffered_costs: Data
    document: int
    key: Hashable


AccuracyStage = Stage[AccuracySettings, AccuracyResults]


def results(settings: AccuracySettings, library: Library) -> AccuracyResults:
    """Compute the results of the settings."""
    budget_results = results_of_budget(replace(settings.budget_settings, trace=None), library)
    model = budget_results.model
    budget = budget_results.plan.budget
    count = library.counter(settings.counter)
    best = model.encoding if model.encoding_is_own else model
    exact = library.counter(best if settings.exact is None else settings.exact)
    texts = CountedTexts(library, settings.corpus)
    all_errors = texts.errors(count, exact)
    kind = kind_at_hand(all_errors)
    if settings.kind is not None:
        kind = named_kind(settings.kind, all_errors)
    errors = all_errors[selected(all_errors, settings, kind)]
    key = (texts.name, count.name, exact.name, kind, settings.classes)

    # The buffer of a known kind is computed from all kinds; a given mix uses only the shown documents.
    buffer_kinds = kind or settings.classes or ()
    mix = settings.window_mix
    buffer_errors = errors
    if buffer_kinds and mix is None:
        buffer_errors = all_errors

    def fill(errors: pd.DataFrame) -> FilledWindows:
        """Return windows filled with documents."""
        return library.once_large(
            (key, budget.window, mix, len(errors), "filled"),
            lambda: filled_windows(errors, budget.window, mix, kinds=buffer_kinds),
        )

    windows = fill(buffer_errors)
    buffer = windows.read_off(settings.risk)
    if buffer_errors is not errors and WORST in buffer.warning:
        # With too few documents to distinguish kinds, only the shown documents are used.
        buffer_errors = errors
        windows = fill(errors)
        buffer = windows.read_off(settings.risk)
    buffered_budget = with_buffer(settings.budget_settings, buffer).budget

    def costs_of(budget: Budget) -> Data:
        """Return the consequences of the count for a budget, computed once."""
        sizes = budget.usable, budget.sizes.get("safety", 0)

        def measure() -> Data:
            row = consequences(budget, buffer_errors, mix, kinds=buffer_kinds).iloc[0]
            return {str(name): value for name, value in row.items()}

        return library.once_large((key, *sizes, mix, len(buffer_errors), "costs"), measure)

    # The preset's typical sizes, or the caps of a custom budget.
    demand = typed_demand(settings.budget_settings, budget)
    if not any(demand.values()):
        demand = {section: cap or 0 for section, cap in budget.caps.items()}
    # The chosen document if it is shown, otherwise the one with the largest error.
    document = settings.document
    if document is None or document not in errors.index:
        document = int(errors.index[int(errors["error"].abs().to_numpy().argmax())])
    return AccuracyResults(
        settings=settings,
        budget_results=budget_results,
        model=model,
        counter=count,
        exact=exact,
        texts=texts,
        all_errors=all_errors,
        errors=errors,
        buffer_errors=buffer_errors,
        kind=kind,
        filled_windows=windows,
        buffer=buffer,
        budget=budget,
        buffered_budget=buffered_budget,
        exported_budget=kept_deficit(buffered_budget, settings.budget_settings.base.deficit),
        demand=demand,
        costs=costs_of(budget),
        buffered_costs=costs_of(buffered_budget),
        document=document,
        key=key,
    )


def selected(every: pd.DataFrame, settings: AccuracySettings, kind: tuple[str, ...]) -> Bools:
    """Return True for each document of the chosen kind or classes."""
    if kind:
        return (every[["class", "language"]] == [*kind]).all(axis=1).to_numpy()
    if settings.classes is None:
        return np.ones(len(every), bool)
    return every["class"].isin(settings.classes).to_numpy(bool)


def with_buffer(budget: BudgetSettings, buffer: Buffer) -> BudgetSettings:
    """Return a budget's settings with the buffer as its safety reserve."""
    size = buffer.reserve.size
    safety = size if isinstance(size, Share) else Share(0)
    return replace(budget, lines={**budget.lines, "safety": safety})
