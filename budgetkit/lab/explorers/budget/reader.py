"""Reader: the messages of the chosen turn, what became of each, and why, as far as a page can hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from budgetkit.budget.colours import colour
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.explorers.reading import parted, speaker, whole, words
from budgetkit.message import Message
from budgetkit.plan import Plan
from budgetkit.plan.decisions import FITS, Decision
from budgetkit.truncation.items import MARKERS

Data = dict[str, Any]
# of each section: items that stay, that do not, and of the opening
NEWEST = 40
GONE = 15
FIRST = 2
_BECAME = {"kept": "kept whole", "cut": "cut", "dropped": "dropped"}


def reading(results: BudgetResults) -> Data:
    """Return the reader: the items of the plan, in their order; nothing where sizes are typed in."""
    plan = results.plan
    if results.trace is None or not len(plan.decisions):
        return {}
    reasons = plan.decisions.reasons
    kept_items = int((reasons == FITS).sum())
    cut = len(plan.decisions.cuts)
    gone = len(reasons) - kept_items - cut
    fates = ", ".join(
        f"{many:,} {word}"
        for many, word in ((kept_items, "kept"), (cut, "cut"), (gone, "dropped"))
        if many
    )
    note = f"{fates}. Click a message to see why; with the arrow keys, then Enter."
    return {
        "title": f"What becomes of turn {results.turn:,}",
        "note": note,
        "blocks": list(_blocks(plan)),
    }


def _blocks(plan: Plan) -> Iterator[Data]:
    """Give a block for each item that is shown; a run of those that are not is one block."""
    shown = _shown(plan)
    last = -1
    for row in (*shown, len(plan.decisions)):
        if row > last + 1:
            yield _gap(plan, last + 1, row)
        if row < len(plan.decisions):
            yield _block(plan, row, plan.decisions[row])
        last = row


def _shown(plan: Plan) -> list[int]:
    """Choose what is shown: of each section its opening, its newest, what went last, and every cut."""
    decisions = plan.decisions
    chosen = set(plan.decisions.cuts)
    for section in decisions.columns.sections:
        rows = np.asarray(decisions.columns.rows(section))
        stays = decisions.reasons[rows] == FITS
        chosen |= {
            *rows[:FIRST].tolist(),
            *rows[stays][-NEWEST:].tolist(),
            *rows[~stays][-GONE:].tolist(),
        }
    return sorted(chosen)


def _gap(plan: Plan, start: int, stop: int) -> Data:
    many = stop - start
    tokens = int(plan.decisions.columns.tokens[start:stop].sum())
    gone = int((plan.decisions.reasons[start:stop] != FITS).sum())
    if not gone:
        state = "all kept"
    elif gone == many:
        state = "all dropped"
    else:
        state = f"{gone:,} dropped"
    label = f"{many:,} message{'s' * (many != 1)} not shown here"
    return {
        "key": f"gap {start}",
        "label": label,
        "mark": f"{tokens:,} tokens, {state}",
        "level": "gap",
        "pieces": [],
    }


def _block(plan: Plan, row: int, decision: Decision) -> Data:
    before = plan.decisions.columns.items[row].payload
    if decision.outcome == "cut":
        size = f"{decision.kept:,} of {decision.tokens:,} tokens"
    else:
        size = f"{decision.tokens:,} tokens"
    if decision.outcome == "kept":
        asks = {}
    else:
        asks = {"asks": row}
    return {
        **asks,
        "key": str(row),
        "section": decision.section,
        "color": colour(decision.section),
        "label": f"#{row:,} {speaker(before) if isinstance(before, Message) else decision.section}",
        "mark": f"{size}, {decision.outcome}",
        "level": {"kept": "", "cut": "cut", "dropped": "gone"}[decision.outcome],
        "why": _why(plan, decision),
        "pieces": _pieces(before, decision),
    }


def _pieces(before: Any, decision: Decision) -> list[Data]:
    after = decision.item.payload
    if decision.outcome == "cut" and isinstance(before, Message) and isinstance(after, Message):
        return parted(before.text, after.text, MARKERS.values())
    return whole(words(before) if isinstance(before, Message) else str(before or ""))


def _why(plan: Plan, decision: Decision) -> str:
    """Say what became of an item, and what its section asked for and got."""
    grant = plan[decision.section]
    if decision.outcome == "kept":
        because = ""
    else:
        because = f" because: {decision.reason}"
    request_sentence = (
        f"{decision.section} asks for {grant.demand:,} tokens, may take {grant.limit:,} "
        f"and gets {grant.granted:,}."
    )
    return f"{_BECAME[decision.outcome].capitalize()}{because}. {request_sentence}"
