"""The rules of the documents' own configurations: what they accept, refuse, and write back."""

import json
import re
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import presets
from budgetkit.conversation import assembly
from budgetkit.presets import CONTEXT_BUDGET_SCHEMA
from tests.messages import assistant, user

SYSTEM = {"source": "system", "max_tokens": 800, "priority": 10}
RETRIEVAL = {"source": "retrieval", "max_tokens": 3_200, "overflow_strategy": "drop"}


def test_anchors_example_in_its_own_words() -> None:
    """004: a pool of 2,992, and what each source may count on."""
    budget = presets.token_budget(8_192, [RETRIEVAL, SYSTEM], 1_200)
    expected = (2_992, 6_992, ("system", "retrieval", "user"))
    assert (budget.shared_pool, budget.usable, budget.sections) == expected
    assert [budget.cap(s) for s in ("system", "retrieval", "memory")] == [800, 3_200, 2_992]
    lines = {a.section: (a.importance, a.overflow, a.required) for a in budget.allocations}
    assert lines == {
        "system": (10, "truncate", True),
        "retrieval": (5, "drop", False),
        "user": (9, "truncate", True),
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0,), "Invalid total_tokens: 0. Use 1 or more."),
        ((100, [{**SYSTEM, "max_tokens": 0}]), "Invalid max_tokens of system: 0. Use 1 or more."),
        ((9_000, [{**SYSTEM, "priority": 99}]), "Invalid priority of system: 99. Use a number from 1 to 10."),
        ((9_000, [{**SYSTEM, "priority": 0}]), "Invalid priority of system: 0. Use a number from 1 to 10."),
        (
            (9_000, [{**SYSTEM, "source": "retreival"}]),
            "Invalid source: 'retreival'. Choose one of: 'system', 'memory', 'retrieval",
        ),
        ((9_000, [{**SYSTEM, "overflow_strategy": "burn"}]), "Invalid overflow_strategy of system: 'burn'"),
        ((9_000, [{"source": "system"}]), "Expected a mapping with 'source' and 'max_tokens'"),
        ((9_000, ["system"]), "Invalid allocation: 'system'. Expected a mapping with 'source' and"),
        ((9_000, [{**SYSTEM, "cap": 3}]), "Expected a mapping with 'source' and 'max_tokens'"),
        ((9_000, [SYSTEM, SYSTEM]), "Duplicate allocations for 'system'."),
        ((10, [{**SYSTEM, "max_tokens": 11}]), "exceed the window (10) by 1 token."),
        ((100, [], 100), "fill the window"),
    ],
)  # fmt: skip
def test_what_anchors_document_refuses(arguments: tuple[Any, ...], sentence: str) -> None:
    """One sentence each."""
    with pytest.raises(ValueError, match=re.escape(sentence)):
        presets.token_budget(*arguments)


CONFIGURATION = {
    "context_budget": {
        "total_tokens": 6_000,
        "output_reserve": "12.5%",
        "overflow_policy": "drop_low_priority",
        "allocations": {
            "system_prompt": {"max_tokens": 700, "priority": "required"},
            "rag_memories": {"max_tokens": "7.5%", "priority": "high"},
            "recent_events": {"enabled": False},
            "goals": {"max_tokens": None, "priority": "low"},
        },
    }
}


def test_a_configuration_of_plan_195_goes_in_and_comes_out() -> None:
    """With the names of its classes, as an agent writes it back into its own file; 0.1.0 lost them."""
    budget = presets.agent_prompt(None, CONFIGURATION)
    written = presets.translate(budget, "plan-195").config["context_budget"]
    assert written["allocations"]["rag_memories"] == {"max_tokens": "7.5%", "priority": "high"}
    assert (written["output_reserve"], written["overflow_policy"]) == ("12.5%", "drop_low_priority")
    for text, read in (
        (json.dumps(written), json.loads),
        (yaml.safe_dump(written), yaml.safe_load),
    ):
        assert presets.agent_prompt(None, read(text)) == budget


TOKENS = st.integers(0, 900) | st.integers(0, 1_000).map(lambda n: f"{n / 10}%") | st.none()
ON = st.booleans() | st.none()
RULES = st.fixed_dictionaries(
    {},
    optional={
        "max_tokens": TOKENS,
        "priority": st.sampled_from(["required", "high", "medium", "low"]) | st.none(),
        "enabled": ON,
    },
)
NAMES = st.sampled_from(["rag_memories", "goals", "current_message"])
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "total_tokens": st.integers(1, 9_000) | st.none(),
        "output_reserve": st.integers(0, 900) | st.just("15%") | st.none(),
        "enabled": ON,
        "overflow_policy": st.sampled_from(["truncate_low_priority", "drop_low_priority", None]),
        "sections": st.dictionaries(NAMES, RULES | st.none()),
    },
)


@given(SETTINGS)
def test_every_configuration_keeps_the_schema_and_comes_back(settings: dict[str, Any]) -> None:
    """What is read is what the schema says, and so is what is written."""
    jsonschema.validate({"context_budget": settings}, CONTEXT_BUDGET_SCHEMA)
    budget = presets.agent_prompt(None, settings)
    found = presets.translate(budget, "plan-195")
    jsonschema.validate(found.config, CONTEXT_BUDGET_SCHEMA)
    assert presets.agent_prompt(None, found.config) == found.budget == budget
    assert found.unsaid == ()


@pytest.mark.parametrize(
    "settings",
    [
        {"total": 1},
        {"sections": {"a": {"max": 1}}},
        {"sections": {"a": {"priority": "top"}}},
        {"sections": {"a": {"max_tokens": "9"}}},
        {"enabled": "no"},
        {"sections": ["a"]},
        {"overflow_policy": "burn"},
        {"total_tokens": "4000"},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(settings: dict[str, Any]) -> None:
    """Both or none."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"context_budget": settings}, CONTEXT_BUDGET_SCHEMA)
    with pytest.raises((ValueError, TypeError)):
        presets.agent_prompt(None, settings)


def test_what_a_context_budget_cannot_say_is_listed() -> None:
    """A floor, or a preset of another kind."""
    floor = presets.agent_prompt().assign(rag_memories={"floor": 100})
    assert presets.translate(floor, "plan-195").unsaid == ("rag_memories.floor: 100 becomes 0",)
    found = presets.translate(presets.chat(8_192), "plan-195")
    expected = {"max_tokens": "25%", "priority": "medium"}
    assert found.config["context_budget"]["allocations"]["rag_memories"] == expected
    assert found.unsaid[:6] == (
        *("system: renamed system_prompt", "memory: renamed working_memory"),
        *("retrieval: renamed rag_memories", "conversation: renamed action_history"),
        *("user: renamed current_message", "order: 'pool by item' becomes 'importance'"),
    )


def test_the_budget_text_as_plan_195_words_it() -> None:
    """No comma in its numbers, and an exclamation mark; 450 of 500 is exactly 90 % and not near."""
    lines = [
        bk.Allocation(s, cap)
        for s, cap in (("system_prompt", 500), ("working_memory", 800), ("rest", 2_700))
    ]
    plan = bk.allocate(
        bk.Budget(4_000, (), lines), {"system_prompt": 450, "working_memory": 780, "rest": 1_970}
    )
    text = assembly.describe(
        plan, lambda text: 0, framing=bk.requests.FRAMINGS["text"], wording=assembly.PLAN_195
    )
    assert text.splitlines() == [
        *("## Context Budget", "Using 3200/4000 tokens (80%)", "- system_prompt: 450/500"),
        *("- working_memory: 780/800 (near limit!)", "- rest: 1970/2700"),
    ]


LINES = "\n".join(f"{i} looked for the invoice" for i in range(40))


def test_a_marker_at_the_end_as_plan_195_places_it() -> None:
    """The newest lines stay and the marker comes after them, inside the limit all the same."""
    count = bk.counter("o200k_base")
    text = bk.truncation.truncate(LINES, 40, count, "tail", "line", "\n[older]", marker_at="end")
    assert text.endswith("39 looked for the invoice\n[older]")
    assert 30 < count(text) <= 40
    budget = bk.Budget(60, (), [bk.Allocation("events", granularity="line", keep="newest")])
    cut = bk.truncation.cutter(count, markers={"newest": "\n[older]"}, marker_at="end")
    plan = bk.fit(budget, [bk.Item("events", count(LINES), payload=LINES)], cut)
    assert plan.decisions.items[0].payload.endswith("the invoice\n[older]")
    assert count(plan.decisions.items[0].payload) == plan["events"].granted <= 60
    with pytest.raises(ValueError, match="Invalid marker_at: 'start'. Choose one of: 'cut', 'end"):
        bk.truncation.truncate(LINES, 40, count, marker_at="start")  # type: ignore[arg-type]


@given(st.text(max_size=60), st.integers(0, 12), st.sampled_from(["head", "tail", "middle"]))
def test_a_marker_at_the_end_stays_within_the_limit(text: str, limit: int, keep: str) -> None:
    """Whatever the text and what stays of it."""
    count = bk.counter("o200k_base")
    cut = bk.truncation.truncate(text, limit, count, keep, marker=" […]", marker_at="end")  # type: ignore[arg-type]
    assert count(cut) <= limit


def kept_tokens(budget: bk.Budget, *items: bk.Item) -> list[int]:
    return [decision.kept for decision in bk.fit(budget, items).decisions]


@pytest.mark.parametrize("keep", ["first", "newest", "best"])
def test_items_of_every_section_stay_by_their_priority(keep: Any) -> None:
    """004: items are sorted by (-priority, -score); 0.2.0 did so only where keep="best" was declared."""
    budget = bk.Budget(1_000, (), [bk.Allocation("tool", 50, keep=keep)])
    low, high = bk.Item("tool", 40, importance=1), bk.Item("tool", 40, importance=9)
    assert kept_tokens(budget, low, high) == [0, 40]
    assert kept_tokens(budget, high, low) == [40, 0]


def test_items_without_a_priority_stay_in_order_as_declared() -> None:
    first, newest = (
        bk.Budget(1_000, (), [bk.Allocation("tool", 50, keep=keep)]) for keep in ("first", "newest")
    )
    one, other = bk.Item("tool", 40, score=0.1), bk.Item("tool", 40, score=0.9)
    assert kept_tokens(first, one, other) == [40, 0]
    assert kept_tokens(newest, one, other) == [0, 40]


def test_sources_that_nobody_declared_compete_for_the_pool_by_priority_and_score() -> None:
    """004: sources without an allocation compete for the pool; 0.2.0 gave it to whichever came first."""
    budget = presets.token_budget(1_000, [{"source": "system", "max_tokens": 950}])
    assert budget.shared_pool == 50
    weak, strong = bk.Item("memory", 40, 0.1), bk.Item("notes", 40, 0.9)
    assert kept_tokens(budget, weak, strong) == [0, 40]
    urgent = bk.Item("memory", 40, 0.1, importance=9)
    assert kept_tokens(budget, urgent, strong) == [40, 0]


def test_anchors_diagnostics_in_one_call() -> None:
    """004: tokens by source, use of the shared pool, and items dropped because a source exceeded its cap."""
    budget = presets.token_budget(
        8_192, [SYSTEM, {**RETRIEVAL, "overflow_strategy": "truncate"}], 1_200
    )
    retrieved = [bk.Item("retrieval", 400, score) for score in (0.9, 0.8, 0.7)]
    too_many = [bk.Item("retrieval", 1_200, score) for score in (0.6, 0.5, 0.4)]
    plan = bk.fit(budget, [bk.Item("system", 45), *retrieved, *too_many, bk.Item("memory", 300)])
    assert plan.diagnostics == {
        "token_usage_by_source": {"system": 45, "retrieval": 2_400, "memory": 300},
        "shared_pool_usage": 300,
        "budget_overflow_by_source": {"retrieval": 2},
        "window_overflow_by_source": {},
    }


def test_a_full_window_is_told_apart_from_a_cap_in_the_diagnostics() -> None:
    """004: both are tracked, and apart."""
    budget = bk.Budget(100, (), [bk.Allocation("system", 50), bk.Allocation("memory")])
    items = [
        bk.Item("system", 40),
        bk.Item("system", 40),
        bk.Item("memory", 40),
        bk.Item("memory", 40),
    ]
    diagnostics = bk.fit(budget, items).diagnostics
    assert diagnostics["budget_overflow_by_source"] == {"system": 1}
    assert diagnostics["window_overflow_by_source"] == {"memory": 1}


def test_a_floor_of_the_history_that_gives_way_is_said_with_both_numbers() -> None:
    """MinHistoryTokens of document 000: 4,000 tokens are promised, and an answer of 3,000 leaves 992 of 4,096."""
    budget = bk.presets.working_memory(4_096, output=3_000, history_floor=4_000)
    messages = [user("w" * 100)]
    for _ in range(20):
        messages += [assistant("a" * 100), user("w" * 100)]
    plain: dict[str, Any] = {"counter": len, "framing": bk.requests.Framing()}
    talk = bk.Conversation(budget, **plain)
    talk.add(*messages)
    sentence = r"The floor of 'history' \(4,000 tokens\) is not met, because only 996 are left"
    for warnings in (
        talk.request().warnings,
        bk.trim(messages, budget, **plain).warnings,
        bk.replay(messages, budget, "oldest first", **plain).warnings,
    ):
        assert [bool(re.match(sentence, warning)) for warning in warnings] == [True]
    # What is built keeps the floor and exceeds the window; 0.4.0 said so in its plan alone.
    built = bk.build(budget, **plain, history=messages[:-1], question="w" * 100)
    assert built.plan.free < 0
    assert built.warnings == built.plan.warnings[:1]
    roomy = bk.presets.working_memory(8_000, output=3_000, history_floor=4_000)
    assert bk.replay(messages, roomy, "oldest first", **plain).warnings == ()


def test_a_floor_that_holds_little_is_not_said_to_give_way() -> None:
    talk = bk.Conversation(bk.presets.working_memory(4_096, output=3_000), counter=len)
    talk.add(user("Hello"))
    assert talk.request().warnings == ()
