"""What solving promises of the next conversation, and when it may say that nothing will do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetkit as bk
from budgetkit.lab.deciding import Condition, at_least, bill_at_most, cut_at_most, solve_models
from budgetkit.plan.reasons import settled_window
from tests.lab.test_deciding import BUDGET, conversations, turns


@pytest.mark.parametrize("conversations_seen", [19, 40])
def test_of_the_next_conversations_as_many_are_cut_as_was_promised(conversations_seen: int) -> None:
    """The window for 95 of 100 of those seen cut 9 to 13 of 100 others."""
    random = np.random.default_rng(conversations_seen)
    cut = []
    for _ in range(120):
        sizes = np.rint(random.lognormal(8, 0.8, conversations_seen + 40)).astype(int)
        seen = [turns(int(size)) for size in sizes[:conversations_seen]]
        window = bk.deciding.solve(seen, BUDGET, "window", cut_at_most(0.05)).value
        assert window is not None
        cut.append(float((sizes[conversations_seen:] + 1_500 > window).mean()))
    assert np.mean(cut) <= 0.06


def test_of_fewer_conversations_than_a_promise_needs_there_is_a_sentence_and_no_number() -> None:
    seen = [turns(1_000 * n) for n in range(1, 9)]
    solution = bk.deciding.solve(seen, BUDGET, "window", cut_at_most(0.05))
    assert solution.value is None and not solution.holds
    assert str(solution) == (
        "Found no window in which at most 5 % of the next conversations are cut on average: a promise at 5 % risk "
        "needs 19 conversations, but there are 8. The smallest window that cuts none of these is 9,500 tokens."
    )
    assert (
        bk.deciding.solve(seen, BUDGET, "window", cut_at_most(0.05, only_these=True)).value == 9_500
    )
    assert "needs 99 conversations" in str(
        bk.deciding.solve(seen * 5, BUDGET, "window", cut_at_most(0.01))
    )


def test_a_window_is_looked_for_as_far_as_its_shares_ask() -> None:
    """No window will do, said 0.2.0, which looked up to 1,402."""
    budget = bk.Budget(1_000, [], [bk.Allocation("a", cap=bk.Share(0.1)), bk.Allocation("b")])
    assert bk.deciding.solve({"a": 500, "b": 100}, budget, "window").value == 5_000
    narrow = budget.assign(a=bk.Share("0.001"))
    assert (
        bk.deciding.solve({"a": 500, "b": 100}, narrow.assign(window=10_000), "window").value
        == 500_000
    )
    reserved = bk.Budget(1_000, [bk.Reserve("output", bk.Share("0.9"))], [bk.Allocation("a")])
    assert bk.deciding.solve({"a": 500}, reserved, "window").value in (4_991, 5_000)


@pytest.mark.parametrize(
    "budget",
    [
        bk.Budget(
            1_000, [], [bk.Allocation("a", cap=bk.Share(0.1, at_most=400)), bk.Allocation("b")]
        ),
        bk.Budget(1_000, [], [bk.Allocation("a", cap=400), bk.Allocation("b")]),
        bk.Budget(
            1_000, [bk.Reserve("output", bk.Share(1.0))], [bk.Allocation("a")], deficit="signed"
        ),
    ],
)
def test_that_no_window_will_do_is_said_where_it_is_so(budget: bk.Budget) -> None:
    solution = bk.deciding.solve({"a": 500}, budget, "window")
    assert str(solution).startswith("There is no window in which nothing is cut: ")
    for window in (10_000, 1_000_000, 100_000_000):
        assert bk.allocate(budget.assign(window=window), {"a": 500})["a"].cut > 0


def test_of_a_condition_that_nobody_knows_it_is_not_said_that_nothing_will_do() -> None:
    never = Condition("the moon is full", lambda _: False)
    assert str(bk.deciding.solve({"history": 10}, BUDGET, "window", never)).startswith(
        "Found no window in which the moon"
    )


@pytest.mark.parametrize("preset", ["chat", "rag", "agent", "memory_engine"])
def test_beyond_the_settled_window_none_grants_more(preset: str) -> None:
    budget = bk.presets.PRESETS[preset](50_000)
    needs = dict.fromkeys(budget.sections, 3_000)
    settled = settled_window(budget, needs)
    granted = [
        {
            grant.section: grant.granted
            for grant in bk.allocate(budget.assign(window=window), needs).grants
        }
        for window in (settled, 2 * settled, 7 * settled)
    ]
    assert granted[0] == granted[1] == granted[2]


def test_a_section_may_be_given_so_many_tokens() -> None:
    solution = bk.deciding.solve(
        {"system": 500, "history": 0}, BUDGET, "window", at_least("history", 4_000)
    )
    assert solution.value == 5_500
    assert (
        bk.deciding.solve({"system": 500}, BUDGET, "output", at_least("history", 4_000)).value
        == 3_500
    )


def test_a_bill_is_kept_below_a_sum_by_the_largest_window() -> None:
    """Largest without being told so: a smaller window always costs less."""
    demands = turns(*[400] * 30)
    price = bk.cost.Prices("mine", bk.cost.Price(2.0), bk.cost.Price(8.0))
    solution = bk.deciding.solve(demands, BUDGET, "window", bill_at_most(0.15, price, answer=100))
    assert solution.value is not None and solution.find == "largest"

    def bill(window: int) -> float:
        sent = (
            bk.plan.allocate_many(BUDGET.assign(window=window), demands)
            .groupby("turn")["granted"]
            .sum()
        )
        return float((2 * sent + 8 * 100).sum() / 1e6)

    assert bill(solution.value) <= 0.15 < bill(solution.value + 1)
    with pytest.raises(ValueError, match="The input or output price is missing"):
        bill_at_most(1.0, bk.cost.Prices("nobody"))


def test_several_models_are_solved_in_one_call() -> None:
    made = conversations(4)
    table = solve_models(made, ["gpt-4o", "claude-haiku-4-5"], bk.presets.working_memory, "window")
    assert table["model"].tolist() == ["gpt-4o", "claude-haiku-4-5"]
    for row in table.to_dict("records"):
        model = bk.model(row["model"])
        budget = bk.presets.working_memory(model)
        demands = [trace.demand(bk.counter(model), roles=budget.roles) for trace in made]
        assert row["value"] == bk.deciding.solve(demands, budget, "window").value
    assert table["is_within"].all() and table["exact"].tolist() == [True, False]
    tiny = bk.Budget(600, [], [bk.Allocation("history", 1)], undeclared="pool")
    capped = solve_models(made, ["gpt-4o"], lambda _: tiny, "window")
    assert pd.isna(capped["value"].iloc[0]) and capped["sentence"].iloc[0].startswith(
        "There is no window in which"
    )


@pytest.mark.parametrize("preset", ["rag", "chat", "working_memory"])
def test_every_lost_message_has_a_mend_or_a_word_why(preset: str) -> None:
    """Of a budget of shares 96 of 112 lost messages had neither: a larger window was not looked for far enough."""
    trace, count = bk.load_trace("mixed-language"), bk.counter("gpt-4o")
    budget = bk.presets.PRESETS[preset](4_096)
    items = trace.items(len(trace.turns) - 1, count, budget.roles)
    plan = bk.fit(budget, items)
    lost = [row for row, item in enumerate(items) if plan.decisions.kept[row] < item.tokens]
    assert lost
    for row in lost[::12]:
        why = plan.why(row)
        assert why.mends or why.unmended
        for mend in why.mends:
            if mend.budget is not None:
                assert bk.fit(mend.budget, items).decisions[row].outcome == "kept", mend


def test_a_cap_and_the_window_are_raised_together_where_neither_is_enough() -> None:
    budget = bk.Budget(
        1_000,
        [bk.Reserve("output", 300)],
        [bk.Allocation("history", 500), bk.Allocation("notes", 200)],
    )
    plan = bk.allocate(budget, {"history": 2_000, "notes": 200})
    (mend,) = plan.why("history").mends
    assert mend.sentence == (
        "Raise the cap of history from 500 to 2,000 tokens, and enlarge the window from 1,000 to 2,500 tokens."
    )
    assert mend.budget is not None
    assert bk.allocate(mend.budget, {"history": 2_000, "notes": 200})["history"].cut == 0


def test_a_section_that_keeps_so_many_items_at_most_may_keep_more() -> None:
    budget = bk.Budget(1_000, [], [bk.Allocation("notes", keep="best", limit_items=2)])
    items = [bk.Item("notes", 100, score) for score in (0.9, 0.8, 0.7)]
    (mend,) = [mend for mend in bk.fit(budget, items).why(2).mends if mend.line == "limit_items"]
    assert mend.sentence == "Keep more items of notes: 3 instead of 2."


def test_a_promise_names_the_conversations_that_it_rests_on_and_a_sum_its_turns() -> None:
    """It had neither a number nor "of the next, on average"; a section lost 1,395,367 tokens to a cap of 400."""
    seen = [turns(1_000 * n) for n in range(1, 20)]
    assert str(bk.deciding.solve(seen, BUDGET, "window", cut_at_most(0.1))).endswith(
        "at most 10 % of the next conversations are cut on average is 19,500 tokens, judged by 19 conversations."
    )
    capped = BUDGET.assign(history={"cap": 100})
    assert "history still loses 1,700 tokens to its cap of 100 tokens, summed over 2 turns." in str(
        bk.deciding.solve(turns(600, 700), capped, "window")
    )


CHATS = [pd.DataFrame({"history": [500]}), pd.DataFrame({"history": [300], "tools": [2_000]})]
HISTORY_AND_TOOLS = bk.Budget(8_192, (), [bk.Allocation("history"), bk.Allocation("tools")])


def test_conversations_may_have_different_sections() -> None:
    assert bk.deciding.solve(CHATS, HISTORY_AND_TOOLS, "window").value == 2_300


@pytest.mark.parametrize(
    ("demands", "problem"),
    [
        (pd.concat(CHATS), "Invalid demand of 'tools'"),
        ([pd.concat(CHATS)], "Invalid demand of 'tools'"),
        ({"history": float("nan")}, "Invalid demand of 'history'"),
        ({"history": -1}, "Invalid demand of 'history'"),
        ({"history": 4.7}, "Invalid demand of 'history'"),
        ({"history": "many"}, "Invalid demand of 'history'"),
        (pd.DataFrame(), "No demands"),
    ],
    ids=["missing", "missing in a list", "not a number", "negative", "fraction", "text", "none"],
)
def test_demands_that_are_no_whole_numbers_are_refused(demands: Any, problem: str) -> None:
    """In 0.3.0 a frame with missing numbers, as pandas.concat makes it, "proved" that no window exists."""
    with pytest.raises(ValueError, match=problem):
        bk.deciding.solve(demands, HISTORY_AND_TOOLS, "window")
