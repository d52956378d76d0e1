"""The figures of the view: their specification, a sentence that reads them, and their table where it is open."""

from collections.abc import Collection
from typing import Any

from budgetkit import figures
from budgetkit.budget.quoting import brief
from budgetkit.explorer.budget.results import Results
from budgetkit.explorer.drawing import chart
from budgetkit.figures.question import Columns, Question, signed
from budgetkit.figures.turns import ALL
from budgetkit.figures.window import takes_the_rest
from budgetkit.plan.batch import RequestBatch

Data = dict[str, Any]


def charts(found: Results, shown: Collection[str], opened: Collection[str]) -> dict[str, Data]:
    """Return what the page draws."""
    return {name: _chart(name, found, name in opened) for name in shown}


def _chart(name: str, found: Results, opened: bool) -> Data:
    question, table = _tables(name, found)
    return chart(question, table, NOTES[name](table, found), opened, "turn" if name == "turns" else None)


def _tables(name: str, found: Results) -> tuple[Question[...], Columns]:
    budget = found.plan.budget
    if name == "waterfall":
        return figures.waterfall, figures.waterfall.answer(found.plan)
    if name == "sections":
        return figures.sections, figures.sections.answer(found.plan)
    if name == "turns" and found.turns is not None:
        pinned = None if found.pinned is None else found.pinned.budget
        return figures.turns, figures.turns.answer(budget, found.turns, found.turn, pinned, found.pinned_turns)
    if name == "errors" and found.compared is not None:
        return figures.counter_error, figures.counter_error.answer(budget, *found.compared[:2])
    if name == "conversations" and found.conversations is not None:
        return figures.conversations, figures.conversations.answer(budget, found.conversations)
    raise LookupError(f"no figure {brief(name)} for these settings; it needs a conversation")  # pragma: no cover


def _waterfall_note(table: Columns, found: Results) -> str:
    left = table["tokens"][-1]
    rest = takes_the_rest(found.plan.budget)
    whose = f"{table['line'][-1]} may have" if rest else "the shared pool has"
    claim = "what the other sections take" if rest else "caps"
    return f"Window less reserves less {claim}: {whose} {signed(left)} tokens."


def _sections_note(table: Columns, found: Results) -> str:
    asked, granted = sum(table["demand"]), sum(table["granted"])
    at = f" at turn {found.turn:,}" if found.turn else ""
    if not asked:
        return "Nothing is asked for; type sizes in, or open a conversation."
    if granted == asked:
        return f"All {asked:,} tokens asked for are granted{at}."
    return f"{granted:,} of the {asked:,} tokens asked for are granted{at}."


def _turns_note(table: Columns, found: Results) -> str:
    line, limit = table["line"][0], table["limit"][found.turn - 1]
    allowed = f"{line} may take {signed(limit)} tokens at turn {found.turn:,}"
    if found.first_cut is None:
        return f"{allowed}; nothing is ever cut.{_cut_anywhere(found.turns)}"
    turn, section = found.first_cut
    told = f"{allowed}; the first cut comes at turn {turn:,}, in {section}. Click a turn to go there."
    return told + _cut_anywhere(found.turns)


def _cut_anywhere(requests: RequestBatch | None) -> str:
    """Say so where there is too much to plan message by message, as the chosen turn is."""
    if requests is None or requests.items is not None:
        return ""
    return f" {len(requests.demand):,} turns are too much to plan message by message; here sections are cut anywhere."


def _errors_note(table: Columns, found: Results) -> str:
    line, error, percent, shift = (table[name][found.turn - 1] for name in ("line", "error", "error_percent", "shift"))
    names = found.compared[2:] if found.compared else ("", "")
    how = "high" if error > 0 else "low"
    size = "right" if error == 0 else f"{abs(percent):.1f} % too {how}"
    if line == ALL:
        return f"At turn {found.turn:,} {names[1]} is {size} against {names[0]}."
    moved = "stays" if shift == 0 else f"comes out {abs(shift):,} tokens too {'large' if shift > 0 else 'small'}"
    return f"At turn {found.turn:,} {names[1]} is {size} against {names[0]}; the {line} budget {moved}."


def _conversations_note(table: Columns, found: Results) -> str:
    told = f"{table['cut'][0]:,} of {table['conversations'][0]:,} conversations lose something at some turn."
    return told + _cut_anywhere(found.conversations)


NOTES = {
    "waterfall": _waterfall_note,
    "sections": _sections_note,
    "turns": _turns_note,
    "errors": _errors_note,
    "conversations": _conversations_note,
}
