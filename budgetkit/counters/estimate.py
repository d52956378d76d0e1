"""An estimate of an encoding's count: looked up in a table instead of tokenised.

    tokens of a text = sum over its windows of what each adds

A window is two characters seen with up to four before them (:mod:`budgetkit.counters.windows`); what it adds was
learned from where tokens really start in text of many kinds. Because it is a sum that never looks ahead, one
pass gives the estimate of every prefix, and so the place to cut a text. In a long run of one character, or of
two in turn, where neighbours say nothing, a window adds what was measured for that run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from budgetkit.counters.table import SCALE, table, table_names
from budgetkit.counters.windows import CONTEXT, encoded

__all__ = ["EstimateCounter", "table_names"]

Row = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

_BATCH = 2**20  # units; messages are joined to stretches of about this length
_NOTHING = b"\0"


@dataclass(frozen=True, slots=True)
class EstimateCounter:
    """Estimate the count of one encoding.

    Made by ``budgetkit.counter("estimate:o200k_base")``. Nothing is loaded before the first count.

    Parameters
    ----------
    encoding : str
        The encoding that is estimated.

    Examples
    --------
    >>> rough = EstimateCounter("o200k_base")
    >>> rough.name, rough.exact, rough("")
    ('estimate:o200k_base', False, 0)
    """

    encoding: str

    @property
    def exact(self) -> bool:
        """False: an estimate is a guess, though a good one."""
        return False

    @property
    def name(self) -> str:
        """What :func:`budgetkit.counter` takes to give this counter again."""
        return f"estimate:{self.encoding}"

    def __call__(self, text: str) -> int:
        """Estimate one text, in tokens."""
        return _rounded(int(self._values(text).sum(dtype=np.int64)), len(text))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Estimate several texts, in tokens each; the same numbers as one by one, several times faster."""
        found: list[int] = []
        batch: list[str] = []
        size = 0
        for text in texts:
            batch.append(self._checked(text))
            size += len(text)
            if size > _BATCH:
                found += self._joined(batch)
                batch, size = [], 0
        return found + self._joined(batch)

    def prefixes(self, text: str) -> npt.NDArray[np.float64]:
        """Estimate every prefix of a text in one pass.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        ndarray of float64, shape (len(text) + 1,)
            Entry n is the estimate of ``text[:n]`` before rounding, in tokens.

        Examples
        --------
        >>> rough = EstimateCounter("o200k_base")
        >>> text = "Tokens aren't words, nor are words tokens."
        >>> [round(tokens) for tokens in rough.prefixes(text)[[0, 21]]] == [0, rough(text[:21])]
        True
        """
        units = self._units(self._checked(text))
        whole = table(self.encoding).values(units)
        # A prefix that ends inside a window ends with that window cut in half.
        after = np.concatenate([[0], np.cumsum(whole, dtype=np.int64)])
        halves = self._halves(units)
        by_unit = np.empty(2 * len(whole) + 1, np.int64)
        by_unit[0::2] = after
        by_unit[1::2] = after[:-1] + halves
        return by_unit[_unit_ends(text)] / SCALE

    def fitting(self, text: str, limit: int) -> int:
        """Find how much of a text is estimated to fit, in one pass.

        Parameters
        ----------
        text : str
            Any string.
        limit : int
            In tokens.

        Returns
        -------
        int
            Most characters whose prefix's estimate is at most the limit.

        Examples
        --------
        >>> rough = EstimateCounter("o200k_base")
        >>> cut = rough.fitting("one two three " * 100, 30)
        >>> rough(("one two three " * 100)[:cut])
        30
        """
        return int(np.flatnonzero(self.prefixes(text) <= limit)[-1]) if limit >= 0 else 0

    def between(self, text: str, places: Sequence[int]) -> npt.NDArray[np.float64]:
        """Estimate what lies between places of a text, in one pass over it.

        Parameters
        ----------
        text : str
            Any string.
        places : sequence of int
            Character offsets, rising.

        Returns
        -------
        ndarray of float64, shape (len(places) - 1,)
            In tokens; a window that a place divides belongs to what comes before.

        Examples
        --------
        >>> words = "one two three four " * 100
        >>> first, second = EstimateCounter("o200k_base").between(words, [0, 950, 1_900])
        >>> bool(abs(first - second) < 1), bool(abs(first + second - 400) < 20)
        (True, True)
        """
        units = self._units(self._checked(text))
        values = table(self.encoding).values(units)
        ends = -(-_units_before(text, units[2 * CONTEXT :], np.asarray(places)) // 2)
        sums = np.add.reduceat(np.append(values, 0), ends, dtype=np.int64)[:-1]
        tokens: npt.NDArray[np.float64] = np.where(ends[1:] > ends[:-1], sums, 0) / SCALE
        return tokens

    def _checked(self, text: str) -> str:
        if not isinstance(text, str):
            raise TypeError(f"asked to count {type(text).__name__}; {self.name} counts text; give a str, perhaps ''")
        return text

    def _values(self, text: str) -> npt.NDArray[np.int16]:
        return table(self.encoding).values(self._units(self._checked(text)))

    @staticmethod
    def _units(text: str) -> Row:
        """Give the units of a text after its context, filled up to an even number."""
        data = encoded(text)
        width = 1 if text.isascii() else 2
        odd = len(data) // width % 2
        return _row(_NOTHING * (2 * CONTEXT * width) + data + _NOTHING * (odd * width), width)

    def _halves(self, units: Row) -> npt.NDArray[np.int64]:
        """Look up each window as it is before its second unit is there."""
        stored = table(self.encoding)
        count = len(units) // 2 - CONTEXT
        found = np.empty(count, np.int64)
        step = 2 * (CONTEXT + 1)
        for start in range(0, count, 2**14):
            stop = min(start + 2**14, count)
            rows = np.lib.stride_tricks.sliding_window_view(units[2 * start : 2 * (stop + CONTEXT)], step)[::2].copy()
            rows[:, -1] = 0
            found[start:stop] = stored.values(cast(Row, rows.reshape(-1)))[:: CONTEXT + 1]
        return found

    def _joined(self, texts: list[str]) -> list[int]:
        """Estimate texts laid end to end, each after a context of its own."""
        if not texts:
            return []
        all_ascii = all(map(str.isascii, texts))
        data = [encoded(text) if all_ascii else text.encode("utf-16-le", "surrogatepass") for text in texts]
        width = 1 if all_ascii else 2
        gaps = (_NOTHING * (2 * CONTEXT * width), _NOTHING * ((2 * CONTEXT + 1) * width))
        sizes = np.fromiter(map(len, data), np.intp, len(data)) // width
        units = _row(gaps[0] + b"".join([t + gaps[len(t) // width % 2] for t in data]), width)
        count = -(-sizes // 2)
        ends = np.cumsum(count + CONTEXT) - CONTEXT
        after = np.concatenate([[0], np.cumsum(table(self.encoding).values(units), dtype=np.int64)])
        sums = after[ends] - after[ends - count]
        rounded = np.maximum((sums + SCALE // 2) // SCALE, sizes > 0)
        tokens: list[int] = rounded.tolist()
        return tokens


def _row(data: bytes, width: int) -> Row:
    return np.frombuffer(data, np.uint8) if width == 1 else np.frombuffer(data, np.uint16)


def _rounded(value: int, length: int) -> int:
    """Turn 128ths into tokens, at least one for a text that is not empty."""
    return max((value + SCALE // 2) // SCALE, min(length, 1))


def _units_before(text: str, units: Row, places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Give the number of units before some characters: one each, and one more for each beyond U+FFFF."""
    pairs = np.flatnonzero((units & 0xFC00) == 0xD800) if units.dtype == np.uint16 else np.empty(0, np.intp)
    if len(text) + len(pairs) != len(units) - (len(text) + len(pairs)) % 2:  # there are lone surrogates
        return _unit_ends(text)[places]
    return places + np.searchsorted(pairs - np.arange(len(pairs)), places)


def _unit_ends(text: str) -> npt.NDArray[np.intp]:
    """Give the number of units before each character and after the last."""
    if text.isascii():
        return np.arange(len(text) + 1)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    return np.concatenate([[0], np.cumsum(1 + (points > 0xFFFF))])
