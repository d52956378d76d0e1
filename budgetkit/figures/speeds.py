"""Speed against error: what a counter costs in time, beside what it costs in trust."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.figures.palette import BLUE, GREEN, ORANGE
from budgetkit.figures.question import INK, Question, Spec, label, layout

Floats = npt.NDArray[np.float64]
_KINDS = {"estimate": BLUE, "chosen": ORANGE, "exact": GREEN}


def _table(errors: Mapping[str, float], speeds: Mapping[str, float], kinds: Mapping[str, str]) -> pd.DataFrame:
    rows = [
        {"counter": name, "kind": kinds[name], "error": errors[name], "megabytes_a_second": speeds[name]}
        for name in errors
    ]
    return pd.DataFrame(rows).sort_values("error", ignore_index=True)


def _draw(table: pd.DataFrame) -> Spec:
    x, y = table["megabytes_a_second"].tolist(), (100 * table["error"]).round(2).tolist()
    colours = [_KINDS[kind] for kind in table["kind"]]
    names = [label(str(name), 30) for name in table["counter"]]
    dots: Spec = {"type": "scatter", "mode": "markers", "x": x, "y": y, "text": names, "cliponaxis": False}
    dots |= {"marker": {"size": 11, "color": colours, "line": {"color": INK, "width": 1}}}
    dots |= {"hovertemplate": "<b>%{text}</b><br>%{x:,.3~g} MB a second<br>%{y:.1f} % off on average<extra></extra>"}
    low, high = float(np.log10(min(x))), float(np.log10(max(x)))
    reach = [low - 0.25 * max(1.0, high - low), high + 0.1 * max(1.0, high - low)]
    top = max(5.0, 1.12 * max(y))
    x_axis: Spec = {"type": "log", "range": reach, "title": {"text": "MB of text a second, on this machine", "standoff": 4}}
    x_axis |= {"tickformat": "~s", "dtick": 1, "showgrid": False}
    y_axis = {"range": [-0.08 * top, top], "ticksuffix": " %", "title": {"text": "mean absolute error", "standoff": 4}}
    notes = _labels(np.log10(x), y, names, reach, 0.075 * top)
    return {"data": [dots], "layout": layout(330, x_axis, y_axis, annotations=notes, meta={"top": 8})}


def _labels(x: Floats, y: list[float], names: list[str], reach: list[float], gap: float) -> list[Spec]:
    """Name each point, those to the right from the left, none over another."""
    middle = sum(reach) / 2
    notes = []
    for is_right in (False, True):
        side = [place for place in np.argsort(y, kind="stable") if (x[place] > middle) == is_right]
        height = -np.inf
        for place in side:
            height = max(y[place], height + gap)
            notes.append(_label(float(x[place]), y[place], height, names[place], is_right))
    return notes


def _label(x: float, y: float, height: float, name: str, is_right: bool) -> Spec:
    shift = -26 if is_right else 26
    note: Spec = {"x": x, "y": y, "text": name, "ax": shift, "ay": height, "ayref": "y", "showarrow": True}
    note |= {"xanchor": "right" if is_right else "left", "yanchor": "middle"}
    return note | {"arrowhead": 0, "arrowwidth": 1, "arrowcolor": INK, "standoff": 6}


#: Draw counters by speed and error.
speeds = Question("What does accuracy cost in time?", _table, _draw)
