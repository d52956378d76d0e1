"""Windows of a text: what an estimate looks up, two UTF-16 units at a time.

A text is a row of 16-bit units, each unit has one of 256 classes (an ASCII character is its own class, the rest
share 128), and a *window* is two new units seen with up to four before them::

    pair    the classes of the two units
    shape   the kinds of the last six units: small, capital, digit or mark
    quad    the classes of the two units and the two before
    six     the classes of the two units and the four before
    raw     the units themselves, of the pair and of the quad, where one of them is not ASCII

Each has its own table; keys but those of pair and shape are hashed, and a hashed table knows the keys that it holds.
No window looks ahead, so what is known of a text stays true when the text goes on: that is what makes every prefix's
estimate a partial sum. Training and counting share this code, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["CONTEXT", "LEVELS", "PLAIN", "RUN", "Windows", "encoded", "windows"]

Bytes = npt.NDArray[np.uint8]
Units = npt.NDArray[np.uint16]
Keys = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]

#: Windows before the first one of a text, all of them zero; the run that is recognised is one longer.
CONTEXT: Final = 4
#: So many equal windows in a row are a run: ten times one character, or five times two.
RUN: Final = CONTEXT + 1
#: The tables and their sizes, each a power of two.
LEVELS: Final = {"pair": 2**16, "shape": 2**16, "quad": 2**17, "six": 2**17, "raw_pair": 2**15, "raw_quad": 2**17}
#: Levels that are plain lists; the others are hashed and know their keys.
PLAIN: Final = ("pair", "shape")

_ODD = tuple(np.uint32(odd) for odd in (2_654_435_761, 2_246_822_519, 3_266_489_917, 668_265_263, 374_761_393))
_KINDS = np.uint16(0xF0F0)  # of an ASCII character: blank or mark, digit, capital, small; of a class: its script
_NOT_ASCII = np.uint32(0xFF80FF80)


def encoded(text: str) -> bytes:
    r"""Encode a text as its units, one byte each if it is ASCII, else two.

    Parameters
    ----------
    text : str
        Any string.

    Returns
    -------
    bytes
        ASCII, or UTF-16 in little-endian order with lone surrogates as they are.

    Examples
    --------
    >>> encoded("ab"), encoded("é")
    (b'ab', b'\xe9\x00')
    """
    return text.encode("ascii") if text.isascii() else text.encode("utf-16-le", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one stretch of text, without its context.

    Parameters
    ----------
    classes : ndarray of uint8
        Class of each unit; the first ``2 * CONTEXT`` are context.
    units : ndarray of uint16 or None
        The units themselves; None if all are ASCII.
    """

    classes: Bytes
    units: Units | None

    def hashed(self) -> Iterator[tuple[str, Keys]]:
        """Yield each hashed level's name and each window's key in it, 32 well mixed bits."""
        pairs = self.classes.view(np.uint16).astype(np.uint32)
        mixed = pairs[CONTEXT:] * _ODD[0]
        mixed += pairs[CONTEXT - 1 : -1] * _ODD[1]
        yield "quad", _stirred(mixed)
        mixed += pairs[CONTEXT - 2 : -2] * _ODD[2]
        yield "six", _stirred(mixed)
        if self.units is not None:
            yield from self._raw(self.units.view(np.uint32))

    @staticmethod
    def _raw(pairs: Keys) -> Iterator[tuple[str, Keys]]:
        """Key 0 is nobody's, so that windows of ASCII alone learn and take nothing here."""
        raw = (pairs & _NOT_ASCII) != 0
        mixed = pairs[CONTEXT:] * _ODD[0]
        yield "raw_pair", _stirred(mixed) * raw[CONTEXT:]
        mixed += pairs[CONTEXT - 1 : -1] * _ODD[1]
        yield "raw_quad", _stirred(mixed) * (raw[CONTEXT:] | raw[CONTEXT - 1 : -1])

    def plain(self, at: Places) -> Iterator[tuple[str, Places]]:
        """Yield each plain level's name and the place of some windows in its list.

        Parameters
        ----------
        at : ndarray of intp
            Which windows.
        """
        pairs = self.classes.view(np.uint16)
        now = pairs.take(at + CONTEXT)
        yield "pair", now.astype(np.intp)
        mixed = (now & _KINDS) * _ODD[0]
        for back in (1, 2):
            mixed += (pairs.take(at + (CONTEXT - back)) & _KINDS) * _ODD[back]
        yield "shape", (mixed >> np.uint32(16)).astype(np.intp)

    def runs(self) -> npt.NDArray[np.bool_] | None:
        """Find the windows that end `RUN` equal ones; None if there is none."""
        pairs = self.classes.view(np.uint16) if self.units is None else self.units.view(np.uint32)
        same = pairs[1:] == pairs[:-1]
        run: npt.NDArray[np.bool_] = same[CONTEXT - 1 :]
        for earlier in range(CONTEXT - 1):
            run = run & same[earlier : earlier - CONTEXT + 1]
        return run if run.any() else None

    def ends(self, at: Places) -> tuple[Units, Units]:
        """Give the two units of some windows."""
        source = self.classes if self.units is None else self.units
        first = 2 * (at + CONTEXT)
        return source.take(first).astype(np.uint16), source.take(first + 1).astype(np.uint16)


def windows(units: Bytes | Units, classes: Bytes) -> Windows:
    """Make the windows of a stretch of units.

    Parameters
    ----------
    units : ndarray of uint8 or uint16
        An even number; the first ``2 * CONTEXT`` are context.
    classes : ndarray of uint8, shape (65536,)
        Class of each unit; its own below 128.

    Returns
    -------
    Windows
        Half as many windows as there are units after the context.
    """
    if units.dtype == np.uint8:
        return Windows(units.view(np.uint8), None)
    wide = units.view(np.uint16)
    if int(wide.max(initial=0)) < 128:
        return Windows(wide.astype(np.uint8), None)
    return Windows(classes.take(wide), np.ascontiguousarray(wide))


def _stirred(mixed: Keys) -> Keys:
    """Let the upper bits of a product, the well mixed ones, reach the lower ones."""
    stirred: Keys = mixed >> np.uint32(15)
    stirred ^= mixed
    return stirred
