"""Results: what follows from the settings: errors of the chosen documents, the buffer, and what a budget loses.

Counting is in the library and happens once; everything here is arithmetic and happens on every move.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.amounts import Share
from budgetkit.counters import Counter
from budgetkit.lab.accuracy import Buffer, consequences, read_off
from budgetkit.lab.accuracy.simulation import FilledWindows, filled_windows
from budgetkit.lab.explorers.accuracy.counted import CorpusSelection, CountedTexts
from budgetkit.lab.explorers.accuracy.kinds import kind_at_hand, named_kind
from budgetkit.lab.explorers.accuracy.settings import AccuracySettings
from budgetkit.lab.explorers.budget.results import BudgetResults, kept_deficit, typed_demand
from budgetkit.lab.explorers.budget.results import results as results_of_budget
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.library import Library
from budgetkit.models import Model

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class AccuracyResults:
    """What follows from the settings."""

    settings: AccuracySettings
    budget_results: BudgetResults
    model: Model
    counter: Counter
    exact: Counter
    texts: CountedTexts
    all_errors: pd.DataFrame
    errors: pd.DataFrame
    #: What the buffer is learned from: all kinds, of which the one at hand is told apart.
    buffer_errors: pd.DataFrame
    #: Class and language of the texts at hand; () where these are all of the classes chosen.
    kind: tuple[str, ...]
    #: Classes and languages that the buffer is for; () where nobody says.
    buffer_kinds: tuple[str, ...]
    filled_windows: FilledWindows
    buffer: Buffer
    budget: Budget
    buffered_budget: Budget
    exported_budget: Budget
    demand: dict[str, int]
    costs: dict[str, Any]
    buffered_costs: dict[str, Any]
    document: int
    key: Hashable
    note: str = ""


def results(settings: AccuracySettings, library: Library) -> AccuracyResults:
    """Work out what follows from the settings."""
    budget_results = results_of_budget(replace(settings.budget_settings, trace=None), library)
    model = budget_results.model
    budget = budget_results.plan.budget
    count = library.counter(settings.counter)
    exact = reference_counter(settings, model, library)
    texts = CountedTexts(library, CorpusSelection(settings.corpus, settings.pieces))
    all_errors = texts.errors(count, exact)
    if settings.kind is None:
        kind = kind_at_hand(all_errors)
    else:
        kind = named_kind(settings.kind, all_errors)
    errors = all_errors[selected(all_errors, settings, kind)]
    if errors.empty:
        raise ValueError(_none_left(settings, kind, all_errors))
    key = (
        texts.selection,
        count.name,
        exact.name,
        kind,
        settings.classes,
        settings.shortest,
        settings.longest,
    )

    # A kind that is known is told by all kinds beside it; windows of a given mix are of the documents looked at.
    buffer_kinds = kind or settings.classes or ()
    mix = settings.window_mix
    if buffer_kinds and mix is None:
        buffer_errors = all_errors[_of_length(all_errors, settings)]
    else:
        buffer_errors = errors
    windows = library.once_large(
        (key, budget.window, mix, "filled"),
        lambda: filled_windows(buffer_errors, budget.window, mix, kinds=buffer_kinds),
    )
    buffer = read_off(windows, buffer_errors, budget.window, settings.risk, mix, buffer_kinds)
    buffered_budget = with_buffer(settings.budget_settings, buffer).budget(model)

    def costs_of(budget: Budget) -> dict[str, Any]:
        """Return what counting so does to a budget, looked up where it was worked out before."""
        memo_key = (key, budget.usable, budget.sizes.get("safety", 0), mix, "costs")
        return library.once_large(
            memo_key, lambda: _first(consequences(budget, buffer_errors, mix, kinds=buffer_kinds))
        )

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
        buffer_kinds=buffer_kinds,
        filled_windows=windows,
        buffer=buffer,
        budget=budget,
        buffered_budget=buffered_budget,
        exported_budget=kept_deficit(buffered_budget, settings.budget_settings.base(model).deficit),
        demand=typical_demand(settings.budget_settings, budget),
        costs=costs_of(budget),
        buffered_costs=costs_of(buffered_budget),
        document=document_to_read(settings, errors),
        key=key,
        note=budget_results.note,
    )


def _first(rows: pd.DataFrame) -> dict[str, Any]:
    return {str(name): value for name, value in rows.iloc[0].items()}


def typical_demand(settings: BudgetSettings, budget: Budget) -> dict[str, int]:
    """Return what each section asks for: the preset's typical sizes; of a budget of the user's own, its caps."""
    typed = typed_demand(settings, budget)
    if any(typed.values()):
        return typed
    return {section: cap or 0 for section, cap in budget.caps.items()}


def reference_counter(settings: AccuracySettings, model: Model, library: Library) -> Counter:
    """Return the counter that is right: the one that is named, or the best that is known for the model."""
    if settings.exact is not None:
        return library.counter(settings.exact)
    return library.counter(model.encoding if model.encoding_is_own else model)


def selected(every: pd.DataFrame, settings: AccuracySettings, kind: tuple[str, ...]) -> Bools:
    """Say which documents are looked at: those of the kind at hand, or of the classes chosen."""
    is_chosen = _of_length(every, settings)
    if kind:
        of_class, language = kind
        return (
            is_chosen
            & (every["class"] == of_class).to_numpy()
            & (every["language"] == language).to_numpy()
        )
    if settings.classes is not None:
        return is_chosen & every["class"].isin(settings.classes).to_numpy()
    return is_chosen


def _of_length(every: pd.DataFrame, settings: AccuracySettings) -> Bools:
    if settings.longest is None:
        longest = np.inf
    else:
        longest = settings.longest
    return every["characters"].between(settings.shortest or 0, longest).to_numpy(bool)


def _none_left(settings: AccuracySettings, kind: tuple[str, ...], every: pd.DataFrame) -> str:
    lengths = every["characters"]
    classes = ", ".join(kind or settings.classes or ("any class",))
    low = settings.shortest or 0
    high = settings.longest or int(lengths.max())
    return (
        f"documents of {classes} with {low:,} to {high:,} characters were asked for; none of the {len(every):,} is "
        f"one, they have {lengths.min():,} to {lengths.max():,}; choose more classes or other lengths"
    )


def document_to_read(settings: AccuracySettings, errors: pd.DataFrame) -> int:
    """Return which document is read: the one that was chosen while it is looked at, else the one counted worst."""
    if settings.document is not None and settings.document in errors.index:
        return settings.document
    return int(errors.index[int(errors["error"].abs().to_numpy().argmax())])


def with_buffer(budget: BudgetSettings, buffer: Buffer) -> BudgetSettings:
    """Return a budget's settings with the buffer as its safety reserve."""
    size = buffer.reserve.size
    return replace(
        budget, lines={**budget.lines, "safety": size if isinstance(size, Share) else Share(0)}
    )
