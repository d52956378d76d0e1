"""The fast way of planning and the slow one it replaced say the same, to the token and to the reason."""

import pickle
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.plan.items import Items
from budgetkit.plan.plan import Plan
from tests.slow_plan import slow_fit
from tests.strategies import SECTIONS, TOKENS, budgets

GROUPED = st.lists(
    st.builds(
        bk.Item,
        st.sampled_from([*SECTIONS, "elsewhere"]),
        st.integers(0, 80),
        score=st.sampled_from([0.0, -0.0, 0.25, 0.5, float("inf"), float("nan")]),
        importance=st.none() | st.integers(1, 3),
        group=st.sampled_from([None, None, None, None, 1, 2]),
    ),
    max_size=30,
)


def shortened(item: bk.Item, limit: int, _: bk.Allocation) -> bk.Item | None:
    """Cut an item as a text is cut: in steps, so that some room stays empty."""
    return replace(item, tokens=limit // 7 * 7)


def told(plan: Plan) -> list[object]:
    """Everything that a plan says."""
    outcomes = [(d.tokens, d.kept, d.outcome, d.reason) for d in plan.decisions]
    return [
        plan.grants, plan.free, plan.reserved, plan.warnings, plan.losses, outcomes,
        str(plan.decisions.items),
    ]  # fmt: skip


@given(budgets(), GROUPED, st.booleans(), st.sampled_from(["item", "line"]))
def test_what_is_planned_fast_is_what_was_planned_slowly(
    budget: bk.Budget, items: list[bk.Item], cuts: bool, granularity: str
) -> None:
    """Also where columns are planned a second time, with another window between."""
    lines = [replace(a, granularity=granularity) for a in budget.allocations]  # type: ignore[arg-type]
    budget, cut = replace(budget, allocations=lines), shortened if cuts else None
    try:
        slow = told(slow_fit(budget, items, cut))
    except ValueError as refused:
        with pytest.raises(ValueError) as found:
            bk.fit(budget, items, cut)
        assert str(found.value) == str(refused)
        return
    columns = Items(items)
    # A larger window may keep less, and part a group of what is required.
    with suppress(ValueError):
        bk.fit(replace(budget, window=budget.window + 13), columns)
    assert told(bk.fit(budget, items, cut)) == told(bk.fit(budget, columns, cut)) == slow


@given(budgets(), st.integers(0, 2_000), st.dictionaries(st.sampled_from(SECTIONS), TOKENS))
def test_a_line_assigned_is_a_budget_made_anew(
    budget: bk.Budget, window: int, caps: dict[str, int]
) -> None:
    """What assign does not check again was checked before."""
    lines = {
        name: {"cap": cap, "floor": 0} for name, cap in caps.items() if name in budget.sections
    }
    allocations = [replace(a, **lines.get(a.section, {})) for a in budget.allocations]  # type: ignore[arg-type]
    try:
        anew = replace(budget, window=window, allocations=allocations)
    except ValueError as refused:
        with pytest.raises(ValueError) as found:
            budget.assign(window=window, **lines)
        assert str(found.value) == str(refused)
        return
    assigned = budget.assign(window=window, **lines)
    assert assigned == anew
    expected = (anew.caps, anew.floors, anew.allocation_order)
    assert (assigned.caps, assigned.floors, assigned.allocation_order) == expected


def test_a_plan_whose_columns_nobody_read_goes_to_a_worker_and_back() -> None:
    """They are made where they are read."""
    budget = bk.Budget(100, (), [bk.Allocation("history", keep="newest")])
    plan = bk.fit(budget, [bk.Item("history", 60), bk.Item("history", 70)])
    assert [d.kept for d in pickle.loads(pickle.dumps(plan)).decisions] == [0, 70]
