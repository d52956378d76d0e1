"""Axis scales and ticks in pixels, SVG texts, and saving of figures."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from budgetkit.budget import one_line
from budgetkit.budget.html import DOCTYPE, Markup, element, safe, xml_element
from budgetkit.budget.html import markup_of as html_written
from budgetkit.files import write_whole

Spec = dict[str, Any]  # a figure, or a part of one, as plotly takes it
# No single grey reaches 4.5:1 on white and on JupyterLab's dark ground; this one has at least 4.35:1 on both.
INK = "#797979"
GRID = "rgba(128,128,128,0.25)"
LETTER = 6.5  # mean width of a letter in sans-serif fonts at 12 px, in pixels
LINE = 15  # pixels from one line of text to the next
_RGBA = re.compile(r"rgba\(([\d.]+),\s*([\d.]+),\s*([\d.]+),\s*([\d.]+)\)")
_MARK = re.compile(r'(<br>|</?b>|<span style="color:#[0-9a-fA-F]{3,8}">|</span>)')


def tag(name: str, *inside: str, **attributes: Any) -> str:
    """Return an XML element with the given content and attributes.

    An attribute that is None is left out, and the alpha of an rgba colour becomes an opacity.

    Examples
    --------
    >>> tag("text", svg_text("a < b"), x=1.25, font_weight=None, fill="rgba(0,0,0,0.5)")
    '<text x="1.2" fill="rgb(0,0,0)" fill-opacity="0.5">a &lt; b</text>'
    """
    written: Spec = {}
    for key, value in attributes.items():
        if isinstance(value, str) and (colour := _RGBA.fullmatch(value)):
            written[key] = f"rgb({','.join(colour.groups()[:3])})"
            written[f"{key}_opacity"] = colour[4]
        elif isinstance(value, int | float):
            written[key] = number(value)
        else:
            written[key] = value
    return xml_element(name, *map(Markup, inside), **written)


def number(value: float) -> str:
    """Format a number of pixels with at most one decimal.

    >>> number(12.04), number(3), number(-0.01)
    ('12', '3', '0')
    """
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def svg_text(words: str) -> str:
    """Escape a text for use between tags."""
    return html_written(safe(words))


def svg_label(words: str, x: float, y: float, anchor: str | None = None, **attributes: Any) -> str:
    """Convert a figure's text with <b>, <br> and coloured <span> to SVG.

    If no fill is given, the text has the picture's own colour.

    Examples
    --------
    >>> svg_label("<b>&lt;i&gt;</b> 3<br>more", 5, 10, "end")
    '<text x="5" y="10" text-anchor="end"><tspan font-weight="600">&lt;i&gt;</tspan> 3<tspan x="5" dy="15">more</tspan></text>'
    """  # noqa: E501
    inside = []
    weight = colour = None
    place: Spec = {}
    for piece in _MARK.split(words):
        if piece in ("<b>", "</b>"):
            weight = 600 if piece == "<b>" else None
        elif piece == "<br>":
            place = {"x": x, "dy": LINE}
        elif piece.startswith('<span style="color:') or piece == "</span>":
            colour = piece.partition(":")[2].rstrip('">') or None
        elif piece:
            shown = svg_text(unescape(piece))
            if place or weight or colour:
                shown = tag("tspan", shown, **place, font_weight=weight, fill=colour)
            inside.append(shown)
            place = {}
    return tag("text", *(inside or [""]), x=x, y=y, text_anchor=anchor, **attributes)


def plain_text(words: str) -> str:
    """Return a text on one line, without markup.

    >>> plain_text("<b>a &lt; b</b><br>3")
    'a < b 3'
    """
    return unescape(_MARK.sub(lambda mark: " " if mark[0] == "<br>" else "", words))


def width_of(words: str) -> float:
    """Estimate the width of a text in pixels.

    The font size is 12 pixels, and the widest line counts. Chinese, Japanese and Korean characters are twice as wide as
    other characters.

    >>> width_of("tokens"), width_of("<b>\u5305\u88f9</b>")
    (39.0, 26.0)
    """
    lines = [plain_text(line) for line in words.split("<br>")]
    return LETTER * max(
        sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in line) for line in lines
    )


NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
_PATIENCE = 60  # seconds
_ALONE = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=2",
)


def save_svg(path: str | os.PathLike[str], drawn: str) -> None:
    """Save an SVG as an SVG or PNG file.

    The ending of the path determines the format.
    """
    kind = Path(path).suffix.lower()
    if kind not in (".svg", ".png"):
        raise ValueError(
            f"Cannot save a figure as {one_line(str(path))}. Use a name that ends in .svg or .png."
        )
    write_whole(path, png(drawn) if kind == ".png" else drawn.encode())


def chromium() -> str:
    """Return the path of Chromium, from BUDGETKIT_CHROMIUM or the search path."""
    named = os.environ.get("BUDGETKIT_CHROMIUM")
    program = named or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise FileNotFoundError(
            "A PNG needs Chromium, which was not found. Save the figure as .svg, install Chromium, or set "
            "BUDGETKIT_CHROMIUM to its path."
        )
    return program


def png(drawn: str) -> bytes:
    """Render an SVG with Chromium as a PNG of double size."""
    program = chromium()
    size = re.search(r'width="(\d+)" height="(\d+)"', drawn)
    assert size is not None, "an SVG of budgetkit.lab.figures has a size"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder, "figure.html")
        picture = Path(folder, "figure.png")
        body = element("body", Markup(drawn), style="margin:0")
        page.write_text(f"{DOCTYPE}{element('meta', charset='utf-8')}{body}", encoding="utf-8")
        options = [*_ALONE, f"--user-data-dir={folder}/profile", f"--screenshot={picture}"]
        options.append(f"--window-size={size[1]},{size[2]}")
        if getattr(os, "geteuid", lambda: 1)() == 0:  # otherwise it does not start as root
            options.append("--no-sandbox")
        done = subprocess.run(
            [program, *options, page.as_uri()], capture_output=True, timeout=_PATIENCE
        )
        if not picture.exists():
            last_line = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise OSError(
                f"{one_line(program)} could not draw the picture ({one_line(' '.join(last_line))}). Save it as .svg."
            )
        return picture.read_bytes()


_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_FORM = re.compile(r"(\+?)(,?)\.(\d+)(~?)([fr%])")
ROOM = 0.05  # margin on either side of an axis without its own range, as a share
_ROUND = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: a mapping from values or names to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    names: tuple[str, ...] = ()

    def at(self, value: Any) -> float:
        """Return the position of a value or name in pixels.

        Examples
        --------
        >>> Scale(0, 10, 100, 200).at(5), Scale(0, 2, 0, 100, log=True).at(10)
        (150.0, 50.0)
        """
        if isinstance(value, str):
            value = self.names.index(value)
        return self.placed(math.log10(max(value, 1e-9)) if self.log else value)

    def placed(self, number: float) -> float:
        """Return the position of a number in pixels.

        On a logarithmic axis, the number is an exponent of ten.
        """
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)


def scale_of(
    axis: Spec,
    values: Iterable[Any],
    start: float,
    end: float,
    from_zero: bool = False,
    room: float = ROOM,
) -> Scale:
    """Return the scale of an axis, from its range or its values.

    If the axis has no range, the scale covers all values. Names stand one unit apart.
    """
    known = [value for value in values if value is not None]
    names = tuple(dict.fromkeys(value for value in known if isinstance(value, str)))
    is_log = axis.get("type") == "log"
    if names:
        low = -0.5
        high = len(names) - 0.5
    elif "range" in axis:
        low, high = axis["range"]
    else:
        numbers = [math.log10(max(value, 1e-9)) if is_log else float(value) for value in known]
        numbers = numbers or [0.0, 1.0]
        low = min(numbers)
        high = max(numbers)
        around = room * ((high - low) or 1)
        at_zero = from_zero or axis.get("rangemode") == "tozero"
        low = min(0.0, low) if at_zero else low - around
        high += around
    if axis.get("autorange") == "reversed":
        low, high = high, low
    return Scale(low, high if high != low else low + 1, start, end, is_log, names)


def ticks(axis: Spec, scale: Scale) -> list[tuple[float, str]]:
    """Return the positions in pixels and the labels of an axis's ticks."""
    if not axis.get("visible", True):
        return []
    low, high = sorted((scale.low, scale.high))
    positions: Iterable[tuple[float, str]]
    if scale.names:
        positions = enumerate(scale.names)
    elif "tickvals" in axis:
        numbers = [math.log10(value) if scale.log else value for value in axis["tickvals"]]
        texts = axis.get("ticktext") or [tick_text(value, axis) for value in axis["tickvals"]]
        positions = zip(numbers, texts, strict=True)
    elif scale.log:
        positions = [(n, tick_text(10**n, axis)) for n in range(math.ceil(low), 20)]
    else:
        # Round numbers, a few of them.
        if (step := axis.get("dtick")) is None:
            most = min(axis.get("nticks", 6), abs(scale.end - scale.start) / 28)
            wanted = (high - low) / max(1, most)
            power = 10.0 ** math.floor(math.log10(wanted))
            step = next(factor * power for factor in _ROUND if factor * power >= wanted * 0.999)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        values = (round(step * n, 10) for n in range(first, last + 1))
        positions = [(value, tick_text(value, axis)) for value in values]
    room = 1e-9 * (high - low)
    return [(scale.placed(at), text) for at, text in positions if low - room <= at <= high + room]


def tick_text(value: float, axis: Spec) -> str:
    r"""Format a number with one of the d3 formats that figures use.

    Examples
    --------
    >>> tick_text(12_500, {"tickformat": "~s"}), tick_text(0.25, {"tickformat": ".0%"})
    ('12.5k', '25%')
    >>> tick_text(-3, {"ticksuffix": " %"})
    '\u22123 %'
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
