"""How what is left and what is asked of it go on over the turns of a conversation.

The *followed* quantity is the budget's remainder (its history, memory or conversation); a budget that names
none is followed as a whole: all that is asked against what is usable. Demands of a frame can be cut anywhere; a
`budgetkit.plan.batch.RequestBatch` has items, and then every turn is planned as `fit` plans it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.colours import ALARM, SLATE, colour, translucent
from budgetkit.figures.question import Question, Spec, end_labels, layout, rows, signed
from budgetkit.plan.batch import Columns, RequestBatch, columns_of, frame_of
from budgetkit.plan.items import Ints
from budgetkit.plan.remainder import remainder
from budgetkit.plan.walk import with_undeclared

ALL = "all sections"


def followed(budget: Budget, columns: Columns) -> dict[str, Ints]:
    """Return what is asked, left and granted of the remainder, row by row."""
    if budget.remainder is not None:
        left: Ints = remainder(with_undeclared(budget, columns), columns, np.minimum, np.maximum)
        return columns[budget.remainder] | {"limit": left}
    demand = sum((c["demand"] for c in columns.values()), np.zeros(1, dtype=np.int64))
    granted = sum((c["granted"] for c in columns.values()), np.zeros(1, dtype=np.int64))
    return {"demand": demand, "limit": np.full(len(demand), budget.usable), "granted": granted}


def first_cut(columns: Columns) -> tuple[int, str] | None:
    """Return where something is cut for the first time."""
    cuts = {section: c["cut"] for section, c in columns.items()}
    rows = [int(np.argmax(cut > 0)) for cut in cuts.values() if (cut > 0).any()]
    if not rows:
        return None
    row = min(rows)
    return row, max(cuts, key=lambda section: int(cuts[section][row]))


def _table(
    budget: Budget,
    demand: pd.DataFrame | RequestBatch,
    turn: int | None = None,
    pinned: Budget | None = None,
    pinned_demand: pd.DataFrame | RequestBatch | None = None,
) -> pd.DataFrame:
    columns = columns_of(demand, budget)
    shown = followed(budget, columns)
    first = first_cut(columns)
    index = frame_of(demand).index
    table = pd.DataFrame(
        {
            "turn": index.to_numpy(),
            "line": budget.remainder or ALL,
            "demand": shown["demand"],
            "limit": shown["limit"],
            "granted": shown["granted"],
            "cut": sum((c["cut"] for c in columns.values()), np.zeros(len(index), dtype=np.int64)),
            "chosen": index.to_numpy() == turn,
            "first_cut": "",
        }
    )
    if first is not None:
        table.loc[first[0], "first_cut"] = first[1]
    if pinned is not None:
        others = columns_of(demand if pinned_demand is None else pinned_demand, pinned)
        table["pinned_limit"] = followed(pinned, others)["limit"]
    return table


def _draw(table: pd.DataFrame) -> Spec:
    line = str(table["line"].iloc[0])
    own = SLATE if line == ALL else colour(line)
    lines = [
        _line(table, "granted", own, fill="tozeroy", fillcolor=translucent(own, 0.22), width=2.5),
        _line(table, "limit", "#0072B2", dash="dash"),
        _line(table, "demand", ALARM, dash="dot"),
    ]
    names = {"granted": "kept", "limit": "limit", "demand": "asked"}
    if "pinned_limit" in table:
        lines.append(_line(table, "pinned_limit", SLATE, dash="dashdot"))
        names["pinned_limit"] = "pinned limit"
    top = max(1, int(table[list(names)].to_numpy().max())) * 1.16
    low = min(0, int(table[list(names)].to_numpy().min()))
    last = int(table["turn"].iloc[-1])
    first = int(table["turn"].iloc[0])
    x = {"title": {"text": "turn", "standoff": 4}, "range": [first, max(last, 2)], "showgrid": False, "nticks": 8}
    y = {"range": [low * 1.1, top], "tickformat": "~s", "nticks": 6, "zeroline": True}
    marks = _marks(table)
    notes = [*end_labels(table, _end_texts(table, names), (top - low) * 0.075), *marks[1]]
    more = {"hovermode": "x unified", "annotations": notes, "shapes": marks[0], "meta": {"top": 20}}
    return {"data": lines, "layout": layout(280, x, y, **more)}


def _line(table: pd.DataFrame, column: str, colour: str, dash: str = "solid", width: float = 2, **more: Any) -> Spec:
    names = {"granted": "kept", "limit": "limit", "demand": "asked", "pinned_limit": "pinned limit"}
    return {
        "type": "scatter",
        "mode": "lines" if len(table) > 1 else "lines+markers",
        "name": names[column],
        "x": table["turn"].tolist(),
        "y": table[column].tolist(),
        "line": {"color": colour, "dash": dash, "width": width},
        "hovertemplate": "%{y:,} " + names[column] + "<extra></extra>",
        **more,
    }


def _end_texts(table: pd.DataFrame, names: dict[str, str]) -> dict[str, str]:
    """Name the lines at their ends; those that end on one number share one name."""
    last = table.iloc[-1]
    ends: dict[int, list[str]] = {}
    for column in names:
        ends.setdefault(int(last[column]), []).append(column)
    return {columns[0]: f"{' = '.join(names[c] for c in columns)} {signed(end)}" for end, columns in ends.items()}


def _marks(table: pd.DataFrame) -> tuple[list[Spec], list[Spec]]:
    chosen, cut = rows(table[table["chosen"]]), rows(table[table["first_cut"] != ""])
    shapes = [_upright(row["turn"], SLATE, "solid", 1) | {"name": "here"} for row in chosen]
    shapes += [_upright(row["turn"], ALARM, "dash", 1.5) for row in cut]
    first, last = int(table["turn"].iloc[0]), max(2, int(table["turn"].iloc[-1]))
    common = {"y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    notes = []
    for row in cut:
        place = (row["turn"] - first) / max(1, last - first)
        anchor = "left" if place < 0.35 else "right" if place > 0.65 else "center"
        notes.append({**common, "x": row["turn"], "xanchor": anchor, "text": f"first cut: turn {row['turn']:,}"})
    return shapes, notes


def _upright(x: int, colour: str, dash: str, width: float) -> Spec:
    line = {"color": colour, "dash": dash, "width": width}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line, "layer": "below"}


#: Draw the history budget and what is asked of it, turn by turn, with the turn that first loses something.
turns = Question("How many turns does it last?", _table, _draw)
