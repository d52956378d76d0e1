"""One fact, one place: the same set-up, opened everywhere, says the same window, usable, pool, history and warnings.

In 0.2.0 the app opened a file on 128,000 tokens and a report of it on 8,192; a window that is for the prompt alone was
that in the explorers, and shared with the answer in the shell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.budget.html import shortened_markup
from budgetkit.extras.shell.gate import check
from budgetkit.extras.shell.program import run
from budgetkit.inputs.budgets import budget_of
from budgetkit.inputs.conversations import opening_model
from budgetkit.lab.explorers.report import report_html
from budgetkit.requests import framing_for, framing_of

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
    return {
        "window": budget.window,
        "kind": budget.kind,
        "usable": budget.usable,
        "pool": budget.shared_pool,
    }


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
    budget = bk.state.from_dict(
        {"budgetkit": 1, "budget": json.loads(capsys.readouterr().out)["plan"]["budget"]}
    )
    assert isinstance(budget, bk.Budget)
    return facts_of(budget)


def of_preset(file: Path, named: Facts) -> Facts:
    return facts_of(
        budget_of(
            "chat", opening_model(named.get("model"), bk.load_trace(file)), named.get("window")
        )
    )


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
def test_the_shell_opens_what_the_explorer_opens(
    named: Facts, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
        found = [
            re.findall(r"<title>.*?</title>", path.read_text(encoding="utf-8"))
            for path in (goal, own)
        ]
        figures = [
            re.findall(r'<li class="bk-kpi".*?</li>', path.read_text(encoding="utf-8"))
            for path in (goal, own)
        ]
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
    still = unescape(report_html(explorer.view.state, repr(explorer)))
    for kpi in explorer.view.state["kpis"]:
        assert shortened_markup(kpi["value"]) in still
        assert kpi["label"] in still
    shown = {kpi["key"]: kpi["value"] for kpi in explorer.view.state["kpis"]}
    assert shown["usable"] == f"{budget.usable:,}"
    assert f"a window of {budget.window:,} tokens" in unescape(budget._repr_html_())


@pytest.mark.parametrize("named", SETUPS.values(), ids=SETUPS)
def test_a_warning_is_the_same_sentence_everywhere(named: Facts, file: Path) -> None:
    small = {**named, "window": 400}
    plans = [
        bk.BudgetExplorer("chat", file, **small).plan,
        bk.DesignCard("chat", file, **small).plan,
    ]
    assert plans[0].warnings == plans[1].warnings


def test_a_session_opens_on_its_own_model_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert "Unknown model 'gtp-9'" in capsys.readouterr().err


TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "find_parcel",
            "description": "Look up where a parcel is.",
            "parameters": {
                "type": "object",
                "properties": {
                    "number": {"type": "string", "description": "As printed on the slip."},
                    "carrier": {"type": "string", "enum": ["mail", "courier"]},
                    "days": {"type": "integer", "minimum": 1},
                },
                "required": ["number"],
            },
        },
    },
    {
        "type": "function",
        "function": {"name": "now", "parameters": {"type": "object", "properties": {}}},
    },
]
#: A model of each maker, also by the names that routers and hosts have for it.
MAKERS = [
    *(
        *("gpt-4o", "gpt-4.1", "gpt-5.2", "o3", "chatgpt-4o-latest"),
        *("gpt-6.1-sol", "ft:gpt-4o-2024-08-06:org::id"),
    ),
    *(
        *("openai/gpt-5.2", "openai/gpt-4.1-mini", "openai/gpt-4o"),
        *("openrouter/openai/gpt-5-mini", "openrouter/openai/o3"),
    ),
    *("azure/gpt-5-mini", "gpt-oss-120b", "groq/openai/gpt-oss-20b"),
    *(
        "claude-sonnet-4-5",
        "openrouter/anthropic/claude-sonnet-4.5",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
    ),
    *("gemini-2.5-pro", "openrouter/google/gemini-2.5-flash", "vertex_ai/gemini-2.5-pro"),
    *(
        *("deepseek-chat", "openrouter/deepseek/deepseek-chat-v3.1"),
        *("qwen3-32b", "mistral-large-latest"),
    ),
    *(
        *("grok-4", "nova-pro", "llama-3.3-70b-instruct", "openrouter/moonshotai/kimi-k2"),
        *("glm-4.6", "command-a"),
    ),
]
TALK = [SPOKEN[0], SPOKEN[1]]
BODY: dict[str, Any] = {"messages": TALK, "tools": TOOLS}


def tools_of_the_bill(name: str) -> int:
    return (
        bk.count_request({**BODY, "model": name}).tokens
        - bk.count_request({"messages": TALK, "model": name}).tokens
    )


def tools_of_the_gate(name: str) -> int:
    budget = bk.Budget(100_000, (), [bk.Allocation("system")])
    prompts = {"system": str(TALK[0]["content"])}
    armed, bare = (
        check(budget, prompts=prompts, tools=tools, model=name, window=100_000).sections
        for tools in (TOOLS, None)
    )
    return sum(armed.values()) - sum(bare.values())


def tools_of_a_plan(name: str) -> int:
    """As `plan` counts them: by the conversation's items, with the model's counter and its framing."""
    trace = bk.Trace("talk", tuple(map(bk.Message, TALK)), tuple(TOOLS))
    counter = bk.counter(name)
    tally = trace.tally(counter, framing=framing_of(counter))
    return sum(item.tokens for item in tally.schemas)


def tools_of_an_explorer(name: str) -> int:
    trace = bk.Trace("talk", tuple(map(bk.Message, TALK)), tuple(TOOLS))
    explorer = bk.BudgetExplorer("chat", trace, model=name, window=100_000)
    without = bk.BudgetExplorer("chat", replace(trace, tools=()), model=name, window=100_000)
    armed, bare = (
        sum(grant.demand for grant in opened.plan.grants) for opened in (explorer, without)
    )
    return armed - bare


def tools_of_a_conversation(name: str) -> int:
    requests = []
    for tools in (TOOLS, []):
        talk = bk.Conversation("chat", model=name, window=100_000, tools=tools)
        for message in TALK:
            talk.add(message)
        requests.append(talk.request().tokens)
    return requests[0] - requests[1]


def tools_of_trim(name: str) -> int:
    """The least budget that all messages fit in: with the tools less without them."""

    def least(tools: list[dict[str, Any]]) -> int:
        low, high = 0, 10_000
        while high - low > 1:
            middle = (low + high) // 2
            try:
                fits = len(bk.trim(TALK, middle, model=name, tools=tools)) == len(TALK)
            except ValueError:
                fits = False
            low, high = (low, middle) if fits else (middle, high)
        return high

    return least(TOOLS) - least([])


TOOL_PLACES: dict[str, Callable[[str], int]] = {
    "gate": tools_of_the_gate,
    "plan": tools_of_a_plan,
    "explorer": tools_of_an_explorer,
    "Conversation": tools_of_a_conversation,
    "trim": tools_of_trim,
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("place", TOOL_PLACES)
def test_tools_cost_everywhere_what_the_bill_says(place: str, name: str) -> None:
    """The bill of `openai/gpt-5.2` had 53 tokens for tools that plan, gate and counter took for 134.

    A router's name was lost on the way, and a model whose vocabulary nobody has was counted by two stand-ins.
    """
    assert TOOL_PLACES[place](name) == tools_of_the_bill(name) > 0


@pytest.mark.parametrize("name", MAKERS)
def test_a_request_costs_everywhere_what_the_bill_says(name: str) -> None:
    bill = bk.count_request({**BODY, "model": name}).tokens
    talk = bk.Conversation("chat", model=name, window=100_000, tools=TOOLS)
    for message in TALK:
        talk.add(message)
    counter = bk.counter(name)
    assert talk.request().tokens == bill
    assert framing_of(counter).request(TALK, counter, TOOLS) == bill
    assert framing_for(bk.model(name)).request(TALK, counter, TOOLS) == bill


@st.composite
def tool_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw tools as requests have them: with and without descriptions, choices, objects inside, defaults."""
    words = st.text("abcdefghij .-é数", max_size=30)
    plain = st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean"])},
        optional={
            "description": words,
            "enum": st.lists(words, min_size=1, max_size=3),
            "default": words,
        },
    )
    names = st.text("abcdefg_", min_size=1, max_size=12)
    inside = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(names, plain, max_size=2)}
    )
    schema = st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(names, plain | inside, max_size=4),
        }
    )
    functions = st.fixed_dictionaries(
        {"name": names, "parameters": schema}, optional={"description": words}
    )
    listed = draw(
        st.lists(
            functions, min_size=1, max_size=3, unique_by=lambda function: str(function["name"])
        )
    )
    return [{"type": "function", "function": function} for function in listed]


@given(name=st.sampled_from(MAKERS), tools=tool_lists())
@settings(max_examples=60, deadline=None)
def test_any_tools_cost_a_conversation_what_the_bill_says(
    name: str, tools: list[dict[str, Any]]
) -> None:
    talk = bk.Conversation("chat", model=name, window=1_000_000, tools=tools)
    for message in TALK:
        talk.add(message)
    assert (
        talk.request().tokens
        == bk.count_request({"messages": TALK, "tools": tools, "model": name}).tokens
    )
