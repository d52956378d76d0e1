"""Marks: lines, points and bars as plotly's plain data, and what is written beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Spec = dict[str, Any]


def line(x: Iterable[Any], y: Iterable[Any], **more: Any) -> Spec:
    """Return a line through points; one point alone is drawn as a point.

    Examples
    --------
    >>> line([1, 2], [3, 4])["mode"], line([1], [3])["mode"]
    ('lines', 'lines+markers')
    """
    x = list(x)
    mode = "lines" if len(x) > 1 else "lines+markers"
    return {"type": "scatter", "mode": mode, "x": x, "y": list(y), **more}


def points(x: Iterable[Any], y: Iterable[Any], **more: Any) -> Spec:
    """Return points."""
    return {"type": "scatter", "mode": "markers", "x": list(x), "y": list(y), **more}


def bars(sizes: Iterable[Any], **more: Any) -> Spec:
    """Return bars one under the other.

    Examples
    --------
    >>> bars([10, 30])["y"]
    [0, 1]
    """
    sizes = list(sizes)
    return {"type": "bar", "orientation": "h", "x": sizes, "y": list(range(len(sizes))), **more}


def written(bar: Spec, texts: list[str]) -> Spec:
    """Return bars with a text at the end of each."""
    return {**bar, "text": texts, "textposition": "outside", "cliponaxis": False}


def note(text: str, x: Any, y: Any, **more: Any) -> Spec:
    """Return a text at a place, without an arrow."""
    return {"text": text, "x": x, "y": y, "showarrow": False, **more}


def across(y: float, colour: str, **more: Any) -> Spec:
    """Return a dashed line over the whole width."""
    dashed = {"color": colour, "dash": "dash", "width": 1.5}
    return {
        "type": "line",
        "x0": 0,
        "x1": 1,
        "xref": "paper",
        "y0": y,
        "y1": y,
        "line": dashed,
        **more,
    }
