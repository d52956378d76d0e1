"""Passages of a section as one message (document 002): what goes out, and a plan that counts it as it goes out."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.conversation.assembly import messages
from budgetkit.conversation.reading import Listing
from budgetkit.requests import FRAMINGS
from tests.conftest import examples

COUNT = bk.counter("gpt-4o")
PASSAGES = [
    ("Refunds take five days.", 0.9),
    ("Parcels leave at noon.", 0.4),
    ("Returns are free.", 0.7),
]
EPISODES = ["Last week she asked for a refund.", "In May she moved."]


def words(number: int) -> str:
    return " ".join(["word"] * number)


def count_words(text: str) -> int:
    return len(text.split())


def test_octopus_sends_what_it_retrieved_as_one_message_and_the_episodes_as_another() -> None:
    """002: FormattedContext and FormatEpisodes are one message each; components stand in the document's order."""
    built = bk.build(
        bk.presets.working_memory(8_000, output=500),
        COUNT,
        context_role="context",
        as_one={
            "knowledge": "What is known:",
            "episodes": Listing("What happened:", "{number}. {text}", "\n"),
        },
        system="Be brief.",
        procedure="Ask for the order's number.",
        knowledge=PASSAGES,
        episodes=EPISODES,
        history=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}],
        current="Where is my refund?",
    )
    known = "Refunds take five days.\n\nParcels leave at noon.\n\nReturns are free."
    assert [(message["role"], message["content"]) for message in built.messages] == [
        ("system", "Be brief."),
        ("system", "Ask for the order's number."),
        ("context", f"What is known:\n\n{known}"),
        ("context", "What happened:\n1. Last week she asked for a refund.\n2. In May she moved."),
        ("user", "Hello"),
        ("assistant", "Hello."),
        ("user", "Where is my refund?"),
    ]
    sent = [
        {**message, "role": message["role"].replace("context", "system")}
        for message in built.messages
    ]
    assert built.plan.used == bk.count_request({"model": "gpt-4o", "messages": sent}).tokens


def test_the_numbers_of_the_document_hold() -> None:
    """002: 150,000 − 1,200 − 300 − 1,500 − 400 − 500 leave 146,100 for the history."""
    built = bk.build(
        bk.presets.working_memory(150_000, kind="usable", current="fixed"),
        count_words,
        framing=FRAMINGS["text"],
        as_one=("knowledge", "episodes"),
        system=words(1_200),
        procedure=words(300),
        knowledge=[words(500)] * 3,
        episodes=[words(100)] * 4,  # one more than the three most alike that the document recalls
        history=[{"role": "user", "content": words(10)}],
        current=words(20),
    )
    assert built.plan["knowledge"].granted == 1_500
    assert built.plan["episodes"].granted == 300
    assert built.plan["history"].limit == 146_100 + 100
    assert len(built.messages) == 6


def test_what_is_empty_or_dropped_leaves_no_title_behind() -> None:
    budget = bk.presets.rag(4_000).assign(retrieval=5)
    as_one = {"retrieval": "Known:", "memory": "Before:"}
    built = bk.build(budget, COUNT, as_one=as_one, retrieval=PASSAGES, user="Hi")
    assert [message["content"] for message in built.messages] == ["Hi"]


def test_the_last_message_pays_for_the_request() -> None:
    built = bk.build(
        bk.presets.rag(4_000), "gpt-4o", as_one={"retrieval": "Known:"}, retrieval=PASSAGES
    )
    assert len(built.messages) == 1
    assert (
        built.plan.used == bk.count_request({"model": "gpt-4o", "messages": built.messages}).tokens
    )


@pytest.mark.parametrize(
    ("as_one", "sentence"),
    [
        (
            ["conversation"],
            "as_one cannot list 'conversation': it contains a message of role 'user'",
        ),
        (["retrievel"], "retrieval"),
        ({"retrieval": "ok", "nonsense": "no"}, "nonsense"),
    ],
)
def test_what_cannot_be_one_message_is_refused(as_one: Any, sentence: str) -> None:
    talk = [{"role": "user", "content": "Hello"}]
    with pytest.raises((LookupError, ValueError), match=sentence):
        given: dict[str, Any] = {"conversation": talk, "retrieval": PASSAGES, "user": "Hi"}
        bk.build(bk.presets.rag(4_000), COUNT, as_one=as_one, **given)


@pytest.mark.parametrize("entry", ["", "{number}", "{", "{text.missing}", "{other}"])
def test_an_entry_that_would_lose_its_text_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="Invalid entry of a listing: .* Expected a template with"):
        Listing(entry=entry)


@settings(max_examples=examples(150), deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    cap=st.integers(1, 150),
    title=st.sampled_from(
        ["", "Known:", "A title of many words that costs more than some of the passages do"]
    ),
    entry=st.sampled_from(["{text}", "{number}. {text}"]),
    granularity=st.sampled_from(["item", "token"]),
    fill=st.sampled_from(["prefix", "skip"]),
)
def test_a_plan_never_says_less_than_is_sent_and_nothing_is_over_its_cap(
    sizes: list[int], cap: int, title: str, entry: str, granularity: Any, fill: Any
) -> None:
    """Whatever stays, its title, the marks between the entries and the message itself are within the cap."""
    section = bk.Allocation("knowledge", cap, keep="best", fill=fill, granularity=granularity)
    budget = bk.Budget(2_000, (), [section, bk.Allocation("current")], roles={"current": "current"})
    passages = [(words(size), 1 / place) for place, size in enumerate(sizes, 1)]
    listing = {"knowledge": Listing(title, entry)}
    built = bk.build(budget, COUNT, as_one=listing, knowledge=passages, question="Where is it?")
    sent = bk.count_request({"model": "gpt-4o", "messages": built.messages}).tokens
    assert sent <= built.plan.used
    assert built.plan["knowledge"].granted <= cap
    kept = [
        decision
        for decision in built.plan.decisions
        if decision.section == "knowledge" and decision.kept
    ]
    assert len(built.messages) == 1 + bool(kept)


def test_a_plan_is_written_as_one_in_the_same_sections_as_it_is_built() -> None:
    """`messages` took any section: a question became part of a list, and a misspelt name listed nothing."""
    built = bk.build(
        "rag", window=8_192, retrieval=PASSAGES, question="Where?", context_role="user"
    )
    as_one = {"retrieval": "Known:"}
    texts = messages(built.plan, context_role="user", as_one=as_one)
    assert [message["content"][:6] for message in texts] == ["Known:", "Where?"]
    with pytest.raises(LookupError, match="Unknown section 'retreival'"):
        messages(built.plan, as_one=["retreival"])
    refusal = "as_one cannot list 'user': it contains a message of role 'user'"
    with pytest.raises(ValueError, match=refusal):
        messages(built.plan, as_one=["user"])
