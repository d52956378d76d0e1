"""Requests to providers, read from five formats.

    OpenAI chat          messages, functions or tools, response_format
    OpenAI Responses     input, instructions, text.format
    Anthropic Messages   messages of blocks, system, tools with an input_schema
    Gemini               contents, systemInstruction, functionDeclarations
    Bedrock Converse     messages of blocks without a type, toolConfig

Messages are converted to OpenAI's chat format by the functions that also read files
(:mod:`budgetkit.requests.reading.records`), so that a request and a file give the same messages. Content that cannot be
counted is listed, never silently omitted. The `shape` of a request has the same five values as the form of a message
(`forms.py`). A `Format` is any row of the table of formats, which also describes files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgetkit.budget.errors import wrong_kind
from budgetkit.files import read_toml
from budgetkit.message import RESULT_ROLES, ROLES, SYSTEM_ROLES, Data, Message, Raw
from budgetkit.requests.reading.formats import format_named, holds, value_at
from budgetkit.requests.reading.forms import ROWS, is_compaction
from budgetkit.requests.reading.pairing import pair_results
from budgetkit.requests.reading.parts import objects_in
from budgetkit.requests.reading.records import read_records, system_messages
from budgetkit.requests.reading.tools import read_tools

# Fields around a request body: in a batch file, and in Gemini's requests for a count.
_ENVELOPES = ("body", "generateContentRequest")
# Fields and blocks of one format only.
_CONVERSE_FIELDS = {"toolConfig", "inferenceConfig", "schemaVersion"}
_ANTHROPIC_FIELDS = {"system", "anthropic_version", "stop_sequences", "output_config"}
_ANTHROPIC_BLOCKS = (
    "tool_use",
    "tool_result",
    "image",
    "document",
    "server_tool_use",
    "redacted_thinking",
)
_RESOLUTION = "generationConfig.mediaResolution|generation_config.media_resolution"
_READ_ITEMS = ("message", "function_call", "function_call_output", "reasoning")
# Paths of the system text in formats with content parts.
_SYSTEM = "system|systemInstruction.parts|system_instruction.parts"
# Paths of the parts in a message, an item or a result.
_INNER = (
    "content",
    "parts",
    "output",
    "toolResult.content",
    "functionResponse.parts|function_response.parts",
)
_SIGNATURES = {"thoughtSignature", "thought_signature"}


@dataclass(frozen=True)
class ProviderRequest:
    """A request in the common format that all billing rules take."""

    shape: str  # "chat", "responses", "anthropic", "gemini" or "converse"
    model: str = ""  # as named in the request
    messages: tuple[Message, ...] = ()  # in OpenAI's chat format, the system text first
    tools: tuple[Raw, ...] = ()  # functions that the model may call
    schema: Raw | None = None  # of the answer, with name and description
    forced: str = ""  # name of the tool that must be called
    required: bool = False  # any tool must be called
    none: bool = False  # no tool may be called
    sequential: bool = False  # parallel calls are disabled
    thinking: bool = False  # thinking is enabled
    adaptive: bool = False  # the model decides how much it thinks
    json_mode: bool = False  # the answer must be JSON of any schema
    audio: bool = False  # the answer is spoken
    uncounted: tuple[str, ...] = ()  # parts that cannot be counted


def read_request(body: Raw | str | bytes) -> ProviderRequest:
    """Read a request from a dictionary or JSON.

    Raise `ValueError` if the body is not a JSON object, or if its format is unknown.

    >>> read_request({"contents": [{"parts": [{"text": "Hello"}]}]}).messages[0].text
    'Hello'
    """
    if isinstance(body, str | bytes | bytearray):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"Invalid JSON in the request: {error}. Pass the body as JSON text or a dictionary."
            ) from None
    if not isinstance(body, Mapping):
        raise ValueError(wrong_kind("request", body, "the body as JSON text or a dictionary"))
    raw: Raw = body
    for field in _ENVELOPES:
        if isinstance(raw.get(field), Mapping) and not request_shape(raw):
            raw = raw[field]
    shape = request_shape(raw)
    if shape is None:
        fields = ", ".join(map(repr, list(raw)[:8])) or "(none)"
        raise ValueError(
            f"Unknown request format with fields {fields:.200}. Pass the body of an OpenAI chat or Anthropic "
            "request (messages), OpenAI Responses (input), Gemini (contents) or Bedrock Converse (messages, "
            "toolConfig)."
        )

    # the messages in OpenAI's chat format, starting with the system text
    row = format_named(ROWS[shape]) if shape in ROWS else None
    system = [] if row is None else system_messages(raw, row)
    records = _message_records(raw, shape)
    read = read_records(records, row)
    has_native = any("native" in message for message in objects_in(read.messages))
    if shape != "chat" or read.formats or read.notes or has_native:
        pair_results(read.messages, strict=shape == "anthropic")
    messages = tuple(map(Message, [*system, *read.messages]))
    return provider_request(raw, shape, messages, records)


def provider_request(
    raw: Raw, shape: str, messages: tuple[Message, ...], records: Sequence[Any]
) -> ProviderRequest:
    """Build a request from its messages and its other fields.

    `raw` has the other fields. `records` are the messages in the request's format, and `messages` are the same messages
    in OpenAI's chat format.
    """
    table = read_toml("framings.toml")
    row = table["request"][shape]
    toolsets = [read_tools(value_at(raw, path)) for path in row.get("tools", ("tools",))]
    uncounted = [
        part
        for condition, part in row["beside"].items()
        # a condition is met by a field with content
        if holds(raw, condition)
        and value_at(raw, condition.partition("=")[0], unpack=True) not in ("", [], False)
    ]
    objects = objects_in(records)
    parts = [*_parts([*records, *objects_in(value_at(raw, _SYSTEM))])]

    # objects of each kind, and the names of the fields that are read or add no tokens; other fields are uncounted
    sources = [
        ("field", [raw], row["fields"]),
        (
            "message field",
            [record for record in objects if "role" in record],
            row["message_fields"],
        ),
        (
            "model field",
            [as_object(raw.get("additionalModelRequestFields"))],
            row.get("model_fields", ""),
        ),
    ]
    part_fields = table["part_fields"]
    sources += [
        ("part field", [part], part_fields.get(kind, part_fields["text"]))
        for part in parts
        if (kind := text_or_empty(part.get("type"))) in part_fields or "text" in part
    ]
    for label, holders, names in sources:
        known = names.split()
        uncounted += [
            f"{label} {name}"
            for fields in holders
            for name, value in fields.items()
            if value and name not in known
        ]
    uncounted += [f"role {message.role}" for message in messages if message.role not in ROLES]
    uncounted += [name for toolset in toolsets for name in toolset.uncounted]

    # Thinking that is billed again but cannot be counted; for other thinking, see billing/charges.py.
    for message in reversed(messages) if shape == "responses" else ():
        if message.role == "user":
            break  # earlier thinking is not sent again
        if message.tool_calls and "reasoning_content" in message.raw:
            uncounted.append("reasoning before a call")
    # It is not published which encrypted reasoning is read again, or how many tokens it has.
    if any(record.get("encrypted_content") for record in objects):
        uncounted.append("encrypted reasoning")
    if any(_SIGNATURES & part.keys() and "text" not in part for part in parts):
        uncounted.append("reasoning before a call")

    kinds = [
        text_or_empty(item["type"])
        for item in (objects if shape == "responses" else [])
        if item.get("type", "message") not in _READ_ITEMS
    ]
    uncounted += [f"item {kind}" for kind in kinds]
    uncounted += [kind for message in messages for kind in message.uncounted if kind not in kinds]
    return ProviderRequest(
        shape=shape,
        messages=messages,
        tools=tuple(tool for toolset in toolsets for tool in toolset.functions),
        uncounted=tuple(dict.fromkeys(uncounted)),
        **request_settings(raw, shape),
    )


def _parts(records: Any) -> Iterator[Raw]:
    """Yield the content parts of messages and items, at any depth.

    A call or result that is an object inside its part is yielded as a part of its own.
    """
    for record in objects_in(records):
        if record.keys().isdisjoint(("role", "parts")):
            yield record
        for kind in read_toml("framings.toml")["part_fields"].keys() & record.keys():
            if isinstance(record[kind], Mapping):
                yield {**record[kind], "type": kind}
        for path in _INNER:
            yield from _parts(value_at(record, path))


def request_shape(raw: Raw) -> str | None:
    """Return a request body's format, or None if it is unknown."""
    if "contents" in raw:
        return "gemini"
    if "messages" not in raw:
        if raw.keys() & {"input", "previous_response_id"} or isinstance(raw.get("prompt"), Mapping):
            return "responses"
        return None
    if raw.keys() & _CONVERSE_FIELDS:
        return "converse"

    messages = objects_in(raw["messages"])
    tools = raw.get("tools")
    tools = objects_in(as_object(tools).get("tools", tools))
    names_roles = any(
        "tool_calls" in entry or entry.get("role") in (*SYSTEM_ROLES, *RESULT_ROLES)
        for entry in messages
    )
    if names_roles or "response_format" in raw or any("function" in tool for tool in tools):
        return "chat"

    blocks = [block for message in messages for block in objects_in(message.get("content"))]
    if any("type" not in block for block in blocks):
        return "converse"
    is_anthropic = (
        raw.keys() & _ANTHROPIC_FIELDS
        or any("input_schema" in tool for tool in tools)
        or str(raw.get("model") or "").startswith("claude")
        or any(block.get("type") in _ANTHROPIC_BLOCKS for block in blocks)
    )
    return "anthropic" if is_anthropic else "chat"


def _message_records(raw: Raw, shape: str) -> list[Any]:
    """Return a request's messages as a list.

    In the formats of Responses and Gemini, a plain text becomes a message. Anthropic's messages start with the newest
    summary that the provider wrote. Gemini's media resolution is copied to each part that has none.
    """
    value = raw.get({"responses": "input", "gemini": "contents"}.get(shape, "messages"))
    records = [] if value is None else [value]
    if isinstance(value, list | tuple):
        records = list(value)
    if shape == "anthropic":
        # The provider ignores the messages before its newest summary.
        places = [n for n, record in enumerate(records) if is_compaction(as_object(record))]
        return records[max(places, default=0) :]
    if shape == "responses":
        return [
            {"role": "user", "content": item} if isinstance(item, str) else item for item in records
        ]
    if shape == "gemini":
        # One resolution applies to all media parts without their own.
        resolution = value_at(raw, _RESOLUTION)
        own = {"mediaResolution": resolution} if isinstance(resolution, str) else {}
        for place, content in enumerate(records):
            if isinstance(content, str):
                content = {"parts": [{"text": content}]}
            if own and objects_in(as_object(content).get("parts")):
                content = {**content, "parts": [{**own, **part} for part in content["parts"]]}
            records[place] = content
    return records


def request_settings(raw: Raw, shape: str) -> Data:
    """Return a request's model, tool choice, answer schema and other settings.

    ``data/framings.toml`` has the paths of these settings.

    >>> request_settings({"model": "gpt-5.4", "tool_choice": "required"}, "chat")["required"]
    True
    """
    row = read_toml("framings.toml")["request"][shape]

    def first(name: str) -> Any:
        for needed, path in row.get(name, ()):
            if holds(raw, needed):
                return value_at(raw, path, unpack=True)
        return None

    schema = first("schema")
    if not isinstance(schema, Mapping):
        schema = None
    elif row.get("bare_schema"):
        schema = {"schema": schema}
    return {
        "model": text_or_empty(value_at(raw, row["model"])).removeprefix("models/"),
        "forced": text_or_empty(first("forced")),
        "schema": schema,
        # Settings that are on or off, each with alternative conditions.
        **{name: any(holds(raw, one) for one in row["settings"][name]) for name in row["settings"]},
    }


def as_object(value: object) -> Raw:
    """Return a mapping unchanged, or an empty mapping for any other value."""
    return value if isinstance(value, Mapping) else {}


def text_or_empty(value: object) -> str:
    """Return a string unchanged, or "" for any other value."""
    return value if isinstance(value, str) else ""


def parsed(text: str | bytes) -> Any:
    """Parse JSON text, and return any other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
