"""Requests made of contents: Gemini's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from budgetkit.framing.request import Raw, Request, as_object, as_text, objects, uncounted
from budgetkit.message import Message

__all__ = ["gemini_request"]

_SCHEMAS = ("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema")


def gemini_request(raw: Raw) -> Request:
    """Read a body of Gemini's generateContent."""
    system = raw.get("systemInstruction", raw.get("system_instruction"))
    spoken = [{**as_object(system), "role": "system"}] if as_object(system) else []
    contents = raw["contents"] if isinstance(raw["contents"], list | tuple) else [raw["contents"]]
    spoken += [{"parts": [{"text": each}]} if isinstance(each, str) else each for each in contents if each]
    messages = tuple(Message(each) for content in spoken if isinstance(content, Mapping) for each in _content(content))
    listed, own = objects(raw.get("tools")), ("functionDeclarations", "function_declarations")
    tools = [each for tool in listed for each in objects(tool.get(own[0], tool.get(own[1])))]
    named = (name for tool in listed for name in tool)
    builtin = [f"built-in tool {name}" for name in named if name.lower().replace("_", "") != own[0].lower()]
    state = ["server state (cachedContent)"] if raw.get("cachedContent") else []
    config = as_object(as_object(raw.get("toolConfig")).get("functionCallingConfig"))
    asked = as_object(raw.get("generationConfig"))
    schema = next((asked[name] for name in _SCHEMAS if as_object(asked.get(name))), None)
    return Request(
        "gemini",
        as_text(raw.get("model")).removeprefix("models/"),
        messages,
        tuple(tools),
        None if schema is None else {"schema": schema},
        required=config.get("mode") == "ANY",
        uncounted=uncounted(messages, *state, *builtin, *_thoughts(spoken)),
    )


def _thoughts(contents: Iterable[Any]) -> list[str]:
    """Name signed thoughts before a call, since they are billed again."""
    parts = [part for content in contents for part in objects(as_object(content).get("parts"))]
    signed = any({"thoughtSignature", "thought_signature"} & part.keys() for part in parts if "text" not in part)
    return ["reasoning before a call"] if signed else []


def _content(content: Raw) -> Iterator[dict[str, Any]]:
    """Turn Gemini's content into messages: one for each tool result, then one with texts, images and calls."""
    said, calls = [], []
    role = {"model": "assistant", "system": "system"}.get(as_text(content.get("role")), "user")
    for part in objects(content.get("parts")):
        known = {key.replace("_", "").lower(): value for key, value in part.items()}
        if isinstance(part.get("text"), str):
            said += [] if part.get("thought") else [{"type": "text", "text": part["text"]}]
        elif "functioncall" in known:
            call = as_object(known["functioncall"])
            calls.append({"id": "", "function": {"name": call.get("name"), "arguments": call.get("args")}})
        elif "functionresponse" in known:
            answer = as_object(known["functionresponse"])
            told = json.dumps(answer.get("response"), ensure_ascii=False, default=str)
            yield {"role": "tool", "name": as_text(answer.get("name")), "content": told}
        elif "inlinedata" in known:
            said.append(_inline(as_object(known["inlinedata"])))
        elif not known.keys() <= {"thoughtsignature", "thought"}:
            said.append({"type": next(iter(part))})
    if said or calls:
        yield {"role": role, "content": said, **({"tool_calls": calls} if calls else {})}


def _inline(data: Raw) -> dict[str, Any]:
    kind = as_text(data.get("mimeType") or data.get("mime_type"))
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data.get('data')}"}}
    return {"type": kind or "inlineData"}
