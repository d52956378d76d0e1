"""Solving backwards flips where it says; a tuned budget is measured on conversations not used to choose it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.lab.deciding import (
    Condition,
    cut_at_most,
    holds_turns,
    nothing_cut,
    token_prices,
)
from budgetkit.lab.deciding.objectives import OBJECTIVES
from tests.conftest import examples

BUDGET = bk.Budget(
    8_000,
    [bk.Reserve("output", 1_000)],
    [bk.Allocation("system", required=True), bk.Allocation("history")],
)


def turns(*sizes: int) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [["toy"], range(1, len(sizes) + 1)], names=["conversation", "turn"]
    )
    return pd.DataFrame({"system": 500, "history": np.cumsum(sizes)}, index=index)


def uncut(budget: bk.Budget, demand: dict[str, int]) -> bool:
    plan = bk.allocate(replace(budget, deficit="signed"), demand)
    return plan.free >= 0 and all(grant.cut == 0 for grant in plan.grants)


def test_the_smallest_window_that_cuts_nothing_is_exact_on_both_sides() -> None:
    demand = {"system": 500, "history": 9_000}
    found = bk.deciding.solve(demand, BUDGET, "window")
    assert (found.value, found.method, found.find) == (10_500, "bisection", "smallest")
    assert uncut(BUDGET.assign(window=10_500), demand)
    assert not uncut(BUDGET.assign(window=10_499), demand)


def test_the_largest_reserve_and_the_least_cap_are_found() -> None:
    assert bk.deciding.solve({"system": 500, "history": 5_000}, BUDGET, "output").value == 2_500
    capped = BUDGET.assign(history={"cap": 100})
    assert bk.deciding.solve({"system": 500, "history": 5_000}, capped, "history").value == 5_000


def test_a_history_of_so_many_turns_is_held() -> None:
    demands = turns(*[400] * 30)
    found = bk.deciding.solve(demands, BUDGET, "window", holds_turns(20))
    assert found.value == 1_000 + 500 + 20 * 400
    assert found.budget is not None and found.budget.window == found.value


def test_a_share_of_conversations_may_be_cut() -> None:
    several = [turns(1_000, 1_000 * n) for n in range(1, 20)]
    whole = bk.deciding.solve(several, BUDGET, "window").value
    most = bk.deciding.solve(several, BUDGET, "window", cut_at_most(0.1)).value
    these = bk.deciding.solve(several, BUDGET, "window", cut_at_most(0.1, only_these=True)).value
    assert (whole, most, these) == (21_500, 20_500, 20_500)
    assert bk.deciding.solve(several, BUDGET, "window", cut_at_most(0.05)).value == 21_500
    assert bk.deciding.solve(several, BUDGET, "window", cut_at_most(0.1, "turns")).value == 19_500


def test_what_cannot_be_comes_with_what_binds() -> None:
    found = bk.deciding.solve(
        {"system": 500, "history": 9_000}, BUDGET.assign(history={"cap": 4_000}), "window"
    )
    assert not found.holds
    assert "history still loses 5,000 tokens to its cap of 4,000 tokens" in str(found)


def test_where_more_may_harm_a_scan_is_made_and_said() -> None:
    shares = bk.Budget(
        8_000, [bk.Reserve("output", bk.Share(0.2))], [bk.Allocation("history", bk.Share(0.5))]
    )
    found = bk.deciding.solve({"history": 3_000}, shares, "window")
    assert found.method == "scan"
    assert f"found by a scan in steps of {found.step:,} tokens" in str(found)
    assert found.value == 6_000
    assert uncut(shares.assign(window=6_000), {"history": 3_000})
    assert not uncut(shares.assign(window=5_999), {"history": 3_000})


@settings(max_examples=examples(40), deadline=None)
@given(system=st.integers(0, 3_000), history=st.integers(0, 20_000))
def test_the_window_found_holds_and_one_token_less_does_not(system: int, history: int) -> None:
    demand = {"system": system, "history": history}
    value = bk.deciding.solve(demand, BUDGET, "window").value
    assert value is not None
    assert uncut(BUDGET.assign(window=value), demand)
    assert value == 1_001 or not uncut(BUDGET.assign(window=value - 1), demand)


def test_tuning_shares_among_settings_only_what_none_of_them_moves() -> None:
    """Every score is that of a replay of a conversation that nobody has replayed before."""
    policies = {
        "oldest": bk.policies.OldestFirst(),
        "turns": bk.policies.OldestFirst(unit="turn"),
        "rank": bk.policies.Importance(lambda message: len(message.text) % 3),
    }
    vary = {"window": [500, 700], "output": [50, 150], "policy": policies}
    made = conversations(4)
    options: dict[str, Any] = {"counter": "chars/4", "by": "request"}
    found = bk.deciding.tune(made, TIGHT, vary, list(OBJECTIVES), risk=None, **options)
    for row, setting in found.table[list(vary)].iterrows():
        lines = {line: int(setting[line]) for line in ("window", "output")}
        for place, fresh in enumerate(conversations(4)):
            outcome = bk.replay(
                fresh, TIGHT.assign(**lines), policies[setting["policy"]], **options
            )
            alone = [measure(outcome) for measure in OBJECTIVES.values()]
            np.testing.assert_array_equal(found.scores[place, 1 + int(str(row))], alone)


def far(outcome: bk.deciding.Replay) -> float:
    """A valley with one lowest point: a window of 640, an answer of 170, episodes of 55."""
    budget = outcome.budget
    far_off = (
        abs(budget.window - 640)
        + abs(budget.sizes["output"] - 170)
        + 2 * abs((budget.caps["episodes"] or 0) - 55)
    )
    return far_off / 10


VALLEY = {"window": range(500, 700, 10), "output": range(50, 250, 10), "episodes": range(5, 105, 5)}


def test_of_more_settings_than_trials_some_are_drawn_and_the_same_seed_draws_the_same() -> None:
    """The best of 400 of 8,000 lies near the lowest point, and two processes bring the same bytes as one."""
    progress: list[tuple[int, int]] = []
    options: dict[str, Any] = {
        "vary": VALLEY,
        "objective": far,
        "trials": 400,
        "counter": len,
        "risk": None,
    }
    tuned = bk.deciding.tune(
        conversations(4), TIGHT, **options, progress=lambda done, of: progress.append((done, of))
    )
    assert tuned.table["far"].min() <= 3 < tuned.table["far"].median()
    assert str(tuned).endswith("400 of 8,000 settings were tried, drawn at random.")
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]
    again = bk.deciding.tune(conversations(4), TIGHT, **options, workers=2)
    assert again.scores.tobytes() == tuned.scores.tobytes()
    pd.testing.assert_frame_equal(again.table, tuned.table)


def test_settings_are_drawn_from_however_many_and_none_twice() -> None:
    lines = ["output", "window", "episodes", "knowledge"]
    vary = dict.fromkeys(lines, range(30, 5_030))
    tuned = bk.deciding.tune(conversations(4), TIGHT, vary, trials=20, counter=len)
    assert (tuned.tried, tuned.of, tuned.search) == (20, 5_000**4, "drawn at random")
    assert len(tuned.table[lines].drop_duplicates()) == 20


def test_what_cannot_be_planned_is_not_chosen() -> None:
    vary = {"output": range(100, 20_000, 100), "policy": ["octopus", "haystack"]}
    tuned = bk.deciding.tune(conversations(4), bk.presets.chat(8_000), vary, "cut", trials=60)
    assert tuned.table["cut"].isna().any() and tuned.candidate["output"] < 8_000


def test_a_cluster_gives_the_same_bytes() -> None:
    distributed = pytest.importorskip(
        "distributed", reason="dask.distributed (extra: cluster) is absent"
    )
    asked: dict[str, Any] = {
        "vary": {"output": [50, 200]},
        "objective": list(OBJECTIVES),
        "counter": "chars/4",
    }
    alone = bk.deciding.tune(conversations(6), TIGHT, **asked)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        spread = bk.deciding.tune(conversations(6), TIGHT, **asked, client=client)
    assert spread.scores.tobytes() == alone.scores.tobytes()
    assert (str(spread), spread.table.to_csv()) == (str(alone), alone.table.to_csv())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"line": "histroy"},
            "Unknown reserve or section 'histroy'. Choose one of: 'output', 'system', 'history', 'window'",
        ),
    ],
)
def test_what_cannot_be_asked_is_said(change: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {"demands": {"history": 1}, "budget": BUDGET, "line": "window"} | change
    with pytest.raises((LookupError, ValueError), match=said):
        bk.deciding.solve(**asked)


def test_the_price_of_a_token_is_what_planning_again_keeps() -> None:
    budget = bk.Budget(
        1_000,
        (),
        [bk.Allocation("notes", 300, keep="best"), bk.Allocation("history", keep="newest")],
    )
    items = [bk.Item("notes", 250, 0.9), bk.Item("notes", 120, 0.8), *[bk.Item("history", 100)] * 9]
    table = token_prices(bk.fit(budget, items), more=100).set_index("line")
    assert (table.at["window", "tokens"], table.at["window", "items"]) == (100, 1)
    assert (table.at["notes", "tokens"], table.at["notes", "items"]) == (20, 0), (
        "a note comes, a message goes"
    )


def conversations(many: int, seed: int = 0) -> list[bk.Trace]:
    """Short made-up conversations of three lengths."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(many):
        said: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
        for turn in range(int(random.integers(4, 10))):
            said.append(
                {
                    "role": "user",
                    "content": f"question {turn} " + "word " * int(random.integers(5, 60)),
                }
            )
            said.append({"role": "assistant", "content": "answer " * int(random.integers(5, 60))})
        made.append(bk.Trace(f"made up {number}", tuple(bk.Message(each) for each in said)))
    return made


TIGHT = bk.presets.working_memory(600, output=200, history_floor=0)


def test_a_gain_is_measured_on_conversations_that_were_held_out() -> None:
    found = bk.deciding.tune(conversations(32), TIGHT, {"output": [100, 150, 200, 300]}, "cut")
    assert found.best == {"output": 100}
    assert found.conversations == (16, 16)
    gain = found.chosen
    assert gain.holds and 0 < gain.low <= gain.share <= gain.high <= 1
    assert (
        "The setting: output 100. The best setting is at the edge of the values tried: output 100 is the smallest."
        in str(found)
    )
    assert found.budget.sizes["output"] == 100


def test_where_nothing_is_gained_it_says_so() -> None:
    found = bk.deciding.tune(conversations(8), TIGHT, {"output": [200, 300]}, "cut")
    assert found.best == {"output": 200}
    assert not found.chosen.holds
    assert found.stays
    assert (
        str(found)
        == "No setting tried cuts fewer tokens than the current setting. Keep the current setting. "
        "The setting: output 200."
    )


def test_a_cost_asks_for_prices_and_takes_a_models_name() -> None:
    """It was said before that no setting can be planned."""
    with pytest.raises(ValueError, match="Missing prices for the objective 'cost'. Pass prices="):
        bk.deciding.tune(conversations(8), TIGHT, {"output": [50, 150]}, "cost")
    with pytest.raises(TypeError, match="Invalid prices: 5. Expected Prices, or a model's name"):
        bk.deciding.tune(conversations(8), TIGHT, {"output": [50, 150]}, "cost", prices=5)
    named, given = (
        bk.deciding.tune(conversations(8), TIGHT, {"output": [50, 150]}, "cost", prices=prices)
        for prices in ("gpt-4o", bk.cost.prices("gpt-4o"))
    )
    pd.testing.assert_frame_equal(named.table, given.table)


def test_several_objectives_have_a_front_on_which_no_setting_beats_another() -> None:
    found = bk.deciding.tune(
        conversations(8),
        TIGHT,
        {"output": [50, 150], "policy": ["octopus", "haystack"]},
        ["cut", "uncached"],
    )
    assert found.tried == found.of == 4
    front = found.front[["cut", "uncached"]].to_numpy()
    assert len(front) >= 1
    for row in front:
        assert not ((front <= row).all(axis=1) & (front < row).any(axis=1)).any()


def test_the_same_seed_gives_the_same_and_processes_change_nothing() -> None:
    asked: dict[str, Any] = {
        "vary": {"output": [100, 200]},
        "objective": ["cut", *OBJECTIVES],
        "seed": 3,
    }
    one, two = (
        bk.deciding.tune(conversations(12), TIGHT, **asked, workers=workers) for workers in (1, 2)
    )
    pd.testing.assert_frame_equal(one.table, two.table)
    gains = [(gain.share, gain.low, gain.high) for gain in (one.chosen, two.chosen)]
    assert gains[0] == gains[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"objective": "happiness"},
            "Unknown objective 'happiness'. Choose one of 'evidence', 'cut', 'cost'",
        ),
        ({"vary": {"policy": ["hope"]}}, "Unknown policy 'hope'. Choose one of: 'oldest first'"),
        ({"vary": {}}, "Nothing to vary"),
        (
            {"traces": bk.load_traces("made-up-chats")[:3]},
            "Too few conversations: 3. Pass at least 4.",
        ),
        (
            {"budget": bk.presets.chat(8_000), "vary": {"output": [9_000]}},
            "None of 1 settings can be planned",
        ),
    ],
)
def test_what_cannot_be_tuned_is_said(change: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {
        "traces": conversations(8),
        "budget": TIGHT,
        "vary": {"output": [100]},
    } | change
    with pytest.raises((LookupError, ValueError), match=said):
        bk.deciding.tune(**asked)


def test_a_condition_of_ones_own_is_a_function_of_the_plans() -> None:
    half = Condition(
        "half is free", lambda plans: bool((plans.granted <= plans.budget.usable / 2).all())
    )
    assert bk.deciding.solve({"system": 500, "history": 500}, BUDGET, "window", half).value == 3_000
    assert nothing_cut("system").name == "nothing is cut from system"


@pytest.mark.parametrize("turns", [0, -1])
def test_no_turns_are_no_condition(turns: int) -> None:
    with pytest.raises(ValueError, match=rf"Invalid number of turns: {turns}. Use 1 or more."):
        holds_turns(turns)


def test_the_price_of_a_token_is_gross_and_net_and_a_section_without_a_cap_has_a_row() -> None:
    """Retrieval gained 600 tokens that the history paid: 0 in all, and 600 where they arrive."""
    budget = bk.Budget(
        2_000, (), [bk.Allocation("retrieval", 600, importance=9), bk.Allocation("history")]
    )
    plan = bk.allocate(budget, {"retrieval": 1_200, "history": 3_000})
    table = token_prices(plan, more=600).set_index("line")
    assert (table.at["retrieval", "tokens"], table.at["retrieval", "gross"]) == (0, 600)
    assert (table.at["history", "tokens"], table.at["history", "gross"]) == (0, 600)


def test_the_gap_to_the_best_choice_of_the_present_plan_stands_beside_every_price() -> None:
    budget = bk.Budget(1_000, (), [bk.Allocation("notes", 300, keep="best", fill="prefix")])
    items = [bk.Item("notes", 250, 0.9), bk.Item("notes", 120, 0.8), bk.Item("notes", 130, 0.7)]
    table = token_prices(bk.fit(budget, items))
    assert table["gap_now"].tolist() == pytest.approx([0.6] * len(table))


def test_models_are_compared_with_their_end_and_the_section_that_breaks() -> None:
    def preset(_: object) -> bk.Budget:
        return bk.presets.working_memory(600, output=200, history_floor=0)

    made = conversations(4)
    with pytest.warns(UserWarning, match="was retired on"):
        table = bk.deciding.compare_models(made, ["gpt-4o", "gpt-4"], preset)
    assert table["breaks"].tolist() == ["history", "history"]
    assert table["conversations"].tolist() == [4, 4]
    assert table["ends"].tolist() == [bk.model("gpt-4o").ends, "2026-10-23"]
    roomy = bk.deciding.compare_models(made, ["gpt-4o"], bk.presets.working_memory)
    assert roomy[["fits", "breaks"]].values.tolist() == [[1.0, ""]]
