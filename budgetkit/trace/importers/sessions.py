"""Sessions of coding agents, an event a line: Claude Code, and pi, which writes much the same.

Claude Code writes an answer in several lines, one for each block, all of one message id; they are joined. What
its sub-agents said ("side chains") is a conversation of its own. Lines that hold no message are kept aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from budgetkit.trace.importers.blocks import chat_messages
from budgetkit.trace.importers.usage import usage_of
from budgetkit.trace.jsonl import LocatedMessage, Numbered

Raw = Mapping[str, Any]
_EVENTS = ("user", "assistant", "system", "summary", "message", "session", "file-history-snapshot", "model_change")
_BESIDE = ("message",)


def matches(value: Raw) -> bool:
    """Say whether a line is an event of a session."""
    return value.get("type") in _EVENTS and "role" not in value and "messages" not in value


def conversations(numbered: Iterable[Numbered]) -> Iterator[Numbered]:
    """Read a session."""
    events: list[tuple[int, Any]] = []
    others: list[tuple[int, Any]] = []
    for line, value in numbered:
        holds = isinstance(value, Mapping) and isinstance(value.get("message"), Mapping)
        (events if holds else others).append((line, value))
    for side in (False, True):
        chain = [(line, event) for line, event in events if bool(event.get("isSidechain")) is side]
        if chain:
            yield chain[0][0], _conversation(chain, [] if side else [value for _, value in others], side)


def _conversation(events: list[tuple[int, Raw]], others: list[Any], side: bool) -> dict[str, Any]:
    messages: list[LocatedMessage] = []
    usage: list[dict[str, Any]] = []
    for line, event, said in _joined(events):
        messages += [LocatedMessage(line, {**message, **_about(event)}) for message in chat_messages(said)]
        found = usage_of(said.get("usage"), len(messages) - 1, said.get("model"))
        if found is not None and found["context_tokens"]:
            usage.append(found)
    first = {**events[0][1], **next((o for o in others if isinstance(o, Mapping) and o.get("type") == "session"), {})}
    name = first.get("sessionId") or (first.get("id") if first.get("type") == "session" else None)
    id = f"{name} side chain" if name and side else name
    return {"id": id, "messages": messages, "usage": usage, "other_lines": others, "format": "session"}


def _joined(events: list[tuple[int, Raw]]) -> Iterator[tuple[int, Raw, dict[str, Any]]]:
    """Give each message once, with all of its blocks, and the role under its usual name."""
    held: tuple[int, Raw, dict[str, Any]] | None = None
    for line, event in events:
        said = _named(event["message"])
        id = said.get("id")
        if held and id and held[2].get("id") == id and held[2].get("role") == said.get("role"):
            held = (held[0], held[1], {**held[2], **said, "content": [*_list(held[2]), *_list(said)]})
            continue
        if held:
            yield held
        held = (line, event, said)
    if held:
        yield held


def _named(message: Raw) -> dict[str, Any]:
    if message.get("role") != "toolResult":
        return dict(message)
    result = {
        "type": "tool_result",
        "tool_use_id": message.get("toolCallId"),
        "content": message.get("content"),
        "is_error": message.get("isError"),
    }
    return {**message, "role": "user", "content": [result]}


def _list(message: Raw) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": str(content)}]


def _about(event: Raw) -> dict[str, Any]:
    """Keep what an event says about its message: when, where, by whom."""
    kept = {name: field for name, field in event.items() if name not in _BESIDE}
    return {"event": kept, **({"timestamp": kept["timestamp"]} if "timestamp" in kept else {})}
