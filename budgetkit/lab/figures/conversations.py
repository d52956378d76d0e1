"""In what share of many conversations something is cut, and where."""

from __future__ import annotations

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.colours import SLATE, colour
from budgetkit.lab.figures.marks import bars, written
from budgetkit.lab.figures.question import Columns, Question, Spec, label, layout, plain, rows
from budgetkit.lab.figures.turns import ALL
from budgetkit.plan.batch import RequestBatch, batch_of

ROW = 30  # pixels for one bar and the space around it


def _answer(budget: Budget, demands: pd.DataFrame | RequestBatch) -> Columns:
    codes, _ = pd.factorize(batch_of(demands).demand.index.get_level_values(0))
    count = int(codes.max()) + 1 if len(codes) else 0
    columns = batch_of(demands).columns(budget)
    hit = {section: np.bincount(codes, c["cut"] > 0, count) > 0 for section, c in columns.items()}
    hit = {ALL: np.logical_or.reduce([*hit.values(), np.zeros(count, dtype=bool)]), **hit}
    cut = [int(h.sum()) for h in hit.values()]
    share = [round(n / max(1, count), 4) for n in cut]
    return {"section": list(hit), "conversations": [count] * len(hit), "cut": cut, "share": share}


def _draw(table: Columns) -> Spec:
    sections = list(table["section"])
    texts = [
        f"{row['cut']:,} of {row['conversations']:,} ({row['share']:.0%})" for row in rows(table)
    ]
    names = ["anything" if section == ALL else plain(section) for section in sections]
    marker = {"color": [SLATE if section == ALL else colour(section) for section in sections]}
    hover = [
        f"{name} is cut in {text} conversations" for name, text in zip(names, texts, strict=True)
    ]
    bar = written(bars(table["share"], customdata=sections, marker=marker), texts)
    bar |= {"hovertext": hover, "hoverinfo": "text"}
    x = {"range": [0, 1.45], "tickformat": ".0%", "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    ticks = [label(name) for name in ["anything", *sections[1:]]]
    y = {"autorange": "reversed", "tickvals": bar["y"], "ticktext": ticks, "showgrid": False}
    meta = {"top": 4, "beside": max(map(len, texts)), "reach": 1}
    return {"data": [bar], "layout": layout(len(sections) * ROW + 70, x, y, meta=meta)}


#: Draw in how many conversations something is cut, for a frame of demands by conversation and turn.
conversations = Question("How many conversations lose something?", _answer, _draw)
