"""Conversations: how a file becomes turns, what each turn asks of every section, and what bad files are told."""

import itertools
import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.counters import counter
from budgetkit.message import Message, Passage
from budgetkit.plan.items import Item
from budgetkit.requests import DEFAULT_FRAMING, FRAMINGS, Framing
from budgetkit.trace import Trace, iter_traces, load_trace, load_traces, shipped_traces
from tests.messages import assistant, tool_call, tool_result, user

PLAIN = Framing()


def words(text: str) -> int:
    """Count so that anybody can check it: one token a word."""
    return len(text.split())


def spoken(*messages: tuple[str, str] | Mapping[str, Any], **rest: Any) -> Trace:
    """Make a trace from (role, text) pairs and whole messages."""
    raw = (
        {"role": one[0], "content": one[1]} if isinstance(one, tuple) else one for one in messages
    )
    return Trace("toy", tuple(map(Message, raw)), **rest)


def asked(trace: Trace, turn: int, *sections: str, framing: Framing = PLAIN) -> list[int]:
    """Return what one turn asks of some sections, one token a word."""
    demand = trace.demand(words, framing=framing)
    return [int(demand[section][turn]) for section in sections]


def calling(*ids: str) -> dict[str, Any]:
    calls = [tool_call(id, "look", "here") for id in ids]
    return assistant(None, tool_calls=calls)


BRIEF, USER = ("system", "Be brief."), ("user", "a")
AGENT = spoken(
    ("system", "Be brief."),  # 2 tokens
    ("user", "Where is my cat?"),  # 4
    calling("a", "b"),  # 4
    tool_result("a", "Under the bed."),  # 3
    tool_result("b", "Not in the garden."),  # 4
    ("assistant", "Under the bed."),  # 3
    ("user", "Thank you!"),  # 2
    ("assistant", "You are welcome."),  # 3
)


# Turns and requests


def test_a_turn_is_a_user_message_and_all_that_follows_it() -> None:
    assert [(turn.number, turn.start, turn.end) for turn in AGENT.turns] == [(1, 1, 6), (2, 6, 8)]


def test_the_request_of_a_turn_is_its_last_and_lacks_the_answer_that_it_is_made_for() -> None:
    assert [message.role for message in AGENT.request(1)] == [
        *("system", "user", "assistant", "tool", "tool")
    ]
    assert AGENT.request(2) == AGENT.messages[:7]


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        ([USER], ["user"]),
        ([USER, ("assistant", "b")], ["user"]),
        ([USER, ("assistant", "b"), ("assistant", "c")], ["user", "assistant"]),
        ([USER, ("assistant", "b"), ("system", "c")], ["user"]),
        ([USER, calling("x"), tool_result("x", "b")], ["user", "assistant", "tool"]),
        ([USER, calling("x")], ["user"]),
    ],
    ids=[
        *("unanswered", "answered", "two answers", "a remark after the answer"),
        *("answer still to come", "call cut short"),
    ],
)
def test_what_the_last_request_of_a_turn_holds(messages: list[Any], roles: list[str]) -> None:
    assert [message.role for message in spoken(*messages).request(1)] == roles


def test_a_greeting_before_the_first_user_message_is_history() -> None:
    trace = spoken(BRIEF, ("assistant", "Good morning to you."), ("user", "Hello"))
    assert asked(trace, 1, "system", "history", "current") == [2, 4, 1]


def test_a_conversation_in_which_no_user_speaks_is_one_turn() -> None:
    trace = spoken(BRIEF, calling("x"), tool_result("x", "It is noon."), ("assistant", "Noon."))
    assert len(trace.turns) == 1
    assert asked(trace, 1, "system", "history", "current") == [2, 0, 5]
    assert len(spoken(BRIEF).items(1, words)) == 1


def test_a_turn_that_is_not_there_is_an_error_that_says_which_are() -> None:
    for missing in (0, 3, -1):
        with pytest.raises(ValueError, match=rf"No turn {missing} in trace .* Choose 1 to 2"):
            AGENT.items(missing, words)


# Demand and items


def test_demand_is_what_each_request_asks_of_each_section() -> None:
    demand = AGENT.demand(words, framing=PLAIN)
    assert demand.index.tolist() == [1, 2] and demand.index.name == "turn"
    assert set(map(str, demand.dtypes)) == {"int64"}
    assert demand.to_dict("list") == {
        "system": [2, 2],
        "procedure": [0, 0],
        "knowledge": [0, 0],
        "episodes": [0, 0],
        "history": [0, 4 + 4 + 3 + 4 + 3],
        "current": [4 + 4 + 3 + 4, 2],
    }
    assert [*demand] == ["system", "procedure", "knowledge", "episodes", "history", "current"]


def test_items_are_the_messages_of_the_request_each_in_its_section() -> None:
    items = AGENT.items(2, words, framing=PLAIN)
    assert [item.section for item in items] == ["system", *["history"] * 5, "current"]
    assert [item.tokens for item in items] == [2, 4, 4, 3, 4, 3, 2]
    assert [item.payload for item in items] == list(AGENT.messages[:7])


def test_a_call_and_its_results_share_a_group_and_nothing_else_does() -> None:
    groups = [item.group for item in AGENT.items(2, words)]
    assert groups[2] is not None
    assert groups == [None, None, groups[2], groups[2], groups[2], None, None]


def test_two_calls_are_two_groups_even_where_their_ids_are_used_again() -> None:
    look = (calling("x"), tool_result("x", "b"))
    trace = spoken(USER, *look, ("user", "c"), *look, ("user", "e"))
    groups = [item.group for item in trace.items(3, words)]
    assert groups[1] == groups[2] and groups[4] == groups[5] and groups[2] != groups[4]


def test_the_older_function_call_and_its_result_share_a_group() -> None:
    call = assistant(None, function_call={"name": "look", "arguments": "{}"})
    answer = {"role": "function", "name": "look", "content": "b"}
    groups = [item.group for item in spoken(USER, call, answer, ("user", "c")).items(2, words)]
    assert groups[1] == groups[2] is not None


PRESET = {"system": "rules", "tools": "kit", "context": "found", "user": "said"}
PRESET |= {"assistant": "said", "tool": "results", "current": "asked", "step": "doing"}


def test_a_role_table_says_where_everything_goes() -> None:
    trace = spoken(
        {"role": "developer", "content": "Short."},
        ("user", "Hi there"),
        calling("x"),
        tool_result("x", "one two"),
        ("assistant", "one two three"),
        ("user", "Go on please"),
        calling("y"),
        tool_result("y", "four"),
        tools=({"name": "look"},),
        contexts={5: (Passage.of("a passage found"),)},
    )
    demand = trace.demand(words, PRESET, PLAIN)
    rows = demand[["rules", "kit", "found", "said", "results", "asked", "doing"]].values.tolist()
    assert rows == [[1, 2, 0, 0, 0, 2, 4], [1, 2, 3, 7, 2, 3, 3]]
    assert len(demand.columns) == 7


def test_without_current_and_step_a_turn_goes_by_its_roles() -> None:
    table = {"system": "rules", "user": "user", "assistant": "talk", "tool": "tool"}
    demand = AGENT.demand(words, table, PLAIN).loc[1].to_dict()
    assert demand == {"rules": 2, "user": 4, "talk": 4, "tool": 7}


def test_a_role_that_no_table_knows_is_a_section_of_its_own_name() -> None:
    episode = ("episode", "Last time it rained.")
    trace = spoken(("procedure", "Ask first."), episode, ("critic", "Hm."), ("user", "Hi"))
    assert asked(trace, 1, "procedure", "episodes", "critic", "current") == [2, 4, 1, 1]


def test_a_function_can_stand_in_for_the_role_table() -> None:
    def by_length(message: Message) -> str:
        return "long" if words(message.text) > 3 else "short"

    demand = AGENT.demand(words, by_length, PLAIN)
    assert demand.loc[2].to_dict() == {"short": 2 + 4 + 3 + 3 + 2, "long": 4 + 4}


def test_passages_count_in_the_turn_that_retrieved_them_and_best_come_with_the_best_score() -> None:
    passages = tuple(map(Passage.of, ["one", "one two", "one two three"]))
    trace = spoken(USER, ("assistant", "b"), ("user", "c"), contexts={0: passages})
    assert trace.demand(words, framing=PLAIN)["knowledge"].tolist() == [6, 0]
    found = [item for item in trace.items(1, words) if item.section == "knowledge"]
    assert [item.payload.text for item in found] == ["one", "one two", "one two three"]
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert found[0].payload.role == "context"


def test_a_score_that_the_retriever_gave_is_kept() -> None:
    message = Message(
        user("a", contexts=[{"text": "x", "score": 0.2}, {"text": "y", "score": 0.9}])
    )
    items = Trace("toy", (message,), contexts={0: message.contexts}).items(1, words)
    assert [item.score for item in items if item.section == "knowledge"] == [0.2, 0.9]


def test_tool_schemas_are_one_item_in_every_turn() -> None:
    trace = spoken(BRIEF, USER, ("assistant", "b"), ("user", "c"), tools=({"name": "look"},))
    items = trace.items(2, words)
    assert [item.payload.role for item in items] == ["system", "tools", "user", "assistant", "user"]
    assert items[1].payload.raw["tools"] == [{"name": "look"}]
    assert items[1].tokens == DEFAULT_FRAMING.schemas([{"name": "look"}], words)
    assert trace.demand(words)["system"].nunique() == 1


@pytest.mark.parametrize("framing", ["openai", "openai-reasoning", "memory-engine", "text"])
def test_what_a_turn_asks_for_is_its_request_to_the_token(framing: str) -> None:
    """Messages, tool schemas and the priming that begins the answer: nothing of a request is left out."""
    trace, count, framed = load_trace("coding-agent"), counter("gpt-4o"), FRAMINGS[framing]
    demand = trace.demand(count, PRESET, framed)
    for turn in (1, 9, 27):
        request = framed.request(trace.request(turn), count, trace.tools)
        assert sum(item.tokens for item in trace.items(turn, count, PRESET, framed)) == request
        assert demand.loc[turn].sum() == request


def test_the_priming_goes_with_the_message_that_opens_the_turn() -> None:
    framing = Framing(priming=3)
    trace = spoken(BRIEF, USER, ("assistant", "b"), ("user", "c d"))
    items = [(item.section, item.tokens) for item in trace.items(2, words, framing=framing)]
    assert items == [("system", 2), ("history", 1), ("history", 1), ("current", 2 + 3)]
    assert asked(trace, 2, "system", "history", "current", framing=framing) == [2, 2, 5]


def test_where_nobody_has_spoken_the_priming_goes_with_the_last_message() -> None:
    framing = Framing(priming=3)
    trace = spoken(BRIEF, ("system", "Be kind."))
    assert [item.tokens for item in trace.items(1, words, framing=framing)] == [2, 2 + 3]
    assert trace.demand(words, framing=framing)["system"].tolist() == [7]


def test_everything_is_counted_once_however_often_one_asks() -> None:
    seen: list[str] = []

    def counting(text: str) -> int:
        seen.append(text)
        return words(text)

    first = AGENT.demand(counting)
    counts = AGENT.counts(counting)
    before = len(seen)
    assert before > 0
    AGENT.items(1, counting), AGENT.items(2, counting, PRESET), AGENT.demand(counting, PRESET)
    assert AGENT.counts(counting) is counts
    assert AGENT.demand(counting).equals(first)
    assert len(seen) == before
    AGENT.counts(counting, FRAMINGS["octopus"])
    assert len(seen) > before


def test_counts_are_one_number_a_message_and_cannot_be_written_to() -> None:
    counts = AGENT.counts(words, PLAIN)
    assert counts.tolist() == [2, 4, 4, 3, 4, 3, 2, 3] and counts.dtype == np.int64
    with pytest.raises(ValueError):
        counts[0] = 1


def test_a_trace_needs_a_message() -> None:
    with pytest.raises(
        ValueError, match=r"No messages in trace 'toy'. Pass at least one with a role."
    ):
        Trace("toy", ())


# Files


HELLO = user("Hello world")
ANSWER = assistant("Hello.")


def written(path: Path, *lines: Any) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


SHAPES: dict[str, list[Any]] = {
    "a conversation a line": [{"messages": [HELLO, ANSWER]}],
    "a bare list a line": [[HELLO, ANSWER]],
    "a message a line": [HELLO, ANSWER],
    "a list of conversations on one line": [[{"messages": [HELLO, ANSWER]}]],
    "one document over many lines": [json.dumps({"messages": [HELLO, ANSWER]}, indent=2)],
    "a bare list over many lines": [json.dumps([HELLO, ANSWER], indent=2)],
    "blank lines and padding between": ["", " " * 5_000, HELLO, "", ANSWER, "\t"],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_file_gives_the_same_messages(shape: str, tmp_path: Path) -> None:
    (trace,) = load_traces(written(tmp_path / "chat.jsonl", *SHAPES[shape]))
    assert [message.raw for message in trace.messages] == [HELLO, ANSWER]
    assert trace.id == "chat"


def test_an_uploaded_file_needs_no_path() -> None:
    upload = BytesIO(json.dumps({"messages": [HELLO]}).encode())
    upload.name = "from-the-browser.jsonl"
    trace = load_trace(upload)
    assert (trace.id, trace.source) == ("from-the-browser", "from-the-browser.jsonl, line 1")


def test_one_of_many_conversations_by_its_place_or_its_id(tmp_path: Path) -> None:
    first, third = {"id": "first", "messages": [HELLO]}, {"id": 7, "messages": [ANSWER]}
    path = written(tmp_path / "chats.jsonl", first, [ANSWER], third)
    assert [trace.id for trace in load_traces(path)] == ["first", "chats-2", "7"]
    assert load_trace(path, 1).id == load_trace(path, "chats-2").id == "chats-2"
    assert load_trace(path, "7").source == "chats.jsonl, line 3"
    choice = "Choose an index from 0 to 2, or an id: 'first', 'chats-2', '7'."
    with pytest.raises(ValueError, match=f"No conversation 3 in chats.jsonl. {choice}"):
        load_trace(path, 3)
    with pytest.raises(ValueError, match=r"Choose 0 .the only one. or its id: 'alone'\."):
        load_trace(written(tmp_path / "one.jsonl", {"id": "alone", "messages": [HELLO]}), 1)


def test_conversations_can_be_read_one_at_a_time(tmp_path: Path) -> None:
    path = written(tmp_path / "chats.jsonl", [HELLO], "{broken")
    traces = iter_traces(path)
    assert next(traces).messages[0].text == "Hello world"
    with pytest.raises(ValueError, match="line 2"):
        next(traces)


def test_unknown_fields_are_kept(tmp_path: Path) -> None:
    message = {**HELLO, "reasoning_content": "Hm.", "weather": {"deep": [1, None]}}
    fields = {"usage": [{"input_tokens": 9}], "language": "en"}
    conversation = {"id": "x", "messages": [message], "meta": {"a": 1}, **fields}
    trace = load_trace(written(tmp_path / "chat.jsonl", conversation))
    assert trace.messages[0].raw == message
    assert dict(trace.fields) == fields
    assert dict(trace.meta) == {"a": 1}


@pytest.mark.parametrize(("meta", "index"), [({}, 2), ({"contexts_apply_to_message": 0}, 0)])
def test_a_conversations_passages_belong_to_the_message_it_names_or_the_last_of_the_user(
    meta: dict[str, int], index: int, tmp_path: Path
) -> None:
    messages = [HELLO, ANSWER, HELLO, ANSWER]
    conversation = {"messages": messages, "contexts": [{"text": "found"}], "meta": meta}
    trace = load_trace(written(tmp_path / "chat.jsonl", conversation))
    assert {
        place: [passage.text for passage in found] for place, found in trace.contexts.items()
    } == {index: ["found"]}


def test_passages_may_stand_on_the_message_they_were_retrieved_for(tmp_path: Path) -> None:
    passages = ["plain text", {"title": "Refunds", "page_content": "In five days."}]
    chat = written(tmp_path / "chat.jsonl", [{**HELLO, "contexts": passages}, ANSWER])
    texts = [passage.text for passage in load_trace(chat).contexts[0]]
    assert texts == ["plain text", "Refunds\nIn five days."]


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "chats.jsonl", *[[user("x" * 700_000)]] * 5)
    told: list[tuple[int, int]] = []
    load_traces(path, progress=lambda read, total: told.append((read, total)))
    size = path.stat().st_size
    assert told[-1] == (size, size) and len(told) == 3
    assert [read for read, _ in told] == sorted(read for read, _ in told)


def test_a_megabyte_of_blank_lines_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b"\n" * 1_000_000 + json.dumps(HELLO).encode())
    assert load_trace(path).source == "chat.jsonl, line 1000001"


# Bad files: what was asked, what is known, what to do

WHO = "Message without a role: "
ONE_OF = "Choose one of: system, developer"
MEND = "Correct the line or leave it out."
EACH = "or more messages, each with a role."
PASSAGE = "Context passage without text: it has 'id'. Put its text under 'text'"
LATE = '{"messages": [{"role": "user"}], "contexts": ["x"], "meta": {"contexts_apply_to_message": 5}}\n'
ORPHAN = (
    '{"messages": [{"role": "user"}, {"role": "tool", "tool_call_id": "c9", "content": "x"}]}\n'
)
#: A file, and its refusal, which begins with the file's name.
BAD: dict[str, tuple[str | bytes, str]] = {
    "empty file": ("", ": no messages. Pass at least one message with a role."),
    "blank file": (" \n\n\t\n", ": no messages. Pass at least one message with a role."),
    "broken line": ('[{"role": "user", "content": "a"}]\n[{"role": "user"\n',
                    f", line 2: broken JSON: Expecting .* 17. {MEND}"),
    # Python 3.13 names the comma before the brace.
    "broken first line": ('{"role": "user",}\n{"role": "user"}\n',
                          f", line 1: broken JSON: (Expecting .* 17|Illegal trailing comma .* 16). {MEND}"),
    "broken document": ('{\n  "messages": [\n    {"role": "user", "content": }\n  ]\n}\n',
                        f", line 3: broken JSON: Expecting .* 33. {MEND}"),
    "not UTF-8": (b'{"role": "user", "content": "a"}\n{"role": "user", "content": "caf\xe9"}\n',
                  ", line 2: byte 0xe9 is not UTF-8. Save the file as UTF-8."),
    "no messages": ('{"messages": []}\n', f", line 1: Invalid messages: an empty list. .* {EACH}"),
    "messages of text": ('{"messages": "Hello"}\n', f", line 1: Invalid messages: a value of type str. .* {EACH}"),
    "message without role": ('{"messages": [{"role": "user"}, {"content": "Hello", "name": "bob"}]}\n',
                             f", line 1, message 2: {WHO}it has 'content', 'name'. {ONE_OF}"),
    "line without role": ('{"role": "user"}\n{"content": "Hello"}\n', f", line 2: {WHO}it has 'content'. {ONE_OF}"),
    "role of null": ('[{"role": null}, {"role": "user"}]\n', f", line 1, message 1: {WHO}its role is null. {ONE_OF}"),
    "message of text": ('[{"role": "user"}, "Hello"]\n', f", line 1, message 2: {WHO}it is of type str. {ONE_OF}"),
    "role of a number": ('[{"role": 3}, {"role": "user"}]\n',
                         ", line 1, message 1: Invalid role of a message: a value of type int. Expected one of system"),
    "empty role": ('[{"role": ""}, {"role": "user"}]\n',
                   ", line 1, message 1: Invalid role of a message: ''. Expected one of system"),
    "role of half a character": (
        '[{"role": "user\\ud800"}, {"role": "user"}]\n',
        ", line 1, message 1: Invalid role of a message: 'user.*' contains half of a surrogate pair. Remove"),
    "role twice": ('{"role": "user"}\n{"role": "user", "content": "x", "role": "assistant"}\n',
                   ", line 2: not readable as JSON: .* object. Correct it or leave it out."),
    "parts of nothing": (
        '[{"role": "user", "content": [5, null]}]\n',
        ", line 1, message 1: Invalid part of a user message: a value of type int. Expected a string, or an object"
        " with a type"),
    "part of null": (
        '[{"role": "user", "content": ["Hello", null]}]\n',
        ", line 1, message 1: Invalid part of a user message: a value of type NoneType. Expected a string, or an object"
        " with a type"),
    "content of a number": ('[{"role": "user", "content": 7}]\n',
                            ", line 1, message 1: Invalid content of a user message: .* Expected a string, a list"),
    "tool calls of text": (
        '[{"role": "assistant", "tool_calls": ["look"]}]\n',
        ", line 1, message 1: Invalid tool_calls of an assistant message: a value of type list. Expected a list of"
        " objects"),
    "tool result without a call": ('[{"role": "tool", "content": "x"}]\n',
                                   ", line 1, message 1: tool result without a call id. Put the"),
    "orphan tool result": (
        ORPHAN, ", line 1, message 2: tool result for call 'c9', which no earlier message makes. Put the"),
    "something else": ('{"prompt": "Hello"}\n',
                       ", line 1: no conversation in the fields 'prompt'. Pass an object with 'messages'"),
    "a number": ("42\n", ", line 1: no conversation in a value of type int. Pass"),
    "tools of text": ('{"messages": [{"role": "user"}], "tools": "look"}\n',
                      ", line 1: Invalid tools: .* Expected a list of schemas"),
    "passage without text": ('[{"role": "user", "contexts": [{"id": 3}]}]\n', f", line 1, message 1: {PASSAGE}"),
    "passages beyond the end": (
        LATE, ", line 1: Invalid meta.contexts_apply_to_message. Use the index of a message, from 0 to 0."),
    "nested too deeply": ("[" * 100_000 + "]" * 100_000,
                          ", line 1: nested too deeply. .* conversations need about ten levels."),
    "endless number": ("[" + "1" * 10_000 + "]\n",
                       ", line 1: not readable as JSON: .* the limit. Correct it or leave it out."),
}  # fmt: skip


def test_what_a_tools_answer_says_twice_is_its_own_business(tmp_path: Path) -> None:
    """The last counts, as everywhere in JSON."""
    path = tmp_path / "twice.jsonl"
    twice = '{"header": 1, "header": 2}'
    path.write_text(f'[{{"role": "user", "content": "x", "metadata": {twice}}}]\n')
    assert load_traces(path)[0].messages[0].raw["metadata"] == {"header": 2}


@pytest.mark.parametrize(("data", "sentence"), BAD.values(), ids=BAD)
def test_a_bad_file_is_told_by_its_problem_and_a_fix(
    data: str | bytes, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(ValueError, match=f"bad.jsonl{sentence}") as error:
        load_traces(path)
    told = str(error.value)
    assert ". " in told or told.count("; ") >= 2
    assert "\n" not in told
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_a_fix_is_searched_only_for_the_value_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40,000 empty objects, 117 kB, took 12 seconds: each was compared with every format."""
    searched: list[object] = []
    monkeypatch.setattr("budgetkit.trace.loading.nearest_format", searched.append)
    path = tmp_path / "records.json"
    path.write_text("[" + ",".join(["{}"] * 500) + "]")
    with pytest.raises(ValueError, match="no conversation in an empty object. Pass"):
        bk.load_traces(path)
    assert searched and all(value == {} for value in searched) and len(searched) < 5


def test_an_unknown_name_lists_the_traces_that_are_shipped() -> None:
    refusal = "Unknown trace 'suport-chat'. Did you mean .* or pass the path of a file."
    with pytest.raises(ValueError, match=refusal):
        load_trace("suport-chat")


def test_a_file_that_is_not_there_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    shipped = "File not found: .*/gone.jsonl. Check the .* mixed-language, support-chat."
    with pytest.raises(FileNotFoundError, match=shipped):
        load_trace(tmp_path / "gone.jsonl")
    with pytest.raises(FileNotFoundError, match="Not a file: .* Pass a file or a folder of files."):
        load_trace(tmp_path)


# Shipped conversations


@pytest.mark.parametrize(
    ("name", "turns", "least_tokens"),
    [("support-chat", 60, 8_192), ("coding-agent", 25, 30_000), ("mixed-language", 30, 6_000)],
)
def test_shipped_conversations_are_long_enough(name: str, turns: int, least_tokens: int) -> None:
    trace = load_trace(name)
    assert len(trace.turns) >= turns
    assert trace.demand(counter("gpt-4o")).iloc[-1].sum() > least_tokens


def test_the_support_chat_fills_a_window_of_8192_in_its_second_third() -> None:
    trace = load_trace("support-chat")
    fits = trace.demand(counter("gpt-4o")).sum(axis=1) + 1_024 <= 8_192
    assert len(trace.turns) / 3 < fits.sum() < 2 * len(trace.turns) / 3
    assert fits.is_monotonic_decreasing
    assert all(len(trace.contexts[turn.start]) == 6 for turn in trace.turns)


def test_the_shipped_conversations_differ_in_what_they_exercise() -> None:
    agent, mixed = load_trace("coding-agent"), load_trace("mixed-language")
    assert len(agent.tools) == 6
    calls = sum(len(message.tool_calls) for message in agent.messages)
    assert calls == sum(message.role == "tool" for message in agent.messages) > 100
    speakers = {message.name for message in mixed.messages if message.role == "user"}
    assert speakers >= {"lena", "wei", "amira", "rohan", "oleg"}
    text = "".join(message.text for message in mixed.messages)
    for script in ("ß", "é", "ñ", "你", "は", "요", "م", "क", "ж", "🎻", "```"):
        assert script in text


def test_no_sentence_of_a_shipped_conversation_is_said_twice_by_the_assistant() -> None:
    """The written ones; those that a seed made of ready sentences say so in their name."""
    for name in set(shipped_traces()) - {"made-up-chats", "made-up-session"}:
        answers = [m.text for m in load_trace(name).messages if m.role == "assistant"]
        said = [line for answer in answers for line in answer.splitlines()]
        long = [line for line in said if len(line) > 60]
        assert len(long) == len(set(long)) > 20


# Properties

texts = st.text("ab \n", max_size=12)


@st.composite
def conversations(draw: st.DrawFn) -> Trace:
    """Any conversation, tool calls answered, with and without passages and schemas."""
    messages: list[dict[str, Any]] = []
    for step in range(draw(st.integers(1, 12))):
        role = draw(st.sampled_from(["system", "user", "assistant", "developer", "critic", "call"]))
        if role == "call":
            messages.append(calling(f"{step}"))
            messages += [tool_result(f"{step}", draw(texts))] if draw(st.booleans()) else []
        else:
            passages = draw(st.lists(texts, max_size=2)) if role == "user" else []
            messages.append({"role": role, "content": draw(texts), "contexts": passages})
    read = tuple(map(Message, messages))
    tools = ({"name": "look"},) if draw(st.booleans()) else ()
    contexts = {index: message.contexts for index, message in enumerate(read) if message.contexts}
    return Trace("any", read, tools=tools, contexts=contexts)


@given(
    conversations(),
    st.sampled_from([None, PRESET, {"user": "u"}, lambda message: message.role[:1]]),
)
def test_demand_is_the_sum_of_the_items_at_every_turn(trace: Trace, roles: Any) -> None:
    demand = trace.demand(words, roles)
    for turn in trace.turns:
        sums = dict.fromkeys(demand.columns, 0)
        for item in trace.items(turn.number, words, roles):
            sums[item.section] += item.tokens
        assert demand.loc[turn.number].to_dict() == sums


@given(conversations())
def test_nothing_is_lost_and_nothing_comes_twice(trace: Trace) -> None:
    for turn in trace.turns:
        items = trace.items(turn.number, words)
        said = [item.payload for item in items if item.payload.role not in ("context", "tools")]
        assert said == list(trace.request(turn.number))
        assert sum(item.payload.role == "tools" for item in items) == len(trace.tools)
        beyond = [item.tokens - _recounted(item, trace) for item in items]
        assert sum(beyond) == (DEFAULT_FRAMING.priming if said else 0)


def _recounted(item: Item, trace: Trace) -> int:
    if item.payload.role == "tools":
        return DEFAULT_FRAMING.schemas(trace.tools, words, trace.messages)
    return DEFAULT_FRAMING.message(item.payload, words)


@given(conversations())
def test_turns_lie_end_to_end_and_history_only_grows(trace: Trace) -> None:
    turns = trace.turns
    assert all(before.end == after.start for before, after in itertools.pairwise(turns))
    assert turns[-1].end == len(trace.messages)
    assert all(turn.start <= turn.sent <= turn.end for turn in turns)
    assert trace.demand(words)["history"].is_monotonic_increasing


@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@given(conversations())
def test_a_file_holds_what_was_written_to_it(trace: Trace) -> None:
    lines = "\n".join(json.dumps(dict(message.raw)) for message in trace.messages)
    assert load_trace(BytesIO(lines.encode())).messages == trace.messages


def test_a_table_read_as_one_says_which_columns_name_several(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    rows = [f"{n // 2},{n},{'user' if n % 2 == 0 else 'assistant'},Hello {n}" for n in range(6)]
    path.write_text("\n".join(["fall,line,role,content", *rows]), encoding="utf-8")
    (trace,) = load_traces(path)
    assert trace.warnings == (
        "All 6 rows became one conversation, since no column names it. Rows share values in 'fall'; "
        "to split them, pass columns={\"conversation\": 'fall'} or rename the column.",
    )
    assert "All 6 rows" in trace._repr_html_()
    traces = load_traces(path, columns={"conversation": "fall"})
    assert [trace.warnings for trace in traces] == [(), (), ()]
    without = [row.partition(",")[2] for row in rows]
    path.write_text("\n".join(["line,role,content", *without]), encoding="utf-8")
    assert load_trace(path).warnings == ()


@pytest.mark.parametrize("nothing", [{}, {"content": None}, {"content": " "}, {"content": []}])
def test_a_message_that_says_nothing_is_told(nothing: dict[str, Any]) -> None:
    hello = user("Hello world")
    trace = load_trace([hello, {"role": "user", **nothing}, hello])
    told = (
        "Messages with no content and no tool call: 1, first at position 2. "
        "Many providers reject them; leave them out.",
    )
    assert trace.warnings == told
    messages = [hello, {"role": "assistant", **nothing}, hello]
    talk = bk.Conversation("chat", model="gpt-4o")
    talk.add(messages)
    assert talk.request().warnings == told
    assert bk.trim(messages, 1_000, model="gpt-4o").warnings == told
    assert bk.build("chat", model="gpt-4o", conversation=messages, user="Hi").warnings == told
    # Forms that take no empty message are sent without it.
    assert bk.trim(messages, 1_000, model="claude-sonnet-4-5", form="anthropic").warnings == ()


def test_a_call_a_picture_a_sound_a_thought_and_an_empty_result_say_enough() -> None:
    sound = {"data": "", "format": "wav"}
    said = [
        user([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]),
        assistant(None, tool_calls=[tool_call("1", "ping")]),
        tool_result("1", ""),
        user([{"type": "input_audio", "input_audio": sound}]),
        assistant(None, reasoning_content="Up."),
        assistant(None, refusal="No."),
    ]
    assert not [note for note in load_trace(said).warnings if "with no content" in note]
