"""Streams: the events in which an answer came, as the answer they make, with what was counted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from budgetkit.trace.importers.paths import found

__all__ = ["assembled"]

Event = Mapping[str, Any]


def assembled(answer: Any) -> Any:
    r"""Return the answer that a list of events makes, or a text of them ("data: ..."); all else as it is.

    >>> chunk = {"choices": [{"delta": {"content": "Hello"}}]}
    >>> assembled([chunk, chunk, {"choices": [], "usage": {"prompt_tokens": 9}}])
    {'role': 'assistant', 'content': 'HelloHello', 'usage': {'prompt_tokens': 9}}
    """
    if isinstance(answer, str) and answer.startswith(("data:", "event:")):
        answer = list(map(_event, (line[5:].strip() for line in answer.splitlines() if line.startswith("data:"))))
    if not isinstance(answer, list) or not answer:
        return answer
    events = [event for event in answer if isinstance(event, Mapping)]
    whole = next(
        (e["response"] for e in reversed(events) if _kind(e) == "response.completed" and "response" in e), None
    )
    if isinstance(whole, Mapping):
        return whole
    if any(_kind(event) == "message_start" for event in events):
        return _anthropic(events)
    if any(found(event, "choices.0.delta") is not None for event in events):
        return _openai(events)
    if events and all("candidates" in event or "usageMetadata" in event for event in events):
        parts = [part for event in events for part in found(event, "candidates.0.content.parts.*") or []]
        return {"role": "model", "parts": parts, "usageMetadata": _last(events, "usageMetadata")}
    if any("contentBlockDelta" in event for event in events):
        return _bedrock(events)
    return answer


def _event(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _kind(event: Event) -> Any:
    return event.get("type")


def _last(events: Sequence[Event], path: str) -> Any:
    return next((at for event in reversed(events) if (at := found(event, path)) is not None), None)


def _joined(events: Sequence[Event], path: str) -> str:
    return "".join(text for event in events if isinstance(text := found(event, path), str))


def _openai(events: Sequence[Event]) -> dict[str, Any]:
    calls: dict[Any, dict[str, Any]] = {}
    for delta in (each for event in events for each in found(event, "choices.0.delta.tool_calls") or []):
        if isinstance(delta, Mapping):
            call = calls.setdefault(
                str(delta.get("index")), {"id": "", "type": "function", "name": "", "arguments": ""}
            )
            call["id"] = call["id"] or str(delta.get("id") or "")
            for name in ("name", "arguments"):
                call[name] += str(found(delta, f"function.{name}") or "")
    said: dict[str, Any] = {"role": "assistant", "content": _joined(events, "choices.0.delta.content") or None}
    if calls:
        said["tool_calls"] = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in calls.values()
        ]
    usage = _last(events, "usage|x_groq.usage")
    return {**said, "usage": usage} if usage else said


def _anthropic(events: Sequence[Event]) -> dict[str, Any]:
    blocks: dict[str, dict[str, Any]] = {}
    for event in events:
        start, delta, at = event.get("content_block"), event.get("delta"), str(event.get("index"))
        if isinstance(start, Mapping):
            blocks[at] = dict(start)
        if isinstance(delta, Mapping) and at in blocks:
            for name, field in (("text", "text"), ("thinking", "thinking"), ("partial_json", "input")):
                if isinstance(piece := delta.get(name), str):
                    before = blocks[at].get(field)
                    blocks[at][field] = (before if isinstance(before, str) else "") + piece
    usage: dict[str, Any] = {}
    for event in events:
        usage |= {k: v for k, v in (found(event, "message.usage|usage") or {}).items() if v is not None}
    return {"role": "assistant", "content": list(blocks.values()), "usage": usage}


def _bedrock(events: Sequence[Event]) -> dict[str, Any]:
    blocks: dict[str, dict[str, Any]] = {}
    for event in events:
        at = str(found(event, "contentBlockStart.contentBlockIndex|contentBlockDelta.contentBlockIndex"))
        if isinstance(use := found(event, "contentBlockStart.start.toolUse"), Mapping):
            blocks[at] = {"toolUse": {**use, "input": ""}}
        if isinstance(text := found(event, "contentBlockDelta.delta.text"), str):
            blocks.setdefault(at, {"text": ""})
            blocks[at]["text"] = blocks[at].get("text", "") + text
        if isinstance(text := found(event, "contentBlockDelta.delta.toolUse.input"), str) and "toolUse" in blocks.get(
            at, {}
        ):
            blocks[at]["toolUse"]["input"] += text
    return {"role": "assistant", "content": list(blocks.values()), "usage": _last(events, "metadata.usage")}
