"""Pieces of SVG: elements, numbers, colours and the few marks of text that the figures use.

What comes from outside is only ever put between tags or in quotes here, escaped, and without characters that no XML
may hold.
"""

from __future__ import annotations

import re
import unicodedata
from html import unescape
from typing import Any, Final

from budgetkit.budget.html import Markup, safe, xml_element
from budgetkit.budget.html import written as html_written

# No single grey reaches 4.5:1 on white and on JupyterLab's dark ground; this one has at least 4.35:1 on both.
INK = "#797979"
GRID = "rgba(128,128,128,0.25)"
LETTER: Final = 6.5  # pixels of one at 12 px, of fonts without serifs on average
LINE: Final = 15  # pixels from one line of text to the next
_RGBA: Final = re.compile(r"rgba\(([\d.]+),\s*([\d.]+),\s*([\d.]+),\s*([\d.]+)\)")
_MARK: Final = re.compile(r'(<br>|</?b>|<span style="color:#[0-9a-fA-F]{3,8}">|</span>)')


def tag(name: str, *inside: str, **attributes: Any) -> str:
    """Return an element; what is inside is markup already, attributes are any values.

    Examples
    --------
    >>> tag("text", text("a < b"), x=1.25, font_weight=None, fill="rgba(0,0,0,0.5)")
    '<text x="1.2" fill="rgb(0,0,0)" fill-opacity="0.5">a &lt; b</text>'
    """
    written: dict[str, Any] = {}
    for key, value in attributes.items():
        if isinstance(value, str) and key in ("fill", "stroke"):
            colour = _RGBA.fullmatch(value)
        else:
            colour = None
        if colour is not None:
            written[key] = f"rgb({','.join(colour.groups()[:3])})"
            written[f"{key}_opacity"] = colour[4]
        elif isinstance(value, int | float):
            written[key] = number(value)
        else:
            written[key] = value
    return xml_element(name, *map(Markup, inside), **written)


def number(value: float) -> str:
    """Write a number of pixels in few characters.

    >>> number(12.04), number(3), number(-0.01)
    ('12', '3', '0')
    """
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def text(words: str) -> str:
    """Return a text as it stands between tags."""
    return html_written(safe(words))


def label(words: str, x: float, y: float, anchor: str = "start", **attributes: Any) -> str:
    """Return a text of the figures, whose marks are <b>, <br>, coloured <span> and character references.

    Examples
    --------
    >>> label("<b>&lt;i&gt;</b> 3<br>more", 5, 10, font_size=12)
    '<text x="5" y="10" text-anchor="start" class="ink" fill="#797979" font-size="12"><tspan font-weight="600">&lt;i&gt;</tspan><tspan> 3</tspan><tspan x="5" dy="15">more</tspan></text>'
    """  # noqa: E501
    inside = []
    is_bold = False
    colour = None
    is_new = False
    for piece in _MARK.split(words):
        if piece in ("<b>", "</b>"):
            is_bold = piece == "<b>"
        elif piece == "<br>":
            is_new = True
        elif piece.startswith('<span style="color:') or piece == "</span>":
            colour = piece.partition(":")[2].rstrip('">') or None
        elif piece:
            place: dict[str, Any] = {"x": x, "dy": LINE} if is_new else {}
            weight = {"font_weight": 600 if is_bold else None, "fill": colour}
            inside.append(tag("tspan", text(unescape(piece)), **place, **weight))
            is_new = False
    if "fill" in attributes:
        shown = {"class_": None, "fill": attributes.pop("fill")}
    else:
        shown = {"class_": "ink", "fill": INK}
    return tag("text", *(inside or [""]), x=x, y=y, text_anchor=anchor, **shown, **attributes)


def plain_text(words: str) -> str:
    """Return a text without its marks, as one line.

    >>> plain_text("<b>a &lt; b</b><br>3")
    'a < b 3'
    """
    return unescape(_MARK.sub(lambda mark: " " if mark[0] == "<br>" else "", words))


def width_of(words: str) -> float:
    """Estimate how wide a text is, in pixels at 12 px; letters of East Asian scripts are twice as wide.

    >>> width_of("tokens"), width_of("<b>\u5305\u88f9</b>")
    (39.0, 26.0)
    """
    lines = [plain_text(line) for line in words.split("<br>")]
    return LETTER * max(
        sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in line) for line in lines
    )
