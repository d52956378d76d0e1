"""Every format that loads: one small file of our own each, with all that was said in it, and by whom.

The samples tell one conversation: a system text, a question, an answer that calls a tool, its result, an answer, and
what the provider counted. A format that cannot hold all of it holds what it can.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budgetkit as bk
from budgetkit.extras.shell.inputs import settings_at
from budgetkit.requests.reading.formats import format_label, formats
from budgetkit.trace import Trace, list_traces, messages_of, tables, usage_frame
from budgetkit.trace.importers.frameworks import assembled
from budgetkit.trace.jsonl import Outflow
from tests.messages import assistant, tool_result, user

FOLDER = Path(__file__).parents[1] / "formats"

SYSTEM, USER = ("system", "Be brief."), ("user", "How is Oslo?")
CALLS, ANSWER = ("assistant", "Let me look."), ("assistant", "It is sunny.")
WHOLE = [SYSTEM, USER, CALLS, ("tool", "Sun"), ANSWER]
SPOKEN = [USER, ANSWER]
OSLO = ("c1", "weather", {"place": "Oslo"})


@dataclass
class Told:
    """What one conversation of a file holds."""

    said: list[Any]
    calls: list[Any] = field(default_factory=list)
    usage: list[Any] = field(default_factory=list)
    tools: int = 0
    id: str = ""
    format: str = "OpenAI chat"
    model: str | None = None
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.said, self.calls, self.usage = (
            [tuple(row) for row in rows] for rows in (self.said, self.calls, self.usage)
        )


#: What each sample holds, a sample a line; "source" says where its format was read.
EXPECTED: dict[str, list[Told]] = {
    row["file"]: [Told(format=row["format"], **held) for held in row["holds"]]
    for row in map(
        json.loads, Path(__file__).with_name("formats.jsonl").read_text("utf-8").split("\n")[:-1]
    )
}


def told(trace: Trace) -> Told:
    """Say what a trace holds, in the words of the table above."""
    frame = usage_frame(trace)
    sums = [f"{kind}_tokens" for kind in ("input", "output", "cache_read", "context")]
    calls = [call for message in trace.messages for call in message.tool_calls]
    return Told(
        said=[(message.role, message.text) for message in trace.messages],
        calls=[(call.id, call.name, json.loads(call.arguments)) for call in calls],
        usage=[*frame[["message_index", *sums]].itertuples(index=False)],
        tools=len(trace.tools),
        id=trace.id,
        format=trace.format,
        model=frame["model"].iloc[0] if len(frame) else None,
        warnings=list(trace.warnings),
    )


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_format_is_named_and_read_in_full(name: str) -> None:
    """And every result answers a call that stands before it."""
    traces = bk.load_traces(FOLDER / name)
    stem = Path(name).stem
    for number, expected in enumerate(EXPECTED[name], start=1):
        expected.id = expected.id or (stem if number == 1 else f"{stem}-{number}")
    assert [told(trace) for trace in traces] == EXPECTED[name]
    for trace in traces:
        known: set[str] = set()
        for message in trace.messages:
            known |= {call.id for call in message.tool_calls}
            assert message.role != "tool" or message.tool_call_id in known
        assert len(set(usage_frame(trace)["model"])) < 2


def test_there_is_a_sample_of_every_format_and_an_expectation_of_every_sample() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(EXPECTED)
    read = {each.format for listed in EXPECTED.values() for each in listed}
    lists = {"openai-list"}
    assert {
        format_label(row.name) for row in formats() if not row.refuse and row.name not in lists
    } <= read


def test_schemas_of_gemini_and_bedrock_stand_where_those_of_openai_and_anthropic_do() -> None:
    """Tools whose schema is under another name are not counted as tools without one."""
    gemini, bedrock = (bk.load_trace(FOLDER / name) for name in ("gemini.json", "bedrock.json"))
    assert gemini.tools[0]["parameters"]["properties"] == {"place": {"type": "string"}}
    assert bedrock.tools[0]["input_schema"]["properties"] == {"place": {"type": "string"}}


def test_a_trace_of_spans_lists_those_that_hold_no_conversation() -> None:
    choice = {"message": assistant("Hi.")}
    listed = {"object": "list", "data": [{"object": "chat.completion", "choices": [choice]}]}
    (trace,) = load(listed)
    assert (trace.format, trace.messages[0].text) == ("OpenAI chat", "Hi.")


def load(*values: Any, name: str = "toy.jsonl") -> list[Trace]:
    return bk.load_traces(file("\n".join(json.dumps(value) for value in values).encode(), name))


def file(written: bytes, name: str) -> io.BytesIO:
    stream = io.BytesIO(written)
    stream.name = name
    return stream


# Streams

#: The events of a stream, one a line, and the provider that sends them.
STREAMS: dict[str, list[Any]] = {}
for _line in Path(__file__).with_name("streams.jsonl").read_text("utf-8").splitlines():
    _event = json.loads(_line)
    STREAMS.setdefault(_event["by"], []).append(_event["event"])


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_the_events_of_a_stream_make_one_answer_with_its_usage(name: str, as_text: bool) -> None:
    events: Any = STREAMS[name]
    if as_text:
        events = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n"
    (trace,) = load({"request": {"messages": [user("How is Oslo?")]}, "response": events})
    assert (told(trace).said, told(trace).calls) == ([USER, CALLS], [OSLO])
    assert told(trace).usage == [(1, 60, 5, 0, 60)]


@pytest.mark.parametrize(
    "text",
    [
        "data: hello",
        "data:",
        "event: a wedding\n\nSend the guests a card.",
        'data: {"rain": 7}\nSo it rained for seven days.',
    ],
)
def test_an_answer_that_only_begins_like_a_stream_stays_text(text: str) -> None:
    assert assembled(text, set()) == text


def test_a_stream_may_have_comments_and_line_separators_inside_its_texts() -> None:
    chunk = json.dumps({"choices": [{"delta": {"content": "a\u2028b"}}]}, ensure_ascii=False)
    answer = assembled(f": wait\r\n\r\ndata: {chunk}\r\n\r\ndata: [DONE]\r\n\r\n", set())
    assert answer["content"] == [{"type": "text", "text": "a\u2028b"}]


# Text stays what was said


@pytest.mark.parametrize(
    "text", ['{"value": 7, "text": "inner"}', '[{"type": "text", "text": "inner"}]', '{"messages": "x"}', "[1, 2]"]
)  # fmt: skip
def test_text_that_is_json_is_what_was_said(text: str) -> None:
    """Logs write bodies as JSON in a text; what people say may be JSON as well."""
    for value in (
        {"contents": [{"role": "user", "parts": [{"text": text}]}]},
        {"prompt": text, "completion": text},
        [{"type": "human", "data": {"content": text}}],
        {"messages": [user([{"type": "text", "text": text}, {"type": "cachePoint"}])]},
    ):
        assert {message.text for message in load(value)[0].messages} == {text}


# Files that hold no text say so (they loaded as empty, and "Everything fits", in 0.1.0)


EMPTY: dict[str, Any] = {
    "Vercel": [{"id": "1", "role": "user", "parts": [{"type": "step-start"}]}],
    "Gemini": {"contents": [{"role": "user", "parts": []}]},
    "LiteLLM": {"call_type": "acompletion", "messages": [user("")], "response": {}},
    "OpenAI": {"messages": [user(None), assistant("")]},
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_file_without_any_text_says_so(name: str) -> None:
    warning = rf"toy.jsonl, line 1: No text in the .* .{name}.*[.] Export"
    with pytest.warns(UserWarning, match=warning):
        (trace,) = load(EMPTY[name])
    assert trace.is_silent and trace.warnings[0].startswith("No text in the")


NOTHING: dict[str, tuple[Any, str]] = {
    "Alpaca": ({"instruction": "", "output": ""}, "Alpaca"),
    "Langfuse": ({"type": "GENERATION", "input": None, "output": {}}, "Langfuse observation"),
    "LiteLLM": ({"call_type": "acompletion", "messages": {}, "response": {}}, "LiteLLM log"),
    "ChatGPT": ({"mapping": {}, "title": "x"}, "ChatGPT export"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_record_without_any_message_is_refused_by_its_name(name: str) -> None:
    value, sentence = NOTHING[name]
    fix = "Pass at least one message with a role"
    with pytest.raises(ValueError, match=rf"line 1: no messages .{sentence}.. {fix}"):
        load(value)


# What is refused names the nearest format, or what to give instead

NO_CONVERSATION = "no conversation in the fields '%s'. Pass an object with 'messages'"

REFUSED: dict[str, tuple[Any, str]] = {
    "prompts of Claude Code": (
        {"display": "hi", "pastedContents": {}, "timestamp": 1, "project": "x"},
        r"toy.jsonl, line 1: Claude Code's .* a session from its projects folder.",
    ),
    "prompts of Codex": (
        {"session_id": "x", "ts": 1, "text": "hi"},
        r"toy.jsonl, line 1: Codex's history.jsonl .* a rollout from its sessions folder.",
    ),
    "Slack's channels": (
        [{"id": "C1", "name": "x", "is_general": True, "members": []}],
        r"toy.jsonl, line 1: Slack's list of .* Pass one day's file of a channel.",
    ),
    "a notebook": (
        {"nbformat": 4, "cells": []},
        r"line 1: A notebook contains no .* the .chat file that jupyter-ai saved next to it.",
    ),
    "half an Alpaca": ({"instruction": "Say hello."}, NO_CONVERSATION % "instruction"),
    "a LangSmith run without inputs": ({"run_type": "llm"}, NO_CONVERSATION % "run_type"),
    "an Inspect sample without an epoch": (
        {"messages": None, "target": "x", "output": {}, "id": 1},
        r"Invalid messages: a value of type NoneType. Expected a list of one or more messages",
    ),
    "half a preference": (
        {"chosen": "a", "instruction": "b"},
        r"It is closest to TRL preference pairs \(DPO\), but the field 'rejected' is missing",
    ),
    "nothing known": ({"zebra": 1}, NO_CONVERSATION % "zebra"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_what_to_give_instead(name: str) -> None:
    value, sentence = REFUSED[name]
    with pytest.raises(ValueError, match=sentence) as error:
        load(value)
    assert "\n" not in str(error.value)


# M3: one field of another type (a raw error in 0.1.0)

HI = user("Hi")
WRONG: list[Any] = [
    {"messages": [HI], "tools": 5},
    {"messages": [HI], "functions": 5},
    {"messages": [HI], "contexts": 5},
    {"messages": [{**HI, "contexts": 5}]},
    {"request": {"messages": [HI]}, "response": {"choices": ["x"]}},
    {"request": {"messages": [HI]}, "response": {"choices": 5}},
    {"request": {"contents": [{"parts": [{"text": "Hi"}]}]}, "response": {"candidates": {}}},
    {"system": "x", "messages": [user(5)]},
    {"input": "Hi", "instructions": 5},
    {"input": [{"type": "reasoning", "summary": [{"text": None}]}, HI]},
    {"messages": [HI], "usage": [{"input_tokens": 5}]},
    {"messages": [HI], "usage": 5},
    {"messages": [HI], "usage": [5]},
    # Found by a long run of the mutants.
    {"events": [{"name": "gen_ai.user.message", "attributes": {"0": None}}]},
]


@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@pytest.mark.parametrize("value", WRONG, ids=lambda value: json.dumps(value)[:60])
def test_one_field_of_another_type_is_read_over_or_refused_in_words(value: Any) -> None:
    try:
        for trace in load(value):
            usage_frame(trace)
            trace.demand(len)
    except ValueError as refusal:
        assert str(refusal).startswith("toy.jsonl, line 1") and re.search(
            r"; |\. [A-Z]", str(refusal)
        )


def test_a_score_beyond_all_floats_is_no_score() -> None:
    (trace,) = load({"messages": [HI], "contexts": [{"text": "found", "score": 10**400}]})
    assert trace.contexts[0][0].score is None


def test_functions_beside_tools_are_counted_too() -> None:
    both = {"messages": [HI], "tools": [{"name": "a"}], "functions": [{"name": "b"}]}
    assert [tool["name"] for tool in load(both)[0].tools] == ["a", "b"]


def test_meta_that_is_no_object_is_kept() -> None:
    (trace,) = load({"messages": [HI], "meta": "from the shop"})
    assert dict(trace.fields) == {"meta": "from the shop"}


def test_nesting_is_bounded_and_half_a_character_is_written_as_an_escape() -> None:
    deep = "[" * 450 + "]" * 450
    written = '{"messages": [{"role": "user", "content": "x", "extra": ' + deep + "}]}"
    with pytest.raises(ValueError, match="line 1: nested too deeply"):
        bk.load_traces(file(written.encode(), "deep.jsonl"))
    (trace,) = load({"messages": [user("half \ud83d")]})
    again = bk.load_trace(file(bk.trace.to_line(trace).encode(), "again.jsonl"))
    assert again.messages == trace.messages


@pytest.mark.parametrize("name", ["tools", "system", "meta", "parts", "contents"])
def test_a_key_that_stands_twice_is_refused(name: str) -> None:
    written = f'{{"messages": [], "{name}": [], "{name}": []}}'
    with pytest.raises(ValueError, match=f"'{name}' appears twice"):
        bk.load_traces(file(written.encode(), "twice.jsonl"))


# Containers and tables


def zipped(contents: dict[str, bytes]) -> io.BytesIO:
    """Pack files by name, ready to be read."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, content in contents.items():
            packed.writestr(name, content)
    archive.seek(0)
    return archive


def test_packed_files_are_opened_by_their_content() -> None:
    written = (FOLDER / "anthropic.json").read_bytes()
    archive = zipped(
        {"chat/a.json": written, "chat/picture.png": b"\x89PNG", "__MACOSX/a.json": b"\x00"}
    )
    for pack in (gzip.compress, bz2.compress, lzma.compress, lambda _: archive.getvalue()):
        (trace,) = bk.load_traces(file(pack(written), "chat.bin"))
        assert told(trace).said == WHOLE
    for broken, name, problem in (
        (gzip.compress(written)[:20], "chat.gz", "Cannot unpack chat.gz .*. Compress it again"),
        (gzip.compress(written)[:60], "chat.gz", "Cannot unpack chat.gz .*. Compress it again"),
        (b"PK\x03\x04 and so on", "chat.zip", "chat.zip is not a readable zip file .*. Zip it"),
    ):
        with pytest.raises(ValueError, match=problem):
            bk.load_traces(file(broken, name))


def test_of_an_archive_other_files_are_left_out_and_named() -> None:
    """As Slack's export is: lists of people and channels beside a folder of days for each channel."""
    channels = b'[{"id": "C1", "is_general": true, "members": []}]'
    day = (FOLDER / "slack.json").read_bytes()
    archive = zipped({"channels.json": channels, "general/2026-01-01.json": day})
    warning = "Left out 1 file of .* without a conversation: slack.zip/channels.json"
    with pytest.warns(UserWarning, match=warning):
        (trace,) = bk.load_traces(file(archive.getvalue(), "slack.zip"))
    assert told(trace).said == SPOKEN


def test_of_an_export_only_the_conversations_are_read() -> None:
    exported = (FOLDER / "chatgpt.json").read_bytes()
    archive = zipped({"user.json": b'{"id": "me"}', "conversations.json": exported})
    assert [trace.id for trace in bk.load_traces(archive)] == ["conv1", "conv2"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_text_of_two_bytes_a_character_is_read(encoding: str) -> None:
    written = (FOLDER / "openai-chat.jsonl").read_text("utf-8").replace("sunny", "schön")
    (trace,) = bk.load_traces(file(written.encode(encoding), "chat.jsonl"))
    assert trace.messages[-1].text == "It is schön."


FRAME = pd.DataFrame(
    [["user", "How is Oslo?", 1, 0.5], ["bot", "It is sunny.", 2, None], ["user", None, 3, 1]],
    columns=["who", "words", "nr", "score"],
)


def test_columns_of_a_frame_are_chosen_by_name() -> None:
    (trace,) = bk.load_traces(FRAME, columns={"role": "who", "content": "words"})
    assert told(trace).said == [*SPOKEN, ("user", "")]
    assert trace.messages[0].raw["nr"] == 1
    known = "Choose one of: 'who', 'words', 'nr', 'score'."
    with pytest.raises(ValueError, match=f"the frame: Unknown column 'speaker'. {known}"):
        bk.load_trace(FRAME, columns={"role": "speaker", "content": "words"})


def test_a_row_may_be_a_conversation_of_its_own() -> None:
    frame = pd.DataFrame({"instruction": ["Say hello."], "input": [""], "output": ["Hello."]})
    assert told(bk.load_trace(frame)).said == [("user", "Say hello."), ("assistant", "Hello.")]
    frame = pd.DataFrame({"messages": [[HI, assistant("Hello.")]], "source": ["x"]})
    assert told(bk.load_trace(frame)).said == [("user", "Hi"), ("assistant", "Hello.")]


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "feather", "zst"])
def test_excel_parquet_arrow_and_zstandard_are_an_extra(kind: str, tmp_path: Path) -> None:
    pytest.importorskip({"xlsx": "openpyxl", "zst": "zstandard"}.get(kind, "pyarrow"))
    path = tmp_path / f"chat.{kind}"
    rows = FRAME[:2].rename(columns={"who": "role", "words": "content"})
    if kind == "xlsx":
        rows.to_excel(path, index=False)
    elif kind == "parquet":
        rows.to_parquet(path)
    elif kind == "feather":
        rows.to_feather(path)
    else:
        import zstandard

        path.write_bytes(zstandard.compress((FOLDER / "prompt-completion.jsonl").read_bytes()))
    assert told(bk.load_trace(path)).said == SPOKEN


@pytest.mark.parametrize(
    ("start", "library"),
    [(b"PAR1", "pyarrow"), (b"ARROW1", "pyarrow"), (b"\x28\xb5\x2f\xfd", "zstandard")],
)
def test_an_extra_that_is_not_there_is_named(
    start: bytes, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    refusal = rf"Missing optional dependency '{library}', which a.bin needs. Run: pip install 'budgetkit\[lab\]'"
    with pytest.raises(ImportError, match=refusal):
        bk.load_traces(file(start + b"x" * 100, "a.bin"))


def test_a_broken_table_and_an_old_spreadsheet_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a.xls is an old Excel file \(.xls\). Save it as .xlsx."):
        bk.load_traces(file(b"\xd0\xcf\x11\xe0" + b"x" * 100, "a.xls"))
    pytest.importorskip("zstandard")
    with pytest.raises(ValueError, match="Cannot unpack a.zst .*. Compress it again"):
        bk.load_traces(file(b"\x28\xb5\x2f\xfd" + b"x" * 100, "a.zst"))


def test_aliases_of_yaml_are_refused() -> None:
    bomb = b"a: &a [x, x, x]\nb: &b [*a, *a]\nmessages: [*b, *b]\n"
    refusal = r"chat.yaml: invalid YAML .aliases are not .* Correct it, or write"
    with pytest.raises(ValueError, match=refusal):
        bk.load_traces(file(bomb, "chat.yaml"))


# Choosing among many


def test_conversations_are_listed_by_title_and_size_without_building_them() -> None:
    frame = list_traces(FOLDER / "chatgpt.json")
    assert frame.columns.tolist() == ["id", "title", "format", "messages", "characters"]
    assert frame.values.tolist() == [
        ["conv1", "Weather", "ChatGPT export", 4, 27],
        ["conv2", "A picture", "ChatGPT export", 1, 13],
    ]
    assert bk.load_trace(FOLDER / "chatgpt.json", "A picture").id == "conv2"


# Values in memory


class Sdk:
    """As the SDKs of OpenAI, Anthropic and Google write their objects."""

    def __init__(self, **held: Any) -> None:
        self.held = held

    def model_dump(self) -> dict[str, Any]:
        return {**self.held, "refusal": None}


class Bare:
    """As older LangChain messages are: a type and a content."""

    type, content = "ai", "Hello."


def test_messages_load_as_they_are_whoever_made_them() -> None:
    function = Sdk(name="weather", arguments="{}")
    call = Sdk(id="c1", type="function", function=function)
    answer = Sdk(role="assistant", content=None, tool_calls=[call])
    said = [HI, answer, tool_result("c1", "Sun"), Bare(), bk.Message(HI)]
    trace = bk.load_trace(said)
    assert [m.role for m in trace.messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert trace.messages[1].tool_calls[0].name == "weather"
    assert messages_of(said) == trace.messages


def test_a_request_is_a_conversation_and_a_text_is_none() -> None:
    (trace,) = bk.load_traces({"model": "claude-x", "system": "Be brief.", "messages": [HI]})
    assert told(trace).said == [SYSTEM, ("user", "Hi")]
    expected = "Expected .* or an object with a role and content."
    with pytest.raises(TypeError, match=f"Invalid message of type object. {expected}"):
        bk.load_trace([object()])


def test_langchain_and_openai_objects_load() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    call = {"name": "weather", "args": {"place": "Oslo"}, "id": "c1"}
    said = [
        messages.SystemMessage("Be brief."),
        messages.HumanMessage("How is Oslo?"),
        messages.AIMessage("Let me look.", tool_calls=[call]),
        messages.ToolMessage("Sun", tool_call_id="c1"),
        messages.AIMessage("It is sunny."),
    ]
    trace = bk.load_trace(said)
    assert (told(trace).said, told(trace).calls) == (WHOLE, [OSLO])


# What was counted wrong in silence in 0.2.0


def test_the_instructions_of_a_span_are_counted() -> None:
    """gen_ai.system_instructions is a list of parts whose text stands under content: 4 tokens instead of 1,201."""
    attributes = {
        "gen_ai.system_instructions": [{"type": "text", "content": "word " * 1_200}],
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
    }
    (trace,) = load({"spanId": "a", "attributes": attributes})
    assert trace.messages[0].role == "system" and trace.messages[0].text.count("word") == 1_200
    # As OTLP writes them.
    as_text = [
        {"key": key, "value": {"stringValue": json.dumps(written)}}
        for key, written in attributes.items()
    ]
    (again,) = load({"spanId": "a", "attributes": as_text})
    assert again.messages[0].text == trace.messages[0].text


def test_what_chatgpt_keeps_of_its_user_is_counted() -> None:
    """model_editable_context holds ChatGPT's memory, which goes to the model with every request."""
    memory = {"content_type": "model_editable_context", "model_set_context": "1. Likes tea."}
    first = {"author": {"role": "assistant"}, "content": {**memory, "repository": None}}
    second = {"author": {"role": "user"}, "content": {"parts": ["Hi"]}}
    a = {"id": "a", "parent": None, "message": first}
    b = {"id": "b", "parent": "a", "message": second}
    (trace,) = load({"title": "x", "mapping": {"a": a, "b": b}, "current_node": "b"})
    assert told(trace).said == [("assistant", "1. Likes tea."), ("user", "Hi")]
    assert trace.uncounted == ()


@pytest.mark.parametrize("name", ["copilot", "github copilot", "Copilot", "GitHub Copilot"])
def test_what_copilot_answers_is_the_assistants(name: str) -> None:
    """The answers counted as the user's own text, or as a section of their own."""
    written = file(f"User: How is Oslo?\n\n{name}: It is sunny.\n".encode(), "chat.txt")
    assert told(bk.load_trace(written)).said == SPOKEN
    (trace,) = load([user("How is Oslo?"), {"role": name, "content": "It is sunny."}])
    assert told(trace).said == SPOKEN


def test_each_part_of_pydantic_ais_messages_has_the_role_it_was_sent_with() -> None:
    picture = {"kind": "image-url", "url": "https://x/y.png"}
    sound = {"kind": "audio-url", "url": "a"}
    parts = [
        {"part_kind": "system-prompt", "content": "Be brief."},
        {"part_kind": "user-prompt", "content": ["Look.", picture, sound]},
        {"part_kind": "retry-prompt", "content": "No text, please."},
    ]
    request = {"kind": "request", "parts": parts}
    (trace,) = load([request])
    assert told(trace).said == [SYSTEM, ("user", "Look."), ("user", "No text, please.")]
    assert len(trace.messages[1].images) == 1 and trace.uncounted == ("audio-url",)


def test_instructions_that_change_are_named() -> None:
    parts = [{"part_kind": "user-prompt", "content": "Hi"}]
    first = {"kind": "request", "instructions": "Be brief.", "parts": parts}
    (trace,) = load([first, {**first, "instructions": "Be long."}])
    assert [message.role for message in trace.messages] == ["system", "user", "user"]
    assert trace.warnings[0] == "Not counted: 1 later version of the instructions."


def test_a_trace_that_holds_no_more_than_ids_says_so() -> None:
    data = {"type": "response", "response_id": "resp_1"}
    span = {"object": "trace.span", "trace_id": "t", "span_data": data}
    only_ids = (
        "The trace has only the ids of its answers .1.* run's input list, or pass its session."
    )
    with pytest.raises(ValueError, match=f"line 1: {only_ids}"):
        load({"object": "trace", "id": "t"}, span)


def test_calls_of_which_a_chat_holds_only_what_was_shown_are_named() -> None:
    call = {"kind": "toolInvocationSerialized", "toolId": "weather", "toolCallId": "c1"}
    (trace,) = load(
        {"requests": [{"requestId": "r", "message": {"text": "Hi"}, "response": [call]}]}
    )
    assert trace.warnings[0] == "Read as displayed: 1 tool call whose full text is not in the file."
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool"]


# What holds no conversation is called by its name

OTHER_KINDS: dict[str, tuple[bytes, str]] = {
    "a.pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF. Export the chat as JSON, Markdown or text."),
    "a.png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a picture. Pass the text of the chat, not a picture of it."),
    "a.jpg": (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "a picture. Pass the text of the chat"),
    "a.webp": (b"RIFF\x24\0\0\0WEBPVP8 ", "a picture. Pass the text of the chat, not a picture of it."),
    "a.wav": (b"RIFF\x24\0\0\0WAVEfmt ", "an audio file. Pass a transcript as text."),
    "a.mp4": (b"\0\0\0\x20ftypisom\0", "a video. Pass a transcript as text."),
    "a.db": (b"SQLite format 3\0" + bytes(50), "a database. Export the chat as JSON from the"),
    "a.html": (
        b"\n<!DOCTYPE html>\n<html><body>Hi</body></html>",
        "a web page. Export the chat as JSON. In a ChatGPT export, pass",
    ),
    "a.bin": (b"\1\2\3\0\1\7", "a binary file of an unknown kind. Export the chat as JSON,"),
    "notes.md": (
        b"# Notes\n\n- Nobody speaks.\n",
        "Markdown without speakers. Begin each message with User: or",
    ),
    "notes.txt": (b"Nobody speaks.\n", "text without speakers. Begin each message with User: or"),
    "links.md": (
        b"[A page](https://example.org) of links.\n",
        "Markdown without speakers. Begin each message with User: or",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_a_file_of_another_kind_is_called_by_its_name(name: str) -> None:
    """In 0.2.0 all of these were broken JSON, a line of which was to be mended."""
    written, sentence = OTHER_KINDS[name]
    with pytest.raises(ValueError) as error:
        bk.load_traces(file(written, name))
    assert str(error.value).startswith(f"{name} is {sentence}")
    assert "broken JSON" not in str(error.value) and "Correct the line" not in str(error.value)


@pytest.mark.parametrize(
    ("member", "kind"),
    [
        ("word/document.xml", "a Word document"),
        ("ppt/presentation.xml", "slides"),
        ("mimetype", "a LibreOffice document"),
    ],
)
def test_an_archive_that_is_a_document_is_called_by_its_name(member: str, kind: str) -> None:
    archive = zipped({member: b"<x/>", "notes.txt": b"User: Hi"})
    with pytest.raises(ValueError, match=f"a.docx is {kind}"):
        bk.load_traces(file(archive.getvalue(), "a.docx"))


def test_broken_json_is_still_told_by_its_line() -> None:
    refusal = r"a.json, line 1: broken JSON: Expecting .* 47. Correct the line"
    with pytest.raises(ValueError, match=refusal):
        bk.load_traces(file(b'{"messages": [{"role": "user", "content": "x"}', "a.json"))


def test_text_that_no_encoding_of_text_explains_is_refused() -> None:
    refusal = "byte 0x81 is neither .* Windows-1252. Save the file as UTF-8."
    with pytest.raises(ValueError, match=f"chat.txt, line 1: {refusal}"):
        bk.load_traces(file(b"User: \x81\nAssistant: \x8d\n", "chat.txt"))


def test_a_session_whose_last_line_is_still_being_written_is_read() -> None:
    written = (FOLDER / "copilot-cli.jsonl").read_bytes() + b'{"type": "assistant.mess'
    (trace,) = bk.load_traces(file(written, "events.jsonl"))
    assert told(trace).said == WHOLE[1:]
    assert "Left out 1 line of invalid JSON: line 9." in trace.warnings


SAID = {"messages": [user("Hi")]}


@pytest.mark.parametrize("value", [[], {}, {"a": 1}, 5, None, [[1]]], ids=repr)
@pytest.mark.parametrize("field", ["format", "warnings"])
def test_our_field_of_another_type_is_read_over(field: str, value: Any) -> None:
    """In 0.2.0 such a file ended in Python's own words."""
    (trace,) = load({**SAID, field: value})
    assert [message.text for message in trace.messages] == ["Hi"]
    assert trace.warnings == ()


def test_a_container_in_a_container_is_opened_to_a_bound() -> None:
    """Gzip in gzip was an error of zlib's; too deep is refused in one sentence."""
    packed = gzip.compress(gzip.compress(json.dumps(SAID).encode()))
    (trace,) = bk.load_traces(file(packed, "chat.json.gz"))
    assert trace.messages[0].text == "Hi"
    refusal = "chat.json contains archives nested more than 3 deep. Unpack it first."
    with pytest.raises(ValueError, match=refusal):
        bk.load_traces(file(gzip.compress(gzip.compress(packed)), "chat.json.gz"))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(MemoryError(), "does not fit in memory"), (OSError(), "readable table .OSError.. Save it")],
    ids=["memory", "disk"],
)
def test_a_table_that_cannot_be_read_says_so(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence had a hole where the library's own should have stood: "; ; save it again"."""

    def broken(*_: object, **__: object) -> Iterator[Any]:
        yield user("Hi")
        raise error

    monkeypatch.setattr(tables, "_excel", broken)
    with pytest.raises(ValueError, match=sentence):
        list(tables.TableReader("chat.xlsx").binary(b"", "excel", Outflow("chat.xlsx", 1)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_a_pipe_with_a_name_is_refused_as_what_it_is(tmp_path: Path) -> None:
    """In 0.2.0 it was "not there"; to open it would wait for ever."""
    pipe = tmp_path / "chat.jsonl"
    os.mkfifo(pipe)
    refusal = "Not a file: .*/chat.jsonl. Pass a file or a folder of files."
    with pytest.raises(OSError, match=refusal):
        bk.load_traces(pipe)
    unknown = "Unknown budget '.*/chat.jsonl'. Choose .* or pass the path of a file."
    with pytest.raises(ValueError, match=unknown):
        settings_at(str(pipe))
