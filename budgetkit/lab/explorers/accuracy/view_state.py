"""View state: what the view shows at once, as plain data: key figures, a line on the texts, and its figures."""

from __future__ import annotations

from typing import Any

from budgetkit.counters import CalibratedCounter, Counter, basis_of
from budgetkit.lab.accuracy.figures.documents import signed_percent
from budgetkit.lab.explorers.accuracy.notices import as_percent, called, source, sure
from budgetkit.lab.explorers.accuracy.results import AccuracyResults
from budgetkit.lab.explorers.drawing import Kpi
from budgetkit.lab.explorers.library import Library

Data = dict[str, Any]
FIGURES = ("strip", "rooms", "lengths", "agreement", "buffers", "speeds", "tax")


def scene(results: AccuracyResults, library: Library) -> Data:
    """Return the state of the view."""
    kpis = [kpi.drawn for kpi in (*_errors(results), *_costs(results))]
    actions = {"reset_tip": "Back to the first settings; the texts stay"}
    return {
        "source": source(results, library),
        "kpis": kpis,
        "actions": actions,
        "figures": [*FIGURES],
    }


def named(count: Counter) -> str:
    """Return a counter's name for a key figure, with the word "estimate" where it is one.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> named(counter("chars/4")), named(counter("calibrated:claude-opus-4-7"))
    ('chars/4 (estimate)', 'claude-opus-4-7 (estimate)')
    """
    name = shortened(count.model if isinstance(count, CalibratedCounter) else count.name, 24)
    # Where there is no room for all of it, it breaks there and not in a word.
    name = name.replace(":", ":\u200b")
    if basis_of(count) != "estimate" or "estimate" in name:
        return name
    return f"{name} (estimate)"


def shortened(name: str, longest: int) -> str:
    """Return a name that a key figure has room for.

    Examples
    --------
    >>> shortened("chars/4", 20), shortened("chars/4 (ceil, minimum 0)", 12)
    ('chars/4', 'chars/4 (ce…')
    """
    if len(name) <= longest:
        return name
    return f"{name[: longest - 1]}…"


def _errors(results: AccuracyResults) -> list[Kpi]:
    error = results.errors["error"]
    size = error.abs()
    name = called(results.counter)
    worst = f"worst {signed_percent(float(error.iloc[int(size.to_numpy().argmax())]))}"
    if error.mean() < 0:
        side = "counts too few"
    elif error.mean() > 0:
        side = "counts too many"
    else:
        side = ""
    shown = named(results.counter)
    tip = "95th percentile of the error's size"
    return [
        _kpi(
            "mape",
            "mean error",
            as_percent(size.mean()),
            f"Mean absolute error of {name}, over all documents",
            shown,
        ),
        _kpi(
            "bias",
            "mean bias",
            signed_percent(error.mean()),
            "Mean signed error; below 0: too few tokens",
            side,
        ),
        _kpi("p95", "95 of 100 within", as_percent(float(size.quantile(0.95))), tip, worst),
    ]


def _costs(results: AccuracyResults) -> list[Kpi]:
    now = results.settings
    buffer = results.buffer
    costs = results.costs
    safe = results.buffered_costs
    name = shortened(results.budget.name or "the budget", 20)
    overflow = float(costs["overflow"])
    idle = max(0.0, safe["usable"] + safe["safety"] - safe["filled"])
    risk = f"{100 * now.risk:g}"
    tip = f"Share of the window to hold back so that at most {risk} of 100 windows overflow; {sure(buffer)}"
    waste = f"Usable tokens that stay empty, on average, of {costs['usable']:,.0f}; an idle buffer is wasted, too"
    tokens = f"{results.buffered_budget.sizes['safety']:,} tokens at {risk} % risk"
    needs = f"held back {as_percent(buffer.share)}, needed {as_percent(buffer.needed)}"
    level = "alarm" if overflow > now.risk else ""
    all_windows = (
        f"Windows that overflow as the budget is; with the buffer {as_percent(safe['overflow'])}. Held back is the "
        "buffer for texts that nobody has seen, needed what the texts that were seen really need"
    )
    return [
        _kpi("buffer", "honest buffer", as_percent(buffer.share), tip, tokens),
        _kpi(
            "wasted",
            f"wasted in {name}",
            f"{costs['wasted']:,.0f}",
            waste,
            f"with the buffer {idle:,.0f}",
        ),
        _kpi("overflow", f"overflow in {name}", as_percent(overflow), all_windows, needs, level),
    ]


def _kpi(key: str, label: str, value: str, tip: str, change: str, level: str = "") -> Kpi:
    return Kpi(key, label, value, f"{label}: {value}. {tip}.", change, level)
