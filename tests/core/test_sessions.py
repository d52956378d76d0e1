"""Recorded sessions of coding agents: every request is read once, as the file says it, and nothing refuses a file."""

import json
from io import BytesIO
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.trace import Trace, readings, usage_frame
from tests.made_sessions import SHAPES, requests
from tests.messages import assistant

SEEDS = range(8)


def loaded(written: bytes) -> list[Trace]:
    return bk.load_traces(BytesIO(written))


def lines(*records: Any) -> list[Trace]:
    return loaded("\n".join(map(json.dumps, records)).encode())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_request_is_read_once_and_as_the_file_says(shape: str, seed: int) -> None:
    """Requests, fresh, read, written by life, answered: the sums of an own reading, for every shape."""
    rows = requests(seed)
    (trace,) = loaded(SHAPES[shape](rows))
    usage = usage_frame(trace)
    tells_writes = shape != "codex"
    assert len(usage) == len(rows)
    assert usage["cache_read_tokens"].tolist() == [row.read for row in rows]
    assert usage["output_tokens"].tolist() == [row.answered for row in rows]
    assert usage["context_tokens"].tolist() == [row.fresh + row.read + row.written for row in rows]
    if tells_writes:
        assert usage["fresh_tokens"].tolist() == [row.fresh for row in rows]
        assert usage["cache_write_tokens"].tolist() == [row.written for row in rows]
    if shape == "claude-code":
        assert usage["cache_write_1h_tokens"].tolist() == [row.for_an_hour for row in rows]
        assert usage["cache_write_5m_tokens"].tolist() == [
            row.written - row.for_an_hour for row in rows
        ]
    assert usage["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ").tolist() == [row.time for row in rows]


@pytest.mark.parametrize("shape", SHAPES)
def test_all_that_was_said_is_among_the_messages(shape: str) -> None:
    rows = requests(3)
    (trace,) = loaded(SHAPES[shape](rows))
    if shape != "cline":
        assert sum(len(message.tool_calls) for message in trace.messages) == sum(
            row.calls for row in rows
        )
        assert sum(message.role == "tool" for message in trace.messages) == sum(
            row.calls for row in rows
        )
    indices = usage_frame(trace)["message_index"]
    assert all(trace.messages[index].role == "assistant" for index in indices)
    assert len(readings(trace, len)) == len(rows)


def user(uuid: str, parent: str | None, text: str, **more: Any) -> dict[str, Any]:
    about = {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s"}
    return {**about, "message": {"role": "user", "content": text}, **more}


def answer(uuid: str, parent: str | None, text: str, id: str = "", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": 5}
    message = assistant([{"type": "text", "text": text}], id=id or uuid, usage=usage)
    about = {"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s"}
    return {**about, "requestId": f"q-{uuid}", "message": message, **more}


def test_after_a_rewind_the_new_branch_counts_and_the_old_one_stays_in_the_bill() -> None:
    (trace,) = lines(
        user("u1", None, "one"),
        answer("a1", "u1", "first"),
        user("u2", "a1", "a wrong turn"),
        answer("a2", "u2", "regretted"),
        user("u3", "a1", "another turn"),
        answer("a3", "u3", "better"),
    )
    said = [message.text for message in trace.messages]
    assert said == ["one", "first", "another turn", "better"]
    assert usage_frame(trace)["left"].tolist() == [False, True, False]
    assert usage_frame(trace)["message_index"].dropna().tolist() == [1, 3]
    assert trace.warnings == (
        "Not counted: 2 messages on abandoned branches.",
        "Counted in the usage: 1 request on abandoned branches.",
    )


def test_a_branch_of_pis_tree_that_was_left_is_not_counted() -> None:
    def entry(id: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
        message = {"role": role, "content": text}
        return {"type": "message", "id": id, "parentId": parent, "message": message}

    (trace,) = lines(
        {"type": "session", "id": "p"},
        entry("1", None, "user", "one"),
        entry("2", "1", "assistant", "two"),
        entry("3", "2", "user", "left"),
        entry("4", "2", "user", "taken"),
    )
    assert [message.text for message in trace.messages] == ["one", "two", "taken"]


def test_what_a_sub_agent_said_in_records_of_progress_is_a_conversation_of_its_own() -> None:
    def progress(event: dict[str, Any]) -> dict[str, Any]:
        data = {"type": "agent_progress", "agentId": "a9", "message": event}
        return {"type": "progress", "uuid": f"p-{event['uuid']}", "sessionId": "s", "data": data}

    task, step = user("x1", None, "look around"), answer("x2", "x1", "looked")
    start, end = user("u1", None, "one"), answer("a1", "u1", "done")
    main, agent = lines(start, progress(task), progress(step), end)
    assert [message.text for message in main.messages] == ["one", "done"]
    assert [message.text for message in agent.messages] == ["look around", "looked"]
    assert agent.id == "s agent a9"
    assert usage_frame(agent)["side_chain"].tolist() == [True]
    assert usage_frame(main)["side_chain"].tolist() == [False]


def test_records_that_nobody_knows_are_passed_over_and_counted() -> None:
    strange = {"type": "of-2030", "sessionId": "s", "data": {"messages": [1]}}
    (trace,) = lines(strange, strange, user("u1", None, "one"), answer("a1", "u1", "two"))
    assert [message.text for message in trace.messages] == ["one", "two"]
    assert trace.warnings == ("Left out 2 records of unknown kinds: of-2030 (2).",)


def test_a_compaction_of_qwen_code_is_named() -> None:
    payload = {"info": {"originalTokenCount": 900}, "compressedHistory": []}
    record = {"type": "system", "subtype": "chat_compression", "systemPayload": payload}
    (trace,) = lines(user("u1", None, "one"), record, answer("a1", "u1", "two"))
    assert trace.warnings == ("Left out 1 record of unknown kinds: chat_compression (1).",)


def test_a_line_that_was_cut_by_another_is_left_out_and_named() -> None:
    first, last = json.dumps(user("u1", None, "one")), json.dumps(answer("a", None, "two"))
    written = f'{first}\n{{"type": "user", "uu{{"type"\n{last}'
    (trace,) = loaded(written.encode())
    assert [message.text for message in trace.messages] == ["one", "two"]
    assert trace.warnings == ("Left out 1 line of invalid JSON: line 2.",)


def test_a_line_that_is_broken_still_refuses_a_file_that_is_no_session() -> None:
    with pytest.raises(ValueError, match=r"line 2: broken JSON"):
        loaded(b'{"role": "user", "content": "one"}\n{"role": "us')


def test_what_was_measured_before_a_compaction_is_kept() -> None:
    metadata = {"trigger": "auto", "preTokens": 156_699}
    about = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None}
    rest = {"sessionId": "s", "logicalParentUuid": "a1", "compactMetadata": metadata}
    boundary = {**about, **rest}
    (trace,) = lines(
        user("u1", None, "one"),
        answer("a1", "u1", "two"),
        boundary,
        user("u2", "b", "summary", isCompactSummary=True),
    )
    (compaction,) = trace.fields["compactions"]
    assert compaction == {"at": 2, "first_kept": 2, "before_tokens": 156_699, "trigger": "auto"}
    assert trace.warnings == ()
