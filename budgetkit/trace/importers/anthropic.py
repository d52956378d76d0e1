"""Anthropic Messages: a system text beside the messages, and messages made of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.trace.importers.blocks import chat_messages

Raw = Mapping[str, Any]
_OWN_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document")


def matches(value: Raw) -> bool:
    """Say whether a value is a request to Anthropic's Messages interface."""
    if not isinstance(value.get("messages"), list):
        return False
    tools = value.get("tools") or []
    return (
        "system" in value
        or str(value.get("model", "")).startswith("claude")
        or any(isinstance(tool, Mapping) and "input_schema" in tool for tool in tools)
        or any(_has_own_blocks(message) for message in value["messages"])
    )


def conversation(value: Raw) -> dict[str, Any]:
    """Read a request's body.

    Examples
    --------
    >>> body = {"system": "Be brief.", "messages": [{"role": "user", "content": "Hello world"}]}
    >>> [message["role"] for message in conversation(body)["messages"]]
    ['system', 'user']
    """
    system = value.get("system")
    said = [message if isinstance(message, Mapping) else {"content": message} for message in value["messages"]]
    messages = [answer for message in said for answer in chat_messages(message)]
    if system:
        messages.insert(0, {"role": "system", "content": system, "native": system})
    rest = {name: field for name, field in value.items() if name not in ("system", "messages")}
    return {**rest, "messages": messages, "format": "anthropic"}


def answered(blocks: Any) -> list[dict[str, Any]]:
    """Read an answer."""
    return chat_messages({"role": "assistant", "content": blocks}) if blocks else []


def _has_own_blocks(message: Any) -> bool:
    content = message.get("content") if isinstance(message, Mapping) else None
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, Mapping) and block.get("type") in _OWN_BLOCKS for block in blocks)
