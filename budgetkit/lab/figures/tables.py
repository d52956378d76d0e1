"""Figures of tables: small tables as bars, settings as points, and sweeps.

A sweep varies one or two lines of a budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import quoted
from budgetkit.budget.html import ALARM, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION, colour
from budgetkit.lab.figures.question import (
    Question,
    Spec,
    end_labels,
    extent,
    label,
    line,
    named_line,
    note,
    plain,
    signed,
    spec_of,
    table_rows,
    tick_format,
)
from budgetkit.lab.figures.question import bars as horizontal_bars
from budgetkit.plan import Flags, Floats
from budgetkit.plan.batch import LINES

_ROW = 20  # pixels for a bar
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)


def _table(
    table: pd.DataFrame | pd.Series[float], asks: str, unit: str = "tokens", answer: str = ""
) -> pd.DataFrame:
    """Return one row for each bar, with its name and column.

    All bars of one column have the same colour.
    """
    frame = table.to_frame() if isinstance(table, pd.Series) else table
    names = [f"{name:,}" if isinstance(name, int) else str(name) for name in frame.index]
    long = {
        "name": np.repeat(names, len(frame.columns)),
        "column": [*map(str, frame.columns)] * len(frame),
        "value": frame.to_numpy().ravel(),
    }
    return pd.DataFrame(long).assign(unit=unit, asks=asks, answer=answer)


def _draw(table: pd.DataFrame) -> Spec:
    columns = list(dict.fromkeys(table["column"]))
    names = list(dict.fromkeys(table["name"]))
    unit = str(table["unit"].iloc[0])
    step = len(columns) + 1
    digits = max(len(f"{value:.10g}".partition(".")[2]) for value in table["value"])
    data = []
    for place, column in enumerate(columns):
        values = table.loc[table["column"] == column, "value"].tolist()
        texts = [f"{value:,.{digits}f}".replace("-", "\u2212") for value in values]
        marker = {"color": _COLOURS[place % len(_COLOURS)]}
        bar = horizontal_bars(values, texts, marker=marker, name=plain(column), width=0.9)
        data.append(bar | {"y": [step * i + place for i in range(len(values))]})
    low, high = extent(table["value"])
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
    return spec_of(
        data,
        height,
        across,
        down,
        legend=legend,
        showlegend=len(columns) > 1,
        barmode="overlay",
        margin={"l": 20},  # names of wide letters
        meta={"top": 4, "asks": table["asks"].iloc[0]},
    )


#: Draw a small table as bars: ``bars(table, "How far off is the guess?", "percent", "29 % too high for English")``.
bars = Question("How much is it?", _table, _draw, lambda table: str(table["answer"].iloc[0]))


def is_unbeaten(measures: Floats) -> Flags:
    """Return True for each row that no other row beats.

    A row beats another row if it is at most as large in all columns and smaller in one.

    Examples
    --------
    >>> is_unbeaten(np.array([[1, 4], [2, 4], [3, 1]])).tolist()
    [True, False, True]
    """
    return np.array(
        [
            not ((measures <= row).all(axis=1) & (measures < row).any(axis=1)).any()
            for row in measures
        ],
        "bool",
    )


def _frontier(
    table: pd.DataFrame, across: str, up: str, present: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Return settings with two measures, and flag the best settings.

    A setting is best if no other setting is at least as good in both measures and better in one. The column present
    flags the settings with the values in `present`.
    """
    measures = table[[across, up]].astype(float)
    is_best = is_unbeaten(measures.to_numpy())
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
        (": ".join(["current", *present["setting"].head(1)]), present, VERMILLION, "markers"),
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
    # No setting lies to the lower left of the best ones, so their names are placed there, one below the other.
    gap = table[up].max() / 20
    least = float("inf")
    names = []
    for row in table_rows(best.drop_duplicates([across, up])):
        least = min(row[up], least - gap)
        corner = {"xanchor": "right", "yanchor": "top", "xshift": -12, "yshift": -3}
        names.append(note(label(row["setting"], 40), row[across], least, **corner))
    more = {"showlegend": True, "legend": {"orientation": "h", "y": -0.3}, "annotations": names}
    return spec_of(data, 340, x, y, **more)


def _say_frontier(table: pd.DataFrame) -> str:
    best = [*table.loc[table["best"], "setting"]]
    if len(best) == 1:
        return f"One of {len(table)} settings is best in both measures: {best[0]}"
    return f"{len(best)} of {len(table)}, those on the line; {best[0]} has the lowest {table.columns[0]}"


#: Draw settings by two measures to minimise, and name those that no other setting beats in both.
frontier = Question("Which settings are worth a choice?", _frontier, _draw_frontier, _say_frontier)


CUT = "cut in all"


def _moved(swept: pd.DataFrame) -> list[str]:
    # A table without that list of varied lines has them before its section column.
    names = [str(name) for name in swept.columns]
    return list(swept.attrs.get(LINES, names[: names.index("section")]))


def _line_table(swept: pd.DataFrame) -> pd.DataFrame:
    moved = _moved(swept)
    if len(moved) != 1:
        raise ValueError(
            f"sweep_line needs exactly one varied size, not {len(moved)} ({quoted(moved)}). "
            "Give the others a single size, as in sweep(budget, demand, output=[...]), or use sweep_map."
        )
    means = _means(swept, [*moved, "section"], ["demand", "granted", "cut"])
    return means.sort_values(moved, kind="stable", ignore_index=True)


def _means(swept: pd.DataFrame, keys: list[str], columns: list[str]) -> pd.DataFrame:
    """Return the means for each key, and the number of averaged demands."""
    by_key = swept.groupby(keys, sort=False)[columns]
    demands = by_key.size()
    means = by_key.mean() if (demands > 1).any() else by_key.sum()
    return means.assign(demands=demands).reset_index()


def _unit(table: pd.DataFrame) -> str:
    """Return the unit of a table's numbers.

    The unit is tokens for one demand, and mean tokens for several demands.
    """
    most = int(table["demands"].max())
    if most == 1:
        return "tokens"
    return f"tokens, mean of {most:,} demands"


def _draw_line(table: pd.DataFrame) -> Spec:
    by = str(table.columns[0])
    lines = []
    shown = []
    for section in dict.fromkeys(map(str, table["section"])):
        rows = table[table["section"] == section]
        if rows["demand"].any():
            shown.append(section)
            style = {"color": colour(section), "width": 2.5}
            line = named_line(rows[by], rows["granted"], plain(section), line=style, mode="lines")
            lines.append(line)
    whole = table.groupby(by, as_index=False)["cut"].sum()
    dots = {"color": ALARM, "dash": "dot", "width": 2}
    total = named_line(whole[by], whole["cut"], CUT, line=dots, mode="lines")
    x = {
        "title": f"{by}, in tokens",
        "tickformat": "~s",
        "showgrid": False,
        "nticks": 8,
    }
    y = {"rangemode": "tozero", "tickformat": "~s", "nticks": 6, "title": _unit(table)}
    wide = table.pivot(index=by, columns="section", values="granted")[shown]
    wide = wide.assign(**{CUT: whole["cut"].to_numpy()})
    ends = {name: plain(name) for name in (*shown, CUT)}
    notes = end_labels(wide.reset_index(), ends, wide.to_numpy().max() * 0.09, along=by)
    return spec_of([*lines, total], 340, x, y, hovermode="x unified", annotations=notes)


def _map_table(swept: pd.DataFrame) -> pd.DataFrame:
    moved = _moved(swept)
    if len(moved) < 2:
        raise ValueError(
            f"sweep_map needs exactly two varied sizes, not {len(moved)}. "
            "Write sweep(budget, demand, window=[...], output=[...]), or draw sweep_line."
        )
    # The other columns before the section distinguish the demands.
    names = [*map(str, swept.columns)]
    keys = [*dict.fromkeys([*moved, *names[: names.index("section")]])]
    whole = swept.groupby(keys, sort=False, as_index=False)[["cut"]].sum()
    return _means(whole, moved, ["cut"]).sort_values(moved, ignore_index=True)


def _draw_map(table: pd.DataFrame) -> Spec:
    across = str(table.columns[0])
    up = str(table.columns[1])
    grid = table.pivot(index=up, columns=across, values="cut")
    hover = f"{plain(across)} %{{x:,}}<br>{plain(up)} %{{y:,}}<br>%{{z:,}} {_unit(table)}, cut<extra></extra>"
    scale = [[0, "rgba(0,158,115,0.35)"], [1e-9, "#fde0c5"], [1, ALARM]]
    bar = {
        "title": {"text": f"cut, {_unit(table)}", "side": "right"},
        "tickformat": "~s",
        "thickness": 12,
    }
    heat = {
        "type": "heatmap",
        "x": grid.columns.tolist(),
        "y": grid.index.tolist(),
        "z": grid.to_numpy().tolist(),
        "hovertemplate": hover,
        "colorscale": scale,
        "zmin": 0,
        "colorbar": bar,
    }
    x = {"title": f"{across}, in tokens", "tickformat": "~s", "showgrid": False}
    y = {"title": f"{up}, in tokens", "tickformat": "~s", "showgrid": False}
    return spec_of([heat], 400, x, y)


def _say_line(table: pd.DataFrame) -> str:
    by = str(table.columns[0])
    granted = table.pivot_table("granted", by, "section", sort=False)
    changes = (granted.iloc[-1] - granted.iloc[0]).round().astype(int)
    texts = [f"{name} {signed(change, True)}" for name, change in changes.items() if change]
    first, last = granted.index[[0, -1]]
    return f"From {by} {first:,} to {last:,}: {', '.join(texts) or 'no change'}"


def _say_map(table: pd.DataFrame) -> str:
    across, up = map(str, table.columns[:2])
    whole = table[table["cut"] == 0]
    if whole.empty:
        return "Something is cut in every combination"
    row = whole.nsmallest(1, across).iloc[0]
    return f"In the green area; its smallest {across} is {row[across]:,}, at {up} {row[up]:,}"


#: Draw the grant of each section, and the total cut, over the values of one varied line.
sweep_line = Question("Which sections gain or lose tokens?", _line_table, _draw_line, _say_line)

#: Draw the total cut over the values of two varied lines, with the border of the area without cuts.
sweep_map = Question("Where is nothing cut?", _map_table, _draw_map, _say_map)
