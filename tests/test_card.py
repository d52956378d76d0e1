"""The design card: what is what kind of text, how far off the cheap count is, and what a budget holds in truth."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.accuracy.corpora import shipped
from budgetkit.app.kinds import CLASSES, by_kind, kinds_of
from budgetkit.app.strip import Room
from budgetkit.message import Message

SAID = (
    "这个函数返回一个列表，里面是所有的订单。\n\nCan you tell me why it is slow?\n\n"
    "```python\nfor order in orders:\n    total\n```"
)


def test_a_text_is_parted_by_kind() -> None:
    assert by_kind(SAID) == {
        "CJK": "这个函数返回一个列表，里面是所有的订单。",
        "prose": "Can you tell me why it is slow?",
        "code": "for order in orders:\n    total",
    }
    assert by_kind('{"id": 17, "state": "open"}') == {"code": '{"id": 17, "state": "open"}'}
    assert by_kind("") == by_kind(" \n\n ") == {}


@given(st.text(max_size=400))
def test_no_printed_character_is_lost_but_the_fences(text: str) -> None:
    plain = text.replace("`", "").replace("~", "")
    assert sorted("".join("".join(by_kind(plain).values()).split())) == sorted("".join(plain.split()))


@pytest.mark.parametrize(
    "said",
    [
        "I paid $1,250.00 on 2024-05-13 at 10:30 for 3 tickets (order #48213).",
        "My flight is HAT204, it leaves at 14:30 on May 20 and costs $152.",
        "In 2019 we sold 1,204 units, in 2020 1,530 and in 2021 2,001.",
    ],
)
def test_chat_with_numbers_is_no_code(said: str) -> None:
    assert by_kind(said) == {"prose": said}


@pytest.mark.parametrize(
    "said",
    [
        "I owe you $5 (five).",
        "€5 (five) is enough for me.",
        "Call me (after 6 pm) on Monday.",
        "Lunch at 12:30? (my treat)",
        "Please bring: (a) milk, (b) eggs, (c) bread.",
        '"Yes," she said, "at 8."',
        'She said: "I won\'t (ever) go there again!"',
        "The price went from $3 to $5 (a 66 % rise).",
        "Note: see section 4.2 (page 17).",
        "He is 6'2\" tall and weighs 180 lbs.",
        "The ratio is 3:1 (roughly).",
        "Ticket #123: login broken (again)",
        'A&B\'s "best" offer: 2 for $5!',
        "On 24/12/2025 we close at 2 pm.",
        "Room 101, Building B (2nd floor)",
        "Chapter 5: The Fall (1914-1918)",
        "See https://example.com/docs for more.",
        "Q: Is it open? A: Yes.",
        "- Buy milk\n- Buy 2 eggs (large)\n- Call Ana (Tuesday)",
        "1. Read the contract (all 12 pages)\n2. Sign it, please\n3. Send it back",
    ],
)
def test_sentences_with_brackets_money_and_quotes_are_prose(said: str) -> None:
    assert by_kind(said) == {"prose": said}


@pytest.mark.parametrize(
    "said",
    [
        "import os",
        "from os import path",
        'print("I owe you five dollars")',
        "for i in range(3): print(i)",
        "def f(x): return x + 1",
        "total = price * count",
        'raise ValueError("the section is not in the budget")',
        "with open(path) as f: data = f.read()",
        "if (a < b) { return a; }",
        "const x = await fetch(url);",
        "let total = items.length;",
        "return x;",
        "public class Foo extends Bar {}",
        "a[i] += b[i] * c;",
        "#include <stdio.h>",
        "SELECT name, age FROM users WHERE age > 30",
        '{"name": "Ana", "owes": "five dollars (5)"}',
        "<p>Hello there, this is a paragraph.</p>",
        "export PATH=$HOME/bin:$PATH",
        "foo()",
    ],
)
def test_short_pieces_of_code_are_code(said: str) -> None:
    assert by_kind(said) == {"code": said}


def test_no_text_is_slow_to_judge() -> None:
    before = process_time()
    by_kind("a b c 1" + ".,'" * 100_000 + "x_")
    assert process_time() - before < 2


@pytest.mark.parametrize("said", ["1,2,3,4\n5,6,7,8", "2024-05-01 10:00:01 INFO started worker 12", "x = 3 + 4"])
def test_numbers_without_a_sentence_are_code(said: str) -> None:
    assert by_kind(said) == {"code": said}


@pytest.mark.parametrize(("kind", "found"), [("code", 0.93), ("data", 0.99), ("markup", 0.9), ("cjk prose", 1.0)])
def test_kinds_are_told_apart_on_the_shipped_texts(kind: str, found: float) -> None:
    wanted = next(name for name, classes in CLASSES.items() if kind in classes)
    parts = [by_kind(text) for text in shipped().where(lambda document: document.kind == kind).texts]
    right = sum(len(part.get(wanted, "")) for part in parts)
    assert right / sum(len(text) for part in parts for text in part.values()) >= found


def test_what_a_tool_is_called_with_is_code() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"what": "a parcel"}'}}
    trace = bk.Trace("toy", (Message({"role": "assistant", "content": "Let me look.", "tool_calls": [call]}),))
    assert [(each.kind, each.text) for each in kinds_of(trace)] == [
        ("prose", "Let me look."),
        ("code", '{"what": "a parcel"}'),
    ]


@pytest.mark.parametrize(
    ("really", "said"),
    [
        (3_600, ("waste", "400 unused")),
        (4_000, ("exact", "as planned")),
        (4_500, ("safe", "500 from safety")),
        (5_500, ("pool", "1,500 from the pool")),
        (5_600, ("over", "100 too many")),
    ],
)
def test_safety_gives_first_then_the_pool_then_the_window_is_full(really: int, said: tuple[str, str]) -> None:
    assert Room("history", 4_000, safety=500, pool=1_000).verdict(really) == said


def test_errors_are_those_of_compare_summed_up_by_kind() -> None:
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    prose = bk.accuracy.errors.compare(["chars/4"], shipped().where(lambda document: document.kind == "prose"))
    row = card.errors[(card.errors["kind"] == "prose") & (card.errors["where"] == "shipped texts")].iloc[0]
    assert (row["exact"], row["estimate"]) == (prose["exact"].sum(), prose["estimate"].sum())
    assert row["really"] == round(card.plan.remainder * prose["exact"].sum() / prose["estimate"].sum())
    assert set(card.errors["kind"]) == {"code", "CJK", "prose"}


def test_a_slider_moves_what_the_errors_mean_and_counts_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    before = card.errors
    monkeypatch.setattr("budgetkit.app.misjudged.compare", lambda *given: pytest.fail("counted again"))
    card.controls.lines["conversation"].slider.value = 30
    assert (card.errors["error"] == before["error"]).all()
    assert (card.errors["really"] > before["really"]).all()
    card.controls.lines["safety"].slider.value = 8
    rows = card.view.state["strip"]["rows"]
    assert rows[0]["verdict"].endswith("from safety")
    card.undo()
    assert card.view.state["strip"]["rows"][0]["verdict"].endswith("from the pool")


def test_the_sentence_says_what_the_budget_means() -> None:
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    said = card.view.state["headline"]["text"]
    assert said == (
        "The conversation may take 1,638 tokens, enough for 10 of 35 turns; 1,640 more are shared, "
        "1,228 wait for the answer."
    )
    card.controls.lines["conversation"].slider.value = 90
    assert card.view.state["headline"]["text"].startswith("Reserves and caps promise 4,094 tokens more")


@pytest.mark.parametrize("preset", list(bk.presets.PRESETS))
@pytest.mark.parametrize("trace", [None, "support-chat"])
def test_every_preset_has_a_card(preset: str, trace: str | None) -> None:
    card = bk.DesignCard(preset, trace)
    assert len(card.view.state["strip"]["rows"]) == (6 if trace else 3)
    assert card.view.state["headline"]["text"].endswith(".")
    none = [row for row in card.view.state["strip"]["rows"] if row["level"] == "none"]
    assert [row["kind"] for row in none] == (["CJK"] if trace else [])


def test_a_cheap_counter_that_is_chosen_is_the_one_that_is_judged() -> None:
    card = bk.DesignCard("chat", counter="chars/3.5", window=8_192)
    assert card.view.state["strip"]["title"] == "How far off is chars/3.5?"
    card.controls.model.value = "claude-sonnet-4-5"
    assert "which stands in for claude-sonnet-4-5" in card.view.state["strip"]["note"]


def test_a_card_opens_files_as_the_explorer_does() -> None:
    card = bk.DesignCard("chat")
    assert [each["purpose"] for each in card.view.opens] == ["file", "setup"]
    assert card.controls.trace.label == "typed in below"  # and not nothing at all
    card.controls.trace.value = "support-chat"
    card.controls.trace.value = None
    assert (card.controls.trace.label, card.config["trace"]) == ("typed in below", None)
