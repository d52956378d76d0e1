"""Streams: an answer that came in events is put together, with its usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from budgetkit.trace.importers.formats import table
from budgetkit.trace.importers.paths import found, unpacked

__all__ = ["assembled"]

Event = Mapping[str, Any]


def assembled(answer: Any) -> Any:
    r"""Join streamed events, given as a list or as text, into the answer they make; return anything else unchanged.

    >>> chunk = {"choices": [{"delta": {"content": "Hello"}}]}
    >>> assembled([chunk, chunk, {"choices": [], "usage": {"prompt_tokens": 9}}])
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'HelloHello'}], 'usage': {'prompt_tokens': 9}}
    """
    if isinstance(answer, str) and answer.startswith(("data:", "event:")):
        answer = [unpacked(line[5:].strip()) for line in answer.splitlines() if line.startswith("data:")]
    events = [event for event in answer if isinstance(event, dict)] if isinstance(answer, list) else []
    whole = next((at for event in events if isinstance(at := event.get("response"), dict) and "output" in at), None)
    if whole is not None and events[-1].get("type") == "response.completed":
        return events[-1]["response"]
    if events and all("candidates" in event or "usageMetadata" in event for event in events):
        parts = [part for event in events for part in found(event, "candidates.0.content.parts.*") or []]
        return {"role": "model", "parts": parts, "usage": _usage(events)}
    names = table("streams")
    if not any(found(event, names["mark"]) is not None for event in events):
        return answer
    return {"role": "assistant", "content": _blocks(events, names), "usage": _usage(events)}


def _blocks(events: Sequence[Event], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Join the pieces of each text, thought and call, in the order in which they began."""
    blocks: dict[tuple[str, str], dict[str, Any]] = {}
    for event in events:
        calls = found(event, names["calls"])
        for piece in calls if isinstance(calls, list) else [event]:
            at = str(found(piece, names["index"]))
            if isinstance(name := found(piece, names["name"]), str):
                call = {"type": "tool_call", "id": found(piece, names["id"]), "name": name, "arguments": ""}
                blocks.setdefault(("arguments", at), call)
            for field, kind in (("text", "text"), ("thinking", "thinking"), ("arguments", "tool_call")):
                if isinstance(text := found(piece, names[field]), str) and (text or field != "thinking"):
                    block = blocks.setdefault((field, at), {"type": kind, field: ""})
                    block[field] += text
    return list(blocks.values())


def _usage(events: Sequence[Event]) -> dict[str, Any]:
    """Merge the usage of several events; later values win."""
    told = [at for event in events if isinstance(at := found(event, table("streams")["usage"]), dict)]
    return {key: each for usage in told for key, each in usage.items() if each is not None}
