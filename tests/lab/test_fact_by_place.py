"""One fact, one place: the same set-up, opened everywhere, says the same window, usable, pool, history and warnings.

In 0.2.0 the app opened a file on 128,000 tokens and a report of it on 8,192; a window that is for the prompt alone was
that in the explorers, and shared with the answer in the shell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.budget.html import plain
from budgetkit.extras.shell.program import run
from budgetkit.inputs.budgets import budget_of
from budgetkit.inputs.conversations import opening_model
from budgetkit.lab.explorers.still import picture

SPOKEN: list[dict[str, Any]] = [
    {"role": "system", "content": "You are the help desk of a small shop."},
    {"role": "user", "content": "Where is my parcel?"},
    {"role": "assistant", "content": "On its way, since Monday. " * 40},
    {"role": "user", "content": "And the refund?"},
]
SETUPS: dict[str, dict[str, Any]] = {
    "nothing named": {},
    "a model": {"model": "gpt-4.1"},
    "a window for the prompt alone": {"model": "gpt-5", "window": 16_384},
    "a small window": {"window": 1_024},
    "another maker's": {"model": "gemini-2.5-pro"},
}
Facts = dict[str, Any]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"messages": SPOKEN}), encoding="utf-8")
    return path


def facts_of(budget: bk.Budget) -> Facts:
    return {"window": budget.window, "kind": budget.kind, "usable": budget.usable, "pool": budget.shared_pool}


def of_explorer(file: Path, named: Facts) -> Facts:
    return facts_of(bk.BudgetExplorer("chat", file, **named).budget)


def of_card(file: Path, named: Facts) -> Facts:
    return facts_of(bk.DesignCard("chat", file, **named).budget)


def of_app(file: Path, named: Facts) -> Facts:
    return facts_of(bk.App(file, "chat", **named).card.budget)


def of_turns(file: Path, named: Facts) -> Facts:
    app = bk.App(file, "chat", **named)
    app.open(1)
    return facts_of(app.tabs[1].budget)  # type: ignore[union-attr]


def of_shell(file: Path, named: Facts, capsys: pytest.CaptureFixture[str]) -> Facts:
    options = [text for name, value in named.items() for text in (f"--{name}", str(value))]
    assert run(["fit", str(file), "-b", "chat", "--json", *options]) == 0
    budget = bk.state.from_dict({"budgetkit": 1, "budget": json.loads(capsys.readouterr().out)["plan"]["budget"]})
    assert isinstance(budget, bk.Budget)
    return facts_of(budget)


def of_preset(file: Path, named: Facts) -> Facts:
    return facts_of(budget_of("chat", opening_model(named.get("model"), bk.load_trace(file)), named.get("window")))


PLACES: dict[str, Callable[[Path, Facts], Facts]] = {
    "card": of_card,
    "app": of_app,
    "app, turn by turn": of_turns,
    "build and Conversation": of_preset,
}


@pytest.mark.parametrize("named", SETUPS.values(), ids=SETUPS)
@pytest.mark.parametrize("place", PLACES)
def test_every_place_opens_the_same_thing(place: str, named: Facts, file: Path) -> None:
    assert PLACES[place](file, named) == of_explorer(file, named)


@pytest.mark.parametrize("named", SETUPS.values(), ids=SETUPS)
def test_the_shell_opens_what_the_explorer_opens(named: Facts, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert of_shell(file, named, capsys) == of_explorer(file, named)


@pytest.mark.parametrize("named", SETUPS.values(), ids=SETUPS)
def test_a_report_is_of_the_explorer_of_the_same_arguments(
    named: Facts, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [text for name, value in named.items() for text in (f"--{name}", str(value))]
    for kind, explorer in (
        (["--plan"], bk.BudgetExplorer("chat", bk.load_trace(file), **named)),
        ([], bk.ConversationExplorer(bk.load_trace(file), "chat", **named)),
    ):
        goal, own = tmp_path / "shell.html", tmp_path / "own.html"
        assert run(["report", str(file), "-b", "chat", "-o", str(goal), *kind, *options]) == 0
        explorer.save(own)
        found = [re.findall(r"<title>.*?</title>", path.read_text(encoding="utf-8")) for path in (goal, own)]
        figures = [re.findall(r'<li class="bk-kpi".*?</li>', path.read_text(encoding="utf-8")) for path in (goal, own)]
        assert found[0][0].partition(",")[0] == found[1][0].partition(",")[0]
        assert [re.sub("<.*?>", " ", figure) for figure in figures[0]] == [
            re.sub("<.*?>", " ", figure) for figure in figures[1]
        ]
    capsys.readouterr()


@pytest.mark.parametrize("named", SETUPS.values(), ids=SETUPS)
def test_still_card_and_value_show_the_same_numbers(named: Facts, file: Path) -> None:
    """The picture without a kernel and the page of the budget hold the window, the usable part and the pool."""
    explorer = bk.BudgetExplorer("chat", file, **named)
    budget = explorer.budget
    still = unescape(picture(explorer.view.state, repr(explorer)))
    for kpi in explorer.view.state["kpis"]:
        assert plain(kpi["value"]) in still
        assert kpi["label"] in still
    shown = {kpi["key"]: kpi["value"] for kpi in explorer.view.state["kpis"]}
    assert shown["usable"] == f"{budget.usable:,}"
    assert f"a window of {budget.window:,} tokens" in unescape(budget._repr_html_())


@pytest.mark.parametrize("named", SETUPS.values(), ids=SETUPS)
def test_a_warning_is_the_same_sentence_everywhere(named: Facts, file: Path) -> None:
    small = {**named, "window": 400}
    plans = [bk.BudgetExplorer("chat", file, **small).plan, bk.DesignCard("chat", file, **small).plan]
    assert plans[0].warnings == plans[1].warnings


def test_a_session_opens_on_its_own_model_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps({"messages": SPOKEN, "model": "gpt-4.1"}), encoding="utf-8")
    expected = of_explorer(path, {})
    assert expected["window"] == bk.model("gpt-4.1").window
    assert [find(path, {}) for find in PLACES.values()] == [expected] * len(PLACES)
    assert of_shell(path, {}, capsys) == expected


@pytest.mark.parametrize("command", ["fit", "replay", "compare", "report", "check"])
def test_the_shell_refuses_a_model_whose_window_nobody_knows(
    command: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, str(file), "-m", "gtp-9"]) == 2
    assert "'gtp-9' is known, so its window is not" in capsys.readouterr().err
