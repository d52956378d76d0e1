"""Fields: a number over a plane, as coloured cells and as the line where it passes a bound."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from budgetkit.lab.figures.svg.marks import Plot
from budgetkit.lab.figures.svg.pieces import number, tag

Spec = dict[str, Any]
Corner = tuple[float, float, float]


def heatmap(trace: Spec, plot: Plot) -> Iterator[str]:
    """Draw a cell for each number, in a colour between those of the scale."""
    values = [value for row in trace["z"] for value in row if value is not None] or [0]
    low = trace.get("zmin", min(values))
    high = max(values)
    across = _edges([plot.x.at(x) for x in trace["x"]])
    up = _edges([plot.y.at(y) for y in trace["y"]])
    for (y0, y1), row in zip(pairwise(up), trace["z"], strict=True):
        for (x0, x1), value in zip(pairwise(across), row, strict=True):
            if value is None:
                continue
            share = (value - low) / (high - low) if high > low else 0.0
            place = {
                "x": min(x0, x1),
                "y": min(y0, y1),
                "width": abs(x1 - x0) + 0.3,
                "height": abs(y1 - y0) + 0.3,
            }
            yield tag("rect", **place, fill=between(trace["colorscale"], share))


def contour(trace: Spec, plot: Plot) -> Iterator[str]:
    """Draw the line where the numbers pass a bound, cell by cell."""
    bound = trace["contours"]["start"]
    xs = trace["x"]
    ys = trace["y"]
    ways = []
    for j in range(len(ys) - 1):
        for i in range(len(xs) - 1):
            around = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
            if any(trace["z"][b][a] is None for a, b in around):
                continue
            corners = [
                (plot.x.at(xs[a]), plot.y.at(ys[b]), float(trace["z"][b][a])) for a, b in around
            ]
            met = [_passed(one, other, bound) for one, other in pairwise([*corners, corners[0]])]
            points = [point for point in met if point is not None]
            ways += [f"M{'L'.join(points[k : k + 2])}" for k in range(0, len(points) - 1, 2)]
    line = trace["line"]
    yield tag(
        "path",
        d="".join(ways) or "M0 0",
        fill="none",
        stroke=line["color"],
        stroke_width=line["width"],
    )


def _passed(one: Corner, other: Corner, bound: float) -> str | None:
    """Return where an edge of a cell passes the bound."""
    if (one[2] < bound) == (other[2] < bound):
        return None
    share = (bound - one[2]) / (other[2] - one[2])
    x, y = (one[k] + share * (other[k] - one[k]) for k in (0, 1))
    return f"{number(x)} {number(y)}"


def _edges(middles: list[float]) -> list[float]:
    """Return the edges of cells with these middles."""
    if len(middles) == 1:
        return [middles[0] - 20, middles[0] + 20]
    inner = [(a + b) / 2 for a, b in pairwise(middles)]
    return [2 * middles[0] - inner[0], *inner, 2 * middles[-1] - inner[-1]]


def between(scale: list[list[Any]], share: float) -> str:
    """Return the colour of a share of the scale.

    >>> between([[0, "#000000"], [1, "#ff8000"]], 0.5)
    'rgb(128,64,0)'
    """
    for (low, before), (high, after) in pairwise(scale):
        if share <= high:
            if not (str(before).startswith("#") and str(after).startswith("#")):
                return str(before if share <= low else after)
            part = (share - low) / (high - low)
            mixed = [
                _channel(before, k) + part * (_channel(after, k) - _channel(before, k))
                for k in (1, 3, 5)
            ]
            return f"rgb({','.join(str(round(value)) for value in mixed)})"
    return str(scale[-1][1])


def _channel(colour: str, at: int) -> int:
    return int(colour[at : at + 2], 16)
