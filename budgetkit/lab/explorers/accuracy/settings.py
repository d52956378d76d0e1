"""Settings: all that a hand can change in the accuracy explorer, as one value."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from budgetkit.lab.accuracy.corpora.opening import KNOWN, SHIPPED
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.shelves import Library


@dataclass(frozen=True, slots=True)
class AccuracySettings:
    """What is set in the explorer."""

    counter: str = "chars/4"
    exact: str | None = None
    corpus: str = SHIPPED
    pieces: int | None = None
    #: Class and language of the texts at hand; None: what most texts are of, (): all of the classes chosen.
    kind: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    shortest: int | None = None
    longest: int | None = None
    risk: float = 0.05
    window_mix: str | None = None
    document: int | None = None
    budget_settings: BudgetSettings = field(default_factory=BudgetSettings)

    #: The shelf of the library on which stands what is shown.
    shelf: ClassVar[str] = "texts"

    def with_budget(self, budget_settings: BudgetSettings) -> AccuracySettings:
        """Return the settings with another budget to feel the error; an exact count of another model goes."""
        if budget_settings.model == self.budget_settings.model:
            return replace(self, budget_settings=budget_settings)
        return replace(self, budget_settings=budget_settings, exact=None)

    def showing(self, name: str | None, path: str = "") -> AccuracySettings:
        """Return the settings that look at other texts, all of them."""
        return replace(
            self,
            corpus=str(name),
            kind=None,
            classes=None,
            shortest=None,
            longest=None,
            document=None,
        )

    def as_at(self, start: AccuracySettings) -> AccuracySettings:
        """Return how it all began, with the texts that are looked at now."""
        return replace(start, corpus=self.corpus)


Data = dict[str, Any]
WELCOME = {
    "text": "Your own texts: drop a file here, paste a text, or",
    "short": "Drop a file, paste, or",
}
MOST_NAMED = 3  # files that are named among those left out


def door(library: Library, settings: AccuracySettings) -> Data:
    """Return what the page shows of the texts: that they are shipped ones, or what was read.

    Parameters
    ----------
    library : Library
        The texts by name.
    settings : AccuracySettings
        Which of them are looked at.
    """
    if settings.corpus in KNOWN:
        return {**WELCOME}
    corpus = library.texts(settings.corpus)
    classes = Counter(document.kind for document in corpus.documents)
    many = len(corpus.documents)
    by_class = ", ".join(f"{number:,} {name}" for name, number in classes.most_common())
    documents = f"{many:,} document{'s' * (many != 1)}: {by_class}"
    notes = [
        f"Left out: {Path(problem.name).name}, {problem.reason}."
        for problem in corpus.problems[:MOST_NAMED]
    ]
    if len(corpus.problems) > MOST_NAMED:
        notes.append(f"{len(corpus.problems) - MOST_NAMED:,} more were left out.")
    return {
        "text": "",
        "short": "",
        "facts": {
            "file": settings.corpus,
            "sentences": [f"{settings.corpus}, {documents}", *notes],
            "format": settings.corpus,
            "messages": documents,
            "many": "",
            "conversations": [],
            "conversation": 0,
            "notes": notes,
            "model": None,
        },
    }
