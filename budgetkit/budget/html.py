"""HTML and SVG elements, with all text escaped.

All HTML is built with :func:`element` (``tests/core/test_outlet.py`` checks that). That function escapes texts and
attributes, replaces lone surrogates, control characters and direction marks, and writes dollar signs as entities; a
:class:`Markup` is inserted unchanged. :func:`notebook_div` also keeps MathJax away from notebook output, so that a
section named ``$x$`` is shown as such.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
SKY = "#56B4E9"
PURPLE = "#CC79A7"
YELLOW = "#F0E442"
VERMILLION = "#D55E00"
# from Paul Tol's colour schemes
WINE = "#882255"
OLIVE = "#999933"
SLATE = "#5b6770"
GREY = "#8b8b8b"
PALE = "#b9c0c9"

POOL = "shared pool"
WINDOW = "window"
HATCHED = frozenset({"safety"})
ALARM = VERMILLION
BLACK = "#111111"
WHITE = "#ffffff"

_SECTIONS = {
    BLUE: ("system", "system_prompt", "directive"),
    ORANGE: ("procedure", "tool", "tools", "action_history"),
    GREEN: ("memory", "episodes", "working_memory"),
    SKY: ("knowledge", "retrieval", "documents", "rag_memories"),
    PURPLE: ("history", "conversation", "messages", "recent_events"),
    YELLOW: ("current", "user", "query", "current_message"),
    WINE: ("subscribed_artifacts",),
    GREY: ("output", "safety"),
    PALE: (POOL,),
    SLATE: (WINDOW,),
}
_KNOWN = {name: colour for colour, names in _SECTIONS.items() for name in names}
_OTHERS = (
    *("#88CCEE", "#44AA99", OLIVE, "#DDCC77", "#CC6677", WINE),
    *("#AA4499", "#117733", "#8F86D6", "#A67B5B", "#4477AA", "#B8860B"),
)


def colour(name: str) -> str:
    """Return the colour of a section, reserve, pool or window.

    Parameters
    ----------
    name : str
        Name of a section or a reserve, "shared pool" or "window".

    Returns
    -------
    str
        A colour such as ``"#CC79A7"``, always the same for the same name.

    Examples
    --------
    >>> colour("history"), colour("history") == colour("conversation")
    ('#CC79A7', True)
    >>> colour("my own section")
    '#117733'
    """
    fixed = _KNOWN.get(name)
    if fixed:
        return fixed
    return _OTHERS[zlib.crc32(name.encode("utf-8", "surrogatepass")) % len(_OTHERS)]


def ink(background: str) -> str:
    """Return black or white, whichever is more legible on a colour.

    Examples
    --------
    >>> ink("#0072B2"), ink("#CC79A7")
    ('#ffffff', '#111111')
    """
    ground = luminance(background) + 0.05
    white = 1.05 / ground
    black = ground / (luminance(BLACK) + 0.05)
    return WHITE if white > black else BLACK


def translucent(colour: str, opacity: float) -> str:
    """Return a CSS colour with the given opacity.

    Examples
    --------
    >>> translucent("#CC79A7", .25)
    'rgba(204,121,167,0.25)'
    """
    return f"rgba({','.join(str(value) for value in _channels(colour))},{opacity})"


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2).

    Examples
    --------
    >>> luminance("#ffffff"), round(luminance("#0072B2"), 3)
    (1.0, 0.152)
    """
    linear = [_linear(value / 255) for value in _channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _linear(value: float) -> float:
    if value <= 0.04045:
        return value / 12.92
    return float(((value + 0.055) / 1.055) ** 2.4)


_LONGEST: Final = 600  # characters shown of one text
#: Code points that XML 1.0 cannot contain (control characters, surrogates, and two noncharacters), further control
#: characters, and the marks that reverse or isolate the text around them.
_FORBIDDEN: Final = re.compile(
    "[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)
#: The start of a complete page.
DOCTYPE: Final = "<!doctype html>"
_VOID: Final = {"br", "meta"}  # HTML elements without content
_CELL_STYLE: Final = (
    "padding:1px 12px 1px 0;white-space:pre-wrap;overflow-wrap:anywhere;text-align:"
)


class Markup(str):
    """HTML or SVG that is already escaped."""

    __slots__ = ()


NOTHING: Final = Markup()


def safe(text: object) -> str:
    r"""Replace control characters, direction marks and invalid XML characters with U+FFFD.

    Examples
    --------
    >>> safe("a\x00b\ud83dc") == "a\ufffdb\ufffdc"
    True
    """
    return _FORBIDDEN.sub("\ufffd", str(text))


def markup_of(text: object) -> Markup:
    r"""Escape a text for HTML.

    Examples
    --------
    >>> markup_of("<b>$x$</b>")
    '&lt;b&gt;&#36;x&#36;&lt;/b&gt;'
    """
    if isinstance(text, Markup):
        return text
    # Lone surrogates are shown as Python escapes.
    whole = safe(str(text).encode("utf-8", "backslashreplace").decode())
    return Markup(escape(whole, quote=False).replace("$", "&#36;"))


def shortened_markup(text: object) -> Markup:
    """Escape a text for HTML, shortening it if it is long.

    Examples
    --------
    >>> len(shortened_markup("a" * 10_000))
    601
    """
    return markup_of(short_text(text))


def short_text(text: object) -> str:
    """Shorten a long text for display."""
    whole = str(text)
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[:_LONGEST]}…"


def element(name: str, /, *inside: object, **attributes: object) -> Markup:
    """Return an HTML element with escaped content.

    Parameters
    ----------
    name : str
        Tag of the element.
    *inside : str or Markup
        Content of the element; texts are escaped.
    **attributes
        Attributes by name, with "_" for "-" and a trailing "_" for Python keywords, as in ``class_``. An attribute that
        is None is omitted.

    Returns
    -------
    Markup
        The escaped element.

    Examples
    --------
    >>> element("p", "1 < 2", element("b", "$x$"), class_="bk-note", title='"')
    '<p class="bk-note" title="&quot;">1 &lt; 2<b>&#36;x&#36;</b></p>'
    """
    opening = f"<{_opened(name, attributes)}>"
    return Markup(opening if name in _VOID else f"{opening}{joined(inside)}</{name}>")


def xml_element(name: str, /, *inside: object, **attributes: object) -> Markup:
    """Return an SVG element, self-closing if it has no content.

    The arguments are those of :func:`element`.

    Examples
    --------
    >>> xml_element("rect", x=3), xml_element("text", "a < b", font_size=12)
    ('<rect x="3"/>', '<text font-size="12">a &lt; b</text>')
    """
    opened = _opened(name, attributes)
    return Markup(f"<{opened}>{joined(inside)}</{name}>" if inside else f"<{opened}/>")


def _opened(name: str, attributes: Mapping[str, object]) -> str:
    """Return the opening tag's name and escaped attributes."""
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            quoted = markup_of(value).replace('"', "&quot;")
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{quoted}"')
    return " ".join(parts)


def joined(parts: Iterable[object]) -> Markup:
    """Join pieces of HTML, escaping plain text.

    Examples
    --------
    >>> joined([element("b", "a"), " & b"])
    '<b>a</b> &amp; b'
    """
    return Markup("".join(markup_of(part) for part in parts))


def notebook_div(*inside: object, **attributes: Any) -> str:
    """Return a div for notebook output that MathJax ignores.

    The result is a plain ``str``, because marimo shows an error for a subclass.

    Examples
    --------
    >>> notebook_div("It fits.", class_="bk-still")
    '<div class="tex2jax_ignore mathjax_ignore bk-still">It fits.</div>'
    """
    classes = ["tex2jax_ignore", "mathjax_ignore", *str(attributes.pop("class_", "")).split()]
    return str(element("div", *inside, class_=" ".join(classes), **attributes))


def block(
    title: str,
    parts: Iterable[tuple[str, int]],
    rows: Sequence[Sequence[object]],
    notes: Iterable[str],
) -> str:
    """Return HTML with a title, a bar, a table and notes.

    The bar shows `parts`, pairs of a name and its tokens; the first of the rows is the table's header.

    Examples
    --------
    >>> block("Plan", [("system", 3)], [("section", "tokens"), ("system", 3)], []).count("system")
    2
    """
    sentences = [element("div", shortened_markup(note), style="margin-top:4px") for note in notes]
    return notebook_div(
        element("div", element("b", shortened_markup(title))),
        _bar(parts),
        html_table(rows, style="border-collapse:collapse"),
        *sentences,
        style="max-width:46em",
    )


def html_table(rows: Sequence[Sequence[object]], **attributes: object) -> Markup:
    """Return an HTML table with a header row and right-aligned integers.

    Examples
    --------
    >>> html_table([("section", "tokens"), ("system", 3_000)]).count("<tr>")
    2
    """
    heading, *others = rows or [()]
    lines = [_row(heading, "th"), *(_row(row, "td") for row in others)]
    return element("table", *lines, **attributes)


def _row(cells: Sequence[object], name: str) -> Markup:
    shown_cells = []
    for cell in cells:
        if type(cell) is int:
            shown_cells.append(element(name, f"{cell:,}", style=f"{_CELL_STYLE}right"))
        else:
            shown_cells.append(element(name, shortened_markup(cell), style=f"{_CELL_STYLE}left"))
    return element("tr", *shown_cells)


def _bar(parts: Iterable[tuple[str, int]]) -> Markup:
    """Draw the parts above 0 tokens as a stacked bar."""
    segments = [
        element(
            "div",
            title=f"{short_text(name)}: {tokens:,}",
            style=f"flex:{tokens} 0 0;background:{colour(name)}",
        )
        for name, tokens in parts
        if tokens > 0
    ]
    if not segments:
        return NOTHING
    return element(
        "div", *segments, style="display:flex;height:14px;margin:4px 0;border:1px solid #8b8b8b"
    )
