"""Marks of a figure as SVG, such as bars, lines and points."""

from __future__ import annotations

from cmath import phase
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from typing import Any

import numpy as np

from budgetkit.lab.figures.scales import (
    INK,
    Scale,
    Spec,
    number,
    plain_text,
    svg_label,
    svg_text,
    tag,
)

Point = tuple[float, float]
Marks = Iterator[str]  # the elements of marks in SVG
DASHES = {"dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3"}
# Corners of the symbols other than the circle, from the centre.
_SYMBOLS = {
    "triangle-down": ((-1, -0.8), (1, -0.8), (0, 1)),
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "line-ns": ((0, -1), (0, 1)),
}
_MOST = 2_000  # points of a line; in a longer one, each pixel column keeps its first, lowest, highest and last
_GROUP = 0.8  # share of an axis step that the boxes of one name fill


@dataclass(slots=True)
class Plot:
    """The axes, layout and hatch pattern of a figure being drawn.

    For stacked bars and areas, `reached` has the end of the stack at each position.
    """

    x: Scale
    y: Scale
    layout: Spec
    hatch: str
    reached: Counter[Any] = field(default_factory=Counter)


def pairs(trace: Spec) -> Iterator[tuple[Any, Any]]:
    """Yield the coordinates of each mark."""
    return zip(trace["x"], trace["y"], strict=True)


def drawn_bars(trace: Spec, plot: Plot) -> Marks:
    """Draw horizontal bars with their texts inside or beside them."""
    thick = abs(plot.y.placed(1) - plot.y.placed(0))
    is_stacked = plot.layout.get("barmode") == "stack"
    for i, (size, at) in enumerate(pairs(trace)):
        if size is None:
            continue
        begins = plot.reached[at] if is_stacked else _each(trace, "base", i) or 0
        plot.reached[at] = begins + size
        low, high = sorted((plot.x.at(begins), plot.x.at(begins + size)))
        middle = plot.y.at(at)
        height = thick * (_each(trace, "width", i) or 1 - plot.layout.get("bargap", 0.2))
        place = {"x": low, "y": middle - height / 2, "width": high - low, "height": height}
        marker = trace.get("marker", {})
        edge = marker.get("line", {})
        look = {
            "fill": _each(marker, "color", i) or INK,
            "stroke": _each(edge, "color", i),
            "stroke_width": _each(edge, "width", i),
        }
        yield tag("rect", *_tip(_each(trace, "hovertext", i)), **place, **look)
        if _each(marker.get("pattern", {}), "shape", i):
            yield tag("rect", **place, fill=f"url(#{plot.hatch})")
        words = _each(trace, "text", i)
        if not words:
            continue
        if trace.get("textposition") == "inside":
            ink = trace.get("textfont", {}).get("color", INK)
            yield svg_label(words, low + 4, middle + 4 * ("<br>" not in words), fill=ink)
        elif size < 0:
            yield svg_label(words, low - 5, middle + 4, "end")
        else:
            yield svg_label(words, high + 5, middle + 4)


def scatter(trace: Spec, plot: Plot) -> Marks:
    """Draw a trace as a line, area, points or texts."""
    mode = trace.get("mode", "lines")
    line = trace.get("line", {})
    runs = [_stepped(run, line) for run in _runs(trace, plot)]
    outline = runs[0]
    fill = trace.get("fill")
    if "stackgroup" in trace:
        # The lower edge of a stacked area, which is raised for the next one.
        below = [(plot.x.at(x), plot.y.placed(plot.reached[x])) for x in trace["x"]]
        outline = [*outline, *_stepped(below, line)[::-1]]
        for x, y in pairs(trace):
            plot.reached[x] += y
    elif fill == "tozeroy":
        zero = plot.y.placed(0)
        outline = [*outline, (outline[-1][0], zero), (outline[0][0], zero)]
    if "stackgroup" in trace or fill in ("toself", "tozeroy"):
        yield tag("path", d=way(thinned(outline), True), fill=trace.get("fillcolor", INK))
    stroke = {"stroke": line.get("color", INK), "stroke_width": line.get("width", 2)}
    if "lines" in mode and stroke["stroke_width"] and any(len(run) > 1 for run in runs):
        path = "".join(way(thinned(run)) for run in runs)
        dash = DASHES.get(line.get("dash", "solid"))
        yield tag(
            "path", d=path, fill="none", **stroke, stroke_dasharray=dash, stroke_linejoin="round"
        )
    if "error_y" in trace:
        spread = trace["error_y"]
        sides = spread["array"], spread.get("arrayminus", spread["array"])
        path = "".join(
            way([(plot.x.at(x), plot.y.at(y - down)), (plot.x.at(x), plot.y.at(y + up))])
            for x, y, up, down in zip(trace["x"], trace["y"], *sides, strict=True)
            if None not in (x, y, up, down)
        )
        yield tag("path", d=path, fill="none", stroke=stroke["stroke"], stroke_width=1.5)
    if "markers" in mode:
        yield from _points(trace, plot)
    if "text" in mode:
        for x, y, words in zip(trace["x"], trace["y"], trace["text"], strict=True):
            if None not in (x, y):
                yield svg_label(words, plot.x.at(x) + 2, plot.y.at(y) + 4)


def _runs(trace: Spec, plot: Plot) -> list[list[Point]]:
    """Return the points of a line in pixels, split at missing values.

    The points of a stacked area are raised by the height of the areas below it.
    """
    runs: list[list[Point]] = [[]]
    for x, y in pairs(trace):
        if x is None or y is None:
            runs.append([])
            continue
        below = plot.reached[x] if "stackgroup" in trace else 0
        runs[-1].append((plot.x.at(x), plot.y.at(below + y)))
    return [run for run in runs if run] or [[]]


def _stepped(run: list[Point], line: Spec) -> list[Point]:
    if line.get("shape") != "hv" or not run:
        return run
    steps = (((x, y), (x, after)) for (_, y), (x, after) in pairwise(run))
    return [run[0], *chain.from_iterable(steps)]


def thinned(run: list[Point]) -> list[Point]:
    """Thin out a line of more than 2,000 points.

    Each column of pixels keeps its first, lowest, highest and last point.

    >>> thinned([(x / 1000, x % 7) for x in range(3_000)])[:4]
    [(0.0, 0), (0.496, 6), (0.5, 3), (0.501, 4)]
    """
    if len(run) <= _MOST:
        return run
    columns: dict[int, list[int]] = {}
    for place, (x, _) in enumerate(run):
        columns.setdefault(round(x), []).append(place)
    shown = []
    for places in columns.values():
        by_height = sorted(places, key=lambda place: run[place][1])
        shown += sorted({places[0], by_height[0], by_height[-1], places[-1]})
    return [run[place] for place in shown]


def way(run: Sequence[Point], closed: bool = False) -> str:
    """Return an SVG path through points, rounded to tenths of a pixel.

    Consecutive steps in the same direction are joined into one.

    >>> way([(0, 9), (1, 9), (2.5, 9), (2.5, 7), (3, 6)], closed=True)
    'M0 9h2.5v-2l0.5-1z'
    """
    if not run:
        return ""
    points = [complex(round(10 * x), round(10 * y)) for x, y in run]
    path = f"M{number(points[0].real / 10)} {number(points[0].imag / 10)}"
    steps = [after - before for before, after in pairwise(points) if after != before]
    for _, straight in groupby(steps, phase):
        step = sum(straight) / 10
        x, y = number(step.real), number(step.imag)
        if y == "0":
            path += f"h{x}"
        elif x == "0":
            path += f"v{y}"
        else:
            path += f"l{x} {y}"
    return path.replace(" -", "-") + "z" * closed


def _points(trace: Spec, plot: Plot) -> Marks:
    marker = trace.get("marker", {})
    default = trace.get("line", {}).get("color", INK)
    for i, (x, y) in enumerate(pairs(trace)):
        if x is None or y is None:
            continue
        colour = _each(marker, "color", i) or default
        shape = _each(marker, "symbol", i) or "circle"
        inside = _tip(_each(trace, "text", i))
        size = (_each(marker, "size", i) or 6) / 2
        x = plot.x.at(x)
        y = plot.y.at(y)
        corners = _SYMBOLS.get(shape.removesuffix("-open"), ())
        outline = [(x + size * right, y + size * down) for right, down in corners]
        look: Spec = {"fill": colour}
        if shape.endswith("-open"):
            edge = marker.get("line", {}).get("width", 1.5)
            look = {"fill": "none", "stroke": colour, "stroke_width": edge}
        look["opacity"] = marker.get("opacity")
        if outline:
            yield tag("path", *inside, d=way(outline, len(outline) > 2), **look)
        else:
            yield tag("circle", *inside, cx=x, cy=y, r=size, **look)


def _tip(words: str | None) -> list[str]:
    """Return a list with a mark's tooltip, or an empty list."""
    return [tag("title", svg_text(plain_text(words)))] if words else []


def boxes(trace: Spec, plot: Plot, place: int, many: int) -> Marks:
    """Draw a box plot for each name.

    The points are the values, the box spans their middle half, and the line in the box is their median.
    """
    wide = abs(plot.x.placed(1) - plot.x.placed(0)) * _GROUP / many
    marker = trace.get("marker", {})
    colour = marker.get("color", INK)
    for name in dict.fromkeys(trace["x"]):
        values = sorted(y for x, y in pairs(trace) if x == name)
        x = plot.x.at(name) + (place - (many - 1) / 2) * wide
        low, middle, high = (
            plot.y.at(float(value)) for value in np.quantile(values, (0.25, 0.5, 0.75))
        )
        # A line without length has round ends, so it draws a point in a third of the bytes of a circle.
        points = ""
        for i, value in enumerate(values):
            spread = wide * (0.2 if i % 2 else -0.2) * ((i * 7 % 5) / 5)
            points += f"M{x + spread:.0f} {plot.y.at(value):.0f}h0"
        look = {"stroke_opacity": 0.45, "stroke_width": 4, "stroke_linecap": "round"}
        yield tag("path", d=points, stroke=colour, **look)
        left = x - wide * 0.4
        edges = {"x": left, "y": min(low, high), "width": wide * 0.8, "height": abs(high - low)}
        yield tag("rect", **edges, fill=colour, fill_opacity=0.25, stroke=colour, stroke_width=1.5)
        median = way([(left, middle), (x + wide * 0.4, middle)])
        yield tag("path", d=median, stroke=colour, stroke_width=2)


def _each(fields: Spec, name: str, i: int) -> Any:
    """Return the value of the mark with this index.

    A list has one value for each mark; a value that is not a list is shared by all marks.
    """
    value = fields.get(name)
    if isinstance(value, list | tuple):
        return value[i]
    return value


def heatmap(trace: Spec, plot: Plot) -> Marks:
    """Draw a cell for each known number, with one path per colour."""
    cells: dict[str, str] = defaultdict(str)
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
            colour = between(trace["colorscale"], share)
            wide = number(abs(x1 - x0) + 0.3)
            corner = f"M{number(min(x0, x1))} {number(min(y0, y1))}"
            cells[colour] += f"{corner}h{wide}v{number(abs(y1 - y0) + 0.3)}h-{wide}z"
    for colour, path in cells.items():
        yield tag("path", d=path, fill=colour)


def _edges(middles: list[float]) -> list[float]:
    """Return the edges of adjacent cells from their centres.

    A single cell is 40 pixels wide.
    """
    if len(middles) == 1:
        return [middles[0] - 20, middles[0] + 20]
    inner = [(a + b) / 2 for a, b in pairwise(middles)]
    return [2 * middles[0] - inner[0], *inner, 2 * middles[-1] - inner[-1]]


def between(scale: list[list[Any]], share: float) -> str:
    """Return the colour at a position on a colour scale.

    The position is between 0 and 1.

    Only hexadecimal colours are blended.

    >>> between([[0, "#000000"], [1, "#ff8000"]], 0.5)
    'rgb(128,64,0)'
    """
    for (low, before), (high, after) in pairwise(scale):
        if share <= high:
            if before[0] != "#" or after[0] != "#":
                return str(before if share <= low else after)
            part = (share - low) / (high - low)
            channels = zip(bytes.fromhex(before[1:]), bytes.fromhex(after[1:]), strict=True)
            mixed = (str(round(one + part * (other - one))) for one, other in channels)
            return f"rgb({','.join(mixed)})"
    return str(scale[-1][1])
