"""The figures of the view: their specification, a sentence that reads them, and their table where it is open."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from budgetkit.budget.quoting import brief
from budgetkit.lab import figures
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.explorers.drawing import chart
from budgetkit.lab.figures.question import Columns, Question, signed
from budgetkit.lab.figures.turns import ALL
from budgetkit.lab.figures.window import takes_the_rest
from budgetkit.plan.batch import RequestBatch

Data = dict[str, Any]


def charts(
    results: BudgetResults, shown: Collection[str], opened: Collection[str]
) -> dict[str, Data]:
    """Return what the page draws."""
    return {name: _chart(name, results, name in opened) for name in shown}


def _chart(name: str, results: BudgetResults, opened: bool) -> Data:
    question, table = _tables(name, results)
    return chart(
        question, table, NOTES[name](table, results), opened, "turn" if name == "turns" else None
    )


def _tables(name: str, results: BudgetResults) -> tuple[Question[...], Columns]:
    budget = results.plan.budget
    if name == "waterfall":
        return figures.waterfall, figures.waterfall.answer(results.plan)
    if name == "sections":
        return figures.sections, figures.sections.answer(results.plan)
    if name == "turns" and results.turns is not None:
        if results.pinned is None:
            pinned = None
        else:
            pinned = results.pinned.budget
        return figures.turns, figures.turns.answer(
            budget, results.turns, results.turn, pinned, results.pinned_turns
        )
    if name == "errors" and results.compared is not None:
        counts = results.compared
        answer = figures.counter_error.answer(budget, counts.best, counts.cheap)
        return figures.counter_error, answer
    if name == "conversations" and results.conversations is not None:
        return figures.conversations, figures.conversations.answer(budget, results.conversations)
    raise LookupError(f"no figure {brief(name)} for these settings; it needs a conversation")


def _waterfall_note(table: Columns, results: BudgetResults) -> str:
    left = table["tokens"][-1]
    rest = takes_the_rest(results.plan.budget)
    if rest:
        whose = f"{table['line'][-1]} may have"
    else:
        whose = "the shared pool has"
    claim = "what the other sections take" if rest else "caps"
    return f"Window less reserves less {claim}: {whose} {signed(left)} tokens."


def _sections_note(table: Columns, results: BudgetResults) -> str:
    demand = sum(table["demand"])
    granted = sum(table["granted"])
    if results.turn:
        at = f" at turn {results.turn:,}"
    else:
        at = ""
    if not demand:
        return "Nothing is asked for; type sizes in, or open a conversation."
    if granted == demand:
        return f"All {demand:,} tokens asked for are granted{at}."
    return f"{granted:,} of the {demand:,} tokens asked for are granted{at}."


def _turns_note(table: Columns, results: BudgetResults) -> str:
    line = table["line"][0]
    limit = table["limit"][results.turn - 1]
    if limit < 0:
        allowed = (
            f"Nothing is left for {line} at turn {results.turn:,}, {-limit:,} tokens are missing"
        )
    else:
        allowed = f"{line} may take {signed(limit)} tokens at turn {results.turn:,}"
    if results.first_cut is None:
        return f"{allowed}; nothing is ever cut.{_cut_anywhere(results.turns)}"
    turn, section = results.first_cut
    sentence = (
        f"{allowed}; the first cut comes at turn {turn:,}, in {section}. Click a turn to go there."
    )
    return sentence + _cut_anywhere(results.turns)


def _cut_anywhere(requests: RequestBatch | None) -> str:
    """Say so where there is too much to plan message by message, as the chosen turn is."""
    if requests is None or requests.items is not None:
        return ""
    return f" {len(requests.demand):,} turns are too much to plan message by message; here sections are cut anywhere."


def _errors_note(table: Columns, results: BudgetResults) -> str:
    line, error, percent, shift = (
        table[name][results.turn - 1] for name in ("line", "error", "error_percent", "shift")
    )
    if results.compared:
        names = (results.compared.best_name, results.compared.cheap_name)
    else:
        names = ("", "")
    how = "high" if error > 0 else "low"
    if error == 0:
        size = "right"
    else:
        size = f"{abs(percent):.1f} % too {how}"
    if line == ALL:
        return f"At turn {results.turn:,} {names[1]} is {size} against {names[0]}."
    if shift == 0:
        moved = "stays"
    else:
        moved = f"comes out {abs(shift):,} tokens too {'large' if shift > 0 else 'small'}"
    return f"At turn {results.turn:,} {names[1]} is {size} against {names[0]}; the {line} budget {moved}."


def _conversations_note(table: Columns, results: BudgetResults) -> str:
    sentence = f"{table['cut'][0]:,} of {table['conversations'][0]:,} conversations lose something at some turn."
    return sentence + _cut_anywhere(results.conversations)


NOTES = {
    "waterfall": _waterfall_note,
    "sections": _sections_note,
    "turns": _turns_note,
    "errors": _errors_note,
    "conversations": _conversations_note,
}
