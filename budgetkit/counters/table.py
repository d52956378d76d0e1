"""The table behind an estimate: what each window of a text adds to its tokens, as training found it.

One compressed file per encoding under ``data/estimates/``, written by ``scripts/train_estimator.py``. All
values are whole 128ths of a token, so that sums are exact and the same on every machine.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from budgetkit.counters.windows import CONTEXT, Windows, windows
from budgetkit.files import data_files, read_bytes

__all__ = ["CHECK", "SCALE", "Table", "looked_up", "table", "table_names"]

#: A token, in the unit of the tables.
SCALE: Final = 128
#: The lowest bits of an entry of a hashed level, which tell its key from others in the same place.
CHECK: Final = np.int16(63)
_FOLDER = "estimates"
_MANY = 8  # so many stretches are worth two threads
_CHUNK = 2**16  # windows looked up at once: large enough for numpy, small enough for the cache

Values = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What each window adds, in 128ths of a token.

    Parameters
    ----------
    classes : ndarray of uint8, shape (65536,)
        Class of each UTF-16 unit.
    levels : dict of str to ndarray
        One table for each of `windows.LEVELS`. A window whose quad is held starts from its value, any other from the
        sum of its pair and shape; what is held of the rest is added.
    runs : ndarray of int16, shape (65536,)
        What a window adds in a run of that pair of ASCII characters, measured; by place, as `pair`.
    run_units : ndarray of int16, shape (65536,)
        What a window adds in a run of that one unit, measured; below 0 where it was not.
    """

    classes: npt.NDArray[np.uint8]
    levels: dict[str, Values]
    runs: Values
    run_units: Values

    def values(self, units: npt.NDArray[np.uint8] | npt.NDArray[np.uint16]) -> Values:
        """Look up what each window adds.

        Parameters
        ----------
        units : ndarray of uint8 or uint16
            An even number of units; the first ``2 * CONTEXT`` are context.

        Returns
        -------
        ndarray of int16
            One value a window, 0 or more, in 128ths of a token.
        """
        found = np.empty(len(units) // 2 - CONTEXT, np.int16)

        def look_up(start: int) -> None:
            stop = min(start + _CHUNK, len(found))
            found[start:stop] = self._values(windows(units[2 * start : 2 * (stop + CONTEXT)], self.classes))

        starts = range(0, len(found), _CHUNK)
        if len(starts) < _MANY:
            for start in starts:
                look_up(start)
        else:  # numpy lets two threads work at once
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(look_up, starts))
        return found

    def _values(self, stretch: Windows) -> Values:
        hashed = stretch.hashed()
        known, total = looked_up(self.levels["quad"], next(hashed)[1])
        new = np.flatnonzero(~known)
        total[new] = sum(self.levels[level].take(places) for level, places in stretch.plain(new))
        for level, key in hashed:
            total += looked_up(self.levels[level], key)[1]
        total &= ~(total >> 15)  # at least 0; np.maximum takes five times as long
        run = stretch.runs()
        return total if run is None else self._with_runs(total, run, stretch)

    def _with_runs(self, total: Values, run: npt.NDArray[np.bool_], stretch: Windows) -> Values:
        at = np.flatnonzero(run)
        known = self.runs.take(stretch.classes.view(np.uint16).take(at + CONTEXT))
        if stretch.units is not None:  # classes do not tell units apart
            first, second = stretch.ends(at)
            ascii_pair = (first < 128) & (second < 128)
            known = np.where(ascii_pair, known, np.where(first == second, self.run_units[first], -1))
            known = np.where(known >= 0, known, total[at])
        total[at] = known
        return total


def looked_up(level: Values, key: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.bool_], Values]:
    """Look keys up in a hashed level.

    The uppermost bits of a key say where to look; its lowest six must be those of the entry, whose other ten are the
    value. A key that the level does not hold adds nothing.

    Parameters
    ----------
    level : ndarray of int16
        The entries; their number is a power of two.
    key : ndarray of uint32
        As :meth:`budgetkit.counters.windows.Windows.hashed` gives them.

    Returns
    -------
    tuple of ndarray
        Which keys the level holds, and their values in 128ths of a token.
    """
    bits = len(level).bit_length() - 1
    entry = level.take((key >> np.uint32(32 - bits)).astype(np.intp))
    held = ((entry ^ key.astype(np.int16)) & CHECK) == 0
    entry >>= 6
    entry *= held
    return held, entry


def table_names() -> tuple[str, ...]:
    """Name the encodings that there is a table for.

    Returns
    -------
    tuple of str
        Sorted names.

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
    """Load the table of one encoding, once.

    Parameters
    ----------
    encoding : str
        One of :func:`table_names`.

    Returns
    -------
    Table
        As it was trained.

    Raises
    ------
    ValueError
        If there is none for that encoding.
    """
    if encoding not in table_names():
        known = ", ".join(table_names())
        raise ValueError(
            f"no estimate of {encoding!r}; there are tables for {known}; use one of them, or count exactly"
        )
    with np.load(io.BytesIO(read_bytes(f"{_FOLDER}/{encoding}.npz")), allow_pickle=False) as stored:
        levels = {name.removeprefix("level_"): stored[name] for name in stored if name.startswith("level_")}
        return Table(stored["classes"], levels, _by_pair(stored["run_pairs"]), stored["run_units"])


def _by_pair(stored: Values) -> Values:
    """Lay the runs of ASCII out so that a window's pair is the place of its run."""
    runs = np.zeros((256, 256), np.int16)
    runs[:128, :128] = stored.reshape(128, 128).T
    return runs.reshape(-1)
