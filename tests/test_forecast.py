"""What comes if it goes on like this: fans from past turns, and the turns at which limits are passed."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.replay import turn_sizes
from budgetkit.replay.cost import Prices
from budgetkit.replay.forecast import fan, first_over, paths, straight_line, turns_left
from budgetkit.replay.outlook import contexts, first_cut

SIZES = st.lists(st.integers(0, 500), min_size=1, max_size=20)


def test_turns_left_by_the_mean_growth() -> None:
    """P14: a growth of 600 a turn and 4,900 tokens that remain are 8 turns."""
    contexts = [3_300, 3_900, 4_500, 5_100]
    assert turns_left(contexts, contexts[-1] + 4_900) == 8


def test_growth_counts_since_the_last_deep_cut() -> None:
    assert turns_left([1_000, 9_000, 2_000, 2_100, 2_200], 2_500) == 3
    assert turns_left([100, 90, 80], 1_000) is None
    assert turns_left([100], 1_000) is None
    assert turns_left([100, 200], 150) == 0


def test_equal_turns_leave_no_doubt() -> None:
    drawn = paths([100], 3, start=50, widen=0)
    assert fan(drawn).to_dict("list")["low"] == fan(drawn).to_dict("list")["high"] == [150, 250, 350]
    assert first_over(drawn, {"first": 150, "never": 350}).iloc[:, 2:].astype(object).values.tolist() == [
        [1.0, 2, 2, 2],
        [0.0, pd.NA, pd.NA, pd.NA],
    ]


def test_the_spread_is_that_of_the_turns_seen() -> None:
    """Two turns of 0 or 100 each: 0, 100 or 200 with chances of a quarter, a half and a quarter."""
    drawn = paths([0, 100], 2, samples=20_000, widen=0)
    found = [float((drawn[:, 1] == size).mean()) for size in (0, 100, 200)]
    assert found == pytest.approx([0.25, 0.5, 0.25], abs=0.01)


@given(SIZES, st.integers(1, 30), st.integers(0, 99))
def test_a_seed_draws_the_same_and_contexts_only_grow(sizes: list[int], turns: int, seed: int) -> None:
    drawn = paths(sizes, turns, samples=20, seed=seed)
    assert np.array_equal(drawn, paths(sizes, turns, samples=20, seed=seed))
    assert (np.diff(drawn, axis=1) >= 0).all()
    assert (fan(drawn)[["low", "lower", "median", "upper", "high"]].diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)


@given(SIZES, st.integers(0, 3_000), st.integers(0, 3_000))
def test_a_higher_limit_is_never_passed_earlier(sizes: list[int], one: int, other: int) -> None:
    drawn = paths(sizes, 30, samples=20)
    low, high = (first_over(drawn, {"limit": limit})["median"].fillna(99)[0] for limit in sorted((one, other)))
    assert low <= high


def test_no_turns_no_forecast() -> None:
    with pytest.raises(ValueError, match="no turn was seen; a forecast draws from past turns; give the sizes"):
        paths([], 3)


def test_the_outlook_of_a_trace_by_model() -> None:
    """A window that is larger lasts longer, what is cut is cut before the window is full, and it is the same again."""
    trace = bk.load_trace("support-chat")
    models = [bk.model("gpt-4"), bk.model("gpt-4o")]

    def priced(name: str) -> Prices:
        return bk.cost.prices(name, date(2026, 11, 21), cache_read=1.0)

    table = bk.outlook(trace, models, bk.presets.working_memory, priced, money=1.0)
    median = table.set_index(["model", "event"])["median"]
    assert median[("gpt-4", "first cut")] < median[("gpt-4", "window full")] < median[("gpt-4o", "first cut")]
    assert set(table["event"]) == {"first cut", "window full", "money spent"}
    pd.testing.assert_frame_equal(table, bk.outlook(trace, models, bk.presets.working_memory, priced, money=1.0))


def test_money_is_left_out_where_a_price_is_not_known() -> None:
    trace = bk.load_trace("support-chat")
    table = bk.outlook(trace, [bk.model("gpt-4o")], bk.presets.working_memory, lambda name: Prices(name), money=1.0)
    assert table["event"].tolist() == ["first cut", "window full"]


def test_money_is_the_sum_of_what_is_written_once_and_read_again() -> None:
    """Turns of 100 tokens, at 10 dollars a token written and 1 read: 1,000, then 1,000 + 100, then 1,000 + 200."""
    raw = [{"role": "user", "content": "u" * 40}, {"role": "assistant", "content": "a" * 60}]
    trace = bk.Trace("toy", tuple(bk.Message(each) for each in raw * 3))
    size = int(turn_sizes(trace, bk.counter("gpt-4o"))[0])
    dear = bk.cost.prices("gpt-4o", cache_write=10e6, cache_read=1e6)
    limits = {"after 2": size * 21 - 1, "after 3": size * 33 - 1}
    for name, money in limits.items():
        table = bk.outlook(
            trace, [bk.model("gpt-4o")], bk.presets.working_memory, lambda _: dear, money=money, samples=2
        )
        assert table.query("event == 'money spent'")["median"].tolist() == [int(name[-1])]


def test_the_turns_of_a_trace_add_up_to_it() -> None:
    trace = bk.load_trace("support-chat")
    opening = len(trace.messages[0].text) if trace.messages[0].role == "system" else 0
    sizes = turn_sizes(trace, len, bk.Framing(tool_calls="nothing"))
    assert sizes.sum() + opening == sum(max(0, sum(map(len, m.texts))) for m in trace.messages)


def spoken(turns: int, words: int = 60) -> bk.Trace:
    """Turns of one length each: a question and an answer."""
    each = [{"role": "user", "content": "why " * words}, {"role": "assistant", "content": "so " * words}]
    return bk.Trace("even", tuple(bk.Message(message) for message in each * turns))


@pytest.mark.parametrize("seen", [4, 60])
def test_the_first_cut_is_where_a_replay_cuts(seen: int) -> None:
    """Turns that are all alike: what is drawn from four of them is what comes, and past cuts are told as they were."""
    budget, count = bk.presets.working_memory(4_000, output=500, history_floor=0), bk.counter("o200k_base")
    frame = bk.replay(spoken(60), budget, bk.policies.OldestFirst(), count=count).frame()
    truth = int(frame.loc[frame["dropped"] > 0, "turn"].iloc[0])
    found = first_cut(spoken(seen), budget, count, turns=400).iloc[0]
    assert found["event"] == "first cut"
    assert found["reached"] > 0.99
    if seen > truth:
        assert (found["low"], found["median"], found["high"]) == (truth, truth, truth)
    else:
        assert found["low"] < truth < found["high"]
        assert abs(found["median"] - truth) <= 3
    assert found["limit"] < budget.usable


def test_a_forecast_goes_on_from_the_present_size() -> None:
    trace, count = spoken(10), bk.counter("o200k_base")
    drawn = contexts(trace, count, turns=5, samples=200)
    known = np.cumsum(turn_sizes(trace, count))
    assert drawn.shape == (200, 15)
    assert (drawn[:, :10] == known).all()
    assert (drawn[:, 10:] >= known[-1]).all()


def test_the_band_holds_nine_in_ten_conversations_whose_pace_changes() -> None:
    """Turns spread, and each conversation's later turns are longer or shorter than its first by a pace of its own."""
    random, held = np.random.default_rng(0), []
    for _ in range(200):
        sizes = random.lognormal(4, 0.8, 30)
        sizes[10:] *= np.exp(random.normal(0, 0.6))
        drawn = paths(sizes[:10].astype(int), 20, samples=400)[:, -1]
        low, high = np.quantile(drawn, (0.05, 0.95))
        held.append(low <= sizes[10:].sum() <= high)
    assert 0.85 <= np.mean(held) <= 0.97


def test_the_fan_shows_the_straight_line_from_the_present_on() -> None:
    drawn = contexts(spoken(4), bk.counter("o200k_base"), turns=3, samples=50)
    table = bk.figures.fan.table(drawn, known=4)
    step = drawn[0, 3] - drawn[0, 2]
    assert table["straight line"].tolist() == [*drawn[0, :4], *(drawn[0, 3] + step * n for n in (1, 2, 3))]
    assert bk.figures.fan.draw(table)["data"][-1]["line"]["dash"] == "dot"
    assert straight_line([100, 300], 2, 50).tolist() == [250, 450]
