"""Key figures and charts of the accuracy explorer."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

import numpy as np
import pandas as pd

from budgetkit.budget import Share, many
from budgetkit.counters import RULES, CalibratedCounter, Counter, ExactCounter
from budgetkit.counters.estimate import table_names
from budgetkit.lab import figures
from budgetkit.lab.accuracy.document_figures import signed_percent
from budgetkit.lab.explorers.accuracy.notices import as_percent, counter_label, source, sure, truth
from budgetkit.lab.explorers.accuracy.results import AccuracyResults, AccuracyStage, selected
from budgetkit.lab.explorers.folds import Kpi, chart
from budgetkit.lab.figures.question import Question
from budgetkit.message import Data
from budgetkit.promise import needed
from budgetkit.state import to_json

FIGURES = ("strip", "rooms", "buffers", "speeds", "tax")


def scene(stage: AccuracyStage) -> Data:
    """Return the state of the page: source, key figures and chart names."""
    return {
        "source": source(stage),
        "kpis": [*_errors(stage.results), *_costs(stage.results)],
        "actions": {"reset_tip": "Return to the initial settings; the texts stay"},
        "figures": [*FIGURES],
    }


def short_counter_label(count: Counter) -> str:
    """Return a counter's short name, marked if the counter is an estimate.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> short_counter_label(counter("chars/4")), short_counter_label(counter("calibrated:claude-opus-4-7"))
    ('chars/4 (estimate)', 'claude-opus-4-7 (estimate)')
    """
    name = figure_name(count.model if isinstance(count, CalibratedCounter) else count.name, 24)
    # A long name breaks after a colon, not inside a word.
    return counter_label(count, name.replace(":", ":\u200b"))


def figure_name(name: str, longest: int) -> str:
    """Shorten a name for a key figure.

    Examples
    --------
    >>> figure_name("chars/4", 20), figure_name("chars/4 (ceil, minimum 0)", 12)
    ('chars/4', 'chars/4 (ce…')
    """
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _errors(results: AccuracyResults) -> list[Data]:
    error = results.errors["error"]
    size = error.abs()
    name = counter_label(results.counter)
    worst = f"worst {signed_percent(float(error.iloc[int(size.to_numpy().argmax())]))}"
    side = "undercounts" if error.mean() < 0 else "overcounts"
    if not error.mean():
        side = ""
    shown = short_counter_label(results.counter)
    tip = f"The error of 95 of 100 documents is at most this large, measured on {len(size):,} documents"
    last = _kpi("p95", "95th-percentile error", as_percent(float(size.quantile(0.95))), tip, worst)
    if len(size) < needed(0.05):  # their 95th percentile is their largest
        tip = f"The largest error of {many(len(size), 'document')}; a 95th percentile needs 19"
        last = _kpi("p95", "largest error", as_percent(float(size.max())), tip, worst)
    return [
        _kpi(
            "mape",
            "mean error",
            as_percent(size.mean()),
            f"Mean absolute error of {name}, over {many(len(size), 'document')}",
            shown,
        ),
        _kpi(
            "bias",
            "mean bias",
            signed_percent(error.mean()),
            "Mean error with its sign; below 0, the count is too low",
            side,
        ),
        last,
    ]


def _costs(results: AccuracyResults) -> list[Data]:
    now = results.settings
    buffer = results.buffer
    costs = results.costs
    safe = results.buffered_costs
    name = figure_name(results.budget.name or "the budget", 20)
    overflow = float(costs["overflow"])
    idle = max(0.0, safe["usable"] + safe["safety"] - safe["filled"])
    risk = f"{100 * now.risk:g}"
    tip = f"Share of the window to reserve so that at most {risk} of 100 windows overflow; {sure(buffer)}"
    waste = f"Average number of the {costs['usable']:,.0f} usable tokens left empty; an unused buffer counts as wasted"
    tokens = f"{results.buffered_budget.sizes['safety']:,} tokens at {risk} % risk"
    needs = f"{tokens}; measured texts need {as_percent(buffer.needed)}"
    level = "alarm" if overflow > now.risk else ""
    all_windows = (
        "Share of windows expected to overflow with the current budget. The buffer is a forecast for new texts, "
        f"based on {many(buffer.documents, 'measured text')}"
    )
    return [
        _kpi("buffer", "needed buffer", as_percent(buffer.share), tip, needs),
        _kpi(
            "wasted",
            f"wasted in {name}",
            f"{costs['wasted']:,.0f}",
            waste,
            f"with the buffer {idle:,.0f}",
        ),
        _kpi(
            "overflow",
            f"expected overflow in {name}",
            as_percent(overflow),
            all_windows,
            f"of windows; with the buffer {as_percent(safe['overflow'])}",
            level,
        ),
    ]


def _kpi(key: str, label: str, value: str, tip: str, change: str, level: str = "") -> Data:
    return Kpi(key, label, value, f"{label}: {value}. {tip}.", change, level).drawn


RATIOS = ("chars/4", "bytes/4", "words/0.75")
CHART_RISKS = (0.2, 0.1, 0.05, 0.02, 0.01)
LANGUAGES = 36  # bars that a reader can still distinguish


def charts(stage: AccuracyStage, opened: Collection[str]) -> dict[str, Data]:
    """Return the page's figures by name."""
    return {name: _chart(stage, name, name in opened) for name in FIGURES}


def _chart(stage: AccuracyStage, name: str, opened: bool) -> Data:
    """Return one figure, redrawn only if its inputs have changed."""
    results = stage.results
    depends: tuple[Hashable, ...] = (results.document,)
    if name in ("rooms", "buffers"):
        budgets = to_json(results.budget), to_json(results.buffered_budget)
        now = results.settings
        depends = (*budgets, tuple(results.demand.items()), now.risk, now.window_mix)
    elif name in ("speeds", "tax"):
        depends = (results.budget.window if name == "tax" else None,)

    def draw() -> Data:
        table = _table(stage, name)
        click = "document" if name == "strip" else None
        return chart(QUESTIONS[name], table, _note(name, table, results), opened, click)

    return stage.library.once_large((results.key, name, opened, *depends), draw)


def _table(stage: AccuracyStage, name: str) -> pd.DataFrame:
    results = stage.results
    if name == "rooms":
        # Actual tokens for each estimated token, at the median and at the risk.
        risk = results.settings.risk
        ratio = results.filled_windows.at(risk)
        worst = float(np.quantile(ratio, 1 - risk, method="higher"))
        ratios = {
            "actual, typical": float(np.median(ratio)),
            f"actual, {100 * risk:g} in 100": worst,
        }
        budgets = results.budget, results.buffered_budget
        return figures.rooms.table(*budgets, results.demand, ratios)
    if name == "buffers":
        return risks(results)
    if name == "speeds":
        return speeds(stage)
    if name == "tax":
        # The characters that fill the window, of prose if there is any.
        errors = results.buffer_errors
        prose = errors[errors["class"].isin(["prose", "cjk prose", "dialogue"])]
        languages = prose if prose["language"].nunique() > 1 else errors
        table = figures.language_tax.table(languages, results.budget.window)
        return table.loc[table["characters"].nlargest(LANGUAGES).index.sort_values()].reset_index(
            drop=True
        )
    texts = results.texts.corpus.texts
    key = (results.key, results.document, "points")
    return stage.library.once_large(
        key, lambda: figures.document_errors.table(results.errors, texts, results.document)
    )


def risks(results: AccuracyResults) -> pd.DataFrame:
    """Return the buffers for several risks, including the accepted risk."""
    window = results.buffer.window
    rows = []
    for risk in sorted({*CHART_RISKS, results.settings.risk}, reverse=True):
        buffer = results.filled_windows.read_off(risk)
        row = {"counter": buffer.counter, "risk": risk, "buffer": buffer.share}
        row |= {"low": buffer.low, "high": buffer.high}
        if buffer.documents < 2:
            row |= {"low": np.nan, "high": np.nan}  # one document says nothing about the next
        size = buffer.reserve.size
        # The tokens that the budget reserves; a share is rounded.
        tokens = size.of(window) if isinstance(size, Share) else size
        rows.append(row | {"tokens": tokens, "warning": buffer.warning})
    return pd.DataFrame(rows)


def speeds(stage: AccuracyStage) -> pd.DataFrame:
    """Return the error and the speed of several counters."""
    results = stage.results
    chosen_rows = selected(results.all_errors, results.settings, results.kind)
    right = results.errors["exact"].to_numpy(float)
    exact = results.exact
    names = [*RATIOS, *RULES]  # of counters that need no extra
    if isinstance(exact, ExactCounter) and exact.encoding in table_names():
        names.append(f"estimate:{exact.encoding}")
    counters = {name: stage.library.counter(name) for name in names}
    seen = {count.name for count in counters.values()}
    for count in (results.counter, exact):
        if count.name not in seen:
            counters.setdefault(count.name, count)

    error = dict[str, float]()
    speed = dict[str, float]()
    kind = dict.fromkeys(counters, "estimate")
    for name, count in counters.items():
        counts = results.texts.counts(count)[chosen_rows]
        error[name] = float(np.abs(counts / right - 1).mean())
        speed[name] = results.texts.speed(count)
        if count is results.counter:
            kind[name] = "chosen"
        elif count is exact:
            kind[name] = "exact"
    return figures.speeds.table(error, speed, kind)


def _note(name: str, table: pd.DataFrame, results: AccuracyResults) -> str:
    """Return the sentence under a figure, which answers the figure's question."""
    first = table.iloc[0]
    window = results.budget.window
    match name:
        case "strip":
            off = f"off by {as_percent(first['class_error'])} on average over {first['class_documents']:,} of the texts"
            is_worst = "the worst, " if table["class"].nunique() > 1 else ""
            part = ""
            if len(table) < len(results.errors):
                part = f" {len(table):,} of {len(results.errors):,} texts are drawn."
            return f"The count for {first['class']} is {is_worst}{off}. Click a point to read the text.{part}"
        case "rooms":
            pool = table.loc[table["line"] == first["line"], "tokens"]
            looks, half, held_back = (
                f"{abs(tokens):,} tokens {'left' if tokens >= 0 else 'too few'}"
                for tokens in pool.iloc[[0, 1, -1]].astype(int)
            )
            pool_of = f"the shared pool of {results.budget.name or 'the budget'}"
            sentence = f"By the cheap count, {pool_of} has {looks}. By actual tokens, it typically has {half}"
            history = table[table["line"] == results.budget.remainder]
            stays = ""
            if history["tokens"].nunique() == 1:
                stays = f" The {results.budget.remainder} budget does not change."
            return f"{sentence}, and {held_back} with the buffer, which is sized for a full window.{stays}"
        case "buffers":
            buffer = results.buffer
            part = f"{results.buffered_budget.sizes['safety']:,} of {buffer.window:,} tokens"
            back = f"{as_percent(buffer.share)} of the window ({part})"
            certainty = buffer.warning or "the bars are 95 % intervals"
            return f"For a risk of {100 * buffer.risk:g} %, reserve {back}; {certainty}."
        case "speeds":
            return "The speed was measured just now on this machine; the error covers the selected documents."
    # How much text fills the window.
    base = "English" if (table["language"] == "en").any() else "the cheapest language"
    size = first["characters_in_window"]
    sentence = f"{first['language']} fills {window:,} tokens with {size:,} characters"
    share = f"{100 * first['of_base']:.0f} % as many as {base}"
    return f"{sentence}, {share}; counted with {truth(results)}."


QUESTIONS: Mapping[str, Question[...]] = {
    "strip": figures.document_errors,
    "rooms": figures.rooms,
    "buffers": figures.buffers,
    "speeds": figures.speeds,
    "tax": figures.language_tax,
}
