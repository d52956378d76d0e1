"""Pairing: every tool result names the call that it answers, also where a format has no ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.requests.located import located, placed
from budgetkit.requests.paths import found


def paired(messages: list[Any], strict: bool) -> list[str]:
    """Give an id to calls and results that lack one, in order; return a note about results that answer no call.

    A result that answers nothing here, as where a server keeps what came before, becomes a function's message; a
    strict reader leaves it, to be refused.
    """
    known: dict[str, str] = {}
    waiting: list[str] = []
    orphans = 0
    for place, record in enumerate(messages):
        line, message = placed(record)
        if not isinstance(message, dict):
            continue
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                waiting.append(_identified(call, known))
        if message.get("role") == "tool" and not _answers(message, known, waiting) and not strict:
            orphans += 1
            answer = {name: each for name, each in message.items() if name != "tool_call_id"} | {"role": "function"}
            messages[place] = located(line, answer)
    return [f"tool results that answer no call here, counted as texts: {orphans:,}"] if orphans else []


def _identified(call: dict[str, Any], known: dict[str, str]) -> str:
    """Return a call's id; a call without one gets its tool's name and a number."""
    name = str(found(call, "function.name|name") or "")
    if call.get("id") == "":
        call["id"] = f"{name}-{1 + sum(name == each for each in known.values())}"
    id = str(call.get("id") or "")
    known[id] = name
    return id


def _answers(message: dict[str, Any], known: Mapping[str, str], waiting: list[str]) -> bool:
    """Say whether a result answers a call; a result without an id takes that of the oldest waiting call."""
    id = message.get("tool_call_id")
    if id == "":
        name = message.get("name")
        named = [each for each in waiting if known[each] == name] or ([] if name else waiting)
        id = message["tool_call_id"] = (named or waiting or [""])[0]
    if id in waiting:
        waiting.remove(id)
    return isinstance(id, str) and bool(id) and id in known
