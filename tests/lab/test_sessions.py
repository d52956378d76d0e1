"""Recorded sessions: prompts sum to the provider's numbers, misses have causes and prices, rules stand side by side."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import budgetkit as bk
from budgetkit.files import data_path
from budgetkit.lab.sessions import causes
from budgetkit.lab.sessions.comparing import (
    AS_IT_WAS,
    RECORDED,
    USUAL,
    comparison,
)
from budgetkit.lab.sessions.sentences import finding, in_short, notices, replay_check
from budgetkit.lab.sessions.setup import replay_setup
from budgetkit.message import Message
from budgetkit.pruning.policies.policy import Prefix
from budgetkit.trace import Trace, usage_frame
from tests.made_sessions import SHAPES, requests


@pytest.fixture(scope="module")
def made_up() -> bk.Session:
    return bk.Session(bk.load_trace("made-up-session"))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000), shape=st.sampled_from(sorted(SHAPES)), number=st.integers(1, 20)
)
def test_each_requests_rows_sum_to_the_providers_number(seed: int, shape: str, number: int) -> None:
    trace = bk.load_trace(BytesIO(SHAPES[shape](requests(seed, number))))
    session = bk.Session(trace)
    rows = session.requests()
    assert (rows["counted"] + rows["unlogged"] + rows["difference"] == rows["prompt"]).all()
    assert (rows["read"] + rows["written"] + rows["fresh"] == rows["prompt"]).all()
    assert rows["prompt"].tolist() == usage_frame(trace)["context_tokens"].tolist()
    for request in rows.loc[rows["message_index"].notna(), "request"].tolist()[:3]:
        assert session.filled_by(request)["tokens"].sum() == rows["prompt"].iloc[request - 1]


def test_what_the_log_does_not_hold_is_learned_from_the_first_request(made_up: bk.Session) -> None:
    """The made-up provider adds 74,000 tokens to every prompt; three characters are a token of it."""
    assert abs(made_up.unlogged - 74_000) < 100
    rows = made_up.requests()
    assert rows["difference"].abs().max() < 200
    assert set(rows["mark"]) == {"derived"}


def test_every_miss_has_a_cause_and_a_price(made_up: bk.Session) -> None:
    missed = made_up.misses()
    assert missed["cause"].tolist() == [causes.LIFE, causes.LIFE, causes.COMPACTION]
    assert missed["detail"].iloc[0] == "a pause of 11 minutes, and a cache lifetime of 5 minutes"
    assert (missed["cost"] > 0).all()
    totals = made_up.totals()
    assert (
        made_up.sentence
        == f"Its 3 cache misses cost ${totals['missed_cost']:,.2f} of ${totals['cost']:,.2f}."
    )
    assert totals["cost"] == pytest.approx(np.sum(made_up.requests()["cost"]))


def test_the_read_is_foretold_from_what_was_before(made_up: bk.Session) -> None:
    rows = made_up.requests()
    assert (rows["foretold"] - rows["read"]).abs().max() <= 1_024
    told = rows[rows["missed"] > 0]
    assert (told["foretold"] < 20_000).all(), "only what many sessions share is read after a break"


def session_of(records: list[dict[str, Any]]) -> bk.Session:
    return bk.Session(bk.load_trace(BytesIO("\n".join(map(json.dumps, records)).encode())))


def answer(
    number: int, at: int, read: int, written: int, model: str = "claude-opus-4-5", hour: int = 0
) -> dict[str, Any]:
    life = {"ephemeral_1h_input_tokens": hour, "ephemeral_5m_input_tokens": written - hour}
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
    usage |= {"output_tokens": 9, "cache_creation": life}  # type: ignore[dict-item]
    message = {
        "role": "assistant",
        "id": f"m{number}",
        "content": "yes",
        "model": model,
        "usage": usage,
    }
    return {
        "type": "assistant",
        "uuid": f"a{number}",
        "sessionId": "s",
        "timestamp": stamp(at + 5),
        "message": message,
    }


def said(number: int, at: int) -> dict[str, Any]:
    message = {"role": "user", "content": "go on"}
    return {
        "type": "user",
        "uuid": f"u{number}",
        "sessionId": "s",
        "timestamp": stamp(at),
        "message": message,
    }


def stamp(at: int) -> str:
    return f"2026-01-01T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"


def cause_of(second: dict[str, Any], pause: int = 20, hour: int = 0) -> list[str]:
    """Let a second request follow a first one, which wrote 50,000 tokens; return the causes of the misses."""
    records = [said(0, 0), answer(0, 0, 0, 50_000, hour=hour), said(1, pause), second]
    return list(session_of(records).misses()["cause"])


def test_the_life_of_what_was_written_comes_from_the_writes_themselves() -> None:
    assert cause_of(answer(1, 400, 0, 50_500), pause=400) == [causes.LIFE]
    assert cause_of(answer(1, 400, 0, 50_500), pause=400, hour=50_000) == [causes.UNEXPLAINED]
    assert cause_of(answer(1, 4_000, 0, 50_500), pause=4_000, hour=50_000) == [causes.LIFE]


def test_the_life_of_a_cache_counts_from_the_start_of_the_request_that_wrote_it() -> None:
    """An answer that took 285 seconds leaves 15 of the five minutes: 20 seconds after it the cache is gone."""
    records = [said(0, 0), answer(0, 280, 0, 50_000), said(1, 305), answer(1, 306, 0, 50_500)]
    session = session_of(records)
    assert session.happened["pause"].tolist() == [0, 305]
    assert list(session.misses()["cause"]) == [causes.LIFE]


def test_another_model_and_small_differences() -> None:
    assert cause_of(answer(1, 20, 0, 50_500, model="claude-sonnet-4-5")) == [causes.MODEL]
    assert cause_of(answer(1, 20, 49_000, 1_500)) == [], "nothing is said below 1,024 tokens"


def test_a_price_that_nobody_knows_is_said_and_not_zero() -> None:
    records = [
        said(0, 0),
        answer(0, 0, 0, 9_000, model="nobodys-model"),
        said(1, 900),
        answer(1, 900, 0, 9_100, "nobodys-model"),
    ]
    session = session_of(records)
    assert np.isnan(session.totals()["cost"])
    assert session.sentence == (
        "1 cache miss: 9,000 cached tokens were not read; 9,000 were still in the prompt and were paid again. No price "
        "is known for nobodys-model. Give the prices of another model with --price, or prices= in Python."
    )
    priced = bk.Session(session.trace, prices="claude-opus-4-5")
    assert priced.totals()["cost"] > 0
    table = bk.compare(session, ["codex"])
    assert table.loc[table["system"] == "codex", "least"].isna().all()
    table["compactions"] = 1
    assert finding(table).endswith(session.price_gap)


def test_a_step_of_the_price_goes_by_the_whole_prompt_also_where_a_part_was_written_for_an_hour() -> (
    None
):
    """Sonnet 4.5 costs double above 200,000 tokens; 100,000 read and 110,000 written are above it together."""
    records = [said(0, 0), answer(0, 0, 100_000, 110_000, model="claude-sonnet-4-5", hour=110_000)]
    session = session_of(records)
    dear = bk.cost.prices("claude-sonnet-4-5", hour=True)
    assert dear.cache_read is not None and dear.cache_write is not None and dear.output is not None
    at_least = (100_000 * dear.cache_read.tiers[0][1] + 110_000 * dear.cache_write.base) / 1e6
    totals = session.totals()
    assert totals["cost"] > at_least
    assert (totals["steps"], totals["steps_cost"] > 0) == (1, True)
    below = [said(0, 0), answer(0, 0, 50_000, 110_000, model="claude-sonnet-4-5", hour=110_000)]
    assert session_of(below).totals()["steps"] == 0


def test_compactions_are_told_as_they_happened(made_up: bk.Session) -> None:
    (row,) = made_up.compactions().to_dict("records")
    assert row["before"] > 155_000 > row["after"] > 70_000
    assert row["left"] == row["before"] - row["after"]
    assert 1_000 < row["summary"] < 3_000
    assert (row["call"], row["next_cost"] > 0) == ("not in the log", True)


@pytest.mark.parametrize(("compacted", "window"), [(True, 200_000), (False, 1_000_000)])
def test_a_session_that_was_compacted_early_was_held_in_the_usual_window(
    compacted: bool, window: int
) -> None:
    """The model takes 1,000,000 tokens; who compacts at 160,000 has set it to 200,000, and rules act by that."""
    summary = {
        "type": "user",
        "uuid": "s",
        "sessionId": "s",
        "timestamp": stamp(30),
        "isCompactSummary": True,
    }
    summary |= {"message": {"role": "user", "content": "what was done"}}
    records = [said(0, 0), answer(0, 0, 0, 160_000, model="claude-opus-4-6")]
    records += [summary] * compacted + [
        said(1, 40),
        answer(1, 40, 0, 30_000, model="claude-opus-4-6"),
    ]
    session = session_of(records)
    assert replay_setup(session).budget.window == window


def test_rules_stand_side_by_side_the_cheapest_first(made_up: bk.Session) -> None:
    table = bk.compare(made_up)
    assert set(table["system"]) == {*USUAL, AS_IT_WAS, RECORDED}
    assert (table["least"] + table["most"]).is_monotonic_increasing, "by the middle of the range"
    assert (table["most"] >= table["least"]).all()
    recorded = table.set_index("system").loc[RECORDED]
    assert recorded["least"] == pytest.approx(made_up.totals()["cost"])
    acting = table[table["compactions"] > 0]
    assert len(acting) > 2
    assert (acting[acting["system"] != RECORDED]["assumed"] != "").all()
    told = finding(bk.compare(made_up, ["gemini-cli"]))
    assert (
        "The same messages under a rule modelled on Gemini CLI (0.61.0, 2026-09-25) cost $" in told
    )
    assert told.endswith("not a forecast: the agent would have acted differently.")


def test_rules_that_do_not_act_send_the_same_and_cost_the_same(made_up: bk.Session) -> None:
    """Codex' row was cheaper although it "did not act": it had cut results when they arrived, and nobody was told."""
    table = bk.compare(made_up, window=1_000_000)
    idle = table[(table[["compactions", "left", "capped"]] == 0).all(axis="columns")]
    idle = idle[idle["system"] != RECORDED]
    assert len(idle) >= 5 and idle[["least", "most", "sent", "cached"]].nunique().eq(1).all()


def test_a_rule_that_only_cuts_results_says_so() -> None:
    call = {"id": "c", "function": {"name": "read", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x" * 4_000},
        {"role": "assistant", "content": "Read."},
    ]
    session = with_usage(messages, {1: 20, 3: 30_000})
    table = bk.compare(session, ["codex", "pi"], window=272_000).set_index("system")
    assert (table.loc["codex", "capped"], table.loc["codex", "left"]) == (1, 0)
    assert number_of(table.reset_index(), "pi", "sent") == 20 + 30_000
    assert number_of(table.reset_index(), "codex", "sent") < 20 + 30_000


def test_a_replay_of_the_session_as_it_was_held_comes_to_the_bill(made_up: bk.Session) -> None:
    """The rule of the program that recorded a session was priced $29 where $24 was billed: the replay had other
    requests, sizes by one scale for the whole session, counted answers, and none of the misses that were billed."""
    billed = made_up.totals()["cost"]
    table = bk.compare(made_up, ["claude-code"])
    assert table.attrs["replayed"] == pytest.approx(billed, rel=0.005)
    (sentence_of_it, lacking, where) = replay_check(table)
    assert sentence_of_it.endswith(f"; ${billed:,.2f} was billed: 0.0%.")
    # No program logs the call that wrote its summary; a rule's row holds the price of such a call.
    cost = number_of(table, "claude-code", "summary_cost")
    assert f"so ${billed:,.2f} excludes that cost" in lacking and f"(${cost:,.2f})" in lacking
    assert where.startswith("Claude Code's rule acts above 153,961 tokens, where its compactions")
    missed = made_up.misses()
    (compacted,) = missed.loc[missed["cause"] == causes.COMPACTION, "request"]
    assert abs(number_of(table, "claude-code", "first") - compacted) <= 1


def test_a_rule_is_set_beside_the_same_replay_where_that_is_not_the_bill(
    made_up: bk.Session,
) -> None:
    """A rule that never acts stood $1.25 below the bill: the replay was that far off, and the table said nothing."""
    table = bk.compare(made_up, ["claude-code", "pi"])
    billed = made_up.totals()["cost"]
    assert "in a replay of the record" not in finding(table)

    held = 0.97 * billed
    table.attrs |= {"replayed": held, "replay_error": -0.03}
    words = f"${held:,.2f} in a replay of the record (${billed:,.2f} was billed)"
    assert words in finding(table)


def test_no_saving_within_the_errors_is_certain_and_ties_are_ties(made_up: bk.Session) -> None:
    """Rules were ranked by the lower end of their range, and a saving of 1 % was named beside an error of 3 %."""
    table = bk.compare(made_up, ["claude-code", "pi"])
    rules = table["system"].isin(["claude-code", "pi"])
    held = table.attrs["replayed"]
    table.loc[rules, "compactions"] = 1

    def said(error: float, rule_error: float = 0.0, **costs: tuple[float, float]) -> str:
        for name, ends in costs.items():
            rows = table["system"] == name.replace("_", "-")
            table.loc[rows, ["least", "most"]] = [held * end for end in ends]
        table.attrs |= {"replay_error": error, "rule_error": rule_error}
        return finding(table)

    wide = said(0.001, claude_code=(0.5, 1.5), pi=(0.8, 0.82))
    assert "modelled on pi" in wide and "Within the error, Claude Code may cost as little." in wide
    clear = said(0.001, claude_code=(0.9, 0.9), pi=(0.8, 0.82))
    assert clear.startswith("The same messages") and "may cost as little" not in clear
    near = said(0.03, claude_code=(1.1, 1.1), pi=(0.98, 0.98))
    assert near.startswith("No saving is certain, because such a replay is off by up to 3.0%.")
    unknown = said(0.001, float("nan"), claude_code=(1.1, 1.1), pi=(0.98, 0.98))
    assert unknown.startswith("No saving is certain, because such a replay is off by up to 9.0%.")
    dear = said(0.001, claude_code=(1.2, 1.2), pi=(1.1, 1.1))
    assert dear.startswith("None of these rules would have been cheaper.")


def test_what_a_miss_paid_for_is_no_more_than_its_prompt(made_up: bk.Session) -> None:
    """The table said 156,762 tokens of a compaction whose next prompt had 53,236."""
    missed = made_up.misses()
    usage = made_up.usage.iloc[missed["request"] - 1]
    rest = usage["context_tokens"].to_numpy() - usage["cache_read_tokens"].to_numpy()
    assert (missed["paid"].to_numpy() == np.minimum(missed["missed"], rest)).all()
    of_compactions = missed[missed["cause"] == causes.COMPACTION]
    assert of_compactions["paid"].sum() == made_up.compactions()["next_paid"].sum()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), shape=st.sampled_from(sorted(SHAPES)))
def test_a_replay_sends_the_prompts_and_answers_that_were_billed(seed: int, shape: str) -> None:
    session = bk.Session(bk.load_trace(BytesIO(SHAPES[shape](requests(seed, 12)))))
    setup = replay_setup(session)
    assert setup.record is not None
    usage = session.usage.iloc[setup.record.rows]
    outcome = setup.as_held()
    prompts = usage["context_tokens"].to_numpy(dtype=np.int64)
    shrinks = np.minimum.accumulate(prompts[::-1])[::-1]
    assert (outcome.sent <= prompts).all() and (outcome.sent >= shrinks).all()
    assert outcome.output.tolist() == usage["output_tokens"].tolist()


def test_misses_that_no_rule_causes_happen_under_every_rule() -> None:
    """A pause of eleven minutes empties the cache of five, whatever rule had pruned what was in it."""
    records = []
    for number in range(6):
        written = 1_000 if number else 50_000
        read = 49_000 + 1_000 * number if number else 0
        if number == 3:
            read, written = 0, 53_000
        at = 20 * number + (660 if number >= 3 else 0)
        records += [said(number, at), answer(number, at, read, written)]
    session = session_of(records)
    assert session.misses()["cause"].tolist() == [causes.LIFE]
    outcome = comparison(replay_setup(session), ["pi"]).outcomes["pi"].least
    assert (outcome.cached[3], outcome.written[3]) == (0, outcome.sent[3])
    assert (outcome.cached[[1, 2, 4, 5]] > 49_000).all()


def test_a_turn_of_another_model_has_that_models_price() -> None:
    records = [said(0, 0), answer(0, 0, 0, 50_000), said(1, 20)]
    records += [answer(1, 20, 0, 50_500, model="claude-sonnet-4-5")]
    session = session_of(records)
    table = bk.compare(session, ["pi"])
    assert table["least"].tolist() == pytest.approx([session.totals()["cost"]] * 3, rel=0.001)


def test_a_summary_that_shares_the_prefix_costs_less_than_one_of_its_own(
    made_up: bk.Session,
) -> None:
    from dataclasses import replace

    rule = bk.policies.system("cline")
    compact = rule.policies[0]
    assert isinstance(compact, bk.policies.Compact)
    costs = []
    prefixes: tuple[Prefix, ...] = ("own", "shared")
    for prefix in prefixes:
        call = bk.policies.SummaryCall(prefix)
        policy = replace(rule, policies=(replace(compact, call=call),))
        table = bk.compare(made_up, {"rule": policy})
        costs.append(table.loc[table["system"] == "rule", "least"].item())
    assert costs[1] < costs[0]


def test_a_conversation_without_usage_is_compared_and_a_session_without_it_says_what_to_do() -> (
    None
):
    trace = bk.load_trace("coding-agent")
    table = bk.compare(trace, window=8_192, prices="gpt-4o")
    assert table["least"].notna().all()
    with pytest.raises(ValueError, match="has no usage.*made-up-session"):
        bk.Session(trace)


def number_of(table: pd.DataFrame, name: str, column: str) -> int:
    number: int = table.loc[table["system"] == name, column].item()
    return number


def test_a_rule_that_waits_for_a_pause_acts_after_the_two_pauses(made_up: bk.Session) -> None:
    rule = bk.policies.Compact((bk.policies.Trigger("idle", 600),), keep_tail=5_000, size=1_500)
    table = bk.compare(made_up, {"idle": rule})
    assert number_of(table, "idle", "compactions") == 2


def test_a_request_that_exceeds_the_window_is_counted() -> None:
    """Only requests whose history was above its limit were counted, and without pruning no history has one."""
    table = bk.compare(bk.load_trace("coding-agent"), window=4_000)
    assert number_of(table, "no pruning", "sent") > 75 * 4_000
    assert number_of(table, "no pruning", "overflows") == 75
    assert number_of(table, "codex", "overflows") == 0
    assert "Without pruning, 75 prompts would exceed the window." in notices(table)


def test_a_summarys_call_that_itself_exceeds_the_window_is_counted(made_up: bk.Session) -> None:
    """It sends the whole prompt and its instruction: at the mark of 99.9 % of the window there is no room for both."""
    late = bk.policies.Compact(
        (bk.policies.Trigger("share", 0.999),),
        size=1_500,
        call=bk.policies.SummaryCall("shared", instruction=5_000),
    )
    early = bk.policies.Compact((bk.policies.Trigger("share", 0.5),), size=1_500, call=late.call)
    table = bk.compare(made_up, {"late": late, "early": early}, window=120_000)
    assert number_of(table, "late", "call_overflows") == number_of(table, "late", "compactions") > 0
    assert (
        number_of(table, "early", "call_overflows") == 0 < number_of(table, "early", "compactions")
    )
    assert next(notice for notice in notices(table) if "call" in notice).startswith(
        "late writes a summary with a call"
    )


def test_a_compaction_in_a_loop_is_counted_and_said(made_up: bk.Session) -> None:
    """What stays, the summary and the newest messages, is above the mark again: each request compacts anew."""
    rule = bk.policies.Compact(
        (bk.policies.Trigger("tokens", 80_000),), keep_tail=5_000, size=4_000
    )
    table = bk.compare(made_up, {"mine": rule})
    assert number_of(table, "mine", "loops") > 10
    assert any(words.startswith("mine compacts again at the very next") for words in notices(table))
    early = bk.compare(made_up, ["claude-code"])
    assert number_of(early, "claude-code", "loops") == 0


def test_claude_code_stops_where_its_prompt_fills_again_and_again(made_up: bk.Session) -> None:
    """A window with little beside what comes back; before, the rest of the session was priced as if it went on."""
    table = bk.compare(made_up, ["claude-code", "codex"], window=120_000)
    request = number_of(table, "claude-code", "stops")
    assert 0 < request < len(made_up.usage)
    assert number_of(table, "codex", "stops") == 0
    assert [words for words in notices(table) if f"would stop at request {request:,}" in words]
    roomy = bk.compare(made_up, ["claude-code"])
    assert number_of(roomy, "claude-code", "stops") == 0


def test_masking_halves_the_bill_without_a_cache_and_loses_where_reading_is_cheap(
    made_up: bk.Session,
) -> None:
    from budgetkit.lab.sessions.comparing import by_price_and_window

    rule = bk.policies.ClearResults(keep_uses=10)
    table = by_price_and_window(
        made_up, {"mask": rule}, reads=[1.0, 0.5, 0.1, 0.02], windows=[1_000_000]
    )
    change = table[table["system"] == "mask"].set_index("read")["change"]
    assert (
        change.is_monotonic_decreasing is False
        and change.loc[1.0] < change.loc[0.1] < change.loc[0.02]
    )
    assert change.loc[1.0] < 0 < change.loc[0.02], "where the order turns"


# Listing: only where somebody asks, only one's own files, and nothing of what was said.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "home" / ".claude" / "projects" / "-work-shop"
    place.mkdir(parents=True)
    lines = data_path("traces/made-up-session.jsonl").read_bytes()
    (place / "one.jsonl").write_bytes(lines)
    head = json.dumps(
        {
            "type": "user",
            "cwd": "/home/ann/shop",
            "sessionId": "s",
            "message": {"role": "user", "content": "x"},
        }
    )
    (place / "two.jsonl").write_bytes(head.encode() + b"\n" + SHAPES["claude-code"](requests(1)))
    os.utime(place / "one.jsonl", (1, 1))
    return tmp_path / "home"


def test_sessions_are_found_where_their_programs_keep_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: folder)
    table = bk.sessions()
    assert table["program"].tolist() == ["Claude Code", "Claude Code"]
    assert table["project"].tolist() == ["shop", ""]
    assert [Path(path).name for path in table["path"]] == ["two.jsonl", "one.jsonl"], (
        "the newest first"
    )
    assert table.attrs["folders"] == [str(folder / ".claude" / "projects")]
    billed = bk.sessions(folder, billed=True)
    assert billed["misses"].tolist()[1] == 3
    assert "Please" not in billed.to_csv(), "nothing of what was said"


def places(home: Path) -> dict[str, Path]:
    """Write a session of each agent where it keeps them on this system; return them by agent."""
    settings_folder = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}
    code = f"{settings_folder.get(sys.platform, '.config')}/Code/User"
    tasks = "tasks/1760000000000/ui_messages.json"
    started = {"type": "session.start", "data": {"context": {"cwd": "/home/ann/shop"}}}
    spoken = [
        {"role": role, "message": {"content": [{"type": "text", "text": "Please."}]}}
        for role in ("user", "assistant")
    ]
    chat = {"requests": [{"message": {"text": "Please."}, "response": [{"value": "Yes."}]}]}
    gemini = {"sessionId": "s", "projectHash": "h", "messages": []}
    written = {
        "Claude Code": (".claude/projects/-shop/a.jsonl", SHAPES["claude-code"](requests(1))),
        "Codex": (".codex/sessions/2026/11/26/rollout-1.jsonl", SHAPES["codex"](requests(2))),
        "Gemini CLI": (".gemini/tmp/h/chats/session-1.json", json.dumps(gemini).encode()),
        "pi": (".pi/agent/sessions/-shop/a.jsonl", SHAPES["pi"](requests(3))),
        "Copilot CLI": (".copilot/session-state/a/events.jsonl", json.dumps(started).encode()),
        "Cursor": (
            ".cursor/projects/shop/agent-transcripts/a.jsonl",
            "\n".join(map(json.dumps, spoken)).encode(),
        ),
        "Cline": (
            f"{code}/globalStorage/saoudrizwan.claude-dev/{tasks}",
            SHAPES["cline"](requests(4)),
        ),
        "Roo Code": (
            f"{code}/globalStorage/rooveterinaryinc.roo-cline/{tasks}",
            SHAPES["cline"](requests(5)),
        ),
        "Kilo Code": (
            f"{code}/globalStorage/kilocode.kilo-code/{tasks}",
            SHAPES["cline"](requests(6)),
        ),
        "Copilot in VS Code": (
            f"{code}/workspaceStorage/w/chatSessions/a.json",
            json.dumps(chat).encode(),
        ),
    }
    export = json.loads(SHAPES["opencode"](requests(7)))
    storage = ".local/share/opencode/storage"
    for number, message in enumerate(export["messages"]):
        name = f"msg_{number:03}"
        info = json.dumps(message["info"] | {"id": name}).encode()
        written[name] = (f"{storage}/message/ses_1/{name}.json", info)
        for part, value in enumerate(message["parts"]):
            file = f"{storage}/part/{name}/prt_{part}.json"
            written[f"{name}.{part}"] = (file, json.dumps(value).encode())
    info = json.dumps(export["info"]).encode()
    written["OpenCode"] = (f"{storage}/session/global/ses_1.json", info)
    for file, content in written.values():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_bytes(content)
    return {name: home / file for name, (file, _) in written.items() if "msg_" not in name}


def test_each_agents_sessions_are_looked_for_where_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.3.0 looked for those of four agents, and read the files of eleven."""
    written = places(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    table = bk.sessions(billed=True).set_index("program")
    assert table["path"].to_dict() == {name: str(path) for name, path in written.items()}
    prompts = table["prompt"]
    for name in ("Claude Code", "Codex", "pi", "Cline", "Roo Code", "Kilo Code"):
        assert prompts[name] == bk.Session(written[name]).totals()["prompt"] > 0
    export = bk.Session(bk.load_trace(BytesIO(SHAPES["opencode"](requests(7))))).totals()
    assert (table.loc["OpenCode", "requests"], prompts["OpenCode"]) == (12, export["prompt"])
    assert bk.load_trace(written["Cursor"]).messages[1].text == "Please."


def test_opencodes_database_is_read_as_its_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From version 1.2 on it moves them there; until then 0.4.0 left such sessions out in silence."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("BUDGETKIT_CACHE", "")
    in_files = places(tmp_path)["OpenCode"]
    of_files = bk.Session(in_files).totals()
    export = json.loads(SHAPES["opencode"](requests(7)))
    database = tmp_path / ".local/share/opencode/opencode.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(
            "CREATE TABLE session (id TEXT, directory TEXT, title TEXT, time_updated INTEGER);"
            "CREATE TABLE message (id TEXT, session_id TEXT, time_updated INTEGER, data TEXT);"
            "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
        )
        for later, session in enumerate(("ses_1", "ses_2")):
            of_session = (session, "/home/me/shop", "Mend the till", 1)
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?)", of_session)
            for number, message in enumerate(export["messages"]):
                name = f"{session}_{number:03}"
                times = message["info"].get("time", {})
                times = {"time": {name: at + later for name, at in times.items()}}
                info = json.dumps(message["info"] | times)
                row = (name, session, 1_700_000_000_000 + number, info)
                connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
                for part, value in enumerate(message["parts"]):
                    row_of_part = (f"{name}_{part}", name, session, json.dumps(value))
                    connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row_of_part)
        connection.commit()
    before = database.read_bytes()
    table = bk.sessions(billed=True)
    table = table[table["program"] == "OpenCode"]
    assert [Path(path).relative_to(database).name for path in table["path"]] == ["ses_1", "ses_2"]
    assert table["project"].tolist() == ["shop", "shop"]
    assert table["prompt"].tolist() == [of_files["prompt"]] * 2
    second = bk.Session(table["path"].iloc[1])
    assert (second.totals(), second.trace.title) == (of_files, "Mend the till")
    assert {*table["path"]} <= {*bk.sessions(database.parent)["path"]}
    with pytest.raises(ValueError, match="Unknown session .ses_9. in opencode.db"):
        bk.load_trace(database / "ses_9")
    assert database.read_bytes() == before and [*database.parent.glob("opencode.db-*")] == []

    # One that nobody can read is named, and has no numbers.
    database.write_bytes(b"no database")
    table = bk.sessions(billed=True).set_index("path")
    assert table.loc[str(database), "program"] == "OpenCode"
    assert table.loc[str(database), "requests"] is None or table["requests"].isna()[str(database)]
    assert table.loc[str(in_files), "requests"] == of_files["requests"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_a_link_that_leads_out_is_not_followed(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.jsonl").write_text("{}")
    (folder / ".claude" / "projects" / "link").symlink_to(outside)
    (folder / ".claude" / "projects" / "file.jsonl").symlink_to(outside / "secret.jsonl")
    assert len(bk.sessions(folder)) == 2


def test_200_sessions_are_listed_from_their_heads(folder: Path) -> None:
    place = folder / ".claude" / "projects" / "-work-shop"
    written = (place / "one.jsonl").read_bytes()
    for number in range(200):
        (place / f"n{number:03}.jsonl").write_bytes(written)
    code = "import budgetkit as bk, time; t = time.process_time(); "
    code += f"n = len(bk.sessions({str(folder)!r})); print(n, time.process_time() - t)"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert (int(shown[0]), float(shown[1]) < 2) == (200, True)


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="Folder not found: 'nowhere at all'"):
        bk.sessions("nowhere at all")


def test_no_import_scans_a_home() -> None:
    code = "import pathlib, budgetkit as bk; pathlib.Path.home = None; bk.sessions, bk.Session, bk.compare, bk.App"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_10_000_messages_under_eight_systems_take_under_3_seconds(made_up: bk.Session) -> None:
    import time

    messages = (made_up.trace.messages * 60)[:10_000]
    trace = Trace("long", messages)
    started = time.process_time()
    table = bk.compare(trace, window=200_000, prices="claude-sonnet-4-5")
    assert isinstance(table, pd.DataFrame)
    assert time.process_time() - started < 12, (
        "3 s on a quiet machine; the bound leaves room for a busy one"
    )


def test_three_questions_are_answered_in_a_line_each(made_up: bk.Session) -> None:
    """The parts of the cost add up to it, and what its own compaction lost is said too."""
    why, lost, other = in_short(made_up, bk.compare(made_up))
    kinds = made_up.cost_by_kind()
    assert sum(kinds.values()) == pytest.approx(made_up.totals()["cost"])
    assert (
        f"${kinds['read']:,.2f} for cache reads" in why
        and "Its 3 cache misses cost $0.98 of $6.24." in why
    )
    assert lost.startswith("What was lost? Its compaction removed ")
    assert other.startswith("What would another rule have cost? ") and "a rule modelled on" in other


def with_usage(
    messages: list[dict[str, Any]], prompts: dict[int, int], **fields: Any
) -> bk.Session:
    """A session whose requests, before the messages at these places, held so many tokens."""
    none = {"cache_read_tokens": 0, "cache_write_tokens": 0, "output_tokens": 0, "model": "toy"}
    rows = [
        {**none, "message_index": place, "context_tokens": prompt}
        for place, prompt in prompts.items()
    ]
    return bk.Session(Trace("toy", tuple(map(Message, messages)), fields={"usage": rows, **fields}))


def test_what_a_sessions_own_compaction_lost_and_a_call_needed_is_counted() -> None:
    """Like any rule's: the path stood in a message that the compaction took out before the call that copies it."""
    call = {"id": "c", "function": {"name": "read", "arguments": '{"path": "src/a_1.py"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Look at src/a_1.py."},
        {"role": "assistant", "content": "I will."},
        {"role": "user", "content": "A summary."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "result"},
        {"role": "assistant", "content": "Read."},
    ]
    session = with_usage(messages, {1: 10, 3: 10, 5: 10}, compactions=[{"at": 2, "first_kept": 2}])
    table = bk.compare(session, ["pi"], window=50_000)
    row = table[table["system"] == RECORDED].iloc[0]
    assert (row["left"], row["used_later"]) == (2, 1)


def test_where_log_and_provider_part_is_said(made_up: bk.Session) -> None:
    assert made_up.gap_sentence == ""
    messages = [
        {"role": role, "content": "x" * 40} for _ in range(5) for role in ("user", "assistant")
    ]
    session = with_usage(messages, {1: 100, 3: 120, 5: 140, 7: 5_000, 9: 5_020})
    assert session.gap_sentence == (
        "At 2 of 5 requests the log and the provider's count differ by more than a tenth of the prompt, "
        "first at request 4 (+4,840 tokens)."
    )


def test_long_answers_are_foretold_to_be_read_again_where_the_last_ones_were() -> None:
    """Each answer of 3,000 tokens is read with the prompt before it; after two of them the third is foretold so."""
    answers = 3_000
    prompts = [10_000 + 4_000 * number for number in range(4)]
    reads = [0] + [prompt + answers for prompt in prompts[:-1]]
    messages = [
        {"role": role, "content": "x" * 40} for _ in prompts for role in ("user", "assistant")
    ]
    messages[2:] = [{"role": "assistant", "content": "x" * 40} for _ in messages[2:]]
    rows = [
        {
            "message_index": 2 * place + 1,
            "context_tokens": prompt,
            "cache_read_tokens": read,
            "cache_write_tokens": 0,
            "output_tokens": answers,
            "model": "toy",
        }
        for place, (prompt, read) in enumerate(zip(prompts, reads, strict=True))
    ]
    session = bk.Session(Trace("toy", tuple(map(Message, messages)), fields={"usage": rows}))
    assert session.requests()["foretold"].tolist() == [
        0,
        prompts[0],
        prompts[1],
        prompts[2] + answers,
    ]


@pytest.mark.parametrize(
    ("counter", "sentence"),
    [
        ("abacus", r"Unknown counter 'abacus'\. Choose a ratio"),
        ("", r"Unknown counter ''\. Choose a ratio"),
        (3, r"Invalid counter: 3\. Expected a model, a function or a name"),
        (lambda text: "x", r"Invalid count of .*: 'x'\. Expected a whole number"),
        (lambda text: -1, r"Invalid count of .*: -1\. Use 0 or more"),
    ],
)
def test_a_counter_that_cannot_count_is_refused_at_once(counter: Any, sentence: str) -> None:
    """0.3.0 took it, and failed at the first table."""
    with pytest.raises((TypeError, ValueError), match=sentence):
        bk.Session("made-up-session", counter)
