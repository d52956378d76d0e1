"""Text cut to a number of tokens, with the marker that says so inside it.

A cut is one number: how many code points are kept. What a cut costs is counted on the text as it will stand,
marker included, so what comes out is within its limit by construction, whatever the counter. The number is found
by aiming: a few counts of texts about as long as the result, however long the text is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from budgetkit.truncation.boundaries import ENDS, STARTS, By

__all__ = ["By", "Keep", "truncate"]

Count = Callable[[str], int]
Keep = Literal["head", "tail", "middle"]

MARKERS: dict[str, str] = {
    "head": "\n[the rest is left out]",
    "tail": "[what came before is left out]\n",
    "middle": "\n[a part is left out]\n",
}
_CHARACTERS_A_TOKEN = 4
# A longer text may cost less, where letters that were tokens of their own close up to a word. So a cut is also
# tried some characters further on, the longest first.
_FURTHER = (24, 16, 12, 8, 6, 4, 3, 2)
# A text may cost less than its own beginning by the few tokens that close up at the cut, never by half.
_NEVER_HALF, _CHUNK = 2, 16


def truncate(
    text: str,
    limit: int,
    count: Count,
    keep: Keep = "head",
    by: By = "token",
    marker: str | None = None,
    marker_inside: bool = True,
) -> str:
    r"""Cut a text to a number of tokens.

    Parameters
    ----------
    text : str
        Any string. One that fits is returned as it is, without a marker.
    limit : int
        Most tokens that `count` may find in the result, at least 0. Only ``""`` is there for a limit of 0.
    count : callable
        From text to tokens: any counter, exact or not.
    keep : {"head", "tail", "middle"}
        What stays: the beginning, the end, or as much of both with the middle left out.
    by : {"token", "line", "sentence"}
        Where it may be cut: between any two characters as a reader sees them, between lines, between
        sentences. Where not one line or sentence fits, the first is cut inside.
    marker : str, optional
        What stands where text was left out; one of this kit's own when left out, ``""`` for none. Where it
        leaves no room for any text it is left out too.
    marker_inside : bool
        Whether the marker counts inside the limit. Document 003 adds it after the cut, and so exceeds the limit.

    Returns
    -------
    str
        Within the limit when counted again with its marker (of any counter that finds nothing in ``""``), and
        no character split.

    Raises
    ------
    ValueError
        If the limit is negative or not whole, or `keep` or `by` is none of those.

    Examples
    --------
    >>> words = lambda text: len(text.split())
    >>> truncate("one two three four five six", 4, words, marker=" [...]")
    'one two three [...]'
    >>> truncate("first line\nsecond line\nthird line", 5, words, keep="tail", by="line", marker="[...]\n")
    '[...]\nsecond line\nthird line'
    """
    _check(limit, keep, by)
    if _fits(text, limit, count):
        return text
    marker = MARKERS[keep] if marker is None else marker
    if not marker_inside:
        return _Cut(text, limit, count, keep, by, "").longest + marker
    for way, mark in dict.fromkeys([(by, marker), ("token", marker), ("token", "")]):
        if longest := _Cut(text, limit, count, keep, way, mark).longest:
            return longest
    return ""


@dataclass(frozen=True)
class _Cut:
    """One way to cut one text."""

    text: str
    limit: int
    count: Count
    keep: Keep
    by: By
    marker: str

    @cached_property
    def longest(self) -> str:
        """The longest cut within the limit, "" where nothing of the text fits."""
        kept = self._aim()
        if self.by == "token":
            further = (kept + more for more in _FURTHER if kept + more < len(self.text))
            kept = next((size for size in further if self._cost(size) <= self.limit), kept)
        head, tail = self._edges(kept)
        return self._written(kept) if head or tail < len(self.text) else ""

    def _edges(self, kept: int) -> tuple[int, int]:
        """Return where the kept beginning ends and the kept end begins, for that many code points at most."""
        size = len(self.text)
        front = {"head": kept, "tail": 0, "middle": kept - kept // 2}[self.keep]
        back = kept - front
        return (
            ENDS[self.by](self.text, front) if front else 0,
            STARTS[self.by](self.text, size - back) if back else size,
        )

    def _written(self, kept: int) -> str:
        head, tail = self._edges(kept)
        return f"{self.text[:head]}{self.marker}{self.text[tail:]}"

    def _cost(self, kept: int) -> int:
        return self.count(self._written(kept))

    def _aim(self) -> int:
        """Find how much can be kept.

        Between a size that fits and one that does not, each step goes from the nearer of the two as far as its
        tokens over or under the limit are worth in characters. Steps on the same side double, so that a bad aim
        costs a logarithm. Sizes that come to the same cut are never counted twice.
        """
        fits, over = 0, len(self.text)
        spare, excess = self.limit, 0
        rate, stride, last = float(_CHARACTERS_A_TOKEN), 1, True
        edges = {True: self._edges(fits), False: None}
        while over - fits > 1:
            step = max(1, round((spare if not excess or spare <= excess else excess) * rate)) * stride
            place = fits + step if not excess or spare <= excess else over - step
            if not fits < place < over:
                place = (fits + over) // 2
            here = self._edges(place)
            if here in edges.values():
                inside = here == edges[True]
            else:
                cost = self._cost(place)
                inside = cost <= self.limit
                rate = place / max(1, cost)
                spare, excess = (self.limit - cost, excess) if inside else (spare, cost - self.limit)
            edges[inside] = here
            fits, over = (place, over) if inside else (fits, place)
            stride, last = (stride * 2 if inside == last else 1), inside
        return fits


def _fits(text: str, limit: int, count: Count) -> bool:
    """Tell whether the whole text is within the limit, without counting a text that is far beyond it."""
    chunk = _NEVER_HALF * _CHARACTERS_A_TOKEN * limit + _CHUNK * _CHUNK
    if len(text) > 2 * chunk and count(text[:chunk]) > _NEVER_HALF * limit + _CHUNK:
        return False
    return count(text) <= limit


def _check(limit: int, keep: str, by: str) -> None:
    if type(limit) is not int or limit < 0:
        raise ValueError(
            f"a limit of {limit!r} tokens was asked for; a limit is a whole number of at least 0; give one"
        )
    for parameter, value, known in (("keep", keep, get_args(Keep)), ("by", by, get_args(By))):
        if value not in known:
            raise ValueError(f"{parameter} {value!r} was asked for; known are {', '.join(known)}; use one of these")
