"""View state: what the view shows of an outcome, as plain data: key figures, status, bar, and where it all comes from.

Every number and every sentence on the page is written here; the page only places them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from budgetkit.budget.amounts import Amount, Share
from budgetkit.lab.explorers.budget.amount_edits import amounts_of, usual, with_reserves
from budgetkit.lab.explorers.budget.bar import BESIDE, WINDOWS, bar
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.drawing import Kpi
from budgetkit.lab.explorers.words import explained, meaning
from budgetkit.lab.figures.question import short, signed
from budgetkit.lab.figures.window import takes_the_rest
from budgetkit.plan import Plan

Data = dict[str, Any]


def scene(settings: BudgetSettings, results: BudgetResults, source: str) -> Data:
    """Return the state of the view."""
    return {
        "source": source,
        "kpis": [kpi.drawn for kpi in kpis(results)],
        "bar": bar(settings, results),
        "actions": {"pinned": settings.pinned is not None},
        "figures": shown_figures(results),
    }


def shown_figures(results: BudgetResults) -> list[str]:
    """Return which figures there is something to draw for."""
    names = ["waterfall", "sections"]
    if results.demand is not None:
        # First what somebody opens an explorer for.
        names = [
            "turns",
            "sections",
            "waterfall",
            "errors",
        ]
    if results.conversations is not None:
        names.append("conversations")
    return names


def kpis(results: BudgetResults) -> list[Kpi]:
    """Return the key figures."""
    kind = results.plan.budget.kind
    rows = [_kpi("window", WINDOWS[kind], results, lambda plan: plan.budget.window, BESIDE[kind])]
    rows.append(_kpi("usable", "usable", results, lambda plan: plan.budget.usable))
    rows.append(_pool(results))
    name = results.plan.budget.remainder
    if name is not None:
        rows.append(_kpi("remainder", f"{name} budget", results, lambda plan: plan.remainder))
    return rows + _first_cut(results)


def _pool(results: BudgetResults) -> Kpi:
    """Return the shared pool; where the remainder takes all that others leave, the pool is inside it."""
    budget = results.plan.budget
    kpi = _kpi("pool", "shared pool", results, lambda plan: plan.budget.shared_pool)
    if not takes_the_rest(budget):
        return kpi
    inside = f"inside the {budget.remainder} budget"
    change = "; ".join(filter(None, [kpi.change, inside]))
    return replace(kpi, change=change, tip=f"{kpi.tip} It is {inside}.")


def _kpi(
    key: str, label: str, results: BudgetResults, number: Callable[[Plan], int], more: str = ""
) -> Kpi:
    value = number(results.plan)
    pinned = results.pinned
    comparable = pinned is not None and (key != "remainder" or pinned.budget.remainder is not None)
    if pinned is not None and comparable:
        before = number(pinned)
    else:
        before = None
    if value == before:
        moved = "as pinned"
    else:
        moved = f"{signed(value - (before or 0), always=True)} to pinned"
    tip = f"{label}: {signed(value)} tokens{f'; {more}' if more else ''}"
    change = "" if before is None else moved
    level = "alarm" if value < 0 else ""
    return Kpi(key, label, signed(value), explained(tip, label), change, level, signed_short(value))


def signed_short(value: int) -> str:
    """Return a number in as few letters as a narrow key figure has room for.

    Examples
    --------
    >>> signed_short(1_047_576), signed_short(-3_456)
    ('1.05M', '−3.5k')
    """
    return short(value).replace("-", "−")


def _first_cut(results: BudgetResults) -> list[Kpi]:
    if results.demand is None:
        return []
    tip = meaning("first cut")
    if results.first_cut is None:
        return [Kpi("first", "first cut", "none", tip)]
    turn, section = results.first_cut
    return [
        Kpi(
            "first",
            "first cut",
            f"turn {turn:,}",
            f"{tip} {section} loses most there",
            change=f"in {section}",
        )
    ]


def lines_of(
    settings: BudgetSettings, results: BudgetResults
) -> list[tuple[str, str, Amount | None, bool]]:
    """Return the lines that have a slider: the budget's own, and the usual reserves."""
    budget = results.plan.budget
    amounts = amounts_of(budget, settings.base(results.model))
    whole = with_reserves(budget, dict.fromkeys(usual()))
    return [
        (line.name, line.kind, line.amount, isinstance(amounts[line.name], Share)) for line in whole
    ]
