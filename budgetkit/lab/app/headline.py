"""Headline: what the card is about, and one sentence that says what its budget means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from budgetkit.budget.colours import POOL, colour
from budgetkit.budget.quoting import many
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.budget.view_state import kpis
from budgetkit.lab.figures.question import signed
from budgetkit.lab.figures.window import left_of_pool, takes_the_rest, too_many
from budgetkit.plan import Plan
from budgetkit.presets import PRESETS

Data = dict[str, Any]
#: The key figures of the card: first those that the sliders are moved for.
FIRST = ("remainder", "pool", "usable", "first")


def headline(settings: BudgetSettings, results: BudgetResults) -> Data:
    """Return the card's title and sentence."""
    budget = results.plan.budget
    preset = PRESETS.get(budget.name or "")
    title = budget.name or "A budget of your own"
    if preset:
        title = preset.title
    return {
        "over": f"{settings.model}, {budget.window:,} tokens",
        "title": title.partition(":")[0],
        "text": sentence(results),
    }


def sentence(results: BudgetResults) -> str:
    """Say what the budget means."""
    plan = results.plan
    budget = plan.budget

    # A window that is overrun leaves nothing to say about the rest.
    if plan.free < 0:
        largest = max(plan.grants, key=lambda grant: grant.granted)
        return (
            f"The window is overrun by {too_many(plan):,} tokens: {largest.section} alone takes {largest.granted:,} "
            f"of {max(0, budget.usable):,} usable."
        )
    if budget.unclaimed < 0 and not takes_the_rest(budget):
        return f"Reserves and caps promise {too_many(plan):,} tokens more than the window has."

    answer = _answer(results)
    if budget.remainder is None:
        return f"The sections share {signed(budget.shared_pool)} tokens that no cap claims{_taken(plan)}{answer}."
    if plan.remainder <= 0:
        if plan.remainder:
            missing = f", {-plan.remainder:,} tokens are missing"
        else:
            missing = ""
        return f"Nothing is left for the {budget.remainder}{missing}{answer}."
    room = f"The {budget.remainder} may take {plan.remainder:,} tokens{_lasts(results)}"
    if takes_the_rest(budget):
        return f"{room}: all that the others leave{answer}.{_other_loss(results)}"
    return f"{room}; {_shared(plan)}{answer}.{_other_loss(results)}"


def _shared(plan: Plan) -> str:
    """Return how much of the shared pool is left, as the bar draws it."""
    excess = too_many(plan)
    if excess:
        return f"nothing is shared, {excess:,} too many are claimed"
    pool = plan.budget.shared_pool
    left = left_of_pool(plan)
    if left == pool:
        return f"{pool:,} more are shared"
    return f"{left:,} of {pool:,} shared are left"


def _taken(plan: Plan) -> str:
    """Return what a pool that all sections share has left; empty where all of it is."""
    excess = too_many(plan)
    if excess:
        return f", and claim {excess:,} too many"
    left = left_of_pool(plan)
    if left == plan.budget.shared_pool:
        return ""
    return f"; {left:,} are left"


def _answer(results: BudgetResults) -> str:
    """Return how many tokens are reserved for the answer; empty where none are."""
    budget = results.plan.budget
    size = sum(
        budget.sizes[reserve.name] for reserve in budget.reserves if reserve.serves == "output"
    )
    if not size:
        return ""
    return f", {size:,} wait for the answer"


def turns_without_loss(results: BudgetResults) -> int | None:
    """Return for how many turns the remainder loses nothing; None without turns."""
    remainder = results.plan.budget.remainder
    if results.turns is None or remainder is None:
        return None
    columns = results.turns.columns(results.plan.budget)
    is_cut = columns[remainder]["cut"] > 0
    if is_cut.any():
        return int(np.argmax(is_cut))
    return len(is_cut)


def _lasts(results: BudgetResults) -> str:
    """Say for how many turns nothing of the remainder is cut."""
    lasting = turns_without_loss(results)
    if lasting is None or results.demand is None:
        return ""
    turns = len(results.demand)
    if lasting == turns:
        return f", enough for {'all ' if turns > 1 else 'the '}{many(turns, 'turn') if turns > 1 else 'one turn'}"
    if not lasting:
        return ", too few for the first turn"
    return f", enough for {lasting:,} of {many(turns, 'turn')}"


def _other_loss(results: BudgetResults) -> str:
    """Name the section that loses something first; empty where it is the remainder or none."""
    if results.first_cut is None or results.first_cut[1] == results.plan.budget.remainder:
        return ""
    turn, section = results.first_cut
    return f" The first loss is in {section}, at turn {turn:,}."


def key_figures(results: BudgetResults) -> list[Data]:
    """Return the key figures, the history budget and the shared pool first."""
    by_key = {kpi.key: kpi for kpi in kpis(results)}
    lines = {"remainder": results.plan.budget.remainder or "", "pool": POOL}
    shown = []
    for key in FIRST:
        if key not in by_key:
            continue
        kpi = by_key[key]
        if key in lines:
            kpi = replace(kpi, color=colour(lines[key]))
        shown.append(kpi.drawn)
    return shown
