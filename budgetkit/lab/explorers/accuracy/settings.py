"""Settings: all that a hand can change in the accuracy explorer, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from budgetkit.lab.accuracy.corpora.opening import SHIPPED
from budgetkit.lab.explorers.budget.settings import BudgetSettings


@dataclass(frozen=True)
class AccuracySettings:
    """Settings of the accuracy explorer."""

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
