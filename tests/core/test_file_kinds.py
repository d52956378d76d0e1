"""Kinds of files that were once read wrongly: each as a small file of our own, with the right values."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

import budgetkit as bk
from budgetkit.trace import Trace
from tests.messages import assistant, calling, tool_call, tool_result, user

Rows = list[Any]
HELLO = user("Hello")


def load(folder: Path, written: Any, name: str = "file.json", **options: Any) -> list[Trace]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(written, str):
        lines = written if name.endswith(".jsonl") else [written]
        written = "\n".join(map(json.dumps, lines))
    path.write_text(written, encoding="utf-8")
    return bk.load_traces(path, **options)


def said(trace: Trace) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in trace.messages]


def calls(trace: Trace) -> list[tuple[str, str]]:
    return [(call.id, call.name) for message in trace.messages for call in message.tool_calls]


def prompts(trace: Trace) -> list[int]:
    return [row["context_tokens"] for row in trace.fields.get("usage", [])]


# Coding agents


def claude(uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", **fields}


def attached(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "attachment", "attachment": {"type": kind, **fields}}


ASKED = claude("u1", None, type="user", message=HELLO)
_YES = assistant([{"type": "text", "text": "Yes"}], id="m1")
ANSWERED = claude("a1", "x1", type="assistant", message=_YES)


FILE = {"type": "text", "file": {"content": "x = 1"}}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (attached("queued_command", prompt="And shorter"), ("user", "And shorter")),
        (attached("queued_command", prompt=[{"type": "text", "text": "And shorter"}]), ("user", "And shorter")),
        (attached("queued_command", prompt="It ended", commandMode="task-notification"), ("system", "It ended")),
        (attached("file", filename="a.py", content=FILE), ("system", "x = 1")),
        (attached("edited_text_file", filename="a.py", snippet="y = 2"), ("system", "y = 2")),
        (attached("hook_additional_context", hookEvent="PostToolUse", content=["One", "Two"]), ("system", "One\nTwo")),
        (attached("hook_success", hookEvent="SessionStart", content="Up"), ("system", "Up")),
        (attached("hook_success", hookEvent="Stop", content="Down"), None),
        (attached("command_permissions", allowedTools=["Bash"]), None),
        ({"type": "system", "subtype": "local_command", "content": "3 files"}, ("system", "3 files")),
        ({"type": "system", "subtype": "turn_duration", "durationMs": 5}, None),
    ],
)  # fmt: skip
def test_records_that_claude_code_sends_are_messages(
    record: dict[str, Any], message: tuple[str, str] | None, tmp_path: Path
) -> None:
    (trace,) = load(tmp_path, [ASKED, claude("x1", "u1", **record), ANSWERED], "s.jsonl")
    between = [message] if message else []
    assert said(trace) == [("user", "Hello"), *between, ("assistant", "Yes")]
    assert trace.warnings == ()


def test_unknown_attachments_and_records_alone_are_named(tmp_path: Path) -> None:
    strange = claude("x1", "u1", **attached("of_2030", content="?"))
    asks = [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]
    called = claude("a0", "x1", type="assistant", message=assistant(asks))
    result = claude("r1", "a0", type="tool_result", message={"role": "tool", "content": "text"})
    records = [ASKED, strange, called, result, ANSWERED | {"parentUuid": "r1"}]
    (trace,) = load(tmp_path, records, "s.jsonl")
    assert trace.warnings == ("Left out 1 record of unknown kinds: attachment of_2030 (1).",)
    assert said(trace)[2] == ("tool", "text") and trace.messages[2].tool_call_id == "t1"


def test_a_gemini_session_holds_its_context_and_each_result_once(tmp_path: Path) -> None:
    result = {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "Sun"}}}
    call = {"id": "c1", "name": "look", "args": {}, "result": [result]}
    context = {"id": "u0", "type": "user", "content": [{"text": "Context"}]}
    rows = [
        {"sessionId": "g", "projectHash": "p", "startTime": "2026-01-01", "lastUpdated": "2026-01-01"},
        {"$set": {"messages": [context]}},
        {"id": "u1", "type": "user", "content": [{"text": "Look"}]},
        {"id": "m1", "type": "gemini", "content": "", "toolCalls": [call], "tokens": {"input": 9, "output": 2}},
        {"id": "u2", "type": "user", "content": [result]},
        {"id": "m2", "type": "gemini", "content": "Sunny", "tokens": {"input": 20, "output": 1}},
    ]  # fmt: skip
    (trace,) = load(tmp_path, rows, "g.jsonl")
    roles = [message.role for message in trace.messages]
    assert roles == ["user", "user", "assistant", "tool", "assistant"]
    assert trace.messages[0].text == "Context" and prompts(trace) == [9, 20]


# Archives and logs


def test_an_inspect_log_is_its_samples_once_with_their_usage(tmp_path: Path) -> None:
    summary = {"id": 1, "epoch": 1, "input": "Hello", "target": "Hi"}
    usage = {"input_tokens": 12, "output_tokens": 1}
    output = {"model": "gpt-4o-mini", "usage": usage}
    sample = {**summary, "messages": [HELLO, assistant("Hi")], "output": output}
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/summaries/1.json", json.dumps([summary]))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
        archive.writestr("summaries.json", json.dumps([summary]))
        archive.writestr("header.json", json.dumps({"eval": {}}))
    # Inspect packs with Zstandard, of which Python's zipfile knows nothing before 3.14.
    packed = tmp_path / "packed.eval"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("header.json", "{}")
        compressed = zstandard.ZstdCompressor().compress(json.dumps(sample).encode())
        archive.writestr("samples/1.json", compressed)
        start = archive.infolist()[1].header_offset
    data = bytearray(packed.read_bytes())
    data[start + 8] = data[data.rindex(b"PK\x01\x02") + 10] = 93
    packed.write_bytes(data)
    whole = load(tmp_path, {"eval": {}, "samples": [sample]})
    traces = [*bk.load_traces(path), *bk.load_traces(packed), *whole]
    assert [said(trace) for trace in traces] == [[("user", "Hello"), ("assistant", "Hi")]] * 3
    assert [(trace.model, prompts(trace)) for trace in traces] == [("gpt-4o-mini", [12])] * 3


def span(kind: str, **attributes: Any) -> dict[str, Any]:
    about = {"name": "step", "span_kind": kind, "context": {"span_id": "1"}}
    return {**about, "attributes": attributes}


_SAID = "llm.input_messages.0.message"
MODEL_SPAN = span("LLM", **{f"{_SAID}.role": "user", f"{_SAID}.content": "Hello"})


@pytest.mark.parametrize("name", ["spans.json", "spans.jsonl"])
@pytest.mark.parametrize("order", [1, -1])
def test_spans_of_no_model_are_named(name: str, order: int, tmp_path: Path) -> None:
    spans = [span("AGENT", **{"input.value": "Hello"}), MODEL_SPAN, span("TOOL")][::order]
    (trace,) = load(tmp_path, spans, name)
    assert said(trace) == [("user", "Hello")]
    (warning,) = trace.warnings
    kind = "spans" if name.endswith("jsonl") else "entries"
    assert warning.startswith(f"Left out 2 {kind} without a conversation")


def test_an_entry_without_a_conversation_is_named(tmp_path: Path) -> None:
    message = {"author": {"role": "user"}, "content": {"parts": ["Hello"]}}
    node = {"id": "a", "parent": None, "message": message}
    chat = {"title": "Good", "current_node": "a", "mapping": {"a": node}}
    first, second = load(tmp_path, [chat, {"title": "Broken", "create_time": 1}, chat])
    assert said(first) == said(second) == [("user", "Hello")]
    assert first.warnings == ("Left out 1 entry without a conversation: entry 2 'Broken'.",)


def test_indented_objects_one_after_the_other_are_read(tmp_path: Path) -> None:
    text = "\n".join(json.dumps({"messages": [HELLO]}, indent=2) for _ in range(3))
    assert [trace.source for trace in load(tmp_path, text, "spans.jsonl")] == [
        f"spans.jsonl, line {line}" for line in (1, 9, 17)
    ]


def test_an_aider_history_may_begin_within_a_session(tmp_path: Path) -> None:
    cut = "#### Old one\n\nDone.\n\n# aider chat started at 2026-01-01 10:00:00\n\n#### New one\n\nDone too.\n"
    old, new = load(tmp_path, cut, "history.md")
    assert said(old) == [("user", "Old one"), ("assistant", "Done.")]
    assert said(new) == [("user", "New one"), ("assistant", "Done too.")]
    _, tail = cut.split("Done.\n")
    (alone,) = load(tmp_path, "> Applied edit to a.py\n" + tail, "history.md")
    assert said(alone) == said(new)


@pytest.mark.parametrize(
    "wrapped",
    [
        {"data": [{"messages": [HELLO]}], "total": 1},
        {"chat": [HELLO]},
        {"result": {"messages": [HELLO]}},
        {"export": {"chats": [{"messages": [HELLO]}]}},
    ],
)
def test_a_key_around_conversations_is_no_obstacle(wrapped: Any, tmp_path: Path) -> None:
    assert [said(trace) for trace in load(tmp_path, wrapped)] == [[("user", "Hello")]]


# Chats and data sets


def test_an_open_webui_answer_is_its_items(tmp_path: Path) -> None:
    def message(id: str, parent: str | None, role: str, **fields: Any) -> dict[str, Any]:
        return {"id": id, "parentId": parent, "role": role, **fields}

    items = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "Look it up."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "Sun"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]},
    ]  # fmt: skip
    html = "<details type='tool_calls'>Sun</details>Sunny."
    question = message("1", None, "user", content="Hello")
    nodes = {"1": question, "2": message("2", "1", "assistant", content=html, output=items)}
    (trace,) = load(tmp_path, {"chat": {"history": {"currentId": "2", "messages": nodes}}})
    assert [text for _, text in said(trace)] == ["Hello", "", "Sun", "Sunny."]
    assert calls(trace) == [("c1", "weather")]
    assert trace.messages[1].raw["reasoning_content"] == "Look it up."


SHARE_GPT = {
    "conversations": [{"from": "human", "value": "Hello"}],
    "chosen": {"from": "gpt", "value": "Good"},
    "rejected": {"from": "gpt", "value": "Bad"},
}
PREFERENCES: list[Any] = [
    SHARE_GPT,
    {"conversations": [HELLO], "chosen": assistant("Good"), "rejected": assistant("Bad")},
    {"messages": [HELLO], "chosen": "Good", "rejected": "Bad"},
    {"instruction": "", "input": "Hello", "chosen": "Good", "rejected": "Bad"},
]


@pytest.mark.parametrize("row", PREFERENCES)
def test_both_answers_of_a_preference_are_read(row: Any, tmp_path: Path) -> None:
    assert [said(trace) for trace in load(tmp_path, row)] == [
        [("user", "Hello"), ("assistant", answer)] for answer in ("Good", "Bad")
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [HELLO], "images": ["cat.png"]},
        {"conversations": [{"from": "human", "value": "<image> Hello"}], "images": ["cat.png"]},
    ],
)
def test_pictures_beside_messages_are_named(row: Any, tmp_path: Path) -> None:
    (trace,) = load(tmp_path, row)
    assert trace.warnings == ("Not counted: media outside the messages (images).",)


@pytest.mark.parametrize(
    "value",
    [
        {"id": 3, "input": "One", "target": "Two"},
        {"input": 5},
        {"contents": ["One", "Two"]},
        {"candidates": ["One", "Two"]},
        {"mapping": {"One": "Two"}},
    ],
)
def test_one_field_of_the_right_name_makes_no_conversation(value: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no conversation in the fields"):
        load(tmp_path, value)


# Calls and results

CALL = tool_call("c1", "look")
RESULT = tool_result("c1", "Sun")


def part(kind: str) -> dict[str, Any]:
    return {"type": kind, "tool_call_id": "c1", "name": "look", "arguments": "{}"}


ASKS = assistant([part("tool_call")])
OUTPUT = {**RESULT, "content": [{"type": "tool_output", "text": "Sun"}]}
BY_NAME = {"id": "c1", "function": "look", "arguments": {}}


@pytest.mark.parametrize(
    "messages",
    [
        [ASKS, RESULT],
        [RESULT, ASKS],
        [ASKS, OUTPUT],
        [{**ASKS, "tool_calls": [CALL]}, RESULT],
        [assistant([part("tool_use")], tool_calls=[CALL]), RESULT],
        [assistant("", tool_calls=[BY_NAME]), RESULT],
    ],
)
def test_a_call_is_read_once_and_its_result_follows(messages: Rows, tmp_path: Path) -> None:
    (trace,) = load(tmp_path, {"messages": [HELLO, *messages]})
    assert [role for role, _ in said(trace)] == ["user", "assistant", "tool"]
    assert calls(trace) == [("c1", "look")] and trace.messages[2].text == "Sun"
    assert trace.warnings == () and "Responses" not in trace.format


AS_TEXT = '{"name": "look", "arguments": {}}'
TAGGED = assistant(f"I look. <tool_call>{AS_TEXT}</tool_call>")
FROM = [("human", "Hello"), ("gpt", "I look."), ("function_call", AS_TEXT), ("observation", "Sun")]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [HELLO, TAGGED, {"role": "tool", "content": "Sun"}]},
        {"conversations": [{"from": speaker, "value": text} for speaker, text in FROM]},
    ],
    ids=["tagged", "ShareGPT"],
)
def test_calls_that_a_data_set_writes_as_text_are_answered(row: Any, tmp_path: Path) -> None:
    (trace,) = load(tmp_path, row)
    assert calls(trace) == [("look-1", "look")] and trace.messages[-1].tool_call_id == "look-1"
    assert trace.warnings == () and "I look." in [text for _, text in said(trace)]


def test_tools_may_be_json_text(tmp_path: Path) -> None:
    (trace,) = load(tmp_path, {"messages": [HELLO], "tools": json.dumps([{"name": "look"}])})
    assert len(trace.tools) == 1


# Tables and folders

ROWS = [
    {"case": "a", "by": "user", "words": "Hello"},
    {"case": "b", "by": "user", "words": "Bye"},
    {"case": "a", "by": "assistant", "words": "Hi"},
]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_rows_of_a_table_may_be_json(name: str, tmp_path: Path) -> None:
    columns = {"conversation": "case", "role": "by", "content": "words"}
    expected = [("a", [("user", "Hello"), ("assistant", "Hi")]), ("b", [("user", "Bye")])]
    traces = load(tmp_path, ROWS, name, columns=columns)
    assert [(trace.id, said(trace)) for trace in traces] == expected
    usual = [
        {"session_id": row["case"], "speaker": row["by"], "message": row["words"]} for row in ROWS
    ]
    assert [(trace.id, said(trace)) for trace in load(tmp_path, usual, name)] == expected


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    load(tmp_path, {"messages": [HELLO]}, "b.json")
    load(tmp_path, [{"messages": [HELLO]}] * 2, "below/a.jsonl")
    (tmp_path / "README.md").write_text("No chat.")
    with pytest.warns(UserWarning, match="1 file of .* without a conversation: README.md"):
        traces = bk.load_traces(tmp_path)
    assert [trace.id for trace in traces] == ["b", "a", "a-2"]


@pytest.mark.parametrize(
    "value", [{"type": "x", "timestamp": 1}, {"session_id": "a", "ts": 1, "chunk": "x"}]
)
def test_no_nearest_format_where_little_agrees(value: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"in the fields .*\. Pass an object with 'messages'"):
        load(tmp_path, value)


def test_a_plain_chat_with_results_before_their_call(tmp_path: Path) -> None:
    """The result goes behind its call, and usage and passages stay with their messages."""
    call = tool_call("a", "look")
    caller = calling(call)
    result = tool_result("a", "seen")
    rows: Rows = [HELLO, result, caller, user("And?")]
    roles = ["user", "assistant", "tool", "user"]
    for written, name in (
        (rows, "list.json"),
        (rows, "lines.jsonl"),
        ([{"messages": rows}], "a.jsonl"),
    ):
        (trace,) = load(tmp_path, written, name)
        assert [message.role for message in trace.messages] == roles
    assert [message.role for message in bk.Trace("mine", tuple(rows)).messages] == roles

    usage = [{"message_index": 2, "context_tokens": 9}]
    marked = {"messages": rows, "usage": usage, "contexts": ["a passage"]}
    trace = bk.load_trace(marked | {"meta": {"contexts_apply_to_message": 2}})
    assert bk.trace.usage_frame(trace)["message_index"].tolist() == [1]
    assert [*trace.contexts] == [1]
    assert usage[0]["message_index"] == 2  # the caller's own record is left alone


# What stands beside messages and answers

YES = assistant("Yes")
OLLAMA = {"prompt_eval_count": 12, "eval_count": 5, "response_token/s": 3.5}


def webui(**answer: Any) -> dict[str, Any]:
    """An export of Open WebUI with one answer."""
    nodes = {"1": {"id": "1", **HELLO}, "2": {"id": "2", "parentId": "1", **YES, **answer}}
    return {"chat": {"history": {"currentId": "2", "messages": nodes}}}


LANGSMITH = {
    "run_type": "llm",
    "inputs": {"messages": [HELLO]},
    "outputs": {"messages": [HELLO, YES]},
    "prompt_tokens": 12,
    "completion_tokens": 5,
}
SIZES = {"tokens": {"input_tokens": 12, "output_tokens": 5}}


@pytest.mark.parametrize(
    ("value", "answer", "sizes"),
    [
        ({"messages": [HELLO], "message": YES, **OLLAMA}, "Yes", (12, 5)),
        (webui(info=OLLAMA), "Yes", (12, 5)),
        (webui(usage={**OLLAMA, "prompt_tokens": 12, "completion_tokens": 5}), "Yes", (12, 5)),
        (LANGSMITH, "Yes", (12, 5)),
        ({"messages": [HELLO], "response": {"message": YES, "usage": SIZES}}, "Yes", (12, 5)),
        ({"prompt": "Hello", "completions": ["One.", "Two."], "labels": [True]}, "One.\nTwo.", ()),
    ],
)
def test_answers_and_sums_beside_the_messages_are_read(
    value: Any, answer: str, sizes: tuple[int, int], tmp_path: Path
) -> None:
    (trace,) = load(tmp_path, value)
    assert said(trace) == [("user", "Hello"), ("assistant", answer)]
    usage = bk.trace.usage_frame(trace)[["context_tokens", "output_tokens"]]
    assert [*usage.itertuples(index=False, name=None)] == [sizes] * bool(sizes)
    assert trace.warnings == ()


def test_files_attached_to_a_chatgpt_message_are_named(tmp_path: Path) -> None:
    files = [{"name": "a.pdf", "mimeType": "application/pdf"}, {"mime_type": "image/png"}]
    message = {"author": {"role": "user"}, "content": {"parts": ["Hello"]}}
    node = {"message": message | {"metadata": {"attachments": files}}, "parent": None}
    (trace,) = load(tmp_path, {"title": "t", "mapping": {"1": node}})
    assert trace.warnings == ("Not counted: 1 attached file.",)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"messages": [{"versions": [HELLO], "currentlySelected": 0}]}, "LM Studio"),
        ([{"title": "t", "inserted_at": "2026", "mapping": {"1": {"message": None}}}], "DeepSeek"),
        ([{"source": "user", "type": "TextMessage", "content": "Hello"}], "AutoGen"),
        ({"type": "TeamState", "version": "1", "agent_states": {"a": {}}}, "AutoGen"),
        ({"prompt": [HELLO], "completions": [[YES], [YES]]}, "Several completions"),
    ],
)
def test_unread_formats_are_refused_by_name(value: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{name}.* not supported. (Pass|Copy)"):
        load(tmp_path, value)


def test_files_of_open_webui_are_named_and_pictures_counted(tmp_path: Path) -> None:
    export = webui()
    picture = {"type": "image", "url": "data:image/png;base64,aGk="}
    export["chat"]["history"]["messages"]["1"]["files"] = [{"type": "file", "name": "a"}, picture]
    (trace,) = load(tmp_path, export)
    assert said(trace)[0] == ("user", "Hello")
    assert len(trace.messages[0].images) == 1
    assert trace.warnings == ("Not counted: file, whose tokens only the provider knows.",)


def test_chunks_of_a_stream_are_not_counted_beside_the_whole(tmp_path: Path) -> None:
    def event(text: str, **more: Any) -> dict[str, Any]:
        content = {"role": "model", "parts": [{"text": text}]}
        return {"author": "agent", "invocationId": "i", "content": content, **more}

    (trace,) = load(tmp_path, [event("Y", partial=True), event("Yes")], "adk.jsonl")
    assert said(trace) == [("assistant", "Yes")]


def test_records_of_codex_of_unknown_kinds_are_no_messages(tmp_path: Path) -> None:
    item = {"type": "message", "role": "user", "content": "Hello"}
    lines = [{"type": "response_item", "payload": item}, {"type": "of_2030", "payload": {"a": 1}}]
    (trace,) = load(tmp_path, lines, "rollout.jsonl")
    assert said(trace) == [("user", "Hello")]
    assert trace.warnings == ("Left out 1 record of unknown kinds: of_2030 (1).",)
