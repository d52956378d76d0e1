"""Strip: a cheap count's effect on the history budget and pool.

Each row is a kind of text from the shipped texts or the conversation. Its bar shows the actual tokens in the budget if
the cheap count fills the budget. The thin line over the bar spans 9 of 10 texts. The grey bands show where the excess
tokens fit: first in the safety reserve, then in the rest of the shared pool.

    over      = actual - budget
    from pool = min(over - safety reserve, pool)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from budgetkit.budget.html import POOL, colour
from budgetkit.budget.quoting import many
from budgetkit.counters import basis_of
from budgetkit.lab.accuracy.document_figures import signed_percent
from budgetkit.lab.accuracy.kinds import CJK, CODE, PROSE
from budgetkit.lab.app.headline import OWN, SHIPPED, Misjudgement, misjudgements
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.panel import word_meaning
from budgetkit.lab.explorers.report import THIN_LINES
from budgetkit.lab.explorers.shelves import advice, basis, short_name
from budgetkit.lab.figures.window import left_of_pool, takes_the_rest
from budgetkit.message import Data
from budgetkit.plan import Plan

LABELS = {CODE: "Code, data", CJK: "CJK", PROSE: "Prose"}
COLUMNS = [
    "kind",
    "text",
    "budget in actual tokens",
    "error",
    "actual",
    "pool left",
    "result",
]
MEANINGS = {
    CODE: "code, data and markup",
    CJK: "Chinese, Japanese and Korean, also mixed with English",
    PROSE: "prose in all other scripts",
}
#: Maximum length of a thin line, as a multiple of the longest bar; a longer line ends at the edge.
LONGEST_LINE = 1.5


class Verdict(NamedTuple):
    """A verdict on a full budget: a level and its wording.

    The level determines the colour.
    """

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Room:
    """A section's limit, with the safety reserve and the pool beyond it.

    All sizes are in tokens.

    Parameters
    ----------
    name : str
        The section, or the shared pool.
    budget : int
        Limit of the section, in tokens.
    safety, pool : int
        The safety reserve, and the rest of the shared pool.
    overrun : int
        Tokens by which the request exceeds the window. If the number is above 0, nothing can be filled.

    Examples
    --------
    >>> room = Room("history", budget=4_000, safety=500, pool=1_000)
    >>> [room.verdict(actual).level for actual in (3_800, 4_000, 4_300, 5_200, 6_000)]
    ['waste', 'exact', 'safe', 'pool', 'over']
    >>> room.pool_left(5_200), Room("history", -40, 0, 0, overrun=40).verdict(0).level
    (300, 'overrun')
    """

    name: str
    budget: int
    safety: int
    pool: int
    overrun: int = 0

    def verdict(self, actual: int) -> Verdict:
        """Return the verdict on a full budget, such as "fits".

        Excess tokens are taken from the safety reserve first, then from the shared pool.
        """
        if self.overrun:
            return Verdict("overrun", "window overflows")
        if self.budget <= 0:
            return Verdict("empty", "nothing to fill")
        over = actual - self.budget
        if over < 0:
            return Verdict("waste", f"fits, {-over:,} unused")
        if over == 0:
            return Verdict("exact", "fits")
        if over <= self.safety:
            return Verdict("safe", f"fits, {over:,} from safety")
        if over <= self.safety + self.pool:
            return Verdict("pool", f"takes {over - self.safety:,} from the pool")
        return Verdict("over", f"overflows by {over - self.safety - self.pool:,}")

    def pool_left(self, actual: int) -> int:
        """Return the tokens left in the shared pool after covering the excess."""
        beyond_safety = max(0, actual - max(0, self.budget) - self.safety)
        return max(0, self.pool - beyond_safety)


def room_of(plan: Plan) -> Room:
    """Return the limits of a plan's remainder, or else its shared pool."""
    budget = plan.budget
    safety = max(0, budget.sizes.get("safety", 0))
    overrun = max(0, -plan.free)
    if budget.remainder is None:
        return Room(name=POOL, budget=budget.shared_pool, safety=safety, pool=0, overrun=overrun)
    pool = 0
    if not takes_the_rest(budget):
        pool = max(0, left_of_pool(plan))
    return Room(
        name=budget.remainder, budget=plan.remainder, safety=safety, pool=pool, overrun=overrun
    )


def strip(stage: BudgetStage) -> Data:
    """Return the table of a cheap count's errors for the page."""
    rows = misjudgements(stage)
    room = room_of(stage.plan)
    budget = max(0, room.budget)

    # The width as a multiple of the budget.
    longest = max([1.25, *(row.exact / row.estimate for row in rows)])
    lines = [min(1 / (1 + row.low), LONGEST_LINE * longest) for row in rows]
    reach = 1.04 * max([longest, *lines])
    whole = max(1, budget) * reach
    by_place = {(row.kind, row.where): row for row in rows}
    places = (SHIPPED,) if stage.settings.trace is None else (SHIPPED, OWN)

    # The tokens beyond the budget: the safety reserve, then the pool, in percent of the width.
    behind = {"safety": room.safety, "left in pool": room.pool}
    bands = []
    start = budget / whole
    for tokens in behind.values():
        band = {"x": 0.0, "width": 0.0}
        if not room.overrun and room.budget > 0:
            width = min(tokens / whole, 1 - start)
            band = {"x": 100 * start, "width": 100 * width}
            start += width
        bands.append(band)
    names = [f"{name} {tokens:,}" for name, tokens in behind.items() if tokens]
    behind_text = ", then ".join(names) or "no reserve beyond it"
    if room.overrun:
        behind_text = "the window overflows"
    return {
        "title": f"How far off is {short_name(stage.cheap)}?",
        "note": _note(room, stage) + advice(stage.best),
        "color": colour(room.name),
        "line": 100 / reach,
        "line_text": f"planned {budget:,}",
        "bands": bands,
        "behind": behind_text,
        "columns": COLUMNS,
        "meanings": [word_meaning(column) for column in COLUMNS],
        "rows": [
            _row(kind, where, by_place.get((kind, where)), room, stage, reach)
            for kind in (CODE, CJK, PROSE)
            for where in places
        ],
    }


def _note(room: Room, stage: BudgetStage) -> str:
    reference = basis(stage.best, stage.model)
    compared = f"Compared with {reference}."
    if room.overrun:
        return f"The request exceeds the window by {room.overrun:,} tokens, so nothing is left to fill. {compared}"
    if room.budget <= 0:
        return f"Nothing is left for {room.name}, so there is nothing to fill. {compared}"
    size = f"the {room.budget:,} tokens of {room.name}"
    if stage.is_one_count and stage.best.exact:
        return f"Counted with {reference}: {size} are actual tokens."
    if stage.is_one_count:
        note = f"Counted with {reference}; no better count is known to compare it with."
    else:
        note = f"Actual tokens if {short_name(stage.cheap)} counts {size}, by {reference}."
    return f"{note}{THIN_LINES}"


def _row(
    kind: str,
    where: str,
    misjudged: Misjudgement | None,
    room: Room,
    stage: BudgetStage,
    reach: float,
) -> Data:
    row: Data = {
        "key": f"{kind} {where}",
        "kind": LABELS[kind],
        "where": where,
        "means": MEANINGS[kind],
        "level": "none",
        "error": "none",
        "actual": "",
        "between": "",
        "pool": "",
        "pool_between": "",
        "verdict": "",
        "tip": f"No text of this kind is in the {where}",
        "bar": 0,
        "interval": [0, 0],
    }
    if misjudged is None:
        return row
    low = signed_percent(misjudged.low, 0)
    high = signed_percent(misjudged.high, 0)
    counts = (
        f"{misjudged.estimate:,} tokens by the cheap count, {misjudged.exact:,} by the best count"
    )
    row |= {
        "error": signed_percent(misjudged.error, 0),
        "tip": f"{many(misjudged.texts, 'text')}: {counts}; 9 of 10 texts are off by {low} to {high}",
    }
    actual, least, most = (
        f(room.budget) for f in (misjudged.actual, misjudged.least, misjudged.most)
    )
    verdict = room.verdict(actual)
    row |= {"level": verdict.level, "verdict": verdict.text}
    if verdict.level in ("overrun", "empty"):
        return row
    if stage.is_one_count and not stage.best.exact:
        row |= {"level": "same", "verdict": "the same count"}
    elif basis_of(stage.best) == "estimate" and verdict.level != "exact":
        row["verdict"] = f"estimate: {verdict.text}"
    if room.pool:
        row["pool"] = f"{room.pool_left(actual):,}"
        row["pool_between"] = f"{room.pool_left(most):,} to {room.pool_left(least):,}"
    return row | {
        "actual": f"{actual:,}",
        "between": f"{least:,} to {most:,}",
        "bar": 100 * actual / room.budget / reach,
        "interval": [min(100, 100 * end / room.budget / reach) for end in (least, most)],
    }
