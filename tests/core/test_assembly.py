"""From a plan to what is sent: order, pairs, and the text about the budget."""

from typing import cast

import pytest

import budgetkit as bk
from budgetkit import presets
from budgetkit.conversation import assembly
from tests.messages import system, user


def message(
    section: str, tokens: int, role: str, content: str, group: int | None = None
) -> bk.Item:
    return bk.Item(
        section, tokens, group=group, payload=bk.Message({"role": role, "content": content})
    )


def test_messages_stand_in_the_order_of_the_sections() -> None:
    """Whatever the order of the items; retrieved text goes out under a role that chat formats know."""
    items = [
        message("current", 5, "user", "And now?"),
        message("history", 5, "user", "Hello"),
        message("knowledge", 5, "context", "A fact."),
        message("system", 5, "system", "Be brief."),
    ]
    sent = assembly.messages(bk.fit(presets.working_memory(8_000, output=0), items))
    assert [(m["role"], m["content"]) for m in sent] == [
        ("system", "Be brief."),
        ("system", "A fact."),
        ("user", "And now?"),
        ("user", "Hello"),
    ]


def test_passages_are_not_sent_again_inside_the_message_they_came_with() -> None:
    """A trace keeps them on the message; a provider would refuse the field, and nobody has counted it."""
    raw = user("And now?", name="bob", contexts=[{"text": "A fact."}])
    plan = bk.fit(
        presets.working_memory(8_000, output=0), [bk.Item("current", 5, payload=bk.Message(raw))]
    )
    assert assembly.messages(plan) == [user("And now?", name="bob")]


def test_what_was_said_stays_in_the_order_it_was_said() -> None:
    """A tool's result follows its call although tool results are a section of their own."""
    items = [
        message("system", 5, "system", "Be brief."),
        message("user", 5, "user", "Weather?"),
        message("conversation", 5, "assistant", "I look it up.", group=1),
        message("tool", 5, "tool", "Sunny.", group=1),
        message("conversation", 5, "assistant", "Sunny."),
    ]
    sent = assembly.messages(bk.fit(presets.agent(8_000), items))
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "assistant"]


def test_dropped_items_are_not_sent_and_tool_schemas_go_beside() -> None:
    """Only what was kept."""
    schemas = bk.Item(
        "system", 5, payload=bk.Message({"role": "tools", "tools": [{"name": "look"}]})
    )
    plan = bk.fit(
        bk.Budget(10, (), [bk.Allocation("system"), bk.Allocation("a")]),
        [schemas, message("a", 9, "user", "x")],
    )
    assert assembly.messages(plan) == []
    assert assembly.tools(plan) == [{"name": "look"}]


@pytest.mark.parametrize("payload", [3, {"content": "no role"}])
def test_an_item_without_a_text_cannot_be_sent(payload: object) -> None:
    """The error names the section and what is known."""
    plan = bk.fit(bk.Budget(10, (), [bk.Allocation("a")]), [bk.Item("a", 1, payload=payload)])
    with pytest.raises(ValueError, match="Invalid payload in section 'a'"):
        assembly.messages(plan)


def test_a_plan_restored_without_its_texts_says_what_to_do() -> None:
    """It has all its numbers, and nothing to send; saved with them, the same messages go out."""
    plan = bk.fit(
        presets.chat(8_192), bk.load_trace("support-chat").items(3, len, presets.chat(8_192).roles)
    )
    refusal = "An item of section 'system' has no text. .* or save the plan with texts=True."
    with pytest.raises(ValueError, match=refusal):
        assembly.messages(cast(bk.Plan, bk.state.from_json(bk.state.to_json(plan))))
    assert assembly.messages(
        cast(bk.Plan, bk.state.from_json(bk.state.to_json(plan, texts=True)))
    ) == (assembly.messages(plan))


def test_a_plan_of_numbers_has_no_messages() -> None:
    """Nothing is made up."""
    with pytest.raises(ValueError, match="This plan contains only numbers"):
        assembly.messages(bk.allocate(bk.Budget(10, (), [bk.Allocation("a")]), {"a": 3}))


@pytest.mark.parametrize("tokens_a_line", [0, 1, 7, 90, 400])
def test_the_budget_text_never_understates_itself(tokens_a_line: int) -> None:
    """Whatever the counter, the number shown covers the plan and the text."""
    plan = bk.allocate(bk.Budget(4_000, (), [bk.Allocation("a", 500)]), {"a": 450})

    def count(text: str) -> int:
        return tokens_a_line * text.count("\n") + text.count("1")

    text = assembly.describe(plan, count, framing=bk.requests.FRAMINGS["text"])
    shown = int(text.split("Using ")[1].split("/")[0].replace(",", ""))
    assert shown >= plan.used + count(text)
    assert shown <= plan.used + count(text) + 2


def test_the_budget_text_fits_as_the_message_that_carries_it() -> None:
    """Where the text alone would fit and its message would not, it is left out; given as used is what is sent."""
    count = bk.counter("o200k_base")
    demand = {"system": 50}
    for window in range(50, 110):
        plan = bk.allocate(bk.Budget(window, (), [bk.Allocation("system")]), demand)
        text = assembly.describe(plan, count)
        sent = bk.requests.FRAMINGS["openai"].message(system(text), count) if text else 0
        assert sent <= plan.free
        assert not text or f"Using {plan.used + sent:,}/{window}" in text
    alone = bk.Budget(72, (), [bk.Allocation("system")])
    assert assembly.describe(bk.allocate(alone, demand), count) == ""
    assert assembly.describe(
        bk.allocate(alone, demand), count, framing=bk.requests.FRAMINGS["text"]
    )
