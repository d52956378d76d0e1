"""The newest messages that fit: what `trim` keeps in the usual case, read off without the engine.

Where the oldest go first and nothing need be cut inside, the engine's answer is a suffix: beside system messages and
the last question as many of the newest units as the window has room for. A unit is a message, or calls with their
results. Only what may fit is counted. Where it takes more than choosing, there is no answer here, and the engine's is
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from budgetkit.framing import Framing
from budgetkit.framing.providers import OpenAIRules
from budgetkit.framing.request import Request
from budgetkit.live.reading import is_plain
from budgetkit.message import Message
from budgetkit.trace.turns import SYSTEM_ROLES

Count = Callable[[str], int]
Raw = dict[str, Any]
Unit = tuple[int, int, str | None]  # first message, the one after the last, and the text of a plain one
_SPEAKERS = ("user", "assistant", *SYSTEM_ROLES)
_TEXT = {"role", "content"}
_BLOCK = 32  # units that are counted at once; then twice as many


def newest(
    said: Sequence[Any], most: int, count: Count, tools: Sequence[Mapping[str, Any]], framing: Framing
) -> tuple[list[Raw], bool] | None:
    """Return the newest messages that fit, and whether they do; where not, the engine may cut inside the newest.

    Examples
    --------
    >>> said = [{"role": role, "content": "four"} for role in ("user", "assistant", "user")]
    >>> kept, fits = newest(said, 13, len, (), Framing(per_message=2))
    >>> [each["role"] for each in kept], fits
    (['assistant', 'user'], True)
    """
    if framing.rules is not None and not isinstance(framing.rules, OpenAIRules):
        return None  # what a message costs may depend on those beside it
    if (found := _units(said)) is None:
        return None
    raws, units, stay = found
    size = _sizing(raws, count, framing)
    first = next((raws[i] for i, *_ in stay if raws[i]["role"] in SYSTEM_ROLES), None)
    room = most - framing.priming - sum(size(stay))
    room -= framing.schemas(tools, count, [first] if first else []) if tools else 0
    oldest = len(raws)
    for (start, *_), tokens in _counted(units, size):
        if tokens > room:
            break
        room, oldest = room - tokens, start
    fits = room >= 0 and (oldest < len(raws) or not units)
    oldest = oldest if fits or not units else units[-1][0]
    return [dict(raws[i]) for i, *_ in stay if i < oldest] + [dict(raw) for raw in raws[oldest:]], fits


def _units(said: Sequence[Any]) -> tuple[list[Raw], list[Unit], list[Unit]] | None:
    """List the units that may leave and those that stay; None where a message is not plain or a call not answered."""
    raws: list[Any] = [each.raw if type(each) is Message else each for each in said]
    roles = [raw.get("role") if isinstance(raw, dict) else None for raw in raws]
    asked = len(raws) - 1 - roles[::-1].index("user") if "user" in roles else -1
    leave: list[Unit] = []
    stay: list[Unit] = []
    waiting, known = set[str](), set[str]()
    for i, (raw, role) in enumerate(zip(raws, roles, strict=True)):
        text = raw["content"] if role in _SPEAKERS and raw.keys() == _TEXT and type(raw["content"]) is str else None
        if text is None and (role is None or "contexts" in raw or not is_plain(said[i])):
            return None
        if role == "tool" and raw.get("tool_call_id") in waiting and not raw.get("tool_calls"):
            waiting.remove(raw["tool_call_id"])
            leave[-1] = (leave[-1][0], i + 1, None)
            continue
        if waiting or role not in _SPEAKERS or "tool_call_id" in raw:
            return None
        if text is None and (calls := Message(raw).tool_calls):
            waiting = {call.id for call in calls}
            if role != "assistant" or "" in waiting or len(waiting) < len(calls) or waiting & known:
                return None
            known |= waiting
        (stay if i == asked or role in SYSTEM_ROLES else leave).append((i, i + 1, text))
    return None if waiting else (raws, leave, stay)


def _counted(units: Sequence[Unit], size: Callable[[Sequence[Unit]], list[int]]) -> Iterator[tuple[Unit, int]]:
    """Give units and their tokens from the newest on, counted a block at a time."""
    end, block = len(units), _BLOCK
    while end > 0:
        here = units[max(0, end - block) : end]
        yield from zip(reversed(here), reversed(size(here)), strict=True)
        end, block = end - block, 2 * block


def _sizing(said: Sequence[Raw], count: Count, framing: Framing) -> Callable[[Sequence[Unit]], list[int]]:
    """Return what counts units: a plain one is its text and what a message of its speaker costs beyond it."""
    beyond = {role: fixed + sum(map(count, texts)) for role, (fixed, texts) in _beyond(framing).items()}
    many = getattr(count, "many", None) or (lambda texts: [*map(count, texts)])

    def size(units: Sequence[Unit]) -> list[int]:
        plain = many([text for _, _, text in units if text is not None]) if beyond else []
        counts = iter(plain)
        return [
            sum(framing.messages(said[start:end], count))
            if text is None or not beyond
            else next(counts) + beyond[said[start]["role"]]
            for start, end, text in units
        ]

    return size


@cache
def _beyond(framing: Framing) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Read off what a message costs beyond its text, by speaker: tokens and texts; nothing where texts are joined."""
    found = {}
    for role in _SPEAKERS:
        charges = framing.charges(Request("chat", messages=(Message({"role": role, "content": "\0"}),)))
        (charge,) = (charge for charge in charges if charge.message is not None)
        if charge.texts[:1] != ("\0",):
            return {}
        found[role] = (charge.fixed, charge.texts[1:])
    return found
