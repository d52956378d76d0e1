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
_NEAR, _FINE = 64, 12  # code points between seams that are told apart where a cut is
_SEAMLESS = 4_096  # code points at most to look for a seam
# Each step towards a limit goes most of the way that its tokens are worth, so that few steps do and none goes far
# beyond; code points a token as found so far, but no more than this, for blanks say little of what follows.
_MOST_OF_THE_WAY, _FIRST_RATE, _MOST_RATE = 0.8, 2.5, 8.0


class Measure:
    """Costs of one text's parts by a counter of which nothing is known."""

    #: So many code points beyond a cut that fits every other cut is tried; with 0 only some are.
    near = 0
    #: Code points a token, where aiming begins.
    rate = CHARACTERS_A_TOKEN

    def __init__(self, text: str, count: Count) -> None:
        self.text, self.count = text, count

    def cost(self, head: int, marker: str, tail: int) -> int:
        """Count the text with a marker in place of what lies from `head` to `tail`, in tokens."""
        return self.count(f"{self.text[:head]}{marker}{self.text[tail:]}")

    def fits(self, limit: int, front: bool = True, back: bool = False) -> bool:
        """Tell whether the whole text is within a limit, without counting a text that is far beyond it."""
        chunk = int(_NEVER_HALF * CHARACTERS_A_TOKEN * limit) + _CHUNK * _CHUNK
        if len(self.text) > 2 * chunk and self.count(self.text[:chunk]) > _NEVER_HALF * limit + _CHUNK:
            return False
        return self.count(self.text) <= limit

    def bounds(self, limit: int, marker: str, backwards: bool) -> tuple[int, int]:
        """Return how much can probably be kept, and how much at most, in code points from one end."""
        return 0, len(self.text)


class SeamMeasure(Measure):
    """Costs by a counter whose counts add up at seams."""

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

    def fits(self, limit: int, front: bool = True, back: bool = False) -> bool:
        """Tell whether the whole text is within a limit, reading no further than that takes from either end."""
        sides = [side for side, is_read in zip(self.sides, (front, back), strict=True) if is_read]
        for side in sides:
            side.go_beyond(limit // len(sides))
        read, tokens = sum(side.places[-1] for side in sides), sum(side.tokens[-1] for side in sides)
        self.rate = read / max(1, tokens) or CHARACTERS_A_TOKEN
        if tokens > limit and read <= len(self.text):
            return False
        if len(sides) == 1 and read == len(self.text):
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
        """Return a seam little before the inner end of what is kept, and the tokens up to it."""
        before = max(0, bisect_left(self.places, kept) - 1)
        if kept - self.places[before] > _NEAR:
            before = self._insert(before, self._last(self.places[before], kept))
        return self.places[before], self.tokens[before]

    def go_beyond(self, limit: int) -> None:
        """Know seams up to the first one with more tokens than a limit, as far as there are any."""
        while self.tokens[-1] <= limit and self.places[-1] < len(self.text):
            rate = min(_MOST_RATE, self.places[-1] / self.tokens[-1] if self.tokens[-1] else _FIRST_RATE)
            end = self.places[-1] + self._step(limit - self.tokens[-1], rate)
            found = self._seam(end, end + _SEAMLESS)
            if found is None:
                return
            self._insert(len(self.places) - 1, found)

    def refine(self, limit: int) -> None:
        """Find, between the known seams that a limit lies between, the two that are next to it."""
        above = bisect_right(self.tokens, limit)
        while 0 < above < len(self.places) and self.places[above] - self.places[above - 1] > _FINE:
            start, end = self.places[above - 1], self.places[above]
            rate = (end - start) / (self.tokens[above] - self.tokens[above - 1])
            step = min((end - start) // 2, max((end - start) // 8, self._step(limit - self.tokens[above - 1], rate)))
            middle = self._seam(start + step, end - 1) or self._seam(start + 1, end - 1)
            if middle is None or middle in (start, end):
                return
            self._insert(above - 1, middle)
            above = bisect_right(self.tokens, limit)

    def _step(self, tokens: int, rate: float) -> int:
        return max(_FINE, int(_MOST_OF_THE_WAY * rate * tokens))

    def _insert(self, before: int, place: int) -> int:
        """Know a seam after a known one; return where it stands."""
        start = self.places[before]
        if place > start:
            before += 1
            self.places.insert(before, place)
            self.tokens.insert(before, self.tokens[before - 1] + self._between(start, place))
        return before

    def _last(self, start: int, stop: int) -> int:
        """Return the last seam before `stop`, or `start` if there is none near."""
        size, far = len(self.text), max(start, stop - _SEAMLESS)
        if not self.backwards:
            found = last_seam(self.text, far, stop)
            return start if found == far else found
        place = next_seam(self.text, size - stop + 1, size - far - 1)
        return start if place is None else size - place

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
    """Return the cheapest way to cost parts of a text."""
    fresh: Count | None = getattr(count, "fresh", None)
    return Measure(text, count) if fresh is None else SeamMeasure(text, fresh)
