"""Compactions of recorded sessions: what a session has taken out of its requests is in none of the later ones."""

import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import budgetkit as bk
from budgetkit.trace import Message, Trace, readings, to_line

FORMATS = Path(__file__).parents[1] / "formats"
PLAIN = bk.requests.Framing()


def told(*roles: str, compactions: list[dict[str, Any]]) -> Trace:
    """A conversation whose message number n is of n + 1 tokens, counted by character."""
    messages = tuple(
        Message({"role": role, "content": "x" * (n + 1)}) for n, role in enumerate(roles)
    )
    return Trace("toy", messages, fields={"compactions": compactions})


def test_a_compaction_takes_out_what_stands_before_what_it_keeps() -> None:
    """system 1, user 2, assistant 3, user 4, | summary 5, from the user's 4 on kept | assistant 6, user 7."""
    roles = ("system", "user", "assistant", "user", "user", "assistant", "user")
    trace = told(*roles, compactions=[{"at": 4, "first_kept": 3}])
    frame = trace.demand(len, framing=PLAIN)
    assert frame[["system", "history", "current"]].to_numpy().tolist() == [
        [1, 0, 2],
        [1, 2 + 3, 4],
        [1, 4, 5],  # the summary opens a turn: what is before the kept message has gone
        [1, 4 + 5 + 6, 7],
    ]
    assert [len(message.text) for message in trace.request(3)] == [1, 4, 5]
    assert [item.tokens for item in trace.items(4, len, framing=PLAIN)] == [1, 4, 5, 6, 7]


def test_the_second_compaction_takes_out_the_first_summary() -> None:
    trace = told(
        *("user", "assistant") * 4,
        compactions=[{"at": 2, "first_kept": 2}, {"at": 6, "first_kept": 5}],
    )
    assert trace.gone[:7].tolist()[:6] == [2, 2, 6, 6, 6, trace.gone[7]]
    assert [len(message.text) for message in trace.request(4)] == [6, 7]


def test_messages_that_a_compaction_keeps_by_name_stay() -> None:
    kept = [{"at": 3, "first_kept": 3, "kept": [0, "x"]}]
    trace = told("user", "assistant", "user", "user", compactions=kept)
    assert [len(message.text) for message in trace.request(3)] == [1, 4]


def test_what_claude_code_preserves_by_id_stays() -> None:
    def line(kind: str, uuid: str, **more: object) -> dict[str, object]:
        return {"type": kind, "uuid": uuid, "sessionId": "s", **more}

    preserved = {"preservedMessages": {"uuids": ["a", "gone"]}}
    lines = [
        line("user", "a", message={"role": "user", "content": "first"}),
        line("assistant", "b", message={"role": "assistant", "content": "second"}),
        line("system", "c", subtype="compact_boundary", content="Conversation compacted", compactMetadata=preserved),
        line("user", "d", isCompactSummary=True, message={"role": "user", "content": "summary"}),
        line("assistant", "e", message={"role": "assistant", "content": "third"}),
    ]  # fmt: skip
    (trace,) = bk.load_traces(_file("\n".join(map(json.dumps, lines))))
    assert [message.text for message in trace.request(2)] == ["first", "summary"]


@pytest.mark.parametrize("parent", ["summary", "b"])
def test_a_manual_compaction_of_claude_code_keeps_its_segment(parent: str) -> None:
    """The next record named the kept tail as its parent, and the summary was taken for a branch that was left."""

    def line(kind: str, uuid: str, parent: str | None, **more: object) -> dict[str, object]:
        return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", **more}

    segment = {"headUuid": "b", "anchorUuid": "summary", "tailUuid": "b"}
    measured = {"trigger": "manual", "preTokens": 9, "preservedSegment": segment}
    said = {"role": "user", "content": "summary"}
    lines = [
        line("user", "a", None, message={"role": "user", "content": "first"}),
        line("assistant", "b", "a", message={"role": "assistant", "content": "second"}),
        line("system", "c", None, logicalParentUuid="b", compactMetadata=measured),
        line("user", "summary", "c", isCompactSummary=True, message=said),
        line("user", "d", parent, message={"role": "user", "content": "third"}),
        line("assistant", "e", "d", message={"role": "assistant", "content": "fourth"}),
    ]
    (trace,) = bk.load_traces(_file("\n".join(map(json.dumps, lines))))
    (compaction,) = trace.fields["compactions"]
    assert (compaction["at"], compaction["trigger"]) == (2, "manual")
    texts = [message.text for message in trace.request(len(trace.turns))]
    assert texts == ["second", "summary", "third"]
    assert trace.warnings == ()


def test_the_first_form_of_pis_compactions_names_its_entry_by_number() -> None:
    """Entries count from 0, the session's own line among them."""
    said = [{"type": "message", "message": {"role": role, "content": text}} for role, text in _TALK]
    compaction = {"type": "compaction", "summary": "summary", "firstKeptEntryIndex": 3}
    lines = [{"type": "session", "id": "p"}, *said[:3], compaction, said[3]]
    (trace,) = bk.load_traces(_file("\n".join(map(json.dumps, lines))))
    assert [message.text for message in trace.request(len(trace.turns))] == ["three", "summary"]


_TALK = [("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four")]


@pytest.mark.parametrize(
    "wrong", [5, "x", [5], [{"at": 1}], [{"at": 9, "first_kept": 0}], [{"at": 0, "first_kept": 1}]]
)
def test_what_is_no_compaction_changes_nothing(wrong: object) -> None:
    trace = Trace(
        "toy", told("user", "assistant", compactions=[]).messages, fields={"compactions": wrong}
    )
    assert trace.demand(len, framing=PLAIN).to_numpy().sum() == 1


@pytest.mark.parametrize("name", ["pi.jsonl", "claude-code.jsonl", "codex.jsonl"])
def test_readings_follow_a_recorded_session_through_its_compaction(name: str) -> None:
    """In the samples the last answer is after the compaction; what is counted before it is what is left then."""
    trace = bk.load_trace(FORMATS / name)
    frame = readings(trace, len, PLAIN)
    last = int(frame["message_index"].iloc[-1])
    left = [
        m
        for m, gone in zip(trace.messages[:last], trace.gone[:last].tolist(), strict=True)
        if gone >= last
    ]
    assert int(frame["counted"].iloc[-1]) == sum(PLAIN.messages(left, len))
    assert int(frame["counted"].iloc[-1]) < sum(PLAIN.messages(trace.messages[:last], len))
    (again,) = bk.load_traces(_file(to_line(trace)))
    assert readings(again, len, PLAIN).equals(frame)


def _file(line: str) -> object:
    from io import BytesIO

    return BytesIO(line.encode())


@st.composite
def sessions(draw: st.DrawFn) -> Trace:
    roles = draw(
        st.lists(st.sampled_from(["user", "assistant", "assistant"]), min_size=2, max_size=14)
    )
    head = draw(st.sampled_from([[], ["system"]]))
    roles = [*head, *roles]
    ends = st.integers(0, len(roles) - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=3))
    compactions = [{"at": max(pair), "first_kept": min(pair)} for pair in sorted(pairs, key=max)]
    return told(*roles, compactions=compactions)


@given(sessions(), st.sampled_from(["turn", "request"]))
def test_demand_items_and_replay_hold_the_same_messages(trace: Trace, by: str) -> None:
    """Against a slow twin: a request holds each message before its end that no compaction before its end took out."""
    sizes = trace.counts(len, PLAIN)

    def held(sent: int) -> int:
        pairs = zip(sizes[:sent], trace.gone[:sent], strict=True)
        return int(sum(size for size, gone in pairs if gone >= sent))

    expected = [held(turn.sent) for turn in trace.turns]
    assert trace.demand(len, framing=PLAIN).to_numpy().sum(axis=1).tolist() == expected
    assert [
        sum(i.tokens for i in trace.items(t.number, len, framing=PLAIN)) for t in trace.turns
    ] == expected
    budget = bk.presets.working_memory(1_000_000, output=500)
    replayed = bk.replay(
        trace,
        budget,
        bk.policies.OldestFirst(),
        counter=len,
        framing=PLAIN,
        by=by,  # type: ignore[arg-type]
    )
    frame = replayed.frame()
    assert frame["sent"].tolist() == [held(int(sent)) for sent in replayed.placed.sents]
    assert np.all(frame["sent"] >= 0)
