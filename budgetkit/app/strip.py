"""Strip: what a budget that a cheap count fills takes in truth, by kind of text, as plain data for the page.

A row is a kind of text in one place, the shipped texts or this conversation. Its length is what the budget takes in
truth. Behind it lies who takes up what is too much: the safety reserve first, then what is left of the shared pool.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from budgetkit.accuracy.figures.documents import signed_percent
from budgetkit.app.kinds import CJK, CODE, PROSE
from budgetkit.app.misjudged import OWN, SHIPPED, Misjudged
from budgetkit.budget.colours import POOL, colour
from budgetkit.figures.question import signed
from budgetkit.figures.window import claims, takes_the_rest
from budgetkit.plan import Plan

Data = dict[str, Any]
LABELS = {CODE: "Code, data", CJK: "CJK", PROSE: "Prose"}
MEANS = {
    CODE: "code, data and markup",
    CJK: "Chinese, Japanese and Korean, also mixed with English",
    PROSE: "prose in all other scripts",
}


@dataclass(frozen=True, slots=True)
class Room:
    """The budget that a cheap count fills, and what stands behind it, in tokens.

    Examples
    --------
    >>> room = Room("history", budget=4_000, safety=500, pool=1_000)
    >>> [room.verdict(really)[0] for really in (3_800, 4_000, 4_300, 5_200, 6_000)]
    ['waste', 'exact', 'safe', 'pool', 'over']
    """

    name: str
    budget: int
    safety: int
    pool: int

    def verdict(self, really: int) -> tuple[str, str]:
        """Say what becomes of what is too much, or too little."""
        over = really - max(0, self.budget)
        if over < 0:
            return "waste", f"{-over:,} unused"
        if over == 0:
            return "exact", "as planned"
        if over <= self.safety:
            return "safe", f"{over:,} from safety"
        if over <= self.safety + self.pool:
            return "pool", f"{over:,} from the pool"
        return "over", f"{over - self.safety - self.pool:,} too many"


def room_of(plan: Plan) -> Room:
    """Return the budget of the plan's remainder; of one that names none, the shared pool."""
    budget = plan.budget
    safety = max(0, budget.sizes.get("safety", 0))
    if budget.remainder is None:
        return Room(POOL, budget.shared_pool, safety, 0)
    left = next(claim.tokens for claim in claims(plan) if claim.kind == "pool")
    return Room(budget.remainder, plan.remainder, safety, 0 if takes_the_rest(budget) else max(0, left))


def strip(room: Room, rows: Sequence[Misjudged], cheap: str, exact: str, has_trace: bool) -> Data:
    """Return the table of errors as the page draws it."""
    budget = max(0, room.budget)
    reach = 1.04 * max([1.25, *(row.exact / row.estimate for row in rows)])  # in budgets; fixed while a slider moves
    whole = max(1, budget) * reach
    known = {(row.kind, row.where): row for row in rows}
    places = (SHIPPED, OWN) if has_trace else (SHIPPED,)
    return {
        "title": f"How far off is {cheap}?",
        "note": f"What {signed(room.budget)} tokens of {room.name} by {cheap} really take, in {exact}.",
        "color": colour(room.name),
        "line": 100 / reach,
        "line_text": f"budget {budget:,}",
        "bands": _bands(room, budget / whole, whole),
        "behind": _behind(room),
        "places": len(places),
        "rows": [
            _row(kind, where, known.get((kind, where)), room, reach) for kind in (CODE, CJK, PROSE) for where in places
        ],
    }


def _bands(room: Room, start: float, whole: float) -> list[Data]:
    """Return safety and pool behind the budget, in percent of the width."""
    safety = min(room.safety / whole, 1 - start)
    pool = min(room.pool / whole, 1 - start - safety)
    return [{"x": 100 * start, "width": 100 * safety}, {"x": 100 * (start + safety), "width": 100 * pool}]


def _behind(room: Room) -> str:
    known = (("safety", room.safety), ("left of pool", room.pool))
    return ", then ".join(f"{name} {tokens:,}" for name, tokens in known if tokens) or "nothing behind it"


def _row(kind: str, where: str, found: Misjudged | None, room: Room, reach: float) -> Data:
    row: Data = {"key": f"{kind} {where}", "kind": LABELS[kind], "where": where, "means": MEANS[kind]}
    if found is None:
        return {**row, "level": "none", "error": "none", "really": "", "verdict": "", "tip": "", "bar": 0}
    really = found.really(room.budget)
    level, said = room.verdict(really)
    return {
        **row,
        "level": level,
        "error": signed_percent(found.error, 0),
        "really": f"{really:,}",
        "verdict": said,
        "bar": 100 * found.exact / found.estimate / reach,
        "tip": f"{found.texts:,} texts: {found.estimate:,} counted, {found.exact:,} really; nine in ten texts are "
        f"{signed_percent(found.low, 0)} to {signed_percent(found.high, 0)} off",
    }
