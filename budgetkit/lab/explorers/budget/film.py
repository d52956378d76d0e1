"""Film: what a page needs to go through the turns of a budget by itself: how much of the window each line claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from budgetkit.budget.colours import colour
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.figures.window import claims
from budgetkit.plan.grant import Grant
from budgetkit.plan.limits import with_undeclared

Data = dict[str, Any]
_MOST: Final = 5_000  # turns


def film(results: BudgetResults) -> Data:
    """Return what a page plays: one track, whose blocks are the lines of the budget; without turns it is a still."""
    plan = results.plan
    spans = []
    if results.turns is None or len(results.turns.demand) > _MOST:
        turns = [0]
        plans = [plan]
    else:
        turns = results.turns.demand.index.tolist()
        columns = results.turns.columns(plan.budget)
        plan = replace(plan, budget=with_undeclared(plan.budget, columns))
        names = ("demand", "limit", "granted")
        rows = {
            section: [column[name].tolist() for name in names]
            for section, column in columns.items()
        }
        grants = [
            tuple(Grant(section, *(each[at] for each in row)) for section, row in rows.items())
            for at in range(len(turns))
        ]
        plans = [replace(plan, grants=each) for each in grants]
        if results.trace:
            spans = [(turn.start, turn.sent) for turn in results.trace.turns]
        else:
            spans = []
    budget = plan.budget
    lines = [claims(each) for each in plans]
    kinds = [(claim.line, colour(claim.line)) for claim in lines[0]]
    sizes = [[max(0, claim.tokens) for claim in each] for each in lines]
    losers = [{grant.section for grant in each.grants if grant.cut > 0} for each in plans]
    cuts = [
        [int(claim.line in each) for claim in row] for row, each in zip(lines, losers, strict=True)
    ]
    demands, got = (
        [sum(getattr(g, what) for g in each.grants) for each in plans]
        for what in ("demand", "granted")
    )
    rows_shown = {
        "asked": demands,
        "granted": got,
        "cut": [a - b for a, b in zip(demands, got, strict=True)],
    }
    if budget.remainder is not None:
        rows_shown[f"{budget.remainder} budget"] = [each.remainder for each in plans]
    return {
        "by": "turn",
        "turns": turns,
        "room": budget.window,
        "room_text": f"window {budget.window:,}",
        "kinds": kinds,
        "spans": spans,
        "tokens": [],
        "kind": [],
        "first": [],
        "tracks": [
            {
                "name": budget.name or "own budget",
                "before": [
                    (place, list(each)) for place, each in enumerate(zip(*sizes, strict=True))
                ],
                "cuts": [list(each) for each in zip(*cuts, strict=True)],
                "after": [],
                "gone": [],
                "shrunk": [],
                "summaries": [],
                "back": {},
                "rows": list(rows_shown.items()),
            }
        ],
    }
