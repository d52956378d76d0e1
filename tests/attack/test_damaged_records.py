"""Records of a known kind that cannot be read are named, in every reader of sessions; the others are read."""

import json
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.trace import Trace, load_trace

FORMATS = Path(__file__).parents[1] / "formats"
UNREAD = "{} could not be read."

# For each file: the key of its list of records, or "" for one record a line; and damaged records.
DAMAGED: dict[str, tuple[str, list[Any]]] = {
    "claude-code.jsonl": (
        "",
        [
            {"type": "assistant", "sessionId": "s1", "uuid": "x1", "message": None},
            {"type": "user", "sessionId": "s1", "uuid": "x2", "message": "How is Oslo?"},
            {"type": "user", "sessionId": "s1", "message": {"role": "user", "content": 5}},
            {"type": "attachment", "sessionId": "s1", "uuid": "x3", "attachment": [1]},
            [1, 2],
        ],
    ),
    "pi.jsonl": (
        "",
        [
            {"type": "message", "id": "x1", "message": {"content": "How is Oslo?"}},
            {"type": "message", "id": "x2", "message": [1]},
            {"type": "compaction", "id": "x3", "summary": 7},
            {"type": "custom_message", "id": "x4", "content": None},
            "text",
        ],
    ),
    "codex.jsonl": (
        "",
        [
            {"type": "response_item", "timestamp": "2026-01-01T00:00:09Z", "payload": None},
            {"type": "response_item", "payload": {"content": "How is Oslo?"}},
            {"type": "event_msg", "payload": {"type": "token_count", "info": {"total": 5}}},
            {"type": "turn_context", "payload": "gpt-5"},
            {"type": "compacted", "payload": {"message": 5}},
            7,
        ],
    ),
    "opencode.json": (
        "messages",
        [
            {"info": {"role": "user"}, "parts": "How is Oslo?"},
            {"info": None, "parts": []},
            {"info": {"role": "user"}, "parts": [{"type": "text", "text": None}]},
            {"info": {"role": "assistant"}, "parts": [{"type": "tool", "state": "done"}]},
            {"info": {"role": "user"}, "parts": ["How is Oslo?"]},
            None,
        ],
    ),
    "gemini-cli.json": (
        "messages",
        [
            {"id": "x1", "type": "user", "content": 5},
            {"id": "x2", "type": "gemini", "content": None},
            {"id": "x3", "content": "How is Oslo?"},
            "How is Oslo?",
        ],
    ),
    "gemini-cli.jsonl": (
        "",
        [
            {"type": "user", "content": "How is Oslo?"},
            {"id": "x1", "type": "user", "content": None},
            ["How is Oslo?"],
        ],
    ),
    "cline-window.json": (
        "",
        [{"ts": 9, "type": "say", "say": "api_req_started", "text": '{"tokensIn": 9, "to'}, 5],
    ),
    "copilot-chat.json": ("requests", [{"message": None, "response": []}, "How is Oslo?"]),
    "copilot-chat.jsonl": ("", [{"kind": 1, "k": ["requests", 99, "result"], "v": 5}, 5]),
    "copilot-cli.jsonl": (
        "",
        [
            {"type": "user.message", "data": "How is Oslo?"},
            {"type": "assistant.message", "data": {"content": None}},
            {"type": "tool.execution_complete", "data": None},
            5,
        ],
    ),
    "pydantic-ai.json": ("", [{"kind": "request", "parts": None}, "How is Oslo?"]),
    "openai-agents.jsonl": ("", [{"object": "trace.span", "span_data": None}, 5]),
}


def _loaded(name: str, records: list[Any], tmp_path: Path) -> Trace:
    """Load a recorded file with more records at its end."""
    text = (FORMATS / name).read_text()
    if name.endswith(".jsonl"):
        text += "".join(json.dumps(record) + "\n" for record in records)
    else:
        document = json.loads(text)
        key = DAMAGED[name][0]
        (document[key] if key else document).extend(records)
        text = json.dumps(document)
    (tmp_path / name).write_text(text)
    return load_trace(tmp_path / name)


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_records_are_named_and_the_others_are_read(name: str, tmp_path: Path) -> None:
    whole = _loaded(name, [], tmp_path)
    assert not any("could not be read" in warning for warning in whole.warnings)
    records = DAMAGED[name][1]
    trace = _loaded(name, records, tmp_path)
    assert UNREAD.format(f"{len(records)} records") in trace.warnings
    texts = [message.text for message in whole.messages]
    assert [message.text for message in trace.messages][: len(texts)] == texts
    one = _loaded(name, records[:1], tmp_path)
    assert UNREAD.format("1 record") in one.warnings


def test_a_compaction_without_its_summary_replaces_nothing(tmp_path: Path) -> None:
    whole = _loaded("pi.jsonl", [], tmp_path)
    broken = {"type": "compaction", "id": "x", "summary": None, "tokensBefore": 9_000}
    trace = _loaded("pi.jsonl", [broken], tmp_path)
    assert trace.fields.get("compactions") == whole.fields.get("compactions")


def test_a_command_that_pi_keeps_to_itself_is_not_counted(tmp_path: Path) -> None:
    shown = {"role": "bashExecution", "command": "ls", "output": "a.py"}
    whole = _loaded("pi.jsonl", [], tmp_path)
    records = [
        {"type": "message", "id": "x1", "message": shown},
        {"type": "message", "id": "x2", "message": {**shown, "excludeFromContext": True}},
    ]
    trace = _loaded("pi.jsonl", records, tmp_path)
    assert len(trace.messages) == len(whole.messages) + 1
    assert "Left out 1 record that the model does not receive." in trace.warnings


@pytest.mark.parametrize("name", ["goose.json", "goose.jsonl"])
def test_a_message_that_goose_hides_from_its_agent_is_not_counted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DAMAGED, name, ("conversation", []))
    whole = _loaded(name, [], tmp_path)
    hidden = {"role": "user", "content": [{"type": "text", "text": "Hidden."}]}
    shown = {**hidden, "metadata": {"userVisible": False, "agentVisible": True}}
    trace = _loaded(name, [{**hidden, "metadata": {"agentVisible": False}}, shown], tmp_path)
    assert len(trace.messages) == len(whole.messages) + 1
    # The header of a file of lines as well.
    left_out = "2 records" if name.endswith("l") else "1 record"
    assert f"Left out {left_out} that the model does not receive." in trace.warnings


def test_the_list_of_sessions_counts_the_warnings_of_each(tmp_path: Path) -> None:
    lines = (FORMATS / "claude-code.jsonl").read_text()
    broken = json.dumps({"type": "user", "sessionId": "s1", "uuid": "x", "message": None})
    names = {"whole": lines, "damaged": f"{lines}{broken}\n"}
    for name, text in names.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
    table = bk.sessions(tmp_path, billed=True)
    rows = table.to_dict("records")
    warnings = {Path(row["path"]).stem: row["warnings"] for row in rows}
    assert warnings["damaged"] == warnings["whole"] + 1
    session = bk.Session(tmp_path / "whole.jsonl")
    notes = [*session.trace.warnings, session.unpriced, session.price_gap]
    assert warnings["whole"] == sum(map(bool, notes)) + sum(
        sum(map(bool, [*agent.trace.warnings, agent.unpriced, agent.price_gap]))
        for agent in session.agents
    )
