"""How far a cheap count is off on each kind of text, and what that makes of a budget.

    error  = cheap / best - 1             of all texts of a kind together
    really = budget * best / cheap        what a budget takes that the cheap count has filled
    low, high                             the error of nine texts in ten, at the ends of the best count's own interval

The best count is the best that is known for the model: its own tokenizer's, or else an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from budgetkit.counters import Counter, spread_of
from budgetkit.lab.accuracy.corpora import Corpus, shipped
from budgetkit.lab.accuracy.errors import compare
from budgetkit.lab.app.kinds import CLASSES, kinds_of
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.library import Library
from budgetkit.models import Model
from budgetkit.plan.items import Ints
from budgetkit.trace import Trace

SHIPPED = "shipped texts"
OWN = "conversation"


@dataclass(frozen=True, slots=True)
class Misjudgement:
    """The error of a cheap count on texts of one kind.

    Parameters
    ----------
    kind, where : str
        Which texts.
    texts : int
        How many they are.
    best, cheap : int
        What the two counters count for all of them, in tokens.
    low, high : float
        Between which errors nine texts in ten lie, as shares of the best count.

    Examples
    --------
    >>> german = Misjudgement("prose", "shipped texts", texts=40, best=1_000, cheap=800, low=-.4, high=-.1)
    >>> round(german.error, 2), german.really(3_000), german.least(3_000), german.most(3_000)
    (-0.2, 3750, 3333, 5000)
    """

    kind: str
    where: str
    texts: int
    best: int
    cheap: int
    low: float
    high: float

    @property
    def error(self) -> float:
        """How much too many are counted, as a share of the best count; below 0: too few."""
        return self.cheap / self.best - 1

    def really(self, budget: int) -> int:
        """Return what a budget that the cheap count has filled really takes, in tokens."""
        return round(max(0, budget) * self.best / self.cheap)

    def least(self, budget: int) -> int:
        """Return the least tokens that a filled budget really takes, for nine texts in ten."""
        return round(max(0, budget) / (1 + self.high))

    def most(self, budget: int) -> int:
        """Return the most tokens that a filled budget really takes, for nine texts in ten."""
        return round(max(0, budget) / (1 + self.low))


def misjudgements(
    settings: BudgetSettings, model: Model, library: Library
) -> tuple[Misjudgement, ...]:
    """Return the errors on the shipped texts and on the conversation, each counted once."""
    cheap = library.counter(settings.cheap)
    best = library.counter(model)
    names = (cheap.name, best.name)
    rows = library.once(("shipped errors", *names), lambda: shipped_misjudgements(cheap, best))
    if settings.trace is not None:
        key = ("conversation errors", settings.trace, settings.conversation, *names)
        trace = library.conversations(settings.trace)[settings.conversation]
        rows = (*rows, *library.once(key, lambda: own_misjudgements(trace, cheap, best)))
    order = tuple(CLASSES)
    return tuple(sorted(rows, key=lambda row: order.index(row.kind)))


def shipped_misjudgements(cheap: Counter, best: Counter) -> tuple[Misjudgement, ...]:
    """Return the error on the shipped corpus, kind by kind."""
    kinds = {name: kind for kind, names in CLASSES.items() for name in names}
    corpus = shipped().where(lambda document: document.kind in kinds)
    errors = _errors(corpus, cheap, best)
    return tuple(_by_kind(errors.assign(kind=errors["class"].map(kinds)), SHIPPED))


def own_misjudgements(trace: Trace, cheap: Counter, best: Counter) -> tuple[Misjudgement, ...]:
    """Return the error on a conversation, for the kinds of text that it has."""
    corpus = kinds_of(trace)
    if not corpus.documents:
        return ()
    errors = _errors(corpus, cheap, best)
    return tuple(_by_kind(errors.assign(kind=errors["class"]), OWN))


def _errors(corpus: Corpus, cheap: Counter, best: Counter) -> pd.DataFrame:
    """Compare the counters on all texts, with the ends of the best count's interval beside each."""
    texts = corpus.where(lambda document: bool(document.text))
    errors = compare([cheap], texts, best)
    least, most = intervals(best, errors["exact"].to_numpy())
    return errors.assign(least=least, most=most)


def intervals(best: Counter, counts: Ints) -> tuple[Ints, Ints]:
    """Return between which numbers each text lies; the count twice where nobody has measured how far off it is."""
    below, above = spread_of(best) or (0.0, 0.0)
    return np.rint(counts * (1 + below)).astype(np.int64), np.rint(counts * (1 + above)).astype(
        np.int64
    )


def _by_kind(errors: pd.DataFrame, where: str) -> Iterator[Misjudgement]:
    """Return one row of errors for each kind of text."""
    # A text of which either counter counts nothing has no error.
    counted = errors[(errors["exact"] > 0) & (errors["estimate"] > 0)]
    for kind in CLASSES:
        rows = counted[counted["kind"] == kind]
        if not len(rows):
            continue
        # The more a text really has, the lower is the error: the upper end of the count is the lower one of the error.
        low = np.quantile(rows["estimate"] / rows["most"] - 1, 0.05)
        high = np.quantile(rows["estimate"] / rows["least"].clip(lower=1) - 1, 0.95)
        yield Misjudgement(
            kind=kind,
            where=where,
            texts=len(rows),
            best=int(rows["exact"].sum()),
            cheap=int(rows["estimate"].sum()),
            low=float(low),
            high=float(high),
        )
