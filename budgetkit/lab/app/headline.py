"""The card's headline, its key figures, and a cheap count's errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from budgetkit.budget.html import POOL, colour
from budgetkit.counters import Counter, spread_of
from budgetkit.lab.accuracy.corpora import Corpus, Document, shipped
from budgetkit.lab.accuracy.errors import compare
from budgetkit.lab.accuracy.kinds import CJK, CODE, PROSE, by_kind
from budgetkit.lab.explorers.budget.charts import kpis
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.figures.window import left_of_pool, takes_the_rest, too_many
from budgetkit.message import Data
from budgetkit.presets import PRESETS
from budgetkit.trace import Trace

#: The classes of the corpus that belong to each kind.
CLASSES: Final = MappingProxyType(
    {CODE: ("code", "data", "markup"), CJK: ("cjk prose", "cjk mixed"), PROSE: ("prose",)}
)
#: Maximum number of characters to measure; of a longer conversation, every n-th message is measured.
LARGEST: Final = 1_000_000


def kind_documents(trace: Trace) -> Corpus:
    """Split a conversation into documents of one message and kind each.

    The arguments of each tool call are a document of code. If a conversation has more than a million characters, only
    evenly spaced messages are included.
    """
    step = -(-sum(len(message.text) for message in trace.messages) // LARGEST) or 1
    numbered = list(enumerate(trace.messages, 1))[::step]
    documents = []
    for number, message in numbered:
        texts = [(text, kind, "") for kind, text in by_kind(message.text).items()]
        calls = message.tool_calls
        texts += [(call.arguments, CODE, f", call of {call.name}") for call in calls]
        for text, kind, call_name in texts:
            if text:
                place = f"message {number}{call_name}"
                documents.append(Document(text, kind, message.role, trace.id, place))
    return Corpus(tuple(documents))


SHIPPED = "shipped texts"
OWN = "conversation"


@dataclass(frozen=True, slots=True)
class Misjudgement:
    """The error of a cheap count on texts of one kind.

    Parameters
    ----------
    kind, where : str
        Kind and source of the texts.
    texts : int
        Number of texts that were counted.
    exact, estimate : int
        Total tokens by the best and by the cheap counter.
    low, high : float
        Range of the error for 9 of 10 texts, as shares of the best count.

    Examples
    --------
    >>> german = Misjudgement("prose", "shipped texts", texts=40, exact=1_000, estimate=800, low=-.4, high=-.1)
    >>> round(german.error, 2), german.actual(3_000), german.least(3_000), german.most(3_000)
    (-0.2, 3750, 3333, 5000)
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
        """The cheap count's error, as a share of the best count."""
        return self.estimate / self.exact - 1

    def actual(self, budget: int) -> int:
        """Return the actual tokens in a budget that a cheap count fills."""
        return round(max(0, budget) * self.exact / self.estimate)

    def least(self, budget: int) -> int:
        """Return the lower end of the actual tokens in a filled budget.

        The range from `least` to `most` covers 9 of 10 texts.
        """
        return round(max(0, budget) / (1 + self.high))

    def most(self, budget: int) -> int:
        """Return the upper end of the actual tokens in a filled budget.

        The range from `least` to `most` covers 9 of 10 texts.
        """
        return round(max(0, budget) / (1 + self.low))


def misjudgements(stage: BudgetStage) -> tuple[Misjudgement, ...]:
    """Return a cheap count's errors for the shipped texts and the conversation."""
    settings = stage.settings
    library = stage.library
    cheap, best = stage.cheap, stage.best
    names = (cheap.name, best.name)
    classes = {kind for kinds in CLASSES.values() for kind in kinds}
    rows = library.once(
        ("shipped errors", *names),
        lambda: _misjudged(
            shipped().where(lambda text: text.kind in classes), cheap, best, SHIPPED
        ),
    )
    if settings.trace is not None:
        key = ("conversation errors", settings.trace, settings.conversation, *names)
        trace = library.conversations(settings.trace)[settings.conversation]
        rows = (
            *rows,
            *library.once(key, lambda: _misjudged(kind_documents(trace), cheap, best, OWN)),
        )
    return tuple(sorted(rows, key=lambda row: [*CLASSES].index(row.kind)))


def _misjudged(
    corpus: Corpus, cheap: Counter, best: Counter, where: str
) -> tuple[Misjudgement, ...]:
    """Return a cheap count's errors for each kind of text."""
    texts = corpus.where(lambda document: bool(document.text))
    if not texts.documents:
        return ()
    errors = compare([cheap], texts, best)
    # The interval of the best count; if its error was never measured, both ends are the count.
    below, above = spread_of(best) or (0.0, 0.0)
    # A text that either counter counts as 0 has no error.
    counted = errors[(errors["exact"] > 0) & (errors["estimate"] > 0)]
    results = []
    for kind, classes in CLASSES.items():
        rows = counted[counted["class"].isin([kind, *classes])]
        if not len(rows):
            continue
        # More actual tokens mean a lower error, so the upper end of the count gives the lower end of the error.
        most = (rows["exact"] * (1 + above)).round()
        least = (rows["exact"] * (1 + below)).round().clip(lower=1)
        results.append(
            Misjudgement(
                kind=kind,
                where=where,
                texts=len(rows),
                exact=int(rows["exact"].sum()),
                estimate=int(rows["estimate"].sum()),
                low=float(np.quantile(rows["estimate"] / most - 1, 0.05)),
                high=float(np.quantile(rows["estimate"] / least - 1, 0.95)),
            )
        )
    return tuple(results)


#: The items that a section cuts, by the items that it keeps.
CUT: Final = {
    "newest": "the oldest messages",
    "best": "the least relevant texts",
    "first": "the last texts",
}
#: The card's key figures, the most important figures first.
FIRST = ("remainder", "pool", "usable", "first")


def headline(stage: BudgetStage) -> Data:
    """Return the card's title, the line above it and the text below."""
    budget = stage.plan.budget
    preset = PRESETS.get(budget.name or "")
    name = preset.title.partition(":")[0] if preset else budget.name or "Custom budget"
    verdict, *more = sentences(stage)
    return {
        "over": f"{name}, {stage.settings.model}, {budget.window:,} tokens",
        "title": verdict,
        "text": " ".join(more),
    }


def sentences(stage: BudgetStage) -> list[str]:
    """Return sentences on the fit, the first cut and free tokens.

    If the request or the budget does not fit, or nothing is left for the remainder, the sentences describe only that.
    """
    plan = stage.plan
    budget = plan.budget

    # If the request exceeds the window, nothing else matters.
    if plan.free < 0:
        largest = max(plan.grants, key=lambda grant: grant.granted)
        alone = f"{largest.section} alone takes {largest.granted:,} of the {max(0, budget.usable):,} usable tokens"
        return [f"The request exceeds the window by {too_many(plan):,} tokens.", f"{alone}."]
    if budget.unclaimed < 0 and not takes_the_rest(budget):
        promised = f"Reserves and caps exceed the window by {too_many(plan):,} tokens"
        return ["The budget does not fit.", f"{promised}."]
    if budget.remainder is not None and plan.remainder <= 0:
        missing = f"{-plan.remainder:,} tokens are missing." if plan.remainder else ""
        return [f"Nothing is left for {budget.remainder}.", missing]
    free = f"{left_of_pool(plan):,} tokens are free."
    if excess := too_many(plan):
        free = f"The sections exceed the window by {excess:,} tokens."
    fits = f"{fitting(stage)} fit."
    if stage.first_cut is None:
        return [fits, free]
    turn, section = stage.first_cut
    rule = CUT[budget.allocations[budget.sections.index(section)].keep]
    whose = "" if section == budget.remainder else f" of {section}"
    return [fits, f"From turn {turn:,} {rule}{whose} are cut.", free]


def fitting(stage: BudgetStage) -> str:
    """Describe the number of turns or sections without cuts."""
    if stage.turns is None:
        whole = [grant.cut == 0 for grant in stage.plan.grants]
        return f"{sum(whole):,} of {len(whole):,} sections"
    columns = stage.turns.columns(stage.plan.budget)
    is_whole = np.sum([column["cut"] for column in columns.values()], axis=0) == 0
    return f"{np.count_nonzero(is_whole):,} of {len(is_whole):,} turns"


def key_figures(stage: BudgetStage) -> list[Data]:
    """Return the key figures, the history budget and the shared pool first."""
    by_key = {kpi.key: kpi for kpi in kpis(stage)}
    lines = {"remainder": stage.plan.budget.remainder or "", "pool": POOL}
    for key in lines.keys() & by_key:
        by_key[key] = replace(by_key[key], color=colour(lines[key]))
    return [by_key[key].drawn for key in FIRST if key in by_key]
