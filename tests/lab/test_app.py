"""The app: four tabs, one conversation, one budget. What is set in one tab is there in the next."""

from typing import Any

import pytest

import budgetkit as bk
from budgetkit.lab.explorers.conversation import results
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.replay.replaying import replay
from tests.lab.panel import labels

DESIGN, TURNS, ACCURACY, PRUNING = range(4)


def opened() -> bk.App:
    return bk.App("mixed-language", window=8_192)


def test_a_tab_is_made_when_it_is_first_opened() -> None:
    app = opened()
    assert [explorer is not None for explorer in app.tabs] == [True, False, False, False]
    app.open(PRUNING)
    assert [explorer is not None for explorer in app.tabs] == [True, False, False, True]


@pytest.mark.slow
def test_what_is_set_in_one_tab_is_there_in_the_next() -> None:
    app = opened()
    app.card.move("conversation", 2_000)
    app.open(TURNS)
    turns = app.tabs[TURNS]
    assert isinstance(turns, bk.BudgetExplorer)
    assert turns.budget.cap("conversation") == 2_000
    turns.set(preset="working_memory")
    turns.move("output", 1_024)
    app.open(PRUNING)
    pruning = app.tabs[PRUNING]
    assert isinstance(pruning, bk.ConversationExplorer)
    assert pruning.budget.sizes["output"] == 1_024
    assert pruning.config["trace"] == "mixed-language"
    pruning.set(window=16_384)
    app.open(ACCURACY)
    accuracy = app.tabs[ACCURACY]
    assert isinstance(accuracy, bk.AccuracyExplorer)
    assert accuracy.budget.window == 16_384
    accuracy.set(model="gpt-4.1")
    app.open(DESIGN)
    assert (app.card.config["preset"], app.card.config["model"]) == ("working_memory", "gpt-4.1")


@pytest.mark.slow
def test_one_conversation_in_all_tabs() -> None:
    app = opened()
    app.open(ACCURACY)
    accuracy = app.tabs[ACCURACY]
    assert isinstance(accuracy, bk.AccuracyExplorer)
    assert set(accuracy.errors["source"]) == {bk.load_trace("mixed-language").id}
    app.open(DESIGN)
    app.card.set(trace="coding-agent")
    for number in (ACCURACY, PRUNING, TURNS):
        app.open(number)
    assert set(accuracy.errors["source"]) == {"coding-agent"}
    turns, pruning = app.tabs[TURNS], app.tabs[PRUNING]
    assert isinstance(turns, bk.BudgetExplorer)
    assert isinstance(pruning, bk.ConversationExplorer)
    assert turns.config["trace"] == pruning.config["trace"] == "coding-agent"


def test_a_file_that_one_tab_opens_is_known_in_all() -> None:
    app = opened()
    own = bk.Trace("mine", bk.load_trace("support-chat").messages[:9])
    app.open(TURNS)
    turns = app.tabs[TURNS]
    assert isinstance(turns, bk.BudgetExplorer)
    turns._run_command("trace", name=turns.library.conversations.take(own))
    app.open(DESIGN)
    assert app.card.config["trace"] == "mine"
    assert "mine" in labels(app.card, "trace")


def test_what_one_tab_counted_no_other_counts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tab had a library of its own, and an export of thousands of messages was counted in each of them."""
    app = opened()
    app.open(TURNS)
    app.open(PRUNING)
    libraries = [explorer.library for explorer in app.tabs if explorer is not None]
    assert {type(library) for library in libraries} == {Library}
    own = bk.Trace("mine", bk.load_trace("support-chat").messages[:9])
    app.open(TURNS)
    turns = app.tabs[TURNS]
    assert turns is not None
    turns._run_command("trace", name=turns.library.conversations.take(own))
    monkeypatch.setattr(bk.Trace, "demand", lambda *given: pytest.fail("counted again"))
    app.open(DESIGN)
    assert app.card.config["trace"] == "mine"


def test_the_rooms_of_another_tabs_budget_are_drawn_anew() -> None:
    """The figure went by preset, model and window: a line that was moved in another tab left it as it was."""
    app = opened()
    app.open(ACCURACY)
    accuracy = app.tabs[ACCURACY]
    assert isinstance(accuracy, bk.AccuracyExplorer)
    app.open(DESIGN)
    app.card.move("conversation", 3_000)
    app.open(ACCURACY)
    assert f"has {app.card.budget.shared_pool:,} tokens left" in accuracy.view.figure_rooms["note"]


def test_what_came_from_another_tab_is_one_step_back() -> None:
    app = opened()
    app.open(TURNS)
    turns = app.tabs[TURNS]
    assert turns is not None
    assert not turns.view.state["actions"]["undo"]  # it begins with what is shared
    app.open(DESIGN)
    app.card.move("conversation", 2_000)
    app.open(TURNS)
    turns.undo()
    assert turns.settings.lines == {}


def test_without_a_conversation_the_tabs_stand_all_the_same() -> None:
    app = opened()
    app.card.set(trace=None)
    for number in (TURNS, ACCURACY, PRUNING, DESIGN):
        app.open(number)
    # Pruning shows one that is shipped, and keeps it to itself.
    assert app.card.config["trace"] is None


def test_an_example_that_is_pressed_is_shown_in_the_first_tab() -> None:
    app = opened()
    app.open(TURNS)
    example = {"trace": "support-chat", "preset": "chat", "window": 16_384}
    app.view._handle_custom_msg(example, [])
    assert app.view.shown == DESIGN
    card = bk.DesignCard("chat", "support-chat", window=16_384)
    assert app.card.view.state["headline"] == card.view.state["headline"]


def test_a_tab_is_computed_once_when_it_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was drawn with the usual budget and then with the shared one: 28,000 messages were replayed six times."""
    replayed: list[object] = []

    def counted(*given: Any, **named: Any) -> Any:
        replayed.append(given)
        return replay(*given, **named)

    monkeypatch.setattr(results, "replay", counted)
    app = opened()
    app.open(PRUNING)
    assert len(replayed) == 3


def test_a_budget_that_a_tab_cannot_plan_is_a_sentence_in_it() -> None:
    app = opened()
    app.card.set(trace=None)
    budget = bk.Budget(900, [], [bk.Allocation("chat", None)], roles={"user": "chat"})
    app.card.load(bk.state.to_yaml(budget))
    app.open(PRUNING)
    pruning = app.tabs[PRUNING]
    assert pruning is not None
    assert "Unknown section" in pruning.status
    assert pruning.budget.window == 1_050_000, "the usual budget is shown"


@pytest.mark.parametrize(("sent", "opens"), [(99, PRUNING), (-1, DESIGN)])
def test_a_tab_that_is_not_there_opens_the_nearest(sent: int, opens: int) -> None:
    app = opened()
    app.view.set_state({"shown": sent})
    assert app.tabs[opens] is not None
    app.open(TURNS)
    assert app.tabs[TURNS] is not None


@pytest.mark.parametrize("tab", [TURNS, ACCURACY, PRUNING])
def test_a_reset_in_one_tab_keeps_the_conversation_of_all(tab: int) -> None:
    """The tab of texts went back to the first conversation, which the other tabs then showed."""
    app = opened()
    app.card.pin()
    app.open(tab)
    app.open(DESIGN)
    app.card.open("support-chat")
    app.card.set(window=16_384)
    app.open(tab)
    explorer = app.tabs[tab]
    assert explorer is not None
    explorer.reset()
    assert (explorer.budget.window, explorer.settings.path) == (8_192, "support-chat")
    app.open(DESIGN)
    assert app.card.config["trace"] == "support-chat"
    assert app.card.settings.pins
