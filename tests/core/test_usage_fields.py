"""Usage fields: each row reads its example, and unknown fields are named."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.files import data_path
from tests.messages import assistant, user

ROWS = tomllib.loads(data_path("formats.toml").read_text("utf-8"))["usage"]
#: Records of usage, the sums in each, and why, where the names alone do not say it.
CASES = [*map(json.loads, Path(__file__).with_name("usage.jsonl").read_text("utf-8").splitlines())]
NAMES = ["context_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"]


def loaded(usage: dict[str, Any], model: str = "gpt-4o") -> bk.Trace:
    """Load a recorded call with a usage record."""
    request = {"model": model, "messages": [user("hi")]}
    response = {"choices": [{"message": assistant("ok")}], "usage": usage}
    return bk.load_trace({"request": request, "response": response})


def unread(trace: bk.Trace) -> list[str]:
    return [note for note in trace.warnings if "Not read" in note]


@pytest.mark.parametrize("row", ROWS, ids=[row["by"][:30] for row in ROWS])
def test_a_row_reads_its_example(row: dict[str, Any]) -> None:
    trace = loaded(json.loads(row["example"]))
    assert bk.trace.usage_frame(trace)[NAMES].values.tolist() == [row["right"]]
    assert not unread(trace)


@pytest.mark.parametrize(("usage", "right"), [(row["usage"], row["right"]) for row in CASES])
def test_usage_beside_and_inside_the_prompt(usage: dict[str, Any], right: list[int]) -> None:
    trace = loaded(usage)
    assert bk.trace.usage_frame(trace)[NAMES].values.tolist() == [right]
    assert not unread(trace)


def test_costs_follow_the_fields() -> None:
    def cost(usage: dict[str, Any], model: str) -> float:
        return float(bk.Session(loaded(usage, model)).totals()["cost"])

    thinking: dict[str, Any] = {
        "prompt_tokens": 10120,
        "completion_tokens": 1499,
        "total_tokens": 14428,
    }
    cached, reasoning = {"cached_tokens": 128}, {"reasoning_tokens": 2809}
    thinking |= {"prompt_tokens_details": cached, "completion_tokens_details": reasoning}
    assert cost(thinking, "grok-4.20") == pytest.approx(0.0232856)
    compacted = next(json.loads(row["example"]) for row in ROWS if "iterations" in row["example"])
    assert cost(compacted, "claude-opus-4-8") == pytest.approx(1.1275)


def test_unknown_fields_are_named_once() -> None:
    strange = {"prompt_tokens": 9, "quantum_tokens": 5, "details": {"flux": {"tokens": 0}}}
    answer = {"role": "assistant", "parts": [{"type": "text", "text": "ok"}], "usage": strange}
    question = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
    trace = bk.load_trace([question, answer, question, answer])
    assert len(bk.trace.usage_frame(trace)) == 2
    (note,) = unread(trace)
    assert note == "Not read: usage fields quantum_tokens. The token sums may be incomplete."
    assert len(unread(loaded({"sent_tokens": 9}))) == 1
    assert not unread(loaded({"prompt_tokens": 9, "quantum_tokens": 0}))


@pytest.mark.parametrize("is_list", [False, True], ids=["body", "lines"])
def test_the_usage_of_a_plain_message_is_read(is_list: bool, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 50}
    question, answer = ({"role": role, "content": "hi"} for role in ("user", "assistant"))
    lines = [question, answer | {"usage": usage}]
    body = [{"model": "gpt-4o", "messages": lines}]
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(map(json.dumps, lines if is_list else body)))
    (row,) = bk.trace.usage_frame(bk.load_trace(path)).to_dict("records")
    assert (row["message_index"], row["context_tokens"], row["output_tokens"]) == (1, 1000, 50)


PLACES = "usage models_usage meta.usage metadata.usage metadata.totalUsage usageMetadata"


@pytest.mark.parametrize("place", PLACES.split())
def test_usage_is_read_wherever_a_program_puts_it(place: str) -> None:
    usage: dict[str, Any] = {"inputTokens": 1000, "outputTokens": 50, "cachedInputTokens": 800}
    for name in reversed(place.split(".")):
        usage = {name: usage}
    parts = [{"type": "text", "text": "ok"}]
    question = {"role": "user", "parts": parts}
    trace = bk.load_trace([question, {"role": "assistant", "parts": parts} | usage])
    assert bk.trace.usage_frame(trace)[NAMES].values.tolist() == [[1000, 800, 0, 50]]


def test_the_usage_beside_messages_is_that_of_the_last() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 50}
    said = [{"role": role, "content": "hi"} for role in ("user", "assistant")]
    trace = bk.load_trace({"model": "gpt-4o", "messages": said, "usage": usage})
    (row,) = bk.trace.usage_frame(trace).to_dict("records")
    assert (row["message_index"], row["model"], row["context_tokens"]) == (1, "gpt-4o", 1000)


def test_ollama_writes_its_numbers_into_the_answer() -> None:
    answer = {"message": {"role": "assistant", "content": "ok"}, "done": True}
    answer |= {"prompt_eval_count": 26, "eval_count": 298}
    request = {"model": "llama3.2", "messages": [{"role": "user", "content": "hi"}]}
    trace = bk.load_trace({"request": request, "response": answer})
    assert bk.trace.usage_frame(trace)[NAMES].values.tolist() == [[26, 0, 0, 298]]


def test_a_total_above_its_parts_is_named() -> None:
    """Voxtral's sound and Gemini's thoughts behind OpenAI's names stand in the total alone."""
    notes = unread(loaded({"prompt_tokens": 9, "completion_tokens": 201, "total_tokens": 585}))
    assert len(notes) == 1
    assert "total (more than its parts)" in notes[0]


@pytest.mark.parametrize("odd", [{"queue_time": -1}, {"iterations": 3}, {"cacheDetails": 3}])
def test_an_odd_field_that_is_not_read_refuses_nothing(odd: dict[str, Any]) -> None:
    trace = loaded({"prompt_tokens": 9, "completion_tokens": 5} | odd)
    assert bk.trace.usage_frame(trace)[NAMES].values.tolist() == [[9, 0, 0, 5]]


def test_langchain_names_the_model_beside_the_usage() -> None:
    told = {"token_usage": {"prompt_tokens": 9, "completion_tokens": 5}, "model_name": "gpt-4o"}
    answer = {"content": "ok", "type": "ai", "response_metadata": told}
    said = [{"lc": 1, "kwargs": {"content": "hi", "type": "human"}}, {"lc": 1, "kwargs": answer}]
    (row,) = bk.trace.usage_frame(bk.load_trace(said)).to_dict("records")
    assert (row["model"], row["context_tokens"]) == ("gpt-4o", 9)


@pytest.mark.parametrize("number", ["many", "1e3", 12.5, float("nan"), True])
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
def test_a_number_of_a_wrong_type_is_named(field: str, number: object) -> None:
    trace = loaded({"prompt_tokens": 12, "completion_tokens": 3, field: number})
    assert unread(trace) == [
        f"Not read: usage fields {field} (not a whole number). The token sums may be incomplete."
    ]


def test_a_session_names_a_request_without_a_readable_number(tmp_path: Path) -> None:
    def answer(place: int, tokens: object) -> dict[str, Any]:
        about = {"type": "assistant", "uuid": f"a{place}", "parentUuid": "u", "sessionId": "s"}
        content = [{"type": "text", "text": "ok"}]
        usage = {"input_tokens": tokens, "output_tokens": 3}
        message = assistant(content, id=f"m{place}", model="claude-sonnet-4-5", usage=usage)
        return {**about, "message": message}

    question = {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": user("hi")}  # fmt: skip
    path = tmp_path / "session.jsonl"
    records = [question, answer(1, 100), answer(2, "many")]
    path.write_text("\n".join(map(json.dumps, records)), "utf-8")
    trace = bk.load_trace(path)
    assert bk.trace.usage_frame(trace)["context_tokens"].tolist() == [100]
    assert "input_tokens (not a whole number)" in unread(trace)[0]


def test_missing_output_tokens_are_named_and_other_nulls_are_nothing() -> None:
    """Null output counted 0 in silence; null cache fields mean none, as in OpenAI's and Anthropic's own answers."""
    assert unread(loaded({"prompt_tokens": 12, "completion_tokens": None})) == [
        "Not read: usage fields output tokens (missing). The token sums may be incomplete."
    ]
    whole = {"prompt_tokens": 12, "completion_tokens": None, "total_tokens": 12}
    cached = {"input_tokens": 12, "output_tokens": 3, "cache_read_input_tokens": None}
    for usage in (whole, cached, {"prompt_tokens": 12}):
        assert unread(loaded(usage)) == []


def test_nan_in_a_list_is_named() -> None:
    usage: dict[str, Any] = {"inputTokens": 12, "outputTokens": 3}
    usage["cacheDetails"] = [{"ttl": "1h", "inputTokens": float("nan")}]
    assert "cacheDetails.*.inputTokens (not a whole number)" in unread(loaded(usage))[0]
