"""Figures of any small table as bars, and of tried settings as points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from budgetkit.budget.html import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION
from budgetkit.lab.figures.question import (
    Question,
    Spec,
    label,
    layout,
    line,
    note,
    plain,
    table_rows,
    tick_format,
    with_texts,
)
from budgetkit.lab.figures.question import bars as lying

_ROW = 20  # pixels for a bar
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)


def _table(
    table: pd.DataFrame | pd.Series[float], asks: str, unit: str = "tokens", answer: str = ""
) -> pd.DataFrame:
    """Return one row per bar; each table column has its colour."""
    frame = table.to_frame() if isinstance(table, pd.Series) else table
    long = [
        (
            f"{name:,}" if isinstance(name, int) else str(name),
            str(column),
            value,
            unit,
            asks,
            answer,
        )
        for name, values in zip(frame.index, frame.to_numpy().tolist(), strict=True)
        for column, value in zip(frame.columns, values, strict=True)
    ]
    return pd.DataFrame(long, columns=["name", "column", "value", "unit", "asks", "answer"])


def _draw(table: pd.DataFrame) -> Spec:
    columns = list(dict.fromkeys(table["column"]))
    names = list(dict.fromkeys(table["name"]))
    unit = str(table["unit"].iloc[0])
    step = len(columns) + 1
    digits = max(len(f"{value:.10g}".partition(".")[2]) for value in table["value"])
    data = []
    for place, column in enumerate(columns):
        values = table.loc[table["column"] == column, "value"].tolist()
        bar = lying(values, marker={"color": _COLOURS[place % len(_COLOURS)]}, name=plain(column))
        bar |= {"y": [step * i + place for i in range(len(values))], "width": 0.9}
        texts = [f"{value:,.{digits}f}".replace("-", "\u2212") for value in values]
        data.append(with_texts(bar, texts))
    low = min(0.0, *table["value"])
    high = max(0.0, *table["value"])
    reach = (high - low) or 1
    across = {
        "range": [low - 0.2 * reach * (low < 0), high + 0.2 * reach],
        "title": unit,
        "tickformat": tick_format(reach),
        "nticks": 6,
        "showgrid": False,
    }
    ticks = [step * i + (len(columns) - 1) / 2 for i in range(len(names))]
    down = {
        "range": [step * len(names) - 1.4, -0.6],
        "tickvals": ticks,
        "ticktext": [label(name, 28) for name in names],
        "showgrid": False,
        "zeroline": False,
    }
    legend = {"orientation": "h", "y": -0.3, "traceorder": "normal"}
    height = _ROW * step * len(names) + 110
    drawn = layout(height, across, down, legend=legend, showlegend=len(columns) > 1)
    drawn["margin"]["l"] = 20  # names of wide letters
    meta = {"top": 4, "asks": table["asks"].iloc[0]}
    return {"data": data, "layout": {**drawn, "barmode": "overlay", "meta": meta}}


#: Draw a small table as bars: ``bars(table, "How far off is the guess?", "percent", "29 % too high for English")``.
bars = Question("How much is it?", _table, _draw, lambda table: str(table["answer"].iloc[0]))


def _frontier(
    table: pd.DataFrame, across: str, up: str, present: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Return settings with two measures to minimise, and flag the beaten ones."""
    measures = table[[across, up]].astype(float)
    is_best = [
        not ((measures <= row).all(axis=1) & (measures < row).any(axis=1)).any()
        for _, row in measures.iterrows()
    ]
    is_present = pd.Series(present is not None, index=table.index)
    for name, value in (present or {}).items():
        is_present &= table[name] == value
    names = [
        ", ".join(
            value if isinstance(value, str) else f"{name} {value}" for name, value in row.items()
        )
        for row in table_rows(table.drop(columns=[across, up]))
    ]
    return measures.assign(setting=names, best=is_best, present=is_present).sort_values(
        across, ignore_index=True
    )


def _draw_frontier(table: pd.DataFrame) -> Spec:
    across, up = map(str, table.columns[:2])
    best = table[table["best"]]
    present = table[table["present"]]
    groups = (
        ("beaten", table[~table["best"]], GREY, "markers"),
        ("not beaten", best, BLUE, "lines+markers"),
        (": ".join(["at present", *present["setting"].head(1)]), present, VERMILLION, "markers"),
    )
    data = []
    for name, group, shade, mode in groups:
        look = {"line": {"color": shade, "width": 1.5}, "marker": {"color": shade, "size": 11}}
        marks = line(group[across], group[up], mode=mode, name=plain(name), **look)
        data.append({**marks, "hovertext": [*map(plain, group["setting"])], "hoverinfo": "text"})
    x, y = (
        {
            "title": name,
            "tickformat": tick_format(table[name].max()),
            "rangemode": "tozero",
        }
        for name in (across, up)
    )
    # No setting lies to the lower left of the best ones, so their names stand there, one under the other.
    gap = table[up].max() / 20
    least = float("inf")
    names = []
    for row in table_rows(best.drop_duplicates([across, up])):
        least = min(row[up], least - gap)
        corner = {"xanchor": "right", "yanchor": "top", "xshift": -12, "yshift": -3}
        names.append(note(label(row["setting"], 40), row[across], least, **corner))
    more = {"showlegend": True, "legend": {"orientation": "h", "y": -0.3}, "annotations": names}
    return {"data": data, "layout": layout(340, x, y, **more)}


def _say_frontier(table: pd.DataFrame) -> str:
    best = [*table.loc[table["best"], "setting"]]
    if len(best) == 1:
        return f"One of {len(table)} is best in both: {best[0]}"
    return f"{len(best)} of {len(table)}, those on the line; {best[0]} has the lowest {table.columns[0]}"


#: Draw settings by two measures, where lower is better, and name those that no other beats in both.
frontier = Question("Which settings are worth a choice?", _frontier, _draw_frontier, _say_frontier)
