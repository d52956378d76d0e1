"""A configuration: one file that says everything about a budget, loaded, checked and used without code (003)."""

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import run
from budgetkit.extras.shell.pytest_plugin import check_files as checked
from budgetkit.inputs.budgets import budget_of, setup_of
from budgetkit.state import to_dict, to_yaml

PLAN_195 = """\
agent:
  name: scout
  context_budget:
    enabled: true
    total_tokens: 4000
    output_reserve: 500
    sections:
      system_prompt: {max_tokens: 500, priority: required}
      rag_memories: {max_tokens: "15%", priority: medium}
    overflow_policy: drop_low_priority
"""
EVERYTHING = """\
model: gpt-4o-mini
window: 16384
counter: chars/4
policy: {class: SlidingWindow, turns: 3}
budget: rag
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "context.yaml"
    path.write_text(EVERYTHING, encoding="utf-8")
    return path


def test_a_file_says_model_window_counter_policy_and_budget(file: Path) -> None:
    setup = setup_of(file)
    assert setup.model is not None
    expected = ("gpt-4o-mini", "rag", 16_384)
    assert (setup.model.name, setup.budget.name, setup.budget.window) == expected
    assert setup.counter("abcdefgh") == 2
    assert setup.policy == bk.policies.SlidingWindow(3)


def test_every_function_that_takes_a_budget_takes_it(file: Path) -> None:
    talk = bk.Conversation(file)
    assert (talk.budget.window, talk.policy) == (16_384, bk.policies.SlidingWindow(3))
    said = [
        {"role": role, "content": f"{role} {turn}"}
        for turn in range(5)
        for role in ("user", "assistant")
    ]
    assert len(bk.trim([*said, {"role": "user", "content": "Now?"}], file)) == 7
    built = bk.build(file, conversation=said, question="Now?")
    assert (len(built.messages), built.plan.budget.name) == (7, "rag")
    replayed = bk.replay("support-chat", file, "oldest first")
    by_hand = bk.replay(
        "support-chat", "rag", "oldest first", window=16_384, model="gpt-4o-mini", counter="chars/4"
    )
    assert replayed.sent.tolist() == by_hand.sent.tolist()
    assert (
        checked(file, strict=True).findings
        == checked(
            "rag", model="gpt-4o-mini", window=16_384, counter="chars/4", strict=True
        ).findings
    )


def test_what_is_passed_goes_before_what_the_file_says(file: Path) -> None:
    setup = setup_of(file, "o200k_base", model="gpt-4o", window=8_192)
    assert setup.model is not None
    expected = ("gpt-4o", 8_192, 2)
    assert (setup.model.name, setup.budget.window, setup.counter("Hello world")) == expected
    assert bk.Conversation(file, "oldest first").policy == bk.policies.OldestFirst()


def test_a_context_budget_stands_alone_with_its_own_sections_only() -> None:
    """003: total, output reserve, caps in tokens or percent, priorities, and the policy for what overflows."""
    budget = budget_of(PLAN_195)
    assert [*budget.sections] == ["system_prompt", "rag_memories", "current_message"]
    expected = (4_000, {"output": 500}, 600)
    assert (budget.window, budget.sizes, budget.caps["rag_memories"]) == expected
    assert budget.shared_pool == 4_000 - 500 - 500 - 600


def test_a_context_budget_takes_its_total_from_the_model_where_it_says_none() -> None:
    inside = {"sections": {"system_prompt": {"max_tokens": 500}}}
    assert budget_of({"model": "gpt-4o", "context_budget": inside}).window == 128_000
    with pytest.raises(ValueError, match="context_budget has no total_tokens"):
        budget_of({"context_budget": inside})


def test_a_saved_budget_may_stand_in_it_and_alone_it_is_what_it_was() -> None:
    budget = bk.presets.chat(8_192)
    assert budget_of(to_yaml(budget)) == budget
    assert budget_of({"model": "gpt-4o", "budget": to_dict(budget)["budget"]}) == budget
    lines = {name: value for name, value in to_dict(budget)["budget"].items() if name != "window"}
    assert budget_of({"model": "gpt-4o", "budget": lines}).window == 128_000


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"modle": "gpt-4o"}, "Unknown key 'modle'. Did you mean 'model'. Choose one of: 'model', 'window'"),
        ({"budget": None}, "The configuration has no budget"),
        ({"context_budget": {}}, "Use exactly one of: budget, context_budget"),
        ({"budget": 3}, "Invalid budget of the configuration: a value of type int."),
        ({"budget": "chatt"}, "Unknown preset 'chatt'"),
        ({"model": ["gpt-4o"]}, "Invalid model of the configuration: "),
        ({"window": "8k"}, "window"),
        ({"counter": 4}, "Invalid counter of the configuration: 4."),
        ({"policy": "oldest frist"}, "Unknown policy 'oldest frist'. Did you mean"),
        ({"policy": {"class": "Floor"}}, "Unknown policy class 'Floor'."),
        ({"policy": {"class": "SlidingWndow"}}, "'SlidingWndow'. Did you mean 'SlidingWindow'?"),
        ({"policy": {"class": "SlidingWindow", "turns": -1}}, "Invalid policy SlidingWindow in the configuration. "),
        (
            {"policy": {"class": "SlidingWindow", "turn": 3}},
            "Unknown SlidingWindow field 'turn'. Did you mean 'turns'?",
        ),
        ({"budgetkit": 99}, "Unknown version 99 of a configuration. This budgetkit reads version 1"),
        ({"policy": {"class": "SlidingWindow", "turns": {"class": "X"}}}, "Expected a name"),
    ],
)  # fmt: skip
def test_a_mistake_in_it_is_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, LookupError, TypeError), match=sentence):
        setup_of({"model": "gpt-4o", "budget": "chat", **change})


def test_the_shell_needs_the_file_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "support-chat", "-b", str(file), "--json"]) == 0
    by_file = json.loads(capsys.readouterr().out)
    file.write_text(
        EVERYTHING.replace("policy: {class: SlidingWindow, turns: 3}\n", ""), encoding="utf-8"
    )
    others = ["-p", "last turns", "-c", "o200k_base"]
    assert run(["replay", "support-chat", "-b", str(file), *others, "--json"]) == 0
    typed = json.loads(capsys.readouterr().out)
    assert by_file["totals"] != typed["totals"]
    # Chars/4 is an estimate, with no buffer against it.
    assert run(["check", "support-chat", "-b", str(file)]) == 1
    assert "estimate" in capsys.readouterr().out


def test_a_misspelt_key_closes_the_gate(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(EVERYTHING.replace("window:", "windw:"), encoding="utf-8")
    assert run(["check", "-b", str(file), "support-chat"]) == 2
    assert "'windw'" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="pipes with a name are POSIX")
def test_a_folder_or_a_pipe_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match="Not a file: "):
            setup_of(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("model: gpt-4o\nbudget: [chat\n", r"Invalid YAML in .*: lines 2 to 3: expected ',' or '\]'"),
        ('{"model": "gpt-4o",\n "budget" "chat"}', r"Invalid JSON in .*: Expecting ':' delimiter: line 2"),
        ("budget: chat\nbudget: rag\n", "Duplicate key 'budget'. Remove"),
        ("modle: gpt-4o\nbudget: chat\n", ": Invalid configuration. Unknown key 'modle'"),
        ("budget: chat\npolicy: oldest frist\n", ": Unknown policy 'oldest frist'."),
        ("- chat\n- rag\n", "does not contain a budget. Use a configuration with keys such as model"),
    ],
)  # fmt: skip
def test_a_fault_is_said_with_file_and_line(tmp_path: Path, text: str, sentence: str) -> None:
    """What is written by hand is mended by hand: the advice to copy a saved state whole helps nobody there."""
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((ValueError, LookupError), match=sentence) as error:
        budget_of(path, model="gpt-4o")
    assert "mine.yaml" in str(error.value)
    assert "Copy the whole text" not in str(error.value)


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="File not found: ") as error:
        bk.Conversation(tmp_path / "nothere.yaml")
    assert "Errno" not in str(error.value)


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let a text come in by standard input."""

    def pipe(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return pipe


def test_a_piped_configuration_is_the_same_as_its_file(
    file: Path, piped: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", "support-chat", "-b", str(file), "--json"]) == 0
    by_file = capsys.readouterr()
    piped(EVERYTHING)
    assert run(["replay", "support-chat", "-b", "-", "--json"]) == 0
    by_pipe = capsys.readouterr()
    assert by_pipe == by_file
    assert "Counted with chars/4." in by_pipe.err


def test_a_pipe_that_is_empty_or_wrong_is_a_sentence(
    piped: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    piped("")
    assert run(["fit", "support-chat", "-b", "-"]) == 2
    assert "No budget on standard input" in capsys.readouterr().err
    piped("modle: gpt-4o\nbudget: chat\n")
    assert run(["fit", "support-chat", "-b", "-"]) == 2
    assert (
        "Error: standard input: Invalid configuration. Unknown key 'modle'"
        in capsys.readouterr().err
    )


def test_compare_adds_the_configured_policy(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "support-chat", "-b", str(file), "--json"]) == 0
    names = {row["policy"] for row in json.loads(capsys.readouterr().out)}
    assert {"SlidingWindow(3)", "oldest first"} <= names
    assert run(["compare", "support-chat", "-b", str(file), "-p", "octopus", "--json"]) == 0
    assert [row["policy"] for row in json.loads(capsys.readouterr().out)] == ["octopus"]


@pytest.mark.parametrize("name", ["a\0.yaml", "folder", "a" * 5_000])
def test_what_can_be_no_file_is_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises((ValueError, OSError), match="Not a file|Cannot read") as error:
        budget_of(tmp_path / name)
    assert "Errno" not in str(error.value)
