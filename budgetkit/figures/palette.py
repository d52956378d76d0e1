"""What figures do with colours: the ink that is read on one, and a colour that lets through what is behind it.

Which section has which colour is said in :mod:`budgetkit.budget.colours`, whose names stand here too.
"""

from __future__ import annotations

from budgetkit.budget.colours import (
    ALARM,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    HATCHED,
    OLIVE,
    ORANGE,
    PALE,
    POOL,
    PURPLE,
    SKY,
    SLATE,
    VERMILLION,
    WHITE,
    WINDOW,
    WINE,
    YELLOW,
    colour,
)

__all__ = [
    "ALARM",
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "HATCHED",
    "OLIVE",
    "ORANGE",
    "PALE",
    "POOL",
    "PURPLE",
    "SKY",
    "SLATE",
    "VERMILLION",
    "WHITE",
    "WINDOW",
    "WINE",
    "YELLOW",
    "colour",
    "ink",
    "luminance",
    "translucent",
]


def ink(background: str) -> str:
    """Return black or white, whichever is read more easily on a colour.

    Examples
    --------
    >>> ink("#0072B2"), ink("#CC79A7")
    ('#ffffff', '#111111')
    """
    ground = luminance(background) + 0.05
    white, black = 1.05 / ground, ground / (luminance(BLACK) + 0.05)
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
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
