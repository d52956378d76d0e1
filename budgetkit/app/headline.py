"""Headline: what the card is about, and one sentence that says what its budget means."""

from dataclasses import replace
from typing import Any

from budgetkit.budget.colours import POOL, colour
from budgetkit.explorer.budget.results import Results
from budgetkit.explorer.budget.settings import Settings
from budgetkit.explorer.budget.view_state import kpis
from budgetkit.figures.question import signed
from budgetkit.figures.window import takes_the_rest
from budgetkit.presets import PRESETS

Data = dict[str, Any]
#: The key figures of the card: first those that the sliders are moved for.
FIRST = ("remainder", "pool", "usable", "first")


def headline(settings: Settings, found: Results) -> Data:
    """Return the card's title and sentence."""
    budget = found.plan.budget
    known = PRESETS.get(budget.name or "")
    title = known.title if known else budget.name or "A budget of your own"
    return {
        "over": f"{settings.model}, {budget.window:,} tokens",
        "title": title.partition(":")[0],
        "text": sentence(found),
    }


def sentence(found: Results) -> str:
    """Say what the budget means."""
    budget, plan = found.plan.budget, found.plan
    if plan.free < 0 or (budget.unclaimed < 0 and not takes_the_rest(budget)):
        short = -min(plan.free, budget.unclaimed)
        return f"Reserves and caps promise {short:,} tokens more than the window has."
    kept = _answer(found)
    if budget.remainder is None:
        return f"The sections share {signed(budget.shared_pool)} tokens that no cap claims{kept}."
    own = f"The {budget.remainder} may take {signed(plan.remainder)} tokens{_lasts(found)}"
    if takes_the_rest(budget):
        return f"{own}: all that the others leave{kept}."
    return f"{own}; {signed(budget.shared_pool)} more are shared{kept}."


def _answer(found: Results) -> str:
    budget = found.plan.budget
    size = next((budget.sizes[reserve.name] for reserve in budget.reserves if reserve.serves == "output"), 0)
    return f", {size:,} wait for the answer" if size else ""


def _lasts(found: Results) -> str:
    """Say for how many turns nothing is cut."""
    if found.demand is None:
        return ""
    turns = len(found.demand)
    if found.first_cut is None:
        return f", enough for all {turns:,} turns"
    before = found.first_cut[0] - 1
    return f", enough for {before:,} of {turns:,} turns" if before else ", too few for the first turn"


def key_figures(found: Results) -> list[Data]:
    """Return the key figures, the history budget and the shared pool first."""
    by_key = {kpi.key: kpi for kpi in kpis(found)}
    own = {"remainder": found.plan.budget.remainder or "", "pool": POOL}
    shown = [by_key[key] for key in FIRST if key in by_key]
    return [replace(kpi, color=colour(own[kpi.key]) if kpi.key in own else None).drawn for kpi in shown]
