"""What is sent to a provider, read from whichever of five shapes it has.

    OpenAI chat          messages, functions or tools, response_format
    OpenAI Responses     input, instructions, text.format
    Anthropic Messages   messages of blocks, system, tools with an input_schema
    Gemini               contents, systemInstruction, functionDeclarations
    Bedrock Converse     messages of blocks without a type, toolConfig

All become messages in OpenAI's chat format; what nobody can count is named and never left out in silence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from budgetkit.framing.request import Raw, Request, as_text, asked, kept_parts, objects, own_functions, uncounted
from budgetkit.framing.request_blocks import anthropic_request, converse_request, gemini_request
from budgetkit.message import RESULT_ROLES, SYSTEM_ROLES, Message


def read_request(given: Raw | str | bytes) -> Request:
    """Read a request from a dictionary or JSON.

    >>> read_request({"contents": [{"parts": [{"text": "Hello"}]}]}).messages[0].raw
    {'role': 'user', 'content': [{'type': 'text', 'text': 'Hello'}]}
    """
    raw = _decoded(given)
    for field in ("body", "generateContentRequest"):
        if isinstance(raw.get(field), Mapping) and not _shape(raw):
            raw = raw[field]
    shape = _shape(raw)
    if shape is None:
        held = ", ".join(map(repr, list(raw)[:8])) or "nothing"
        raise ValueError(
            f"a request of no known shape, it holds {held:.200}; known are OpenAI chat and Anthropic (messages), "
            "OpenAI Responses (input), Gemini (contents) and Bedrock Converse (messages, toolConfig); "
            "give the body as one of them"
        )
    return _READERS[shape](raw)


def _decoded(given: object) -> Raw:
    if isinstance(given, str | bytes | bytearray):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"a request that is no JSON ({error}); give its body as JSON or as a dictionary") from None
    if not isinstance(given, Mapping):
        told = f"a request of type {type(given).__name__}; a request is an object"
        raise ValueError(f"{told}; give its body as JSON or a dictionary")
    return given


def _shape(raw: Raw) -> str | None:
    """Tell the shapes apart by what only one of them has."""
    if "contents" in raw:
        return "gemini"
    if "messages" not in raw:
        stored = isinstance(raw.get("prompt"), Mapping) or "previous_response_id" in raw
        return "responses" if "input" in raw or stored else None
    spoken = objects(raw["messages"])
    blocks = [block for message in spoken for block in objects(message.get("content"))]
    tools = objects(raw.get("tools"))
    if {"toolConfig", "inferenceConfig", "schemaVersion"} & raw.keys():
        return "converse"
    is_chat = any("tool_calls" in each or each.get("role") in (*SYSTEM_ROLES, *RESULT_ROLES) for each in spoken)
    if is_chat or any("function" in tool for tool in tools):
        return "chat"
    if any("type" not in block for block in blocks):
        return "converse"
    anthropic = {"system", "anthropic_version", "stop_sequences", "output_config"} & raw.keys()
    own = ("tool_use", "tool_result", "image", "document", "server_tool_use", "redacted_thinking")
    schemas = any("input_schema" in tool for tool in tools)
    named = str(raw.get("model") or "").startswith("claude")
    return "anthropic" if anthropic or schemas or named or any(b.get("type") in own for b in blocks) else "chat"


def _chat(raw: Raw) -> Request:
    listed = raw["messages"]
    messages = tuple(Message(each) for each in (listed if isinstance(listed, list | tuple) else [listed]))
    tools, builtin = own_functions([*objects(raw.get("tools")), *objects(raw.get("functions"))])
    searching = ["built-in tool web_search"] if "web_search_options" in raw else []
    left_out = uncounted(messages, *searching, *builtin)
    return Request(messages=messages, tools=tools, uncounted=left_out, **asked(raw, "chat"))


def _responses(raw: Raw) -> Request:
    given = raw.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    system = {"role": "system", "content": raw["instructions"]} if raw.get("instructions") else None
    messages = tuple(Message(each) for each in [system, *map(_item, items)] if each)
    tools, builtin = own_functions(objects(raw.get("tools")))
    held = ("previous_response_id", "conversation", "prompt")
    state = [f"server state ({field})" for field in held if raw.get(field)]
    left_out = uncounted(messages, *state, *builtin, *_reasoning(items), *_unread(items))
    return Request(messages=messages, tools=tools, uncounted=left_out, **asked(raw, "responses"))


def _item(item: Raw) -> dict[str, Any] | None:
    """Turn an item of the Responses interface into a message; None for reasoning and unknown items."""
    kind = item.get("type", "message")
    if kind == "message":
        return {"role": as_text(item.get("role")) or "user", "content": kept_parts(item.get("content"))}
    if kind == "function_call":
        called = {"name": item.get("name"), "arguments": item.get("arguments")}
        whole = str(item.get("id") or "").startswith("fc_") and "status" in item
        call = {"id": item.get("call_id"), "function": called, "as_answered": whole}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": kept_parts(item.get("output"))}
    return None


def _reasoning(items: Iterable[Raw]) -> list[str]:
    """Name reasoning that stands before a call, which is billed until the user speaks again."""
    before, found = False, False
    for item in items:
        kind = item.get("type", "message")
        found = found or (kind == "function_call" and before)
        found = found and not (kind == "message" and item.get("role") == "user")
        before = kind == "reasoning" or (before and kind == "function_call")
    return ["reasoning before a call"] if found else []


def _unread(items: Iterable[Raw]) -> list[str]:
    known = ("message", "function_call", "function_call_output", "reasoning")
    return [f"item {item['type']}" for item in items if item.get("type", "message") not in known]


_READERS: Final[Mapping[str, Callable[[Raw], Request]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": anthropic_request,
    "gemini": gemini_request,
    "converse": converse_request,
}
