"""Pairing of tool calls with results, by id, tool name and order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from budgetkit.message import Data
from budgetkit.requests.reading.formats import value_at
from budgetkit.requests.reading.parts import as_list


@dataclass(slots=True)
class LocatedMessage:
    """A message with its line number in the file, for error messages."""

    line: int
    value: Any


def placed(record: Any) -> tuple[int | None, Any]:
    """Return a record's line number (or None) and the record itself."""
    if isinstance(record, LocatedMessage):
        return record.line, record.value
    return None, record


def raw_of(record: Any) -> Any:
    """Return a record without its line number."""
    return placed(record)[1]


def message_at_line(line: int | None, message: Any) -> Any:
    """Attach a line number to a message, if the number is known."""
    return message if line is None else LocatedMessage(line, message)


_MOST_WAITING = 1_000


@dataclass(slots=True)
class Pairing:
    """The tool calls read so far, with the ids of unanswered calls.

    Calls with no other messages between them have the same `group`. A result without an id answers a call of the last
    group, because an earlier call may never be answered.
    """

    tools: dict[str, str] = field(default_factory=dict)
    # Group of each unanswered call, by id.
    waiting: dict[str, int] = field(default_factory=dict)
    group: int = 0
    # Providers' formats of the messages so far.
    forms: set[str] = field(default_factory=set)
    # Number of calls of each tool without an id.
    named: Counter[str] = field(default_factory=Counter)

    def forget_answered(self) -> None:
        """Discard answered calls and all but the last 1,000 unanswered ones."""
        self.waiting = dict([*self.waiting.items()][-_MOST_WAITING:])
        self.tools = {id: tool for id, tool in self.tools.items() if id in self.waiting}


def pair_results(messages: list[Any], strict: bool, pairing: Pairing | None = None) -> list[str]:
    """Pair tool calls with their results, adding missing ids.

    A result without a call becomes a function message, because the call may be stored on a server. The returned list
    has one note with the number of such results, or is empty if there are none. In strict mode, such results are left
    unchanged and rejected later. If messages are read in several steps, `pairing` is the pairing of the earlier steps.
    """
    pairing = Pairing() if pairing is None else pairing
    orphans = 0
    for place, record in enumerate(messages):
        line, message = placed(record)
        if not isinstance(message, dict):
            continue
        calls = _calls_of(message)
        lacks_id = message.get("role") == "tool" and not message.get("tool_call_id")
        if lacks_id or not all(call.get("id") for call in calls):
            # The id is added to a copy.
            message = deepcopy(message)
            messages[place] = message_at_line(line, message)
            calls = _calls_of(message)
        pairing.group += message.get("role") != "assistant"
        for call in calls:
            pairing.waiting[_give_id(call, pairing)] = pairing.group
        if message.get("role") == "tool" and not _answers(message, pairing) and not strict:
            orphans += 1
            answer = {**message, "role": "function"}
            answer.pop("tool_call_id", None)
            messages[place] = message_at_line(line, answer)
    if not orphans:
        return []
    return [f"tool results without a call, counted as text: {orphans:,}"]


def call_order(messages: Sequence[Any]) -> list[int]:
    """Return the order that puts each tool result after its call.

    >>> call_order([{"role": "tool", "tool_call_id": "a"}, {"role": "assistant", "tool_calls": [{"id": "a"}]}])
    [1, 0]
    """
    return behind_calls(
        [value_at(message, "tool_calls.*.id") or () for message in messages],
        [value_at(m, "role") == "tool" and value_at(m, "tool_call_id") for m in messages],
    )


def behind_calls(called: Sequence[Sequence[Any]], answered: Sequence[Any]) -> list[int]:
    """Return the order that puts each answer after its call.

    For each message, `called` has the ids of its calls and `answered` the id of the call that it answers.

    >>> behind_calls([[], ["a"], []], ["a", None, "b"])
    [1, 0, 2]
    """
    first: dict[Any, int] = {}
    for place, ids in enumerate(called):
        for id in ids:
            if id and isinstance(id, str):
                first.setdefault(id, place)
    ranks = [
        max(place, first.get(id, place)) if isinstance(id, str) else place
        for place, id in enumerate(answered)
    ]
    return sorted(range(len(ranks)), key=lambda place: (ranks[place], place != ranks[place]))


def _calls_of(message: Data) -> list[Data]:
    return [call for call in as_list(message.get("tool_calls")) if isinstance(call, dict)]


def _give_id(call: Data, pairing: Pairing) -> str:
    """Return a call's id, adding one if it is missing.

    An added id has the form "look-1". The name of the call's tool is added to the pairing.
    """
    name = str(value_at(call, "function.name|custom.name|name") or "")
    if not call.get("id"):
        pairing.named[name] += 1
        call["id"] = f"{name}-{pairing.named[name]}"
    id = str(call.get("id") or "")
    prefix, _, number = id.rpartition("-")
    # An id that this function gave before the messages were saved.
    if prefix == name and number.isdecimal() and len(number) < 10:
        pairing.named[name] = max(pairing.named[name], int(number))
    pairing.tools[id] = name
    return id


def _answers(message: Data, pairing: Pairing) -> bool:
    """Mark the call that a result answers as answered.

    Return True if there is such a call. A result without an id gets the id of an unanswered call: if possible one of
    the same tool, and of several calls the first one in the last group.
    """
    id = message.get("tool_call_id")
    if not id:
        name = message.get("name")
        of_this_tool = [call for call in pairing.waiting if pairing.tools[call] == name]
        candidates = of_this_tool or pairing.waiting
        # The first call of the newest group.
        id = max(candidates, key=pairing.waiting.__getitem__, default="")
        message["tool_call_id"] = id
    if not id or not isinstance(id, str):
        return False
    pairing.waiting.pop(id, None)
    return id in pairing.tools
