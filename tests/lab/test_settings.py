"""``bk.what_if``: one replay a value, with its errors, and sentences that are true of the table."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.lab.sessions.sentences import sentences_of
from budgetkit.lab.sessions.settings import usual_values
from tests.conftest import examples


@pytest.fixture(scope="module")
def session() -> bk.Session:
    """Claude Code, 139 requests, one compaction."""
    return bk.Session(bk.load_trace("made-up-session"))


def test_a_lower_threshold_compacts_more_often_and_drops_more_that_was_used(
    session: bk.Session,
) -> None:
    table = bk.what_if(session, threshold=[100_000, 150_000, 1_000_000])
    assert table["value"].tolist() == ["as recorded", 100_000, 150_000, 1_000_000]
    rows = table.iloc[1:]
    assert rows["compactions"].is_monotonic_decreasing
    assert rows["used_later"].is_monotonic_decreasing
    assert (rows["low"] <= rows["least"]).all() and (rows["most"] <= rows["high"]).all()
    assert table["least"].iloc[0] == pytest.approx(session.totals()["cost"])


def test_the_errors_are_those_of_the_replay_and_of_the_rule(session: bk.Session) -> None:
    attrs = bk.what_if(session, threshold=150_000).attrs
    assert abs(attrs["replay_error"]) < 0.005 and abs(attrs["rule_error"]) < 0.1
    assert attrs["is_ranked"]
    assert np.isnan(bk.what_if(session, cache_life="1h").attrs["rule_error"])


def test_the_sessions_own_settings_come_to_its_bill(session: bk.Session) -> None:
    billed = session.totals()["cost"]
    assert session.usage["cache_write_1h_tokens"].fillna(0).sum() == 0
    own_life = bk.what_if(session, cache_life="5m").iloc[1]
    assert own_life["least"] == pytest.approx(billed, rel=0.005)
    own_model = bk.what_if(session, model=session.model or "").iloc[1]
    assert own_model["least"] <= billed * 1.005 and own_model["most"] >= billed * 0.995


def test_an_hour_keeps_what_five_minutes_lose(session: bk.Session) -> None:
    table = bk.what_if(session, cache_life=["5m", "1h"])
    assert table["cached"].iloc[2] > table["cached"].iloc[1]


def test_another_model_costs_its_prices_and_its_tokens(session: bk.Session) -> None:
    table = bk.what_if(session, model=["gpt-5.5", "claude-haiku-4-5"])
    other, small = table.iloc[1], table.iloc[2]
    assert other["sent"] != small["sent"]
    assert small["high"] < table["least"].iloc[0]


@settings(max_examples=examples(6), deadline=None)
@given(st.lists(st.integers(90_000, 400_000), min_size=2, max_size=4, unique=True))
def test_what_is_said_is_true_of_the_table(sizes: list[int]) -> None:
    session = bk.Session(bk.load_trace("made-up-session"))
    table = bk.what_if(session, threshold=sizes)
    rows: Any = table.iloc[1:]
    sentences = sentences_of(table)
    middle = (rows["least"] + rows["most"]) / 2
    is_usable = (rows["overflows"] == 0) & (rows["stops"] == 0)
    if not is_usable.any():
        assert not table["flat"].any() and sentences[0] == "None of these values can be used."
        return
    best = rows.iloc[int(np.argmin(middle.where(is_usable, np.inf)))]
    assert rows["flat"].tolist() == (is_usable & (rows["low"] <= best["high"])).tolist()
    if not rows["flat"].iloc[int(np.argmax(middle))]:
        named = {
            int(size.replace(",", ""))
            for size in re.findall(r"[\d,]*\d", sentences[0].split(" cost")[0])
        }
        assert named == set(rows.loc[rows["flat"], "value"])
        assert f"{middle.max():,.2f}" in sentences[1]
    answer = bk.figures.settings_compared.spec(table)["layout"]["meta"]["answer"]
    assert answer == f"As recorded: ${table.attrs['billed']:,.2f}. {sentences[0]}"


def test_what_a_value_saves_and_loses_is_said_beside_the_others(session: bk.Session) -> None:
    """A saving of one size was "4% to 4%", and a lossy value stood beside one that loses more only."""
    table = bk.what_if(session, threshold=[100_000, 150_000, 1_000_000])
    table["flat"] = [False, False, True, False]
    table["used_later"] = [0, 9, 5, 2]
    table.loc[2, ["low", "least", "most", "high"]] = 0.9 * table.attrs["billed"]
    told = " ".join(sentences_of(table))
    assert "150,000 would have saved 10%." in told
    drops = "drops 5 messages used later; 1,000,000 drops 2 and 100,000 drops 9."
    assert f"Choose 150,000, which {drops}" in told


def test_where_the_replay_is_far_from_the_bill_nothing_is_cheapest(session: bk.Session) -> None:
    table = bk.what_if(session, threshold=[100_000, 150_000])
    table.attrs |= {"is_ranked": False, "replay_error": 0.07}
    first, *_ = sentences_of(table)
    assert "more than 5 % off, so no value is called the cheapest" in first
    table.loc[:, ["least", "most"]] = float("nan")
    assert sentences_of(table)[0].startswith("No price is known")


def test_usual_values_lie_between_the_instructions_and_the_whole(session: bk.Session) -> None:
    assert usual_values([session], "threshold") == [150_000]
    assert usual_values([session], "keep")[0] == 0


ONE_SETTING = "Not exactly one setting to change. Pass one of: threshold, keep, cache_life, model."


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({}, ONE_SETTING),
        ({"threshold": 1_000, "keep": 10}, ONE_SETTING),
        ({"cache_life": "2h"}, "Unknown cache life '2h'. Choose one of: '5m', '1h'"),
        ({"threshold": 100_000, "rule": "last turns"}, "writes no summary"),
    ],
)
def test_a_setting_that_does_not_apply_is_refused(
    session: bk.Session, chosen: dict[str, object], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        bk.what_if(session, **chosen)  # type: ignore[arg-type]


def test_prices_that_nobody_knows_are_no_costs() -> None:
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}]
    usage = {"message_index": 1, "context_tokens": 20, "cache_read_tokens": 0, "model": "toy"}
    usage |= {"cache_write_tokens": 0, "output_tokens": 2}
    session = bk.Session(
        bk.Trace("toy", tuple(map(bk.Message, messages)), fields={"usage": [usage]})
    )
    table = bk.what_if(session, threshold=1_000)
    assert isinstance(table, pd.DataFrame) and table["least"].isna().all()
    assert not table.attrs["is_ranked"]
    assert sentences_of(table)[0].startswith("No price is known")


def drawn(seed: int, price: str = "claude-sonnet-4-5") -> bk.Session:
    """A session without compactions whose prompt grows to 240,000 tokens, at some day of the year."""
    rng = np.random.default_rng(seed)
    messages: list[dict[str, object]] = [{"role": "user", "content": "Go on."}]
    rows = []
    read = 0
    for number, prompt in enumerate(np.cumsum(rng.integers(4_000, 8_000, 40)).tolist()):
        call = {"id": f"t{number}", "function": {"name": "read", "arguments": "{}"}}
        row = {"message_index": len(messages), "model": price, "context_tokens": prompt}
        row |= {"cache_read_tokens": read, "cache_write_tokens": prompt - read}
        time = 1.76e9 + 86_400 * seed + 60 * number
        rows.append(row | {"input_tokens": 0, "output_tokens": 200, "time": time})
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"t{number}", "content": "word " * 4_800})
        read = prompt
    trace = bk.Trace(f"drawn-{seed}", tuple(map(bk.Message, messages)), fields={"usage": rows})
    return bk.Session(trace)


def test_a_setting_is_chosen_on_older_sessions_and_tried_on_newer_ones() -> None:
    sessions = [drawn(seed) for seed in (3, 1, 4, 2, 5)]
    table = bk.what_if(sessions, threshold=[60_000, 500_000])
    parts = [bk.what_if(session, threshold=[60_000, 500_000]) for session in sessions]
    for column in ("low", "least", "most", "high", "sent", "compactions"):
        assert table[column].tolist() == pytest.approx(
            np.sum([part[column] for part in parts], axis=0).tolist()
        )
    attrs = table.attrs
    assert (attrs["sessions"], attrs["tried_on"], attrs["left_out"]) == (5, 3, 0)
    assert (table["overflows"] + table["stops"]).sum() == 0
    older = [parts[place] for place in (1, 3)]
    costs = np.sum([(part["least"] + part["most"])[1:] for part in older], axis=0)
    assert attrs["chosen"] == [60_000, 500_000][int(np.argmin(costs))]
    assert attrs["saved_low"] <= attrs["saved"] <= attrs["saved_high"]
    (trial,) = [words for words in sentences_of(table) if "95 % interval" in words]
    assert "cost least on the older 2 sessions; on the newer 3, it would have saved" in trial
    assert ("no saving is certain" in trial) == (attrs["saved_low"] <= 0 <= attrs["saved_high"])


@pytest.mark.parametrize(
    ("low", "middle", "high", "right"),
    [
        (0.01, 0.05, 0.09, "would have saved 5.0% of the bill (95 % interval: 1.0% to 9.0%)."),
        (-0.04, 0.05, 0.09, "(95 % interval: \u22124.0% to 9.0%): no saving is certain."),
        (-0.19, -0.07, -0.01, "would have cost 7.0% more (95 % interval: 1.0% to 19.0%)."),
    ],
)
def test_only_what_newer_sessions_confirm_is_a_saving(
    low: float, middle: float, high: float, right: str
) -> None:
    table = bk.what_if([drawn(seed) for seed in (3, 1, 4, 2, 5)], threshold=[60_000, 500_000])
    table.attrs |= {"saved_low": low, "saved": middle, "saved_high": high}
    table.attrs["billed"] = 2.0 * table["high"].max()
    words = sentences_of(table)
    assert any(text.endswith(right) for text in words)
    (recorded,) = [text for text in words if text.startswith("As recorded")]
    assert ("would have saved" in recorded) == (low > 0)


def test_where_nothing_changes_no_gain_is_said() -> None:
    """A threshold that no session reaches saves nothing, whichever half it was chosen on."""
    table = bk.what_if([drawn(seed) for seed in range(6)], threshold=[900_000])
    assert table.attrs["saved"] == pytest.approx(0, abs=0.01)
    assert any("no saving is certain" in words for words in sentences_of(table))


def test_sessions_that_cannot_be_used_are_left_out_and_said() -> None:
    nameless = [drawn(seed, "toy") for seed in (7, 8)]
    table = bk.what_if([*map(drawn, range(4)), *nameless], threshold=[60_000])
    assert (table.attrs["sessions"], table.attrs["left_out"]) == (4, 2)
    with pytest.raises(
        ValueError, match="Too few usable sessions: 1 of 3 with a known price.*at least 4"
    ):
        bk.what_if([drawn(1), *nameless], threshold=[60_000])


def test_a_value_that_cannot_be_used_is_never_the_cheapest(session: bk.Session) -> None:
    """Where the program would stop, or a prompt exceeds the window, its cost is hypothetical."""
    table = bk.what_if(session, threshold=[150_000, 1_000_000], window=170_000)
    assert table["overflows"].iloc[2] > 0 and table["flat"].tolist()[1:] == [True, False]
    assert "At 1,000,000, prompts exceed the window." in sentences_of(table)
    alone = bk.what_if(session, threshold=[1_000_000], window=170_000)
    assert not alone["flat"].any()
    assert sentences_of(alone)[0] == "None of these values can be used."
    assert "At 1,000,000, prompts exceed the window." in sentences_of(alone)


@pytest.mark.parametrize("asked", [100_000, [100_000, 100_000]])
def test_a_single_value_is_compared_with_the_record(session: bk.Session, asked: Any) -> None:
    table = bk.what_if(session, threshold=asked)
    assert table["low"].iloc[1] > table.attrs["billed"]
    assert table["flat"].tolist() == [True] + [False] * (len(table) - 1)
    sentences = sentences_of(table)
    assert any("less than with any of these values" in text for text in sentences)
    assert len(sentences) == len({*sentences}) == 4
    assert bk.what_if(session, threshold=150_000)["flat"].tolist() == [True, True]


def test_where_no_compaction_shows_the_error_of_the_rule_the_largest_stands_in() -> None:
    table = bk.what_if(drawn(1), threshold=[60_000])
    assert np.isnan(table.attrs["rule_error"])
    row = table.iloc[1]
    assert row["low"] == pytest.approx(0.91 * row["least"])
    assert any("so 9 % is assumed, the largest measured" in words for words in sentences_of(table))
    life = bk.what_if(drawn(1), cache_life=["1h"]).iloc[1]
    assert life["low"] == pytest.approx(life["least"], rel=0.01)
