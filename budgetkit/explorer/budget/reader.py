"""Reader: the messages of the chosen turn, what became of each, and why, as far as a page can hold them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from budgetkit.budget.colours import colour
from budgetkit.explorer.budget.results import Results
from budgetkit.explorer.reading import parted, speaker, whole, words
from budgetkit.message import Message
from budgetkit.plan import Plan
from budgetkit.plan.decisions import FITS, Decision
from budgetkit.truncation.items import MARKERS

Data = dict[str, Any]
NEWEST, GONE, FIRST = 40, 15, 2  # of each section: items that stay, that do not, and of the opening
_BECAME = {"kept": "kept whole", "cut": "cut", "dropped": "dropped"}


def reading(found: Results) -> Data:
    """Return the reader: the items of the plan, in their order; nothing where sizes are typed in."""
    plan = found.plan
    if found.trace is None or not len(plan.decisions):
        return {}
    reasons = plan.decisions.reasons
    kept, cut = int((reasons == FITS).sum()), len(plan.decisions.cuts)
    gone = len(reasons) - kept - cut
    told = ", ".join(f"{many:,} {word}" for many, word in ((kept, "kept"), (cut, "cut"), (gone, "dropped")) if many)
    note = f"{told}. Click a message to see why; with the arrow keys, then Enter."
    return {"title": f"What becomes of turn {found.turn:,}", "note": note, "blocks": list(_blocks(plan))}


def _blocks(plan: Plan) -> Iterator[Data]:
    """Give a block for each item that is shown; a run of those that are not is one block."""
    shown, last = _shown(plan), -1
    for row in (*shown, len(plan.decisions)):
        if row > last + 1:
            yield _gap(plan, last + 1, row)
        if row < len(plan.decisions):
            yield _block(plan, row, plan.decisions[row])
        last = row


def _shown(plan: Plan) -> list[int]:
    """Choose what is shown: of each section its opening, its newest, what went last, and every cut."""
    decisions, chosen = plan.decisions, set(plan.decisions.cuts)
    for section in decisions.columns.sections:
        rows = np.asarray(decisions.columns.rows(section))
        stays = decisions.reasons[rows] == FITS
        chosen |= {*rows[:FIRST].tolist(), *rows[stays][-NEWEST:].tolist(), *rows[~stays][-GONE:].tolist()}
    return sorted(chosen)


def _gap(plan: Plan, start: int, stop: int) -> Data:
    many, tokens = stop - start, int(plan.decisions.columns.tokens[start:stop].sum())
    gone = int((plan.decisions.reasons[start:stop] != FITS).sum())
    state = "all kept" if not gone else "all dropped" if gone == many else f"{gone:,} dropped"
    label = f"{many:,} message{'s' * (many != 1)} not shown here"
    return {"key": f"gap {start}", "label": label, "mark": f"{tokens:,} tokens, {state}", "level": "gap", "pieces": []}


def _block(plan: Plan, row: int, made: Decision) -> Data:
    before = plan.decisions.columns.items[row].payload
    size = f"{made.kept:,} of {made.tokens:,} tokens" if made.outcome == "cut" else f"{made.tokens:,} tokens"
    asks = {} if made.outcome == "kept" else {"asks": row}
    return {
        **asks,
        "key": str(row),
        "section": made.section,
        "color": colour(made.section),
        "label": f"#{row:,} {speaker(before) if isinstance(before, Message) else made.section}",
        "mark": f"{size}, {made.outcome}",
        "level": {"kept": "", "cut": "cut", "dropped": "gone"}[made.outcome],
        "why": _why(plan, made),
        "pieces": _pieces(before, made),
    }


def _pieces(before: Any, made: Decision) -> list[Data]:
    after = made.item.payload
    if made.outcome == "cut" and isinstance(before, Message) and isinstance(after, Message):
        return parted(before.text, after.text, MARKERS.values())
    return whole(words(before) if isinstance(before, Message) else str(before or ""))


def _why(plan: Plan, made: Decision) -> str:
    """Say what became of an item, and what its section asked for and got."""
    grant = plan[made.section]
    because = "" if made.outcome == "kept" else f" because: {made.reason}"
    asked = f"{made.section} asks for {grant.demand:,} tokens, may take {grant.limit:,} and gets {grant.granted:,}."
    return f"{_BECAME[made.outcome].capitalize()}{because}. {asked}"
