"""Copied and missing requests: forks, branches, sub-agents beside their session, models told in some requests only."""

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import run

Rows = list[dict[str, Any]]


def written(folder: Path, rows: Rows, name: str = "s.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def codex(second: float, kind: str, **payload: Any) -> dict[str, Any]:
    stamp = pd.Timestamp("2026-07-28T12:00:00Z") + pd.Timedelta(seconds=second)
    return {"timestamp": stamp.isoformat(), "type": kind, "payload": payload}


def counted(second: float, sent: int, cached: int, total: int) -> dict[str, Any]:
    last = {"input_tokens": sent, "cached_input_tokens": cached, "output_tokens": 50}
    sums = {"input_tokens": total, "output_tokens": 50}
    info = {"last_token_usage": last, "total_token_usage": sums}
    return codex(second, "event_msg", type="token_count", info=info)


def message(second: float, role: str, text: str) -> dict[str, Any]:
    return codex(second, "response_item", type="message", role=role, content=text)


@pytest.mark.parametrize(
    "parent",
    [
        {"forked_from_id": "A"},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "A"}}}},
    ],
)
def test_a_codex_fork_bills_its_own_requests(tmp_path: Path, parent: dict[str, Any]) -> None:
    rows = [
        codex(20, "session_meta", id="B", **parent),
        codex(20, "session_meta", id="A"),
        codex(20, "turn_context", model="gpt-5.5"),
        message(20, "user", "fix the test"),
        message(20.1, "assistant", "on it"),
        counted(20.1, 10000, 0, 10000),
        message(20.2, "user", "go on"),
        message(20.2, "assistant", "done"),
        counted(20.3, 11000, 10000, 21000),
        message(22, "user", "look into the parser"),
        message(30, "assistant", "fine"),
        counted(31, 12000, 11000, 33000),
        # Another turn of the same size is another request.
        message(40, "assistant", "fine"),
        counted(41, 12000, 11000, 45000),
    ]
    session = bk.Session(written(tmp_path, rows))
    assert session.requests()["prompt"].tolist() == [12000, 12000]
    assert len(session.trace.messages) == 7
    assert session.trace.id == "B"
    assert "Not counted: 2 requests copied from an earlier session." in session.trace.warnings
    alone = [row for row in rows if row["payload"].get("id") != "B"]
    assert len(bk.Session(written(tmp_path, alone)).requests()) == 4


def claude(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    inside = {"role": role, "content": content}
    if role == "assistant":
        usage = {"input_tokens": 4, "cache_read_input_tokens": 900 * number, "output_tokens": 20}
        inside |= {"id": f"m{number}", "model": "claude-opus-4-8", "usage": usage}
        more |= {"requestId": f"r{number}"}
    about = {"sessionId": "s", "uuid": f"u{number}", "isSidechain": False}
    about |= {"parentUuid": f"u{number - 1}" if number > 1 else None}
    return (
        {"type": role, "timestamp": f"2026-07-01T10:00:{number:02d}Z", **about}
        | more
        | {"message": inside}
    )


def of_agent(rows: Rows, agent: str) -> Rows:
    """Return records as an agent of the session writes its own."""
    return [
        row
        | {"isSidechain": True, "agentId": agent}
        | ({"requestId": f"{row['requestId']} of {agent}"} if "requestId" in row else {})
        for row in rows
    ]


def test_a_branch_of_claude_code_bills_its_own_requests(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "alpha beta gamma"}
    old = [
        claude(1, "user", "list the files"),
        claude(2, "assistant", [call]),
        claude(3, "user", [result]),
        claude(4, "assistant", [{"type": "text", "text": "There are three."}]),
    ]
    new = [
        claude(5, "user", "count again"),
        claude(6, "assistant", [{"type": "text", "text": "3"}]),
    ]
    copied = [row | {"forkedFrom": {"sessionId": "s1", "messageUuid": row["uuid"]}} for row in old]
    again = [row | {"parentUuid": None} for row in old]
    for rows in (copied + new, copied + again + new):
        session = bk.Session(written(tmp_path, rows))
        assert session.requests()["read"].tolist() == [5400]
        texts = [one.text for one in session.trace.messages]
        assert len(texts) == 6
        assert texts[3] == "There are three."
        assert "Not counted: 2 requests copied from an earlier session." in session.trace.warnings


def test_a_request_of_a_resumed_session_is_billed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier Claude Code copied the whole session, or its part after a compaction, into the file of the new one."""
    monkeypatch.setenv("BUDGETKIT_CACHE", str(tmp_path / "cache"))
    old = [claude(n, "user" if n % 2 else "assistant", f"text {n}") for n in range(1, 9)]
    old[4] |= {"isCompactSummary": True}
    new = [claude(9, "user", "and now?"), claude(10, "assistant", "done")]
    other = [claude(21, "user", "hello"), claude(22, "assistant", "hello")]
    folder = tmp_path / "sessions"
    files = {"a": old, "b": old[4:] + new, "c": old + new, "d": other}
    for day, (name, rows) in enumerate(files.items(), start=1):
        path = written(folder, [row | {"sessionId": name} for row in rows], f"{name}.jsonl")
        os.utime(path, (86_400 * day, 86_400 * day))
    whole = bk.Session(folder / "b.jsonl").totals()
    for _ in range(2):  # the second time from the cache
        table = bk.sessions(folder, billed=True).set_index("project").iloc[::-1]
        assert table["requests"].tolist() == [4, 1, 0, 1]
        assert table["copied"].tolist() == [0, 2, 5, 0]
        assert table["compactions"].tolist() == [1, 0, 0, 0]
    assert whole["requests"] == 3
    assert bk.sessions(folder, newest=2, billed=True)["requests"].tolist() == [1, 5]
    assert run(["sessions", "--folder", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert (
        "Counted once: 7 requests that a resumed or forked session repeats from an earlier one."
        in shown
    )


def test_an_agents_copies_of_the_sessions_answers_are_not_billed(tmp_path: Path) -> None:
    """Claude Code writes the whole session into the file of the agent that compacts it."""
    rows = [claude(n, "user" if n % 2 else "assistant", f"text {n}") for n in range(1, 11)]
    side = [row | {"isSidechain": True, "agentId": "a1"} for row in rows[:8]]
    written(tmp_path, rows[:6], "s.jsonl")
    written(tmp_path, side, "s/subagents/agent-a1.jsonl")
    more = [row | {"isSidechain": True, "agentId": "a2"} for row in rows[6:]]
    written(tmp_path, more, "s/subagents/agent-a2.jsonl")
    session = bk.Session(tmp_path / "s.jsonl")
    assert len(session.cost) == 3
    assert [len(agent.cost) for agent in session.agents] == [1, 1]
    assert bk.sessions(tmp_path, billed=True)["requests"].tolist() == [5]
    # Two agents may have the same name in different folders.
    other = of_agent(rows[:2], "a2")
    written(tmp_path, other, "s/subagents/workflows/w/agent-a2.jsonl")
    assert bk.sessions(tmp_path, billed=True)["requests"].tolist() == [6]


def test_sub_agents_belong_to_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    project = tmp_path / ".claude/projects/-w-demo"
    main = [claude(1, "user", "go"), claude(2, "assistant", "ok"), claude(3, "assistant", "done")]
    path = written(project, main)
    written(project, of_agent(main, "a1"), "s/subagents/agent-a1.jsonl")
    written(project, of_agent(main, "a2"), "s/subagents/workflows/w/agent-a2.jsonl")

    assert [trace.id for trace in bk.load_traces(path)] == ["s", "s agent a1", "s agent a2"]
    session = bk.Session(path)
    assert session.totals()["requests"] == 2
    assert [len(agent.usage) for agent in session.agents] == [2, 2]
    for folder in (None, project):
        table = bk.sessions(folder, billed=True)
        assert table["requests"].tolist() == [6]
        assert table["cost"].iloc[0] == pytest.approx(3 * session.totals()["cost"])


def test_a_sub_agent_in_both_files_is_one(tmp_path: Path) -> None:
    main = [claude(1, "user", "go"), claude(2, "assistant", "ok")]
    task = [claude(3, "user", "look"), claude(4, "assistant", "looked")]
    progress = [
        {"type": "progress", "sessionId": "s", "data": {"type": "agent_progress"} | about}
        for about in ({"agentId": "a1", "message": event} for event in task)
    ]
    path = written(tmp_path, [*main, *progress])
    side = [event | {"isSidechain": True, "agentId": "a1"} for event in task]
    written(tmp_path, side, "s/subagents/agent-a1.jsonl")
    assert [len(agent.usage) for agent in bk.Session(path).agents] == [1]


def test_a_repeated_session_meta_changes_nothing(tmp_path: Path) -> None:
    meta = codex(0, "session_meta", id="A", base_instructions={"text": "You are Codex."})
    turn = [message(1, "user", "hi"), message(3, "assistant", "ok")]
    rows = [meta, codex(0, "turn_context", model="gpt-5.5"), *turn, counted(4, 10000, 0, 10000)]
    rows += [meta, *turn, counted(8, 10050, 10000, 20050)]
    session = bk.Session(written(tmp_path, rows))
    assert [one.role for one in session.trace.messages].count("system") == 1
    assert session.usage["model"].tolist() == ["gpt-5.5", "gpt-5.5"]


def test_a_session_names_a_model_in_some_requests_only() -> None:
    usage = [
        {"message_index": 1, "context_tokens": 900, "output_tokens": 5, "model": model}
        | {"cache_read_tokens": 0, "cache_write_tokens": 0}
        for model in ("gpt-4o", None)
    ]
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}]
    session = bk.Session(bk.Trace("toy", tuple(map(bk.Message, said)), fields={"usage": usage}))
    assert session.requests()["cost"].isna().tolist() == [False, True]
    assert not session.happened["new_model"][0]


def test_models_of_cline_and_openhands(tmp_path: Path) -> None:
    numbers = json.dumps({"tokensIn": 10, "tokensOut": 200, "cacheWrites": 20000, "cacheReads": 0})
    about = {"modelInfo": {"modelId": "claude-opus-4-6"}, "type": "say"}
    shown = [
        {"ts": 1, "say": "task", "text": "List the files", **about},
        {"ts": 2, "say": "api_req_started", "text": numbers, **about},
        {"ts": 3, "say": "text", "text": "Two files.", **about},
    ]
    (tmp_path / "ui.json").write_text(json.dumps(shown))
    assert bk.Session(tmp_path / "ui.json").requests()["cost"].tolist() == [pytest.approx(0.13005)]

    answer: dict[str, Any] = {"id": "c1", "model": "claude-3-5-sonnet-20241022"}
    answer |= {"usage": {"prompt_tokens": 3000, "completion_tokens": 30}}
    events: Rows = [{"id": 0, "source": "user", "action": "message", "args": {"content": "Fix it"}}]
    for id in (1, 2):  # two calls of one answer
        call = {"function_name": "run", "tool_call_id": f"call_{id}", "model_response": answer}
        event = {"id": id, "source": "agent", "action": "run", "args": {"command": "ls"}}
        events.append(event | {"tool_call_metadata": call})
    usage = bk.trace.usage_frame(bk.load_trace({"history": events}))
    assert usage[["model", "context_tokens"]].values.tolist() == [[answer["model"], 3000]]


def test_a_result_corrects_a_stream(tmp_path: Path) -> None:
    result = {"input_tokens": 4, "cache_read_input_tokens": 1800, "output_tokens": 57}
    rows = [claude(1, "user", "hi"), claude(2, "assistant", "ok")]
    rows.append({"type": "result", "usage": result, "session_id": "s"})
    assert bk.Session(written(tmp_path, rows)).requests()["answered"].tolist() == [57]
    rows[2:2] = [claude(3, "user", "more"), claude(4, "assistant", "ok")]
    assert bk.Session(written(tmp_path, rows)).requests()["answered"].tolist() == [20, 37]


@pytest.mark.filterwarnings("ignore")
def test_a_damaged_sub_agent_is_counted_as_a_warning_in_the_cache_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first list said so, and the second, from the cache, had fewer requests without a word."""
    monkeypatch.setenv("BUDGETKIT_CACHE", str(tmp_path / "cache"))
    project = tmp_path / "projects"
    main = [claude(1, "user", "go"), claude(2, "assistant", "ok"), claude(3, "assistant", "done")]
    written(project, main)
    side = [row | {"isSidechain": True, "agentId": "a1"} for row in main]
    agent = written(project, side, "s/subagents/agent-a1.jsonl")
    names = ["warnings", "missing"]
    before = bk.sessions(project, billed=True)[names].sum()
    agent.write_bytes(agent.read_bytes()[100:])
    for _ in range(2):
        assert (bk.sessions(project, billed=True)[names].sum() > before).all()


@pytest.mark.parametrize("place", ["s", "s/subagents", "s/subagents/agent-a1.jsonl"])
def test_no_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A folder that was a link let in files from outside."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    project, outside = tmp_path / ".claude/projects/-w-demo", tmp_path / "outside"
    main = [claude(1, "user", "go"), claude(2, "assistant", "ok"), claude(3, "assistant", "done")]
    path = written(project, main)
    side = [row | {"isSidechain": True, "agentId": "a1"} for row in main]
    written(outside, side, "s/subagents/agent-a1.jsonl")
    (project / place).parent.mkdir(parents=True, exist_ok=True)
    (project / place).symlink_to(outside / place)

    assert [trace.id for trace in bk.load_traces(path)] == ["s"]
    assert [trace.id for trace in bk.load_traces(project)] == ["s"]
    assert bk.sessions(project, billed=True)["requests"].tolist() == [2]


def test_other_tasks_of_a_file_are_no_sub_agents(tmp_path: Path) -> None:
    call = {"messages": [{"role": "user", "content": "hi"}], "model": "gpt-4o"}
    answer = {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}
    recorded = {"request": call, "response": answer | {"usage": {"prompt_tokens": 9}}}
    assert bk.Session(written(tmp_path, [recorded, recorded])).agents == ()


@pytest.mark.parametrize(
    ("sums", "prompts"),
    [
        ([(1000, 10), (2100, 30)], [1000, 1100]),
        ([(1000, 10), (1000, 10), (2100, 30)], [1000, 1100]),  # a record that repeats
        ([(1000, 10), (700, 30)], [1000, 700]),  # a new count
    ],
)
def test_running_totals_of_codex_alone_give_each_request(
    tmp_path: Path, sums: list[tuple[int, int]], prompts: list[int]
) -> None:
    rows = [codex(0, "session_meta", id="A"), codex(0, "turn_context", model="gpt-5.5")]
    for turn, (sent, answered) in enumerate(sums, 1):
        totals = {"input_tokens": sent, "cached_input_tokens": 0, "output_tokens": answered}
        info = {"total_token_usage": totals, "last_token_usage": None}
        rows += [message(9 * turn, "user", "hi"), message(9 * turn + 3, "assistant", "ok")]
        rows.append(codex(9 * turn + 4, "event_msg", type="token_count", info=info))
    requests = bk.Session(written(tmp_path, rows)).requests()
    assert requests["prompt"].tolist() == prompts


def test_lines_of_an_answer_without_a_message_id_are_one_request(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t", "name": "ls", "input": {}}
    rows: Rows = [{"type": "user", "uuid": "1", "message": {"role": "user", "content": "hi"}}]
    for place, block in enumerate([{"type": "text", "text": "ok"}, call], 2):
        usage = {"input_tokens": 100, "output_tokens": 10 * place}
        answer = {"role": "assistant", "model": "claude-opus-4-8", "content": [block]}
        ids = {"uuid": str(place), "parentUuid": str(place - 1), "requestId": "r"}
        rows.append({"type": "assistant", **ids, "message": answer | {"usage": usage}})
    session = bk.Session(written(tmp_path, [{"sessionId": "s", **row} for row in rows]))
    assert len(session.trace.messages) == 2
    assert session.requests()[["prompt", "answered"]].values.tolist() == [[100, 30]]


def test_parallel_results_of_codex_are_counted_as_it_sends_them(tmp_path: Path) -> None:
    """They were counted as in OpenAI's chat format, which escapes letters beyond ASCII."""
    text = "Прочитано: всё в порядке.\n" * 50
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
    calls: list[dict[str, Any]] = [
        {"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"} for id in "ab"
    ]
    results = [{"type": "function_call_output", "call_id": id, "output": text} for id in "ab"]
    items: list[dict[str, Any]] = [asked, *calls, *results]
    rows = [codex(0, "session_meta", id="A"), codex(0, "turn_context", model="gpt-5.5")]
    rows += [codex(1 + second, "response_item", **item) for second, item in enumerate(items)]
    count = bk.counter("gpt-5.5")
    whole = bk.count_request({"model": "gpt-5.5", "input": items}).tokens
    for trace in (bk.load_trace(written(tmp_path, rows)), bk.load_trace({"input": items})):
        sizes = trace.counts(count, bk.requests.framing_for("gpt-5.5"))
        assert whole - 10 < sizes.sum() <= whole
        assert sizes[-2:].sum() == pytest.approx(2 * count(text), abs=2)


def of_pi(name: str, numbers: range) -> Rows:
    usage = {"input": 1_000, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    said = {"role": "assistant", "content": "Yes.", "model": "claude-haiku-4-5", "usage": usage}
    return [{"type": "session", "id": name}] + [
        {
            "type": "message",
            "id": f"a{n}",
            "timestamp": f"2026-11-20T10:{n:02d}:05Z",
            "message": said,
        }
        for n in numbers
    ]


def of_opencode(name: str, numbers: range) -> Rows:
    tokens = {"input": 1_000, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    messages = [
        {
            "info": {
                "id": f"{name} {n}",
                "role": "assistant",
                "time": {"created": 1_763_900_001_000 + n, "completed": 1_763_900_005_000 + n},
                "modelID": "claude-haiku-4-5",
                "tokens": tokens,
            },
            "parts": [{"type": "text", "text": "Yes."}],
        }
        for n in numbers
    ]
    return [{"info": {"id": name}, "messages": messages}]


@pytest.mark.parametrize(("rows_of", "suffix"), [(of_pi, "jsonl"), (of_opencode, "json")])
def test_a_fork_of_other_agents_bills_its_own_requests(
    tmp_path: Path, rows_of: Any, suffix: str
) -> None:
    """pi's copies keep their ids, those of OpenCode only their times."""
    for day, (name, last) in enumerate({"first": 4, "fork": 5}.items(), start=1):
        path = written(tmp_path, rows_of(name, range(1, last)), f"{name}.{suffix}")
        os.utime(path, (86_400 * day, 86_400 * day))
    table = bk.sessions(tmp_path, billed=True)
    assert table["requests"].tolist() == [1, 3]
    assert table["copied"].tolist() == [3, 0]
    assert bk.Session(tmp_path / f"fork.{suffix}").totals()["requests"] == 4
