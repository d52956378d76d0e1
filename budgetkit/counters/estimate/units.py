"""Texts as rows of UTF-16 units, in the form that an estimate's windows need.

For an ASCII text a unit takes one byte, for any other text two. A row begins with `windows.BEFORE` units of context;
after them comes a whole number of windows. Units that are not text are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from budgetkit.counters.estimate.windows import BEFORE, WINDOW

__all__ = [
    "STRETCH",
    "Places",
    "Row",
    "has_surrogates",
    "laid_out",
    "stretches",
    "unit_ends",
    "units_before",
]

#: Characters looked up at once: enough for numpy, not too many for the cache.
STRETCH: Final = 2**18

_PIECE: Final = 2**12

Row = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
Places = npt.NDArray[np.intp]

_GAPS = tuple(bytes(number) for number in range(2 * (BEFORE + WINDOW)))
_ASCII_GAPS = tuple("\0" * number for number in range(BEFORE + WINDOW))


def stretches(text: str) -> Iterator[Row]:
    """Cut a text into rows.

    Examples
    --------
    >>> [row.tolist() for row in stretches("Hello")]
    [[0, 0, 0, 0, 0, 0, 0, 0, 72, 101, 108, 108, 111, 0, 0, 0]]
    """
    if len(text) < STRETCH:
        yield _short(text)
        return
    before: Row = np.zeros(BEFORE, np.uint8)
    for start in range(0, max(len(text), 1), STRETCH):
        row = np.concatenate([before, _units(text[start : start + STRETCH])])
        if start + STRETCH >= len(text):
            row = np.pad(row, (0, -len(row) % WINDOW))
        end = len(row) - len(row) % WINDOW
        yield row[:end]
        before = row[end - BEFORE :]


def laid_out(texts: Sequence[str]) -> tuple[Row, Places, Places]:
    """Put texts end to end in one row, each after a context of its own.

    Examples
    --------
    >>> row, first, number = laid_out(["Hello", "", "you"])
    >>> len(row), first.tolist(), number.tolist()
    (44, [0, 4, 6], [2, 0, 1])
    """
    if all(map(str.isascii, texts)):
        sizes = np.fromiter(map(len, texts), np.intp, len(texts))
        gaps = map(_ASCII_GAPS.__getitem__, (BEFORE + -sizes % WINDOW).tolist())
        joined = "".join(chain(_ASCII_GAPS[BEFORE], *zip(texts, gaps, strict=True)))
        row: Row = np.frombuffer(joined.encode("ascii"), np.uint8)
    else:
        data = [text.encode("utf-16-le", "surrogatepass") for text in texts]
        sizes = np.fromiter(map(len, data), np.intp, len(data)) // 2
        fills = map(_GAPS.__getitem__, (2 * (BEFORE + -sizes % WINDOW)).tolist())
        row = np.frombuffer(
            b"".join([_GAPS[2 * BEFORE], *chain(*zip(data, fills, strict=True))]), np.uint16
        )
    number = -(-sizes // WINDOW)
    return row, np.cumsum(number + BEFORE // WINDOW) - number - BEFORE // WINDOW, number


def has_surrogates(row: Row) -> bool:
    """Tell whether a row may have characters of two units; otherwise units are as many as characters."""
    return row.dtype == np.uint16 and bool((row >> np.uint16(11) == 0xD800 >> 11).any())


def units_before(text: str, places: Places) -> Places:
    """Give the number of units before some characters.

    Examples
    --------
    >>> units_before("a🎉b", np.array([0, 1, 2, 3])).tolist()
    [0, 1, 3, 4]
    """
    if text.isascii():
        return places
    units = _units(text)
    high = np.flatnonzero((units & np.uint16(0xFC00)) == 0xD800)
    if len(text) + len(high) != len(units):  # some surrogates are alone
        return unit_ends(text)[places]
    return places + np.searchsorted(high - np.arange(len(high)), places)


def unit_ends(text: str) -> Places:
    """Give the number of units before each character and after the last."""
    if text.isascii():
        return np.arange(len(text) + 1)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    return np.concatenate([[0], np.cumsum(1 + (points > 0xFFFF))])


def _short(text: str) -> Row:
    if text.isascii():
        return np.frombuffer(
            _GAPS[BEFORE] + text.encode("ascii") + _GAPS[-len(text) % WINDOW], np.uint8
        )
    units = _units(text)
    return np.frombuffer(
        _GAPS[2 * BEFORE] + units.tobytes() + _GAPS[2 * (-len(units) % WINDOW)], np.uint16
    )


def _units(text: str) -> Row:
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    # Python keeps a text as wide as its widest character; a piece without it is encoded several times faster.
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    return np.frombuffer(
        b"".join([piece.encode("utf-16-le", "surrogatepass") for piece in pieces]), np.uint16
    )
