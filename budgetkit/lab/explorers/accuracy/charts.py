"""Key figures and charts of the accuracy explorer."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

import numpy as np
import pandas as pd

from budgetkit.budget import Share, many
from budgetkit.budget.quoting import shortened
from budgetkit.counters import RULES, CalibratedCounter, Counter, ExactCounter
from budgetkit.counters.estimate import table_names
from budgetkit.lab import figures
from budgetkit.lab.accuracy.document_figures import signed_percent
from budgetkit.lab.explorers.accuracy.notices import (
    as_percent,
    counter_label,
    interval_text,
    source,
    truth,
)
from budgetkit.lab.explorers.accuracy.results import AccuracyStage
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
        "kpis": kpis(stage),
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
    name = shortened(count.model if isinstance(count, CalibratedCounter) else count.name, 24)
    # A long name breaks after a colon, not inside a word.
    return counter_label(count, name.replace(":", ":\u200b"))


def kpis(stage: AccuracyStage) -> list[Data]:
    """Return the key figures: the count's error and its cost."""
    error = stage.errors["error"]
    size = error.abs()
    mean_tip = f"Mean absolute error of {counter_label(stage.estimate)}, over {many(len(size), 'document')}"
    side = "undercounts" if error.mean() < 0 else "overcounts"
    if not error.mean():
        side = ""
    bias_tip = "Mean error with its sign; below 0, the count is too low"
    high = "95th-percentile error"
    highest = float(size.quantile(0.95))
    high_tip = f"The error of 95 of 100 documents is at most this large, measured on {len(size):,} documents"
    if len(size) < needed(0.05):  # their 95th percentile is their largest
        high = "largest error"
        highest = float(size.max())
        high_tip = f"The largest error of {many(len(size), 'document')}; a 95th percentile needs 19"
    worst = f"worst {signed_percent(float(error.iloc[int(size.to_numpy().argmax())]))}"

    buffer = stage.buffer
    costs = stage.costs
    safe = stage.buffered_costs
    name = shortened(stage.signed_budget.name or "the budget", 20)
    risk = f"{100 * stage.settings.risk:g}"
    reserve = f"Share of the window to reserve so that at most {risk} of 100 windows overflow"
    share_tip = f"{reserve}; {interval_text(buffer)}"
    tokens = f"{stage.buffered.budget.sizes['safety']:,} tokens at {risk} % risk"
    needs = f"{tokens}; measured texts need {as_percent(buffer.needed)}"
    idle = max(0.0, safe["usable"] + safe["safety"] - safe["filled"])
    usable = f"{costs['usable']:,.0f} usable tokens"
    waste_tip = f"Average number of the {usable} left empty; an unused buffer counts as wasted"
    overflow = float(costs["overflow"])
    over_tip = (
        "Share of windows expected to overflow with the current budget. The buffer is a forecast for new texts, "
        f"based on {many(buffer.documents, 'measured text')}"
    )
    safe_overflow = f"of windows; with the buffer {as_percent(safe['overflow'])}"
    rows = [
        (
            "mape",
            "mean error",
            as_percent(size.mean()),
            mean_tip,
            short_counter_label(stage.estimate),
        ),
        ("bias", "mean bias", signed_percent(error.mean()), bias_tip, side),
        ("p95", high, as_percent(highest), high_tip, worst),
        ("buffer", "needed buffer", as_percent(buffer.share), share_tip, needs),
        (
            "wasted",
            f"wasted in {name}",
            f"{costs['wasted']:,.0f}",
            waste_tip,
            f"with the buffer {idle:,.0f}",
        ),
        ("overflow", f"expected overflow in {name}", as_percent(overflow), over_tip, safe_overflow),
    ]
    is_over = overflow > stage.settings.risk
    return [
        Kpi(
            key=key,
            label=label,
            value=value,
            tip=f"{label}: {value}. {tip}.",
            change=change,
            level="alarm" if key == "overflow" and is_over else "",
        ).drawn
        for key, label, value, tip, change in rows
    ]


RATIOS = ("chars/4", "bytes/4", "words/0.75")
CHART_RISKS = (0.2, 0.1, 0.05, 0.02, 0.01)
LANGUAGES = 36  # bars that a reader can still distinguish


def charts(stage: AccuracyStage, opened: Collection[str]) -> dict[str, Data]:
    """Return the page's figures under their names."""
    return {name: _chart(stage, name, name in opened) for name in FIGURES}


def _chart(stage: AccuracyStage, name: str, opened: bool) -> Data:
    """Return one figure, redrawn only if its inputs have changed."""
    depends: tuple[Hashable, ...] = (stage.document,)
    if name in ("rooms", "buffers"):
        budgets = to_json(stage.signed_budget), to_json(stage.buffered.budget)
        now = stage.settings
        depends = (*budgets, tuple(stage.sizes.items()), now.risk, now.window_mix)
    elif name in ("speeds", "tax"):
        depends = (stage.signed_budget.window if name == "tax" else None,)

    def draw() -> Data:
        table = _table(stage, name)
        click = "document" if name == "strip" else None
        return chart(QUESTIONS[name], table, _note(name, table, stage), opened, click)

    return stage.library.once_large((stage.key, name, opened, *depends), draw)


def _table(stage: AccuracyStage, name: str) -> pd.DataFrame:
    if name == "rooms":
        # Actual tokens for each estimated token, at the median and at the risk.
        risk = stage.settings.risk
        ratio = stage.filled_windows.at(risk)
        worst = float(np.quantile(ratio, 1 - risk, method="higher"))
        ratios = {
            "actual, typical": float(np.median(ratio)),
            f"actual, {100 * risk:g} in 100": worst,
        }
        budgets = stage.signed_budget, stage.buffered.budget
        return figures.rooms.table(*budgets, stage.sizes, ratios)
    if name == "buffers":
        return risks(stage)
    if name == "speeds":
        return speeds(stage)
    if name == "tax":
        # The characters that fill the window, of prose if there is any.
        errors = stage.buffer_errors
        prose = errors[errors["class"].isin(["prose", "cjk prose", "dialogue"])]
        languages = prose if prose["language"].nunique() > 1 else errors
        table = figures.language_tax.table(languages, stage.signed_budget.window)
        return table.loc[table["characters"].nlargest(LANGUAGES).index.sort_values()].reset_index(
            drop=True
        )
    texts = stage.texts.corpus.texts
    key = (stage.key, stage.document, "points")
    return stage.library.once_large(
        key, lambda: figures.document_errors.table(stage.errors, texts, stage.document)
    )


def risks(stage: AccuracyStage) -> pd.DataFrame:
    """Return the buffers for several risks, including the accepted risk."""
    window = stage.buffer.window
    rows = []
    for risk in sorted({*CHART_RISKS, stage.settings.risk}, reverse=True):
        buffer = stage.filled_windows.read_off(risk)
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
    right = stage.errors["exact"].to_numpy(float)
    exact = stage.exact
    names = [*RATIOS, *RULES]  # of counters that need no extra
    if isinstance(exact, ExactCounter) and exact.encoding in table_names():
        names.append(f"estimate:{exact.encoding}")
    counters = {name: stage.library.counter(name) for name in names}
    seen = {count.name for count in counters.values()}
    for count in (stage.estimate, exact):
        if count.name not in seen:
            counters.setdefault(count.name, count)

    error = dict[str, float]()
    speed = dict[str, float]()
    kind = dict.fromkeys(counters, "estimate")
    for name, count in counters.items():
        counts = stage.texts.counts(count)[stage.is_selected]
        error[name] = float(np.abs(counts / right - 1).mean())
        speed[name] = stage.texts.speed(count)
        if count is stage.estimate:
            kind[name] = "chosen"
        elif count is exact:
            kind[name] = "exact"
    return figures.speeds.table(error, speed, kind)


def _note(name: str, table: pd.DataFrame, stage: AccuracyStage) -> str:
    """Return the sentence under a figure, which answers the figure's question."""
    first = table.iloc[0]
    window = stage.signed_budget.window
    match name:
        case "strip":
            off = f"off by {as_percent(first['class_error'])} on average over {first['class_documents']:,} of the texts"
            is_worst = "the worst, " if table["class"].nunique() > 1 else ""
            part = ""
            if len(table) < len(stage.errors):
                part = f" {len(table):,} of {len(stage.errors):,} texts are drawn."
            return f"The count for {first['class']} is {is_worst}{off}. Click a point to read the text.{part}"
        case "rooms":
            pool = table.loc[table["line"] == first["line"], "tokens"]
            looks, half, held_back = (
                f"{abs(tokens):,} tokens {'left' if tokens >= 0 else 'too few'}"
                for tokens in pool.iloc[[0, 1, -1]].astype(int)
            )
            pool_of = f"the shared pool of {stage.signed_budget.name or 'the budget'}"
            sentence = f"By the cheap count, {pool_of} has {looks}. By actual tokens, it typically has {half}"
            history = table[table["line"] == stage.signed_budget.remainder]
            stays = ""
            if history["tokens"].nunique() == 1:
                stays = f" The {stage.signed_budget.remainder} budget does not change."
            return f"{sentence}, and {held_back} with the buffer, which is sized for a full window.{stays}"
        case "buffers":
            buffer = stage.buffer
            part = f"{stage.buffered.budget.sizes['safety']:,} of {buffer.window:,} tokens"
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
    return f"{sentence}, {share}; counted with {truth(stage)}."


QUESTIONS: Mapping[str, Question[...]] = {
    "strip": figures.document_errors,
    "rooms": figures.rooms,
    "buffers": figures.buffers,
    "speeds": figures.speeds,
    "tax": figures.language_tax,
}
