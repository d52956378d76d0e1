"""Misjudged: how far a cheap count is off on each kind of text, and what that makes of a budget.

error  = estimate / exact - 1          of all texts of a kind together
really = budget / (1 + error)          what a budget that the cheap count fills takes in truth
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from budgetkit.accuracy.corpora import Corpus, shipped
from budgetkit.accuracy.errors import compare
from budgetkit.app.kinds import CLASSES, kinds_of
from budgetkit.counters import Counter
from budgetkit.trace import Trace

SHIPPED, OWN = "shipped texts", "conversation"


@dataclass(frozen=True, slots=True)
class Misjudged:
    """The error of a cheap count on texts of one kind.

    Examples
    --------
    >>> german = Misjudged("prose", "shipped texts", 40, exact=1_000, estimate=800, low=-.4, high=-.1)
    >>> german.error, german.really(3_000)
    (-0.19999999999999996, 3750)
    """

    kind: str
    where: str
    texts: int
    exact: int
    estimate: int
    low: float
    high: float

    @property
    def error(self) -> float:
        """How much too many are counted, as a share of what is right; below 0: too few."""
        return self.estimate / self.exact - 1

    def really(self, budget: int) -> int:
        """Return what a budget that is filled by the cheap count takes in truth, in tokens."""
        return round(max(0, budget) * self.exact / self.estimate)


def shipped_errors(cheap: Counter, exact: Counter) -> tuple[Misjudged, ...]:
    """Return the error on the shipped corpus, kind by kind."""
    kinds = {name: kind for kind, names in CLASSES.items() for name in names}
    errors = compare([cheap], shipped().where(lambda document: document.kind in kinds), exact)
    return tuple(_summed(errors.assign(kind=errors["class"].map(kinds)), SHIPPED))


def conversation_errors(trace: Trace, cheap: Counter, exact: Counter) -> tuple[Misjudged, ...]:
    """Return the error on a conversation, for the kinds of text that it has."""
    corpus: Corpus = kinds_of(trace)
    if not corpus.documents:
        return ()
    errors = compare([cheap], corpus, exact)
    return tuple(_summed(errors.assign(kind=errors["class"]), OWN))


def _summed(errors: pd.DataFrame, where: str) -> Iterator[Misjudged]:
    """Sum up each kind; the range is that of nine texts in ten."""
    for kind in CLASSES:
        found = errors[errors["kind"] == kind]
        exact, estimate = (int(found[column].sum()) for column in ("exact", "estimate"))
        if exact and estimate:
            low, high = np.quantile(found["error"], (0.05, 0.95))
            yield Misjudged(kind, where, len(found), exact, estimate, float(low), float(high))
