"""An estimate of an encoding's count: it is looked up in a table, and the text is not tokenised.

    tokens of a text = sum over its windows of what each adds

A window is four units of text together with the units before them (:mod:`budgetkit.counters.estimate.windows`). What
it adds was learned from texts of many kinds, by looking where tokens really start. The sum never looks ahead, so one
pass gives the estimate of every beginning of the text, and so the place to cut it. In a long run of one character, or
of two that alternate, the units before say nothing; there a window adds what was measured for such a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from budgetkit.budget.quoting import brief
from budgetkit.counters.estimate.windows import BEFORE, SCALE, WINDOW, table, table_names
from budgetkit.counters.protocol import CounterBase, check_text, check_texts

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


Sums = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EstimateCounter(CounterBase):
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

    def __post_init__(self) -> None:
        if self.encoding not in table_names():
            raise ValueError(
                f"no estimate of {brief(self.encoding)}; there are those of {', '.join(table_names())}; use one of them"
            )

    @property
    def name(self) -> str:
        """The name from which :func:`budgetkit.counter` makes this counter again."""
        return f"estimate:{self.encoding}"

    def __call__(self, text: str) -> int:
        """Estimate one text, in tokens."""
        values = map(table(self.encoding).values, stretches(check_text(text, self)))
        total = sum(int(np.add.reduce(some, dtype=np.int32)) for some in values)
        return max((total + SCALE // 2) // SCALE, min(len(text), 1))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Estimate several texts, in tokens each; the same numbers as one by one, several times faster."""
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
        values = table(self.encoding).values
        after = 0
        sums = [np.zeros(0, np.int64)]
        for row in stretches(check_text(text, self)) if text else ():
            whole = values(row)
            parts = [values(part)[:: 1 + BEFORE // WINDOW] for part in _begun(row)]
            before = after + np.cumsum(whole, dtype=np.int64) - whole
            sums.append((before[:, np.newaxis] + np.stack([0 * whole, *parts], axis=1)).reshape(-1))
            after += int(whole.sum(dtype=np.int64))
        tokens: npt.NDArray[np.float64] = (
            np.append(np.concatenate(sums), after)[unit_ends(text)] / SCALE
        )
        return tokens

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
        if limit >= 0:
            return int(np.flatnonzero(self.prefixes(text) <= limit)[-1])
        return 0

    def between(self, text: str, places: Sequence[int]) -> npt.NDArray[np.float64]:
        """Estimate the tokens between places of a text, in one pass.

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
        rows = list(stretches(check_text(text, self)))
        values = np.concatenate([*map(table(self.encoding).values, rows)])
        before = np.asarray(places, np.intp)
        if any(map(has_surrogates, rows)):
            before = units_before(text, before)
        ends = -(-before // WINDOW)
        tokens: npt.NDArray[np.float64] = _between(values, ends[:-1], ends[1:]) / SCALE
        return tokens

    def _sums(self, texts: list[str]) -> Sums:
        if not texts:
            return np.zeros(0, np.int64)
        row, first, number = laid_out(texts)
        return _between(table(self.encoding).values(row), first, first + number)


def _between(values: npt.NDArray[np.integer], starts: Places, ends: Places) -> Sums:
    """Return for each stretch the sum of its values."""
    sums = np.add.reduceat(
        np.append(values, 0), np.stack([starts, ends], axis=1).reshape(-1), dtype=np.int64
    )[::2]
    return np.where(ends > starts, sums, 0)


def _begun(row: Row) -> list[Row]:
    """Return each window after its first one, two and three units, one row each, with its context before them."""
    rows = np.lib.stride_tricks.sliding_window_view(row, BEFORE + WINDOW)[::WINDOW]
    begun: list[Row] = []
    for units in range(1, WINDOW):
        part = cast(Row, rows.reshape(-1).copy())
        part.reshape(rows.shape)[:, BEFORE + units :] = 0
        begun.append(part)
    return begun
