"""Requests made of blocks: Anthropic's Messages, Bedrock's Converse and Gemini's contents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from budgetkit.framing.paths import found
from budgetkit.framing.request import Raw, Request, as_object, as_text, asked, kept_parts, objects, uncounted
from budgetkit.message import Message

_SCHEMAS = ("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema")


def anthropic_request(raw: Raw) -> Request:
    """Read a body of Anthropic's Messages."""
    messages = _messages(raw, kept_parts(raw.get("system")), _typed)
    tools = [tool for tool in objects(raw.get("tools")) if "input_schema" in tool or "type" not in tool]
    builtin = [f"built-in tool {tool['type']}" for tool in objects(raw.get("tools")) if tool not in tools]
    return Request(
        messages=messages, tools=tuple(tools), uncounted=uncounted(messages, *builtin), **asked(raw, "anthropic")
    )


def _messages(raw: Raw, system: Any, told: Callable[[Raw], tuple[str, Raw]]) -> tuple[Message, ...]:
    """Turn a system text and messages of blocks into messages."""
    listed = [{"role": "system", "content": system}] if system else []
    listed += [each for message in objects(raw["messages"]) for each in _from_blocks(message, told)]
    return tuple(map(Message, listed))


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
            called = {"name": block.get("name"), "arguments": block.get("input")}
            calls.append({"id": block.get("id"), "function": called})
        elif kind == "tool_result":
            plain = block.get("content")
            plain = plain if isinstance(plain, str) else [_part(*told(each)) for each in objects(plain)]
            yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": plain}
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
    messages = _messages(raw, system, _untyped)
    specs = [as_object(tool.get("toolSpec")) for tool in objects(found(raw, "toolConfig.tools")) if "toolSpec" in tool]
    told = [{key: spec[key] for key in ("name", "description") if key in spec} for spec in specs]
    schemas = [as_object(found(spec, "inputSchema.json")) for spec in specs]
    tools = tuple({**each, "input_schema": schema} for each, schema in zip(told, schemas, strict=True))
    return Request(messages=messages, tools=tools, uncounted=uncounted(messages), **asked(raw, "converse"))


def gemini_request(raw: Raw) -> Request:
    """Read a body of Gemini's generateContent."""
    system = raw.get("systemInstruction", raw.get("system_instruction"))
    spoken = [{**as_object(system), "role": "system"}] if as_object(system) else []
    contents = raw["contents"] if isinstance(raw["contents"], list | tuple) else [raw["contents"]]
    spoken += [{"parts": [{"text": each}]} if isinstance(each, str) else each for each in contents if each]
    messages = tuple(Message(each) for content in objects(spoken) for each in _from_content(content))
    listed, own = objects(raw.get("tools")), ("functionDeclarations", "function_declarations")
    tools = [each for tool in listed for each in objects(tool.get(own[0], tool.get(own[1])))]
    named = (name for tool in listed for name in tool)
    builtin = [f"built-in tool {name}" for name in named if name.lower().replace("_", "") != own[0].lower()]
    state = ["server state (cachedContent)"] if raw.get("cachedContent") else []
    options = as_object(raw.get("generationConfig"))
    schema = next((options[name] for name in _SCHEMAS if as_object(options.get(name))), None)
    said = asked(raw, "gemini")
    said |= {"model": said["model"].removeprefix("models/"), "schema": schema and {"schema": schema}}
    left_out = uncounted(messages, *state, *builtin, *_thoughts(spoken))
    return Request(messages=messages, tools=tuple(tools), uncounted=left_out, **said)


def _thoughts(contents: Iterable[Any]) -> list[str]:
    """Name signed thoughts before a call, since they are billed again."""
    parts = [part for content in contents for part in objects(as_object(content).get("parts"))]
    signed = any({"thoughtSignature", "thought_signature"} & part.keys() for part in parts if "text" not in part)
    return ["reasoning before a call"] if signed else []


def _from_content(content: Raw) -> Iterator[dict[str, Any]]:
    """Turn Gemini's content into messages, as if its parts were blocks."""
    role = {"model": "assistant", "system": "system"}.get(as_text(content.get("role")), "user")
    return _from_blocks({"role": role, "content": objects(content.get("parts"))}, _as_block)


def _as_block(part: Raw) -> tuple[str, Raw]:
    """Return the kind of a part of Gemini's, and a block that holds the same; a thought has none."""
    known = {key.replace("_", "").lower(): value for key, value in part.items()}
    if isinstance(part.get("text"), str):
        return ("redacted_thinking", {}) if part.get("thought") else ("text", {"type": "text", "text": part["text"]})
    if "functioncall" in known:
        call = as_object(known["functioncall"])
        return "tool_use", {"id": "", "name": call.get("name"), "input": call.get("args")}
    if "functionresponse" in known:
        answer = as_object(known["functionresponse"]).get("response")
        return "tool_result", {"content": json.dumps(answer, ensure_ascii=False, default=str)}
    if "inlinedata" in known:
        data = as_object(known["inlinedata"])
        kind = as_text(data.get("mimeType") or data.get("mime_type"))
        url = f"data:{kind};base64,{data.get('data')}"
        return ("image", {"source": {"url": url}}) if kind.startswith("image/") else (kind or "inlineData", {})
    seen = not known.keys() <= {"thoughtsignature", "thought"}
    return (next(iter(part)), {}) if seen else ("redacted_thinking", {})
