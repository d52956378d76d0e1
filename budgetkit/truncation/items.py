"""The cut inside an item: what `budgetkit.fit` is handed as ``cut=``, so that it need not open text itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Protocol

from budgetkit.counters import count_of
from budgetkit.message import Message
from budgetkit.plan.item import Item
from budgetkit.requests import Framing, framing_of
from budgetkit.truncation.boundaries import By
from budgetkit.truncation.cutting import Counts, Keep, MarkerAt, truncate

__all__ = ["MARKERS", "Cutting", "cutter"]

Count = Callable[[str], int]

#: What stands where text was left out, by what the section keeps.
MARKERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "newest": "[older text is left out here]\n",
        "best": "\n[less relevant text is left out here]",
        "first": "\n[more text is left out here]",
    }
)
_STAYS: Final[Mapping[str, Keep]] = MappingProxyType(
    {"newest": "tail", "best": "head", "first": "head"}
)


class Cutting(Protocol):
    """What of an allocation decides how its items are cut."""

    @property
    def keep(self) -> str:
        """Which items stay: "first", "newest" or "best"."""
        ...

    @property
    def granularity(self) -> str:
        """Whether an item may be cut: "item" (no), "line" or "token"."""
        ...


def cutter(
    counter: Counts,
    framing: Framing | None = None,
    markers: Mapping[str, str] = MARKERS,
    marker_at: MarkerAt = "cut",
) -> Callable[[Item, int, Cutting], Item | None]:
    r"""Return a function that cuts one item to a number of tokens.

    Of an item kept as the newest its end stays, of any other its beginning.

    Parameters
    ----------
    counter : callable or str
        From text to tokens, or the name of a counter; the one that the items were counted with.
    framing : Framing, optional
        What a message costs beyond its text; the one that the items were counted with, OpenAI's when left out.
    markers : Mapping
        What stands where text was left out, for each of "newest", "best" and "first".
    marker_at : {"cut", "end"}
        Whether it stands there, or after what stays, as document 003 has it.

    Returns
    -------
    callable
        ``cut(item, limit, allocation)`` returns the item with its payload cut to at most `limit` tokens, message
        framing and marker included; or None, where no text would be left, not even the marker fits, or the item
        holds no text.

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

    def cut(item: Item, limit: int, allocation: Cutting) -> Item | None:
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
    text: str, limit: int, count: Count, cost: Count, keep: Keep, by: By, marker: str, at: MarkerAt
) -> str:
    """Cut a text by its own tokens where what surrounds it always costs the same, else by what both cost."""
    around = cost(marker) - count(marker)
    if around < limit and hasattr(count, "fresh"):
        cut_text = truncate(text, limit - around, count, keep, by, marker, marker_at=at)
        if cost(cut_text) <= limit:
            return cut_text
    return truncate(text, limit, cost, keep, by, marker, marker_at=at)


def _holder(
    payload: Any, count: Count, framing: Framing
) -> tuple[str, Count, Callable[[str], Any]] | None:
    """Return a payload's text, what the payload costs with any other, and the payload with it."""
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
