"""What a plan says of what is lost: the section, the tokens, the items, the reason, and what would mend it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given

import budgetkit as bk
from budgetkit import presets
from budgetkit.plan.decisions import losses_of
from tests.strategies import DEMANDS, ITEMS, budgets


def test_over_a_cap_and_in_a_full_window_are_two_sentences() -> None:
    """Four items of 40: one is over its section's cap of 150, one more finds the window full."""
    lines = [bk.Allocation("system", required=True), bk.Allocation("history", 150, keep="newest")]
    budget = bk.Budget(150, (), lines, deficit="signed")
    assert bk.fit(budget, [bk.Item("system", 60), *[bk.Item("history", 40)] * 4]).warnings == (
        "history loses 40 of 160 tokens (1 item) because it is over its cap (150). The cap cannot rise. Lower "
        "other caps or a reserve, choose a larger window, or shorten the text.",
        "history loses 40 of 160 tokens (1 item) because the window (150) is full. "
        "Lower a reserve, shorten another section, or choose a window larger by 40.",
    )


def test_a_cap_is_not_said_to_be_raised_beyond_what_the_window_holds() -> None:
    """Of 1,000 tokens system may take 100 and history 600; so 300 are left, and history can have 900 at most."""
    budget = bk.Budget(1_000, (), [bk.Allocation("system", 100), bk.Allocation("history", 600)])
    fits, too_much = (bk.allocate(budget, {"history": asked}).warnings[0] for asked in (900, 2_000))
    assert "Raise the cap to 900, or shorten the text" in fits
    assert (
        "The cap can rise to 900, or further if unused caps are lowered: system (100). To keep all of it, lower a "
        "reserve, choose a larger window, or shorten the text" in too_much
    )
    assert bk.allocate(budget.assign(history=900), {"history": 900}).warnings == ()


def test_a_full_pool_is_not_a_full_window_and_idle_caps_are_named() -> None:
    """0.1.0 told of a full window with 5,464 tokens free."""
    budget = presets.chat(8_192)
    plan = bk.fit(budget, [bk.Item("system", 800), bk.Item("user", 700), bk.Item("tool", 1_000)])
    assert plan.free == 5_464
    assert plan.decisions[2].reason == "shared pool full"
    frame = plan.frame().set_index("section")
    assert (frame.loc["tool", "dropped_by_window"], frame.loc["tool", "dropped_by_pool"]) == (0, 1)
    assert plan.warnings == (
        "tool loses 1,000 of 1,000 tokens (1 item) because the shared pool (1,640) is full. These caps have unused "
        "tokens: retrieval (2,048), conversation (1,638), memory (819), system (19). Lower one of them, or give the "
        "section its own cap.",
    )
    mended = replace(
        budget, allocations=[*budget.allocations, bk.Allocation("tool", 1_000)]
    ).assign(retrieval=1_000)
    assert (
        bk.fit(
            mended, [bk.Item("system", 800), bk.Item("user", 700), bk.Item("tool", 1_000)]
        ).warnings
        == ()
    )
    numbers = bk.allocate(budget, {"user": 700, "tool": 1_000})
    assert (
        "tool loses 60 of 1,000 tokens because the shared pool (1,640) is full"
        in numbers.warnings[0]
    )


def test_a_text_that_goes_because_no_cut_was_given() -> None:
    """Plan #195 cuts its lists by lines: 0.1.0 dropped 1,199 tokens of them without a word."""
    budget, count = presets.agent_prompt(), bk.counter("gpt-4o")
    text = "\n".join(f"step {i} was done and written down" for i in range(150))
    item = bk.Item("action_history", count(text), payload=text)
    plan = bk.fit(budget, [item])
    assert plan.decisions[0].reason == "no cut was given"
    assert "(1 item) because fit got no cut function. Pass one, as in fit(" in plan.warnings[0]
    cut = bk.fit(budget, [item], bk.truncation.cutter(count))
    assert cut["action_history"].granted > 350
    assert "(1 item cut) because it is over its cap (400)" in cut.warnings[0]


def test_an_answer_longer_than_the_model_writes() -> None:
    """gpt-4o writes 16,384 tokens at most; what is held beyond is lost to the prompt."""
    assert bk.allocate(presets.chat("gpt-4o", output=16_384), {}).warnings == ()
    for make in (
        presets.chat,
        presets.rag,
        presets.agent,
        presets.working_memory,
        presets.memory_engine,
    ):
        plan = bk.allocate(make(bk.model("gpt-4o"), output=20_000), {})
        assert plan.warnings == (
            "output holds 20,000 tokens, but the model writes at most 16,384, leaving 3,616 of them unused. "
            "Lower it to 16,384.",
        )
    budget = presets.agent_prompt("gpt-4o", {"output_reserve": 20_000})
    assert "leaving 3,616 of them unused" in bk.allocate(budget, {}).warnings[0]
    assert bk.state.from_json(bk.state.to_json(budget)).max_output == 16_384  # type: ignore[union-attr]


def test_a_section_that_nobody_declared_and_that_is_called_almost_as_one() -> None:
    """It draws on the pool in silence no longer; other names, and those that ask for nothing, are left alone."""
    budget = presets.rag(8_192)
    with pytest.warns(UserWarning, match="retreival is not declared"):
        plan = bk.allocate(budget, {"retreival": 500})
    assert plan.warnings == (
        "retreival is not declared and takes 500 tokens from the shared pool. Did you mean retrieval?",
    )
    assert bk.allocate(budget, {"tools": 500, "retreival": 0}).warnings == ()


def test_what_is_switched_off_beyond_the_best_or_dropped_with_its_group() -> None:
    """Each has its own reason and its own remedy."""
    lines = [
        bk.Allocation("a", 0),
        bk.Allocation("b", limit_items=1),
        bk.Allocation("c", 5, overflow="drop"),
    ]
    items = [
        bk.Item("a", 3),
        bk.Item("b", 4),
        bk.Item("b", 6),
        bk.Item("c", 7),
        bk.Item("d", 8, group=1),
    ]
    plan = bk.fit(
        bk.Budget(100, (), [*lines, bk.Allocation("d")]), [*items, bk.Item("c", 1, group=1)]
    )
    assert plan.warnings == (
        "c loses 8 of 8 tokens (2 items), dropped whole, because it is over its cap (5). Raise the cap to 8, or "
        "shorten the text.",
        "d loses 8 of 8 tokens (1 item) because a message that must stay with it was dropped. Give that "
        "message's section more tokens.",
        "b loses 6 of 10 tokens (1 item) because it keeps only its best item. Raise limit_items in code, or "
        "send fewer items.",
        "a loses 3 of 3 tokens (1 item) because it is switched off by its cap of 0. Give it a cap of 3.",
    )


@pytest.mark.parametrize("window", [1, 5_000, 8_192])
def test_no_alarm_where_nothing_is_lost(window: int) -> None:
    """Caps that could not all be used at once are no loss while nobody asks for them."""
    plan = bk.allocate(presets.working_memory(window), {})
    assert plan.warnings == () if window > 4_096 else "exceeds" in plan.warnings[0]


@given(budgets(), ITEMS, DEMANDS)
def test_every_token_that_is_lost_is_told_once(
    budget: bk.Budget, items: list[bk.Item], demand: dict[str, int]
) -> None:
    """As numbers and as items, the losses add up to what was asked less what was granted; each is a sentence."""
    for plan in (bk.allocate(budget, demand), bk.fit(budget, items)):
        told = losses_of(plan.budget, plan.grants, plan.decisions, plan.free)
        for grant in plan.grants:
            assert (
                sum(loss.tokens for loss in told if loss.allocation.section == grant.section)
                == grant.cut
            )
            assert not grant.cut or any(
                said.startswith(f"{grant.section} ") for said in plan.warnings
            )
        dropped = sum(decision.outcome == "dropped" for decision in plan.decisions)
        assert sum(loss.items for loss in told) == dropped
        if (
            not told
            and plan.free >= 0
            and all(a.cap is None or not a.required for a in plan.budget.allocations)
        ):
            assert plan.warnings == ()


def test_an_overrun_window_is_to_grow_by_what_the_others_take_too() -> None:
    """3,000 of system, 500 of output and a floor of 4,000 already take 3,500 more than a window of 4,000."""
    budget = presets.working_memory(4_000, output=500, history_floor=4_000)
    plan = bk.allocate(budget, {"system": 3_000, "history": 9_000})
    assert "choose a window larger by 8,500." in plan.warnings[-1]
    assert not bk.allocate(budget.assign(window=12_500), {"system": 3_000, "history": 9_000}).losses


@given(budgets(), ITEMS, DEMANDS)
def test_a_window_that_is_named_ends_the_loss(
    budget: bk.Budget, items: list[bk.Item], demand: dict[str, int]
) -> None:
    budget = replace(budget, deficit="signed")
    for content, planned in ((demand, bk.allocate), (items, bk.fit)):
        plan_of: Callable[[bk.Budget, object], bk.Plan] = planned  # type: ignore[assignment]
        plan = plan_of(budget, content)
        for loss in plan.losses:
            section = loss.allocation.section
            told = f"{section} loses {loss.tokens:,} "
            for warning in plan.warnings:
                named = re.search(r"window larger by ([\d,]+)", warning)
                if named and warning.startswith(told):
                    window = budget.window + int(named[1].replace(",", ""))
                    larger = plan_of(budget.assign(window=window), content)
                    assert larger[section].granted >= plan[section].granted + loss.tokens
