"""Scene: what the view shows at once, as plain data: key figures, a line on the texts, and which figures there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from budgetkit.explorer.accuracy.library import Texts
from budgetkit.explorer.accuracy.news import called, held, source, sure
from budgetkit.explorer.accuracy.outcome import Outcome
from budgetkit.explorer.accuracy.settings import Settings
from budgetkit.explorer.steps import History
from budgetkit.figures.documents import percent

Data = dict[str, Any]
FIGURES = ("strip", "rooms", "lengths", "agreement", "buffers", "speeds", "tax")


def scene(history: History[Settings], found: Outcome, library: Texts) -> Data:
    """Return the state of the view.

    Parameters
    ----------
    history : History
        The settings and what can be taken back.
    found : Outcome
        What follows from the settings.
    library : Texts
        Where the texts are.

    Returns
    -------
    dict
        Ready for JSON.
    """
    settings = history.now
    changed = settings != replace(library.start, corpus=settings.corpus)
    actions: Data = {"undo": bool(history.past), "redo": bool(history.future), "reset": changed}
    actions["reset_tip"] = "Back to the first settings; the texts stay"
    return {
        "source": source(found, library),
        "kpis": kpis(found),
        "actions": actions,
        "figures": [name for name in FIGURES],
    }


def kpis(found: Outcome) -> list[Data]:
    """Return the key figures.

    Parameters
    ----------
    found : Outcome
        What follows from the settings.

    Returns
    -------
    list of dict
        Key, label, value, and what stands under it.
    """
    return [*_errors(found), *_costs(found)]


def _errors(found: Outcome) -> list[Data]:
    error = found.errors["error"]
    size = error.abs()
    name = called(found.counter)
    worst = f"worst {percent(float(error.iloc[int(size.to_numpy().argmax())]))}"
    return [
        _kpi("mape", "mean absolute error", held(size.mean()), name, f"How far {name} is off, over all documents"),
        _kpi("bias", "mean signed error", percent(error.mean()), "", "Below 0: counted too few tokens"),
        _kpi(
            "p95", "95 of 100 documents within", held(float(size.quantile(0.95))), worst, "95th percentile of the error"
        ),
    ]


def _costs(found: Outcome) -> list[Data]:
    buffer, costs, safe = found.buffer, found.costs, found.safe_costs
    name = found.budget.name or "the budget"
    overflow = float(costs["overflow"])
    within = f"with the buffer {held(safe['overflow'])}"
    tokens = f"{found.safe.sizes['safety']:,} tokens; {sure(buffer)}"
    idle = max(0.0, safe["usable"] + safe["safety"] - safe["filled"])
    wasted = f"of {costs['usable']:,.0f}; with the buffer {idle:,.0f}"
    waste = "Usable tokens that stay empty, on average; a buffer that is not needed stays empty, too"
    tip = f"Share of the window to hold back so that at most {100 * found.settings.risk:g} of 100 windows overflow"
    level = "alarm" if overflow > found.settings.risk else ""
    return [
        _kpi("buffer", f"honest buffer at {100 * found.settings.risk:g} % risk", held(buffer.share), tokens, tip),
        _kpi(
            "wasted",
            f"tokens wasted in {name}",
            f"{costs['wasted']:,.0f}",
            wasted,
            waste,
        ),
        _kpi("overflow", f"windows overflow in {name}", held(overflow), within, "As the budget is now", level),
    ]


def _kpi(key: str, label: str, value: str, change: str, tip: str, level: str = "") -> Data:
    return {
        "key": key, "label": label, "value": value, "change": change, "level": level, "tip": f"{label}: {value}. {tip}."
    }  # fmt: skip
