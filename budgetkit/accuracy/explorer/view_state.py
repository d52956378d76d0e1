"""Scene: what the view shows at once, as plain data: key figures, a line on the texts, and which figures there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from budgetkit.accuracy.explorer.library import Texts
from budgetkit.accuracy.explorer.notices import as_percent, called, source, sure
from budgetkit.accuracy.explorer.results import Results
from budgetkit.accuracy.explorer.settings import Settings
from budgetkit.accuracy.figures.documents import percent
from budgetkit.counters import CalibratedCounter, Counter
from budgetkit.explorer.undo import UndoStack

Data = dict[str, Any]
FIGURES = ("strip", "rooms", "lengths", "agreement", "buffers", "speeds", "tax")


def scene(history: UndoStack[Settings], found: Results, library: Texts) -> Data:
    """Return the state of the view."""
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


def kpis(found: Results) -> list[Data]:
    """Return the key figures."""
    return [*_errors(found), *_costs(found)]


def named(count: Counter) -> str:
    """Return a counter's name for a key figure, with the word "estimate" where it is one.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> named(counter("chars/4")), named(counter("calibrated:claude-opus-4-7"))
    ('chars/4 (estimate)', 'claude-opus-4-7 (estimate)')
    """
    name = shortened(count.model if isinstance(count, CalibratedCounter) else count.name, 24)
    return name if count.exact or "estimate" in name else f"{name} (estimate)"


def shortened(name: str, longest: int) -> str:
    """Return a name that a key figure has room for.

    Examples
    --------
    >>> shortened("chars/4", 20), shortened("chars/4 (ceil, minimum 0)", 12)
    ('chars/4', 'chars/4 (ce…')
    """
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _errors(found: Results) -> list[Data]:
    error = found.errors["error"]
    size = error.abs()
    name = called(found.counter)
    worst = f"worst {percent(float(error.iloc[int(size.to_numpy().argmax())]))}"
    side = "counts too few" if error.mean() < 0 else "counts too many" if error.mean() > 0 else ""
    shown = named(found.counter)
    return [
        _kpi(
            "mape", "mean error", as_percent(size.mean()), shown, f"Mean absolute error of {name}, over all documents"
        ),
        _kpi("bias", "mean bias", percent(error.mean()), side, "Mean signed error; below 0: too few tokens"),
        _kpi(
            "p95",
            "95 of 100 within",
            as_percent(float(size.quantile(0.95))),
            worst,
            "95th percentile of the error's size",
        ),
    ]


def _costs(found: Results) -> list[Data]:
    now, buffer, costs, safe = found.settings, found.buffer, found.costs, found.safe_costs
    name = shortened(found.budget.name or "the budget", 20)
    overflow = float(costs["overflow"])
    idle = max(0.0, safe["usable"] + safe["safety"] - safe["filled"])
    risk = f"{100 * now.risk:g}"
    tip = f"Share of the window to hold back so that at most {risk} of 100 windows overflow; {sure(buffer)}"
    waste = f"Usable tokens that stay empty, on average, of {costs['usable']:,.0f}; an idle buffer is wasted, too"
    tokens = f"{found.safe.sizes['safety']:,} tokens at {risk} % risk"
    often = f"with the buffer {as_percent(safe['overflow'])}"
    level = "alarm" if overflow > now.risk else ""
    return [
        _kpi("buffer", "honest buffer", as_percent(buffer.share), tokens, tip),
        _kpi("wasted", f"wasted in {name}", f"{costs['wasted']:,.0f}", f"with the buffer {idle:,.0f}", waste),
        _kpi(
            "overflow",
            f"overflow in {name}",
            as_percent(overflow),
            often,
            "Windows that overflow as the budget is",
            level,
        ),
    ]


def _kpi(key: str, label: str, value: str, change: str, tip: str, level: str = "") -> Data:
    return {
        "key": key, "label": label, "value": value, "change": change, "level": level, "tip": f"{label}: {value}. {tip}."
    }  # fmt: skip
