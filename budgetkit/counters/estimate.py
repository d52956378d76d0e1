"""Estimates of an encoding's count from lookup tables, without tokenising the text.

    tokens of a text = sum of the weights of its windows

A text is a sequence of 16-bit units, each in one of 256 classes (each ASCII character has its own class; all others
share 128). Two units form a *pair*, and two pairs a *window*, which is looked up with the units before it::

    own     of each window: the classes of its units
    long    of each window: the classes of its units and of the two units before it; or, if one of its units is not
            ASCII, the units themselves
    raw     of each pair with a unit that is not ASCII: the units themselves
    pair    of each pair in a window that the table "own" lacks: the classes of its units
    shape   of each window that the table "own" lacks: the kinds (small, capital, digit) of its units and of the four
            units before it

Each kind of key has its own table of weights, learned from the token starts in texts of many kinds. The keys of the
first three tables are hashed, and a hashed table can tell whether it has a key. No window depends on later characters.
In a long run of one character, or of two alternating characters, the previous units carry no information, so such
windows have a weight measured for runs. Training and counting cannot disagree, because both use this code.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from budgetkit.budget.errors import unknown_name
from budgetkit.counters.protocol import CounterBase, check_text, check_texts
from budgetkit.files import data_files, read_bytes

Bytes = npt.NDArray[np.uint8]
Units = npt.NDArray[np.uint16]
Keys = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]
Which = Places | slice

#: Units in a window.
WINDOW: Final = 4
#: Units before the first window of a text, all zero.
BEFORE: Final = 8
#: Number of equal windows that form a run: one character twelve times, or two characters six times.
RUN: Final = BEFORE // WINDOW + 1
#: The tables in training order, with their sizes, which are powers of two; those of `HASHED` are equally large.
LEVELS: Final = {"pair": 2**16, "own": 2**19, "raw": 2**17, "long": 2**19, "shape": 2**16}
#: The hashed levels of every window.
HASHED: Final = ("own", "long")

_FIRST = BEFORE // WINDOW  # the first window that is not context
_ALL = slice(None)
_NONE = np.zeros(0, np.intp)
_FEW = 8  # with less than 1/8 of a text outside ASCII, only that part is looked up separately
# Odd multipliers that spread keys over a table: near 2**32 by the golden ratio (Knuth), and of xxHash.
_ODD = (np.uint32(2_654_435_761), np.uint32(2_246_822_519))
# Bits for the kind of an ASCII character (blank or mark, digit, capital, small) or for the script of another class.
_KINDS = np.uint32(0xF0F0F0F0)
_PAIR = np.uint32(16)
_NIBBLE = np.uint32(4)
_NOT_ASCII = np.uint32(0xFF80FF80)


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one stretch of text, with the preceding context."""

    pairs: Keys
    units: Units | None
    wide: Which

    def plain(self, at: Which) -> tuple[Units, Keys]:
        """Return the table positions of the windows' pairs and shapes.

        In the positions of the pairs, the first and the second pair of each window alternate.
        """
        pairs = self.pairs[_FIRST:][at]
        shape = pairs & _KINDS
        shape |= (self.pairs[_FIRST - 1 : -1][at] & _KINDS) >> _NIBBLE
        shape *= _ODD[0]
        shape >>= _PAIR
        return pairs.view(np.uint16), shape

    def keys(self) -> Keys:
        """Return the 32-bit keys of all windows, one row per hashed level."""
        pairs = self.pairs
        keys = np.empty((len(HASHED), len(pairs) - _FIRST), np.uint32)
        np.multiply(pairs[_FIRST:], _ODD[0], out=keys[0])
        before = pairs[_FIRST - 1 : -1] >> _PAIR
        before *= _ODD[1]
        np.add(keys[0], before, out=keys[1])
        if self.units is not None:
            first, second = self._wide_pairs()
            key = (_folded(first) * _ODD[0] + _folded(second)) * _ODD[1]
            keys[1][self.wide] = np.where(_is_wide(first | second), key, keys[1][self.wide])
        return keys

    def raw(self) -> Keys:
        """Return the keys of pairs in windows with non-ASCII units.

        The first row has the first pairs of the windows, and the second row has the second pairs.
        """
        pairs = np.stack(self._wide_pairs())
        return _folded(pairs) * _ODD[0] * _is_wide(pairs)

    def _wide_pairs(self) -> tuple[Keys, Keys]:
        pairs = cast(Units, self.units).view(np.uint32)[BEFORE // 2 :]
        return pairs[0::2][self.wide], pairs[1::2][self.wide]

    def runs(self) -> Places:
        """Find the windows inside a run of one or two characters.

        Such a window has two equal pairs and equals the `RUN` - 1 windows before it.
        """
        row = self.pairs if self.units is None else self.units.view(np.uint64)
        same = row[1:] == row[:-1]
        if b"\1\1" not in same.tobytes():
            return _NONE
        at = np.flatnonzero(same[RUN - 2 :] & same[RUN - 3 : -1])
        if self.units is None:
            pairs = self.pairs.view(np.uint16)
        else:
            pairs = self.units.view(np.uint32)
        first = (at + _FIRST) * 2
        return np.compress(pairs.take(first) == pairs.take(first + 1), at)

    def ends(self, at: Places) -> tuple[Units, Units]:
        """Return the first two units of the windows at given positions."""
        source = self.pairs.view(np.uint8) if self.units is None else self.units
        first = at * WINDOW + BEFORE
        return source.take(first).astype(np.uint16), source.take(first + 1).astype(np.uint16)


def windows(units: Bytes | Units, classes: Bytes) -> Windows:
    """Divide a stretch of units into windows."""
    if units.dtype == np.uint8:
        return Windows(units.view(np.uint32), None, _ALL)
    row = np.ascontiguousarray(units.view(np.uint16))
    not_ascii = row > 127
    many = np.count_nonzero(not_ascii)
    if many > len(row) // _FEW:
        return Windows(classes.take(row, mode="wrap").view(np.uint32), row, _ALL)
    row_of_classes = row.astype(np.uint8)
    if not many:
        return Windows(row_of_classes.view(np.uint32), None, _ALL)
    few = np.flatnonzero(not_ascii)
    row_of_classes[few] = classes.take(row.take(few))
    return Windows(
        row_of_classes.view(np.uint32), row, np.flatnonzero(not_ascii.view(np.uint32)[_FIRST:] > 0)
    )


def _is_wide(pairs: Keys) -> npt.NDArray[np.bool_]:
    wide: npt.NDArray[np.bool_] = (pairs & _NOT_ASCII) != 0
    return wide


def _folded(pairs: Keys) -> Keys:
    """Mix the second unit of each pair into the pair's lowest bits."""
    folded: Keys = pairs >> np.uint32(11)
    folded ^= pairs
    return folded


#: Table units per token.
SCALE: Final = 128
#: Mask for the lowest bits of a hashed entry, which tell its key from others in the same place.
CHECK: Final = np.int16(63)
#: Offset added to every value in a table, so that none is negative.
LEAST: Final = 512
#: Offset subtracted from a window's tokens in the stored level "own"; other levels store differences from "own".
MIDDLE: Final = 3 * SCALE
_FOLDER = "estimates"
_NOTHING = np.uint32(LEAST)

_BITS = np.uint32(26)
_KEY = np.uint32(32)
_CHECKED = np.uint32(0xFC000000)
_VALUE = np.uint32(0xFFFF)
_EMPTY = np.uint32(0x03FF0000)

Values = npt.NDArray[np.int16]
Entries = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Lookup tables for the weights of windows, in 128ths of a token."""

    classes: Bytes
    pairs: Values
    shapes: Values
    hashed: Entries
    raw: Entries
    runs: Values
    run_units: Values

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Weights:
        """Build the lookup tables from a stored file's arrays."""
        own = packed_entries(stored["level_own"], MIDDLE - LEAST)
        return cls(
            classes=stored["classes"],
            pairs=stored["level_pair"] - np.int16(LEAST),
            shapes=stored["level_shape"],
            hashed=np.stack([own, packed_entries(stored["level_long"])]),
            raw=packed_entries(stored["level_raw"])[np.newaxis],
            runs=stored["run_pairs"],
            run_units=stored["run_units"],
        )

    def values(self, units: Bytes | Units) -> Values:
        """Return the weight of each window in a row of units."""
        stretch = windows(units, self.classes)
        entry_pairs, missing = look_up_entries(self.hashed, stretch.keys())
        entry_pairs[0] += entry_pairs[1]
        total: Values = entry_pairs[0].astype(np.int16)
        at = missing[0].nonzero()[0]
        if len(at):
            total[at] += self._unknown(stretch, at)
        if stretch.units is not None:
            first, second = look_up_entries(self.raw, stretch.raw())[0].view(np.int32)
            total[stretch.wide] += (first + second - 2 * LEAST).astype(np.int16)
        at = stretch.runs()
        return self._with_runs(total, at, stretch) if len(at) else total

    def _unknown(self, stretch: Windows, at: Places) -> Values:
        """Return the weights of unknown windows from their shape and pairs."""
        pairs, shape = stretch.plain(at)
        both = self.pairs.take(pairs, mode="wrap")
        return self.shapes.take(shape, mode="wrap") + both[0::2] + both[1::2]

    def _with_runs(self, total: Values, at: Places, stretch: Windows) -> Values:
        """Set the weights of the windows inside a run."""
        first, second = stretch.ends(at)
        is_ascii = (first < 128) & (second < 128)
        cost = np.where(first == second, self.run_units[first], np.int16(-1))
        cost = np.where(is_ascii, self.runs[first & 127, second & 127], cost)
        total[at] = np.where(cost >= 0, 2 * cost, total[at])
        return total


def packed_entries(stored: Values, least: int = LEAST) -> Entries:
    """Pack a stored level for lookups.

    The upper bits of a packed entry are the check bits, and the lower 16 bits are the value plus `least`. A stored 0 is
    an empty entry.
    """
    value = ((stored >> 6).astype(np.int32) + least) & 0xFFFF
    filled = ((stored & CHECK).astype(np.uint32) << _BITS) | value.astype(np.uint32)
    return np.where(stored == 0, _EMPTY, filled)


def look_up_entries(levels: Entries, keys: Keys) -> tuple[Entries, npt.NDArray[np.bool_]]:
    """Look up keys in levels of equal size, and flag missing keys.

    Each level has a row of keys; the result for a missing key is `LEAST`. The highest bits of a key are the position,
    and the next six must match the entry.
    """
    bits = np.uint32(levels.shape[1].bit_length() - 1)
    place = keys >> (_KEY - bits)
    if len(levels) > 1:
        place[1] += levels.shape[1]
    entry = levels.take(place, mode="wrap")
    keys <<= bits
    keys &= _CHECKED
    entry ^= keys
    missing = entry > _VALUE
    np.putmask(entry, missing, _NOTHING)
    return entry, missing


def table_names() -> tuple[str, ...]:
    """List the encodings that have a table.

    Examples
    --------
    >>> table_names()
    ('cl100k_base', 'o200k_base')
    """
    return tuple(
        name.removeprefix(f"{_FOLDER}/").removesuffix(".npz")
        for name in data_files(_FOLDER)
        if name.endswith(".npz")
    )


@cache
def load_weights(encoding: str) -> Weights:
    """Load the table of an encoding and cache it."""
    with np.load(io.BytesIO(read_bytes(f"{_FOLDER}/{encoding}.npz")), allow_pickle=False) as stored:
        return Weights.of(stored)


#: Characters looked up at once: many enough for numpy, few enough for the processor's cache.
STRETCH: Final = 2**18

_PIECE: Final = 2**12

Row = Bytes | Units

_GAPS = tuple(bytes(number) for number in range(2 * (BEFORE + WINDOW)))
_ASCII_GAPS = tuple("\0" * number for number in range(BEFORE + WINDOW))


def stretches(text: str) -> Iterator[Row]:
    """Yield a text as rows of units, each preceded by its context.

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
    """Concatenate texts into one row, with zeros before each text.

    Also return the first window and the number of windows of each text.

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
    # Python stores every character of a text as wide as the widest; pieces without it are encoded several times faster.
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    return np.frombuffer(
        b"".join([piece.encode("utf-16-le", "surrogatepass") for piece in pieces]), np.uint16
    )


Sums = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EstimateCounter(CounterBase):
    """A counter that estimates an encoding's count from lookup tables.

    Create one with ``budgetkit.counter("estimate:o200k_base")``. Tables are loaded at the first count.

    Parameters
    ----------
    encoding : str
        The encoding to estimate.

    Examples
    --------
    >>> rough = EstimateCounter("o200k_base")
    >>> rough.name, rough.exact, rough("")
    ('estimate:o200k_base', False, 0)
    """

    encoding: str

    def __post_init__(self) -> None:
        if self.encoding not in table_names():
            raise ValueError(unknown_name("estimate", self.encoding, table_names()))

    @property
    def name(self) -> str:
        """The counter's name for :func:`budgetkit.counter`."""
        return f"estimate:{self.encoding}"

    def __call__(self, text: str) -> int:
        """Estimate the tokens in one text."""
        values = map(load_weights(self.encoding).values, stretches(check_text(text, self)))
        total = sum(int(np.add.reduce(some, dtype=np.int32)) for some in values)
        return max((total + SCALE // 2) // SCALE, min(len(text), 1))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Estimate the tokens in each of several texts, faster than single calls."""
        texts = check_texts(texts, self)
        sizes = np.fromiter(map(len, texts), np.intp, len(texts))
        narrow = np.fromiter(map(str.isascii, texts), np.bool_, len(texts))
        estimates = np.zeros(len(texts), np.int64)
        for chosen in (np.flatnonzero(narrow), np.flatnonzero(~narrow)):
            batch = np.cumsum(sizes[chosen] + BEFORE + WINDOW) // STRETCH
            for some in np.split(chosen, np.flatnonzero(np.diff(batch)) + 1):
                estimates[some] = self._sums([texts[number] for number in some.tolist()])
        tokens: list[int] = np.maximum(
            (estimates + SCALE // 2) // SCALE, np.minimum(sizes, 1)
        ).tolist()
        return tokens

    def _sums(self, texts: list[str]) -> Sums:
        if not texts:
            return np.zeros(0, np.int64)
        row, first, number = laid_out(texts)
        return _between(load_weights(self.encoding).values(row), first, first + number)


def _between(values: npt.NDArray[np.integer], starts: Places, ends: Places) -> Sums:
    """Sum the values between each start and end."""
    sums = np.add.reduceat(
        np.append(values, 0), np.stack([starts, ends], axis=1).reshape(-1), dtype=np.int64
    )[::2]
    return np.where(ends > starts, sums, 0)
