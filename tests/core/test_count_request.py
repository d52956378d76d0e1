"""What a provider bills for a request: each rule on a request small enough to add up by hand.

Counts of short texts are asserted beside the sums, so that every total can be followed with a pencil.
"""

import html
import json
import re
import warnings
from base64 import b64encode
from contextlib import suppress
from copy import deepcopy
from datetime import date
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.extras.shell.gate import check
from budgetkit.files import read_toml
from budgetkit.models import resolve
from budgetkit.models.names import openai_family
from budgetkit.requests import framing_for
from budgetkit.requests.billing.images import size_in
from budgetkit.requests.billing.openai import FAMILIES, namespace, schema_block
from tests.messages import assistant, calling, tool, tool_call, tool_result, user

N = bk.counter("o200k_base")
HELLO = user("Hello world")
PING = tool("ping", description="Look whether a host answers")
PING_BLOCK = """# Tools

## functions

namespace functions {

// Look whether a host answers
type ping = () => any;

} // namespace functions"""
REPLY = {
    "name": "Reply",
    "schema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}
REPLY_BLOCK = (
    '# Response Formats\n\n## Reply\n\n{"type":"object","properties":{"word":{"type":"string"}}}'
)


def chat(*messages: dict[str, Any], model: str = "gpt-4o", **more: Any) -> int:
    return bk.count_request({"model": model, "messages": list(messages), **more}).tokens


def call(id: str, name: str = "ping", arguments: str = "{}") -> dict[str, Any]:
    return tool_call(id, name, arguments)


# OpenAI chat


def test_text_is_3_and_for_each_message_4_and_its_text() -> None:
    assert chat(HELLO) == 3 + (4 + 2) == 9
    assert chat(HELLO, model="gpt-5") == 2 + (4 + 2) == 8
    assert chat({**HELLO, "name": "bob"}) == 3 + (4 + 2) + (1 + 1) == 11
    assert chat({**HELLO, "name": "user"}) == 3 + (4 + 2) + 1, (
        "a name that repeats the role says nothing new"
    )


def test_developer_and_system_are_billed_alike() -> None:
    roles = ({"role": role, "content": "Be brief."} for role in ("system", "developer"))
    assert len({chat(message, HELLO, tools=[PING]) for message in roles}) == 1


def test_a_refusal_counts_as_its_text() -> None:
    said = assistant(None, refusal="Hello world")
    assert chat(said) == chat(assistant("Hello world"))


def test_tools_follow_the_first_system_text_and_take_one_token_off() -> None:
    assert namespace([PING]) == PING_BLOCK.partition("functions\n\n")[2]
    system = {"role": "system", "content": "Be brief"}
    joined = N(f"Be brief\n\n{PING_BLOCK}")
    assert chat(system, HELLO, tools=[PING]) == 3 + 4 + joined - 1 + (4 + 2)
    assert chat(HELLO, tools=[PING]) == 3 + (4 + 2) + (4 + N(PING_BLOCK) - 1)


def test_gpt_5_is_told_more_with_tools_and_its_system_text_gets_a_heading() -> None:
    system = {"role": "system", "content": "Be brief"}
    joined = N(f"# Instructions\n\nBe brief\n\n{PING_BLOCK}")
    assert chat(system, HELLO, model="gpt-5-mini", tools=[PING]) == 2 + 4 + joined + 81 + (4 + 2)
    assert chat(HELLO, model="gpt-5-mini", tools=[PING]) == 2 + (4 + 2) + (4 + N(PING_BLOCK) + 81)


def test_an_answer_schema_is_a_block_and_its_name_begins_every_answer() -> None:
    assert schema_block(REPLY) == REPLY_BLOCK
    form = {"type": "json_schema", "json_schema": REPLY}
    assert N("Reply") == 1
    assert chat(HELLO, response_format=form) == 3 + (4 + 2) + (4 + N(REPLY_BLOCK)) + (2 + 1)
    earlier = assistant("Hello world")
    assert chat(HELLO, earlier, response_format=form) - chat(HELLO, response_format=form) == (
        4 + 2
    ) + (2 + 1)
    assert chat(HELLO, response_format=form, model="gpt-5") == 2 + (4 + 2) + (4 + N(REPLY_BLOCK))
    assert chat(HELLO, response_format={"type": "json_object"}) == chat(HELLO)


def test_tools_and_answer_schema_stand_in_one_text_and_the_answer_is_not_begun() -> None:
    both = N(f"{PING_BLOCK}\n\n{REPLY_BLOCK}")
    form = {"type": "json_schema", "json_schema": REPLY}
    assert chat(HELLO, tools=[PING], response_format=form) == 3 + (4 + 2) + (4 + both - 1)


def test_the_model_is_not_shown_what_only_checks_an_answer() -> None:
    shape = {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 3, "$schema": "x"}  # fmt: skip
    whole = {"type": "object", "properties": {"default": shape}, "additionalProperties": False}
    words = {"type": "array", "items": {"type": "string"}}
    shown = {"type": "object", "properties": {"default": words}}
    assert schema_block({"name": "L", "description": "All", "schema": whole}) == (
        f"# Response Formats\n\n## L\n\n// All\n{json.dumps(shown, separators=(',', ':'))}"
    )


def test_a_call_and_its_result_are_12_and_the_name_twice_arguments_and_result() -> None:
    made = calling(call("1", arguments='{ "host": "a" }'))
    told = tool_result("1", "Hello world")
    four = N("functions.ping") + N("ping") + N('{"host":"a"}') + 2
    assert chat(HELLO, made, told) - chat(HELLO) == 12 + four
    assert chat(HELLO, made, told, model="gpt-5") - chat(HELLO, model="gpt-5") == 12 + four + 6
    older = chat(HELLO, made, told, model="gpt-4-0613") - chat(HELLO, model="gpt-4-0613")
    own = bk.counter("cl100k_base")
    assert older == 10 + 2 * own("ping") + own('{ "host": "a" }') + 2


def test_parallel_calls_are_one_json_object_and_their_results_one_list() -> None:
    made = {"role": "assistant", "tool_calls": [call("1"), call("2", arguments='{"host":"é"}')]}
    told = [tool_result(id, text) for id, text in (("1", "é"), ("2", '{"up": true}'))]
    uses = (
        '{"tool_uses":[{"recipient_name":"functions.ping","parameters":{}},'
        '{"recipient_name":"functions.ping","parameters":{"host":"é"}}]}'
    )
    gpt_4o, mini = '["é", {"up": true}]', '["\\u00e9", {"up": true}]'
    for model, listed in (("gpt-4o", gpt_4o), ("gpt-4o-mini", mini)):
        more = chat(HELLO, made, *told, model=model) - chat(HELLO, model=model)
        assert more == 20 + N(uses) + N(listed), model


def test_a_tool_that_must_be_called_costs_its_name_and_6() -> None:
    ping = {"type": "function", "function": {"name": "ping"}}
    tokens = [
        chat(HELLO, tools=[PING], tool_choice=choice, model=model)
        for model in ("gpt-4o", "gpt-5")
        for choice in ("auto", "required", ping)
    ]
    free = chat(HELLO, tools=[PING])
    new = chat(HELLO, tools=[PING], model="gpt-5")
    assert tokens == [free, free, free + N("functions.ping") + 6, new, new, new]


def test_older_snapshots_keep_the_older_form() -> None:
    """The namespace, 5 around it and 4 for a message of its own; the new form would add its two headings."""
    own = bk.counter("cl100k_base")
    block = PING_BLOCK.partition("functions\n\n")[2]
    assert chat(HELLO, tools=[PING], model="gpt-4-0613") == 3 + (4 + 2) + own(block) + 5 + 4
    assert chat(HELLO, tools=[PING], model="gpt-4") == chat(HELLO, tools=[PING], model="gpt-4-0613")
    assert chat({**HELLO, "name": "bob"}, model="gpt-3.5-turbo-0301") == 3 + (5 + 2) + (1 - 1)


# How tools are written


PARAMETERS: dict[str, Any] = {
    "type": "object",
    "title": "SearchInput",
    "properties": {
        "query": {"type": "string", "title": "Query", "description": "What to look for\n  in two lines"},
        "many": {"type": "integer", "default": 5},
        "since": {"anyOf": [{"type": "string", "format": "date", "description": "A day"}, {"type": "null"}]},
        "sort": {"enum": ["new", "old"], "type": "string", "default": "new"},
        "point": {"$ref": "#/$defs/Point"},
        "tags": {"type": "array", "items": {"type": "string", "description": "A word"}},
        "rows": {"type": "array", "items": {"type": "array"}},
        "extra": {"type": "object"},
    },
    "required": ["query"],
    "$defs": {
        "Point": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"const": 0}}}
    },
}  # fmt: skip
WRITTEN = """type search = (_: // SearchInput
{
// Query
//
// What to look for
// in two lines
query: string,
many?: number, // default: 5
since?:
 | string // A day // format: date
 | null
,
sort?: "new" | "old", // default: new
point?: { x?: number, y?: 0 },
tags?: Array<
// A word
string
>,
rows?: any[][],
extra?: object,
}) => any;"""


def test_tools_are_written_as_the_model_is_shown_them() -> None:
    written = namespace([{"name": "search", "parameters": PARAMETERS}])
    assert written == f"namespace functions {{\n\n{WRITTEN}\n\n}} // namespace functions"


def test_gpt_5_is_shown_a_union_on_one_line() -> None:
    union = {"type": "object", "properties": {"since": {"type": ["string", "null"]}}}
    assert "since?: string | null }" in namespace([{"name": "f", "parameters": union}], plain=True)


def test_a_schema_that_refers_to_itself_ends() -> None:
    endless = {
        "properties": {"next": {"$ref": "#/$defs/N"}},
        "$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}}},
    }
    assert 40 < len(namespace([{"name": "f", "parameters": endless}])) < 2_000


# OpenAI Responses


def responses(model: str = "gpt-4o", **body: Any) -> int:
    return bk.count_request({"model": model, **body}).tokens


def test_responses_bill_text_as_chat_does() -> None:
    assert responses(input="Hello world") == 9
    assert responses(input="Hello world", instructions="Hello world") == 15
    assert responses("gpt-5", input=[HELLO, assistant("Hello world")]) == 2 + 6 + (6 + 2)
    parts = [{"type": "input_text", "text": text} for text in ("Is it so", "?\n")]
    assert responses(input=[user(parts)]) == 3 + 4 + N("Is it so?\n")


def test_responses_never_join_tools_to_the_system_text() -> None:
    tool = {"type": "function", **PING["function"]}
    block = N(PING_BLOCK.removeprefix("# Tools\n\n"))
    assert responses(input="Hello world", instructions="Hello world", tools=[tool]) == 15 + block
    assert responses("gpt-5", input="Hello world", tools=[tool]) == 8 + block + 6
    alone = responses("gpt-5", input="Hello world", tools=[tool], parallel_tool_calls=False)
    assert alone == 8 + block + 6 + 78
    assert responses(input="Hello world", tools=[tool], tool_choice="required") == 9 + block + 9


def test_responses_answer_schema() -> None:
    text = {"format": {"type": "json_schema", **REPLY}}
    assert responses(input="Hello world", text=text) == 9 + N(REPLY_BLOCK) + 1
    assert responses("gpt-5", input="Hello world", text=text) == 8 + N(REPLY_BLOCK)


def test_responses_never_merge_calls() -> None:
    def made(call_id: str, **more: str) -> dict[str, str]:
        call = {"type": "function_call", "call_id": call_id, "name": "ping", "arguments": "{}"}
        return {**call, **more}

    def told(call_id: str) -> dict[str, str]:
        return {"type": "function_call_output", "call_id": call_id, "output": "Hello world"}

    names, rest = N("functions.ping") + N("ping"), N("{}") + 2
    assert responses(input=[HELLO, made("1"), told("1")]) == 9 + 10 + names + rest
    as_answered = made("1", id="fc_1", status="completed")
    assert responses(input=[HELLO, as_answered, told("1")]) == 9 + 13 + names + rest
    twice = 2 * N("functions.ping")
    for model, constant in (("gpt-5", 15), ("gpt-5.4", 18)):
        assert responses(model, input=[HELLO, made("1"), told("1")]) == 8 + constant + twice + rest
        both = responses(model, input=[HELLO, made("1"), made("2"), told("1"), told("2")])
        assert both == 8 + 2 * (constant + 5 + twice + rest)


# What cannot be counted is named

REASONING = {"type": "reasoning"}
MADE = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
TOLD = {"type": "function_call_output", "call_id": "1", "output": "ok"}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"input": "Hi", "previous_response_id": "resp_1"}, "server state (previous_response_id)"),
        ({"input": "Hi", "tools": [{"type": "web_search"}]}, "built-in tool web_search"),
        ({"input": [user([{"type": "input_file", "file_id": "x"}])]}, "input_file"),
        ({"input": [{"type": "web_search_call", "id": "x"}]}, "item web_search_call"),
        ({"messages": [HELLO], "web_search_options": {}}, "built-in tool web_search"),
        ({"messages": [HELLO], "model": "gpt-4o-search-preview"}, "built-in tool web_search"),
        ({"messages": [user([{"type": "input_audio", "input_audio": {}}])]}, "input_audio"),
        (
            {"contents": [{"parts": [{"fileData": {"fileUri": "x"}}]}], "cachedContent": "c"},
            "fileData",
        ),
        ({"contents": "Hi", "tools": [{"googleSearch": {}}]}, "built-in tool googleSearch"),
    ],
)
def test_what_nobody_can_count_is_named(body: dict[str, Any], named: str) -> None:
    counted = bk.count_request(body, model=body.get("model", "gpt-4o"))
    assert named in counted.uncounted
    assert not counted.exact
    assert counted.interval[1] is None, "nobody can say how much more"


@pytest.mark.parametrize(
    ("items", "uncounted"),
    [
        ([HELLO, REASONING, MADE, TOLD], ("reasoning before a call",)),
        ([HELLO, REASONING, MADE, TOLD, HELLO], ()),
        ([HELLO, REASONING, assistant("Hi")], ()),
    ],
    ids=["running", "passed", "answered"],
)
def test_reasoning_is_billed_before_a_call_until_the_user_speaks_again(
    items: list[Any], uncounted: tuple[str, ...]
) -> None:
    assert bk.count_request({"model": "gpt-5", "input": items}).uncounted == uncounted


# Images


def picture(width: int, height: int, kind: str = "png") -> bytes:
    """Write the head of an image file, which is all that is read."""
    wide, high = (width - 1).to_bytes(3, "little"), (height - 1).to_bytes(3, "little")
    small, riff = pack("<HH", width, height), b"RIFF\0\0\0\0WEBPVP8"
    return {
        "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + pack(">II", width, height),
        "gif": b"GIF89a" + small,
        "jpeg": b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x11\x08" + pack(">HH", height, width) + b"\3",
        "webp-lossy": riff + b" \0\0\0\0\0\0\0\x9d\x01\x2a" + small,
        "webp-lossless": riff + b"L\0\0\0\0/" + pack("<I", width - 1 | height - 1 << 14) + b"\0" * 8,
        "webp-extended": riff + b"X" + b"\0" * 8 + wide + high,
    }[kind]  # fmt: skip


def shown(data: bytes, **more: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{b64encode(data).decode()}"
    return user([{"type": "image_url", "image_url": {"url": url, **more}}])


@pytest.mark.parametrize(
    "kind", ["png", "gif", "jpeg", "webp-lossy", "webp-lossless", "webp-extended"]
)
@given(width=st.integers(1, 16_000), height=st.integers(1, 16_000))
def test_the_size_of_an_image_is_in_its_first_bytes(kind: str, width: int, height: int) -> None:
    data = b64encode(picture(width, height, kind)).decode()
    assert size_in(f"data:image/x;base64,{data}") == (width, height)


@given(
    st.text() | st.binary().map(lambda data: f"data:image/png;base64,{b64encode(data).decode()}")
)
def test_any_other_address_has_no_size_and_never_raises(url: str) -> None:
    assert size_in(url) is None or min(size_in(url) or ()) > 0
    assert size_in(f"data:image/png;base64,{url}") is None or url


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        # OpenAI's tiles of 512: 640 by 480 are two; or its 300 patches of 32 times a factor, and one
        ("gpt-4o", (640, 480), "", 85 + 170 * 2),
        ("gpt-4o-mini", (640, 480), "", 2_833 + 5_667 * 2),
        ("gpt-5", (640, 480), "", 70 + 140 * 2),
        ("gpt-4.1-mini", (640, 480), "", 487 + 1),
        ("gpt-5-mini", (640, 480), "", 360 + 1),
        ("gpt-5.4", (640, 480), "", 360 + 1),
        ("gpt-5-nano", (640, 480), "", 450 + 1),
        ("o4-mini", (640, 480), "", 516 + 1),
        # its patches times 1.2, and the one token that bills add
        ("gpt-5.6-sol", (4000, 2500), "", 11_850 + 1),
        ("gpt-5.6-sol", (4000, 2500), "high", 2_949 + 1),
        ("gpt-5.6", (3840, 2160), "low", 173 + 1),
        ("gpt-6-astra", (4032, 3024), "", 14_364 + 1),
        ("gpt-6-astra", (2560, 1440), "high", 2_931 + 1),
        ("gpt-6.1-sol", (3840, 2160), "auto", 9_792 + 1),
        ("openai/gpt-5.5", (4032, 3024), "", 11_868 + 1),
        ("gpt-5.5", (4032, 3024), "high", 2_942 + 1),
        ("gpt-5.4", (4032, 3024), "", 2_942 + 1),
        ("gpt-5.4", (4032, 3024), "original", 11_868 + 1),
        ("gpt-5.4-mini", (1024, 1024), "", 1_659 + 1),
        ("gpt-5.2", (1024, 1024), "", 1_229 + 1),
        ("gpt-5.2-codex", (1024, 1024), "", 1_229 + 1),
        ("gpt-5.3-codex", (1024, 1024), "", 1_229 + 1),
        ("gpt-5.1-codex-mini", (640, 480), "", 487 + 1),
        ("gpt-5.1-codex", (640, 480), "", 70 + 140 * 2),
        # Claude's squares: the last two were billed, 4 tokens beside the squares
        ("claude-sonnet-4-6", (1920, 1080), "", 1_560 + 4),
        ("claude-haiku-4-5", (4032, 3024), "", 1_564 + 4),
        ("claude-opus-4-20250514", (1920, 1080), "", 1_560 + 4),
        ("claude-opus-4-8", (1920, 1080), "", 2_691 + 4),
        ("claude-fable-5-1", (3840, 2160), "", 4_784 + 4),
        ("claude-sonnet-5-5", (8000, 8000), "", 69 * 69 + 4),
        ("us.anthropic.claude-opus-4-7-v1:0", (1800, 1200), "", 2_795 + 4),
        ("claude-sonnet-4-6", (1800, 1200), "", 1_536 + 4),
        # Gemini 3's grid, and Gemini 2's crops, of which OpenRouter billed 7 for 1,800 by 1,200
        ("gemini-3.5-flash", (60, 30), "", 1_081),
        ("gemini-3-flash-preview", (128, 128), "", 1_089),
        ("gemini-4-argon", (1920, 1080), "", 1_100),
        ("gemini-3.8-flash", (4032, 3024), "", 1_064),
        ("gemini-3.1-pro-preview", (1024, 1024), "low", 256),
        ("gemini-3.1-pro-preview", (1024, 1024), "ultra_high", 47 * 47),
        ("gemini-2.5-flash", (384, 384), "", 258),
        ("gemini-2.5-flash", (1800, 1200), "", 7 * 258),
        ("gemini-2.5-flash", (1800, 1200), "low", 66),
        # and others that recorded calls hold
        ("ministral-14b-latest", (128, 128), "", 30),
        ("qwen2.5-vl-7b-instruct", (1800, 1200), "", 65 * 43 + 2),
    ],
)
def test_an_image_is_priced_by_the_rule_of_its_own_generation(
    model: str, size: tuple[int, int], detail: str, tokens: int
) -> None:
    """Patches were capped at 1,536 for all of OpenAI's, Claude's at 1,568 tokens, and Gemini's were 258."""
    data = b64encode(picture(*size)).decode()
    if model.startswith("gemini"):
        part: dict[str, Any] = {"inlineData": {"mimeType": "image/png", "data": data}}
        if detail:
            part["mediaResolution"] = {"level": f"MEDIA_RESOLUTION_{detail.upper()}"}
        body: dict[str, Any] = {"model": model, "contents": [{"role": "user", "parts": [part]}]}
    elif "claude" in model:
        source = {"type": "base64", "media_type": "image/png", "data": data}
        part = {"type": "image", "source": source}
        body = {"model": model, "max_tokens": 9, "messages": [user([part])]}
    else:
        message = shown(picture(*size), **({"detail": detail} if detail else {}))
        body = {"model": model, "messages": [message]}
    counted = bk.count_request(body)
    assert [row.tokens for row in counted.ledger if row.kind == "image"] == [tokens]
    assert not counted.exact, "fewer than 50 recorded calls hold an image"
    assert counted.interval[0] <= counted.tokens <= (counted.interval[1] or 0)


def test_one_resolution_holds_for_all_media_of_a_request_to_gemini() -> None:
    data = {"mimeType": "image/png", "data": b64encode(picture(1024, 1024)).decode()}
    own = {"inlineData": data, "mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"}}
    parts = [{"inlineData": data}, own, {"text": "Which?"}]
    low = {"mediaResolution": "MEDIA_RESOLUTION_LOW"}
    contents = [{"role": "user", "parts": parts}]
    body = {"model": "gemini-3.5-flash", "contents": contents, "generationConfig": low}
    counted = bk.count_request(body)
    assert [row.tokens for row in counted.ledger if row.kind == "image"] == [16 * 16, 33 * 33]


def pdf(pages: int) -> str:
    return b64encode(b"%PDF-1.4\n/Type /Pages\n" + b"<</Type /Page>>\n" * pages).decode()


def sound(seconds: float) -> str:
    """Write a WAV file of 8,000 bytes a second."""
    head = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0" + pack("<HHIIHH", 1, 1, 8_000, 8_000, 1, 8)
    head += b"data\0\0\0\0"
    return b64encode(head + b"\0" * round(8_000 * seconds)).decode()


def film(seconds: int) -> str:
    head = b"\0\0\0\x18ftypmp42" + b"\0" * 12 + b"mvhd" + b"\0" * 12
    return b64encode(head + pack(">II", 1_000, 1_000 * seconds)).decode()


def gemini(model: str, mime: str, data: str) -> dict[str, Any]:
    part = {"inlineData": {"mimeType": mime, "data": data}}
    return {"model": model, "contents": [{"role": "user", "parts": [part, {"text": "Hello"}]}]}


def document(model: str, data: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    content = [{"type": "document", "source": source}, {"type": "text", "text": "Hello"}]
    return {"model": model, "max_tokens": 9, "messages": [user(content)]}


def chat_file(model: str, data: str) -> dict[str, Any]:
    url = f"data:application/pdf;base64,{data}"
    content = [{"type": "file", "file": {"filename": "a.pdf", "file_data": url}}]
    return {"model": model, "messages": [user(content)]}


@pytest.mark.parametrize(
    ("body", "part", "tokens", "billed"),
    [
        # what recorded calls billed beyond their text
        (gemini("gemini-2.5-flash", "application/pdf", pdf(1)), "1 page", 258, (258, 1_289)),
        (gemini("gemini-2.5-flash", "application/pdf", pdf(3)), "3 pages", 774, (774, 777)),
        (gemini("gemini-3.5-flash", "application/pdf", pdf(1)), "1 page", 532, (520, 551)),
        (document("claude-haiku-4-5", pdf(1)), "1 page", 2_650, (1_624, 4_233)),
        (document("claude-sonnet-4-5", pdf(2)), "2 pages", 5_300, (5_358, 5_358)),
        (chat_file("gpt-5.4", pdf(1)), "1 page", 1_000, (1_033, 1_034)),
        (gemini("gemini-2.0-flash", "audio/x-wav", sound(1)), "1 second of audio", 33, (25, 35)),
        (gemini("gemini-2.0-flash", "video/mp4", film(5)), "5 seconds of video", 1_475, (1_290, 1_475)),
    ],
)  # fmt: skip
def test_a_page_and_a_second_are_counted_within_an_interval(
    body: dict[str, Any], part: str, tokens: int, billed: tuple[int, int]
) -> None:
    """They were named as what nobody can count, and the interval had no end."""
    counted = bk.count_request(body)
    (media,) = [row for row in counted.ledger if row.kind == "media"]
    assert (media.part, counted.uncounted) == (part, ())
    assert abs(media.tokens - tokens) <= 1 and not counted.exact
    text = counted.tokens - media.tokens
    low, high = counted.interval
    assert high is not None and low <= text + billed[0] <= text + billed[1] <= high


@pytest.mark.parametrize(
    ("objects", "part"),
    [
        # a page of an earlier version stays in the file
        ([b"<</Type/Page>>", b"<</Type/Pages/Count 1>>", b"<</Type /Page /New 1>>"], "1 page"),
        (
            [b"<</Type/Page>>", b"<</Count 9/Kids[]/Type/Pages>>", b"<</Type/ObjStm>> packed"],
            "9 pages",
        ),
        ([b"<</Type/Pages/Count 2>>", b"<</Count 12 /Type/Pages>>", b"<</Count 40>>"], "12 pages"),
        ([b"<</Type/Page>>", b"<</Type/ObjStm>> packed"], ""),
    ],
)
def test_the_pages_of_a_pdf_are_those_of_its_tree(objects: list[bytes], part: str) -> None:
    """Two versions of one page were two pages, and one page beside eight compressed ones was one."""
    data = b"%PDF-1.7\n" + b"\n".join(b"1 0 obj " + text + b" endobj" for text in objects)
    counted = bk.count_request(document("claude-haiku-4-5", b64encode(data).decode()))
    assert [row.part for row in counted.ledger if row.kind == "media"] == [part] * bool(part)
    assert (counted.interval[1] is None) is (part == "")


@pytest.mark.parametrize(
    "body",
    [
        document("claude-haiku-4-5", b64encode(b"%PDF-1.7 compressed").decode()),
        document("grok-4.5", pdf(1)),
        gemini("gemini-2.5-flash", "audio/mp3", b64encode(b"ID3").decode()),
        gemini("gemini-2.5-flash", "application/pdf", "no base64"),
    ],
)
def test_media_of_no_known_length_or_rule_are_named_as_not_counted(body: dict[str, Any]) -> None:
    counted = bk.count_request(body)
    assert counted.uncounted and counted.interval[1] is None


def test_every_rule_for_images_names_its_source_and_date() -> None:
    rows = read_toml("images.toml")["image"]
    media = read_toml("media.toml")["media"]
    assert all(row["source"] and date.fromisoformat(row["date"]) for row in (*rows, *media))
    assert rows[-1]["models"] == ""
    assert all(row["least"] <= row["usual"] <= row["most"] for row in media)


def test_an_image_of_unknown_size_is_named_and_has_an_interval() -> None:
    message = user([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}])
    counted = bk.count_request({"model": "gpt-4o", "messages": [message]})
    assert (counted.tokens, counted.uncounted) == (7 + 765, ("image of unknown size",))
    assert not counted.exact
    assert counted.interval == (7 + 255, 7 + 85 + 170 * 8)


@pytest.mark.parametrize(
    ("size", "measured", "by_the_page"),
    [((3840, 2160), 2_992, 4_784), ((4032, 3024), 3_928, 4_740), ((1920, 1080), 2_691, 2_691)],
)
def test_the_interval_of_a_large_image_for_claude_holds_the_page_and_the_measured_bill(
    size: tuple[int, int], measured: int, by_the_page: int
) -> None:
    """A long side above 2,000 pixels was measured as one of 2,000; the page says 2,576."""
    source = {"type": "base64", "media_type": "image/png"}
    source["data"] = b64encode(picture(*size)).decode()
    shown = user([{"type": "image", "source": source}])
    counted, without = (
        bk.count_request({"model": "claude-opus-5-5", "max_tokens": 9, "messages": [message]})
        for message in (shown, user(""))
    )
    low, high = counted.interval
    assert high is not None
    assert low <= without.tokens + measured
    assert without.tokens + by_the_page <= high
    assert counted.tokens == without.tokens + by_the_page + 4


# Anthropic, Bedrock, Gemini


TOOL = {**PING["function"], "input_schema": {"type": "object"}}


def test_claude_is_estimated_with_a_hidden_prompt_as_soon_as_there_is_a_tool() -> None:
    body: dict[str, Any] = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [HELLO]}
    plain, armed = bk.count_request(body), bk.count_request({**body, "tools": [TOOL]})
    assert (plain.shape, plain.exact) == ("anthropic", False)
    hidden = {row.part: row.tokens for row in armed.ledger if row.kind == "hidden prompt"}
    written = bk.counter(resolve("claude-haiku-4-5"))(
        '{"name": "ping", "description": "Look whether a host answers", "input_schema": {"type": "object"}}'
    )
    assert armed.tokens == plain.tokens + hidden["tools"] + written
    forced = bk.count_request({**body, "tools": [TOOL], "tool_choice": {"type": "any"}})
    assert forced.tokens > armed.tokens
    low, high = armed.interval
    assert low < armed.tokens < (high or 0) < 2 * armed.tokens


def test_bedrock_bills_claude_as_anthropic_does() -> None:
    own = {"system": "Be brief", "messages": [HELLO], "tools": [TOOL], "max_tokens": 9}
    spec = {**PING["function"], "inputSchema": {"json": TOOL["input_schema"]}}
    converse = {
        "system": [{"text": "Be brief"}],
        "messages": [user([{"text": "Hello world"}])],
        "toolConfig": {"tools": [{"toolSpec": spec}]},
    }
    model = "us.anthropic.claude-sonnet-4-5-v1:0"
    anthropic, bedrock = (bk.count_request(body, model=model) for body in (own, converse))
    assert (anthropic.shape, bedrock.shape) == ("anthropic", "converse")
    assert anthropic.ledger == bedrock.ledger


def test_gemini_has_no_framing_and_reads_both_names_of_a_schema() -> None:
    def counted(**more: Any) -> bk.requests.RequestCount:
        contents = [{"role": "user", "parts": [{"text": "Hello world"}]}]
        return bk.count_request({"contents": contents, **more}, model="gemini-2.5-flash")

    plain = counted().tokens
    assert 2 <= plain <= 4
    host = {"type": "string", "description": "Its name"}
    schema = {"type": "object", "properties": {"host": host}}
    old, new = (
        counted(tools=[{"functionDeclarations": [{"name": "ping", field: schema}]}])
        for field in ("parameters", "parametersJsonSchema")
    )
    assert old.ledger == new.ledger
    assert old.tokens > plain + 20
    assert counted(generationConfig={"responseSchema": schema}).tokens <= plain + 1


def test_thinking_of_anthropic_counts_again_only_where_it_led_to_a_call() -> None:
    def tokens(*blocks: dict[str, Any]) -> int:
        body = {"system": "x", "messages": [HELLO, assistant(list(blocks))]}
        return bk.count_request(body, "claude-sonnet-4-5").tokens

    thought = {"type": "thinking", "thinking": "Let me see what I can do about it"}
    said = {"type": "text", "text": "Yes"}
    call = {"type": "tool_use", "id": "1", "name": "ping", "input": {}}
    assert tokens(thought, said) == tokens(said)
    assert tokens(thought, call) == tokens(call) + bk.counter("claude-sonnet-4-5")(
        thought["thinking"]
    )


# One set of rules


MIXED: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief"},
    HELLO,
    assistant("", tool_calls=[call("1"), call("2")]),
    tool_result("1", "up"),
    tool_result("2", "down"),
    assistant("One is up.", tool_calls=[call("3")]),
    tool_result("3", '{"up": true}'),
    assistant("Now both are."),
    shown(picture(640, 480)),
]


@pytest.mark.parametrize(
    "model",
    [
        *("gpt-4o", "gpt-4o-mini", "gpt-3.5-turbo", "gpt-4-0613", "o3", "gpt-5"),
        *("claude-opus-4-5", "gemini-2.5-pro", "x"),
    ],
)
def test_a_conversation_is_counted_by_the_rules_of_its_requests(model: str) -> None:
    """What a trace, its messages, its tools and a request of them all are: one number."""
    counted = bk.count_request({"model": model, "messages": MIXED, "tools": [PING]})
    framing, count = framing_for(model), bk.counter(resolve(model))
    assert framing.request(MIXED, count, [PING]) == counted.tokens
    schemas = framing.schemas([PING], count, MIXED[:1])
    apart = framing.priming + sum(framing.messages(MIXED, count)) + schemas
    assert apart == counted.tokens
    trace = bk.Trace("mixed", tuple(map(bk.Message, MIXED)), tools=(PING,))
    last = trace.demand(count, framing=framing).iloc[-1].sum()
    assert last == counted.tokens


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "claude-opus-4-5", "gemini-2.5-pro"])
def test_the_ledger_adds_up_and_has_a_row_for_everything(model: str) -> None:
    counted = bk.count_request({"model": model, "messages": MIXED, "tools": [PING]})
    frame = counted.frame()
    assert frame["tokens"].sum() == counted.tokens
    assert set(frame["message"].dropna()) == set(range(len(MIXED)))
    assert {"framing", "message", "image", "tools"} <= set(frame["kind"])
    assert "ping" in set(frame["part"])
    assert f"<b>{counted.tokens:,} tokens</b>" in counted._repr_html_()


def test_a_request_may_be_json_and_the_model_another() -> None:
    body = {"model": "gpt-4o", "messages": [HELLO]}
    text = json.dumps(body)
    assert bk.count_request(text) == bk.count_request(text.encode()) == bk.count_request(body)
    assert bk.count_request(body, model="gpt-5").tokens == 8


def test_a_request_without_a_model_says_what_is_assumed() -> None:
    counted = bk.count_request({"messages": [HELLO]})
    assert (counted.tokens, counted.exact) == (9, False)
    assert counted.counted_by.startswith("gpt-4o assumed, because the request names no model: ")


def test_an_unknown_model_is_an_estimate_that_says_so() -> None:
    counted = bk.count_request({"model": "nobody-knows", "messages": [HELLO]})
    assert "the counter is nobody-knows (cl100k_base stands in)" in counted.counted_by
    assert counted.counted_by.startswith("rules of any other; ")
    assert counted.interval[0] < counted.tokens < (counted.interval[1] or 0)


def test_a_model_that_nothing_knows_is_said_with_the_nearest_names() -> None:
    counted = bk.count_request({"model": "gtp-4o", "messages": [HELLO]})
    told = "unknown model 'gtp-4o', similar to 'gpt-4o', "
    assert counted.unknown.startswith(told)
    for shown in (repr(counted), counted.counted_by, html.unescape(counted._repr_html_())):
        assert told in shown
    bedrock = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    for known in ("gpt-4o", "claude-sonnet-4-5", "deepseek-chat", bedrock):
        assert bk.count_request({"model": known, "messages": [HELLO]}).unknown == ""


@pytest.mark.parametrize("name", ["gpt-9-nonsense", "gpt-4oo"])
def test_a_name_that_only_looks_like_openais_is_an_estimate(name: str) -> None:
    counted = bk.count_request({"model": name, "messages": [HELLO]})
    assert not counted.exact
    assert counted.unknown.startswith(f"unknown model '{name}', similar to ")
    assert counted.interval[0] < counted.tokens < (counted.interval[1] or 0)


def test_a_fine_tuned_model_is_billed_by_the_rules_of_its_base() -> None:
    base, tuned = (
        bk.count_request({"model": name, "messages": [HELLO]})
        for name in ("gpt-4o-2024-08-06", "ft:gpt-4o-2024-08-06:org::id")
    )
    assert (tuned.tokens, tuned.exact, tuned.unknown) == (base.tokens, True, "")
    for name in ("ft:gpt-4o-2024-08-06:org::id", "ft:gpt-4o:org::id"):
        known = bk.models.model(name, unknown="raise")
        assert (known.name, known.window) == (name, 128_000)
        assert bk.cost.prices_of(known.name) != bk.cost.prices_of("gpt-4o")


def test_rules_and_counter_are_told_apart_though_both_go_by_the_model() -> None:
    counted = bk.count_request({"model": "gpt-4o", "messages": [HELLO]})
    evidence = r"\d+ of \d+ recorded calls of \d+ projects were counted exactly"
    assert re.fullmatch(
        rf"rules of gpt-4o \({evidence}\); the counter is gpt-4o", counted.counted_by
    )
    assert f"Counted by: {counted.counted_by}." in counted._repr_html_()


# What an answer bills


def test_what_an_answer_bills() -> None:
    assert bk.requests.count_answer(assistant("Hello world"), "gpt-4o") == 2
    one = {"role": "assistant", "tool_calls": [call("1", arguments='{ "host": "a" }')]}
    assert bk.requests.count_answer(one, "gpt-4o") == N('{ "host": "a" }') + N("functions.ping") + 6
    two = {"role": "assistant", "tool_calls": [call("1"), call("2")]}
    use = '{"recipient_name":"functions.ping","parameters":{}}'
    assert bk.requests.count_answer(two, "gpt-4o") == N(f'{{"tool_uses":[{use},{use}]}}') + 10


# Nothing raises


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("{", "Invalid JSON in the request"),
        ("[1]", r"Invalid request: a value of type list. Expected the body"),
        (
            {"prompt_text": "Hi"},
            "Unknown request format with fields 'prompt_text'. Pass the body of an OpenAI chat",
        ),
        ({"messages": [{"content": "Hi"}], "model": "gpt-4o"}, "Message without a role"),
        ({"messages": "Hi"}, "Message without a role"),
    ],
)
def test_a_request_that_cannot_be_read_gets_one_sentence(request_: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bk.count_request(request_)


KEYS = st.sampled_from(
    [
        *("messages", "input", "contents", "role", "content", "parts", "text", "type", "tools"),
        *("function", "functions", "name", "description", "parameters", "input_schema"),
        *("properties", "items", "required", "enum", "anyOf", "$ref", "$defs", "title"),
        *("default", "format", "tool_calls", "id", "tool_call_id", "arguments", "function_call"),
        *("system", "systemInstruction", "instructions", "response_format", "json_schema"),
        *("schema", "text", "toolConfig", "toolSpec", "inputSchema", "json", "toolUse"),
        *("toolResult", "toolUseId", "image_url", "url", "image", "source", "data", "document"),
        *("thinking", "functionCall", "functionResponse", "functionDeclarations", "inlineData"),
        *("mimeType", "generationConfig", "responseSchema", "model", "tool_choice", "output"),
        *("call_id", "refusal", "reasoning", "inferenceConfig", "outputConfig"),
        *("textFormat", "body"),
    ]
)
WORDS = st.sampled_from(
    [
        *("user", "assistant", "system", "tool", "text", "function", "object", "array"),
        *("json_schema", "function_call"),
    ]
    + [
        *("function_call_output", "message", "tool_use", "tool_result", "image", "image_url"),
        *("#/$defs/a", "1", "gpt-5", ""),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=30,
)
BODIES = st.builds(
    lambda shape, first, rest: {**rest, shape: first},
    st.sampled_from(["messages", "input", "contents", "tools"]),
    VALUES | st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=4),
    st.dictionaries(KEYS, VALUES, max_size=6),
)


@pytest.mark.filterwarnings("ignore:.*not counted")
@given(
    BODIES,
    st.sampled_from(
        ["gpt-4o", "gpt-5.4", "gpt-4-0613", "claude-opus-4-5", "gemini-2.0-flash", "x", None]
    ),
)
def test_any_request_gets_a_count_or_one_sentence(body: dict[str, Any], model: str | None) -> None:
    try:
        counted = bk.count_request(body, model=model)
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert counted.tokens == counted.frame()["tokens"].sum()
    assert counted.interval[0] <= counted.tokens <= (counted.interval[1] or counted.tokens)


def test_every_family_is_reached_by_a_name() -> None:
    names = [
        *("gpt-4-0613", "gpt-3.5-turbo-0301", "gpt-4-turbo", "gpt-4.1-mini", "o1-mini", "o3"),
        *("o4-mini", "gpt-5-nano", "gpt-5.5"),
    ]
    assert {family for name in names if (family := openai_family(name))} == set(FAMILIES)
    assert [
        openai_family(name)
        for name in ("claude-3-opus", "gemini-pro", "mistral-large", "gpt-oss-120b")
    ] == [""] * 4


def test_a_replay_prices_answers_as_they_are_billed() -> None:
    """An answer of 2 tokens is 6 in later requests and 2 as output; 0.1.0 priced 6."""
    said = [HELLO, assistant("Hello world"), HELLO]
    trace = bk.Trace("toy", tuple(map(bk.Message, said)))
    assert trace.answers(N).tolist() == [0, 2, 0]
    assert trace.counts(N).tolist() == [6, 6, 6]
    assert trace.answers(N, bk.requests.FRAMINGS["cookbook"]).tolist() == [0, 6, 0]


def test_a_call_of_a_custom_tool_counts_as_one_of_a_function() -> None:
    """Its input may be long; it stands under another key than a function's arguments."""
    text = "Add a test for it. " * 50
    custom = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": text}}
    function = tool_call("a", "patch", text)
    result = tool_result("a", "Done.")

    def said(call: dict[str, Any]) -> list[dict[str, Any]]:
        return [HELLO, calling(call), result, HELLO]

    counts = [
        bk.count_request({"model": "gpt-4o", "messages": said(call)}) for call in (custom, function)
    ]
    assert counts[0].tokens == counts[1].tokens > N(text)
    assert not counts[0].exact
    assert counts[0].interval[0] < counts[0].tokens < (counts[0].interval[1] or 0)
    traces = [bk.load_trace({"messages": said(call)}) for call in (custom, function)]
    assert traces[0].counts(N).tolist() == traces[1].counts(N).tolist()
    assert sum(traces[0].counts(N)) > N(text)
    odd = user([{"text": "Hello world"}])  # read part by part
    assert sum(bk.load_trace({"messages": [odd, *said(custom)]}).counts(N)) > N(text)
    kept = bk.trim(said(custom), 100, model="gpt-4o")
    assert custom not in [call for message in kept for call in message.get("tool_calls", ())]


_APART = {
    "allOf": [{"properties": {"unseen": {"type": "string"}}}],
    "anyOf": [{"description": "unseen"}],
    "oneOf": [{"enum": ["unseen", "other"]}],
    "not": {"description": "unseen"},
    "if": {"properties": {"unseen": {}}},
    "then": {"description": "unseen"},
    "else": {"description": "unseen"},
    "prefixItems": [{"description": "unseen"}],
    "items": [{"description": "unseen"}],
    "patternProperties": {"^a": {"description": "unseen"}},
    "additionalProperties": {"description": "unseen"},
    "dependentSchemas": {"a": {"description": "unseen"}},
}


@pytest.mark.parametrize("key", _APART)
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4-0613", "claude-opus-4-6", "gemini-2.5-pro"])
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_text_in_a_schema_is_counted_or_named(key: str, model: str, is_inside: bool) -> None:
    """Under some keys a text of any length counted as 0, and gpt-4o's count was called exact."""

    def counted(text: str) -> bk.requests.RequestCount:
        extra = json.loads(json.dumps({key: _APART[key]}).replace("unseen", text))
        inner = {"p": {"type": "object", **extra}} if is_inside else {"p": {"type": "string"}}
        schema = {"type": "object", "properties": inner, **({} if is_inside else extra)}
        tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
        said = [user("Hello")]
        return bk.count_request({"model": model, "messages": said, "tools": [tool]}, model)

    short = counted("unseen")
    is_counted = counted("unseen " * 100).tokens > short.tokens + 50
    is_named = "a part of the schema of tool look" in short.uncounted
    # gpt-4-0613 is not shown the descriptions of choices within a property
    assert is_counted or is_named or (model == "gpt-4-0613" and is_inside and key == "anyOf")
    assert is_counted or short.interval[1] is None or model == "gpt-4-0613"


@pytest.mark.parametrize(
    ("message", "warned"),
    [
        ({"role": "user", "contnet": "Hello"}, "Unknown key 'contnet' in message 1"),
        ({"name": "look", "argumnts": "{}"}, "Unknown key 'argumnts' of a tool call in message 1"),
        ({"nmae": "look", "arguments": "{}"}, "Unknown key 'nmae' of a tool call in message 1"),
    ],
)
def test_a_misspelt_key_of_a_message_is_named(message: dict[str, Any], warned: str) -> None:
    """Its value counted as nothing, in silence."""
    if "role" not in message:
        call = {"id": "c", "type": "function", "function": message}
        message = calling(call)
    with pytest.warns(UserWarning, match=warned):
        bk.count_request({"model": "gpt-4o", "messages": [message]})


@pytest.mark.parametrize("call", [None, 3, "look"])
def test_calls_of_another_form_are_named_as_not_counted(call: object) -> None:
    content = {"role": "user", "parts": [{"text": "Hello"}], "tool_calls": [call]}
    count = bk.count_request({"contents": [content]})
    assert count.uncounted == ("message field tool_calls",)


@pytest.mark.parametrize("place", [1, 2, 3])
def test_encrypted_reasoning_leaves_the_interval_open(place: int) -> None:
    """Nobody but OpenAI knows its tokens; before an answer the interval was closed."""
    items: list[Any] = [user("Hi"), assistant("Hello"), user("So?")]
    items.insert(place, {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"})
    count = bk.count_request({"model": "gpt-5", "input": items})
    assert (count.uncounted, count.interval[1]) == (("encrypted reasoning",), None)


@pytest.mark.parametrize("id", [{"id": ""}, {}])
def test_a_call_without_an_id_is_paired_and_the_body_stays_as_it_was(id: dict[str, str]) -> None:
    call = {**id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said = [user("Look."), calling(call), {"role": "tool", "content": "Nothing."}]
    body = {"model": "gpt-4o", "messages": said}
    before = deepcopy(body)
    assert bk.count_request(body).tokens > 0
    assert body == before
    assert bk.load_trace({"messages": said}).messages[-1].role == "tool"


def test_a_value_that_json_does_not_know_counts_as_its_text() -> None:
    """Gemini's results and Anthropic's inputs raised a TypeError; chat arguments counted."""
    part = {"functionResponse": {"name": "look", "response": {"when": date(2026, 1, 1)}}}
    body = {"model": "gemini-3.5-flash", "contents": [{"role": "user", "parts": [part]}]}
    text = deepcopy(body)
    text["contents"][0]["parts"][0]["functionResponse"]["response"] = {"when": "2026-01-01"}  # type: ignore[index]
    assert bk.count_request(body).tokens == bk.count_request(text).tokens


def test_a_developer_message_is_a_system_message_for_tools() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    framing = bk.requests.Framing(tools="declaration")
    system, developer = (
        framing.request([{"role": role, "content": ""}], len, [tool])
        for role in ("system", "developer")
    )
    assert system == developer


PLAIN_BODIES: dict[str, dict[str, Any]] = {
    "chat": {"model": "gpt-4o", "messages": [user("hi")]},
    "responses": {"model": "gpt-4o", "input": "hi"},
    "anthropic": {"model": "claude-opus-4-8", "messages": [user("hi")]},
    "gemini": {"model": "gemini-3-pro", "contents": "hi"},
    "converse": {"toolConfig": {}, "messages": [user([{"text": "hi"}])]},
}


@pytest.mark.parametrize("shape", PLAIN_BODIES)
def test_a_field_that_nobody_reads_is_named(shape: str) -> None:
    body = PLAIN_BODIES[shape]
    assert bk.count_request(body).uncounted == ()
    assert bk.count_request({**body, "plugins": [{"id": "web"}]}).uncounted == ("field plugins",)
    assert bk.count_request({**body, "plugins": [], "stream": True}).uncounted == ()


@pytest.mark.parametrize("field", ["temperature", "seed", "metadata", "service_tier", "stop"])
def test_a_field_that_bills_nothing_leaves_a_count_exact(field: str) -> None:
    assert bk.count_request({**PLAIN_BODIES["chat"], field: "any"}).exact


def test_the_fields_of_googles_sdk_count_as_those_of_a_body() -> None:
    declarations = [{"functionDeclarations": [{"name": "ping", "description": "Ask a host"}]}]
    schema = {"responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}
    body = {**PLAIN_BODIES["gemini"], "tools": declarations, "generationConfig": schema}
    sdk = {**PLAIN_BODIES["gemini"], "config": {"tools": declarations, **schema}}
    assert bk.count_request(sdk).ledger == bk.count_request(body).ledger


@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-4-8", "deepseek-chat", "qwen3-32b"])
@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("field", ["messages", "input"])
def test_a_block_of_thinking_is_named(model: str, role: str, field: str) -> None:
    thinking = {"type": "thinking", "thinking": "Let me think.", "signature": "x"}
    words = {"type": "text" if field == "messages" else "output_text", "text": "Hello."}
    question = user("hi")
    body = {"model": model, field: [question, {"role": role, "content": [thinking, words]}]}
    assert "thinking in the history" in bk.count_request(body).uncounted


@pytest.mark.parametrize(
    "field", ["thinking", "thinking_blocks", "reasoning_text", "provider_specific_fields"]
)
def test_thinking_in_a_field_of_another_program_is_named(field: str) -> None:
    value: Any = {"reasoning_content": "Hm."} if field.startswith("provider") else "Hm."
    answer = {"role": "assistant", "content": "Hello.", field: value}
    body = {"model": "gpt-4o", "messages": [user("hi"), answer]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert bk.count_request(body).uncounted == ("thinking in the history",)


def test_the_tool_plan_of_cohere_is_counted() -> None:
    """Cohere sends it back with the call (docs.cohere.com, basic usage of tool use); it counted nothing."""
    plan = "I will look whether the host answers, and then say so."
    calls = [tool_call("1", "ping")]
    answer = {"role": "assistant", "tool_calls": calls}
    result = tool_result("1", "up")

    def counted(model: str, **fields: Any) -> bk.requests.RequestCount:
        return bk.count_request({"model": model, "messages": [HELLO, {**answer, **fields}, result]})

    model = "command-a-03-2025"
    more = counted(model, tool_plan=plan).tokens - counted(model).tokens
    assert more == bk.counter(model)(plan) == 13
    assert counted(model, tool_plan=plan).uncounted == ()
    assert "0 of 0 recorded calls" in counted(model="gpt-4o", tool_plan=plan).counted_by


CALL_ID: dict[str, str] = {"call_id": "1"}
RESULT_1: dict[str, Any] = tool_result("1", "up")
MANY_WORDS = {"words": "word " * 500}
#: A call or a result with a misspelled field in each format, and the words that name it.
MISSPELT: dict[str, tuple[dict[str, Any], str]] = {
    "chat": (
        {
            "messages": [
                HELLO,
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "1", "function": {"name": "f", "argumnets": "{}"}}],
                },
                RESULT_1,
            ]
        },
        "'argumnets' of a tool call",
    ),
    "chat, old": (
        {
            "messages": [
                HELLO,
                {"role": "assistant", "function_call": {"name": "f", "argumnets": "{}"}},
            ]
        },
        "'argumnets' of a tool call",
    ),
    "chat, flat": (
        {
            "messages": [
                HELLO,
                assistant("", tool_calls=[{"id": "1", "name": "f", "argumnets": "{}"}]),
                RESULT_1,
            ]
        },
        "'argumnets' of a tool call",
    ),
    "responses": (
        {"input": [HELLO, {"type": "function_call", **CALL_ID, "name": "f", "argumnets": "{}"}]},
        "'argumnets' of a tool call",
    ),
    "responses, result": (
        {
            "input": [
                HELLO,
                {"type": "function_call", **CALL_ID, "name": "f", "arguments": "{}"},
                {"type": "function_call_output", **CALL_ID, "ouptut": "up"},
            ]
        },
        "'ouptut' of a tool result",
    ),
    "anthropic": (
        {
            "system": "x",
            "messages": [
                HELLO,
                assistant([{"type": "tool_use", "id": "1", "name": "f", "inptu": MANY_WORDS}]),
            ],
        },
        "'inptu' of a tool call",
    ),
    "anthropic, result": (
        {
            "system": "x",
            "messages": [
                HELLO,
                assistant([{"type": "tool_use", "id": "1", "name": "f", "input": {}}]),
                user([{"type": "tool_result", "tool_use_id": "1", "contnet": "up"}]),
            ],
        },
        "'contnet' of a tool result",
    ),
    "gemini": (
        {
            "contents": [
                {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "f", "parameters": MANY_WORDS}}],
                }
            ]
        },
        "'parameters' of a tool call",
    ),
    "gemini, result": (
        {
            "contents": [
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "f", "respnse": MANY_WORDS}}],
                }
            ]
        },
        "'respnse' of a tool result",
    ),
    "converse": (
        {
            "toolConfig": {},
            "messages": [
                assistant([{"toolUse": {"toolUseId": "1", "name": "f", "inptu": MANY_WORDS}}])
            ],
        },
        "'inptu' of a tool call",
    ),
    "converse, result": (
        {
            "toolConfig": {},
            "messages": [user([{"toolResult": {"toolUseId": "1", "contnet": [{"text": "up"}]}}])],
        },
        "'contnet' of a tool result",
    ),
}


@pytest.mark.parametrize(("body", "named"), MISSPELT.values(), ids=MISSPELT)
@pytest.mark.filterwarnings("ignore")
def test_a_misspelt_field_of_a_call_is_named_and_closes_the_gate(
    body: dict[str, Any], named: str
) -> None:
    """It counted nothing in silence, except in the function of a chat call."""
    with pytest.warns(UserWarning, match=f"Unknown key {named} in message"):
        count = bk.count_request(body, "gpt-4o")
    assert f"unknown key {named}" in count.uncounted
    assert (count.exact, count.interval[1]) == (False, None)
    with pytest.raises(ValueError, match=f"Unknown key {named} in message"):
        check(bk.presets.chat(8_192), traces=[bk.load_trace(body)], counter="o200k_base")


@pytest.mark.parametrize(
    "part",
    [
        {"functionCall": {"name": "f"}},
        {"functionCall": {"name": "f", "id": "1"}, "thoughtSignature": "x"},
        {"functionResponse": {"name": "f", "parts": [{"text": "x"}]}},
    ],
    ids=["no arguments", "signature", "parts"],
)
def test_a_call_without_arguments_is_not_misspelt(part: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        count = bk.count_request(
            {"contents": [{"role": "model", "parts": [part]}]}, "gemini-2.5-pro"
        )
    assert not any("unknown" in name for name in count.uncounted)


def nested_schema(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize("levels", [300, 480, 600, 2_000])
@pytest.mark.parametrize("write", [dict, str])
def test_a_body_nested_deeply_is_counted_or_refused_in_words(levels: int, write: Any) -> None:
    """It ended with a bare RecursionError."""
    schema = nested_schema(1 if write is str else levels)
    tool = {"name": "f", "parameters": schema}
    response = {"functionResponse": {"name": "f", "response": {"a": schema}}}
    for body in (
        {"messages": [{"role": "user", "content": "Why?"}], "tools": [{"function": tool}]},
        {"contents": [{"role": "user", "parts": [response]}]},
    ):
        request: Any = body
        if write is str:
            request = json.dumps(body).replace('{"type": "string"}', "[" * levels + "]" * levels)
        with suppress(ValueError):
            assert bk.count_request(request).tokens > 0
            assert levels < 2_000
        if levels == 2_000:
            with pytest.raises(ValueError, match="nested too deeply|Invalid JSON"):
                bk.count_request(request)


def test_a_schema_of_eighty_levels_is_counted() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": nested_schema(80)}}
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Why?"}], "tools": [tool]}
    assert bk.count_request(body).tokens > 0
