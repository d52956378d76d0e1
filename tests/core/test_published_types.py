"""Published types: no usage field and no block of the installed SDKs is neither read nor named."""

import itertools
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any

import pytest
import typing_extensions

import budgetkit as bk
from budgetkit.files import read_toml
from tests.messages import assistant, user

TEXT = "alpha beta gamma delta " * 50
USAGE = [
    "openai.types:CompletionUsage",
    "openai.types.responses:ResponseUsage",
    "openai.types.realtime:RealtimeResponseUsage",
    "openai.types:BatchUsage",
    "anthropic.types:Usage",
    "anthropic.types.beta:BetaUsage",
    "anthropic.types.beta:BetaMessageDeltaUsage",
    "anthropic.types.beta:BetaManagedAgentsSessionUsage",
    "google.genai.types:GenerateContentResponseUsageMetadata",
    "google.genai.types:UsageMetadata",
    "mistralai.client.models:UsageInfo",
    "mistralai.client.models:ConversationUsageInfo",
    "cohere.types:Usage",
    "langchain_core.messages.ai:UsageMetadata",
    "litellm.types.utils:Usage",
    "litellm.types.llms.openai:ResponseAPIUsage",
]
#: The unions of a request's blocks and items, and the model whose rules count them.
BLOCKS = {
    "anthropic.types:ContentBlockParam": "claude-opus-4-8",
    "anthropic.types.beta:BetaContentBlockParam": "claude-opus-4-8",
    "openai.types.chat:ChatCompletionMessageParam": "gpt-4o",
    "openai.types.chat:ChatCompletionContentPartParam": "gpt-4o",
    "openai.types.responses:ResponseInputItemParam": "gpt-5.1",
    "openai.types.responses:ResponseInputContentParam": "gpt-5.1",
    "google.genai.types:Part": "gemini-3-pro",
}
#: The unions of a request's tools, and the model whose rules count them.
TOOLS = {
    "anthropic.types:ToolUnionParam": "claude-opus-4-8",
    "anthropic.types.beta:BetaToolUnionParam": "claude-opus-4-8",
    "openai.types.chat:ChatCompletionToolUnionParam": "gpt-4o",
    "openai.types.responses:ToolParam": "gpt-5.1",
    "google.genai.types:Tool": "gemini-3-pro",
}
#: The bodies of requests, and fields with the conversation itself.
BODIES = {
    "openai.types.chat.completion_create_params:CompletionCreateParamsNonStreaming": "messages",
    "openai.types.responses.response_create_params:ResponseCreateParamsNonStreaming": "input",
    "anthropic.types.message_create_params:MessageCreateParamsNonStreaming": "messages",
    "anthropic.types.beta.message_create_params:MessageCreateParamsNonStreaming": "messages",
}
#: Fields of a body that are read, or that bill nothing: those of recorded calls whose count was right, and settings
#: of sampling, routing, storage and caching.
SILENT = {
    name for row in read_toml("framings.toml")["request"].values() for name in row["fields"].split()
}


def published(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(pytest.importorskip(module), name)


def fields_of(hint: Any) -> dict[str, Any]:
    """Return the fields of a model or a typed dictionary, under the names that are sent."""
    if hasattr(hint, "model_fields"):
        fields = hint.model_fields
        return {info.alias or name: info.annotation for name, info in fields.items()}
    if not typing_extensions.is_typeddict(hint):
        return {}
    return {
        name: kind for name, kind in typing.get_type_hints(hint).items() if not name.startswith("_")
    }


def values(hint: Any, depth: int = 0) -> Iterator[Any]:
    """Give values of a type with every field filled, each member of a union once."""
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        yield kinds[0]
    elif origin in (dict, Mapping) or hint in (dict, object, Any):
        yield {"any": TEXT}
    elif origin in (list, Iterable, Sequence):
        for value in values(kinds[0], depth):
            yield [value]
    elif origin in (typing.Union, UnionType):
        for kind in kinds:
            yield from values(kind, depth)
    elif kinds:  # Annotated and Required
        yield from values(kinds[0], depth)
    elif fields := fields_of(hint):
        if depth > 3:
            return
        options = {name: [*values(kind, depth + 1)] for name, kind in fields.items()}
        first = {name: choices[0] for name, choices in options.items() if choices}
        yield first
        for name, choices in options.items():
            for choice in choices[1:]:
                yield {**first, name: choice}
    elif hint is bool:
        yield True
    elif hint in (int, float):
        yield 5
    else:
        yield "QUJD" if hint is bytes else TEXT


@pytest.mark.parametrize("place", USAGE)
def test_no_usage_field_is_unknown(place: str) -> None:
    choice = {"message": assistant("ok")}
    request = {"model": "gpt-4o", "messages": [user("hi")]}
    for usage in values(published(place)):
        assert len(usage) > 1
        response = {"choices": [choice], "usage": usage}
        trace = bk.load_trace({"request": request, "response": response})
        assert not [note for note in trace.warnings if note.startswith("Not read")], usage


def test_no_attribute_of_opentelemetry_is_unknown() -> None:
    attributes = pytest.importorskip(
        "opentelemetry.semconv._incubating.attributes.gen_ai_attributes"
    )
    names = [text for text in vars(attributes).values() if str(text).startswith("gen_ai.usage.")]
    message = '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'
    span = dict.fromkeys(names, 5) | {"gen_ai.input.messages": message}
    trace = bk.load_trace({"attributes": span})
    assert not [note for note in trace.warnings if note.startswith("Not read")]


def request_with(place: str, block: Any) -> dict[str, Any]:
    """Return the body of a request that holds a block or an item of a union."""
    model = {"model": BLOCKS[place]}
    if place.endswith("ResponseInputItemParam"):
        call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": "a", "output": ""}
        return model | {"input": [block, call, output]}  # reasoning counts before a call
    if place.endswith("MessageParam"):
        return model | {"messages": [block]}
    if place.startswith("google"):
        return model | {"contents": [{"role": "user", "parts": [block]}]}
    spoken = user([block])
    if "responses" in place:
        return model | {"input": [spoken]}
    if str(block.get("type")).endswith(("thinking", "_use", "compaction", "fallback")):
        hello = user("hi")
        return model | {"messages": [hello, spoken | {"role": "assistant"}, hello]}
    return model | {"messages": [spoken]}


@pytest.mark.parametrize("place", BLOCKS)
def test_no_block_counts_0_in_silence(place: str) -> None:
    hint = published(place)
    blocks = values(hint)
    if place.startswith("google"):  # a part has one of its fields
        fields = fields_of(hint).items()
        blocks = ({name: value} for name, kind in fields for value in values(kind))
    for block in itertools.islice(blocks, 2_000):
        count = bk.count_request(request_with(place, block))
        assert count.tokens > 150 or count.uncounted, block


@pytest.mark.parametrize("place", TOOLS)
def test_no_tool_counts_0_in_silence(place: str) -> None:
    hint = published(place)
    field, words = ("input", "hi") if "responses" in place else ("messages", [])
    body: dict[str, Any] = {"model": TOOLS[place], field: words or [user("hi")]}
    tools = values(hint)
    if place.startswith("google"):  # a tool has one of its fields
        body = {"model": TOOLS[place], "contents": "hi"}
        fields = fields_of(hint).items()
        tools = ({name: value} for name, kind in fields for value in values(kind))
    plain = bk.count_request(body).tokens
    for tool in itertools.islice(tools, 1_000):
        count = bk.count_request({**body, "tools": [tool]})
        assert count.tokens > plain + 20 or count.uncounted, tool


@pytest.mark.parametrize("place", BODIES)
def test_no_field_of_a_body_is_left_out_in_silence(place: str) -> None:
    """What a newer SDK sends beside the fields of the table is named."""
    body = {"model": "gpt-5.1", BODIES[place]: [user("hi")]}
    if place.startswith("anthropic"):
        body |= {"model": "claude-opus-4-8", "system": "Be brief."}
    for name, kind in fields_of(published(place)).items():
        for value in itertools.islice(values(kind), 20):
            if value and name not in SILENT:
                assert f"field {name}" in bk.count_request({**body, name: value}).uncounted
