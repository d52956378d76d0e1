"""How far a cheap counter is off on one conversation, and what that does to the history budget.

    error = rough - exact            tokens of the whole request
    shift = limit(rough) - limit(exact)

A count that is too low makes the budget look larger than it is, and the request overruns the window.
"""

from __future__ import annotations

import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.colours import ALARM, SLATE, colour
from budgetkit.lab.figures.marks import line
from budgetkit.lab.figures.question import (
    Columns,
    Question,
    Spec,
    counted,
    end_labels,
    layout,
    plain,
    signed,
)
from budgetkit.lab.figures.turns import ALL, followed
from budgetkit.plan.batch import RequestBatch, batch_of


def _answer(
    budget: Budget, exact: pd.DataFrame | RequestBatch, rough: pd.DataFrame | RequestBatch
) -> Columns:
    both = batch_of(exact), batch_of(rough)
    sums = [batch.asked for batch in both]
    limits = [followed(budget, batch.columns(budget))["limit"] for batch in both]
    error = sums[1] - sums[0]
    rows = {
        "exact": sums[0],
        "rough": sums[1],
        "error": error,
        "error_percent": (100 * error / sums[0].clip(min=1)).round(1),
        "exact_limit": limits[0],
        "rough_limit": limits[1],
        "shift": limits[1] - limits[0],
    }
    turns = both[0].demand.index.tolist()
    columns = {name: column.tolist() for name, column in rows.items()}
    return {"turn": turns, "line": [budget.remainder or ALL] * len(turns), **columns}


def _draw(table: Columns) -> Spec:
    section = str(table["line"][0])
    section_colour = SLATE if section == ALL else colour(section)
    texts = {
        "error": "rough count less exact count",
        "shift": f"{plain(section)} budget by the rough count, less the exact one",
    }
    names = {"error": "count", "shift": f"{plain(section)} budget"}
    if section == ALL:  # what is usable does not depend on any count
        del names["shift"]
    lines = [
        _line(table, name, ALARM if name == "error" else section_colour, texts[name])
        for name in names
    ]
    low = min(0, *(min(table[name]) for name in names))
    high = max(0, *(max(table[name]) for name in names))
    height = max(1, high - low)
    ends = {name: f"{text} {signed(table[name][-1], always=True)}" for name, text in names.items()}
    notes = end_labels(table, ends, height * 0.11)
    x = {"title": {"text": "turn", "standoff": 4}, "showgrid": False, **counted(len(table["turn"]))}
    y = {
        "range": [low - height * (0.14 if low < 0 else 0.08), high + height * 0.22],
        "tickformat": "~s",
        "nticks": 6,
        "zerolinewidth": 2,
    }
    return {
        "data": lines,
        "layout": layout(280, x, y, hovermode="x unified", annotations=notes, meta={"top": 8}),
    }


def _line(table: Columns, column: str, colour: str, text: str) -> Spec:
    dash, width = ("solid", 2.5) if column == "shift" else ("dot", 2)
    drawn = {"color": colour, "width": width, "dash": dash}
    hover = "%{y:+,} " + text + "<extra></extra>"
    return line(table["turn"], table[column], name=text, line=drawn, hovertemplate=hover)


#: Draw a rough counter's error on a conversation, and how far it moves the history budget.
counter_error = Question("What does a rough count cost?", _answer, _draw)
