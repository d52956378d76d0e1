"""Anthropic's content blocks as chat messages: text, images, thinking, tool calls and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]
_RESULT = ("tool_result",)
_CALL = ("tool_use", "server_tool_use", "toolCall")
_THOUGHT = ("thinking", "redacted_thinking")


def chat_messages(message: Raw) -> list[dict[str, Any]]:
    """Read one message made of blocks.

    Examples
    --------
    >>> block = {"type": "tool_result", "tool_use_id": "1", "content": "Sunny"}
    >>> [m["role"] for m in chat_messages({"role": "user", "content": [block, {"type": "text", "text": "And?"}]})]
    ['tool', 'user']
    """
    content = message.get("content")
    blocks = [
        block if isinstance(block, Mapping) else {"type": "text", "text": str(block)} for block in _listed(content)
    ]
    found = [_result(block) for block in blocks if block.get("type") in _RESULT]
    rest = [block for block in blocks if block.get("type") not in (*_RESULT, *_CALL, *_THOUGHT)]
    calls = [_call(block) for block in blocks if block.get("type") in _CALL]
    if rest or calls or not found:
        said: dict[str, Any] = {"role": message.get("role"), "content": _content(content, rest)}
        if thoughts := [str(b.get("thinking") or b.get("data") or "") for b in blocks if b.get("type") in _THOUGHT]:
            said["reasoning_content"] = "\n".join(thoughts)
        if calls:
            said["tool_calls"] = calls
        found.append(said)
    found[-1]["native"] = message
    return found


def _listed(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, list | tuple) else []


def _content(content: Any, rest: list[Raw]) -> Any:
    """Keep bare text bare, and join what is text alone; pictures and files stay parts."""
    if isinstance(content, str):
        return content
    if all(set(block) == {"type", "text"} for block in rest) and len(rest) <= 1:
        return str(rest[0]["text"]) if rest else None
    return [dict(block) for block in rest]


def _call(block: Raw) -> dict[str, Any]:
    arguments = block.get("input", block.get("arguments", {}))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": str(block.get("id", "")),
        "type": "function",
        "function": {"name": str(block.get("name", "")), "arguments": text},
    }


def _result(block: Raw) -> dict[str, Any]:
    content = block.get("content")
    parts = [part if isinstance(part, Mapping) else {"type": "text", "text": str(part)} for part in _listed(content)]
    return {
        "role": "tool",
        "tool_call_id": str(block.get("tool_use_id", "")),
        "content": content if isinstance(content, str) else _content(content, parts),
        **({"is_error": True} if block.get("is_error") else {}),
    }
