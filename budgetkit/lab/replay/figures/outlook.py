"""How a conversation may grow: a fan of drawn conversations, and the limits it runs into."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from budgetkit.budget.colours import ALARM, BLUE, translucent
from budgetkit.lab.figures.marks import across, line, note
from budgetkit.lab.figures.question import Question, Spec, layout, plain
from budgetkit.lab.replay.forecast import fan as spread_of
from budgetkit.lab.replay.forecast import straight_line
from budgetkit.plan.items import Ints

_BANDS = (("low", "high", 0.18), ("lower", "upper", 0.3))


#: What the middle is worth, alone and beside others, measured by ``python -m benchmarks.promised`` on 2026-11-22.
LINE_NOTES = (
    "Dotted: straight on at the mean so far; the middle of the fan is hardly nearer to what comes than that line.",
    "Dotted: straight on at the mean so far; the middle of the fan misses what comes by about a third less.",
)


def _table(
    drawn: Ints, limits: Mapping[str, int] | None = None, first: int = 1, known: int = 0
) -> pd.DataFrame:
    table = spread_of(drawn, first)
    if known > 1:
        seen = drawn[0, :known]
        ahead = drawn.shape[1] - known
        table["straight line"] = np.concatenate(
            (seen, straight_line(np.diff(seen), ahead, int(seen[-1])))
        )
    for name, limit in (limits or {}).items():
        table[f"limit: {name}"] = limit
    return table


def _draw(table: pd.DataFrame) -> Spec:
    turns = table["turn"].tolist()
    traces = []
    for low, high, opacity in _BANDS:
        around = table[high].tolist() + table[low].tolist()[::-1]
        filled = {
            "fill": "toself",
            "fillcolor": translucent(BLUE, opacity),
            "line": {"width": 0},
            "hoverinfo": "skip",
        }
        traces.append(line(turns + turns[::-1], around, mode="lines", **filled))
    hover = "turn %{x}: %{y:,} in the middle<extra></extra>"
    traces.append(
        line(turns, table["median"], mode="lines", line={"color": BLUE}, hovertemplate=hover)
    )
    if "straight line" in table:
        dots = {"color": BLUE, "dash": "dot", "width": 1.5}
        hover = "turn %{x}: %{y:,} straight on<extra></extra>"
        traces.append(
            line(turns, table["straight line"], mode="lines", line=dots, hovertemplate=hover)
        )
    limits = {
        str(name): float(table[name].iloc[0])
        for name in table.columns
        if name.startswith("limit: ")
    }
    shapes = [across(at, ALARM) for at in limits.values()]
    texts = [f"{plain(name.removeprefix('limit: '))} {at:,.0f}" for name, at in limits.items()]
    # of two that lie close together the lower is named below its line
    close = 0.1 * max(float(table[name].max()) for name in table.columns if name != "turn")
    notes = []
    for text, at in zip(texts, limits.values(), strict=True):
        is_below = any(0 < other - at < close for other in limits.values())
        anchors = {"xanchor": "right", "yanchor": "top" if is_below else "bottom"}
        notes.append(note(text, 1, at, xref="paper", **anchors))
    x = {"title": {"text": "turn", "standoff": 4}, "showgrid": False, "nticks": 8}
    y = {"rangemode": "tozero", "tickformat": "~s"}
    return {"data": traces, "layout": layout(300, x, y, shapes=shapes, annotations=notes)}


#: Draw the middle half and the middle 90 % of drawn conversations, with the limits they run into.
fan = Question("When is the window full, if it goes on like this?", _table, _draw)
