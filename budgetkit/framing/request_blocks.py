"""Requests made of blocks: Anthropic's Messages and Bedrock's Converse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from budgetkit.framing.request import Raw, Request, as_object, as_text, kept_parts, objects, uncounted
from budgetkit.message import Message

__all__ = ["anthropic_request", "converse_request"]


def anthropic_request(raw: Raw) -> Request:
    """Read a body of Anthropic's Messages."""
    system = kept_parts(raw.get("system"))
    listed = [{"role": "system", "content": system}] if system else []
    listed += [each for message in objects(raw["messages"]) for each in _from_blocks(message, _typed)]
    messages = tuple(map(Message, listed))
    tools = [tool for tool in objects(raw.get("tools")) if "input_schema" in tool or "type" not in tool]
    builtin = [f"built-in tool {tool['type']}" for tool in objects(raw.get("tools")) if tool not in tools]
    choice = as_object(raw.get("tool_choice"))
    form = as_object(as_object(raw.get("output_config")).get("format")) or as_object(raw.get("output_format"))
    return Request(
        "anthropic",
        as_text(raw.get("model")),
        messages,
        tuple(tools),
        form if form.get("type") == "json_schema" else None,
        as_text(choice.get("name")) if choice.get("type") == "tool" else "",
        choice.get("type") in ("any", "tool"),
        choice.get("disable_parallel_tool_use") is True,
        as_object(raw.get("thinking")).get("type") == "enabled",
        uncounted(messages, *builtin),
    )


def _typed(block: Raw) -> tuple[str, Raw]:
    """Return the kind of an Anthropic block, and the block."""
    return as_text(block.get("type")) or "text", block


def _untyped(block: Raw) -> tuple[str, Raw]:
    """Return the kind of a Converse block, which its only key names, and what it holds."""
    names = {"toolUse": "tool_use", "toolResult": "tool_result", "reasoningContent": "thinking"}
    kind = next((key for key in block if key != "cachePoint"), "text")
    if kind == "text":
        return "text", block
    inner = as_object(block[kind])
    inner = as_object(inner.get("text")) or inner if kind == "guardContent" else inner
    thought = as_object(inner.get("reasoningText")).get("text")
    same = {"id": inner.get("toolUseId"), "tool_use_id": inner.get("toolUseId"), "thinking": thought}
    return names.get(kind, "text" if kind == "guardContent" else kind), {**inner, **same, "format": kind}


def _from_blocks(message: Raw, told: Callable[[Raw], tuple[str, Raw]]) -> Iterator[dict[str, Any]]:
    """Turn a message of blocks into messages: one for each tool result, then one with texts, images and calls."""
    content = message.get("content")
    said: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else []
    calls, thought = [], []
    for kind, block in map(told, objects(content)):
        if kind == "tool_use":
            calls.append(
                {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": block.get("input")}}
            )
        elif kind == "tool_result":
            plain = block.get("content")
            yield {
                "role": "tool",
                "tool_call_id": block.get("tool_use_id"),
                "content": plain if isinstance(plain, str) else [_part(*told(each)) for each in objects(plain)],
            }
        elif kind == "thinking":
            thought.append({"type": "text", "text": as_text(block.get("thinking"))})
        elif kind != "redacted_thinking":
            said.append(_part(kind, block))
    said += thought if calls else []  # thinking is billed again only where it led to a call
    if said or calls:
        role = as_text(message.get("role")) or "user"
        yield {"role": role, "content": said, **({"tool_calls": calls} if calls else {})}


def _part(kind: str, block: Raw) -> dict[str, Any]:
    """Turn a block into a part."""
    if isinstance(block.get("json"), Mapping | list):
        return {"type": "text", "text": json.dumps(block["json"], ensure_ascii=False, default=str)}
    source = as_object(block.get("source"))
    if kind == "image":
        data, url = source.get("data", source.get("bytes")), source.get("url")
        return {"type": "image_url", "image_url": {"url": f"data:image;base64,{data}" if data else url}}
    return {**block, "type": kind}


def converse_request(raw: Raw) -> Request:
    """Read a body of Bedrock's Converse."""
    system = [_part(*_untyped(block)) for block in objects(raw.get("system")) if "cachePoint" not in block]
    listed = [{"role": "system", "content": system}] if system else []
    listed += [each for message in objects(raw["messages"]) for each in _from_blocks(message, _untyped)]
    config = as_object(raw.get("toolConfig"))
    specs = [as_object(tool.get("toolSpec")) for tool in objects(config.get("tools")) if "toolSpec" in tool]
    tools = [{**spec, "input_schema": as_object(as_object(spec.get("inputSchema")).get("json"))} for spec in specs]
    choice = as_object(config.get("toolChoice"))
    form = as_object(as_object(raw.get("outputConfig")).get("textFormat"))
    more = as_object(raw.get("additionalModelRequestFields"))
    messages = tuple(map(Message, listed))
    return Request(
        "converse",
        as_text(raw.get("modelId") or raw.get("model")),
        messages,
        tuple({key: tool[key] for key in ("name", "description", "input_schema") if key in tool} for tool in tools),
        as_object(as_object(form.get("structure")).get("jsonSchema")) or None,
        as_text(as_object(choice.get("tool")).get("name")),
        bool({"any", "tool"} & choice.keys()),
        thinking=any(as_object(more.get(name)).get("type") == "enabled" for name in ("thinking", "reasoning_config")),
        uncounted=uncounted(messages),
    )
