"""Folds about recorded sessions: systems side by side, one message through all of them, and why the cache missed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import ConversationExplorer
from budgetkit.lab.sessions.causes import used_later
from budgetkit.lab.sessions.comparing import (
    AS_IT_WAS,
    USUAL,
    by_price_and_window,
    comparison,
)
from budgetkit.lab.sessions.setup import replay_setup
from budgetkit.message import Message
from budgetkit.trace import Trace
from tests.lab.test_folds import fold, opened, parts, rows, tell


@pytest.fixture(scope="module")
def explorer() -> ConversationExplorer:
    return ConversationExplorer("made-up-session", model="claude-sonnet-4-5")


def test_eight_systems_stand_side_by_side_by_name_with_cost_and_compactions(
    explorer: ConversationExplorer,
) -> None:
    (figure,) = parts(opened(explorer, "systems"), "systems", "figure")
    drawn = figure["figure"]
    notes = [note["text"] for note in drawn["spec"]["layout"]["annotations"]]
    assert len(notes) == len(USUAL) + 1
    for name in ("Claude Code", "Codex", "Gemini CLI", "opencode", "pi", "Cline", AS_IT_WAS):
        assert any(note.startswith(f"<b>{name}</b> $") for note in notes)
    assert all(note.count("$") == 1 for note in notes), (
        "what stands between two of them is a formula to plotly"
    )
    assert any("6 compactions" in note for note in notes)
    wide = comparison(replay_setup(bk.Session(bk.load_trace("made-up-session")), 1_000_000))
    lanes = bk.figures.rules_compared.spec(wide)["layout"]["annotations"]
    assert "does not act" in "".join(note["text"] for note in lanes)
    assert drawn["note"].startswith("Replayed in a window of 200,000 tokens. Recorded: $")
    said = parts(explorer, "systems", "text")[0]["text"]
    assert said.endswith("not a forecast: the agent would have acted differently.")


def test_a_replay_of_a_session_says_what_was_recorded_beside_it(
    explorer: ConversationExplorer,
) -> None:
    """It said "201 dropped" beside "oldest first never cuts", and no word of what was billed."""
    told = explorer.view.state["status"]["more"]
    assert "The session's own compactions took out 200 messages that had been sent." in told
    assert any(words.endswith("the record says 139 requests for $6.24.") for words in told)


def test_a_message_is_followed_through_all_systems(explorer: ConversationExplorer) -> None:
    (offered,) = parts(opened(explorer, "systems"), "systems", "choice")
    first = offered["options"][1]
    assert "lost by" in first["label"], "what most rules lose and a call needs later comes first"
    tell(explorer, "systems", follow=first["value"])
    fates = {row["key"]: row["note"] for row in rows(explorer, "systems")}
    assert fates[AS_IT_WAS] == "kept to the end"
    assert "needed later, in request" in fates["gemini-cli"]
    (figure,) = parts(explorer, "systems", "figure")
    legend = [
        trace["name"] for trace in figure["figure"]["spec"]["data"] if trace.get("showlegend", True)
    ]
    assert {"message in prompt", "needed by a call"} <= set(legend)
    tell(explorer, "systems", follow="nonsense")
    assert rows(explorer, "systems") == []


def test_the_cache_is_shown_as_foretold_and_as_recorded(explorer: ConversationExplorer) -> None:
    (figure,) = parts(opened(explorer, "reads"), "reads", "figure")
    assert [trace["name"] for trace in figure["figure"]["spec"]["data"]] == [
        *("prompt", "predicted read", "recorded read", "miss"),
    ]
    causes = [row["text"].split(". ")[1] for row in rows(explorer, "reads")]
    assert causes == ["Compaction", "Expired during a pause", "Expired during a pause"], (
        "the largest first"
    )
    without = opened(ConversationExplorer("support-chat"), "reads")
    assert "has no recorded usage" in parts(without, "reads", "text")[0]["text"]


def test_a_conversation_without_usage_is_compared_in_the_explorers_window() -> None:
    explorer = opened(
        ConversationExplorer("coding-agent", window=16_384, model="gpt-4o"), "systems"
    )
    (figure,) = parts(explorer, "systems", "figure")
    assert figure["figure"]["note"].startswith("Replayed in a window of 16,384 tokens.")


def test_names_of_parameters_are_no_names_that_a_call_copies() -> None:
    """Each call says "file_path"; only the path itself shows what an earlier message was needed for."""
    call = {"id": "c", "function": {"name": "read", "arguments": '{"file_path": "src/a_1.py"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "see src/b_2.py"},
        {
            "role": "assistant",
            "tool_calls": [call | {"function": {"arguments": '{"file_path": ["src/b_2.py"]}'}}],
        },
    ]
    pairs = used_later(Trace("toy", tuple(map(Message, messages))))
    assert pairs.values.tolist() == [[2, 1, "src/b_2.py"]]


def test_a_number_that_a_call_copies_shows_which_message_held_it() -> None:
    call = {
        "id": "c",
        "function": {"name": "open_issue", "arguments": '{"id": 12345, "page": 2, "all": true}'},
    }
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Look at issue 12345, page 2."},
        {"role": "assistant", "tool_calls": [call]},
    ]
    assert used_later(Trace("toy", tuple(map(Message, messages)))).values.tolist() == [
        [1, 0, "12345"]
    ]


def test_where_the_order_turns_is_marked() -> None:
    session = bk.Session(bk.load_trace("made-up-session"))
    rules = {"masking": bk.policies.ClearResults(keep_uses=10), "pi": "pi"}
    table = by_price_and_window(session, rules, reads=[1.0, 0.02], windows=[200_000])
    cheapest = table[table["cheapest"]]
    assert cheapest["system"].tolist() == ["masking", AS_IT_WAS]
    assert cheapest["turns"].tolist() == [False, True]
    layout = bk.figures.order_turns.spec(table.assign(change=-0.001))["layout"]
    edges = layout["shapes"]
    assert {note["text"] for note in layout["annotations"]} == {"+0%"}
    assert [(edge["x0"], edge["x1"]) for edge in edges] == [(0.5, 0.5)]


def long_conversation(messages: int) -> Trace:
    """A conversation of an agent that reads one file after the other."""
    written: list[dict[str, Any]] = [{"role": "system", "content": "You are an agent. " * 200}]
    for number in range(messages // 2):
        arguments = json.dumps({"path": f"src/file_{number - number % 7}.py"})
        call = {"id": f"c{number}", "function": {"name": "read", "arguments": arguments}}
        role = (
            {"role": "user", "content": "Go on."}
            if number % 20 == 0
            else {"role": "assistant", "tool_calls": [call]}
        )
        written.append(role)
        if role["role"] == "assistant":
            answer = f"def f_{number}(): return {number}\n" * (10 + number % 190)
            written.append({"role": "tool", "tool_call_id": f"c{number}", "content": answer})
    return Trace("long", tuple(map(Message, written[:messages])))


def counting_time() -> float:
    """Measure how fast this machine counts in a dictionary at the moment, in seconds of its processor."""
    started = time.process_time()
    counts: dict[int, int] = {}
    for number in range(2_000_000):
        counts[number % 1_000] = counts.get(number % 1_000, 0) + number
    return time.process_time() - started


def test_10_000_messages_under_eight_systems_are_shown_in_time() -> None:
    """Beside a plain loop, so that a slow machine strikes both; a quiet one takes 4 s and 0.3 s."""
    before = counting_time()
    explorer = ConversationExplorer(
        [long_conversation(10_250)], model="claude-sonnet-4-5", window=200_000
    )
    started = time.process_time()
    opened(explorer, "systems")
    taken = time.process_time() - started
    (figure,) = parts(explorer, "systems", "figure")
    assert len(json.dumps(fold(explorer, "systems"))) < 1_000_000, (
        "the page is sent what it can draw, not all requests"
    )
    assert len(figure["figure"]["spec"]["layout"]["annotations"]) == len(USUAL) + 1
    beside = (before + counting_time()) / 2
    assert taken < 26 * beside, "twice what it takes where nothing else runs, as 8 s were of 4"


def test_the_range_of_summaries_is_that_of_the_sessions_own() -> None:
    """Nobody publishes how long a summary is; a session that holds some says it itself."""
    session = bk.Session(bk.load_trace("made-up-session"))
    (length,) = session.compactions()["summary"]
    outcomes = comparison(replay_setup(session), ["gemini-cli"]).outcomes["gemini-cli"]
    assert outcomes.least is outcomes.most
    assert set(outcomes.most.kept.summary_output) == {0, length}


def test_the_fold_shows_where_the_order_of_systems_turns(explorer: ConversationExplorer) -> None:
    (figure,) = parts(opened(explorer, "turning"), "turning", "figure")
    sentences = [part["text"] for part in parts(explorer, "turning", "text")]
    assert [words.partition(":")[0] for words in sentences] == [
        f"Window {window:,}" for window in (50_000, 100_000, 200_000, 400_000)
    ]
    turns = [words for words in sentences if ";" in words]
    edges = figure["figure"]["spec"]["layout"]["shapes"]
    upright = [edge for edge in edges if edge["x0"] == edge["x1"]]
    assert len(upright) == sum(words.count(";") for words in turns) > 0, (
        "each turn that is said is marked"
    )
    assert "a cached token costs 0.1 times an uncached one" in figure["figure"]["note"]


def test_the_fold_of_turns_asks_before_it_replays_a_long_conversation() -> None:
    explorer = opened(ConversationExplorer(long_conversation(3_000)), "turning")
    assert parts(explorer, "turning", "figure") == []
    tell(explorer, "turning", work=True)
    assert len(parts(explorer, "turning", "figure")) == 1
