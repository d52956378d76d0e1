"""Shares and exact sums: where rounding goes."""

from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.budget.amounts import sizes


def test_a_ratio_is_the_decimal_that_it_prints_as() -> None:
    """No binary dust: .29 of 100 is 29, and .07 of 100 is 7."""
    assert [bk.Share(r).of(100) for r in (0.29, 0.07, "0.29", Decimal("0.29"))] == [29, 7, 29, 29]
    assert int(0.29 * 100) == 28
    assert bk.Share(0.29) == bk.Share("0.29") == bk.Share("0.290")


def test_clamps_win_over_the_window() -> None:
    """At least 500 is 500 in a window of 400 too: the deficit shows elsewhere."""
    assert [bk.Share(0.15, 500, 4_096).of(w) for w in (400, 3_400, 128_000)] == [500, 510, 4_096]


@pytest.mark.parametrize(
    ("rounding", "parts"),
    [("floor", (33, 33, 33)), ("nearest", (33, 33, 33)), ("largest_remainder", (34, 33, 33))],
)
def test_three_ways_to_round(rounding: str, parts: tuple[int, ...]) -> None:
    """Three thirds of 100: only the largest remainder gives 100."""
    thirds = [bk.Share("0.3334"), bk.Share("0.3333"), bk.Share("0.3333")]
    assert sizes(thirds, 100, rounding) == parts  # type: ignore[arg-type]


@pytest.mark.parametrize("ratio", [-0.1, 1.01, "abc", float("nan"), float("inf"), True, None])
def test_a_ratio_outside_0_to_1_is_refused(ratio: object) -> None:
    """What was given, what is allowed, what to write."""
    with pytest.raises(ValueError, match=r"Use a number from 0 to 1, such as 0.15 for 15 %\."):
        bk.Share(ratio)  # type: ignore[arg-type]


def test_contradicting_limits_are_refused() -> None:
    """A clamp goes from low to high."""
    with pytest.raises(ValueError, match=r"at_least \(500\) is above at_most \(400\)"):
        bk.Share(0.1, 500, 400)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 100), min_size=1, max_size=8))
def test_largest_remainder_keeps_the_sum_of_shares(window: int, percents: list[int]) -> None:
    """Unclamped shares lose at most the fraction of a token, together."""
    shares = [bk.Share(Decimal(p) / 100) for p in percents]
    assert sum(sizes(shares, window, "largest_remainder")) == sum(percents) * window // 100


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 100))
def test_a_share_grows_with_the_window(window: int, more: int, percent: int) -> None:
    """Monotone, clamped or not."""
    share = bk.Share(Decimal(percent) / 100, 10, 5_000)
    assert 10 <= share.of(window) <= share.of(window + more) <= 5_000


def test_more_tokens_than_anything_has_are_refused_everywhere() -> None:
    """In windows, reserves and demands, one or a column of them."""
    budget = bk.Budget(100, (), [bk.Allocation("a")])
    for make in (
        lambda: bk.Budget(2**70),
        lambda: bk.Share(0.1, 2**70),
        lambda: budget.assign(a=2**70),
        lambda: bk.allocate(budget, {"a": 2**70}),
    ):
        refusal = r": 1,180,591,620,717,411,303,424\. Use at most .* tokens"
        with pytest.raises(ValueError, match=refusal):
            make()
    refusal = r"Invalid demand of 'a': a number is .* too large .* in that column"
    with pytest.raises(ValueError, match=refusal):
        bk.plan.allocate_many(budget, pd.DataFrame({"a": [2**70]}))
