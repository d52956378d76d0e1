"""View state: what the view shows of an outcome, as plain data: key figures, status, bar, and where it all comes from.

Every number and every sentence on the page is written here; the page only places them.
"""

from collections.abc import Callable
from typing import Any

from budgetkit.budget.amounts import Amount, Share
from budgetkit.explorer.budget.amount_edits import amounts_of, usual, with_reserves
from budgetkit.explorer.budget.bar import BESIDE, WINDOWS, bar
from budgetkit.explorer.budget.results import Results
from budgetkit.explorer.budget.settings import Settings
from budgetkit.explorer.drawing import Kpi
from budgetkit.figures.question import short, signed
from budgetkit.plan import Plan

Data = dict[str, Any]


def scene(settings: Settings, found: Results, source: str) -> Data:
    """Return the state of the view."""
    return {
        "source": source,
        "kpis": [kpi.drawn for kpi in kpis(found)],
        "bar": bar(settings, found),
        "actions": {"pinned": settings.pinned is not None},
        "figures": shown_figures(found),
    }


def shown_figures(found: Results) -> list[str]:
    """Return which figures there is something to draw for."""
    names = ["waterfall", "sections"]
    if found.demand is not None:
        names = ["turns", "sections", "waterfall", "errors"]  # first what somebody opens an explorer for
    if found.conversations is not None:
        names.append("conversations")
    return names


def kpis(found: Results) -> list[Kpi]:
    """Return the key figures."""
    kind = found.plan.budget.kind
    rows = [_kpi("window", WINDOWS[kind], found, lambda plan: plan.budget.window, BESIDE[kind])]
    rows.append(_kpi("usable", "usable", found, lambda plan: plan.budget.usable))
    rows.append(_kpi("pool", "shared pool", found, lambda plan: plan.budget.shared_pool))
    name = found.plan.budget.remainder
    if name is not None:
        rows.append(_kpi("remainder", f"{name} budget", found, lambda plan: plan.remainder))
    return rows + _first_cut(found)


def _kpi(key: str, label: str, found: Results, number: Callable[[Plan], int], more: str = "") -> Kpi:
    value, pinned = number(found.plan), found.pinned
    comparable = pinned is not None and (key != "remainder" or pinned.budget.remainder is not None)
    before = number(pinned) if pinned is not None and comparable else None
    moved = "as pinned" if value == before else f"{signed(value - (before or 0), always=True)} to pinned"
    tip = f"{label}: {signed(value)} tokens{f'; {more}' if more else ''}"
    change, level = "" if before is None else moved, "alarm" if value < 0 else ""
    return Kpi(key, label, signed(value), tip, change, level, signed_short(value))


def signed_short(value: int) -> str:
    """Return a number in as few letters as a narrow key figure has room for.

    Examples
    --------
    >>> signed_short(1_047_576), signed_short(-3_456)
    ('1.05M', '−3.5k')
    """
    return short(value).replace("-", "−")


def _first_cut(found: Results) -> list[Kpi]:
    if found.demand is None:
        return []
    value = "none" if found.first_cut is None else f"turn {found.first_cut[0]:,}"
    tip = "The first turn at which something is cut"
    tip += "" if found.first_cut is None else f"; {found.first_cut[1]} loses most there"
    return [Kpi("first", "first cut", value, tip)]


def lines_of(settings: Settings, found: Results) -> list[tuple[str, str, Amount | None, bool]]:
    """Return the lines that have a slider: the budget's own, and the usual reserves."""
    budget = found.plan.budget
    kept = amounts_of(budget, settings.base(found.model))
    whole = with_reserves(budget, dict.fromkeys(usual()))
    return [(line.name, line.kind, line.amount, isinstance(kept[line.name], Share)) for line in whole]
