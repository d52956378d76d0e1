"""One fixed colour a section, in every figure and in the explorer.

The eight colours are those of Okabe and Ito (2008, "Color Universal Design"), told apart by people with any
common colour blindness. Vermillion is kept for what does not fit, yellow for no line on white. Names that are
not listed take one of Tol's "muted" colours (Paul Tol, "Colour schemes", 2021) by a checksum of the name, so
the same name has the same colour in every session.
"""

from __future__ import annotations

import zlib

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
SKY = "#56B4E9"
PURPLE = "#CC79A7"
YELLOW = "#F0E442"
VERMILLION = "#D55E00"
# Tol's
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
    """Return the colour of a section, a reserve, the shared pool or the window.

    Parameters
    ----------
    name : str
        Name of the line.

    Returns
    -------
    str
        ``"#rrggbb"``; the same for the same name always.

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
    """Return black or white, whichever is read more easily on a colour.

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
    """Return a colour that lets what lies behind it through.

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
