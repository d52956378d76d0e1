"""Conversations in the formats of providers and agents: each kind of file at its smallest, read in full."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.trace import to_line, usage_frame
from tests.messages import assistant, system, tool_call, user

WEATHER = {"type": "object", "properties": {"place": {"type": "string"}}}


def loaded(*values: Any, name: str = "toy.jsonl") -> list[bk.Trace]:
    """Load values that stand a line each."""
    stream = BytesIO("\n".join(json.dumps(value) for value in values).encode())
    stream.name = name
    return bk.load_traces(stream)


def said(trace: bk.Trace) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in trace.messages]


#: A request to each provider: the same conversation with two calls at once, thinking and a picture.
REQUESTS = {
    row["by"]: row["body"]
    for row in map(json.loads, Path(__file__).with_name("requests.jsonl").read_text().splitlines())
}
SAID = [
    ("system", "Be brief."),
    ("user", "How is Oslo?"),
    ("assistant", "Let me look."),
    ("tool", "Sun"),
    ("tool", "Rain"),
    ("user", "And now?"),
]


def test_anthropic_messages_become_chat_messages() -> None:
    (trace,) = loaded(REQUESTS["anthropic"])
    assert said(trace) == SAID
    expected = [("1", "weather", '{"place": "Oslo"}'), ("2", "weather", '{"place": "Bergen"}')]
    assert [(c.id, c.name, c.arguments) for c in trace.messages[2].tool_calls] == expected
    assert trace.messages[2].raw["reasoning_content"] == "I should look."
    assert [m.tool_call_id for m in trace.messages[3:5]] == ["1", "2"]
    assert len(trace.messages[5].images) == 1
    assert trace.tools[0]["input_schema"] == WEATHER
    assert trace.fields == {"model": "claude-sonnet-4-5", "max_tokens": 100, "format": "anthropic"}


def test_openai_responses_become_chat_messages() -> None:
    (trace,) = loaded(REQUESTS["responses"])
    assert said(trace) == [*SAID[:2], ("assistant", ""), *SAID[3:], ("assistant", "New.")]
    assert [c.id for c in trace.messages[2].tool_calls] == ["1", "2"]
    assert trace.messages[2].raw["reasoning_content"] == "I should look."
    assert len(trace.messages[5].images) == 1
    assert len(trace.tools) == 1


def test_gemini_contents_become_chat_messages() -> None:
    (trace,) = loaded(REQUESTS["gemini"])
    results = [("tool", '{"sky": "Sun"}'), ("tool", '{"sky": "Rain"}')]
    assert said(trace) == [*SAID[:3], *results, SAID[5]]
    assert [c.id for c in trace.messages[2].tool_calls] == ["weather-1", "weather-2"]
    assert [m.tool_call_id for m in trace.messages[3:5]] == ["weather-1", "weather-2"]
    assert len(trace.messages[5].images) == 1
    assert trace.tools[0]["name"] == "weather"
    assert trace.fields["generationConfig"] == {"temperature": 0}


def event(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    about = {"type": kind, "sessionId": "s1", "timestamp": "2026-11-21T10:00:00Z"}
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {**about, "isSidechain": False, "message": message, **more}


_CACHE = {"cache_read_input_tokens": 900, "cache_creation_input_tokens": 40}
BILLED = {"id": "m1", "usage": {"input_tokens": 3, **_CACHE, "output_tokens": 5}}
LOOK = {"type": "tool_use", "id": "1", "name": "Weather", "input": {}}
SESSION = [
    {"type": "summary", "summary": "An older session", "leafUuid": "x"},
    event("user", "How is Oslo?", cwd="somewhere"),
    event("assistant", [{"type": "text", "text": "Let me look."}], message=BILLED),
    event("assistant", [LOOK], message=BILLED),
    event("user", [{"type": "tool_result", "tool_use_id": "1", "content": "Sun"}]),
    event("user", "What a sub-agent was told", isSidechain=True),
    event("user", "And now?"),
]


def test_a_claude_code_session_is_a_conversation_and_its_side_chain_another() -> None:
    main, side = loaded(*SESSION)
    assert main.id == "s1"
    assert said(main) == [*SAID[1:4], SAID[5]]
    assert len(main.messages[1].tool_calls) == 1
    assert main.messages[0].raw["timestamp"] == "2026-11-21T10:00:00Z"
    assert main.fields.keys() == {"usage", "format"}
    assert (side.id, said(side)) == ("s1 side chain", [("user", "What a sub-agent was told")])


def test_what_the_provider_counted_is_kept_and_anthropics_cached_tokens_are_added() -> None:
    (row,) = usage_frame(loaded(*SESSION)[0]).iloc[:, :8].to_dict("records")
    sizes = {"input_tokens": 3, "output_tokens": 5, "context_tokens": 943, "fresh_tokens": 3}
    cache = {"cache_read_tokens": 900, "cache_write_tokens": 40}
    assert row == {"message_index": 1, "model": None, **sizes, **cache}


@pytest.mark.parametrize(
    ("sample", "sound", "broken"),
    [
        ("claude-code.jsonl", '"id": "c1"', '"id": ["c1", "c1"]'),
        ("copilot-chat.jsonl", '"k": ["requests", 0', '"k": [["requests"], 0'),
    ],
)
def test_a_list_in_place_of_a_name_is_passed_over(sample: str, sound: str, broken: str) -> None:
    """Such a file ended in a raw TypeError: a list stands in no set and is no key."""
    text = (Path(__file__).parents[1] / "formats" / sample).read_text(encoding="utf-8")
    assert sound in text
    stream = BytesIO(text.replace(sound, broken).encode())
    stream.name = sample
    assert said(bk.load_traces(stream)[0])[0] == ("user", "How is Oslo?")


def test_the_web_sessions_of_claude_code_hold_the_same_events() -> None:
    (trace,) = loaded({"loglines": SESSION[:5]}, name="session.json")
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool"]


def test_a_trajectory_of_swe_agent_is_what_it_sent() -> None:
    history = [
        system("Fix it.", agent="main"),
        user("The issue"),
        assistant("Look.", tool_calls=[tool_call("1", "bash")], thought="Look."),
        {"role": "tool", "content": "a.txt", "tool_call_ids": ["1"]},
    ]
    info = {"exit_status": "submitted"}
    (trace,) = loaded({"trajectory": [], "history": history, "info": info}, name="run.traj")
    assert [m.role for m in trace.messages] == ["system", "user", "assistant", "tool"]
    assert trace.messages[3].tool_call_id == "1"
    assert trace.messages[0].raw["agent"] == "main"
    assert trace.fields["info"] == info


def test_a_recorded_call_may_ask_with_a_text() -> None:
    text = {"type": "output_text", "text": "Yo"}
    item = {"type": "message", "role": "assistant", "content": [text]}
    usage = {"input_tokens": 8, "input_tokens_details": {"cached_tokens": 4}}
    recorded = {"request": {"input": "Hi"}, "response": {"output": [item], "usage": usage}}
    (trace,) = loaded(recorded)
    assert said(trace) == [("user", "Hi"), ("assistant", "Yo")]
    assert usage_frame(trace)["context_tokens"].tolist() == [8]


SAMPLES = list((Path(__file__).parents[1] / "formats").glob("*.json*"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_unknown_fields_survive_a_round_trip(path: Path) -> None:
    """Written as lines and read again, every trace is the same, down to what no importer understands."""
    text = path.read_text("utf-8")
    values = [json.loads(text)] if path.suffix == ".json" else [*map(json.loads, text.splitlines())]
    for value in values:
        if isinstance(value, dict):
            value["x_unknown"] = {"kept": True}
    traces = loaded(*values)
    again = loaded(*[json.loads(to_line(trace)) for trace in traces])
    assert [(t.id, t.messages, t.tools, t.fields) for t in again] == [
        (t.id, t.messages, t.tools, t.fields) for t in traces
    ]
    # Of a session only what its prompts held is kept, since the rest is larger.
    if path.stem in ("anthropic", "openai-responses", "gemini", "recorded-call", "gemini-call"):
        assert all("x_unknown" in to_line(trace) for trace in again)


def test_a_message_carries_what_it_was_made_of() -> None:
    strange = json.loads(json.dumps(REQUESTS["anthropic"]))
    strange["messages"][1]["content"][1]["x_unknown"] = 7
    (trace,) = loaded(strange)
    assert trace.messages[2].raw["native"] == strange["messages"][1]


def test_passages_outside_the_messages_survive_a_round_trip() -> None:
    (trace,) = loaded({"messages": [user("Hi")], "contexts": [{"text": "Found.", "score": 0.5}]})
    (again,) = loaded(json.loads(to_line(trace)))
    assert (again.contexts, again.messages) == (trace.contexts, trace.messages)


def test_passages_of_any_message_survive_a_round_trip() -> None:
    passages = bk.Message({"role": "user", "contexts": ["Found."]}).contexts
    messages = tuple(map(bk.Message, [user("user"), assistant("assistant"), user("user")]))
    (again,) = loaded(json.loads(to_line(bk.Trace("toy", messages, contexts={0: passages}))))
    assert again.contexts == {0: passages}


def test_what_a_session_lacks_never_refuses_it() -> None:
    """A message without content, a result without its call and a message without a role, as in a cut file."""
    assert said(loaded(*SESSION[:2], event("assistant", 7))[0])[-1] == ("assistant", "")
    lost = {"type": "tool_result", "tool_use_id": "9", "content": "?"}
    (trace,) = loaded(SESSION[1], event("user", [lost]))
    assert said(trace)[-1] == ("function", "?")
    assert trace.warnings == ("tool results without a call, counted as text: 1",)
    (trace,) = loaded(SESSION[1], {**SESSION[1], "message": {"content": "nobody"}})
    assert (len(trace.messages), trace.warnings) == (1, ("1 record could not be read.",))


def test_sections_are_mapped_again_in_one_expression() -> None:
    (trace,) = loaded(*SESSION[:5])
    roles = {"user": "asked", "assistant": "said", "tool": "results"}
    roles |= {"current": "asked", "step": "results"}
    assert trace.demand(len, roles=roles).columns.tolist() == ["asked", "said", "results"]
    by_tool = trace.demand(len, roles=lambda m: "results" if m.role == "tool" else "talk")
    assert by_tool.columns.tolist() == ["talk", "results"]


def test_openais_chat_format_is_left_as_it_is() -> None:
    plain = {"messages": [user("Hi")], "model": "gpt-4o"}
    (trace,) = loaded(plain)
    assert trace.messages[0].raw == user("Hi")
    assert trace.fields == {"model": "gpt-4o"}


@pytest.mark.parametrize("beside", ["choices", "response", "output", "completion"])
def test_an_answer_beside_the_messages_is_read(beside: str) -> None:
    answer: Any = "ok"
    if beside == "choices":
        answer = [{"message": assistant("ok")}]
    asked = {"model": "gpt-4o", "messages": [user("hi")]}
    trace = bk.load_trace(asked | {beside: answer, "usage": {"prompt_tokens": 5}})
    assert [(m.role, m.text) for m in trace.messages] == [("user", "hi"), ("assistant", "ok")]
    assert usage_frame(trace)["message_index"].tolist() == [1]
    whole = [*asked["messages"], assistant("ok")]
    assert len(bk.load_trace({"messages": whole, beside: answer}).messages) == 2


def test_both_conversations_of_a_comparison_are_read() -> None:
    said = [[user(text)] for text in ("one", "two")]
    row = {"winner": "model_a", "conversation_a": said[0], "conversation_b": said[1]}
    assert [trace.messages[0].text for trace in bk.load_traces(row)] == ["one", "two"]


def test_a_preference_of_whole_texts_has_speakers() -> None:
    """As Anthropic's first data sets of preferences wrote them."""
    row = {name: f"\n\nHuman: hi\n\nAssistant: {name}" for name in ("chosen", "rejected")}
    assert [[(m.role, m.text) for m in trace.messages] for trace in bk.load_traces(row)] == [
        [("user", "hi"), ("assistant", name)] for name in row
    ]


def test_a_tree_of_many_conversations_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="OpenAssistant"):
        bk.load_trace({"text": "hi", "role": "prompter", "replies": []} | {"message_id": "a"})


def test_sums_beside_the_fields_of_a_log_are_read() -> None:
    said = {role: [{"role": role, "content": "hi"}] for role in ("user", "assistant")}
    log = {"type": "GENERATION", "input": said["user"], "output": said["assistant"]}
    trace = bk.load_trace(log | {"promptTokens": 1000, "completionTokens": 50})
    (row,) = usage_frame(trace).to_dict("records")
    assert (row["context_tokens"], row["output_tokens"]) == (1000, 50)


def test_sums_of_a_whole_session_of_copilot_are_named() -> None:
    """They hold no request, so they are in no bill."""
    metrics = {"gpt-5": {"requests": {"count": 2}, "usage": {"inputTokens": 2000}}}
    events = [
        {"type": "session.start", "data": {"sessionId": "s"}},
        {"type": "user.message", "data": {"content": "hi"}},
        {"type": "session.shutdown", "data": {"modelMetrics": metrics}},
    ]
    (trace,) = loaded(*events)
    assert trace.warnings == ("Not read: 1 token sum of a whole session.",)
