"""Presets: what each does with a model, with a deficit, with settings of its own."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import presets
from budgetkit.presets import PRESETS
from budgetkit.trace import DEFAULT_ROLES

DOCUMENT_003 = {
    "context_budget": {
        "total_tokens": 4_000,
        "allocations": {
            "system_prompt": {"max_tokens": 500, "priority": "required"},
            "rag_memories": {"max_tokens": "12.5%", "priority": "high"},
            "recent_events": {"max_tokens": 300, "priority": "low"},
        },
        "overflow_policy": "drop_low_priority",
    }
}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_takes_tokens_or_a_model(name: str) -> None:
    """A model brings its window and what the window holds; roles lead to sections that exist."""
    by_model = PRESETS[name](bk.model("gpt-4o", max_output=32_000))
    assert by_model == PRESETS[name](128_000)
    assert PRESETS[name](bk.model("gpt-5")).kind == "input"
    assert set(by_model.roles.values()) <= set(by_model.sections)
    assert set(PRESETS[name].demand) <= set(by_model.sections)
    assert by_model.name == name


@pytest.mark.parametrize("name", ["chat", "rag", "agent"])
def test_no_preset_reserves_more_than_the_model_writes(name: str) -> None:
    """15 % of 128,000 are 19,200 tokens, and gpt-4o writes 16,384 at most: the preset warned of itself."""
    budget = PRESETS[name]("gpt-4o")
    assert budget.sizes["output"] == 16_384
    assert bk.allocate(budget, {}).warnings == ()
    assert PRESETS[name]("gpt-4").sizes["output"] == 1_228  # 15 % of 8,192: less than its 4,096
    asked = PRESETS[name]("gpt-4o", output=20_000)
    assert asked.sizes["output"] == 20_000, "a number of tokens is taken as it is, and warned of"
    assert "leaving 3,616 of them unused" in bk.allocate(asked, {}).warnings[0]


def test_a_trace_goes_by_the_roles_of_working_memory_unless_told_otherwise() -> None:
    """The two towers may not import one another, so the table stands twice and is held equal here."""
    assert presets.working_memory().roles == dict(DEFAULT_ROLES)


@pytest.mark.parametrize(
    ("current", "demand", "history"),
    [
        ("actual", 100, 900),
        ("fixed", 100, 500),
        ("larger", 100, 500),
        ("larger", 700, 300),
        ("fixed", 700, 300),
    ],
)
def test_current_counted_fixed_or_the_larger(current: str, demand: int, history: int) -> None:
    """What the current message claims of 1,000 tokens; it is sent whole, over a fixed 500 as well."""
    budget = presets.working_memory(1_000, output=0, current=current)  # type: ignore[arg-type]
    assert bk.allocate(budget, {"current": demand})["history"].limit == history


def test_history_floor_is_kept_even_where_the_window_is_overrun() -> None:
    """Octopus: the minimum history is not negotiable, the deficit is shown."""
    budget = presets.working_memory(10_000, output=1_000)
    plan = bk.allocate(budget, {"system": 8_000, "history": 9_000})
    assert (plan["history"].granted, plan.free) == (4_000, -3_000)
    assert plan.remainder == 10_000 - 1_000 - 8_000
    assert "by 3,000 tokens" in plan.warnings[0]


@pytest.mark.parametrize("history", [0, 1_804, 1_805, 3_000, 900_000])
def test_history_budget_is_what_the_others_leave_whatever_the_history_asks(history: int) -> None:
    """000's subtraction is signed and does not know the history; that its floor overruns is told beside it."""
    demand = {"system": 2_000, "current": 100, "history": history}
    assert (
        bk.allocate(presets.working_memory(8_000), demand).remainder == 8_000 - 4_096 - 2_000 - 100
    )
    assert (
        bk.allocate(presets.working_memory(3_000), demand).remainder == 3_000 - 4_096 - 2_000 - 100
    )


@given(st.integers(1, 20_000), *(st.integers(0, 9_000) for _ in range(3)))
def test_history_budget_is_one_subtraction_in_any_window(
    window: int, system: int, current: int, history: int
) -> None:
    """Document 000's formula, whatever is asked; its budget shows a deficit as a negative number."""
    plan = bk.allocate(
        presets.working_memory(window), {"system": system, "current": current, "history": history}
    )
    assert plan.remainder == window - 4_096 - system - current


def test_a_remainder_with_a_cap_is_never_above_it() -> None:
    """anchor's conversation may have 20 % of the window, however much more is free."""
    assert bk.allocate(presets.chat(8_192), {}).remainder == 1_638


def test_a_remainder_that_others_are_promised_a_part_of() -> None:
    """Who is asked later keeps its promise; what it takes beyond that was left to it."""
    lines = [
        bk.Allocation("history", importance=9),
        bk.Allocation("notes", floor=100, importance=1),
    ]
    budget = bk.Budget(1_000, (), lines, remainder="history")
    for history in (0, 500, 5_000):
        assert bk.allocate(budget, {"history": history, "notes": 700}).remainder == 900


def test_memory_is_0_when_messages_fill_the_window() -> None:
    """001's acceptance: clamped, and constrained."""
    plan = bk.allocate(presets.memory_engine(8_192), {"messages": 9_000, "memory": 500})
    assert (plan["memory"].limit, plan.remainder, plan.is_constrained) == (0, 0, True)


def test_document_003_is_read_as_it_stands() -> None:
    """Tokens and percent, classes, the policy; sections that it does not name keep the system's defaults."""
    budget = presets.agent_prompt(None, DOCUMENT_003)
    assert (budget.cap("rag_memories"), budget.cap("working_memory")) == (500, 800)
    assert budget.allocations[budget.sections.index("recent_events")].when_full == "drop"


def test_drop_low_priority_drops_where_truncate_cuts() -> None:
    """200 tokens are left for a low section that wants 300."""
    demand = {"system_prompt": 500, "recent_events": 300}
    for policy, granted in (("truncate_low_priority", 200), ("drop_low_priority", 0)):
        budget = presets.agent_prompt(700, DOCUMENT_003, {"overflow_policy": policy})
        assert bk.allocate(budget, demand)["recent_events"].granted == granted


def test_own_configuration_lies_over_the_defaults_and_changes_by_tick() -> None:
    """Later configurations win field by field; one tick is an assign."""
    own = {"sections": {"rag_memories": {"max_tokens": 900}}}
    budget = presets.agent_prompt(8_000, DOCUMENT_003, own)
    assert budget.cap("rag_memories") == 900
    assert budget.allocations[budget.sections.index("rag_memories")].importance == 8
    assert budget.assign(rag_memories=100).cap("rag_memories") == 100
    assert presets.agent_prompt().cap("rag_memories") == 600


def test_disabled_lifts_every_cap() -> None:
    """Without management each section takes what it needs."""
    budget = presets.agent_prompt(4_000, {"enabled": False})
    assert bk.allocate(budget, {"rag_memories": 3_000})["rag_memories"].granted == 3_000


def test_lists_are_cut_by_their_type() -> None:
    """The newest events stay, the best memories stay, other sections are cut at the end."""
    lines = {a.section: (a.keep, a.granularity) for a in presets.agent_prompt().allocations}
    assert lines["action_history"] == ("newest", "line")
    assert lines["rag_memories"] == ("best", "line")
    assert lines["working_memory"] == ("first", "token")


@pytest.mark.parametrize(
    ("configuration", "sentence"),
    [
        ({"total": 9}, "Invalid context_budget. Unknown key 'total'."),
        ({"sections": {"a": {"max": 9}}},
         "Invalid section 'a'. Unknown key 'max'. Choose one of: 'enabled', 'max_tokens', 'priority'"),
        ({"sections": {"a": {"priority": "top"}}},
         "Invalid priority of 'a': 'top'. Choose one of: 'required', 'high', 'medium', 'low"),
        ({"sections": {"a": {"max_tokens": "9"}}},
         "Invalid max_tokens of 'a': '9'. Expected tokens (500), a percentage"),
        ({"sections": {"a": {"max_tokens": "120%"}}}, ": '120%'. Use a percentage from '0%' to '100%'"),
        ({"overflow_policy": "burn"}, "Invalid overflow_policy: 'burn'. Choose one of: 'truncate_low_priority"),
        ({"allocations": {"rag_memories": 600}}, "Invalid section 'rag_memories': 600. Expected a mapping, such as"),
        ({"allocations": {"a": {"priority": ["high"]}}},
         "Invalid priority of 'a': ['high']. Choose one of: 'required', 'high"),
        ({"allocations": ["a"]}, "Invalid allocations: ['a']. Expected a mapping"),
        ({"enabled": "no"}, "Invalid enabled of context_budget: 'no'. Expected true or false"),
        ({"sections": {"a": {"enabled": "no"}}}, "Invalid enabled of section 'a': 'no'. Expected true or false"),
        ({"total_tokens": "4000"}, "Invalid total_tokens: '4000'"),
        ({"context_budget": 4_000}, "Invalid context_budget: 4000. Expected a mapping"),
        ({"agent": {"model": "gpt-4o"}}, "Missing key 'context_budget' under 'agent', which has: 'model'."),
        ({1: 2, "total": 3}, "Invalid context_budget. Unknown key '1'"),
        (["x"], "Invalid configuration: ['x']. Expected a mapping"),
    ],
)  # fmt: skip
def test_configuration_errors(configuration: Any, sentence: str) -> None:
    """One clear sentence each, of the kind that every other field gives."""
    with pytest.raises((ValueError, TypeError), match=re.escape(sentence)):
        presets.agent_prompt(None, configuration)


@pytest.mark.parametrize(
    "empty",
    [
        None,
        {},
        {"context_budget": None},
        {"agent": {"context_budget": None}},
        {"sections": None},
        {"allocations": {"rag_memories": None}},
        {"total_tokens": None, "overflow_policy": None, "enabled": None},
    ],
)
def test_an_empty_key_says_nothing(empty: dict[str, Any] | None) -> None:
    """YAML reads "sections:" with nothing behind it as None; the defaults stand."""
    assert presets.agent_prompt(None, empty) == presets.agent_prompt()


def test_document_003_is_read_out_of_the_file_it_stands_in() -> None:
    """Its schema has the budget under agent, among other settings of the agent and of the system."""
    file = {"agent": {"model": "gpt-4o", **DOCUMENT_003}, "logging": {"level": "info"}}
    assert presets.agent_prompt(None, file) == presets.agent_prompt(None, DOCUMENT_003)


def test_a_section_that_is_switched_off_gets_nothing() -> None:
    """003: disabled sections use no budget, a required one among them, and also where no cap is kept."""
    off = {"sections": {"rag_memories": {"enabled": False}, "system_prompt": {"enabled": False}}}
    for budget in (
        presets.agent_prompt(None, off),
        presets.agent_prompt(None, off, {"enabled": False}),
    ):
        items = [
            bk.Item("rag_memories", 10),
            bk.Item("system_prompt", 10),
            bk.Item("working_memory", 10),
        ]
        assert {g.section for g in bk.fit(budget, items).grants if g.granted} == {"working_memory"}


def test_tool_schemas_do_not_go_for_the_cap_of_the_system_prompt() -> None:
    """003 knows no tools, and its 500 tokens for the system prompt hold none: they draw on the pool, or on a cap."""
    count = bk.counter("gpt-4o")
    trace = bk.load_trace("coding-agent")
    own = {"sections": {"tools": {"max_tokens": 300, "priority": "required"}}}
    for budget, kept in ((presets.agent_prompt(), 365), (presets.agent_prompt(None, own), 365)):
        plan = bk.fit(budget, trace.items(5, count, budget.roles))
        expected = (0, 365, kept)
        assert (plan["system_prompt"].cut, plan["tools"].demand, plan["tools"].granted) == expected
    assert any(
        "tools is required and needs 365 tokens, 65 above its cap (300)" in said
        for said in plan.warnings
    )


def test_a_configuration_in_the_place_of_the_window() -> None:
    """The sentence says where it goes."""
    with pytest.raises(ValueError, match=re.escape("as in agent_prompt(None, configuration)")):
        presets.agent_prompt(DOCUMENT_003)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", ["foo", "reserves", "allocations"])
def test_a_setting_that_a_preset_does_not_have(setting: str) -> None:
    """Three parts, and not how Python tells of an argument."""
    for make in (presets.chat, presets.rag, presets.agent):
        sentence = f"Unknown setting of {make.__name__}: '{setting}'.* Choose one of: 'output', 'fill', 'kind'"
        with pytest.raises(TypeError, match=sentence):
            make(1_000, **{setting: 1})  # type: ignore[arg-type]


def test_what_a_working_memory_s_window_holds() -> None:
    """A model says it; who knows better says so, and one clear sentence names the choices."""
    assert presets.working_memory(bk.model("gpt-5")).kind == "input"
    assert presets.working_memory(bk.model("gpt-5"), kind="usable").reserved == 0
    refusal = "Invalid kind: 'open'. Choose one of: 'shared', 'input', 'usable"
    with pytest.raises(ValueError, match=refusal):
        presets.working_memory(kind="open")  # type: ignore[arg-type]


def test_unknown_current() -> None:
    """The known ones are listed."""
    with pytest.raises(ValueError, match="Choose one of: 'actual', 'fixed', 'larger"):
        presets.working_memory(current="guessed")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        ("8k", "Invalid window: '8k'. Expected a whole number"),
        ("8,192", "Invalid window: '8,192'. Expected a whole number"),
        ("gtp-4o", "Unknown model 'gtp-4o'. Did you mean 'gpt-4o'?"),
    ],
)
@pytest.mark.parametrize("name", ["rag", "working_memory", "memory_engine", "agent_prompt"])
def test_a_window_of_no_number_or_model_is_refused(name: str, window: str, sentence: str) -> None:
    """A window of 8,192 tokens stood in for "8k", with a warning of a model that nobody had named."""
    with pytest.raises((TypeError, ValueError), match=sentence):
        PRESETS[name](window)
