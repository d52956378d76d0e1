"""Speed against error: what a counter costs in time, beside what it costs in trust."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget.colours import BLUE, GREEN, ORANGE
from budgetkit.lab.figures.marks import points
from budgetkit.lab.figures.question import INK, Question, Spec, layout, plain

Floats = npt.NDArray[np.float64]
_LINE = 0.065  # height of a line of a label, of the figure's
_KINDS = {"estimate": BLUE, "chosen": ORANGE, "exact": GREEN}


def _table(
    errors: Mapping[str, float], speeds: Mapping[str, float], kinds: Mapping[str, str]
) -> pd.DataFrame:
    rows = [
        {
            "counter": name,
            "kind": kinds[name],
            "error": errors[name],
            "megabytes_a_second": speeds[name],
        }
        for name in errors
    ]
    return pd.DataFrame(rows).sort_values("error", ignore_index=True)


def _draw(table: pd.DataFrame) -> Spec:
    x = table["megabytes_a_second"].tolist()
    y = (100 * table["error"]).round(2).tolist()
    colours = [_KINDS[kind] for kind in table["kind"]]
    names = [_called(str(name)) for name in table["counter"]]
    marker = {"size": 11, "color": colours, "line": {"color": INK, "width": 1}}
    hover = "<b>%{text}</b><br>%{x:,.3~g} MB a second<br>%{y:.1f} % off on average<extra></extra>"
    dots = points(x, y, text=names, cliponaxis=False, marker=marker, hovertemplate=hover)
    low = float(np.log10(min(x)))
    high = float(np.log10(max(x)))
    reach = [low - 0.25 * max(1.0, high - low), high + 0.1 * max(1.0, high - low)]
    top = max(5.0, 1.12 * max(y))
    title = {"text": "MB a second, on this machine", "standoff": 4}
    x_axis = {
        "type": "log",
        "range": reach,
        "title": title,
        "tickformat": "~s",
        "dtick": 1,
        "showgrid": False,
    }
    y_axis = {
        "range": [-0.08 * top, top],
        "ticksuffix": " %",
        "title": {"text": "mean absolute error", "standoff": 4},
    }
    notes = _labels(np.log10(x), np.array(y), names, reach, top)
    return {
        "data": [dots],
        "layout": layout(330, x_axis, y_axis, annotations=notes, meta={"top": 8}),
    }


def _called(name: str, longest: int = 38) -> str:
    """Return a counter's name, cut at its end to fit the figure."""
    return plain(name if len(name) <= longest else f"{name[: longest - 1]}…")


def _labels(x: Floats, y: Floats, names: list[str], reach: list[float], top: float) -> list[Spec]:
    """Return a label for each heap of points; labels of points on the right stand to their left, and none overlap."""
    heaps = _heaps(x / (reach[1] - reach[0]), y / top)
    middle = sum(reach) / 2
    notes = []
    for is_right in (False, True):
        side = [heap for heap in heaps if (x[heap[0]] > middle) == is_right]
        height = -np.inf
        for heap in sorted(side, key=lambda heap: float(y[heap].mean())):
            text = "<br>".join(
                ", ".join(names[name] for name in heap[i : i + 2]) for i in range(0, len(heap), 2)
            )
            half = _LINE * (text.count("<br>") + 1) / 2 * top
            height = max(float(y[heap].mean()), height + half)
            at = float(x[heap].min() if is_right else x[heap].max())
            level = (x > middle) & (x < at) & (np.abs(y - height) < 2 * _LINE * top)
            # Clear of the points that the label would cover.
            left = min([at, *x[level].tolist()]) - 0.06 * (reach[1] - reach[0])
            notes.append(_label(at, float(y[heap].mean()), left, height, text, is_right))
            height += half
    return notes


def _heaps(x: Floats, y: Floats) -> list[list[int]]:
    """Group points whose labels would lie over each other."""
    heaps: list[list[int]] = []
    for place in np.argsort(y, kind="stable").tolist():
        near = (
            heap
            for heap in heaps
            if abs(x[heap[0]] - x[place]) < 0.1 and abs(y[heap[0]] - y[place]) < _LINE
        )
        heap = next(near, None)
        if heap is None:
            heaps.append([place])
        else:
            heap.append(place)
    return heaps


def _label(x: float, y: float, left: float, height: float, name: str, is_right: bool) -> Spec:
    note: Spec = {
        "x": x,
        "y": y,
        "text": name,
        "ay": height,
        "ayref": "y",
        "showarrow": True,
        "yanchor": "middle",
    }
    if is_right:
        note |= {"ax": left, "axref": "x", "xanchor": "right", "align": "right"}
    else:
        note |= {"ax": 26, "xanchor": "left", "align": "left"}
    return note | {"arrowhead": 0, "arrowwidth": 1, "arrowcolor": INK, "standoff": 6}


#: Draw counters by speed and error.
speeds = Question("What does accuracy cost in time?", _table, _draw)
