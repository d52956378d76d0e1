"""The table that an estimate looks up: how many tokens each window of a text adds, as training found it.

One compressed file per encoding under ``data/estimates/``, written by ``scripts/train_estimator.py``. All
values are whole 128ths of a token, so that sums are exact and the same on every machine.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from budgetkit.budget.quoting import brief
from budgetkit.counters.estimate.windows import Places, Windows, windows
from budgetkit.files import data_files, read_bytes

__all__ = ["CHECK", "MIDDLE", "SCALE", "Weights", "looked_up", "table", "table_names"]

#: A token, in the unit of the tables.
SCALE: Final = 128
#: The lowest bits of a stored entry of a hashed level, which tell its key from others in the same place.
CHECK: Final = np.int16(63)
#: What is added to every looked up value, so that none is below 0.
LEAST: Final = 512
#: What the stored level "own" is less than the tokens of a window; the others are what they add to it.
MIDDLE: Final = 3 * SCALE
_FOLDER = "estimates"
_NOTHING = np.uint32(LEAST)

_BITS = np.uint32(26)
_KEY = np.uint32(32)
_PLACE_BITS = {2**bits: np.uint32(bits) for bits in range(33)}
_CHECKED = np.uint32(0xFC000000)
_VALUE = np.uint32(0xFFFF)
_EMPTY = np.uint32(0x03FF0000)

Values = npt.NDArray[np.int16]
Entries = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What each window adds, in 128ths of a token."""

    classes: npt.NDArray[np.uint8]
    pairs: Values
    shapes: Values
    hashed: Entries
    raw: Entries
    runs: Values
    run_units: Values

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Weights:
        """Make a table of what training wrote."""
        level = {
            name.removeprefix("level_"): stored[name]
            for name in stored
            if name.startswith("level_")
        }
        hashed = np.stack([entries(level["own"], MIDDLE - LEAST), entries(level["long"])])
        pairs = level["pair"] - np.int16(LEAST)
        raw = entries(level["raw"])[np.newaxis]
        return cls(
            stored["classes"],
            pairs,
            level["shape"],
            hashed,
            raw,
            stored["run_pairs"],
            stored["run_units"],
        )

    def values(self, units: npt.NDArray[np.uint8] | npt.NDArray[np.uint16]) -> Values:
        """Look up what each window adds."""
        stretch = windows(units, self.classes)
        entry_pairs, missing = looked_up(self.hashed, stretch.keys())
        entry_pairs[0] += entry_pairs[1]
        total = entry_pairs[0].astype(np.int16)
        at = missing[0].nonzero()[0]
        if len(at):
            total[at] += self._unknown(stretch, at)
        if stretch.units is not None:
            first, second = looked_up(self.raw, stretch.raw())[0].view(np.int32)
            total[stretch.wide] += (first + second - 2 * LEAST).astype(np.int16)
        at = stretch.runs()
        return self._with_runs(total, at, stretch) if len(at) else total

    def _unknown(self, stretch: Windows, at: Places) -> Values:
        pairs, shape = stretch.plain(at)
        total = self.shapes.take(shape, mode="wrap")
        both = self.pairs.take(pairs, mode="wrap")
        total += both[0::2]
        total += both[1::2]
        return total

    def _with_runs(self, total: Values, at: Places, stretch: Windows) -> Values:
        first, second = stretch.ends(at)
        ascii_pair = (first < 128) & (second < 128)
        cost = np.where(first == second, self.run_units[first], np.int16(-1))
        cost = np.where(ascii_pair, self.runs[first & 127, second & 127], cost)
        total[at] = np.where(cost >= 0, 2 * cost, total[at])
        return total


def entries(stored: Values, least: int = LEAST) -> Entries:
    """Lay out a stored level for looking up: the check above the value and `least`, modulo 2**16; 0 is nobody's."""
    value = ((stored >> 6).astype(np.int32) + least) & 0xFFFF
    filled = ((stored & CHECK).astype(np.uint32) << _BITS) | value.astype(np.uint32)
    return np.where(stored == 0, _EMPTY, filled)


def looked_up(
    levels: Entries, keys: npt.NDArray[np.uint32]
) -> tuple[Entries, npt.NDArray[np.bool_]]:
    """Look keys up in levels of one size, a row each, and say which are missing: those give `LEAST`.

    The uppermost bits of a key say where to look; the six that follow must be those of the entry.
    """
    bits = _PLACE_BITS[levels.shape[1]]
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
    """Name the encodings that there is a table for.

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
def table(encoding: str) -> Weights:
    """Load the table of one encoding, once."""
    if encoding not in table_names():
        names = ", ".join(table_names())
        raise ValueError(
            f"no estimate of {brief(encoding)}; there are tables for {names}; use one of them, or count exactly"
        )
    with np.load(io.BytesIO(read_bytes(f"{_FOLDER}/{encoding}.npz")), allow_pickle=False) as stored:
        return Weights.of(stored)
