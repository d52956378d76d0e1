"""How far a cheap counter is off on one conversation, and what that does to the history budget.

    error = rough - exact            tokens of the whole request
    shift = limit(rough) - limit(exact)

A count that is too low makes the budget look larger than it is, and the request overruns the window.
"""

from __future__ import annotations

import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.colours import ALARM, SLATE, colour
from budgetkit.figures.question import Question, Spec, end_labels, layout, plain, signed
from budgetkit.figures.turns import ALL, followed
from budgetkit.plan.batch import RequestBatch, columns_of, frame_of


def _table(budget: Budget, exact: pd.DataFrame | RequestBatch, rough: pd.DataFrame | RequestBatch) -> pd.DataFrame:
    sums = frame_of(exact).sum(axis=1), frame_of(rough).sum(axis=1)
    limits = [followed(budget, columns_of(demand, budget))["limit"] for demand in (exact, rough)]
    error = (sums[1] - sums[0]).to_numpy()
    return pd.DataFrame(
        {
            "turn": sums[0].index.to_numpy(),
            "line": budget.remainder or ALL,
            "exact": sums[0].to_numpy(),
            "rough": sums[1].to_numpy(),
            "error": error,
            "error_percent": (100 * error / sums[0].clip(lower=1)).round(1).to_numpy(),
            "exact_limit": limits[0],
            "rough_limit": limits[1],
            "shift": limits[1] - limits[0],
        }
    )


def _draw(table: pd.DataFrame) -> Spec:
    line = str(table["line"].iloc[0])
    own = SLATE if line == ALL else colour(line)
    texts = {
        "error": "rough count less exact count",
        "shift": f"{plain(line)} budget by the rough count, less the exact one",
    }
    names = {"error": "count", "shift": f"{plain(line)} budget"}
    if line == ALL:  # what is usable does not depend on any count
        del names["shift"]
    lines = [_line(table, name, ALARM if name == "error" else own, texts[name]) for name in names]
    values = table[list(names)].to_numpy()
    low, high = min(0, int(values.min())), max(0, int(values.max()))
    height = max(1, high - low)
    ends = {name: f"{text} {signed(int(table[name].iloc[-1]), always=True)}" for name, text in names.items()}
    notes = end_labels(table, ends, height * 0.09)
    x = {"title": {"text": "turn", "standoff": 4}, "showgrid": False, "nticks": 8}
    y = {"range": [low - height * 0.08, high + height * 0.22], "tickformat": "~s", "nticks": 6, "zerolinewidth": 2}
    return {"data": lines, "layout": layout(280, x, y, hovermode="x unified", annotations=notes, meta={"top": 8})}


def _line(table: pd.DataFrame, column: str, colour: str, text: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines" if len(table) > 1 else "lines+markers",
        "name": text,
        "x": table["turn"].tolist(),
        "y": table[column].tolist(),
        "line": {
            "color": colour,
            "width": 2.5 if column == "shift" else 2,
            "dash": "solid" if column == "shift" else "dot",
        },
        "hovertemplate": "%{y:+,} " + text + "<extra></extra>",
    }


#: Draw a rough counter's error on a conversation, and how far it moves the history budget.
counter_error = Question("What does a rough count cost?", _table, _draw)
