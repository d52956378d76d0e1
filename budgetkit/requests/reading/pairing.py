"""Pairing: every tool result names the call that it answers, also where a format has no ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from budgetkit.requests.reading.located import located, placed
from budgetkit.requests.reading.paths import found

_MOST_WAITING = 1_000


@dataclass(slots=True)
class Pairing:
    """Hold the calls that were read so far: the tool of each by its id, and the ids of those without a result."""

    tools: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    # Calls of each tool that came without an id.
    named: Counter[str] = field(default_factory=Counter)

    def forget_answered(self) -> None:
        """Keep only the newest calls that wait, so that a conversation that goes on for ever takes no more memory."""
        del self.waiting[:-_MOST_WAITING]
        self.tools = {id: tool for id, tool in self.tools.items() if id in self.waiting}


def paired(messages: list[Any], strict: bool, pairing: Pairing | None = None) -> list[str]:
    """Give an id to calls and results that lack one, in order; return a note about results that answer no call.

    A result that answers nothing here, as where a server keeps what came before, becomes a function's message; a
    strict reader leaves it, to be refused. What is read in several goes takes the pairing of those before.
    """
    pairing = Pairing() if pairing is None else pairing
    orphans = 0
    for place, record in enumerate(messages):
        line, message = placed(record)
        if not isinstance(message, dict):
            continue
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                pairing.waiting.append(_identified(call, pairing))
        if message.get("role") == "tool" and not _answers(message, pairing) and not strict:
            orphans += 1
            answer = {name: value for name, value in message.items() if name != "tool_call_id"} | {
                "role": "function"
            }
            messages[place] = located(line, answer)
    if not orphans:
        return []
    return [f"tool results that answer no call here, counted as texts: {orphans:,}"]


def _identified(call: dict[str, Any], pairing: Pairing) -> str:
    """Return a call's id; a call without one gets its tool's name and a number."""
    name = str(found(call, "function.name|name") or "")
    if call.get("id") == "":
        pairing.named[name] += 1
        call["id"] = f"{name}-{pairing.named[name]}"
    id = str(call.get("id") or "")
    prefix, _, number = id.rpartition("-")
    # An id that was given here, and then saved.
    if prefix == name and number.isdecimal() and len(number) < 10:
        pairing.named[name] = max(pairing.named[name], int(number))
    pairing.tools[id] = name
    return id


def _answers(message: dict[str, Any], pairing: Pairing) -> bool:
    """Say whether a result answers a call; a result without an id takes that of the oldest waiting call."""
    id = message.get("tool_call_id")
    if id == "":
        name = message.get("name")
        of_this_tool = [call for call in pairing.waiting if pairing.tools[call] == name]
        candidates = of_this_tool or ([] if name else pairing.waiting)
        id = message["tool_call_id"] = (candidates or pairing.waiting or [""])[0]
    if id in pairing.waiting:
        pairing.waiting.remove(id)
    return isinstance(id, str) and bool(id) and id in pairing.tools
