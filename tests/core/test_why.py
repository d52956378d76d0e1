"""Why something was lost: the reasons in order, and changes that keep it, tested on both sides of each."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.plan.reasons import nearest_value
from tests.conftest import examples

BUDGET = bk.Budget(
    1_000,
    [bk.Reserve("output", 200)],
    [
        bk.Allocation("system", required=True),
        bk.Allocation("history", 500, keep="newest"),
        bk.Allocation("notes"),
    ],
    deficit="signed",
)


def test_an_item_over_its_cap_is_kept_by_the_cap_it_names_and_by_no_smaller_one() -> None:
    items = [bk.Item("history", 300), bk.Item("history", 400)]
    why = bk.fit(BUDGET, items).why(0)
    assert (why.section, why.wanted, why.kept) == ("history", 300, 0)
    assert why.reasons[1] == "Its limit is its own cap, 500 tokens."
    (cap,) = [mend for mend in why.mends if mend.line == "history"]
    assert (cap.before, cap.after) == (500, 700)
    assert cap.budget is not None
    assert bk.fit(cap.budget, items).decisions[0].outcome == "kept"
    assert bk.fit(cap.budget.assign(history=699), items).decisions[0].outcome == "dropped"


def test_who_took_the_room_is_named_and_can_give_it_back() -> None:
    plan = bk.allocate(BUDGET, {"system": 350, "history": 400, "notes": 200})
    why = plan.why("notes")
    assert why.reasons == (
        "notes asked for 200 tokens and got 50 of a limit of 50.",
        "Its limit is the rest of the 800 usable tokens; earlier sections took system 350, history 400.",
    )
    found = {mend.line: (mend.before, mend.after) for mend in why.mends}
    assert found == {
        "output": (200, 50),
        "history": (500, 250),
        "importance": (5, 6),
        "window": (1_000, 1_150),
    }


def test_a_change_that_splits_a_required_group_is_no_mend() -> None:
    lines = [bk.Allocation("system", required=True), bk.Allocation("history")]
    budget = bk.Budget(100, (), [*lines, bk.Allocation("tools")])
    pair = [bk.Item("system", 50, group=1), bk.Item("history", 43, group=1)]
    plan = bk.fit(budget, [*pair, bk.Item("tools", 39)])
    assert [mend.line for mend in plan.why(2).mends] == ["window", "tokens"]
    assert bk.deciding.token_prices(plan)["line"].tolist() == ["window"]


def test_a_plan_of_no_items_can_be_planned_again() -> None:
    plan = bk.fit(bk.Budget(1_000, (), [bk.Allocation("history", 500)]), [])
    assert bk.deciding.token_prices(plan)["tokens"].tolist() == [0, 0]


def test_what_was_kept_needs_no_mending() -> None:
    assert bk.allocate(BUDGET, {"history": 100}).why("history").mends == ()
    assert bk.fit(BUDGET, [bk.Item("history", 100)]).why(0).mends == ()


@pytest.mark.parametrize("of", [7, -9, bk.Item("history", 1), bk.Message({"role": "user"}), None])
def test_an_item_that_is_not_there_is_refused(of: Any) -> None:
    refusal = r"Unknown item .* Pass the item, or its position from 0 to 0"
    with pytest.raises(LookupError, match=refusal):
        bk.fit(BUDGET, [bk.Item("history", 100)]).why(of)


def test_a_plan_that_was_loaded_says_that_it_cannot_be_asked() -> None:
    plan = replace(bk.fit(BUDGET, [bk.Item("history", 100)]), replan=None)
    with pytest.raises(ValueError, match="Fit its items again, and use the new plan"):
        plan.why(0)


@settings(max_examples=examples(60), deadline=None)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=2, max_size=8),
    cap=st.integers(50, 700),
    asked=st.integers(0, 900),
)
def test_every_offered_change_keeps_what_was_lost(sizes: list[int], cap: int, asked: int) -> None:
    items = [*(bk.Item("history", size) for size in sizes), bk.Item("notes", asked)]
    plan = bk.fit(BUDGET.assign(history=cap), items)
    for place in range(len(items)):
        for mend in plan.why(place).mends:
            if mend.budget is not None:
                assert bk.fit(mend.budget, items).decisions[place].outcome == "kept", mend


@given(near=st.integers(0, 1_000), flip=st.integers(0, 1_000), far=st.integers(0, 1_000))
def test_the_nearest_value_has_a_neighbour_that_fails(near: int, flip: int, far: int) -> None:
    def holds(n: int) -> bool:
        return n >= flip if far >= near else n <= flip

    found = nearest_value(holds, near, far)
    if found is None:
        assert not holds(far)
    elif not holds(near):
        assert holds(found)
        assert not holds(found - (1 if far > near else -1))
