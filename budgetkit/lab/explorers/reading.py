"""Reading: messages as blocks of the view's reader, and a cut shown at the character where it falls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from budgetkit.counters.encodings import replace_surrogates
from budgetkit.message import RESULT_ROLES, Message

Data = dict[str, Any]
LONGEST: Final = 700  # characters of one message
BESIDE_CUT: Final = 300  # characters on each side of a cut


def speaker(message: Message) -> str:
    """Return who speaks, and which tool."""
    called = message.raw.get("name")
    if message.role in RESULT_ROLES:
        role = "tool result"
    else:
        role = message.role
    return replace_surrogates(f"{role} ({called})" if isinstance(called, str) and called else role)


def words(message: Message) -> str:
    """Return a message's text and calls."""
    calls = [f"\u2192 {call.name}({call.arguments})" for call in message.tool_calls]
    return "\n".join(filter(None, (message.text, *calls)))


def whole(text: str) -> list[Data]:
    """Return a text as the reader's pieces, cut where it is too long for a page."""
    pieces = [{"text": replace_surrogates(text[:LONGEST])}]
    if len(text) > LONGEST:
        pieces.append({"text": f" \u2026 {len(text) - LONGEST:,} more characters"})
    return pieces


def seam(before: str, after: str, markers: Iterable[str]) -> tuple[str, str, str]:
    """Return what of a cut text stands before the cut, what was cut away, and what stands after it.

    Examples
    --------
    >>> seam("one two three", "one[...]", ["[...]"]), seam("one two three", "[...]three", ["[...]"])
    (('one', ' two three', ''), ('', 'one two ', 'three'))
    """
    for marker in (*markers, ""):
        head, results, tail = after.partition(marker) if marker else (after, "", "")
        fits = (
            len(head) + len(tail) <= len(before)
            and before.startswith(head)
            and before.endswith(tail)
        )
        if fits and (results or not marker):
            return head, before[len(head) : len(before) - len(tail)], tail
    return after, "", ""


def parted(before: str, after: str, markers: Iterable[str]) -> list[Data]:
    """Return a cut text as pieces: what stays, and what was cut away struck out, near the cut."""
    head, gone, tail = seam(before, after, markers)
    return [
        *_part(head, False, True),
        *_part(gone, bool(head), bool(tail), struck=True),
        *_part(tail, True, False),
    ]


def _part(text: str, from_start: bool, from_end: bool, struck: bool = False) -> Iterator[Data]:
    """Give the ends of a part that touch a cut, and how much lies between them or beyond."""
    if not text:
        return
    more = {"struck": True} if struck else {}
    long = len(text) > BESIDE_CUT * (from_start + from_end)
    if not long:
        yield {"text": replace_surrogates(text), **more}
        return
    left = len(text) - BESIDE_CUT * (from_start + from_end)
    if from_start:
        yield {"text": replace_surrogates(text[:BESIDE_CUT]), **more}
    yield {"text": f" \u2026 {left:,} more characters \u2026 "}
    if from_end:
        yield {"text": replace_surrogates(text[-BESIDE_CUT:]), **more}
