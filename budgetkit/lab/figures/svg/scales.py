"""Scales: where a value stands in a drawing, in pixels, and the numbers beside an axis."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

Spec = dict[str, Any]
_UNITS: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_FORM: Final = re.compile(r"(\+?)(,?)\.(\d+)(~?)([fr%])")
ROOM: Final = 0.05  # of what is shown, on either side, where an axis has no range of its own
_ROUND: Final = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """One axis: from a value, or from a name on an axis of names, to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    names: tuple[str, ...] = ()

    def at(self, value: Any) -> float:
        """Return where a value of the data stands.

        Examples
        --------
        >>> Scale(0, 10, 100, 200).at(5), Scale(0, 2, 0, 100, log=True).at(10)
        (150.0, 50.0)
        """
        if isinstance(value, str):
            value = self.names.index(value)
        return self.placed(math.log10(max(value, 1e-9)) if self.log else value)

    def placed(self, number: float) -> float:
        """Return where a number of the axis stands: a power of ten on a logarithmic one."""
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)


def scale_of(
    axis: Spec,
    values: Iterable[Any],
    start: float,
    end: float,
    from_zero: bool = False,
    room: float = ROOM,
) -> Scale:
    """Return an axis that shows its own range, or else all values."""
    known = [value for value in values if value is not None]
    names = tuple(dict.fromkeys(value for value in known if isinstance(value, str)))
    is_log = axis.get("type") == "log"
    if names:
        low = -0.5
        high = len(names) - 0.5
    elif "range" in axis:
        low, high = axis["range"]
    else:
        numbers = [math.log10(max(value, 1e-9)) if is_log else float(value) for value in known] or [
            0.0,
            1.0,
        ]
        low = min(numbers)
        high = max(numbers)
        around = room * ((high - low) or 1)
        at_zero = from_zero or axis.get("rangemode") == "tozero"
        low = min(0.0, low) if at_zero else low - around
        high = high + around
    if axis.get("autorange") == "reversed":
        low, high = high, low
    return Scale(low, high if high != low else low + 1, start, end, is_log, names)


def ticks(axis: Spec, scale: Scale) -> list[tuple[float, str]]:
    """Return the ticks that lie on an axis: their places, and what stands there."""
    if axis.get("visible", True) is False:
        return []
    if scale.names:
        positions: Sequence[tuple[float, str]] = list(enumerate(scale.names))
    elif "tickvals" in axis:
        numbers = [math.log10(value) if scale.log else value for value in axis["tickvals"]]
        texts = axis.get("ticktext") or [written(value, axis) for value in axis["tickvals"]]
        positions = list(zip(numbers, texts, strict=True))
    elif scale.log:
        positions = [
            (n, written(10**n, axis)) for n in range(math.ceil(min(scale.low, scale.high)), 20)
        ]
    else:
        positions = [(value, written(value, axis)) for value in _round_numbers(axis, scale)]
    low, high = sorted((scale.low, scale.high))
    room = 1e-9 * (high - low)
    return [(scale.placed(at), text) for at, text in positions if low - room <= at <= high + room]


def _round_numbers(axis: Spec, scale: Scale) -> list[float]:
    low, high = sorted((scale.low, scale.high))
    if (step := axis.get("dtick")) is None:
        wanted = (high - low) / max(
            1, min(axis.get("nticks", 6), abs(scale.end - scale.start) / 28)
        )
        power = 10.0 ** math.floor(math.log10(wanted))
        step = next(factor * power for factor in _ROUND if factor * power >= wanted * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(step * n, 10) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def written(value: float, axis: Spec) -> str:
    r"""Write a number as an axis asks for it, by the few formats of d3's that the figures use.

    Examples
    --------
    >>> written(12_500, {"tickformat": "~s"}), written(0.25, {"tickformat": ".0%"}), written(-3, {"ticksuffix": " %"})
    ('12.5k', '25%', '\u22123 %')
    """
    form = axis.get("tickformat", "")
    if form == "~s":
        unit, name = next(((unit, name) for unit, name in _UNITS if abs(value) >= unit), (1, ""))
        text = f"{value / unit:.4g}{name}"
    elif match := _FORM.fullmatch(form):
        sign, comma, digits, trim, kind = match.groups()
        text = f"{value:{sign}{comma}.{digits}{'g' if kind == 'r' else kind}}"
        if trim and "." in text and kind == "f":
            text = text.rstrip("0").rstrip(".")
    else:
        text = f"{value:,.10g}"
    return f"{text}{axis.get('ticksuffix', '')}".replace("-", "\u2212")
