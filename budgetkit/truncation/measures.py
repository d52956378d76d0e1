"""Token counts of a text with a part cut out.

An exact counter adds up the counts of known parts; any other counter counts the whole text.

An exact counter's counts add up at certain split points ("seams", :mod:`budgetkit.counters.exact`). So the tokens up
to some seams are counted once, in short steps from the ends, and all seams near the cut are known. Trying a cut then
counts only the few words between the cut's last seam and the marker, and a cut with too many tokens before its last
seam is skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from budgetkit.counters.exact import last_seam, next_seam

Count = Callable[[str], int]

CHARACTERS_A_TOKEN = 4.0
# A text may have a few tokens fewer than its own beginning, but never only half as many.
_NEVER_HALF = 2
_CHUNK = 16
_NEAR = 96  # code points beyond a cut that fits; every other cut among them is tried
_STEP = 128  # code points between two seams that are counted on the way to a limit
_SEAMLESS = 4_096  # code points to search for a seam, at most


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
        size = len(self.text)
        if front and back:
            # Two equal ends, by the tokens up to the seams before the cuts.
            self.near = 0
            fitting = bisect_right(
                range(size // 2 + 1),
                remaining,
                key=lambda half: sum(side.known(half)[1] for side in self.sides),
            )
            return 2 * max(0, fitting - 1), size - 1
        side = self.sides[back]
        side.know_between(max(0, min(remaining, full - 1)), full)
        first_full = bisect_left(side.tokens, full)
        top = side.places[first_full] if first_full < len(side.places) else size
        low = side.places[max(0, bisect_right(side.tokens, remaining) - 1)]
        self.near = _NEAR if top - low <= _SEAMLESS else 0
        return low, top


class _Side:
    """The tokens up to some seams, from one end of a text.

    Positions are distances from that end, in code points.
    """

    def __init__(self, text: str, count: Count, backwards: bool) -> None:
        self.text = text
        self.count = count
        self.backwards = backwards
        self.places = [0]
        self.tokens = [0]

    def known(self, length: int) -> tuple[int, int]:
        """Return the last known seam before a cut.

        The result has the seam's position and the tokens up to the seam.
        """
        before = max(0, bisect_left(self.places, length) - 1)
        return self.places[before], self.tokens[before]

    def go_beyond(self, limit: int, step: int = _STEP) -> None:
        """Find seams up to the first seam beyond a number of tokens.

        Each step has at least `step` code points. A stretch without seams is crossed in longer steps.
        """
        size = len(self.text)
        ahead = step
        while self.tokens[-1] <= limit and (start := self.places[-1]) < size:
            end = self._seam(start + ahead)
            if end is None:
                ahead = 2 * max(ahead, _SEAMLESS)
                continue
            part = self.text[size - end : size - start] if self.backwards else self.text[start:end]
            self.places.append(end)
            self.tokens.append(self.tokens[-1] + self.count(part))
            ahead = step

    def know_between(self, low: int, high: int) -> None:
        """Find every seam from `low` tokens to beyond `high` tokens."""
        self.go_beyond(low)
        stays = bisect_right(self.tokens, low)
        del self.places[stays:], self.tokens[stays:]
        self.go_beyond(high, 1)

    def _seam(self, place: int) -> int | None:
        """Return the next seam from a position on, or None.

        A seam that is more than 4,096 code points away is not searched for. The text's other end counts as a seam.
        """
        size = len(self.text)
        if not self.backwards or place >= size:
            return next_seam(self.text, place, min(size, place + _SEAMLESS))
        low = max(0, size - place - _SEAMLESS)
        seam = last_seam(self.text, low, size - place + 1)
        if low < seam or low == 0:
            return size - seam
        return None


def measured(text: str, count: Count) -> Measure:
    """Return a text's measure, with seams if the counter supports them."""
    fresh: Count | None = getattr(count, "fresh", None)
    if fresh is None:
        return Measure(text, count)
    return SeamMeasure(text, fresh)
