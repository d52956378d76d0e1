"""Token counts of a text with a part cut out.

An exact counter adds up the counts of known parts; any other counter counts the whole text.

An exact counter's counts add up at certain split points ("seams", :mod:`budgetkit.counters.exact`). So the tokens up to
some seams are counted once from both ends, and all seams near the cut are known. Trying a cut then counts only the few
words between the cut's last seam and the marker, and a cut with too many tokens before its last seam is skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate, pairwise

from budgetkit.counters.exact import last_seam, next_seam, seams_between

Count = Callable[[str], int]

CHARACTERS_A_TOKEN = 4.0
# A text may have a few tokens fewer than its own beginning, but never only half as many.
_NEVER_HALF = 2
_CHUNK = 16
_NEAR = 96  # code points beyond a cut that fits; every other cut among them is tried
_ASIDE = 24  # code points on either side of a guessed place
_SEAMLESS = 4_096  # code points to search for a seam, at most
# Each step towards a limit covers most of the estimated distance, and the last one a little more. The estimate uses the
# code points per token so far, but at most this many, because whitespace says little about the text after it.
_MOST_OF_THE_WAY = 0.85
_FIRST_RATE = 2.5
_MOST_RATE = 8.0
_FEW = 256  # code points, too few for another step
_GUESSES = 8


class Measure:
    """Token counts of a text's parts, for counters of any kind."""

    #: Range beyond a fitting cut in which all cuts are tried, in code points; if 0, only some cuts are tried.
    near = 0
    #: Code points per token, as a first guess.
    rate = CHARACTERS_A_TOKEN

    def __init__(self, text: str, count: Count) -> None:
        self.text = text
        self.count = count

    def cost(self, head: int, marker: str, tail: int) -> int:
        """Count the text's tokens with `head` to `tail` replaced by a marker."""
        return self.count(f"{self.text[:head]}{marker}{self.text[tail:]}")

    def fits(self, limit: int, _front: bool = True, _back: bool = False) -> bool:
        """Return True if the whole text is within a limit."""
        chunk = int(_NEVER_HALF * CHARACTERS_A_TOKEN * limit) + _CHUNK * _CHUNK
        if (
            len(self.text) > 2 * chunk
            and self.count(self.text[:chunk]) > _NEVER_HALF * limit + _CHUNK
        ):
            return False
        return self.count(self.text) <= limit

    def bounds(self, _limit: int, _marker: str, _front: bool, _back: bool) -> tuple[int, int]:
        """Return a first guess and the maximum of the length to keep.

        Both lengths are in code points.
        """
        return 0, len(self.text) - 1


class SeamMeasure(Measure):
    """Token counts of a text's parts, added up at seams."""

    def __init__(self, text: str, count: Count) -> None:
        super().__init__(text, count)
        self.sides = _Side(text, count, False), _Side(text, count, True)

    def cost(self, head: int, marker: str, tail: int) -> int:
        """Count the text's tokens with `head` to `tail` replaced by a marker."""
        front, back = self.sides
        size = len(self.text)
        start, before = front.known(head)
        end, after = back.known(size - tail)
        return (
            before
            + self.count(f"{self.text[start:head]}{marker}{self.text[tail : size - end]}")
            + after
        )

    def fits(self, limit: int, front: bool = True, back: bool = False) -> bool:
        """Return True if the whole text is within a limit.

        Counting stops when the limit is exceeded.
        """
        sides = [side for side, is_read in zip(self.sides, (front, back), strict=True) if is_read]
        for side in sides:
            side.go_beyond(limit // len(sides))
        read = sum(side.places[-1] for side in sides)
        tokens = sum(side.tokens[-1] for side in sides)
        self.rate = read / max(1, tokens) or CHARACTERS_A_TOKEN
        if tokens > limit and read <= len(self.text):
            return False
        if len(sides) == 1 and read == len(self.text):
            return True
        return super().fits(limit)

    def bounds(self, limit: int, marker: str, front: bool, back: bool) -> tuple[int, int]:
        """Return a first guess and the maximum of the length to keep.

        Both lengths are in code points.
        """
        # The part of the marker between its seams has the same tokens next to any text, and the text has at least one
        # token.
        first = next_seam(marker, 1, len(marker)) or 0 if front else 0
        last = last_seam(marker, 0, len(marker)) if back else len(marker)
        remaining = limit - (self.count(marker) if marker else 0)
        full = limit - (self.count(marker[first:last]) if first < last else 0)
        if full <= 0:
            return 0, 0
        if front and back:
            self.near = 0
            return self._of_both(remaining), len(self.text) - 1
        side = self.sides[back]
        side.go_beyond(limit)
        side.know_around(max(0, min(remaining, full - 1)), full)
        first_full = bisect_left(side.tokens, full)
        top = side.places[first_full] if first_full < len(side.places) else len(self.text)
        low = side.places[max(0, bisect_right(side.tokens, remaining) - 1)]
        self.near = _NEAR if top - low <= _SEAMLESS else 0
        return low, top

    def _of_both(self, remaining: int) -> int:
        """Estimate the joint length of two equal ends from their tokens."""
        half = 0
        for _ in range(_GUESSES):
            sides_known = [side.known(half) for side in self.sides if half]
            tokens = sum(tokens + (half - place) / self.rate for place, tokens in sides_known)
            aimed = half
            half = min(len(self.text) // 2, half + int((remaining - tokens) * self.rate / 2))
            if abs(half - aimed) < _ASIDE:
                break
        return 2 * max(0, half)


class _Side:
    """The tokens from one end of a text up to each seam."""

    def __init__(self, text: str, count: Count, backwards: bool) -> None:
        self.text = text
        self.count = count
        self.backwards = backwards
        self.places = [0]
        self.tokens = [0]

    def known(self, tokens: int) -> tuple[int, int]:
        """Return the position and preceding tokens of a seam before a cut."""
        before = max(0, bisect_left(self.places, tokens) - 1)
        if tokens - self.places[before] > _NEAR:
            seam = self._seam(
                max(self.places[before], tokens - _SEAMLESS) + 1, tokens - 1, last=True
            )
            before = before if seam is None else self._insert(before, seam)
        return self.places[before], self.tokens[before]

    def go_beyond(self, limit: int) -> None:
        """Find seams up to the first seam beyond a number of tokens."""
        while self.tokens[-1] <= limit and (start := self.places[-1]) < len(self.text):
            if self.tokens[-1]:
                rate = min(_MOST_RATE, start / self.tokens[-1])
            else:
                rate = _FIRST_RATE
            left = rate * (limit - self.tokens[-1])
            end = start + int(
                _MOST_OF_THE_WAY * left if left > _FEW else left / _MOST_OF_THE_WAY + _ASIDE
            )
            seam = self._seam(end, end + _SEAMLESS)
            if seam is None:
                return
            self._insert(len(self.places) - 1, seam)

    def know_around(self, low: int, high: int) -> None:
        """Find all seams around the range from `low` to `high` tokens."""
        for _ in range(_GUESSES):
            first = max(0, bisect_right(self.tokens, low) - 1)
            last = bisect_right(self.tokens, high)
            if last == len(self.places):
                return
            start = self.places[first]
            end = self.places[last]
            rate = (end - start) / (self.tokens[last] - self.tokens[first])
            ahead = int((low - self.tokens[first]) * rate) - _ASIDE
            behind = int((self.tokens[last] - high) * rate) - _ASIDE
            if max(ahead, behind) < 2 * _ASIDE:
                break
            seam = self._seam(start + ahead if ahead > behind else end - behind, end - 1)
            if seam is None or seam == end:
                break
            self._insert(bisect_left(self.places, seam) - 1, seam)
        if end - start > _SEAMLESS:
            return
        size = len(self.text)
        low, high = (size - end, size - start) if self.backwards else (start, end)
        places = [low, *seams_between(self.text, low, high), high]
        counts = [self.count(self.text[before:after]) for before, after in pairwise(places)]
        if self.backwards:
            places = [size - place for place in reversed(places)]
            counts = counts[::-1]
        self.places[first : last + 1] = places
        self.tokens[first : last + 1] = accumulate(counts, initial=self.tokens[first])

    def _insert(self, before: int, place: int) -> int:
        """Return the index of the seam at `place`, inserting it if needed.

        A new seam is inserted after the index `before`.
        """
        start = self.places[before]
        after = before + 1
        if place == start:
            return before
        if after < len(self.places) and (end := self.places[after]) - place < place - start:
            tokens = self.tokens[after] - self._between(place, end)
        else:
            tokens = self.tokens[before] + self._between(start, place)
        self.places.insert(after, place)
        self.tokens.insert(after, tokens)
        return after

    def _seam(self, start: int, stop: int, last: bool = False) -> int | None:
        """Return the position of a seam between `start` and `stop`, or None.

        The seam is close to `start`, or close to `stop` if `last` is true. The text's end counts as a seam.
        """
        size = len(self.text)
        if start >= size:
            return size
        low, high = (
            (max(0, size - stop), size - start) if self.backwards else (start, min(size, stop))
        )
        if self.backwards == last:
            seam = next_seam(self.text, low, high)
        else:
            seam = next_seam(self.text, max(low, high - _ASIDE), high) or last_seam(
                self.text, low, high + 1
            )
            seam = seam if seam > low else None
        if seam is None:
            if self.backwards and low == 0 and not last:
                return size
            return None
        return size - seam if self.backwards else seam

    def _between(self, start: int, end: int) -> int:
        size = len(self.text)
        return self.count(
            self.text[size - end : size - start] if self.backwards else self.text[start:end]
        )


def measured(text: str, count: Count) -> Measure:
    """Return a text's measure, with seams if the counter supports them."""
    fresh: Count | None = getattr(count, "fresh", None)
    if fresh is None:
        return Measure(text, count)
    return SeamMeasure(text, fresh)
