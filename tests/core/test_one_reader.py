"""A request is counted and loaded as the same messages, in any shape; what is accepted once is accepted later.

On 0.2.0 two readers knew the five shapes of a request: 48 of 2,751 recorded calls came out differently.
"""

import json
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.requests import read_request
from tests.messages import assistant, calling, system, tool_call, tool_result, user

QUESTION = "What is the capital of Portugal?"
USER = user(QUESTION)
#: A picture of 2 x 3 pixels.
GIF = "R0lGODlhAgADAAAAACw="
PIXELS = {"type": "base64", "media_type": "image/gif", "data": GIF}
THOUGHT = {"type": "thinking", "thinking": "I should look it up.", "signature": "c2lnbmVk"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"query": "capital"}}
RESULT = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "content": [{"type": "text", "text": "Lisbon"}],
}
FOUND = {
    "source": "https://example.org",
    "title": "Portugal",
    "content": [{"text": "Lisbon is its capital."}],
}


def anthropic(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-5",
        "system": "Be brief.",
        "messages": [USER, *messages],
        **more,
    }


def gemini(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    contents = [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {"role": "model", "parts": list(parts)},
    ]
    return {"model": "models/gemini-2.5-flash", "contents": contents, **more}


def converse(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    messages = [user([{"text": QUESTION}]), {"role": role, "content": list(blocks)}]
    return {"modelId": "anthropic.claude-sonnet-4-5", "messages": messages, "inferenceConfig": {}}


def responses(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "instructions": "Be brief.", "input": [USER, *items], **more}


FUNCTION_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "status": "completed",
    "call_id": "call_1",
    "name": "search",
    "arguments": '{"query": "capital"}',
}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "Lisbon"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
CHAT_CALL = tool_call("call_1", "search")
CALLED = calling(CHAT_CALL)
TOOL_USE = {"toolUse": {"toolUseId": "t1", "name": "search", "input": {"query": "capital"}}}


def answered(*content: dict[str, Any]) -> dict[str, Any]:
    body = converse(TOOL_USE, role="assistant")
    result = {"toolResult": {"toolUseId": "t1", "content": list(content)}}
    return {**body, "messages": [*body["messages"], user([result])]}


BODIES: dict[str, dict[str, Any]] = {
    "chat": {"model": "gpt-4o", "messages": [system("Be brief."), USER]},
    "chat with a call": {"model": "gpt-4o", "messages": [USER, CALLED, tool_result("call_1", "Lisbon")]},
    "chat with thinking": {
        "model": "mistral-small-latest",
        "messages": [USER, assistant([{"type": "thinking", "thinking": [{"type": "text"}]}])],
    },
    "chat of Ollama, whose format is a schema": {"model": "llama3", "format": {"type": "object"}, "messages": [USER]},
    "responses": responses(assistant([{"type": "output_text", "text": "Lisbon."}])),
    "responses, a text": {"model": "gpt-4o", "input": QUESTION},
    "responses with a call": responses(REASONING, FUNCTION_CALL, OUTPUT),
    "responses with two calls": responses(FUNCTION_CALL, {**FUNCTION_CALL, "call_id": "call_2"}, OUTPUT),
    "responses that go on": {"model": "gpt-4o", "previous_response_id": "resp_1", "input": [OUTPUT]},
    "responses with a search": responses({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    "anthropic": anthropic(assistant([{"type": "text", "text": "Lisbon."}])),
    "anthropic, thinking before a call": anthropic(assistant([THOUGHT, USE]), user([RESULT])),
    "anthropic, thinking hidden": anthropic(assistant([{"type": "redacted_thinking", "data": "x"}])),
    "anthropic with a picture": anthropic(user([{"type": "image", "source": PIXELS}])),
    "anthropic with a document": anthropic(user([{"type": "document", "source": {"type": "text", "data": "x"}}])),
    "gemini": gemini({"text": "Lisbon."}, systemInstruction={"parts": [{"text": "Be brief."}]}),
    "gemini, code that ran": gemini(
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    ),
    "gemini with a call": gemini({"functionCall": {"name": "search", "args": {"query": "capital"}}}),
    "gemini with a text file": gemini({"inlineData": {"mimeType": "text/plain", "data": "MTIz"}}),
    "gemini with a picture": gemini({"inlineData": {"mimeType": "image/gif", "data": GIF}}),
    "gemini, asked to count": {"generateContentRequest": gemini({"text": "Lisbon."})},
    "converse": converse({"text": "Be quick."}),
    "converse, guarded": converse({"guardContent": {"text": {"text": "Be quick.", "qualifiers": ["query"]}}}),
    "converse, a search result": answered({"searchResult": FOUND}),
    "converse, JSON": answered({"json": {"city": "Lisbon"}}, {"text": "as asked"}),
    "converse, a document": answered({"document": {"format": "pdf", "name": "a", "source": {"bytes": GIF}}}),
    "converse, reasoning": converse(
        {"reasoningContent": {"reasoningText": {"text": "Look it up.", "signature": "c2ln"}}},
        TOOL_USE,
        role="assistant",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_request_is_counted_and_loaded_as_the_same_messages(name: str) -> None:
    request, trace = read_request(BODIES[name]), bk.load_trace(BODIES[name])
    assert [message.raw for message in request.messages] == [
        message.raw for message in trace.messages
    ]
    assert {kind for message in request.messages for kind in message.uncounted} <= set(
        request.uncounted
    ) | {kind.removeprefix("item ") for kind in request.uncounted}


@pytest.mark.parametrize("name", BODIES)
def test_what_a_request_holds_is_counted_or_named(name: str) -> None:
    """No part of a body is 0 tokens in silence: what has no text of its own makes the count open at its end."""
    counted = bk.count_request(BODIES[name])
    texts = sum(len(message.text) for message in read_request(BODIES[name]).messages)
    assert counted.tokens > 0 and texts > 0
    assert (counted.interval[1] is None) == bool(
        counted.uncounted and counted.uncounted != ("image of unknown size",)
    )


def test_a_picture_is_as_large_as_its_bytes_say_in_every_shape() -> None:
    for name in ("anthropic with a picture", "gemini with a picture"):
        (image,) = (
            image for message in read_request(BODIES[name]).messages for image in message.images
        )
        assert image.url.endswith(GIF)
        assert bk.count_request(BODIES[name]).uncounted == ()


@pytest.mark.parametrize(
    ("name", "uncounted"),
    [
        ("chat with thinking", ("thinking in the history",)),
        ("converse, reasoning", ("thinking in the history",)),
        ("responses with a call", ("reasoning before a call",)),
        ("responses with a search", ("item web_search_call",)),
        ("responses that go on", ("server state (previous_response_id)",)),
        ("anthropic with a document", ()),
        ("gemini with a text file", ("text/plain",)),
        ("converse, a search result", ()),
        ("converse, a document", ("document",)),
        ("converse, guarded", ()),
        ("gemini, code that ran", ()),
    ],
)
def test_what_nobody_can_count_has_a_name(name: str, uncounted: tuple[str, ...]) -> None:
    assert bk.count_request(BODIES[name]).uncounted == uncounted


@pytest.mark.parametrize("name", BODIES)
def test_what_is_accepted_can_be_counted_saved_and_redacted(name: str, tmp_path: Any) -> None:
    trace = bk.load_trace(BODIES[name])
    assert int(trace.demand("o200k_base").to_numpy().sum()) > 0
    talk = bk.Conversation(bk.presets.working_memory(50_000, output=1_000))
    talk.add(*trace.messages)
    request = talk.request()
    again = bk.Conversation.from_json(talk.to_json())
    assert again.request().messages == request.messages
    json.dumps(request.messages, allow_nan=False)
    path = tmp_path / "saved.jsonl"
    path.write_text(bk.trace.to_line(trace), "utf-8")
    assert bk.load_trace(path).messages == trace.messages
    redacted = bk.redaction.redact(trace, "o200k_base")
    assert (
        redacted.counts("o200k_base").tolist()
        == trace.counts("o200k_base", redacted.framing).tolist()
    )
