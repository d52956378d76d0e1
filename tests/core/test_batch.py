"""Many requests at once: each is granted what it would be granted alone, item by item."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.plan.batch import RequestBatch, batch_of
from budgetkit.plan.items import Items
from tests.conftest import examples
from tests.strategies import ITEMS, SECTIONS, budgets


def batch(requests: Sequence[Sequence[bk.Item]]) -> RequestBatch:
    found = [Items(items) for items in requests]
    demand = (
        pd.DataFrame([each.demand for each in found], columns=list(SECTIONS))
        .fillna(0)
        .astype("int64")
    )
    return RequestBatch(demand, found.__getitem__)


def history(*sizes: int) -> list[bk.Item]:
    return [bk.Item("history", size) for size in sizes]


def granted(budget: bk.Budget, *requests: list[bk.Item]) -> list[int]:
    grants: list[int] = batch(requests).columns(budget)["history"]["granted"].tolist()
    return grants


def test_the_best_few_are_all_there_is_whatever_room_is_left() -> None:
    best = bk.Allocation("history", keep="best", limit_items=2)
    assert granted(
        bk.Budget(100, (), [best], undeclared="pool"), history(10, 10), history(10, 10, 10)
    ) == [20, 20]


def test_a_result_without_tokens_beyond_the_best_few_takes_its_call_along() -> None:
    """Nothing was lost by tokens, so 0.1.0's batch kept the call that `fit` let go."""
    lines = [bk.Allocation("history"), bk.Allocation("tool", limit_items=1)]
    called = [
        bk.Item("tool", 5),
        bk.Item("tool", 0, group="call"),
        bk.Item("history", 7, group="call"),
    ]
    assert granted(bk.Budget(100, (), lines, undeclared="pool"), called) == [0]
    assert bk.fit(bk.Budget(100, (), lines), called)["history"].granted == 0


def test_more_than_there_is_is_granted_and_never_an_error() -> None:
    budget = bk.Budget(
        100, (), [bk.Allocation("history", required=True)], undeclared="pool", deficit="raise"
    )
    assert granted(budget, history(80, 80)) == [160]


def test_a_section_that_nobody_declared_is_named_at_once() -> None:
    with pytest.raises(LookupError, match="'history'"):
        batch_of(pd.DataFrame({"history": [1]})).columns(bk.Budget(100))


def test_a_batch_is_a_memo_that_nobody_writes_to() -> None:
    """The same budget is the same arrays again, for whoever asks; a caller's own frame stays its own."""
    budget = bk.Budget(100, (), [bk.Allocation("history")], undeclared="pool")
    demand = pd.DataFrame({"history": [40, 80]})
    for many in (RequestBatch(demand), batch([history(40), history(80)])):
        found = many.columns(budget)
        assert many.columns(budget) is found
        for array in found["history"].values():
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        assert many == many
        assert many != replace(many)
    demand.loc[0, "history"] = 50
    assert demand["history"].tolist() == [50, 80]


@settings(deadline=None, max_examples=examples(60))
@given(budgets(), st.lists(ITEMS, min_size=1, max_size=4))
def test_a_batch_grants_what_fit_grants(budget: bk.Budget, requests: list[list[bk.Item]]) -> None:
    columns = batch(requests).columns(budget)
    for row, items in enumerate(requests):
        plan = bk.fit(budget, items)
        for grant in plan.grants:
            each = columns[grant.section]
            assert (each["demand"][row], each["granted"][row]) == (grant.demand, grant.granted)
            assert each["cut"][row] == grant.cut
            assert each["limit"][row] == grant.limit or grant.section not in budget.sections


def shorter(item: bk.Item, limit: int, allocation: bk.Allocation) -> bk.Item:
    return replace(item, tokens=limit)


@settings(deadline=None, max_examples=examples(60))
@given(budgets(), st.lists(ITEMS, min_size=1, max_size=3), st.sampled_from(SECTIONS), st.data())
def test_with_groups_and_cuts_inside_as_well(
    budget: bk.Budget, requests: list[list[bk.Item]], section: str, data: st.DataObject
) -> None:
    lines = [
        replace(a, granularity="token" if a.section == section else "item")
        for a in budget.allocations
    ]
    budget = replace(budget, allocations=lines)
    groups = data.draw(st.lists(st.sampled_from([None, None, "a", "b"]), min_size=30, max_size=30))
    requests = [
        [replace(item, group=groups[i]) for i, item in enumerate(items)] for items in requests
    ]
    many = replace(batch(requests), cut=shorter)
    try:
        alone = [bk.fit(budget, items, shorter) for items in requests]
    except ValueError:  # a required section's item is grouped with one that was dropped
        with pytest.raises(ValueError, match="belong to a group whose other items were dropped"):
            many.columns(budget)
        return
    columns = many.columns(budget)
    for row, plan in enumerate(alone):
        assert {g.section: g.granted for g in plan.grants} == {
            g.section: columns[g.section]["granted"][row] for g in plan.grants
        }
