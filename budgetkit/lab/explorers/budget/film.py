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
        plans = []
        for place in range(len(turns)):
            grants = [
                Grant(section, demand[place], limit[place], granted[place])
                for section, (demand, limit, granted) in rows.items()
            ]
            plans.append(replace(plan, grants=tuple(grants)))
        if results.trace:
            spans = [(turn.start, turn.sent) for turn in results.trace.turns]
        else:
            spans = []
    budget = plan.budget

    # What each line claims at each turn, and whether its section loses something there.
    claims_of_turns = [claims(of_turn) for of_turn in plans]
    kinds = [(claim.line, colour(claim.line)) for claim in claims_of_turns[0]]
    sizes = [[max(0, claim.tokens) for claim in turn_claims] for turn_claims in claims_of_turns]
    cuts = []
    for of_turn, turn_claims in zip(plans, claims_of_turns, strict=True):
        losers = {grant.section for grant in of_turn.grants if grant.cut > 0}
        cuts.append([int(claim.line in losers) for claim in turn_claims])

    # The numbers under the film, turn by turn.
    demands = [sum(grant.demand for grant in of_turn.grants) for of_turn in plans]
    granted_tokens = [of_turn.used for of_turn in plans]
    rows_shown = {
        "asked": demands,
        "granted": granted_tokens,
        "cut": [demand - used for demand, used in zip(demands, granted_tokens, strict=True)],
    }
    if budget.remainder is not None:
        rows_shown[f"{budget.remainder} budget"] = [of_turn.remainder for of_turn in plans]
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
                    (place, list(of_line)) for place, of_line in enumerate(zip(*sizes, strict=True))
                ],
                "cuts": [list(of_line) for of_line in zip(*cuts, strict=True)],
                "after": [],
                "gone": [],
                "shrunk": [],
                "summaries": [],
                "back": {},
                "rows": list(rows_shown.items()),
            }
        ],
    }
