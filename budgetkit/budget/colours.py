"""One fixed colour a section, in every figure and in the explorer.

The eight colours are those of Okabe and Ito (2008, "Color Universal Design"), told apart by people with any
common colour blindness. Vermillion is kept for what does not fit, yellow for no line on white. Names that are
not listed take one of Tol's "muted" colours (Paul Tol, "Colour schemes", 2021) by a checksum of the name, so
the same name has the same colour in every session.
"""

from __future__ import annotations

import zlib

BLUE, ORANGE, GREEN, SKY = "#0072B2", "#E69F00", "#009E73", "#56B4E9"
PURPLE, YELLOW, VERMILLION = "#CC79A7", "#F0E442", "#D55E00"
WINE, OLIVE = "#882255", "#999933"  # Tol's
SLATE, GREY, PALE = "#5b6770", "#8b8b8b", "#b9c0c9"

POOL, WINDOW = "shared pool", "window"
HATCHED = frozenset({"safety"})
ALARM = VERMILLION
BLACK, WHITE = "#111111", "#ffffff"

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
    known = _KNOWN.get(name)
    return known if known else _OTHERS[zlib.crc32(name.encode("utf-8", "surrogatepass")) % len(_OTHERS)]
