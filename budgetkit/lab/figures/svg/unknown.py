"""What is not known: values that are no finite numbers are left out of a picture, and it says how many."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

Spec = dict[str, Any]
_WRITTEN: Final = re.compile(r"\b(?:nan|inf)\b")
_PLACES: Final = ("x", "y", "x0", "x1", "y0", "y1", "ax", "ay")


def known(spec: Spec) -> tuple[Spec, int]:
    """Return a figure without the values that are no finite numbers, and how many these were.

    >>> axes = {"xaxis": {}, "yaxis": {}}
    >>> known({"data": [{"type": "bar", "x": [1.5, float("nan")], "y": [0, 1]}], "layout": axes})[1]
    1
    """
    if not _WRITTEN.search(repr(spec)):
        return spec, 0
    lost: list[Any] = []
    without_gaps = _without(spec, lost)
    layout = without_gaps["layout"]
    for name in ("shapes", "annotations"):
        layout[name] = [
            entry
            for entry in layout.get(name, [])
            if None not in [entry.get(key, 0) for key in _PLACES]
        ]
    for axis in (layout["xaxis"], layout["yaxis"]):
        if None in axis.get("range", ()):
            del axis["range"]
    return {**without_gaps, "data": [*map(_drawable, without_gaps["data"])]}, len(lost)


def _without(value: Any, lost: list[Any]) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        lost.append(value)
        return None
    if isinstance(value, Mapping):
        return {key: _without(entry, lost) for key, entry in value.items()}
    if not isinstance(value, list | tuple):
        return value
    return [_without(entry, lost) for entry in value]


def _drawable(trace: Spec) -> Spec:
    """Return a trace whose kind of mark can leave out what is missing."""
    if trace["type"] == "box":
        pairs = [(x, y) for x, y in zip(trace["x"], trace["y"], strict=True) if y is not None]
        trace["x"], trace["y"] = [x for x, _ in pairs], [y for _, y in pairs]
    elif "stackgroup" in trace:  # what stands on it goes on from what was reached
        trace["y"] = [y or 0 for y in trace["y"]]
    elif isinstance(trace.get("base"), list):
        sizes = zip(trace["x"], trace["base"], strict=True)
        trace["x"] = [None if base is None else size for size, base in sizes]
    return trace
