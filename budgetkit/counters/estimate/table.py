"""The table that an estimate looks up: how many tokens each window of a text adds, as training found it.

One compressed file per encoding under ``data/estimates/``, written by ``scripts/train_estimator.py``. All
values are whole 128ths of a token, so that sums are exact and the same on every machine.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from budgetkit.budget.quoting import brief
from budgetkit.counters.estimate.windows import BEFORE, WINDOW, Places, Windows, windows
from budgetkit.files import data_files, read_bytes

__all__ = ["CHECK", "SCALE", "Table", "looked_up", "table", "table_names"]

#: A token, in the unit of the tables.
SCALE: Final = 128
#: The lowest bits of an entry of a hashed level, which tell its key from others in the same place.
CHECK: Final = np.int16(63)
_FOLDER = "estimates"

Values = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What each window adds, in 128ths of a token."""

    classes: npt.NDArray[np.uint8]
    levels: dict[str, Values]
    runs: Values
    run_units: Values

    def values(self, units: npt.NDArray[np.uint8] | npt.NDArray[np.uint16]) -> Values:
        """Look up what each window adds."""
        stretch = windows(units, self.classes)
        total = np.zeros(len(units) // WINDOW - BEFORE // WINDOW, np.int16)
        for level, place in stretch.plain():
            total += self.levels[level].take(place.astype(np.intp), mode="wrap")
        for level, which, key in stretch.hashed():
            total[which] += looked_up(self.levels[level], key)[1]
        at = stretch.runs()
        return self._with_runs(total, at, stretch) if len(at) else total

    def _with_runs(self, total: Values, at: Places, stretch: Windows) -> Values:
        first, second = stretch.ends(at)
        ascii_pair = (first < 128) & (second < 128)
        cost = np.where(first == second, self.run_units[first], np.int16(-1))
        cost = np.where(ascii_pair, self.runs[first & 127, second & 127], cost)
        total[at] = np.where(cost >= 0, 2 * cost, total[at])
        return total


def looked_up(level: Values, key: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.bool_], Values]:
    """Look keys up in a hashed level.

    The uppermost bits of a key say where to look; the six that follow must be those of the entry, whose other ten are
    the value. A key that the level does not hold adds nothing.
    """
    short = key >> np.uint32(27 - len(level).bit_length())
    entry = level.take((short >> np.uint32(6)).astype(np.intp), mode="wrap")
    held = ((entry ^ short.astype(np.int16)) & CHECK) == 0
    entry >>= 6
    entry *= held
    return held, entry


def table_names() -> tuple[str, ...]:
    """Name the encodings that there is a table for.

    Examples
    --------
    >>> table_names()
    ('cl100k_base', 'o200k_base')
    """
    return tuple(
        name.removeprefix(f"{_FOLDER}/").removesuffix(".npz") for name in data_files(_FOLDER) if name.endswith(".npz")
    )


@cache
def table(encoding: str) -> Table:
    """Load the table of one encoding, once."""
    if encoding not in table_names():
        known = ", ".join(table_names())
        raise ValueError(
            f"no estimate of {brief(encoding)}; there are tables for {known}; use one of them, or count exactly"
        )
    with np.load(io.BytesIO(read_bytes(f"{_FOLDER}/{encoding}.npz")), allow_pickle=False) as stored:
        levels = {name.removeprefix("level_"): stored[name] for name in stored if name.startswith("level_")}
        return Table(stored["classes"], levels, stored["run_pairs"], stored["run_units"])
