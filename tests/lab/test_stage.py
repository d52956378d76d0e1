"""One stage: the three explorers and the card have one library and one set of commands, which do the same in each.

In 0.2.0 there were three libraries and three sets of commands, and what one of them had learnt the others had not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import run
from budgetkit.lab.explorers.commands import OF_CONVERSATIONS, SHARED
from budgetkit.lab.explorers.shelves import Library

Make = Callable[..., Any]
MAKERS: dict[str, Make] = {
    "budget": lambda: bk.BudgetExplorer("chat", "support-chat", window=8_192),
    "card": lambda: bk.DesignCard("chat", "support-chat", window=8_192),
    "conversation": lambda: bk.ConversationExplorer("support-chat", "chat", window=8_192),
    "accuracy": lambda: bk.AccuracyExplorer(budget="chat", window=8_192),
}
#: What only one explorer means otherwise: the cheap counter of the accuracy explorer, the several pins of the card.
OTHERWISE = {"accuracy": {"counter"}, "card": {"pin"}}
#: Changes of a budget, one after the other.
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("model", {"name": "gpt-4.1"}),
    ("preset", {"name": "rag"}),
    ("size", {"line": "window", "size": 12_000}),
    ("size", {"line": "output", "size": 900}),
    ("limits", {"line": "output", "at_least": 100, "at_most": 800}),
    ("size", {"line": "output", "size": bk.Share("0.1")}),
    ("lock", {"line": "output", "on": True}),
    ("size", {"line": "output", "size": 100}),
    ("switch", {"line": "retrieval", "on": False}),
    ("switch", {"line": "retrieval", "on": True}),
    ("switch", {"line": "output", "on": False}),
    ("lock", {"line": "output", "on": False}),
    ("load", {"text": bk.state.to_yaml(bk.presets.chat(16_384))}),
    ("setup", {"name": "mine.json", "content": bk.state.to_json(bk.presets.agent(9_000)).encode()}),
    ("setup", {"name": "mine.json", "content": b"\xff"}),
    ("model", {"name": "gtp-9"}),
    ("reset", {}),
]
TABLE = b"by_whom,said_what\nuser,How is Oslo?\nassistant,Sunny.\n"


@pytest.mark.parametrize("name", MAKERS)
def test_every_explorer_has_the_one_library_and_the_one_set_of_commands(name: str) -> None:
    explorer = MAKERS[name]()
    assert type(explorer.library) is Library
    shared = SHARED if name == "accuracy" else OF_CONVERSATIONS
    other = {
        command for command in shared if explorer.kind.commands[command] is not shared[command]
    }
    assert other <= OTHERWISE.get(name, set())


def test_a_change_of_the_budget_is_the_same_in_every_explorer() -> None:
    """Amounts and locks were known to two of the four, limits to one; a refusal is the same sentence."""
    explorers = [make() for make in MAKERS.values()]
    for command, values in CHANGES:
        for explorer in explorers:
            explorer._receive(explorer.view, {"kind": command, **values}, [])
        plans = [explorer.stage.plan.budget for explorer in explorers]
        assert all(budget == plans[0] for budget in plans), command
        refusals = {
            explorer.status
            for explorer in explorers
            if explorer.view.state["status"]["level"] in ("error", "refused")
        }
        assert len(refusals) <= 1, command


@pytest.mark.parametrize("name", ["budget", "card", "conversation"])
def test_a_table_that_waits_for_its_columns_changes_nothing(name: str) -> None:
    """The conversation explorer let go of its window and its request before anybody had said which column is which."""
    explorer = bk.ConversationExplorer("support-chat") if name == "conversation" else MAKERS[name]()
    before = explorer.settings
    explorer._run_command("file", name="chat.csv", content=TABLE)
    assert explorer.view.entry["columns"]["names"] == ["by_whom", "said_what"]
    assert explorer.settings == before
    explorer._run_command("columns", role="by_whom", content="said_what")
    assert explorer.config["trace"] == "chat.csv"


@pytest.mark.parametrize(("name", "place"), [("budget", "turn"), ("conversation", "request")])
def test_choosing_the_conversation_that_is_shown_leaves_its_place(name: str, place: str) -> None:
    """Finding a title moved the conversation explorer to its last request, even where that conversation was shown."""
    explorer = MAKERS[name]()
    explorer._run_command(place, **{place: 3})
    explorer._run_command("conversation", number=0)
    assert explorer.config[place] == 3


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_opened_goes_to_the_shelf_of_its_kind(name: str) -> None:
    explorer = MAKERS[name]()
    explorer._run_command(
        "file", name="talk.json", content=b'[{"role": "user", "content": "Where is my parcel?"}]'
    )
    shelf = explorer.library.texts if name == "accuracy" else explorer.library.conversations
    assert "talk.json" in shelf.names
    explorer.undo()
    explorer.redo()
    assert explorer.config["corpus" if name == "accuracy" else "trace"] == "talk.json"


# --- fact by place: the same arguments open the same thing in every explorer, tab, report and command -------------

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You are the help desk of a small shop."},
    {"role": "user", "content": "Where is my parcel?"},
    {"role": "assistant", "content": "On its way, since Monday. " * 40},
    {"role": "user", "content": "And the refund?"},
]
OWN_BUDGET = bk.Budget(
    6_000,
    [bk.Reserve("output", 700)],
    [bk.Allocation("system", 900, importance=9), bk.Allocation("history", 3_000)],
    name="mine",
    undeclared="pool",
    roles={"system": "system", "user": "history", "assistant": "history"},
    remainder="history",
)
SETUPS: dict[str, dict[str, Any]] = {
    "a counter of another model": {"counter": "cl100k_base"},
    "a ratio, and a model": {"counter": "chars/4", "model": "gpt-5"},
    "a router's model and a window": {"model": "openai/gpt-4.1", "window": 16_384},
    "another maker's model": {"model": "claude-sonnet-4-5", "counter": "estimate:o200k_base"},
    "a preset by name": {"budget": "rag", "window": 9_000},
    "a budget of one's own": {"budget": OWN_BUDGET},
}
Facts = dict[str, Any]


def facts_of(explorer: Any) -> Facts:
    """Give what every place must say alike: model, counter, conversation, and the budget with its remainder."""
    results = explorer.stage
    budget = results.plan.budget
    settings = explorer.settings
    return {
        "model": results.model.name,
        "counter": results.counter.name,
        "trace": settings.trace,
        "window": (budget.window, budget.kind, settings.window),
        "lines": {**budget.sizes, **budget.caps},
        "usable": (budget.usable, budget.shared_pool),
        "preset": (settings.preset, budget.name),
    }


def tab_of(number: int) -> Callable[[Path, Facts], Any]:
    def opened(file: Path, named: Facts) -> Any:
        app = bk.App(file, **named)
        app.open(number)
        return app.tabs[number]

    return opened


PLACES: dict[str, Callable[[Path, Facts], Any]] = {
    "card": lambda file, named: bk.DesignCard(trace=file, **named),
    "conversation explorer": lambda file, named: bk.ConversationExplorer(
        file, **{"budget": "chat", **named}
    ),
    "app": tab_of(0),
    "app, turn by turn": tab_of(1),
    "app, accuracy": tab_of(2),
    "app, pruning and cost": tab_of(3),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"messages": TALK}), encoding="utf-8")
    return path


@pytest.mark.parametrize("named", SETUPS.values(), ids=SETUPS)
def test_every_place_opens_the_same_set_up(named: Facts, file: Path) -> None:
    expected = facts_of(bk.BudgetExplorer(trace=file, **named))
    for place, make in PLACES.items():
        assert facts_of(make(file, named)) == expected, place


@pytest.mark.parametrize("named", SETUPS.values(), ids=SETUPS)
def test_the_shell_counts_plans_and_replays_what_the_explorers_show(
    named: Facts, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a named counter the shell took the framing too: 13 tokens of a system prompt where the explorer had 9."""
    saved = tmp_path / "mine.json"
    saved.write_text(bk.state.to_json(OWN_BUDGET), encoding="utf-8")
    texts = {
        **named,
        "budget": str(saved) if named.get("budget") is OWN_BUDGET else named.get("budget", "chat"),
    }
    options = [text for name, value in texts.items() for text in (f"--{name}", str(value))]

    planned = bk.BudgetExplorer(trace=file, **named)
    assert run(["fit", str(file), "--json", *options]) == 0
    grants = json.loads(capsys.readouterr().out)["plan"]["grants"]
    assert [(grant["section"], grant["demand"], grant["granted"]) for grant in grants] == [
        (grant.section, grant.demand, grant.granted) for grant in planned.plan.grants
    ]

    policy = "last turns"
    replayed = bk.ConversationExplorer(
        file, **{"budget": "chat", **named}, policies=[policy], by="turn"
    )
    assert run(["replay", str(file), "--json", "--by", "turn", "--policy", policy, *options]) == 0
    sent = [row["sent"] for row in json.loads(capsys.readouterr().out)["requests"]]
    assert sent == replayed.replay.frame()["sent"].tolist()


@pytest.mark.parametrize(
    ("make", "problem", "told"),
    [
        (lambda: bk.BudgetExplorer("chatt"), LookupError, "Unknown preset 'chatt'"),
        (lambda: bk.BudgetExplorer("chat", "nowhere.jsonl"), FileNotFoundError, "nowhere.jsonl"),
        (
            lambda: bk.ConversationExplorer("support-chat", policies=["newest first"]),
            LookupError,
            "Unknown policy 'newest first'",
        ),
        (
            lambda: bk.ConversationExplorer("support-chat", policies=[]),
            ValueError,
            "No policy is chosen. Choose at least one.",
        ),
        (lambda: bk.ConversationExplorer("nowhere.jsonl"), FileNotFoundError, "nowhere.jsonl"),
        (lambda: bk.AccuracyExplorer(corpus=Path("none")), OSError, "File not found"),
        (lambda: bk.AccuracyExplorer("abacus", ["Hello"]), ValueError, "Unknown counter 'abacus'"),
        (lambda: bk.AccuracyExplorer(corpus=bk.corpora.Corpus(())), ValueError, "No text"),
    ],
)
def test_a_constructor_that_cannot_says_why(
    make: Make, problem: type[Exception], told: str
) -> None:
    with pytest.raises(problem, match=told):
        make()
