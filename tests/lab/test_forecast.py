"""What comes if it goes on like this: fans from past turns, and the turns at which limits are passed."""

from __future__ import annotations

import tracemalloc
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.lab.replay.cost import Price, Prices
from budgetkit.lab.replay.forecast import (
    Pace,
    fan,
    first_over,
    notice,
    own_pace,
    pace_beside,
    paths,
    straight_line,
)
from budgetkit.lab.replay.outlook import Forecast, spent, turn_sizes

SIZES = st.lists(st.integers(0, 500), min_size=1, max_size=20)


def test_equal_turns_leave_no_doubt() -> None:
    drawn = paths([100], 3, start=50, pace=Pace(1.0, 0.0))
    assert (
        fan(drawn).to_dict("list")["low"] == fan(drawn).to_dict("list")["high"] == [150, 250, 350]
    )
    assert first_over(drawn, {"first": 150, "never": 350}).iloc[:, 2:].astype(
        object
    ).values.tolist() == [
        [1.0, 2, 2, 2],
        [0.0, pd.NA, pd.NA, pd.NA],
    ]


def test_the_spread_is_that_of_the_turns_seen() -> None:
    """Two turns of 0 or 100 each: 0, 100 or 200 with chances of a quarter, a half and a quarter."""
    drawn = paths([0, 100], 2, samples=20_000, pace=Pace(1.0, 0.0, is_whole=True))
    found = [float((drawn[:, 1] == size).mean()) for size in (0, 100, 200)]
    assert found == pytest.approx([0.25, 0.5, 0.25], abs=0.01)


@given(SIZES, st.integers(1, 30), st.integers(0, 99))
def test_a_seed_draws_the_same_and_contexts_only_grow(
    sizes: list[int], turns: int, seed: int
) -> None:
    drawn = paths(sizes, turns, samples=20, seed=seed)
    assert np.array_equal(drawn, paths(sizes, turns, samples=20, seed=seed))
    assert (np.diff(drawn, axis=1) >= 0).all()
    assert (
        fan(drawn)[["low", "lower", "median", "upper", "high"]].diff(axis=1).iloc[:, 1:] >= 0
    ).all(axis=None)


@given(SIZES, st.integers(0, 3_000), st.integers(0, 3_000))
def test_a_higher_limit_is_never_passed_earlier(sizes: list[int], one: int, other: int) -> None:
    drawn = paths(sizes, 30, samples=20)
    low, high = (
        first_over(drawn, {"limit": limit})["median"].fillna(99)[0]
        for limit in sorted((one, other))
    )
    assert low <= high


def test_no_turns_no_forecast() -> None:
    with pytest.raises(ValueError, match="No past turns to draw from. Pass the sizes"):
        paths([], 3)


def test_the_outlook_of_a_trace_by_model() -> None:
    """A window that is larger lasts longer, what is cut is cut before the window is full, and it is the same again."""
    trace = bk.load_trace("support-chat")
    models = [bk.model("gpt-4"), bk.model("gpt-4o")]

    def priced(name: str) -> Prices:
        return bk.cost.prices(name, date(2026, 11, 21), cache_read=1.0)

    table = bk.deciding.outlook(trace, models, bk.presets.working_memory, priced, money=1.0)
    median = table.set_index(["model", "event"])["median"]
    assert (
        median[("gpt-4", "first cut")]
        < median[("gpt-4", "window full")]
        < median[("gpt-4o", "first cut")]
    )
    assert set(table["event"]) == {"first cut", "window full", "money spent"}
    pd.testing.assert_frame_equal(
        table, bk.deciding.outlook(trace, models, bk.presets.working_memory, priced, money=1.0)
    )


@pytest.mark.parametrize("name", ["support-chat", "coding-agent"])
@pytest.mark.parametrize("preset", ["working_memory", "chat", "agent"])
@pytest.mark.parametrize("window", [2_000, 4_096, 6_000, 8_192, 16_000])
def test_the_first_cut_is_that_of_the_replay(name: str, preset: str, window: int) -> None:
    """Where the floor of the history was not covered, turn 32 was foretold, and a replay cut at turn 4."""
    trace, budget = bk.load_trace(name), getattr(bk.presets, preset)(window)
    forecast = Forecast(trace, bk.counter("o200k_base"), 5, samples=5).first_cut(budget)
    table = bk.replay(trace, budget, bk.policies.OldestFirst()).frame()
    cuts = table["turn"][table["dropped"] > 0]
    assert forecast["median"].tolist() == [*cuts[:1]] or (
        cuts.empty and (forecast["low"].isna() | (forecast["low"] > len(trace.turns))).all()
    )


def test_an_explorer_foretells_the_first_cut_that_it_shows() -> None:
    """It opened with turn 32 in the note of the forecast, and turn 2 in its key figure."""
    for window in (4_096, 6_000, 8_192):
        explorer = bk.ConversationExplorer("support-chat", policies=["oldest first"], window=window)
        first = explorer.forecast.set_index("event")["median"]["first cut"]
        table = explorer.replay.frame()
        assert first == table["turn"][table["dropped"] > 0].iloc[0]
    sizes = explorer.stage.continuations[0]
    low, high = np.quantile(sizes[:, -1] - sizes[:, 74], (0.05, 0.95))
    growth = f" turns, 90 % of these continuations add {low:,.0f} to {high:,.0f} tokens."
    assert growth in explorer.view.figure_fan["note"]


def test_money_is_left_out_where_a_price_is_not_known() -> None:
    trace = bk.load_trace("support-chat")
    table = bk.deciding.outlook(
        trace, [bk.model("gpt-4o")], bk.presets.working_memory, lambda name: Prices(name), money=1.0
    )
    assert table["event"].tolist() == ["first cut", "window full"]


def test_money_is_the_sum_of_what_is_written_once_and_read_again() -> None:
    """Turns of 100 tokens, at 10 dollars a token written and 1 read: 1,000, then 1,000 + 100, then 1,000 + 200."""
    raw = [{"role": "user", "content": "u" * 40}, {"role": "assistant", "content": "a" * 60}]
    trace = bk.Trace("toy", tuple(bk.Message(each) for each in raw * 3))
    size = int(turn_sizes(trace, bk.counter("gpt-4o"))[0])
    dear = bk.cost.prices("gpt-4o", cache_write=10e6, cache_read=1e6)
    limits = {"after 2": size * 21 - 1, "after 3": size * 33 - 1}
    for name, money in limits.items():
        table = bk.deciding.outlook(
            trace,
            [bk.model("gpt-4o")],
            bk.presets.working_memory,
            lambda _: dear,
            money=money,
            samples=2,
        )
        assert table.query("event == 'money spent'")["median"].tolist() == [int(name[-1])]


def test_the_turns_of_a_trace_add_up_to_it() -> None:
    trace = bk.load_trace("support-chat")
    opening = len(trace.messages[0].text) if trace.messages[0].role == "system" else 0
    sizes = turn_sizes(trace, len, bk.requests.Framing(tool_calls="nothing"))
    assert sizes.sum() + opening == sum(max(0, sum(map(len, m.texts))) for m in trace.messages)


def spoken(turns: int, words: int = 60) -> bk.Trace:
    """Turns of one length each: a question and an answer."""
    each = [
        {"role": "user", "content": "why " * words},
        {"role": "assistant", "content": "so " * words},
    ]
    return bk.Trace("even", tuple(bk.Message(message) for message in each * turns))


@pytest.mark.parametrize("seen", [4, 60])
def test_the_first_cut_is_where_a_replay_cuts(seen: int) -> None:
    """Turns that are all alike: what is drawn from four of them is what comes, and past cuts are told as they were."""
    budget, count = (
        bk.presets.working_memory(4_000, output=500, history_floor=0),
        bk.counter("o200k_base"),
    )
    frame = bk.replay(spoken(60), budget, bk.policies.OldestFirst(), counter=count).frame()
    truth = int(frame.loc[frame["dropped"] > 0, "turn"].iloc[0])
    found = Forecast(spoken(seen), count, turns=400).first_cut(budget).iloc[0]
    assert found["event"] == "first cut"
    assert found["reached"] > 0.99
    if seen > truth:
        assert (found["low"], found["median"], found["high"]) == (truth, truth, truth)
    else:
        assert found["low"] < truth < found["high"]
        assert abs(found["median"] - truth) <= 3
    assert found["limit"] < budget.usable


def test_an_outlook_goes_on_from_the_present_size() -> None:
    """What is not full after ten turns is full at the eleventh at the earliest; 0.1.0 drew from the first turn on."""
    each = [{"role": "user", "content": "why"}, {"role": "assistant", "content": "so " * 1_000}]
    last = [{"role": "user", "content": "why"}, {"role": "assistant", "content": "so"}]
    trace = bk.Trace("slower", tuple(map(bk.Message, each * 3 + last * 7)))
    window = int(turn_sizes(trace, bk.counter("gpt-4o")).sum()) + 500
    model = bk.model("gpt-4o", window=window, max_output=100)
    (row,) = (
        bk.deciding.outlook(trace, [model], lambda m: bk.Budget(m.window))
        .query("event == 'window full'")
        .to_dict("records")
    )
    assert 11 <= row["low"] <= row["median"] <= 14


def test_the_first_cut_of_an_outlook_is_by_what_the_budget_leaves_the_history() -> None:
    """A system prompt and a reserve leave it little of the window; 0.1.0 told of a cut at the whole usable window."""
    opening = bk.Message({"role": "system", "content": "Be brief. " * 400})
    trace = bk.Trace("ruled", (opening, *spoken(40).messages))
    first = bk.Trace("ruled", trace.messages[:9])
    budget, model = (
        bk.presets.working_memory(4_000, output=500, history_floor=0),
        bk.model("gpt-4o", window=4_000, max_output=500),
    )
    frame = bk.replay(trace, budget, bk.policies.OldestFirst(), counter=bk.counter(model)).frame()
    truth = int(frame.loc[frame["dropped"] > 0, "turn"].iloc[0])
    (row,) = (
        bk.deciding.outlook(first, [model], lambda _: budget)
        .query("event == 'first cut'")
        .to_dict("records")
    )
    assert row["limit"] <= frame["limit"].max()
    assert abs(row["median"] - truth) <= 2


def test_a_forecast_goes_on_from_the_present_size() -> None:
    trace, count = spoken(10), bk.counter("o200k_base")
    drawn = Forecast(trace, count, turns=5, samples=200).contexts
    known = np.cumsum(turn_sizes(trace, count))
    assert drawn.shape == (200, 15)
    assert (drawn[:, :10] == known).all()
    assert (drawn[:, 10:] >= known[-1]).all()


def test_the_band_holds_nine_in_ten_conversations_whose_pace_changes() -> None:
    """Later turns are longer or shorter by a pace of their own, 0.7 as far as the first formula had it."""
    random, held = np.random.default_rng(0), []
    for _ in range(200):
        sizes = random.lognormal(4, 0.8, 30)
        sizes[10:] *= np.exp(random.normal(0, 0.42))
        drawn = paths(sizes[:10].astype(int), 20, samples=400)[:, -1]
        low, high = np.quantile(drawn, (0.05, 0.95))
        held.append(low <= sizes[10:].sum() <= high)
    assert 0.85 <= np.mean(held) <= 0.97


def test_of_two_limits_that_lie_close_together_the_lower_is_named_below_its_line() -> None:
    """ "usable 12,288" was struck through by the line of the window, at 16,384."""
    drawn = np.array([[1_000, 50_000, 100_000]])
    table = bk.figures.fan.table(drawn, {"usable": 12_288, "window": 16_384})
    notes = bk.figures.fan.draw(table)["layout"]["annotations"]
    assert [(note["text"], note["yanchor"]) for note in notes] == [
        ("usable 12,288", "top"),
        ("window 16,384", "bottom"),
    ]


def test_the_fan_shows_the_straight_line_from_the_present_on() -> None:
    drawn = Forecast(spoken(4), bk.counter("o200k_base"), turns=3, samples=50).contexts
    table = bk.figures.fan.table(drawn, known=4)
    step = drawn[0, 3] - drawn[0, 2]
    assert table["straight line"].tolist() == [
        *drawn[0, :4],
        *(drawn[0, 3] + step * n for n in (1, 2, 3)),
    ]
    assert bk.figures.fan.draw(table)["data"][-1]["line"]["dash"] == "dot"
    assert straight_line([100, 300], 2, 50).tolist() == [250, 450]


def kind(number: int, random: np.random.Generator) -> list[np.ndarray]:
    """Draw conversations of one kind: first turns of any size, later ones that are larger and alike."""
    return [
        np.concatenate((random.lognormal(4, 1, 3), random.lognormal(5, 0.4, 9))).astype(int)
        for _ in range(number)
    ]


def test_beside_others_of_its_kind_a_conversation_is_foretold_a_fifth_nearer_than_by_the_line() -> (
    None
):
    """Each is left out in turn; three of its turns are seen, and nine foretold."""
    known = kind(60, np.random.default_rng(0))
    middle, line, held = [], [], []
    for i, sizes in enumerate(known):
        pace = pace_beside(sizes[:3], known[:i] + known[i + 1 :])
        low, half, high = np.quantile(
            paths(sizes[:3], 9, samples=400, pace=pace)[:, -1], (0.05, 0.5, 0.95)
        )
        truth = sizes[3:].sum()
        middle.append(abs(half / truth - 1))
        line.append(abs(straight_line(sizes[:3], 9)[-1] / truth - 1))
        held.append(low <= truth <= high)
    assert np.median(middle) <= 0.8 * np.median(line)
    assert np.mean(held) >= 0.85


@pytest.mark.parametrize("spread", [0.05, 0.5])
def test_from_nine_others_on_the_band_is_as_wide_as_they_went_on_apart(spread: float) -> None:
    """The width was one that other kinds of conversations have: too wide for those alike, too narrow for the rest."""
    random = np.random.default_rng(5)
    held, wide = [], []
    for _ in range(200):
        levels = np.exp(random.normal(5, spread, (21, 1)))
        first = np.exp(random.normal(5, 0.1, (21, 3)))
        known = [
            row.astype(int)
            for row in np.hstack((first, levels * np.exp(random.normal(0, 0.1, (21, 9)))))
        ]
        pace = pace_beside(known[0][:3], known[1:])
        assert pace is not None and pace.is_whole
        low, high = np.quantile(paths(known[0][:3], 9, samples=300, pace=pace)[:, -1], (0.05, 0.95))
        held.append(low <= known[0][3:].sum() <= high)
        wide.append(high / low)
    assert np.mean(held) >= 0.86
    assert np.median(wide) <= np.exp(2 * 1.645 * (spread + 0.15))
    of_eight = pace_beside(known[0][:3], known[1:9])
    assert of_eight is not None and not of_eight.is_whole


def test_others_count_as_much_as_they_are_alike() -> None:
    """Turns that never change within a conversation say all about it; where all are alike, the others do."""
    apart = [[size] * 5 for size in (10, 100, 1_000, 10_000, 100_000)]
    assert pace_beside([50], apart) == (1.0, 0.4, False)
    alike = [[50, 100, 100]] * 5
    assert pace_beside([50], alike) == pytest.approx((2.0, 0.4, False))


@given(st.lists(st.lists(st.integers(0, 10**6), max_size=9), max_size=9), SIZES)
def test_whatever_the_others_are_a_pace_is_a_number_above_nothing(
    others: list[list[int]], sizes: list[int]
) -> None:
    pace = pace_beside(sizes, others)
    few = sum(len(other) > 1 for other in others) < 5
    if few or not any(sizes):
        assert pace is None
    assert pace is None or (pace.middle > 0 and 0 <= pace.spread < np.inf)
    assert pace is None or pace.is_whole or pace.spread >= 0.4
    assert 0 <= own_pace(sizes)[1] < np.inf


def test_an_outlook_goes_by_others_from_five_on() -> None:
    """A conversation of short turns so far, of a kind whose turns become long, is full sooner."""
    trace = spoken(2, words=20)
    others = [
        bk.Trace(f"other {i}", spoken(2, 20).messages + spoken(4, 200 + i).messages)
        for i in range(5)
    ]
    model, preset = bk.model("gpt-4o"), bk.presets.working_memory
    alone, four, five = (
        bk.deciding.outlook(trace, [model], preset, others=others[:number]) for number in (0, 4, 5)
    )
    pd.testing.assert_frame_equal(alone, four)
    assert (five["median"] < 0.5 * alone["median"]).all()


def test_the_band_narrows_with_the_turns_seen_and_with_how_alike_they_are() -> None:
    """After 1,000 equal turns 100 more are foretold to a hundredth; the band went from 3,671 to 27,858."""
    low, high = np.quantile(paths([100] * 1_000, 100)[:, -1], (0.05, 0.95))
    assert 9_700 < low <= 10_000 <= high < 10_300
    random = np.random.default_rng(0)
    alike, apart = (
        random.normal(100, 10, 30).astype(int),
        random.lognormal(4.5, 0.8, 30).astype(int),
    )
    factors = [
        float(np.divide(*np.quantile(paths(sizes, 30)[:, -1], (0.95, 0.05))))
        for sizes in (alike, apart)
    ]
    few = float(np.divide(*np.quantile(paths(alike[:3], 30)[:, -1], (0.95, 0.05))))
    assert factors[0] < factors[1] and factors[0] < 2 < few


def test_with_thirty_turns_seen_the_band_holds_and_is_narrow() -> None:
    random, held, wide = np.random.default_rng(3), [], []
    for _ in range(120):
        sizes = random.lognormal(4, 0.6, 60)
        sizes[30:] *= np.exp(random.normal(0, 0.15))
        low, high = np.quantile(
            paths(sizes[:30].astype(int), 30, int(sizes[:30].sum()), 300)[:, -1], (0.05, 0.95)
        )
        held.append(low <= sizes.sum() <= high)
        wide.append(high / low)
    assert np.mean(held) >= 0.88
    assert np.median(wide) <= 2.0


def test_turns_that_are_alike_drift_all_the_same_and_the_band_holds_it() -> None:
    """Of fourteen long conversations one, in two languages, went on 1.7 times as fast: both ended above their bands."""
    random = np.random.default_rng(5)
    even = np.rint(random.lognormal(5, 0.3, 60)).astype(int)
    low, high = np.quantile(paths(even[:30], 30)[:, -1], (0.05, 0.95))
    assert low < 1.4 * even[30:].sum() < high
    whole = int(even[:30].sum())
    assert (whole + high) / (whole + low) <= 2.0


def test_others_that_do_not_resemble_a_conversation_are_left_out_and_that_is_said() -> None:
    others = [[5_000, 6_000, 5_500]] * 6
    assert pace_beside([100, 120], others) is None
    assert (
        notice([100, 120], others)
        == "the other conversations do not resemble this one and are left out"
    )
    assert notice([5_100, 6_100], others) == ""


def test_turns_that_come_in_bursts_get_a_sentence() -> None:
    assert "in bursts" in notice([10, 12, 9, 11, 900, 10, 8])
    assert notice([10, 12, 9, 11, 14, 10, 8]) == ""
    bursts = bk.Trace("bursts", spoken(6, 5).messages + spoken(1, 4_000).messages)
    table = bk.deciding.outlook(bursts, [bk.model("gpt-4o")], bk.presets.working_memory)
    assert table["notice"].str.contains("in bursts").all()


def test_an_agent_gets_the_sentence_before_its_bursts_show() -> None:
    """After 3 to 5 turns bands of coding agents held in 81 of 100, and nothing was said before the sixth."""
    steps = [{"role": "assistant", "content": "Step"}] * 8
    turn = [{"role": "user", "content": "Go on"}, *steps]
    for turns, shown in ((3, True), (5, True), (6, False)):
        trace = bk.Trace("agent", tuple(bk.Message(each) for each in turn * turns))
        table = bk.deciding.outlook(trace, "gpt-5.4", "working_memory", turns=5, samples=5)
        assert table["notice"].str.contains("agents often come in bursts").all() == shown
    assert notice([100, 90, 110], steps=3) == ""


def test_a_source_whose_others_come_in_bursts_gets_the_sentence_before_it_shows() -> None:
    """Two turns of a session of a coding agent tell nothing of it; bands of such sessions held in 63 of 100."""
    session = [40, 60, 30, 4_000, 20, 50, 30, 40]
    assert "turns of other conversations come in bursts" in notice([40, 60], [session] * 3)
    assert notice([40, 60], [session] * 2) == "", "two others are no source"
    assert notice([40, 60], [[40, 60, 30, 90, 20, 50]] * 3) == "", "turns that differ are no bursts"


def test_bursts_of_others_that_it_does_not_resemble_are_not_its_own() -> None:
    """A steady conversation of large turns has nothing of sessions whose turns begin a hundred times smaller."""
    sessions = [[40, 60, 30, 4_000, 20, 50, 30, 40]] * 3
    assert notice([5_000, 5_100, 4_900, 5_050], sessions) == ""
    left_out = notice([5_000, 5_100, 4_900, 5_050], [*sessions, *sessions])
    assert left_out == "the other conversations do not resemble this one and are left out"


def test_names_of_many_policies_each_have_a_line() -> None:
    """Names of 21 policies lay over each other: 10 pixels apart, in letters of 12."""
    names = [f"policy {number}" for number in range(21)]
    table = pd.DataFrame(
        {"policy": names, "turn": 9, "request": 9, "spent": 1.0, "unit": "US dollars"}
    )
    drawn = bk.figures.spending.draw(table)["layout"]
    places = [note["y"] for note in drawn["annotations"]]
    bottom, top = drawn["yaxis"]["range"]
    pixels = (drawn["height"] - 100) / (top - bottom)
    assert bottom <= min(places) < max(places) <= top
    assert np.diff(places).min() * pixels >= 15


def test_the_spending_of_long_conversations_takes_little_memory() -> None:
    """Of 500 continuations of 14,000 turns, eight tables of 57 MB were made."""
    sizes = np.cumsum(np.ones((200, 3_000), "int64"), axis=1)
    tiers = Prices("x", Price(2.0, ((1_000, 3.0),)), cache_read=Price(0.5, ((2_000, 1.0),)))
    tracemalloc.start()
    dollars = spent(sizes, tiers)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert dollars is not None
    assert most < 1.5 * dollars.nbytes
    assert dollars[0, -1] * 1e6 == pytest.approx(
        1_000 * 2 + 2_000 * 3 + sum(range(2_000)) / 2 + sum(range(2_000, 3_000))
    )
