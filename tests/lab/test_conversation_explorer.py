"""The conversation explorer without a browser: what it shows is what `bk.replay` says, and a scrub replays nothing."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budgetkit as bk
from budgetkit import figures
from budgetkit.lab.explorers.conversation import ConversationExplorer
from budgetkit.lab.explorers.conversation import results as replays
from budgetkit.lab.explorers.conversation.explorer import GONE, NEWEST
from budgetkit.lab.explorers.conversation.settings import CHOICES, ConversationSettings
from budgetkit.lab.explorers.reading import LONGEST
from budgetkit.lab.figures.question import dollars
from budgetkit.lab.replay.cost import Price, Prices
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.outlook import Forecast, pace_of
from budgetkit.lab.replay.prompt_cache import CACHES, PromptCache
from budgetkit.models import DEFAULT_MODEL
from budgetkit.pruning.policies import (
    Floor,
    Importance,
    OldestFirst,
    Policy,
    SlidingWindow,
    TriggerTarget,
    system,
)
from budgetkit.state import from_json, from_yaml, to_yaml
from tests.lab.panel import Change, hear, lines, put, refused, shown, slide, typed

PRICED = Prices("gpt-4o", Price(2.5), Price(10.0), Price(1.25), source="given")


def conversation(turns: int, words: int = 30, name: str = "toy") -> bk.Trace:
    messages = [{"role": "system", "content": "Be brief."}]
    for turn in range(1, turns + 1):
        messages.append(
            {
                "role": "user",
                "content": f"Question {turn} about order A-{turn // 2}: " + "why " * words,
            }
        )
        messages.append({"role": "assistant", "content": f"Answer {turn}: " + "so " * words})
    return bk.Trace(name, tuple(bk.Message(message) for message in messages))


def explorer_of(
    trace: bk.Trace | str, *policies: str, window: int = 2_000, **options: Any
) -> ConversationExplorer:
    budget = bk.presets.working_memory(window, output=400, history_floor=0)
    return ConversationExplorer(trace, budget, policies or None, prices=PRICED, **options)


def agent(*policies: str) -> ConversationExplorer:
    return explorer_of("coding-agent", *policies, window=16_000)


def kpi(explorer: ConversationExplorer, key: str) -> tuple[str, str]:
    found = next(k for k in explorer.view.state["kpis"] if k["key"] == key)
    return str(found["value"]), str(found["change"])


def said(explorer: ConversationExplorer) -> str:
    status = explorer.view.state["status"]
    return " ".join([str(status["level"]), str(status["text"]), *map(str, status["more"])])


def blocks(explorer: ConversationExplorer) -> list[dict[str, Any]]:
    return list(explorer.view.reader["blocks"])


def same(one: Replay, other: Replay) -> None:
    pd.testing.assert_frame_equal(one.frame(), other.frame())
    pd.testing.assert_frame_equal(one.messages(), other.messages())


# --- what is shown is what the functions say ------------------------------------------------------


def test_the_replay_of_each_policy_is_that_of_the_function() -> None:
    trace = bk.load_trace("coding-agent")
    budget = bk.presets.working_memory(16_000, output=400, history_floor=0)
    roles = {role: section for role, section in budget.roles.items() if role != "step"}
    explorer = ConversationExplorer(trace, budget, ["last turns", "summarise"], prices=PRICED)
    options: dict[str, Any] = {
        "counter": bk.counter(DEFAULT_MODEL),
        "roles": roles,
        "by": "request",
        "cache": CACHES["openai"],
        "prices": PRICED,
    }
    own = {
        "last turns": bk.replay(trace, budget, SlidingWindow(10), **options),
        "summarise": bk.replay(trace, budget, bk.policies.Summarise(), **options),
    }
    same(explorer.replay, own["last turns"])
    same(explorer.replays["summarise"], own["summarise"])
    ranked = bk.deciding.rank_policies(own)
    pd.testing.assert_frame_equal(explorer.ranking[ranked.columns], ranked)
    found = bk.deciding.losses(own["summarise"], bk.deciding.evidence(trace))
    share = explorer.ranking.set_index("policy").loc["summarise", "evidence"]
    assert share == found["present"].sum() / found["needed"].sum()


def test_each_figure_is_the_one_that_a_cell_draws() -> None:
    explorer = agent("down to a mark", "oldest first")
    assert (
        explorer.view.figure_timeline["spec"]["data"]
        == figures.timeline.spec(explorer.replay)["data"]
    )
    assert (
        explorer.view.figure_caching["spec"]["data"]
        == figures.caching.spec(explorer.replay)["data"]
    )
    assert (
        explorer.view.figure_dropping["spec"]["data"]
        == figures.dropping.spec(explorer.replay)["data"]
    )
    assert explorer.view.figure_spending["spec"] == figures.spending.spec(explorer.replays)
    assert explorer.view.figure_fan["title"] == "When will the window be full if this continues?"
    json.dumps([getattr(explorer.view, f"figure_{name}") for name in explorer.view.figures])


def test_policies_that_cost_the_same_are_priced_in_one_sentence() -> None:
    both = {"oldest first": OldestFirst(), "window": SlidingWindow(9_999)}
    explorer = ConversationExplorer("support-chat", "chat", both, model="gpt-4o")
    assert explorer.view.figure_spending["note"].endswith(" with any policy.")
    assert explorer.view.figure_spending["note"].count("$") == 1


def test_the_key_figures_are_those_of_the_policy_shown() -> None:
    explorer = agent("down to a mark")
    totals, frame = explorer.replay.totals(), explorer.replay.frame()
    first = int(frame[frame["dropped"] > 0]["request"].iloc[0])
    assert kpi(explorer, "first") == (f"turn {frame['turn'].iloc[first - 1]}", f"request {first}")
    assert kpi(explorer, "cached")[0] == f"{totals['cached_share']:.1%}"
    assert kpi(explorer, "cost")[0] == f"${totals['cost']:.2f}"
    assert kpi(explorer, "now")[0] == f"{frame['sent'].iloc[-1]:,}"
    label = next(k["label"] for k in explorer.view.state["kpis"] if k["key"] == "evidence")
    assert label == "needed messages kept (guess)", "a guess is called one"


def test_marked_evidence_is_no_proxy() -> None:
    messages = list(conversation(6).messages)
    messages[9] = bk.Message({**messages[9].raw, "evidence": [1]})
    explorer = explorer_of(bk.Trace("marked", tuple(messages)))
    (found,) = [k for k in explorer.view.state["kpis"] if k["key"] == "evidence"]
    assert (found["label"], found["value"]) == ("needed messages kept", "100%")


def test_nothing_lost_is_said_so() -> None:
    explorer = explorer_of(conversation(3), window=64_000)
    assert said(explorer).startswith("fits Nothing is ever lost under 'oldest first'")
    assert kpi(explorer, "first") == ("none", "")


# --- a scrub replays nothing ----------------------------------------------------------------------


def test_a_scrub_looks_up_and_a_replay_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Policy] = []
    drawn: list[int] = []

    def watched(trace: bk.Trace, budget: bk.Budget, policy: Policy, **options: Any) -> Replay:
        made.append(policy)
        return bk.replay(trace, budget, policy, **options)

    def drawing(trace: bk.Trace, count: Any, turns: int, *given: Any, **named: Any) -> Any:
        drawn.append(turns)
        return Forecast(trace, count, turns, *given, **named)

    monkeypatch.setattr(replays, "replay", watched)
    monkeypatch.setattr(replays, "Forecast", drawing)
    explorer = explorer_of(conversation(30), "oldest first", "last turns")
    assert (len(made), len(drawn)) == (2, 1)
    for request in (1, 7, 30):
        explorer.set(request=request)
    explorer.view.opened = ["timeline"]
    explorer.set(main="last turns")
    assert len(made) == 2, "neither a scrub nor another policy in detail"
    explorer.set(turns=4)
    assert made[2:] == [SlidingWindow(4)], "another number concerns its own policy alone"
    explorer.set(window=1_800)
    explorer.undo()
    assert (len(made), len(drawn)) == (5, 1), "what was made before is looked up again"


def test_the_request_says_what_is_read() -> None:
    explorer = explorer_of(conversation(30), "oldest first")
    explorer.set(request=20)
    absent, present = explorer.replay.absent(20), explorer.replay.present(20)
    assert absent
    labels = [str(block["label"]) for block in blocks(explorer)]
    assert f"#{present[-1]} user" in labels
    dropped = next(
        block for block in blocks(explorer) if block["label"].startswith(f"#{absent[-1]} ")
    )
    row = explorer.replay.messages().loc[absent[-1]]
    assert dropped["level"] == "gone"
    assert dropped["mark"] == f"{row['tokens']} tokens, dropped at turn {row['gone']}"
    assert dropped["why"].startswith("The history had ")
    assert kpi(explorer, "now")[0] == f"{explorer.replay.frame()['sent'].iloc[19]:,}"
    assert explorer.view.figure_timeline["spec"]["layout"]["shapes"][-1]["x0"] == 20
    assert explorer.config["request"] == 20


def test_a_click_in_a_figure_goes_there() -> None:
    explorer = explorer_of(conversation(30))
    assert explorer.view.figure_timeline["click"] == "request"
    hear(explorer, {"kind": "request", "request": 12, "id": "1", "gesture": "request"})
    assert (shown(explorer, "request"), explorer.view.state["ack"]) == (12, "1")


def test_a_long_conversation_is_read_in_part_and_says_so() -> None:
    explorer = explorer_of(conversation(300, 1), "oldest first")
    shown = [b for b in blocks(explorer) if b["level"] != "gap"]
    assert len(shown) <= NEWEST + GONE + 2
    gap = next(b for b in blocks(explorer) if b["level"] == "gap")
    assert "messages not shown here" in gap["label"]
    assert "all gone" in gap["mark"]
    assert "are not shown" in explorer.view.reader["note"]
    (long,) = blocks(explorer_of(conversation(1, 900)))[1:]
    assert len(long["pieces"][0]["text"]) == LONGEST
    assert long["pieces"][1]["text"].endswith("more characters")


def test_a_summary_and_a_placeholder_are_shown_as_what_they_are() -> None:
    explorer = explorer_of(conversation(40), "summarise")
    summary = next(b for b in blocks(explorer) if b["label"] == "summary")
    assert summary["pieces"][0]["text"].startswith("A summary of ")
    assert any("summarised at turn" in str(b["mark"]) for b in blocks(explorer))
    explorer = agent("tool results first")
    frame = explorer.replay.frame()
    explorer.set(request=int(frame[frame["shrunk_messages"] > 0]["request"].iloc[0]))
    assert any("cut to a placeholder at request" in str(b["mark"]) for b in blocks(explorer))


# --- every control, set from code, does what a hand does ------------------------------------------


def lanes(explorer: ConversationExplorer) -> list[dict[str, Any]]:
    return list(explorer.panel.controls["policies"]["lanes"])


def test_the_compared_rules_stand_as_they_rank_with_what_each_comes_to() -> None:
    explorer = agent("oldest first", "claude-code", "down to a mark")
    ranking = explorer.ranking.set_index("policy")
    assert [lane["key"] for lane in lanes(explorer)] == list(ranking.index)
    line = {
        trace["name"]: trace["line"]["color"]
        for trace in figures.spending.spec(explorer.replays)["data"]
    }
    for lane in lanes(explorer):
        name, frame = lane["key"], explorer.replays[lane["key"]].frame()
        assert lane["main"] == (name == "oldest first")
        assert lane["color"] == line[name]
        assert lane["cost"] == dollars(ranking["cost"][name])
        assert lane["cached"] == f"{ranking['cached_share'][name]:.0%}"
        assert lane["cuts"] == f"{(frame['dropped'] > 0).sum():,}"
        assert max(lane["sizes"]) == frame["sent"].max()
    known = {
        name: (label, product) for name, label, _, product in explorer.view.choices["policies"]
    }
    assert known["claude-code"] == ("Claude Code", True)
    assert known["oldest first"] == ("oldest first", False)


@pytest.mark.slow
def test_policies_are_ticked_and_the_last_one_stays() -> None:
    explorer = explorer_of(conversation(30), "oldest first")
    explorer.set(policies=[*explorer.settings.chosen, "haystack"])
    assert list(explorer.replays) == ["oldest first", "haystack"]
    explorer.set(policies=[name for name in explorer.settings.chosen if name != "oldest first"])
    assert (list(explorer.replays), explorer.config["main"]) == (["haystack"], "haystack")
    assert explorer.replay.policy == system("haystack")
    explorer.set(policies=[name for name in explorer.settings.chosen if name != "haystack"])
    assert "No policy is chosen. Choose at least one." in said(explorer)
    assert shown(explorer, "policies") == ("haystack",), "the tick comes back"


@pytest.mark.slow
def test_every_choice_has_its_numbers_on_sliders() -> None:
    explorer = explorer_of(conversation(12), *CHOICES)
    for name in CHOICES:
        explorer.set(main=name)
        for number, parameter in CHOICES[name].parameters.items():
            assert shown(explorer, number) == parameter.default
            assert typed(explorer, number, str(parameter.default)) == f"{parameter.default:,}"
            step = parameter.step if parameter.default < parameter.high else -parameter.step
            put(explorer, number, parameter.default + step)
        numbers = {number: shown(explorer, number) for number in CHOICES[name].parameters}
        assert explorer.replay.policy == ConversationSettings(parameters={name: numbers}).policy(
            name
        )


def test_the_floor_holds_for_own_policies_and_is_said_where_it_does_not_fit() -> None:
    explorer = explorer_of(conversation(30), "oldest first", "octopus")
    explorer.set(unit="tokens")
    explorer.set(least=1_800)
    assert explorer.replay.policy == OldestFirst(floor=Floor(1_800, "tokens"))
    assert explorer.replays["octopus"].policy == system("octopus"), "a system keeps its own"
    requests = int((explorer.replay.frame()["over"] > 0).sum())
    assert "over From turn" in said(explorer)
    assert (
        f"oldest first: the floor of the history (1,800 tokens) does not fit in {requests} of 30 requests"
        in said(explorer)
    )
    before = explorer.replay
    explorer.set(conflict="raise")
    assert said(explorer).startswith("error The history budget of turn ")
    assert (explorer.replay, shown(explorer, "conflict")) == (before, "exceed")


def test_one_request_a_turn_or_one_an_answer() -> None:
    explorer = agent("oldest first")
    assert (shown(explorer, "by"), slide(explorer, "request")["max"]) == ("request", 85)
    held = explorer.replay.frame()["history"].sum()
    explorer.set(within=False)
    assert explorer.replay.frame()["history"].sum() < held, (
        "what stands in the running turn is not history yet"
    )
    explorer.set(by="turn")
    assert (slide(explorer, "request")["max"], explorer.panel.controls["request"]["label"]) == (
        27,
        "Turn",
    )


def test_the_request_that_is_read_stays_in_its_turn_when_requests_are_counted_otherwise() -> None:
    explorer = agent("oldest first")
    explorer.set(request=40)
    turns = explorer.replay.frame()["turn"].tolist()
    turn = turns[39]
    explorer.set(by="turn")
    assert shown(explorer, "request") == explorer.config["request"] == turn
    explorer.set(by="request")
    assert explorer.config["request"] == 1 + max(
        at for at, each in enumerate(turns) if each == turn
    )
    explorer.set(request=85)
    explorer.set(by="turn")
    assert explorer.config["request"] == 27


def test_the_last_request_stays_the_last() -> None:
    explorer = agent("oldest first")
    explorer.set(by="turn")
    explorer.open("support-chat")
    assert explorer.config["request"] == slide(explorer, "request")["max"]


def test_model_window_preset_and_cap_change_the_budget() -> None:
    explorer = explorer_of(conversation(30), "oldest first", window=4_000)
    explorer.move("history", 900)
    assert 0 < int(explorer.replay.frame()["history"].max()) <= 900
    explorer.move("output", "50%")
    assert explorer.budget.sizes["output"] == 2_000
    explorer.set(window=5_000)
    assert explorer.budget.window == 5_000
    explorer.set(preset="chat")
    assert lines(explorer) == ["output", "conversation"]
    explorer.set(model="gpt-4")
    assert explorer.budget.window == 5_000, "gpt-4 has the window that was chosen"
    explorer.set(counter="chars/4")
    assert "an estimate for gpt-4" in explorer.view.state["source"]


def test_the_cache_is_the_providers_until_another_is_chosen() -> None:
    explorer = explorer_of(conversation(40), "oldest first")
    assert explorer.replay.cache == CACHES["openai"]
    explorer.set(lifetime="1 hour")
    assert explorer.replay.cache.lifetime == 3_600
    explorer.set(rules="none")
    assert (kpi(explorer, "cached")[0], explorer.config["cache"]) == ("0.0%", "none")
    explorer.set(rules="")
    assert explorer.view.choices["rules"][0] == ("", "the model provider's rules")
    assert (shown(explorer, "rules"), shown(explorer, "lifetime")) == ("", "1 hour")
    explorer.set(model="claude-opus-4-5")
    assert explorer.config["cache"] == "anthropic-4096"
    explorer.set(model="command-a-03-2025")
    assert "No prompt cache is known for Cohere, so an ideal cache" in said(explorer)


def test_a_cache_that_has_run_out_is_said_so() -> None:
    raw = [
        {**message.raw, "timestamp": 1_000 * at}
        for at, message in enumerate(conversation(40).messages)
    ]
    trace = bk.Trace("timed", tuple(bk.Message(message) for message in raw))
    explorer = explorer_of(trace)
    assert (
        "The cache has expired at 39 requests, sent more than 600 s after the previous one."
        in said(explorer)
    )
    explorer.set(lifetime="1 hour")
    assert "The cache has expired" not in said(explorer)
    assert "have no timestamps" in explorer_of(conversation(5)).view.figure_caching["note"]


def test_prices_are_dated_typed_in_or_not_known_and_never_zero() -> None:
    explorer = ConversationExplorer(conversation(20), window=2_000, model="mistral-large-2411")
    explorer.set(day="2026-11-21")
    assert explorer.config["prices"]["date"] == "2026-11-21"
    assert kpi(explorer, "cost")[0] == "unknown"
    assert "mistral-large-2411 has no known price for cache read" in said(explorer)
    assert "tokens are weighted" in explorer.view.figure_spending["note"]
    assert all(lane["cost"].endswith(" x") for lane in lanes(explorer)), "no dollars are invented"
    typed(explorer, "price_cache_read", "$0.2")
    assert kpi(explorer, "cost")[0].startswith("$")
    assert shown(explorer, "price_input") == 2, "the listed price"
    assert typed(explorer, "price_cache_read", "") == ""
    assert kpi(explorer, "cost")[0] == "unknown"
    assert typed(explorer, "price_output", "ten") == "6"
    assert "error 'ten' is not a number, so 6 stays" in said(explorer)
    assert typed(explorer, "price_output", "1e-6") == "1e-06"


def test_the_forecast_says_when_a_limit_is_passed() -> None:
    explorer = explorer_of(conversation(20), window=2_000)
    assert explorer.forecast["event"].tolist() == ["first cut", "window full", "money spent"]
    full = int(explorer.forecast["median"].iloc[1])
    assert f"window full (2k): turn {full}" in explorer.view.figure_fan["note"].lower()
    explorer.set(horizon=3)
    assert explorer.config["horizon"] == 3
    assert len(explorer.view.figure_fan["spec"]["data"][-1]["x"]) == 20 + 3
    first = int((explorer.replay.frame()["dropped"].to_numpy() > 0).argmax()) + 1
    assert (
        f"First cut (1.5k): turn {first} ({first} to {first})." in explorer.view.figure_fan["note"]
    )
    free = explorer_of(conversation(3), window=64_000)
    free.set(horizon=3)
    assert "No limit is reached in these turns." in free.view.figure_fan["note"]
    explorer.set(money=0)
    assert explorer.forecast["event"].tolist() == ["first cut", "window full"]


def test_policies_of_ones_own_stand_beside_the_others() -> None:
    own: Mapping[str, Policy] = {"mine": TriggerTarget(bk.Share("0.9"), bk.Share("0.2"))}
    explorer = ConversationExplorer(conversation(30), policies=own, window=2_000)
    assert (list(explorer.replays), explorer.replay.policy) == (["mine"], own["mine"])
    explorer.set(policies=[*explorer.settings.chosen, "in blocks"])
    assert list(explorer.replays) == ["mine", "in blocks"]
    assert "turns" not in explorer.panel.controls
    mine = PromptCache(minimum=10, read=0.5)
    explorer = ConversationExplorer(conversation(30), model="gpt-4o", cache=mine)
    explorer.set(rules="none")
    explorer.set(rules="given in code")
    assert explorer.replay.cache == mine


# --- files, errors, steps back --------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_comes_by_path_by_upload_and_by_name(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": f"c{i}", "messages": [m.raw for m in conversation(4 + i).messages]})
        for i in (0, 1)
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(lines))
    explorer = explorer_of("support-chat", "oldest first")
    explorer.set(path=str(path))
    assert (explorer.config["trace"], slide(explorer, "request")["max"]) == ("mine.jsonl", 4)
    explorer.set(conversation=1)
    assert slide(explorer, "request")["max"] == 5
    assert "conversation 2 of 2 (c1)" in explorer.view.state["source"]
    content = lines[0].encode()
    file = {
        "kind": "file",
        "serial": "a",
        "purpose": "file",
        "name": "up.jsonl",
        "size": len(content),
        "offset": 0,
    }
    hear(explorer, file, content)
    assert shown(explorer, "trace") == "up.jsonl"
    explorer.open("coding-agent")
    assert explorer.config["by"] == "request"
    setup = to_yaml(bk.presets.rag(9_000)).encode()
    hear(
        explorer,
        {**file, "serial": "b", "purpose": "setup", "name": "s.yaml", "size": len(setup)},
        setup,
    )
    assert explorer.budget == bk.presets.rag(9_000)


def number_sent(policy: str, number: str, value: object) -> dict[str, Any]:
    return {"kind": "number", "policy": policy, "number": number, "value": value, "id": "1"}


WRONG: list[tuple[Change, str]] = [
    ({"path": "no/such.jsonl"}, "no/such.jsonl"),
    ({"counter": "abacus"}, "Unknown counter 'abacus'"),
    ({"day": "yesterday"}, "Write it as YYYY-MM-DD"),
    ({"kind": "request", "request": 99}, "Choose a number from 1 to 30"),
    ({"kind": "policies", "names": ["mine"]}, "Unknown policy 'mine'"),
    ({"kind": "main", "name": "mine"}, "Unknown policy 'mine'"),
    ({"kind": "rules", "name": "yours"}, "Unknown prompt cache 'yours'"),
    ({"kind": "lifetime", "name": "a while"}, "Unknown lifetime 'a while'"),
    ({"kind": "price", "of": "air", "price": 1}, "Unknown price 'air'"),
    (
        number_sent("abacus", "beads", 1),
        "Policy 'abacus' has no parameter 'beads'. Choose another policy.",
    ),
    (
        number_sent("last turns", "beads", 1),
        "Policy 'last turns' has no parameter 'beads'. Choose one of: 'turns'.",
    ),
    (number_sent("last turns", "turns", 0), "Use a whole number of turns from 1 to 200"),
    (number_sent("last turns", "turns", float("nan")), "Use a whole number of turns from 1 to 200"),
    (number_sent("last turns", "turns", "3"), "should be a valid number"),
    ({"kind": "money", "money": -1}, "US dollars, 0 or more"),
    ({"kind": "money", "money": float("nan")}, "US dollars, 0 or more"),
    ({"kind": "by", "by": "week"}, "of the command 'by'"),
    ({"kind": "conversation", "number": 3}, "Choose 0, the only one."),
    ({"kind": "load", "text": "{"}, "Invalid JSON in saved state"),
]


def test_what_cannot_be_is_said_and_what_held_still_holds() -> None:
    explorer = explorer_of(conversation(30))
    replay = explorer.replay
    for change, told in WRONG:
        refused(explorer, change, told)
        assert explorer.replay == replay, told
    explorer.set(request=3)
    assert not said(explorer).startswith("error "), "the next change is shown as ever"


def test_a_reset_keeps_the_path_of_the_open_file(tmp_path: Path) -> None:
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    for path in paths:
        path.write_text(json.dumps([{"role": "user", "content": path.stem}]))
    explorer = ConversationExplorer(paths[0])
    explorer.open(paths[1])
    explorer.reset()
    assert (explorer.config["trace"], explorer.settings.path) == ("two.json", str(paths[1]))


def test_undo_redo_and_reset() -> None:
    explorer = explorer_of(conversation(30), "oldest first")
    explorer.set(window=3_000)
    explorer.set(policies=[*explorer.settings.chosen, "haystack"])
    explorer.set(request=9)
    assert explorer.view.state["actions"] == {"undo": True, "redo": False, "reset": True}
    explorer.undo()
    explorer.undo()
    assert (list(explorer.replays), explorer.budget.window) == (["oldest first"], 3_000)
    explorer.redo()
    assert list(explorer.replays) == ["oldest first", "haystack"]
    explorer.set(request=9)
    explorer.reset()
    assert (list(explorer.replays), explorer.budget.window, explorer.config["request"]) == (
        ["oldest first"],
        2_000,
        9,
    )
    assert not explorer.view.state["actions"]["reset"]


# --- take it away ---------------------------------------------------------------------------------


def with_numbers() -> ConversationExplorer:
    explorer = ConversationExplorer("coding-agent", policies=["down to a mark"], window=16_000)
    explorer.set(target=35)
    explorer.set(unit="turns")
    explorer.move("history", 6_000)
    return explorer


def with_own_prices() -> ConversationExplorer:
    explorer = ConversationExplorer(
        "support-chat", "chat", ["agent-framework"], window=8_192, prices=PRICED
    )
    explorer.set(lifetime="1 hour")
    explorer.set(counter="chars/4")
    return explorer


def with_typed_prices() -> ConversationExplorer:
    explorer = ConversationExplorer(
        "coding-agent", "agent_prompt", ["summarise"], model="claude-haiku-4-5"
    )
    explorer.set(window=12_000)
    explorer.set(day=date(2026, 11, 1).isoformat())
    explorer.set(price_cache_read=0.25)
    explorer.set(within=False)
    return explorer


def with_an_hour(cache: str = "anthropic-1h", prices: str | None = None) -> ConversationExplorer:
    explorer = ConversationExplorer(
        "support-chat",
        policies=["summarise"],
        window=8_192,
        cache=cache,
        model="claude-haiku-4-5",
        prices=prices,
    )
    if cache != "anthropic-1h":
        explorer.set(lifetime="1 hour")
    assert explorer.replay.prices is not None
    assert explorer.replay.prices.cache_write == bk.cost.Price(2.0)
    return explorer


def with_tool_results() -> ConversationExplorer:
    return ConversationExplorer(
        "coding-agent", policies=["tool results first"], window=16_000, cache="anthropic"
    )


def with_no_roles() -> ConversationExplorer:
    sections = [bk.Allocation("system"), bk.Allocation("history")]
    return ConversationExplorer("support-chat", bk.Budget(8_192, (), sections))


MADE: Sequence[Callable[[], ConversationExplorer]] = [
    with_no_roles,
    with_numbers,
    with_own_prices,
    with_typed_prices,
    with_an_hour,
    partial(with_an_hour, prices="claude-haiku-4-5"),
    partial(with_an_hour, "anthropic"),
]


@pytest.mark.parametrize(
    "make", [*MADE, with_tool_results, partial(ConversationExplorer, "support-chat")]
)
def test_what_is_copied_makes_the_same_replay_again(
    make: Callable[[], ConversationExplorer],
) -> None:
    explorer = make()
    names: dict[str, Any] = {}
    exec(explorer.texts["python"], names)
    assert names["budget"] == explorer.budget
    same(names["outcome"], explorer.replay)
    assert from_yaml(explorer.texts["yaml"]) == from_json(explorer.texts["json"]) == explorer.budget


def test_a_policy_that_cannot_be_written_down_is_left_to_its_owner() -> None:
    explorer = ConversationExplorer(
        conversation(20), policies={"short": Importance(lambda m: -len(m.text))}
    )
    assert "policy = ...  # put your own here: Importance" in explorer.texts["python"]


def test_the_config_is_plain_data() -> None:
    explorer = explorer_of(conversation(30), "oldest first")
    assert json.loads(json.dumps(explorer.config)) == explorer.config
    assert explorer.config["policies"] == {"oldest first": "OldestFirst()"}
    assert (explorer.config["by"], explorer.config["turn"], explorer.config["money"]) == (
        "turn",
        30,
        1.0,
    )


# --- tables ---------------------------------------------------------------------------------------


def test_a_table_is_sent_only_while_it_is_open_and_a_long_one_is_cut_in_words() -> None:
    explorer = explorer_of(conversation(300, 1), "oldest first")
    assert explorer.view.figure_timeline["table"] is None
    explorer.view.opened = ["timeline"]
    table: Any = explorer.view.figure_timeline["table"]
    assert len(table["rows"]) == 1_000
    assert (
        "The table shows the first 1,000 of its 1,800 rows."
        in explorer.view.figure_timeline["note"]
    )


def test_a_broken_letter_in_a_message_reaches_the_page_as_a_sign() -> None:
    raw = [m.raw for m in conversation(3).messages]
    raw[1] = {"role": "user", "content": "half a letter: \ud83d"}
    explorer = explorer_of(bk.Trace("broken", tuple(map(bk.Message, raw))))
    text = json.dumps(explorer.view.reader, ensure_ascii=False).encode("utf-8").decode("utf-8")
    assert "half a letter: \ufffd" in text


def test_names_stay_text_in_every_figure() -> None:
    explorer = ConversationExplorer(
        conversation(10), policies={"<b>bold</b>": OldestFirst()}, window=2_000
    )
    spec = explorer.view.figure_spending["spec"]
    assert "&lt;b&gt;bold&lt;/b&gt;" in spec["layout"]["annotations"][0]["text"]
    assert spec["data"][0]["name"] == "&lt;b&gt;bold&lt;/b&gt;"


def test_another_model_or_day_brings_its_own_prices() -> None:
    """Prices given in code are of the model that was given with them; another one is not billed by them."""
    explorer = ConversationExplorer(
        "support-chat", "chat", ["oldest first"], model="gpt-4o", window=8_192, prices=PRICED
    )
    given = explorer.config["prices"]
    explorer.set(model="claude-sonnet-4-5")
    assert "claude-sonnet-4-5" in explorer.config["prices"]["source"]
    explorer.undo()
    assert explorer.config["prices"] == given
    explorer.set(day="2025-01-01")
    assert "gpt-4o" in explorer.config["prices"]["source"]
    assert explorer.config["prices"] != given


@pytest.mark.slow
def test_it_opens_in_a_window_in_which_the_policies_differ_and_says_so() -> None:
    """On 0.1.0 nothing was ever lost in the 128,000 tokens that gpt-4o takes."""
    explorer = ConversationExplorer("coding-agent")
    assert explorer.budget.window == 16_384
    assert len({each.totals()["cost"] for each in explorer.replays.values()}) == 3
    assert "in a window of 16,384 tokens (gpt-5.4 takes 1,050,000)" in explorer.view.state["source"]
    explorer.set(window=32_768)
    explorer.reset()
    assert explorer.budget.window == 16_384
    assert ConversationExplorer("coding-agent", model="gpt-4o").budget.window == 128_000, (
        "what is named holds"
    )
    assert ConversationExplorer(conversation(2)).budget.window == 1_050_000, (
        "there is nothing to lose"
    )


def test_the_forecast_follows_what_is_pruned_within_a_turn() -> None:
    """It was looked up for other roles, and stayed as it was until the spending limit moved."""
    budget = bk.presets.working_memory(16_000, output=2_000, history_floor=0)
    explorer = bk.ConversationExplorer("coding-agent", budget, ["oldest first"])
    explorer.set(within=False)
    first = explorer.forecast.iloc[0].to_dict()
    explorer.set(money=2)
    assert explorer.forecast.iloc[0].to_dict() == first


@pytest.mark.slow
def test_others_of_a_file_are_counted_for_the_forecast_alone_after_the_first_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On 0.1.0 up to thirty other conversations were counted before anything was shown."""
    order: list[str] = []

    def watched(*given: Any) -> Any:
        order.append("others counted")
        return pace_of(*given)

    monkeypatch.setattr(replays, "pace_of", watched)
    explorer = explorer_of(conversation(4))
    explorer.view.observe(lambda change: order.append("shown"), "state")
    order.clear()
    explorer.open("made-up-chats")
    assert order == ["shown", "others counted"]
    assert "other conversations in its file" in explorer.view.figure_fan["note"]


@pytest.mark.slow
def test_the_forecast_goes_by_the_others_of_the_file_and_says_so() -> None:
    """Alone a conversation is drawn from its own turns; the fan's line is worth as much as was measured for each."""
    many = bk.load_traces("made-up-chats")
    notes = []
    for traces in (many, many[:1]):
        explorer = ConversationExplorer(traces, window=4_000, prices=PRICED)
        notes.append(explorer.view.figure_fan["note"])
    assert "and from other conversations in its file" in notes[0]
    assert "about a third smaller" in notes[0]
    assert "others" not in notes[1]
    assert "only slightly smaller errors" in notes[1]


# --- a recorded session's own compactions are not the policy's ------------------------------------------------------


def compacted(own: bool = True) -> ConversationExplorer:
    """Explore twelve turns of which the session itself took out the first six."""
    messages = conversation(12).messages
    more = {"compactions": [{"at": 14, "first_kept": 13}]} if own else {}
    trace = bk.Trace("compacted", messages, fields=more)
    return ConversationExplorer(trace, budget="chat", policies=["oldest first"], window=64_000)


def test_messages_that_the_session_took_out_are_not_blamed_on_the_policy() -> None:
    """389 dropped under 'oldest first' stood beside "'oldest first' never cuts", with a first loss."""
    explorer = compacted()
    shown = explorer.stage.shown
    assert len(shown.taken_out) == 12
    assert shown.first_loss is None
    assert explorer.status.startswith("Nothing is ever lost under 'oldest first'")
    assert "left" in explorer.status
    assert "'oldest first' never cuts" in explorer.view.figure_timeline["note"]
    reader = explorer.view.reader
    assert "nothing was dropped earlier" in reader["note"]
    assert "The session itself took out 12 more messages." in reader["note"]
    gone = [block for block in reader["blocks"] if block["level"] == "gone"]
    assert gone and all("compacted at" in block["mark"] for block in gone)
    assert shown.evidence[0] == shown.evidence[1]


def test_a_replay_says_which_of_its_requests_the_record_leaves_unanswered() -> None:
    """224 requests were replayed where 204 were recorded, and nothing said why."""
    explorer = ConversationExplorer("made-up-session")
    sentence = next(text for text in explorer.view.state["status"]["more"] if "record" in text)
    assert sentence.startswith(
        "The replay makes 140 requests, 1 without an answer in the record; the record says 139 requests"
    )


def test_the_box_of_the_counter_does_not_name_one_that_does_not_count() -> None:
    """cl100k_base stood in the box while a calibrated estimate counted."""
    explorer = ConversationExplorer("made-up-session")
    assert (
        "calibrated" in explorer.view.state["source"] or "rebuilt" in explorer.view.state["source"]
    )
    assert shown(explorer, "counter") == ""
    explorer.set(model="gpt-4o")
    assert shown(explorer, "counter") == "o200k_base"
