"""How a conversation may grow: a fan of drawn conversations, and the limits it runs into."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from budgetkit.budget.colours import ALARM, BLUE, translucent
from budgetkit.figures.question import Question, Spec, layout, plain
from budgetkit.plan.items import Ints
from budgetkit.replay.forecast import fan as spread_of
from budgetkit.replay.forecast import straight_line

_BANDS = (("low", "high", 0.18), ("lower", "upper", 0.3))


#: What the middle is worth, measured by ``python -m benchmarks.promised`` on 2026-11-22.
LINE_NOTE = "Dotted: straight on at the mean so far; the middle of the fan is no nearer to what comes than that line."


def _table(drawn: Ints, limits: Mapping[str, int] | None = None, first: int = 1, known: int = 0) -> pd.DataFrame:
    table = spread_of(drawn, first)
    if known > 1:
        seen, ahead = drawn[0, :known], drawn.shape[1] - known
        line = straight_line(np.diff(seen), ahead, int(seen[-1]))
        table["straight line"] = np.concatenate((seen, line))
    for name, limit in (limits or {}).items():
        table[f"limit: {name}"] = limit
    return table


def _draw(table: pd.DataFrame) -> Spec:
    turns = table["turn"].tolist()
    traces = []
    for low, high, opacity in _BANDS:
        outline = {
            "type": "scatter",
            "mode": "lines",
            "x": turns + turns[::-1],
            "y": table[high].tolist() + table[low].tolist()[::-1],
            "fill": "toself",
            "fillcolor": translucent(BLUE, opacity),
            "line": {"width": 0},
            "hoverinfo": "skip",
        }
        traces.append(outline)
    middle = {"type": "scatter", "mode": "lines", "x": turns, "y": table["median"].tolist(), "line": {"color": BLUE}}
    traces.append({**middle, "hovertemplate": "turn %{x}: %{y:,} in the middle<extra></extra>"})
    if "straight line" in table:
        line = {"color": BLUE, "dash": "dot", "width": 1.5}
        straight = {"type": "scatter", "mode": "lines", "x": turns, "y": table["straight line"].tolist(), "line": line}
        traces.append({**straight, "hovertemplate": "turn %{x}: %{y:,} straight on<extra></extra>"})
    shapes, notes = [], []
    for column in (name for name in table.columns if name.startswith("limit: ")):
        at = float(table[column].iloc[0])
        dashed = {"color": ALARM, "dash": "dash", "width": 1.5}
        shapes.append({"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": at, "y1": at, "line": dashed})
        text = f"{plain(column.removeprefix('limit: '))} {at:,.0f}"
        side = {"x": 1, "xanchor": "right"} if notes else {"x": 0, "xanchor": "left"}  # two may lie close together
        place = {**side, "xref": "paper", "y": at, "yanchor": "bottom", "showarrow": False}
        notes.append({**place, "text": text})
    x = {"title": {"text": "turn", "standoff": 4}, "showgrid": False, "nticks": 8}
    y = {"rangemode": "tozero", "tickformat": "~s"}
    return {"data": traces, "layout": layout(300, x, y, shapes=shapes, annotations=notes)}


#: Draw the middle half and the middle 90 % of drawn conversations, with the limits they run into.
fan = Question("When is the window full, if it goes on like this?", _table, _draw)
