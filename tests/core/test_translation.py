"""Budgets in the words of other systems: what they read of it, what they keep by it, and what cannot be said."""

import json
import random
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel

import budgetkit as bk
from benchmarks import conformance
from budgetkit import presets
from budgetkit.presets.translation import _DONE

OCTOPUS = {
    "MaxWorkingMemoryTokens": 100_000,
    "OutputReserve": 4_096,
    "MinHistoryTokens": 4_000,
    "MaxKnowledgeTokens": 3_000,
    "MaxEpisodeTokens": 1_000,
}


def test_octopus_memory_config_goes_in_and_comes_out() -> None:
    """Document 000's own defaults, in both cases of JSON; what prunes is a policy's business and listed."""
    read = presets.translate(
        OCTOPUS | {"PruningStrategy": "SlidingWindow", "SlidingWindowTurns": 10}, "octopus"
    )
    assert read.budget == presets.working_memory()
    assert read.unsaid == ("PruningStrategy: 'SlidingWindow'", "SlidingWindowTurns: 10")
    camel = {name[0].lower() + name[1:]: value for name, value in OCTOPUS.items()}
    assert (
        presets.translate(json.loads(json.dumps(camel)), "octopus").budget
        == presets.working_memory()
    )
    written = presets.translate(presets.working_memory(), "octopus")
    assert (written.config, written.unsaid) == (OCTOPUS, ())
    assert json.loads(json.dumps(written.config)) == OCTOPUS


class SourceType(StrEnum):
    """As anchor names what a context is made of (document 004)."""

    SYSTEM = "system"
    RETRIEVAL = "retrieval"


class BudgetAllocation(BaseModel):
    source: SourceType
    max_tokens: int
    priority: int = 5
    overflow_strategy: str = "truncate"


class TokenBudget(BaseModel):
    total_tokens: int
    allocations: list[BudgetAllocation] = []
    reserve_tokens: int = 0


@dataclass
class MemoryConfig:
    MaxWorkingMemoryTokens: int = 8_000
    OutputReserve: int = 500


def test_anchors_token_budget_is_taken_as_the_object_that_it_is() -> None:
    """004: 8,192 less 1,200 for the answer, 800 and 3,200 leave a pool of 2,992."""
    system = BudgetAllocation(source=SourceType.SYSTEM, max_tokens=800, priority=10)
    retrieval = BudgetAllocation(
        source=SourceType.RETRIEVAL, max_tokens=3_200, overflow_strategy="drop"
    )
    budget = TokenBudget(total_tokens=8_192, reserve_tokens=1_200, allocations=[system, retrieval])
    found = presets.translate(budget, "anchor")
    assert found == presets.translate(found.config, "anchor")
    assert json.loads(json.dumps(found.config)) == found.config
    assert (found.budget.caps["system"], found.budget.caps["retrieval"]) == (800, 3_200)
    assert found.budget.shared_pool == 2_992


def test_a_configuration_may_be_a_dataclass_and_nothing_else_is_guessed_at() -> None:
    read = presets.translate(MemoryConfig(), "octopus")
    assert (read.budget.window, read.budget.sizes["output"]) == (8_000, 500)
    refusal = "Expected a Budget, a mapping, or the system's own object"
    with pytest.raises(ValueError, match=refusal):
        presets.translate(3, "anchor")


def test_sections_take_the_names_of_what_is_in_them() -> None:
    found = presets.translate(presets.working_memory(8_000, output=1_000), "anchor")
    cut = {"overflow_strategy": "truncate"}
    retrieval = {"source": "retrieval", "max_tokens": 3_000, "priority": 8, **cut}
    memory = {"source": "memory", "max_tokens": 1_000, "priority": 7, **cut}
    sizes = {"total_tokens": 8_000, "reserve_tokens": 1_000}
    assert found.config == {**sizes, "allocations": [retrieval, memory]}
    assert {"history: renamed conversation"} <= {*found.unsaid}
    assert "retrieval.limit_items: 3 becomes None" in found.unsaid


@pytest.mark.parametrize("system", ["anchor", "octopus", "plan-195", "langchain"])
@pytest.mark.parametrize("preset", presets.PRESETS)
def test_every_preset_goes_to_every_system_with_a_list_of_changes(preset: str, system: str) -> None:
    """Whatever a system does not take over is in the list: a change there is seen in the config, or told."""
    budget = presets.PRESETS[preset](8_192)
    told = presets.translate(budget, system)
    assert json.loads(json.dumps(told.config)) == told.config
    assert presets.translate(told.config, system).budget == told.budget
    changes: list[tuple[str, dict[str, int]]] = [
        (reserve.name, {"size": 77}) for reserve in budget.reserves
    ]
    changes += [(line.section, {"cap": 77, "floor": 0}) for line in budget.allocations]
    for name, changed in changes:
        other = presets.translate(budget.assign(**{name: changed}), system)
        assert other != told
        assert (other.config, other.unsaid) != (told.config, told.unsaid)


@pytest.mark.parametrize(
    ("given", "system", "said"),
    [
        (presets.chat(8_192), "octobus", "octopus"),
        ("max_tokens", "langchain", "Expected a Budget, a mapping, or"),
        ({"tokens": 9}, "langchain", "Missing key 'max_tokens' in the configuration. Add it"),
        ({"reserve_tokens": 9}, "anchor", "Missing key 'total_tokens' in the configuration"),
        (presets.chat(8_192, deficit="signed").assign(system=8_000), "anchor", "caps"),
    ],
)
def test_what_is_no_configuration_or_no_system_is_said(given: Any, system: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        presets.translate(given, system)


def test_anchor_keeps_the_same_items_by_what_is_exported_to_it() -> None:
    """Its own pipeline, over random budgets and items; the two differences are those that docs/differences.md names."""
    anchor = pytest.importorskip("anchor")
    same = 0
    for case in conformance.cases(400):
        sources = [
            {"source": source, "max_tokens": cap, "overflow_strategy": case.overflow[source]}
            for source, cap in case.caps.items()
        ]
        given = {
            "total_tokens": case.window,
            "allocations": sources,
            "reserve_tokens": case.reserve,
        }
        mine = presets.translate(given, "anchor").budget
        told = presets.translate(mine, "anchor")
        assert told.unsaid == _DONE["anchor"]
        theirs = anchor.TokenBudget(**told.config)
        assert presets.translate(theirs.model_dump(mode="json"), "anchor").budget == mine
        kept, pool = conformance.kept_by_anchor(case, theirs)
        order = conformance._in_anchors_order(case)
        open_ = replace(mine, deficit="signed").assign(user={"required": False})
        plan = bk.fit(open_, [case.items[i] for i in order])
        ours = {i for i, tokens in zip(order, plan.decisions.kept.tolist(), strict=True) if tokens}
        same += kept == ours
        assert kept == ours or conformance.named(case, kept, ours, pool)
    assert same > 300


def test_langchain_keeps_the_same_messages_by_what_is_exported_to_it() -> None:
    core = pytest.importorskip("langchain_core.messages")
    chance, count = random.Random(11), bk.counter("o200k_base")
    # Without priming, which trim_messages counts twice beside a system message.
    framing = bk.requests.FRAMINGS["prompt-tsx"]
    said = [{"role": "system", "content": "Be brief."}]
    for turn in range(30):
        said.append({"role": "user", "content": f"{turn} " + "why " * chance.randint(1, 60)})
        said.append({"role": "assistant", "content": f"{turn} " + "so " * chance.randint(1, 60)})
    said.append({"role": "user", "content": "And now?"})

    def counted(messages: list[Any]) -> int:
        return framing.request(core.convert_to_openai_messages(messages), count)

    def ours(budget: bk.Budget) -> list[dict[str, Any]]:
        return bk.trim(said, budget, framing=framing)

    for window in range(200, 3_000, 100):
        budget = presets.working_memory(window, output=100, history_floor=0)
        told = presets.translate(budget, "langchain")
        theirs = core.trim_messages(
            core.convert_to_messages(said), token_counter=counted, **told.config
        )
        assert core.convert_to_openai_messages(theirs) == ours(told.budget) == ours(budget)


def test_what_trim_messages_takes_beside_a_size_is_listed() -> None:
    given = {"max_tokens": 4_000, "strategy": "first", "start_on": "human", "include_system": True}
    read = presets.translate(given, "langchain")
    assert read.budget.usable == 4_000
    assert read.unsaid == ("strategy: 'first'", "start_on: 'human'")
    assert presets.translate({"max_tokens": 9}, "langchain").unsaid == ("include_system: False",)


@pytest.mark.parametrize(
    ("field", "system"), [("maxWorkingMemoryTokens", "octopus"), ("total_tokens", "anchor")]
)
def test_a_size_as_text_is_refused_and_not_taken_for_a_model(field: str, system: str) -> None:
    with pytest.raises(TypeError, match="okens: '8000'. Expected a whole number of tokens"):
        presets.translate({field: "8000"}, system)
