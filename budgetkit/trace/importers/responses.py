"""OpenAI Responses: instructions, and an input that is a text or a list of items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Raw = Mapping[str, Any]


def matches(value: Raw) -> bool:
    """Say whether a value is a request to OpenAI's Responses interface."""
    return isinstance(value.get("input"), str | list) and "messages" not in value


def conversation(value: Raw) -> dict[str, Any]:
    """Read a request's body.

    Examples
    --------
    >>> body = {"instructions": "Be brief.", "input": "Hello world"}
    >>> [message["content"] for message in conversation(body)["messages"]]
    ['Be brief.', 'Hello world']
    """
    given = value["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = chat_messages(items)
    if instructions := value.get("instructions"):
        first = {"role": "system", "content": instructions, "native": instructions}
        messages = [first, *messages] if isinstance(instructions, str) else [*chat_messages(instructions), *messages]
    rest = {name: field for name, field in value.items() if name not in ("input", "instructions")}
    return {**rest, "messages": messages, "format": "openai-responses"}


def chat_messages(items: Iterable[Any]) -> list[dict[str, Any]]:
    """Read items.

    Examples
    --------
    >>> call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    >>> [m["role"] for m in chat_messages([call, {"type": "function_call_output", "call_id": "1", "output": "7"}])]
    ['assistant', 'tool']
    """
    found: list[dict[str, Any]] = []
    thoughts: list[Any] = []
    for item in items:
        raw = item if isinstance(item, Mapping) else {"role": "user", "content": str(item)}
        kind = raw.get("type", "message")
        if kind == "reasoning":
            thoughts.append(raw)
            continue
        message = _read(raw, kind)
        if kind == "function_call" and found and found[-1]["role"] == "assistant":
            message = _joined(found.pop(), message)
        found.append(_thinking(message, thoughts))
        thoughts = []
    return found


def _joined(answer: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    calls = [*answer.get("tool_calls", []), *call["tool_calls"]]
    return {**answer, "tool_calls": calls, "native": [*answer["native"], *call["native"]]}


def _thinking(message: dict[str, Any], thoughts: list[Any]) -> dict[str, Any]:
    """Put what was thought before a message into it."""
    if not thoughts:
        return message
    summaries = [
        part.get("text", "") for raw in thoughts for part in raw.get("summary") or () if isinstance(part, Mapping)
    ]
    native = [*thoughts, *message["native"]]
    return {**message, "reasoning_content": "\n".join(summaries), "native": native}


def _read(raw: Raw, kind: str) -> dict[str, Any]:
    if kind == "function_call":
        called = {"name": str(raw.get("name", "")), "arguments": str(raw.get("arguments", ""))}
        call = {"id": str(raw.get("call_id", "")), "type": "function", "function": called}
        return {"role": "assistant", "content": None, "tool_calls": [call], "native": [raw]}
    if kind == "function_call_output":
        output = raw.get("output")
        text = output if isinstance(output, str | list) else json.dumps(output, ensure_ascii=False)
        return {"role": "tool", "tool_call_id": str(raw.get("call_id", "")), "content": text, "native": [raw]}
    if kind == "message":
        return {"role": raw.get("role"), "content": _content(raw.get("content")), "native": [raw]}
    # An item of a kind that is new, such as a compaction: its text, where it has one, is what the model reads.
    return {"role": "assistant", "content": raw.get("text") or raw.get("content"), "native": [raw]}


def _content(content: Any) -> Any:
    """Keep text bare where it is all there is."""
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Mapping):
        part = content[0]
        if str(part.get("type", "")).endswith("text") and isinstance(part.get("text"), str):
            return part["text"]
    return content
