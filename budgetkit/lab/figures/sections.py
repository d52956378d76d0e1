"""What each section asked for and what it got."""

from __future__ import annotations

from typing import Any

from budgetkit.budget.colours import ALARM, colour, translucent
from budgetkit.lab.figures.marks import bars, points
from budgetkit.lab.figures.question import (
    Columns,
    Question,
    Spec,
    label,
    layout,
    plain,
    rows,
    short,
)
from budgetkit.plan import Plan

ROW = 40  # pixels for a line of text and the bar below it


def _answer(plan: Plan) -> Columns:
    names = ("section", "demand", "limit", "granted", "cut")
    return {
        **{name: [getattr(grant, name) for grant in plan.grants] for name in names},
        "items": [len(plan.decisions.columns.rows(grant.section)) for grant in plan.grants],
        "items_cut": [plan.decisions.lost(grant.section) for grant in plan.grants],
    }


def _draw(table: Columns) -> Spec:
    sections = list(table["section"])
    every = rows(table)
    hover = [f"{plain(row['section'])}: {_sentence(row)}" for row in every]
    colours = [colour(section) for section in sections]
    common = {"customdata": sections, "hovertext": hover, "hoverinfo": "text", "width": 0.32}
    edges = {
        "width": [1 if demand_bars else 0 for demand_bars in table["demand"]],
        "color": colours,
    }
    demand_bars = bars(
        table["demand"],
        marker={"color": [translucent(c, 0.28) for c in colours], "line": edges},
        **common,
    )
    granted = bars(table["granted"], marker={"color": colours}, **common)
    names = [f"<b>{plain(row['section'])}</b>  {_sentence(row)}" for row in every]
    few = {"short": [f"<b>{label(row['section'], 16)}</b>  {_few_letters(row)}" for row in every]}
    texts = points(
        [0] * len(names),
        [place - 0.42 for place in demand_bars["y"]],
        text=names,
        meta=few,
        hoverinfo="skip",
    )
    texts |= {"mode": "text", "textposition": "middle right", "cliponaxis": False}
    cut = [place for place in demand_bars["y"] if table["cut"][place] > 0]
    mark = {"symbol": "line-ns-open", "size": 18, "color": ALARM, "line": {"width": 3}}
    ends = points([table["granted"][place] for place in cut], cut, hoverinfo="skip", marker=mark)
    most = max(table["demand"], default=0)
    x = {
        "range": [0, max(1, most) * 1.04],
        "tickformat": "~s",
        "nticks": 5,
        "showticklabels": most >= 5,
    }
    y = {"range": [len(names) - 0.6, -0.8], "visible": False}
    height = len(names) * ROW + 60
    return {
        "data": [demand_bars, granted, texts, ends],
        "layout": layout(height, x, y, barmode="overlay", meta={"top": 2}),
    }


def _sentence(row: dict[str, Any]) -> str:
    granted = row["granted"]
    demand = row["demand"]
    items = row["items_cut"]
    if granted == demand:
        return f"{demand:,}"
    if items:
        lost = f", {items} {'item' if items == 1 else 'items'} cut"
    else:
        lost = ", cut"
    return f"{granted:,} of {demand:,}{lost}"


def _few_letters(row: dict[str, Any]) -> str:
    granted = short(row["granted"])
    demand = short(row["demand"])
    if row["granted"] == row["demand"]:
        return demand
    return f"{granted} of {demand}"


#: Draw what each section asked for and was granted, with the items that were cut.
sections = Question("Who asks for how much, and gets it?", _answer, _draw)
