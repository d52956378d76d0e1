"""Truncate a text to a number of tokens, with a marker.

A cut is defined by the number of code points kept. Tokens are counted on the final text, marker included, so the result
is within the limit for any counter. A search finds the number of code points. It counts a few texts about as long as
the result, however long the original text is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from budgetkit.budget.allocation import Allocation, check_all, check_choice
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.budget.errors import out_of_range
from budgetkit.counters import count_of
from budgetkit.counters.protocol import as_counter
from budgetkit.message import Message
from budgetkit.models import Model
from budgetkit.plan import Item
from budgetkit.plan.fitting import Cut
from budgetkit.requests import Framing, framing_of
from budgetkit.truncation.boundaries import Boundaries, By
from budgetkit.truncation.measures import Count, Measure, measured

__all__ = ["By", "Keep", "MarkerAt", "truncate"]

Keep = Literal["head", "tail", "middle"]
MarkerAt = Literal["cut", "end"]

Counts = Count | str | Model

MARKERS: dict[str, str] = {
    "head": "\n[the rest is left out]",
    "tail": "[earlier text is left out]\n",
    "middle": "\n[a part is left out]\n",
}
# A longer text may have fewer tokens, if its last letters form a whole word. So some longer cuts are tried as well,
# the longest first.
_FURTHER = (24, 16, 12, 8, 6, 4, 3, 2)
_FAR = 8  # tokens; removing a character saves one or two


def truncate(
    text: str,
    limit: int,
    counter: Counts,
    keep: Keep = "head",
    by: By = "token",
    marker: str | None = None,
    marker_inside: bool = True,
    marker_at: MarkerAt = "cut",
) -> str:
    r"""Cut a text to a number of tokens.

    Parameters
    ----------
    text : str
        The text. A text that fits is returned unchanged, without a marker.
    limit : int
        Maximum tokens of the result, at least 0. A limit of 0 gives ``""``, or the marker alone if `marker_inside` is
        false.
    counter : callable or str
        Function that counts the tokens in a text, exact or not, or a counter's name.
    keep : {"head", "tail", "middle"}
        The part to keep: the beginning, the end, or equal parts of both.
    by : {"token", "line", "sentence"}
        Positions of the cut: between graphemes, lines or sentences. If not even one line or sentence fits, the text is
        cut between graphemes.
    marker : str, optional
        Marker for the omitted text, or ``""`` for none. Default: budgetkit's own, such as "[the rest is left out]". The
        marker is omitted if no text would fit together with the marker.
    marker_inside : bool
        If true, the marker counts towards the limit. If false, the marker is added to the cut text and may exceed the
        limit, as in document 003.
    marker_at : {"cut", "end"}
        Position of the marker: where text was omitted, or at the end of the result, as in document 003.

    Returns
    -------
    str
        The cut text and the marker. If the marker counts towards the limit, text and marker together are within the
        limit for any counter that gives 0 for ``""``. No grapheme is split.

    Raises
    ------
    ValueError
        If the limit is negative or not whole, or `keep`, `by` or `marker_at` is unknown.

    Examples
    --------
    >>> words = lambda text: len(text.split())
    >>> truncate("one two three four five six", 4, words, marker=" [...]")
    'one two three [...]'
    >>> truncate("first line\nsecond line\nthird line", 5, words, keep="tail", by="line", marker="[...]\n")
    '[...]\nsecond line\nthird line'
    """
    check_all("text", [text], str)
    if type(limit) is not int or not 0 <= limit <= MOST_TOKENS:
        raise ValueError(out_of_range("limit", limit, f"a whole number from 0 to {MOST_TOKENS:,}"))
    check_choice("keep", keep, get_args(Keep))
    check_choice("by", by, get_args(By))
    check_choice("marker_at", marker_at, get_args(MarkerAt))
    count = count_of(counter)
    if not hasattr(count, "fresh"):  # a plain function, not a counter
        count = as_counter(count)
    measure = measured(text, count)
    if measure.fits(limit, keep != "tail", keep != "head"):
        return text
    marker = MARKERS[keep] if marker is None else marker
    boundaries = Boundaries(text)
    if not marker_inside:
        return _Cut(measure, boundaries, limit, keep, by, "").longest + marker
    if marker_at == "end" and keep != "head":
        return _marked_at_the_end(text, limit, count, keep, by, marker)
    ways = dict.fromkeys(
        (keep, way, mark) for way, mark in [(by, marker), ("token", marker), ("token", "")]
    )
    # Where both ends do not fit together, one of them may fit alone.
    if keep == "middle":
        ways |= dict.fromkeys(
            (end, "token", mark) for mark in (marker, "") for end in ("head", "tail")
        )
    for way in ways:
        if longest := _Cut(measure, boundaries, limit, *way).longest:
            return longest
    return ""


def _marked_at_the_end(text: str, limit: int, count: Count, keep: Keep, by: By, marker: str) -> str:
    """Cut a text so that a marker fits at its end.

    If the text and its marker together exceed the limit, a shorter text is tried. If no text fits beside the marker,
    the marker is omitted.
    """
    for remaining in range(limit - count(marker), 0, -1):
        head = truncate(text, remaining, count, keep, by, "")
        if count(head + marker) <= limit:
            return head + marker
    return truncate(text, limit, count, keep, by, "")


class _Cut(NamedTuple):
    """A cut of a text, defined by limit, kept part and marker."""

    measure: Measure
    boundaries: Boundaries
    limit: int
    keep: Keep
    by: By
    marker: str

    @property
    def longest(self) -> str:
        """The longest cut within the limit, or "" if no text fits."""
        low, top = self.measure.bounds(
            self.limit, self.marker, self.keep != "tail", self.keep != "head"
        )
        spare = self.limit - self._cost(low)
        if spare < 0:
            low = self._aim(0, low, self.limit)
        elif top - low > self.measure.near:
            low = self._aim(low, top + 1, spare)
        head, tail = self._edges(self._grown(low, top))
        text = self.measure.text
        if head or tail < len(text):
            return f"{text[:head]}{self.marker}{text[tail:]}"
        return ""

    def _edges(self, tokens: int) -> tuple[int, int]:
        """Return the ends of the omitted part, for a length to keep.

        At most `tokens` code points are kept.
        """
        text = self.measure.text
        front = {"head": tokens, "tail": 0, "middle": tokens - tokens // 2}[self.keep]
        back = tokens - front
        head = self.boundaries.end(self.by, front) if front else 0
        return head, self.boundaries.start(self.by, len(text) - back) if back else len(text)

    def _cost(self, tokens: int) -> int:
        head, tail = self._edges(tokens)
        return self.measure.cost(head, self.marker, tail)

    def _grown(self, fits: int, top: int) -> int:
        """Return the first size that fits, trying larger sizes first.

        Sizes whose cuts are far over the limit are tried in larger steps. If the measure's `near` is 0, only a few
        sizes above `fits` are tried. If no larger size fits, the result is `fits`.
        """
        if not self.measure.near:
            further = (
                fits + more for more in _FURTHER if fits + more <= top and self.by == "token"
            )
            return next((size for size in further if self._cost(size) <= self.limit), fits)
        top = min(top, fits + self.measure.near)
        while top > fits:
            head, tail = self._edges(top)
            over = self.measure.cost(head, self.marker, tail) - self.limit
            if over <= 0:
                return top
            top = min(top, head + len(self.measure.text) - tail) - max(1, over // _FAR)
        return fits

    def _aim(self, fits: int, over: int, spare: int) -> int:
        """Find the largest number of code points that can be kept.

        The search keeps one size that fits and one that does not. The first step takes the spare tokens, converted to
        code points; each further step is twice as long, up to the middle of both sizes.
        """
        step = max(1, round(spare * self.measure.rate))
        while over - fits > 1:
            place = min(fits + step, (fits + over) // 2)
            if self._cost(place) <= self.limit:
                fits = place
                step *= 2
            else:
                over = place
        return fits


#: The marker for omitted text, by the items that a section keeps.
SECTION_MARKERS: Mapping[str, str] = MappingProxyType(
    {
        "newest": "[older text is left out here]\n",
        "best": "\n[less relevant text is left out here]",
        "first": "\n[more text is left out here]",
    }
)
_STAYS: Mapping[str, Keep] = MappingProxyType({"newest": "tail", "best": "head", "first": "head"})


def cutter(
    counter: Counts,
    framing: Framing | None = None,
    markers: Mapping[str, str] = SECTION_MARKERS,
    marker_at: MarkerAt = "cut",
) -> Cut:
    r"""Return a function that cuts one item to a number of tokens.

    If the section keeps the newest items, the end of an item is kept; otherwise, the beginning is kept.

    Parameters
    ----------
    counter : callable or str
        The function that counted the tokens of the items, or the counter's name.
    framing : Framing, optional
        Tokens that a message costs beyond its text, as they were counted for the items. Default: OpenAI's framing.
    markers : Mapping
        Markers for omitted text, for sections that keep the "newest", the "best" or the "first" items.
    marker_at : {"cut", "end"}
        Position of the marker: where text was omitted, or at the end, as in document 003.

    Returns
    -------
    callable
        A function of an item, a limit and an allocation. It returns the item with its payload cut to at most `limit`
        tokens, message framing and marker included. It returns None if no text would be left, if the marker does not
        fit, if the item has no text, or if the allocation's granularity is "item".

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> cut = cutter(lambda text: len(text.split()), Framing(per_message=3), {"newest": "[...]\n"})
    >>> note = Item("history", 8, payload=Message({"role": "user", "content": "one two three four five"}))
    >>> shorter = cut(note, 6, SimpleNamespace(keep="newest", granularity="token"))
    >>> shorter.tokens, shorter.payload.text
    (6, '[...]\n four five')
    """
    framing = framing_of(counter, framing)
    count = count_of(counter)

    def cut(item: Item, limit: int, allocation: Allocation) -> Item | None:
        holder = _holder(item.payload, count, framing)
        if holder is None or allocation.granularity == "item" or limit < 1:
            return None
        text, cost, count_so_far = holder
        by: By = "line" if allocation.granularity == "line" else "token"
        keep = _STAYS[allocation.keep]
        marker = markers[allocation.keep]
        text_left = _truncated(text, limit, count, cost, keep, by, marker, marker_at)
        at_start = keep == "tail" and marker_at == "cut"
        if not text_left or not (
            text_left == text or (text_left.startswith if at_start else text_left.endswith)(marker)
        ):
            return None
        return replace(item, tokens=cost(text_left), payload=count_so_far(text_left))

    return cut


def _truncated(
    text: str,
    limit: int,
    count: Count,
    cost: Count,
    keep: Keep,
    by: By,
    marker: str,
    at: MarkerAt,
) -> str:
    """Cut a text so that its message stays within a limit.

    If the message has a fixed cost beyond the text, only the text is counted, otherwise the whole message.
    """
    around = cost(marker) - count(marker)
    if around < limit and hasattr(count, "fresh"):
        cut_text = truncate(text, limit - around, count, keep, by, marker, marker_at=at)
        if cost(cut_text) <= limit:
            return cut_text
    return truncate(text, limit, cost, keep, by, marker, marker_at=at)


def _holder(
    payload: Any, count: Count, framing: Framing
) -> tuple[str, Count, Callable[[str], Any]] | None:
    """Return a payload's text, and functions to count and replace it.

    The result is None for a payload without a text.
    """
    if isinstance(payload, str):
        return payload, count, str
    if isinstance(payload, Mapping):
        message = Message(payload)
        return (
            message.text,
            _framed(message, count, framing),
            lambda text: dict(message.with_text(text).raw),
        )
    if isinstance(payload, Message) and payload.text:
        return payload.text, _framed(payload, count, framing), payload.with_text
    return None


def _framed(message: Message, count: Count, framing: Framing) -> Count:
    return lambda text: framing.message(message.with_text(text), count)
