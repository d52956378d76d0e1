"""Request: what is sent to a provider, read from whichever of five shapes it has.

    OpenAI chat          messages, functions or tools, response_format
    OpenAI Responses     input, instructions, text.format
    Anthropic Messages   messages of blocks, system, tools with an input_schema
    Gemini               contents, systemInstruction, functionDeclarations
    Bedrock Converse     messages of blocks without a type, toolConfig

All become messages in OpenAI's chat format; what nobody can count is named and never left out in silence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from budgetkit.message import Message

__all__ = ["Request", "read_request"]

Raw = Mapping[str, Any]
_CHAT_ROLES = ("system", "developer", "tool", "function")
_GEMINI_SCHEMAS = ("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema")


@dataclass(frozen=True, slots=True)
class Request:
    """Hold a request as all rules read it.

    Parameters
    ----------
    shape : str
        ``"chat"``, ``"responses"``, ``"anthropic"``, ``"gemini"`` or ``"converse"``.
    model : str
        As the request names it; empty where it does not.
    messages : tuple of Message
        In OpenAI's chat format, the system text first.
    tools : tuple of Mapping
        Functions that the model may call, each with a name.
    schema : Mapping or None
        Of the answer: ``name``, ``description`` and ``schema``.
    forced : str
        Name of the tool that must be called.
    required : bool
        Whether some tool must be called.
    sequential, thinking : bool
        Whether calls at once are forbidden, and whether thinking is switched on.
    uncounted : tuple of str
        What it holds that cannot be counted.
    """

    shape: str
    model: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[Raw, ...] = ()
    schema: Raw | None = None
    forced: str = ""
    required: bool = False
    sequential: bool = False
    thinking: bool = False
    uncounted: tuple[str, ...] = ()


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
        raise ValueError(
            f"a request of type {type(given).__name__}; a request is an object; give its body as JSON or a dictionary"
        )
    return given


def _shape(raw: Raw) -> str | None:
    """Tell the shapes apart by what only one of them has."""
    if "contents" in raw:
        return "gemini"
    if "messages" not in raw:
        return "responses" if "input" in raw or "prompt" in raw or "previous_response_id" in raw else None
    blocks = [block for message in _objects(raw["messages"]) for block in _objects(message.get("content"))]
    if {"toolConfig", "inferenceConfig", "schemaVersion"} & raw.keys() or any("type" not in each for each in blocks):
        return "converse"
    spoken, tools = _objects(raw["messages"]), _objects(raw.get("tools"))
    if any("tool_calls" in each or each.get("role") in _CHAT_ROLES for each in spoken) or any("function" in t for t in tools):
        return "chat"
    anthropic = {"system", "anthropic_version", "stop_sequences", "output_config"} & raw.keys()
    own = ("tool_use", "tool_result", "image", "document", "server_tool_use", "redacted_thinking")
    schemas = any("input_schema" in tool for tool in tools)
    named = str(raw.get("model") or "").startswith("claude")
    return "anthropic" if anthropic or schemas or named or any(b.get("type") in own for b in blocks) else "chat"


def _chat(raw: Raw) -> Request:
    listed = raw["messages"]
    messages = tuple(Message(each) for each in (listed if isinstance(listed, list | tuple) else [listed]))
    tools, builtin = _functions([*_objects(raw.get("tools")), *_objects(raw.get("functions"))])
    asked = _object(raw.get("response_format"))
    choice = raw.get("tool_choice", raw.get("function_call"))
    named = _object(_object(choice).get("function")) or _object(choice)
    searching = ["built-in tool web_search"] if "web_search_options" in raw else []
    return Request(
        "chat",
        _text(raw.get("model")),
        messages,
        tools,
        _object(asked.get("json_schema")) if asked.get("type") == "json_schema" else None,
        _text(named.get("name")),
        choice == "required",
        raw.get("parallel_tool_calls") is False,
        bool(_object(raw.get("reasoning"))) or _object(raw.get("thinking")).get("type") == "enabled",
        uncounted=_once([*searching, *builtin, *_strange(messages)]),
    )


def _responses(raw: Raw) -> Request:
    given = raw.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else _objects(given)
    system = [{"role": "system", "content": raw["instructions"]}] if raw.get("instructions") else []
    read = [_item(item) for item in items]
    messages = tuple(Message(each) for each in [*system, *read] if each)
    tools, builtin = _functions(_objects(raw.get("tools")))
    form = _object(_object(raw.get("text")).get("format"))
    choice = _object(raw.get("tool_choice"))
    return Request(
        "responses",
        _text(raw.get("model")),
        messages,
        tools,
        form if form.get("type") == "json_schema" else None,
        _text(choice.get("name")) if choice.get("type") == "function" else "",
        raw.get("tool_choice") == "required",
        raw.get("parallel_tool_calls") is False,
        uncounted=_once([*_state(raw), *builtin, *_reasoning(items), *_unread(items), *_strange(messages)]),
    )


def _item(item: Raw) -> dict[str, Any] | None:
    """Turn an item of the Responses interface into a message; reasoning and what is new into none."""
    kind = item.get("type", "message")
    if kind == "message":
        return {"role": _text(item.get("role")) or "user", "content": _parts(item.get("content"))}
    if kind == "function_call":
        called = {"name": item.get("name"), "arguments": item.get("arguments")}
        whole = str(item.get("id") or "").startswith("fc_") and "status" in item
        call = {"id": item.get("call_id"), "function": called, "as_answered": whole}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        output = item.get("output")
        content = output if isinstance(output, str) else _parts(output)
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": content}
    return None


def _state(raw: Raw) -> list[str]:
    held = [field for field in ("previous_response_id", "conversation", "prompt") if raw.get(field)]
    return [f"server state ({field})" for field in held]


def _reasoning(items: Iterable[Raw]) -> list[str]:
    """Name reasoning that stands before a call: it is billed until the user speaks again."""
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


def _anthropic(raw: Raw) -> Request:
    system = _parts(raw.get("system"))
    listed = [{"role": "system", "content": system}] if system else []
    listed += [each for message in _objects(raw["messages"]) for each in _from_blocks(message, _typed)]
    messages = tuple(map(Message, listed))
    tools = [tool for tool in _objects(raw.get("tools")) if "input_schema" in tool or "type" not in tool]
    builtin = [f"built-in tool {tool['type']}" for tool in _objects(raw.get("tools")) if tool not in tools]
    choice = _object(raw.get("tool_choice"))
    form = _object(_object(raw.get("output_config")).get("format")) or _object(raw.get("output_format"))
    return Request(
        "anthropic",
        _text(raw.get("model")),
        messages,
        tuple(tools),
        form if form.get("type") == "json_schema" else None,
        _text(choice.get("name")) if choice.get("type") == "tool" else "",
        choice.get("type") in ("any", "tool"),
        choice.get("disable_parallel_tool_use") is True,
        _object(raw.get("thinking")).get("type") == "enabled",
        _once([*builtin, *_strange(messages)]),
    )


def _typed(block: Raw) -> tuple[str, Raw]:
    """Tell what an Anthropic block is."""
    return _text(block.get("type")) or "text", block


def _untyped(block: Raw) -> tuple[str, Raw]:
    """Tell what a Converse block is: the one key it has names it."""
    names = {"toolUse": "tool_use", "toolResult": "tool_result", "reasoningContent": "thinking"}
    kind = next((key for key in block if key != "cachePoint"), "text")
    if kind == "text":
        return "text", block
    inner = _object(block[kind])
    inner = _object(inner.get("text")) or inner if kind == "guardContent" else inner
    thought = _object(inner.get("reasoningText")).get("text")
    same = {"id": inner.get("toolUseId"), "tool_use_id": inner.get("toolUseId"), "thinking": thought}
    return names.get(kind, "text" if kind == "guardContent" else kind), {**inner, **same, "format": kind}


def _from_blocks(message: Raw, told: Callable[[Raw], tuple[str, Raw]]) -> Iterator[dict[str, Any]]:
    """Turn a message of blocks into results, each a message of its own, and what is said, shown and called."""
    content = message.get("content")
    said: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else []
    calls, thought = [], []
    for kind, block in map(told, _objects(content)):
        if kind == "tool_use":
            calls.append({"id": block.get("id"), "function": {"name": block.get("name"), "arguments": block.get("input")}})
        elif kind == "tool_result":
            plain = block.get("content")
            yield {
                "role": "tool",
                "tool_call_id": block.get("tool_use_id"),
                "content": plain if isinstance(plain, str) else [_part(*told(each)) for each in _objects(plain)],
            }
        elif kind == "thinking":
            thought.append({"type": "text", "text": _text(block.get("thinking"))})
        elif kind != "redacted_thinking":
            said.append(_part(kind, block))
    said += thought if calls else []  # thinking is billed again only where it led to a call
    if said or calls:
        role = _text(message.get("role")) or "user"
        yield {"role": role, "content": said, **({"tool_calls": calls} if calls else {})}


def _part(kind: str, block: Raw) -> dict[str, Any]:
    """Turn a block into a part."""
    if isinstance(block.get("json"), Mapping | list):
        return {"type": "text", "text": json.dumps(block["json"], ensure_ascii=False, default=str)}
    source = _object(block.get("source"))
    if kind == "image":
        data, url = source.get("data", source.get("bytes")), source.get("url")
        return {"type": "image_url", "image_url": {"url": f"data:image;base64,{data}" if data else url}}
    return {**block, "type": kind}


def _converse(raw: Raw) -> Request:
    system = [_part(*_untyped(block)) for block in _objects(raw.get("system")) if "cachePoint" not in block]
    listed = [{"role": "system", "content": system}] if system else []
    listed += [each for message in _objects(raw["messages"]) for each in _from_blocks(message, _untyped)]
    config = _object(raw.get("toolConfig"))
    specs = [_object(tool.get("toolSpec")) for tool in _objects(config.get("tools")) if "toolSpec" in tool]
    tools = [{**spec, "input_schema": _object(_object(spec.get("inputSchema")).get("json"))} for spec in specs]
    choice = _object(config.get("toolChoice"))
    form = _object(_object(raw.get("outputConfig")).get("textFormat"))
    more = _object(raw.get("additionalModelRequestFields"))
    messages = tuple(map(Message, listed))
    return Request(
        "converse",
        _text(raw.get("modelId") or raw.get("model")),
        messages,
        tuple({key: tool[key] for key in ("name", "description", "input_schema") if key in tool} for tool in tools),
        _object(_object(form.get("structure")).get("jsonSchema")) or None,
        _text(_object(choice.get("tool")).get("name")),
        bool({"any", "tool"} & choice.keys()),
        thinking=any(_object(more.get(name)).get("type") == "enabled" for name in ("thinking", "reasoning_config")),
        uncounted=_once(_strange(messages)),
    )


def _gemini(raw: Raw) -> Request:
    system = raw.get("systemInstruction", raw.get("system_instruction"))
    spoken = [{**_object(system), "role": "system"}] if _object(system) else []
    contents = raw["contents"] if isinstance(raw["contents"], list | tuple) else [raw["contents"]]
    spoken += [{"parts": [{"text": each}]} if isinstance(each, str) else each for each in contents if each]
    messages = tuple(Message(each) for content in spoken if isinstance(content, Mapping) for each in _content(content))
    tools: list[Raw] = []
    builtin = []
    for tool in _objects(raw.get("tools")):
        declared = tool.get("functionDeclarations", tool.get("function_declarations"))
        tools += _objects(declared)
        builtin += [f"built-in tool {name}" for name in tool if name.lower().replace("_", "") != "functiondeclarations"]
    state = ["server state (cachedContent)"] if raw.get("cachedContent") else []
    config = _object(_object(raw.get("toolConfig")).get("functionCallingConfig"))
    asked = _object(raw.get("generationConfig"))
    schema = next((asked[name] for name in _GEMINI_SCHEMAS if _object(asked.get(name))), None)
    return Request(
        "gemini",
        _text(raw.get("model")).removeprefix("models/"),
        messages,
        tuple(tools),
        None if schema is None else {"schema": schema},
        required=config.get("mode") == "ANY",
        uncounted=_once([*state, *builtin, *_thoughts(spoken), *_strange(messages)]),
    )


def _thoughts(contents: Iterable[Any]) -> list[str]:
    """Name thoughts that stand before a call as a signature: they are billed again."""
    parts = [part for content in contents for part in _objects(_object(content).get("parts"))]
    signed = any({"thoughtSignature", "thought_signature"} & part.keys() for part in parts if "text" not in part)
    return ["reasoning before a call"] if signed else []


def _content(content: Raw) -> Iterator[dict[str, Any]]:
    """Turn Gemini's content into messages: what is said, shown and called, and each result."""
    said, calls = [], []
    role = {"model": "assistant", "system": "system"}.get(_text(content.get("role")), "user")
    for part in _objects(content.get("parts")):
        known = {key.replace("_", "").lower(): value for key, value in part.items()}
        if isinstance(part.get("text"), str):
            said += [] if part.get("thought") else [{"type": "text", "text": part["text"]}]
        elif "functioncall" in known:
            call = _object(known["functioncall"])
            calls.append({"id": "", "function": {"name": call.get("name"), "arguments": call.get("args")}})
        elif "functionresponse" in known:
            answer = _object(known["functionresponse"])
            told = json.dumps(answer.get("response"), ensure_ascii=False, default=str)
            yield {"role": "tool", "name": _text(answer.get("name")), "content": told}
        elif "inlinedata" in known:
            said.append(_inline(_object(known["inlinedata"])))
        elif not known.keys() <= {"thoughtsignature", "thought"}:
            said.append({"type": next(iter(part))})
    if said or calls:
        yield {"role": role, "content": said, **({"tool_calls": calls} if calls else {})}


def _inline(data: Raw) -> dict[str, Any]:
    kind = _text(data.get("mimeType") or data.get("mime_type"))
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data.get('data')}"}}
    return {"type": kind or "inlineData"}


_READERS: Final[Mapping[str, Callable[[Raw], Request]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "converse": _converse,
}


def _functions(tools: Iterable[Raw]) -> tuple[tuple[Raw, ...], list[str]]:
    """Part functions from tools that run at the provider."""
    listed = list(tools)
    own = [tool for tool in listed if tool.get("type", "function") == "function"]
    return tuple(own), [f"built-in tool {tool['type']}" for tool in listed if tool not in own]


def _strange(messages: Iterable[Message]) -> list[str]:
    return [kind for message in messages for kind in message.uncounted]


def _parts(content: Any) -> Any:
    """Keep a text, and of a list what is a part."""
    if isinstance(content, list | tuple):
        return [part for part in content if isinstance(part, str | Mapping)]
    return content if content is None or isinstance(content, str) else str(content)


def _objects(value: object) -> list[Raw]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def _object(value: object) -> Raw:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
