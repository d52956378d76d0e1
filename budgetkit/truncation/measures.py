"""What a text costs when a part of it is kept: of any counter by counting it, of an exact one by what is known.

An exact counter's counts add up at seams (:mod:`budgetkit.counters.seams`). So the tokens up to some seams from
either end are counted once, and each cut that is tried costs the few words between its last seam and its marker.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Final

from budgetkit.counters.seams import last_seam, next_seam

__all__ = ["Count", "Measure", "SeamMeasure", "measured"]

Count = Callable[[str], int]

CHARACTERS_A_TOKEN: Final = 4.0
# A text may cost less than its own beginning by the few tokens that close up at the cut, never by half.
_NEVER_HALF, _CHUNK = 2, 16
_STRIDE, _SEAMLESS = 256, 4_096  # code points from one known seam to the next, and at most until there is one
_NEAR, _FINE = 64, 12  # code points between seams that are told apart where a cut is


class Measure:
    """Costs of one text's parts by a counter of which nothing is known.

    Parameters
    ----------
    text : str
        Any string.
    count : callable
        From text to tokens.
    """

    #: So many code points beyond a cut that fits every other cut is tried; with 0 only some are.
    near = 0
    #: Code points a token, where aiming begins.
    rate = CHARACTERS_A_TOKEN

    def __init__(self, text: str, count: Count) -> None:
        self.text, self.count = text, count

    def cost(self, head: int, marker: str, tail: int) -> int:
        """Count the text with a marker in place of what lies from `head` to `tail`, in tokens."""
        return self.count(f"{self.text[:head]}{marker}{self.text[tail:]}")

    def fits(self, limit: int, backwards: bool = False) -> bool:
        """Tell whether the whole text is within a limit, without counting a text that is far beyond it."""
        chunk = int(_NEVER_HALF * CHARACTERS_A_TOKEN * limit) + _CHUNK * _CHUNK
        if len(self.text) > 2 * chunk and self.count(self.text[:chunk]) > _NEVER_HALF * limit + _CHUNK:
            return False
        return self.count(self.text) <= limit

    def bounds(self, limit: int, marker: str, backwards: bool) -> tuple[int, int]:
        """Return how much can probably be kept, and how much at most, in code points from one end."""
        return 0, len(self.text)


class SeamMeasure(Measure):
    """Costs by a counter whose counts add up at seams.

    Parameters
    ----------
    text : str
        Any string.
    count : callable
        From text to tokens, exactly, remembering nothing.
    """

    def __init__(self, text: str, count: Count) -> None:
        super().__init__(text, count)
        self.sides = _Side(text, count, False), _Side(text, count, True)

    def cost(self, head: int, marker: str, tail: int) -> int:
        """Count the text with a marker in place of what lies from `head` to `tail`, in tokens."""
        front, back = self.sides
        start, before = front.known(head)
        end, after = back.known(len(self.text) - tail)
        end = len(self.text) - end
        return before + self.count(f"{self.text[start:head]}{marker}{self.text[tail:end]}") + after

    def fits(self, limit: int, backwards: bool = False) -> bool:
        """Tell whether the whole text is within a limit, reading no further than that takes."""
        side = self.sides[backwards]
        side.go_beyond(limit)
        self.rate = side.places[-1] / max(1, side.tokens[-1]) or CHARACTERS_A_TOKEN
        if side.tokens[-1] > limit:
            return False
        if side.places[-1] == len(self.text):
            return True
        return super().fits(limit)

    def bounds(self, limit: int, marker: str, backwards: bool) -> tuple[int, int]:
        """Return how much can probably be kept, and how much at most, in code points from one end."""
        side = self.sides[backwards]
        side.go_beyond(limit)
        side.refine(limit)
        first_over = bisect_right(side.tokens, limit)
        top = side.places[first_over] if first_over < len(side.places) else len(self.text)
        beside_marker = limit - self.count(marker)
        side.refine(beside_marker)
        room = bisect_right(side.tokens, beside_marker) - 1
        self.near = _NEAR if top - side.places[room] <= _SEAMLESS else 0
        return (side.places[room] if room > 0 else 0), top


class _Side:
    """Tokens up to seams, from one end of a text inwards; places are code points from that end."""

    def __init__(self, text: str, count: Count, backwards: bool) -> None:
        self.text, self.count, self.backwards = text, count, backwards
        self.places, self.tokens = [0], [0]

    def known(self, kept: int) -> tuple[int, int]:
        """Return the last known seam before the inner end of what is kept, and the tokens up to it."""
        while kept - self.places[-1] > _STRIDE and self._go_on():
            pass
        before = max(0, bisect_left(self.places, kept) - 1)
        return self.places[before], self.tokens[before]

    def go_beyond(self, limit: int) -> None:
        """Know seams up to the first one with more tokens than a limit, as far as there are any."""
        while self.tokens[-1] <= limit and self._go_on():
            pass

    def _go_on(self) -> bool:
        start = self.places[-1]
        end = self._seam(start + _STRIDE, start + _SEAMLESS)
        if end is None or start == len(self.text):
            return False
        self.places.append(end)
        self.tokens.append(self.tokens[-1] + self._between(start, end))
        return True

    def refine(self, limit: int) -> None:
        """Find, between the known seams that a limit lies between, the two that are next to it."""
        above = bisect_right(self.tokens, limit)
        while 0 < above < len(self.places) and self.places[above] - self.places[above - 1] > _FINE:
            start, end = self.places[above - 1], self.places[above]
            middle = self._seam((start + end) // 2, end - 1) or self._seam(start + 1, end - 1)
            if middle is None or middle in (start, end):
                return
            self.places.insert(above, middle)
            self.tokens.insert(above, self.tokens[above - 1] + self._between(start, middle))
            above = bisect_right(self.tokens, limit)

    def _seam(self, start: int, stop: int) -> int | None:
        """Return the first seam from `start` on, `stop` at most, or the text's end if it comes sooner."""
        size = len(self.text)
        if start >= size:
            return size
        if not self.backwards:
            return next_seam(self.text, start, min(size, stop))
        low = max(0, size - stop)
        found = last_seam(self.text, low, size - start + 1)
        return size - found if found > low else (size if low == 0 else None)

    def _between(self, start: int, end: int) -> int:
        size = len(self.text)
        return self.count(self.text[size - end : size - start] if self.backwards else self.text[start:end])


def measured(text: str, count: Count) -> Measure:
    """Return the cheapest way to cost parts of a text.

    Parameters
    ----------
    text : str
        Any string.
    count : callable
        From text to tokens; an exact counter says so by its method ``fresh``.

    Returns
    -------
    Measure
        With the costs of that counter.
    """
    fresh: Count | None = getattr(count, "fresh", None)
    return Measure(text, count) if fresh is None else SeamMeasure(text, fresh)
