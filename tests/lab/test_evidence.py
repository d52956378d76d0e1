"""What is lost: which earlier messages a later one needs, and how much of that a policy leaves."""

from __future__ import annotations

from typing import Any

import pytest

import budgetkit as bk
from benchmarks.called import marked
from budgetkit.lab.replay.losses import PROXY
from tests.lab.test_replay import window
from tests.slow_replay import ONE_A_CHARACTER


def conversation(*said: str, **marks: list[int]) -> bk.Trace:
    """Users and assistants in turn; `m4=[0]` marks that message 4 needs message 0."""
    raw: list[dict[str, Any]] = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": text}
        for i, text in enumerate(said)
    ]
    for name, needed in marks.items():
        raw[int(name[1:])]["evidence"] = needed
    return bk.Trace("toy", tuple(bk.Message(each) for each in raw))


def pairs(trace: bk.Trace, **how: Any) -> list[tuple[int, int, str]]:
    frame = bk.deciding.evidence(trace, **how)
    return list(frame[["message", "needs", "term"]].itertuples(index=False, name=None))


def test_a_later_message_needs_the_one_that_introduced_what_it_names() -> None:
    trace = conversation(
        "My order A-1734 went to Oslo.",
        "I have it. It left on day_3.",
        "Is A-1734 in Oslo yet?",
        "It left on day_3.",
    )
    assert pairs(trace) == [(2, 0, "A-1734"), (3, 1, "day_3")]
    assert bk.deciding.evidence(trace)["source"].unique().tolist() == [PROXY]
    assert bk.deciding.evidence(trace)["turn"].tolist() == [2, 2]


def test_a_word_that_also_stands_in_lower_case_is_no_name() -> None:
    trace = conversation(
        "Please look at Bergen.", "I look.", "Please say: is Bergen dry? please!", "Yes."
    )
    assert pairs(trace) == [(2, 0, "Bergen")]


def test_what_is_named_within_a_turn_or_first_by_the_system_is_no_evidence() -> None:
    system = bk.Message({"role": "system", "content": "You serve Acme-1."})
    trace = bk.Trace(
        "toy",
        (system, *conversation("Use B-22.", "B-22 it is.", "What is Acme-1?", "A shop.").messages),
    )
    assert pairs(trace) == []


def test_marks_are_taken_at_their_word_and_leave_the_proxy_out() -> None:
    trace = conversation("Order A-1734.", "Yes.", "And A-1734?", "No.", "Thanks.", m4=[1, 0])
    assert pairs(trace) == [(4, 1, ""), (4, 0, "")]
    assert bk.deciding.evidence(trace)["source"].unique().tolist() == ["marked"]
    assert pairs(trace, by="names") == [(2, 0, "A-1734")]
    assert pairs(conversation("A-1", "b"), by="marks") == []


def test_a_mark_that_points_forward_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"Invalid evidence 2 in message 2 of trace 'toy'. Use the id or index"
    ):
        bk.deciding.evidence(conversation("a", "b", "c", m2=[2]))
    with pytest.raises(
        ValueError, match="Invalid by: 'luck'. Choose one of: 'auto', 'marks', 'names"
    ):
        bk.deciding.evidence(conversation("a"), by="luck")  # type: ignore[arg-type]


def test_marks_may_name_messages_by_their_ids() -> None:
    trace = conversation(
        "I live in Bergen.",
        "Noted.",
        "Where do I live?",
        "In Bergen.",
        m2=["D1:1"],  # type: ignore[list-item]
    )
    named = bk.Trace(
        "toy",
        tuple(bk.Message({**m.raw, "dia_id": f"D1:{n}"}) for n, m in enumerate(trace.messages, 1)),
    )
    assert pairs(named) == [(2, 0, "")]
    with pytest.raises(
        ValueError,
        match="Invalid evidence 'D1:1' in message 2 of trace 'toy'. Use the id or index",
    ):
        pairs(trace)


def test_a_word_that_many_messages_have_tells_nothing_and_a_plain_one_that_few_have_does() -> None:
    """A speaker's name stands in all messages; the dog, named for the first time in message 2, in two."""
    said = [
        *("Anna here, hello.", "Hello Anna.", "Anna again: my dog barks."),
        *("Oh Anna.", "Anna asks: the weather?"),
    ]
    said += ["Rain, Anna.", "And who barks, says Anna?", "Yours, Anna."]
    assert (6, 2, "barks") in pairs(conversation(*said))
    assert "Anna" not in {term for _, _, term in pairs(conversation(*said))}


def lost(trace: bk.Trace, policy: bk.policies.Policy, size: int) -> list[tuple[int, int]]:
    outcome = bk.replay(trace, window(size), policy, counter=len, framing=ONE_A_CHARACTER)
    return list(
        bk.deciding.losses(outcome)[["needed", "present"]].itertuples(index=False, name=None)
    )


MARKED = conversation("x" * 10, "y" * 10, "x" * 10, "y" * 10, "x" * 10, "y" * 10, m4=[0, 3], m5=[2])


def test_evidence_is_present_as_long_as_its_message_is() -> None:
    """Turn 3 asks for messages 0, 3 and 2; in a window of 40, of which it takes 10, messages 1 to 3 are left."""
    assert lost(MARKED, bk.policies.OldestFirst(), 100) == [(0, 0), (0, 0), (3, 3)]
    assert lost(MARKED, bk.policies.OldestFirst(), 40) == [(0, 0), (0, 0), (3, 2)]
    assert lost(MARKED, bk.policies.SlidingWindow(1), 100) == [(0, 0), (0, 0), (3, 2)]


def test_what_was_summarised_or_shrunk_counts_as_lost() -> None:
    assert lost(MARKED, bk.policies.Summarise(2, 1), 40) == [(0, 0), (0, 0), (3, 2)]


def test_what_a_call_copies_from_an_earlier_turn_is_marked_and_nothing_else_is() -> None:
    """The newest message with the value is marked; what this turn, the system or a schema says needs nothing."""
    arguments = '{"to": "Ada Byron", "order": 4711, "how": "courier", "by": "air-mail", "tag": "x"}'
    raw: list[dict[str, Any]] = [
        {"role": "system", "content": "Send by courier."},
        {"role": "user", "content": "I am Ada Byron, tag x."},
        {"role": "assistant", "content": "Ada Byron, order 4711."},
        {"role": "user", "content": "And order 47110?"},
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": "Send it by air-mail."},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "function": {"name": "send", "arguments": arguments}}],
        },
    ]
    found = marked({"id": "a", "messages": raw})
    assert found is not None
    assert [each.get("evidence") for each in found["messages"]] == [None] * 6 + [[2]]
    trace = bk.Trace("a", tuple(map(bk.Message, found["messages"])))
    assert pairs(trace) == [(6, 2, "")]
    oldest = marked({"id": "a", "messages": raw}, first=True)
    assert oldest is not None
    assert oldest["messages"][6]["evidence"] == [1, 2]
    assert marked({"id": "a", "messages": raw[:6]}) is None


def test_calls_that_a_turn_is_expected_to_make_are_read_too() -> None:
    said = [
        {"role": "user", "content": "Make plan.txt."},
        {"role": "user", "content": "Now sort it."},
    ]
    calls = [["touch('plan.txt')"], ["sort('plan.txt')"]]
    found = marked({"id": "a", "messages": said, "meta": {"expected_calls_per_turn": calls}})
    assert found is not None
    assert found["messages"][1]["evidence"] == [0]
