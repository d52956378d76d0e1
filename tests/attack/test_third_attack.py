"""What a third attacker found: texts that were sent and not counted, patterns without an end, and unreadable states."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import run
from budgetkit.lab.explorers.reach import Reach
from budgetkit.requests.reading.writing import write_messages
from tests.attack.test_locks import talk_with

LONG = " ".join(f"word{number}" for number in range(400))
ASKED: list[Any] = [{"role": "user", "content": "Why?"}]
CALLED = {"name": "f", "description": "Look", "input_schema": {"type": "object"}}
GEMINI = [{"role": "user", "parts": [{"text": "Why?"}]}]
CONVERSE: dict[str, Any] = {
    "messages": [{"role": "user", "content": [{"text": "Why?"}]}],
    "inferenceConfig": {"maxTokens": 10},
}
APART = {"type": "object", "additionalProperties": {"type": "string", "description": LONG}}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "fn": {"arguments": LONG}}],
}
ANSWER = {"role": "tool", "tool_call_id": "1", "content": "So."}

UNCOUNTED: dict[str, dict[str, Any]] = {
    "examples of a tool": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "messages": ASKED,
        "tools": [{**CALLED, "input_examples": [{"city": LONG}]}],
    },
    "answer of a function": {
        "contents": GEMINI,
        "tools": [{"functionDeclarations": [{"name": "f", "response": {"description": LONG}}]}],
    },
    "tools for the model": {
        **CONVERSE,
        "additionalModelRequestFields": {"tools": [{**CALLED, "description": LONG}]},
    },
    "variables of a stored prompt": {
        **CONVERSE,
        "modelId": "arn:aws:bedrock:us-east-1:123456789012:prompt/ABC",
        "promptVariables": {"a": {"text": LONG}},
    },
    "input beside messages": {"model": "gpt-4o", "messages": ASKED, "input": LONG},
    "contents beside messages": {"model": "gpt-4o", "messages": ASKED, "contents": LONG},
    "an SDK's body": {"model": "gpt-4o", "messages": ASKED, "extra_body": {"prompt": LONG}},
    "a misspelt key of a tool": {
        "model": "gpt-4o",
        "messages": ASKED,
        "tools": [{"type": "function", "function": {"name": "f", "Description": LONG}}],
    },
    "a text beside the properties of a tool": {
        "model": "gpt-4o",
        "messages": ASKED,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": APART}}],
    },
    "a call without a function": {"model": "gpt-4o", "messages": [*ASKED, CALL, ANSWER, *ASKED]},
    "Ollama's format": {
        "model": "gpt-4o",
        "messages": [*ASKED, {"role": "user", "text_of_it": LONG}],
        "format": "json",
    },
}


def gate(body: dict[str, Any], folder: Path) -> int:
    """Return the exit code of a check of one recorded request."""
    file = folder / "request.json"
    file.write_text(json.dumps(body), encoding="utf-8")
    return run(["check", str(file), "--model", "gpt-4o", "--counter", "o200k_base"])


@pytest.mark.parametrize("body", UNCOUNTED.values(), ids=UNCOUNTED.keys())
@pytest.mark.filterwarnings("ignore")
def test_a_text_that_is_not_counted_closes_the_gate(body: dict[str, Any], tmp_path: Path) -> None:
    assert gate(body, tmp_path) != 0


def test_a_schema_in_the_field_of_ollama_is_no_error(tmp_path: Path) -> None:
    body = {"model": "gpt-4o", "messages": ASKED, "format": {"type": "object"}}
    assert gate(body, tmp_path) == 0


@pytest.mark.parametrize(
    "part",
    [
        {"document": {"format": "txt", "name": "n", "context": LONG, "source": {"text": "So."}}},
        {"searchResult": {"source": LONG, "title": "t", "content": [{"text": "So."}]}},
        {
            "type": "search_result",
            "source": LONG,
            "title": "t",
            "content": [{"type": "text", "text": "So."}],
        },
    ],
    ids=["document", "searchResult", "search_result"],
)
def test_the_context_and_the_source_of_a_document_are_counted(part: dict[str, Any]) -> None:
    body: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 10}
    if "type" not in part:
        body = {"modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0", "inferenceConfig": {}}
    why = {"type": "text", "text": "Why?"} if "type" in part else {"text": "Why?"}

    def tokens(part: Any) -> int:
        messages = [{"role": "user", "content": [part, why]}]
        return bk.count_request({**body, "messages": messages}).tokens

    assert tokens(part) > 500 + tokens(json.loads(json.dumps(part).replace(LONG, "x")))


def test_a_pattern_does_not_search_the_folder_again_and_again(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(12):
        for name in "abc":
            (folder / name).mkdir()
        folder /= "a"
    began = perf_counter()
    with pytest.raises(PermissionError, match=r"\*\* twice"):
        Reach(tmp_path).file("**/" * 30 + "x")
    assert perf_counter() - began < 1
    assert Reach(tmp_path).file("**/x")


@pytest.mark.parametrize("deep", ["[" * 40_000, '{"a":' * 10_000 + "1" + "}" * 10_000])
def test_a_deep_configuration_is_an_error_in_words(
    deep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep.json").write_text(deep)
    assert run(["count", "--as", "servers", str(tmp_path / "deep.json")]) == 2
    assert "nested too deeply" in capsys.readouterr().err


def test_an_empty_summary_is_refused_and_changes_nothing() -> None:
    empty = ["", " "]
    talk = talk_with(lambda _: empty.pop() if empty else "Short.")
    for _ in range(2):
        with pytest.raises(ValueError, match="The summary is empty"):
            talk.request()
    sent = talk.request()
    assert sent.messages == talk_with(lambda _: "Short.").request().messages
    assert "Short." in json.dumps(sent.messages)


@pytest.mark.parametrize("form", ["anthropic", "converse"])
def test_ids_of_calls_are_written_as_the_provider_accepts_them(form: Any) -> None:
    call = {"id": "functions.x:0", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    messages = [
        *ASKED,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "functions.x:0", "content": "So."},
    ]
    written = json.dumps([*write_messages(messages, form).messages], default=str)
    assert "functions.x:0" not in written
    assert written.count("functions_x_0") == 2


def test_tool_calls_of_a_wrong_type_are_an_error_in_words() -> None:
    talk = bk.Conversation(bk.presets.chat(2_000, output=200), model="gpt-5.4")
    with pytest.raises(ValueError, match="tool_calls of an assistant message"):
        talk.add({"role": "assistant", "content": "So.", "tool_calls": 5})


def test_an_explorer_writes_no_escape_sequences(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"id": "a\x1b[31mb\u202ec", "messages": ASKED}), encoding="utf-8")
    shown = repr(bk.ConversationExplorer(bk.load_trace(file)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
