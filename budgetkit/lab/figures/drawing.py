"""Draw a figure's specification as SVG, with axes, notes and legend.

In a notebook, plotly draws the same specification (see ADR 0006). Equal specifications give the same bytes. A page can
apply the colours of its theme: grid lines and arrows have the class "grid", and a text without a fill of its own has
the fill of the SVG element.
"""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from typing import Any
from zlib import crc32

from budgetkit.lab.figures.marks import (
    DASHES,
    Marks,
    Plot,
    boxes,
    drawn_bars,
    heatmap,
    pairs,
    scatter,
    way,
)
from budgetkit.lab.figures.scales import (
    GRID,
    INK,
    LETTER,
    LINE,
    ROOM,
    Scale,
    Spec,
    scale_of,
    svg_label,
    svg_text,
    tag,
    ticks,
    width_of,
)

WIDTH = 640  # pixels
_HERE = "here"  # the name of the line that marks the chosen turn or request
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}
# Non-finite numbers, and the keys of a note's or line's position.
_WRITTEN = re.compile(r"\b(?:nan|inf)\b")
_PLACES = ("x", "y", "x0", "x1", "y0", "y1", "ax", "ay")
# pixels above and below
_TITLE = 30
_ANSWER = 18
_LEGEND = 22


def svg(spec: Spec, title: str, heading: bool = True) -> str:
    """Return a figure as SVG.

    Parameters
    ----------
    spec : dict
        ``{"data": [...], "layout": {...}}``, as `Question.spec` returns it.
    title : str
        The figure's question, used as the heading and as the text alternative.
    heading : bool, default True
        If True, draw the title and the answer above the figure.

    Returns
    -------
    str
        An SVG element, ready to be saved. Non-finite values are left out, and a note below the figure counts them.

    Examples
    --------
    >>> import budgetkit as bk
    >>> drawn = svg(bk.figures.waterfall.spec(bk.presets.chat(8_192)), "What is left?")
    >>> drawn[:70], drawn.count("<rect"), "<script" in drawn
    ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 314" width="6', 7, False)
    """
    spec, lost = known(spec)
    layout = spec["layout"]
    entries = _entries(spec) if layout.get("showlegend") else []
    meta = layout.get("meta", {})
    answer = meta.get("answer", "") if heading else ""
    above = _TITLE * heading + _ANSWER * bool(answer)
    top = meta.get("top", 12) + above
    height = layout["height"] + above
    plot = _plot(spec, top, height - _LEGEND * bool(entries))
    inside = []
    if heading:
        inside.append(svg_label(svg_text(title), 4, 18, font_size=15, font_weight=600))
    if answer:
        inside.append(svg_label(answer, 4, 36))
    inside += _axes(plot)
    inside += _shapes(plot, "below")
    grouped = [trace for trace in spec["data"] if trace["type"] == "box"]
    draw = {"bar": drawn_bars, "scatter": scatter, "heatmap": heatmap}
    for trace in spec["data"]:
        if trace["type"] == "box":
            inside += boxes(trace, plot, grouped.index(trace), len(grouped))
        else:
            inside += draw[trace["type"]](trace, plot)
    inside += _shapes(plot, "above")
    inside += _notes(plot)
    inside += _legend(entries, height)
    if any(plot.hatch in mark for mark in inside):
        look = {"stroke": "#ffffff", "stroke_opacity": 0.75, "stroke_width": 2}
        lines = tag("path", d="M-2 2l4-4M0 8l8-8M6 10l4-4", **look)
        size = {"width": 8, "height": 8, "patternUnits": "userSpaceOnUse"}
        inside.append(tag("defs", tag("pattern", lines, id=plot.hatch, **size)))
    if lost:
        words = f"{lost:,} unknown values are not drawn"
        inside.append(svg_label(words, WIDTH - 4, height - 7, "end"))
    along = None
    if not (plot.x.log or plot.x.names):
        along = f"{plot.x.low:g} {plot.x.high:g} {plot.x.start:g} {plot.x.end:g}"
    picture = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {WIDTH} {height}",
        "width": WIDTH,
        "height": height,
        "font_size": 12,
        "fill": INK,
        "role": "img",
        "aria-label": title,
        "font_family": "system-ui, sans-serif",
        "data-along": along,
    }
    return tag("svg", *inside, **picture)


def _plot(spec: Spec, top: float, bottom: float) -> Plot:
    """Return the plot area, with its scales, inside margins for labels."""
    layout = spec["layout"]
    x_axis = layout["xaxis"]
    y_axis = layout["yaxis"]
    margin = layout["margin"]
    is_titled = [bool(axis.get("title", {}).get("text")) for axis in (x_axis, y_axis)]
    has_texts = x_axis.get("visible", True) and x_axis.get("showticklabels", True)
    low = bottom - margin["b"] - 18 * has_texts - 17 * is_titled[0]
    traces = spec["data"]
    values = _values(spec, "y")
    is_lying = any(trace["type"] == "bar" for trace in traces)
    values += [
        at + side for at in values if is_lying and not isinstance(at, str) for side in (-0.5, 0.5)
    ]
    is_filled = any("stackgroup" in trace or trace.get("fill") == "tozeroy" for trace in traces)
    y = scale_of(y_axis, values, low, top, from_zero=is_filled, room=0 if is_lying else ROOM)
    texts = []
    if y_axis.get("showticklabels", True):
        texts = [name for _, name in ticks(y_axis, y)]
    left = margin["l"] + max([0.0, *map(width_of, texts)]) + 6 * bool(texts) + 18 * is_titled[1]
    right = WIDTH - max(margin["r"], 16)

    # The axis along bars has room for the texts beside them.
    meta = layout.get("meta", {})
    if meta.get("beside"):
        inside = right - left
        room = min(inside * 0.6, meta["beside"] * LETTER + 12)
        start = x_axis["range"][0]
        end = start + (meta["reach"] - start) * inside / (inside - room)
        x_axis = {**x_axis, "range": [start, end]}
    has_points = any("markers" in trace.get("mode", "markers") for trace in traces)
    x = scale_of(
        x_axis, _values(spec, "x"), left, right, from_zero=is_lying, room=ROOM * has_points
    )
    hatch = f"bk-hatch-{crc32(repr(spec).encode('utf-8', 'replace')):x}"
    return Plot(x, y, {**layout, "xaxis": x_axis}, hatch)


def _values(spec: Spec, name: str) -> list[Any]:
    """List the values along one axis, from traces and marker lines.

    Bars contribute their ends, stacked areas their sums, and error bars their upper ends.
    """
    found: list[Any] = []
    sums = Counter[Any]()
    for trace in spec["data"]:
        values = [value for value in trace.get(name, []) if value is not None]
        if name == "y" and "stackgroup" in trace:
            for x, y in pairs(trace):
                sums[x] += y
        elif name == "x" and trace["type"] == "bar" and trace.get("base"):
            bases = zip(trace["base"], trace["x"], strict=True)
            found += [base + size for base, size in bases if size is not None]
        else:
            found += values
        if name == "y" and "error_y" in trace:
            ends = zip(trace["y"], trace["error_y"]["array"], strict=True)
            found += [y + (up or 0) for y, up in ends if y is not None]
    for shape in spec["layout"].get("shapes", []):
        if shape.get(f"{name}ref", name) == name:
            found += [shape[f"{name}0"], shape[f"{name}1"]]
    return [*found, *sums.values()]


def _axes(plot: Plot) -> Marks:
    left, right = plot.x.start, plot.x.end
    low, top = plot.y.start, plot.y.end
    for axis, scale, is_x in (
        (plot.layout["xaxis"], plot.x, True),
        (plot.layout["yaxis"], plot.y, False),
    ):
        title = axis.get("title", {}).get("text")
        marks = ticks(axis, scale)
        if axis.get("showgrid", True) and marks:
            yield _lines([at for at, _ in marks], is_x, plot)
        for at, name in marks:
            if not axis.get("showticklabels", True):
                break
            if is_x:
                yield svg_label(name, at, low + 15, "middle")
            else:
                yield svg_label(name, left - 6, at + 4, "end")
        if title and is_x:
            yield svg_label(title, (left + right) / 2, low + 32, "middle")
        elif title:
            middle = (top + low) / 2
            yield svg_label(title, 12, middle, "middle", transform=f"rotate(-90 12 {middle:.1f})")
        is_seen = axis.get("visible", True) and axis.get("zeroline", True)
        is_named = scale.log or scale.names or "ticktext" in axis
        if is_seen and not is_named and scale.low * scale.high < 0:
            yield _lines([scale.placed(0)], is_x, plot, stroke_width=1.6)


def _lines(places: list[float], is_x: bool, plot: Plot, **look: float) -> str:
    """Draw grid lines across the plot area as one path."""
    x, y = plot.x, plot.y
    path = "".join(
        way([(at, y.end), (at, y.start)] if is_x else [(x.start, at), (x.end, at)]) for at in places
    )
    return tag("path", d=path, class_="grid", stroke=GRID, **look)


def _placed(mark: Spec, key: str, scale: Scale) -> float:
    """Return one coordinate of a line or annotation in pixels."""
    if mark.get(f"{key[0]}ref", key[0]) == "paper":
        return scale.start + float(mark[key]) * (scale.end - scale.start)
    return scale.placed(scale.names.index(mark[key]) if isinstance(mark[key], str) else mark[key])


def _shapes(plot: Plot, layer: str) -> Marks:
    for shape in plot.layout.get("shapes", []):
        if shape.get("layer", "above") != layer:
            continue
        xs = [_placed(shape, key, plot.x) for key in ("x0", "x1")]
        ys = [_placed(shape, key, plot.y) for key in ("y0", "y1")]
        line = shape.get("line", {})
        stroke = {"stroke": line.get("color", INK), "stroke_width": line.get("width", 1)}
        dash = DASHES.get(line.get("dash", ""))
        place = {"x1": xs[0], "y1": ys[0], "x2": xs[1], "y2": ys[1]}
        here = _HERE if shape.get("name") == _HERE else None
        yield tag("line", **place, **stroke, stroke_dasharray=dash, class_=here)


def _notes(plot: Plot) -> Marks:
    for note in plot.layout.get("annotations", []):
        x = _placed(note, "x", plot.x)
        y = _placed(note, "y", plot.y)
        if note.get("showarrow"):
            start = {"x1": x, "y1": y}
            x += note.get("ax", 0)
            y += note.get("ay", 0)
            if note.get("axref") == "x":
                x = plot.x.placed(note["ax"])
            if note.get("ayref") == "y":
                y = plot.y.placed(note["ay"])
            look = {"class_": "grid", "stroke": note.get("arrowcolor", INK)}
            yield tag("line", **start, x2=x, y2=y, **look)
        x += note.get("xshift", 0)
        y -= note.get("yshift", 0)
        words = note["text"]
        anchor = _ANCHORS.get(note.get("xanchor", ""), "middle")
        wide = width_of(words)
        lines = words.count("<br>") + 1
        before = {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        up = {"top": 12.0, "bottom": -3.0 - LINE * (lines - 1)}.get(
            note.get("yanchor", ""), 4 - LINE * (lines - 1) / 2
        )
        x = max(min(x, WIDTH - 2 - wide + before), before + 2)
        yield svg_label(words, x, y + up, anchor)


def _entries(spec: Spec) -> list[tuple[str, str]]:
    """List the legend's entries with their colours."""
    entries = []
    for trace in spec["data"]:
        of_line, of_marks = (trace.get(mark, {}).get("color") for mark in ("line", "marker"))
        colour = trace.get("fillcolor") or of_line or of_marks
        if trace.get("showlegend", True) and "name" in trace:
            entries.append((trace["name"], colour if isinstance(colour, str) else INK))
    return entries


def _legend(entries: list[tuple[str, str]], height: float) -> Marks:
    x = 10.0
    for name, colour in entries:
        yield tag("rect", x=x, y=height - 16, width=12, height=10, rx=2, fill=colour)
        yield svg_label(name, x + 17, height - 7)
        x += width_of(name) + 34


def known(spec: Spec) -> tuple[Spec, int]:
    """Remove the non-finite values from a specification, and count them.

    In a stacked area, a non-finite value becomes 0.

    >>> axes = {"xaxis": {}, "yaxis": {}}
    >>> known({"data": [{"type": "bar", "x": [1.5, float("nan")], "y": [0, 1]}], "layout": axes})[1]
    1
    """
    if not _WRITTEN.search(repr(spec)):
        return spec, 0
    lost: list[str] = []
    # A numpy number or array has a method that gives plain data.
    plain = json.dumps(spec, default=operator.methodcaller("tolist"))
    spec = json.loads(plain, parse_constant=lost.append)
    layout = spec["layout"]
    for name in ("shapes", "annotations"):
        layout[name] = [
            entry
            for entry in layout.get(name, [])
            if None not in [entry.get(key, 0) for key in _PLACES]
        ]
    for axis in (layout["xaxis"], layout["yaxis"]):
        if None in axis.get("range", ()):
            del axis["range"]
    for trace in spec["data"]:
        if trace["type"] == "box":
            known_places = [place for place, y in enumerate(trace["y"]) if y is not None]
            for side in ("x", "y"):
                trace[side] = [trace[side][place] for place in known_places]
        elif "stackgroup" in trace:  # the areas above it continue from the same height
            trace["y"] = [y or 0 for y in trace["y"]]
        elif isinstance(trace.get("base"), list):
            sizes = zip(trace["x"], trace["base"], strict=True)
            trace["x"] = [None if base is None else size for size, base in sizes]
    return spec, len(lost)
