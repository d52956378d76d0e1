"""``bk.what_if``: one replay a value, with its errors, and sentences that are true of the table."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.lab.sessions.settings import sentences_of, usual_values
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
    rows = table.iloc[1:]
    sentences = sentences_of(table)
    middle = (rows["least"] + rows["most"]) / 2
    best = rows.iloc[int(np.argmin(middle))]
    assert rows["flat"].tolist() == [bool(low <= best["high"]) for low in rows["low"]]
    if not rows["flat"].all():
        named = {
            int(size.replace(",", ""))
            for size in re.findall(r"[\d,]*\d", sentences[0].split(" cost")[0])
        }
        assert named == set(rows.loc[rows["flat"], "value"])
        assert f"{middle.max():,.2f}" in sentences[1]
    assert bk.figures.settings_compared.spec(table)["layout"]["meta"]["answer"] == sentences[0]


def test_where_the_replay_is_far_from_the_bill_nothing_is_cheapest(session: bk.Session) -> None:
    table = bk.what_if(session, threshold=[100_000, 150_000])
    table.attrs |= {"is_ranked": False, "replay_error": 0.07}
    first, *_ = sentences_of(table)
    assert "more than 5 % off, so no value is called the cheapest" in first
    table.loc[:, ["least", "most"]] = float("nan")
    assert sentences_of(table)[0].startswith("No price is known")


def test_usual_values_lie_between_the_instructions_and_the_whole(session: bk.Session) -> None:
    assert usual_values(session, "threshold") == [150_000]
    assert usual_values(session, "keep")[0] == 0


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({}, "one setting at a time"),
        ({"threshold": 1_000, "keep": 10}, "one setting at a time"),
        ({"cache_life": "2h"}, "Unknown cache life '2h'. Choose one of: 5m, 1h"),
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
