"""Settings: all that a hand can change in the accuracy explorer, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from budgetkit.lab.accuracy.corpora.opening import SHIPPED
from budgetkit.lab.explorers.budget.settings import BudgetSettings


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
    budget: BudgetSettings = field(default_factory=BudgetSettings)

    def as_at(self, start: AccuracySettings) -> AccuracySettings:
        """Return how it all began, with the texts that are looked at now."""
        return replace(start, corpus=self.corpus)
