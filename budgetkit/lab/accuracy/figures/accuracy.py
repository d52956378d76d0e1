"""How far counters are off: by class, by length, and what buffer a risk asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget.colours import ALARM, SLATE
from budgetkit.lab.accuracy import buffer_for, summary
from budgetkit.lab.figures.marks import bars, line, written
from budgetkit.lab.figures.question import Question, Spec, label, layout, plain

_OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", SLATE)
_MOST_POINTS = 3_000


def _by_class(errors: pd.DataFrame, by: str = "class") -> pd.DataFrame:
    if len(errors) <= _MOST_POINTS:
        sample = errors
    else:
        sample = errors.sample(_MOST_POINTS, random_state=0)
    columns = [
        "counter",
        by,
        "language",
        "source",
        "document",
        "characters",
        "exact",
        "estimate",
        "error",
    ]
    return sample[list(dict.fromkeys(columns))].sort_values(
        [by, "counter"], kind="stable", ignore_index=True
    )


def _draw_by_class(table: pd.DataFrame) -> Spec:
    group = str(table.columns[1])
    counters = list(dict.fromkeys(table["counter"]))
    boxes = [
        _box(table[table["counter"] == name], group, name, number)
        for number, name in enumerate(counters)
    ]
    y = {
        "title": {"text": "error, % of the exact count"},
        "ticksuffix": " %",
        "zerolinewidth": 2,
        "nticks": 8,
    }
    legend = {"orientation": "h", "y": 1.08, "x": 0}
    height = 420
    return {
        "data": boxes,
        "layout": layout(height, {}, y, boxmode="group", showlegend=True, legend=legend),
    }


def _box(rows: pd.DataFrame, group: str, name: str, number: int) -> Spec:
    tips = [
        f"{plain(str(row.document) or str(row.source))}, {plain(str(row.language))}<br>"
        f"{row.exact:,} tokens, counted {row.estimate:,}"
        for row in rows.itertuples()
    ]
    return {
        "type": "box",
        "name": plain(name),
        "x": [plain(str(value)) for value in rows[group]],
        "y": (100 * rows["error"]).round(1).tolist(),
        "text": tips,
        "hovertemplate": "%{text}<br>%{y:+.1f} %<extra>" + plain(name) + "</extra>",
        "boxpoints": "all",
        "jitter": 0.5,
        "pointpos": 0,
        "marker": {"size": 4, "opacity": 0.55, "color": _OKABE_ITO[number % len(_OKABE_ITO)]},
        "line": {"width": 1.5},
    }


def _by_length(errors: pd.DataFrame, steps: int = 8) -> pd.DataFrame:
    sizes = errors["characters"].to_numpy()
    edges = np.unique(np.geomspace(max(sizes.min(), 1), sizes.max() + 1, steps + 1).round()).astype(
        int
    )
    bins = edges[np.searchsorted(edges, sizes, side="right") - 1]
    return summary(errors.assign(characters=bins), ["counter", "characters"])


def _draw_by_length(table: pd.DataFrame) -> Spec:
    hover = "%{y:.1f} % from %{x:,} characters on<extra></extra>"
    lines = []
    for number, (name, rows) in enumerate(table.groupby("counter", sort=False)):
        style = {"color": _OKABE_ITO[number % len(_OKABE_ITO)], "width": 2}
        ends = [
            (100 * (rows[end] - rows["mape"]).abs()).fillna(0).round(2)
            for end in ("mape_high", "mape_low")
        ]
        line_of_counter = _with_ends(
            rows["characters"].astype(int), 100 * rows["mape"], ends, str(name)
        )
        lines.append(line_of_counter | {"line": style, "hovertemplate": hover})
    x_axis = {
        "type": "log",
        "title": {"text": "characters of a document"},
        "tickformat": "~s",
        "showgrid": False,
    }
    y_axis = {"title": {"text": "mean absolute error"}, "ticksuffix": " %", "rangemode": "tozero"}
    legend = {"orientation": "h", "y": 1.1, "x": 0}
    return {"data": lines, "layout": layout(340, x_axis, y_axis, showlegend=True, legend=legend)}


def _with_ends(x: pd.Series[Any], y: pd.Series[Any], ends: list[pd.Series[Any]], name: str) -> Spec:
    """Return a line with an interval at each point: how far it reaches up, and how far down."""
    up, down = (end.tolist() for end in ends)
    spread = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
    return line(x, y.round(2), mode="lines+markers", name=plain(name), error_y=spread)


def _buffers(
    errors: pd.DataFrame,
    window: int,
    risks: tuple[float, ...] = (0.2, 0.1, 0.05, 0.02, 0.01),
    window_mix: str | None = None,
) -> pd.DataFrame:
    rows = []
    for name, group in errors.groupby("counter", sort=False):
        for risk in risks:
            buffer = buffer_for(group, window, risk, window_mix)
            row = {
                "counter": name,
                "risk": risk,
                "buffer": buffer.share,
                "low": buffer.low,
                "high": buffer.high,
            }
            rows.append(row | {"tokens": round(buffer.share * window), "warning": buffer.warning})
    return pd.DataFrame(rows)


def _draw_buffers(table: pd.DataFrame) -> Spec:
    hover = "%{y:.1f} %, %{customdata:,} tokens, at a risk of %{x} %<extra></extra>"
    lines = []
    for number, (name, rows) in enumerate(table.groupby("counter", sort=False)):
        style = {"color": _OKABE_ITO[number % len(_OKABE_ITO)]}
        ends = [100 * (rows["high"] - rows["buffer"]), 100 * (rows["buffer"] - rows["low"])]
        ends = [end.clip(lower=0) for end in ends]
        line_of_counter = _with_ends(100 * rows["risk"], 100 * rows["buffer"], ends, str(name))
        lines.append(
            line_of_counter
            | {"line": style, "customdata": rows["tokens"].tolist(), "hovertemplate": hover}
        )
    risks = sorted({100 * risk for risk in table["risk"]})
    ticks = {"tickvals": risks, "ticktext": [f"{risk:g} %" for risk in risks], "tickangle": 0}
    title = {"text": "accepted chance of an overflow"}
    x_axis = {
        "type": "log",
        "title": title,
        **ticks,
        "minor": {"showgrid": False},
        "autorange": "reversed",
    }
    y_axis = {
        "title": {"text": "safety buffer, of the window"},
        "ticksuffix": " %",
        "rangemode": "tozero",
    }
    legend = {"orientation": "h", "y": 1.1, "x": 0}
    return {
        "data": lines,
        "layout": layout(340, x_axis, y_axis, showlegend=len(lines) > 1, legend=legend),
    }


def _tax(errors: pd.DataFrame, window: int = 128_000, base: str = "en") -> pd.DataFrame:
    one = errors[errors["counter"] == errors["counter"].iloc[0]]
    sums = (
        one.groupby(["class", "language"], sort=False)[["characters", "exact"]].sum().reset_index()
    )
    sums["characters_a_token"] = sums["characters"] / sums["exact"]
    sums["characters_in_window"] = (sums["characters_a_token"] * window).round().astype(int)
    english = sums.loc[sums["language"] == base, "characters_in_window"]
    sums["of_base"] = sums["characters_in_window"] / (
        english.iloc[0] if len(english) else sums["characters_in_window"].max()
    )
    table: pd.DataFrame = sums.sort_values("characters_in_window", ignore_index=True)
    return table


def _draw_tax(table: pd.DataFrame) -> Spec:
    names = [label(str(language), 20) for language in table["language"]]
    y = [
        f"{name} ({label(str(kind), 16)})" for name, kind in zip(names, table["class"], strict=True)
    ]
    marker = {"color": [ALARM if share < 0.5 else SLATE for share in table["of_base"]]}
    bar = bars(
        table["characters_in_window"],
        hovertemplate="%{x:,} characters<extra></extra>",
        marker=marker,
    )
    bar = written(bar, [f"{100 * share:.0f} %" for share in table["of_base"]]) | {"y": y}
    x: Spec = {"title": {"text": "characters that fill the window"}, "tickformat": "~s"}
    x |= {"range": [0, 1.09 * max(table["characters_in_window"])]}
    return {"data": [bar], "layout": layout(max(300, 19 * len(table) + 80), x, {"showgrid": False})}


#: Draw each document's error, by class and counter.
errors_by_class = Question(
    "On what is each counter wrong, and by how much?", _by_class, _draw_by_class
)

#: Draw the mean absolute error against the length of a document.
errors_by_length = Question("Do longer texts help?", _by_length, _draw_by_length)

#: Draw the safety buffer against the chance of an overflow that is accepted.
buffers = Question("What buffer does a risk ask for?", _buffers, _draw_buffers)

#: Draw how much text of each language fills one window.
language_tax = Question("How much text fills the window, by language?", _tax, _draw_tax)
