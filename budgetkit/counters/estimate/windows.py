"""Windows of a text: the keys by which an estimate looks up a text, four UTF-16 units at a time.

A text is a row of 16-bit units; each has one of 256 classes (an ASCII character is its own class, the rest share
128). Two units make a *pair*, two pairs a *window*, seen with the two units before it::

    pair    of each pair: the classes of its units
    raw     of each pair: the units themselves, where one is not ASCII
    shape   of each window: the kinds of its units and of the two before: small, capital, digit or mark
    own     of each window: the classes of its units
    long    of each window: these and the two before; where one is not ASCII, the window's units themselves

Each of these has its own table. All keys but those of pair and shape are hashed, and a hashed table knows which keys it
has. No window looks ahead. So the estimate of a text's beginning does not change when the text goes on, and every
beginning's estimate is a part of one running sum. Training and counting use this same code, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["BEFORE", "LEVELS", "PLAIN", "RUN", "WINDOW", "Places", "Which", "Windows", "windows"]

Bytes = npt.NDArray[np.uint8]
Units = npt.NDArray[np.uint16]
Keys = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]
Which = Places | slice

#: Units in a window.
WINDOW: Final = 4
#: Units before the first window of a text, all of them zero.
BEFORE: Final = 8
#: So many equal windows in a row are a run: twelve times one character, or six times two.
RUN: Final = BEFORE // WINDOW + 1
#: The tables and their sizes, each a power of two, in the order in which they learn.
LEVELS: Final = {"pair": 2**16, "shape": 2**16, "own": 2**18, "raw": 2**15, "long": 2**18}
#: Levels that are plain lists; the others are hashed and know their keys.
PLAIN: Final = ("pair", "shape")

_FIRST = BEFORE // WINDOW  # the first window that is not context
_ALL = slice(None)
_FEW = 8  # a text of which less than this part is not ASCII is looked up as ASCII, and the rest by itself
_MANY = 4_096  # so many flags are looked at eight at once
# Odd multipliers that spread keys over a table: near 2**32 by the golden ratio (Knuth), of xxHash, 2**16 by that ratio.
_ODD = (np.uint32(2_654_435_761), np.uint32(2_246_822_519), np.uint32(40_503))
_KINDS = np.uint32(0xF0F0F0F0)  # of an ASCII character: blank or mark, digit, capital, small; of a class: its script
_LOW, _PAIR, _NIBBLE = np.uint32(0xFFFF), np.uint32(16), np.uint32(4)
_NOT_ASCII, _UPPER_HALF = np.uint32(0xFF80FF80), np.uint32(2**31)


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one stretch of text, without its context."""

    classes: Bytes
    units: Units | None
    wide: Which

    def plain(self) -> Iterator[tuple[str, Keys]]:
        """Yield the name of each plain level and the places of the windows in it; a level of pairs comes twice."""
        found = self.classes.view(np.uint32)
        yield "pair", found[_FIRST:] & _LOW
        yield "pair", found[_FIRST:] >> _PAIR
        kinds = found & _KINDS
        shape = kinds[_FIRST:] >> _NIBBLE
        kinds >>= _PAIR
        shape |= kinds[_FIRST:]
        shape += (kinds[_FIRST - 1 : -1] >> _NIBBLE) * _ODD[2]
        shape &= _LOW
        yield "shape", shape

    def hashed(self) -> Iterator[tuple[str, Which, Keys]]:
        """Yield the hashed levels' names, the windows that they speak of, and their keys: 32 bits, the first mixed."""
        found = self.classes.view(np.uint32)
        own = found[_FIRST:] * _ODD[0]
        yield "own", _ALL, own
        long = found[_FIRST - 1 : -1] >> _PAIR
        long *= _ODD[1]
        long += own
        long >>= np.uint32(1)  # the upper half of the level is for what is not ASCII
        if self.units is not None:
            yield from self._raw(self.units.view(np.uint32)[BEFORE // 2 :], long)
        yield "long", _ALL, long

    def _raw(self, pairs: Keys, long: Keys) -> Iterator[tuple[str, Which, Keys]]:
        """Key 0 is nobody's, so that pairs of ASCII alone learn and take nothing here."""
        first, second = pairs[0::2][self.wide], pairs[1::2][self.wide]
        either = _is_wide(first | second)
        keys = [_folded(pair) * _ODD[0] for pair in (first, second)]
        for pair, key in zip((first, second), keys, strict=True):
            yield "raw", self.wide, key * _is_wide(pair)
        key = keys[0] * _ODD[1]
        key += keys[1]
        key |= _UPPER_HALF
        long[self.wide] = np.where(either, key, long[self.wide])

    def runs(self) -> Places:
        """Find the windows that end `RUN` equal ones of two equal pairs."""
        row = self.classes.view(np.uint32) if self.units is None else self.units.view(np.uint64)
        same = row[1:] == row[:-1]
        at = _places(same[RUN - 2 :] & same[RUN - 3 : -1])
        if not len(at):
            return at
        pairs = self.classes.view(np.uint16) if self.units is None else self.units.view(np.uint32)
        first = (at + _FIRST) * 2
        return np.compress(pairs.take(first) == pairs.take(first + 1), at)

    def ends(self, at: Places) -> tuple[Units, Units]:
        """Give the two units that some windows begin with."""
        source = self.classes if self.units is None else self.units
        first = at * WINDOW + BEFORE
        return source.take(first).astype(np.uint16), source.take(first + 1).astype(np.uint16)


def windows(units: Bytes | Units, classes: Bytes) -> Windows:
    """Make the windows of a stretch of units."""
    if units.dtype == np.uint8:
        return Windows(units.view(np.uint8), None, _ALL)
    row = np.ascontiguousarray(units.view(np.uint16))
    not_ascii = row > 127
    many = np.count_nonzero(not_ascii)
    if many > len(row) // _FEW:
        return Windows(classes.take(row, mode="wrap"), row, _ALL)
    known = row.astype(np.uint8)
    if not many:
        return Windows(known, None, _ALL)
    few = _places(not_ascii)
    known[few] = classes.take(row.take(few))
    return Windows(known, row, _places(not_ascii.view(np.uint32)[_FIRST:] > 0))


def _is_wide(pairs: Keys) -> npt.NDArray[np.bool_]:
    wide: npt.NDArray[np.bool_] = (pairs & _NOT_ASCII) != 0
    return wide


def _folded(pairs: Keys) -> Keys:
    """Let the second unit reach the lowest bits, else a key's check would say nothing of it."""
    folded: Keys = pairs >> np.uint32(11)
    folded ^= pairs
    return folded


def _places(flags: npt.NDArray[np.bool_]) -> Places:
    """Find what is true as np.flatnonzero does, which is slower where many are not: this looks at eight at once."""
    if len(flags) < _MANY:
        return np.flatnonzero(flags)
    whole = len(flags) // 8 * 8
    eights = np.flatnonzero(flags[:whole].view(np.uint64) != 0)
    some = np.flatnonzero(flags[:whole].reshape(-1, 8).take(eights, axis=0).reshape(-1))
    return np.concatenate([8 * eights.take(some >> 3) + (some & 7), whole + np.flatnonzero(flags[whole:])])
