"""A configuration says model, counter and policy wherever a budget is passed; one that says two things is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import run

SETTINGS: dict[str, Any] = {
    "model": "gpt-4o-mini",
    "window": 4_000,
    "counter": "chars/4",
    "policy": {"class": "SlidingWindow", "turns": 2},
    "budget": "working_memory",
}


@pytest.mark.parametrize("kind", [bk.BudgetExplorer, bk.ConversationExplorer, bk.DesignCard])
def test_an_explorer_opens_on_the_model_and_the_counter_of_a_configuration(kind: Any) -> None:
    """It opened on gpt-4o, with that model's own counter."""
    if kind is bk.ConversationExplorer:
        explorer: Any = kind("support-chat", SETTINGS)
    else:
        explorer = kind(SETTINGS, "support-chat")
    results = explorer.stage
    said = (results.model.name, results.counter.name, explorer.budget.window)
    assert said == ("gpt-4o-mini", "chars/4", 4_000)


def test_a_replay_takes_the_policy_of_a_configuration() -> None:
    outcome = bk.replay("support-chat", SETTINGS)
    same = bk.replay(
        "support-chat",
        "working_memory",
        bk.policies.SlidingWindow(2),
        model="gpt-4o-mini",
        counter="chars/4",
        window=4_000,
    )
    assert outcome.policy == bk.policies.SlidingWindow(2)
    assert outcome.frame().equals(same.frame())
    with pytest.raises(ValueError, match="^Missing policy. Pass policy="):
        bk.replay("support-chat", "chat", model="gpt-4o")


def test_tuning_takes_counter_and_policy_of_a_configuration() -> None:
    """Its table was the same with and without them."""
    traces = bk.load_traces("mixed-language") * 4
    plain = {"budget": "working_memory", "window": 4_000}
    vary = {"output": [500, 1_000]}
    tables = [bk.deciding.tune(traces, budget, vary, "cut").table for budget in (plain, SETTINGS)]
    assert not tables[0].equals(tables[1])


def test_a_file_without_a_model_is_opened_as_its_preset_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text('{"budget": "chat"}')
    (tmp_path / "t.json").write_text(
        json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello world"}]})
    )
    answers = []
    for budget in ("chat", str(tmp_path / "a.json")):
        assert run(["fit", "-b", budget, str(tmp_path / "t.json"), "--json"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"context_budget": {}, "agent": {"context_budget": {}}}, "Unknown key 'agent'"),
        ({"budget": "chat", "agent": {"name": "x"}}, "Unknown key 'agent'"),
        (
            {"budget": "chat", "policy": {"class": "Policy"}},
            "Unknown policy class",
        ),
        (
            {"budget": "chat", "policy": {"class": "System"}},
            "Unknown policy class",
        ),
    ],
)
def test_a_configuration_that_says_two_things_or_nothing_is_refused(
    wrong: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        bk.Conversation(wrong, model="gpt-4o")


def test_what_trim_left_out_stays_true_when_its_list_goes_on_growing() -> None:
    """The answer that a chat loop appends was said to be left out."""
    messages = [{"role": "user", "content": "one two three"}, {"role": "user", "content": "five"}]
    fitting = bk.trim(messages, 10)
    left = fitting.left
    messages.append({"role": "assistant", "content": "An answer."})
    assert (fitting.left, fitting.warnings) == (left, ())


def test_a_listing_is_a_title_or_a_listing() -> None:
    """Anything else ended in an AttributeError."""
    budget = bk.presets.working_memory(8_000)
    parts: dict[str, Any] = {
        "knowledge": ["Refunds take five days.", "Returns are free."],
        "current": "Well?",
    }
    nothing: Any = {"knowledge": None}
    bare = bk.build(budget, "gpt-4o", as_one=nothing, **parts)
    assert bare.messages[0]["content"] == "Refunds take five days.\n\nReturns are free."
    with pytest.raises(
        ValueError, match="Invalid as_one of section 'knowledge': 5. Expected a title"
    ):
        bk.build(budget, "gpt-4o", as_one={"knowledge": 5}, **parts)
