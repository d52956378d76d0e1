"""The figures of the view: their specification, a sentence that reads them, and their table where it is open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np
import pandas as pd

from budgetkit import figures
from budgetkit.accuracy import read_off
from budgetkit.accuracy.explorer.library import Texts
from budgetkit.accuracy.explorer.notices import as_percent, called
from budgetkit.accuracy.explorer.results import Results, selected
from budgetkit.accuracy.explorer.view_state import FIGURES
from budgetkit.budget.amounts import Share
from budgetkit.counters import RULES, Counter, ExactCounter
from budgetkit.counters.estimate.table import table_names
from budgetkit.explorer.drawing import chart
from budgetkit.figures.question import Question, signed

Data = dict[str, Any]
RATIOS = ("chars/4", "bytes/4", "words/0.75")
RISKS = (0.2, 0.1, 0.05, 0.02, 0.01)
LANGUAGES = 36  # bars that can still be told apart
POINTS = ("strip", "lengths", "agreement")


def charts(found: Results, library: Texts, opened: Collection[str]) -> dict[str, Data]:
    """Return what the page draws."""
    return {name: _chart(name, found, library, name in opened) for name in FIGURES}


def _chart(name: str, found: Results, library: Texts, opened: bool) -> Data:
    """Draw one figure; what does not depend on what moved is not drawn again."""
    key = (found.key, name, opened, *_depends(name, found))
    return library.remember(key, lambda: _drawn(name, found, library, opened))


def _depends(name: str, found: Results) -> tuple[Hashable, ...]:
    """Return what a figure depends on beside the errors."""
    now, document = found.settings, found.document
    if name in ("rooms", "buffers"):
        return (now.budget.preset, now.budget.model, now.budget.window, id(now.budget.own), now.risk, now.window_mix)
    return {"speeds": (), "tax": (found.budget.window,)}.get(name, (document,))


def _drawn(name: str, found: Results, library: Texts, opened: bool) -> Data:
    question, note = QUESTIONS[name]
    table = _table(name, found, library)
    return chart(question, table, note(table, found), opened, "document" if name in POINTS else None)


def _table(name: str, found: Results, library: Texts) -> pd.DataFrame:
    if name == "rooms":
        return figures.rooms.table(found.budget, found.safe, found.demand, ratios(found))
    if name == "buffers":
        return risks(found)
    if name == "speeds":
        return speeds(found, library)
    if name == "tax":
        return tax(found)
    texts = library.corpus(found.chosen).texts
    key = (found.key, found.document, "points")
    return library.remember(key, lambda: figures.document_errors.table(found.errors, texts, found.document))


def ratios(found: Results) -> dict[str, float]:
    """Return how many tokens an estimated one really is, in a window in the middle and in one at the risk."""
    ratio = found.filled.at(found.settings.risk)
    worst = float(np.quantile(ratio, 1 - found.settings.risk, method="higher"))
    return {"really, typical": float(np.median(ratio)), f"really, {100 * found.settings.risk:g} in 100": worst}


def risks(found: Results) -> pd.DataFrame:
    """Return the buffer of several risks, the accepted one among them, read off the same windows."""
    window, rows = found.buffer.window, []
    for risk in sorted({*RISKS, found.settings.risk}, reverse=True):
        buffer = read_off(found.filled, found.errors, window, risk, found.settings.window_mix)
        row = {"counter": buffer.counter, "risk": risk, "buffer": buffer.share, "low": buffer.low, "high": buffer.high}
        if buffer.documents < 2:
            row |= {"low": np.nan, "high": np.nan}  # one document says nothing about the next
        size = buffer.reserve.size
        tokens = size.of(window) if isinstance(size, Share) else size  # what the budget holds back: a share is rounded
        rows.append(row | {"tokens": tokens, "warning": buffer.warning})
    return pd.DataFrame(rows)


def core(found: Results) -> list[str]:
    """Name the counters that need nothing installed: ratios, other systems' rules, the trained estimate."""
    exact = found.exact
    if isinstance(exact, ExactCounter) and exact.encoding in table_names():
        return [*RATIOS, *RULES, f"estimate:{exact.encoding}"]
    return [*RATIOS, *RULES]


def speeds(found: Results, library: Texts) -> pd.DataFrame:
    """Return error and speed of every counter of the core, and of the chosen and the exact one."""
    kept = selected(found.every, found.settings)
    right = found.errors["exact"].to_numpy(float)
    error, speed, kind = dict[str, float](), dict[str, float](), dict[str, str]()
    for name, count in _counters(found, library).items():
        counts = library.counts(found.chosen, count)[kept]
        error[name] = float(np.abs(counts / right - 1).mean())
        speed[name] = library.speed(found.chosen, count)
        kind[name] = "chosen" if count is found.counter else "exact" if count is found.exact else "estimate"
    return figures.speeds.table(error, speed, kind)


def _counters(found: Results, library: Texts) -> dict[str, Counter]:
    counters = {name: library.counter(name) for name in core(found)}
    seen = {count.name for count in counters.values()}
    for count in (found.counter, found.exact):
        if count.name not in seen:
            counters.setdefault(count.name, count)
    return counters


def tax(found: Results) -> pd.DataFrame:
    """Return how much text of each language fills the window: of prose, where there is any."""
    errors = found.errors
    prose = errors[errors["class"].isin(["prose", "cjk prose", "dialogue"])]
    spoken = prose if prose["language"].nunique() > 1 else errors
    table = figures.language_tax.table(spoken, found.budget.window)
    return table.loc[table["characters"].nlargest(LANGUAGES).index].sort_index().reset_index(drop=True)


def _points_note(table: pd.DataFrame, found: Results) -> str:
    worst = table.iloc[0]
    part = f" {len(table):,} of {len(found.errors):,} are drawn." if len(table) < len(found.errors) else ""
    off = as_percent(worst["class_error"])
    return f"{worst['class']} is counted worst, {off} off on average; click a point to read it.{part}"


def _rooms_note(table: pd.DataFrame, found: Results) -> str:
    pool = table[table["line"] == table["line"].iloc[0]].set_index("case")["tokens"]
    name = found.budget.name or "the budget"
    looks, half, held_back = (signed(int(tokens)) for tokens in pool.iloc[[0, 1, -1]])
    told = f"The shared pool of {name} looks like {looks} tokens; in half the windows it is {half}"
    history = table[table["line"] == found.budget.remainder]
    stays = f" The {found.budget.remainder} budget is not touched." if history["tokens"].nunique() == 1 else ""
    return f"{told}, and with the buffer, which guards a full window, {held_back}.{stays}"


def _lengths_note(table: pd.DataFrame, found: Results) -> str:
    size = found.errors["characters"]
    if size.nunique() < 2:
        return f"All documents have {size.iloc[0]:,} characters."
    return "Each point is a document; the line is the median of documents of like length."


def _agreement_note(table: pd.DataFrame, found: Results) -> str:
    low = int((found.errors["error"] < 0).sum())
    return f"{low:,} of {len(found.errors):,} documents lie below the line: counted too few."


def _buffers_note(table: pd.DataFrame, found: Results) -> str:
    buffer = found.buffer
    tokens = f"{found.safe.sizes['safety']:,}"
    back = f"{as_percent(buffer.share)} back, {tokens} of {buffer.window:,} tokens"
    told = f"At a risk of {100 * buffer.risk:g} % hold {back}"
    return f"{told}; the bars are 95 % intervals." if not buffer.warning else f"{told}; too few documents to be sure."


def _speeds_note(table: pd.DataFrame, found: Results) -> str:
    return "Speed as measured on this machine just now, on these texts; error over the documents looked at."


def _tax_note(table: pd.DataFrame, found: Results) -> str:
    dearest = table.iloc[0]
    window, size = found.budget.window, dearest["characters_in_window"]
    told = f"{dearest['language']} fills {window:,} tokens with {size:,} characters"
    return f"{told}, {100 * dearest['of_base']:.0f} % of what {_base(table)} has; counted with {called(found.exact)}."


def _base(table: pd.DataFrame) -> str:
    return "English" if (table["language"] == "en").any() else "the cheapest"


QUESTIONS: dict[str, tuple[Question[...], Callable[[pd.DataFrame, Results], str]]] = {
    "strip": (figures.document_errors, _points_note),
    "rooms": (figures.rooms, _rooms_note),
    "lengths": (figures.error_by_length, _lengths_note),
    "agreement": (figures.agreement, _agreement_note),
    "buffers": (figures.buffers, _buffers_note),
    "speeds": (figures.speeds, _speeds_note),
    "tax": (figures.language_tax, _tax_note),
}
