"""Records that lose or double a message or a request in silence, in formats that real programs write."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from budgetkit.requests.reading.usage import usage_of
from budgetkit.trace import load_trace, load_traces
from tests.messages import assistant, user

FORMATS = Path(__file__).parents[1] / "formats"


def _record(name: str) -> Any:
    text = (FORMATS / name).read_text()
    return json.loads(text.splitlines()[0] if name.endswith(".jsonl") else text)


@pytest.mark.parametrize("beside", ["prompt_filter_results", "-1", "x"])
def test_fields_beside_numbered_messages_do_not_hide_the_prompt(beside: str) -> None:
    # OpenLLMetry writes Azure's filter results beside the messages.
    span = _record("otel-indexed.jsonl")
    whole = [message.text for message in load_trace(span).messages]
    span["attributes"][f"gen_ai.prompt.{beside}"] = '[{"prompt_index": 0}]'
    assert [message.text for message in load_trace(span).messages] == whole


def test_a_numbered_field_of_ten_digits_is_a_message() -> None:
    span = _record("otel-indexed.jsonl")
    number = len(load_trace(span).messages)
    at = f"gen_ai.prompt.{10**10}"
    span["attributes"] |= {f"{at}.role": "user", f"{at}.content": "And Bergen?"}
    assert [message.text for message in load_trace(span).messages][number - 1] == "And Bergen?"


def test_a_regenerated_answer_is_counted_once_in_chat_ui() -> None:
    chat = _record("chat-ui.json")
    for place, message in enumerate(chat["messages"]):
        message["ancestors"] = [f"m{at}" for at in range(place)]
    assert load_trace(chat).warnings == ()
    again = {**chat["messages"][-1], "id": "m3", "content": "Sun."}
    chat["messages"].append(again)
    trace = load_trace(chat)
    assert [message.text for message in trace.messages] == ["Be brief.", "How is Oslo?", "Sun."]
    assert trace.warnings == ("Not counted: 1 message on abandoned branches.",)


def test_a_regenerated_answer_is_counted_once_where_only_children_are_named() -> None:
    chat = _record("chat-ui.json")
    chat["messages"].append({**chat["messages"][-1], "id": "m3", "content": "Sun."})
    chat["messages"][1]["children"].append("m3")
    exported = _record("chatgpt.json")[0]
    whole = load_trace(exported)
    leaf = exported["current_node"]
    node = exported["mapping"][leaf]
    again = {"message": {**node["message"], "content": {"content_type": "text", "parts": ["Sun."]}}}
    exported["mapping"][node["parent"]]["children"] = [leaf, "again"]
    exported["mapping"]["again"] = again
    exported["current_node"] = "again"
    for at in exported["mapping"].values():
        at.pop("parent", None)
    for document, texts in (
        (chat, ["Be brief.", "How is Oslo?", "Sun."]),
        (exported, [message.text for message in whole.messages[:-1]] + ["Sun."]),
    ):
        trace = load_trace(document)
        assert [message.text for message in trace.messages] == texts
        assert any("on abandoned branches" in note for note in trace.warnings)


def test_a_regenerated_answer_is_counted_once_in_grok() -> None:
    export = _record("grok.json")
    responses = export["conversations"][0]["responses"]
    responses[1]["response"]["parent_response_id"] = "r1"
    assert load_trace(export).warnings == ()
    answer = {"_id": "r3", "message": "Sun.", "sender": "grok-3", "parent_response_id": "r1"}
    responses.append({"response": answer})
    trace = load_trace(export)
    said = [(message.role, message.text) for message in trace.messages]
    assert said == [("user", "How is Oslo?"), ("assistant", "Sun.")]
    assert trace.warnings == ("Not counted: 1 message on abandoned branches.",)


def test_an_object_answer_and_the_calls_of_a_vercel_span_are_read() -> None:
    span = _record("vercel-telemetry.jsonl")
    del span["attributes"]["ai.response.text"]
    shown = {**span["attributes"], "ai.response.object": '{"sky": "sun"}'}
    assert load_trace({**span, "attributes": shown}).messages[-1].text == '{"sky": "sun"}'
    call = {"toolCallId": "c1", "toolName": "weather", "args": '{"place": "Oslo"}'}
    calling = {**span["attributes"], "ai.response.toolCalls": json.dumps([call])}
    answer = load_trace({**span, "attributes": calling}).messages[-1]
    assert [(made.id, made.name) for made in answer.tool_calls] == [("c1", "weather")]
    assert answer.text == ""


@pytest.mark.parametrize(
    ("results", "texts"),
    [({"call.1": {"content": "Sun."}}, ["Sun."]), ([{"content": "Sun."}], [])],
    ids=["an id with a dot", "results without ids"],
)
def test_a_tool_result_of_copilot_is_found_by_its_whole_id(results: Any, texts: list[str]) -> None:
    for id in ("call.1", "-5"):
        call = {"id": id, "name": "weather", "arguments": "{}"}
        rounds = [{"response": "Let me look.", "toolCalls": [call]}]
        metadata = {"toolCallRounds": rounds, "toolCallResults": results}
        request = {"message": {"text": "How is Oslo?"}, "result": {"metadata": metadata}}
        chat = {"requests": [request], "requesterUsername": "user", "version": 3}
        read = [message.text for message in load_trace(chat).messages if message.role == "tool"]
        assert read == (texts if id == "call.1" else [])


@pytest.mark.parametrize("sent", [None, [], {}])
def test_a_request_without_input_tokens_is_named(sent: Any) -> None:
    counted = usage_of({"input_tokens": sent, "output_tokens": 5}, 1)
    assert counted is not None and counted["unknown"] == ["input tokens (missing)"]


def test_usage_in_characters_is_named() -> None:
    record = _record("langfuse.json")
    observation = record["observations"][1]
    del observation["usageDetails"]
    observation["usage"] = {"input": 300, "output": 40, "unit": "CHARACTERS"}
    assert any("unit (not tokens)" in warning for warning in load_trace(record).warnings)
    observation["usage"]["unit"] = "TOKENS"
    assert not any("unit" in warning for warning in load_trace(record).warnings)


_REQUEST: dict[str, Any] = {"model": "gpt-4o", "n": 2, "messages": [user("How is Oslo?")]}
_ANSWER: dict[str, Any] = {
    "model": "gpt-4o",
    "choices": [
        {"index": at, "message": assistant(text)} for at, text in enumerate(["Sun.", "Rain."])
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
}
_STREAM = [
    {"choices": [{"index": at, "delta": {"content": text}}]}
    for at, text in [(0, "Su"), (1, "Ra"), (0, "n."), (1, "in.")]
]
_CANDIDATES = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": text}]}} for text in ("Sun.", "Rain.")
    ]
}
_GENERATIONS = [
    [{"text": text, "message": _ANSWER["choices"][0]["message"]} for text in ("Sun.", "Rain.")]
]


@pytest.mark.parametrize(
    "record",
    [
        _ANSWER,
        {**_REQUEST, **_ANSWER},
        {"request": _REQUEST, "response": _ANSWER},
        {"request": _REQUEST, "response": _STREAM},
        {"custom_id": "a", "response": {"status_code": 200, "body": _ANSWER}},
        {"call_type": "completion", "messages": _REQUEST["messages"], "response": _ANSWER},
        {"request": _REQUEST, "response": {"choices": [{"text": "Sun."}, {"text": "Rain."}]}},
        {"request": {"contents": [{"parts": [{"text": "Hi"}]}]}, "response": _CANDIDATES},
        _CANDIDATES,
        {"run_type": "llm", "inputs": _REQUEST, "outputs": {"generations": _GENERATIONS}},
    ],
    ids=[
        *("body", "beside", "recorded", "stream", "batch", "log", "completion", "gemini"),
        *("candidates", "langsmith"),
    ],
)
def test_other_answers_to_one_request_are_named(record: Any) -> None:
    trace = load_trace(record)
    answers = [message.text for message in trace.messages if message.role == "assistant"]
    assert answers == ["Sun."]
    assert "Not counted: 1 other answer to the same request." in trace.warnings


def test_a_single_answer_with_a_higher_index_is_read() -> None:
    trace = load_trace({**_ANSWER, "choices": _ANSWER["choices"][1:]})
    assert [message.text for message in trace.messages] == ["Rain."]
    assert trace.warnings == ()


@pytest.mark.parametrize(
    ("name", "failed"),
    [
        ("openai-batch-output.jsonl", {"id": "b2", "response": None, "error": {"code": "expired"}}),
        ("openai-batch-output.jsonl", {"id": "b2", "response": None, "error": None}),
        ("openai-batch-output.jsonl", {"id": "b2", "response": {"status_code": 500}}),
        ("anthropic-batch-output.jsonl", {"result": {"type": "errored", "error": {}}}),
        ("anthropic-batch-output.jsonl", {"result": {"type": "expired"}}),
        ("gemini-batch.jsonl", {"key": "k2", "error": {"code": 13}}),
    ],
)
def test_a_failed_request_of_a_batch_is_named_and_the_others_are_read(
    name: str, failed: dict[str, Any], tmp_path: Path
) -> None:
    lines = (FORMATS / name).read_text().splitlines()
    failed_line = json.dumps({"custom_id": "r2"} | failed)
    (tmp_path / name).write_text("\n".join([lines[0], failed_line, lines[0]]))
    place = f"Left out 1 line of {name} without a conversation: {name}, line 2."
    with pytest.warns(UserWarning, match=re.escape(place)):
        traces = load_traces(tmp_path / name)
    assert len(traces) == 2
    (tmp_path / name).write_text(failed_line)
    with pytest.raises(ValueError, match="line 1: no messages"):
        load_traces(tmp_path / name)


def test_a_misspelt_request_of_a_batch_is_still_refused(tmp_path: Path) -> None:
    lines = (FORMATS / "openai-batch.jsonl").read_text().splitlines()
    wrong = json.dumps({"custom_id": "r2", "method": "POST", "url": "/v1", "bdoy": {}})
    (tmp_path / "batch.jsonl").write_text(f"{lines[0]}\n{wrong}\n")
    with pytest.raises(ValueError, match="line 2"):
        load_traces(tmp_path / "batch.jsonl")
