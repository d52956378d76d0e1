"""Saved states that lie: keys twice, versions that are none, numbers that no plan has; and plans with texts."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

import budgetkit as bk
from budgetkit import presets, state
from budgetkit.schema import schema
from budgetkit.truncation import cutter

SCHEMA = jsonschema.Draft202012Validator(schema())


def planned(name: str) -> bk.Plan:
    """A plan of a shipped conversation by Plan #195, in which something is dropped."""
    count = bk.counter("chars/4")
    budget = presets.agent_prompt(2_000)
    return bk.fit(budget, bk.load_trace(name).items(2, count, budget.roles), cutter(count))


@pytest.mark.parametrize(
    ("name", "outcomes"), [("support-chat", {"kept", "cut", "dropped"}), ("coding-agent", {"kept", "dropped"})]
)
def test_a_plan_saved_with_its_texts_comes_back_equal(name: str, outcomes: set[str]) -> None:
    """Messages, tool calls, schemas, passages and what was left of those that were cut."""
    plan = planned(name)
    assert {decision.outcome for decision in plan.decisions} == outcomes
    saved = state.to_json(plan, texts=True)
    restored = state.from_json(saved)
    assert restored == plan == state.from_yaml(state.to_yaml(plan, texts=True))
    assert state.to_json(restored, texts=True) == saved
    SCHEMA.validate(json.loads(saved))


def test_a_plan_saved_without_its_texts_holds_none() -> None:
    """They may be private; everything else is there."""
    plan = planned("support-chat")
    restored = state.from_json(state.to_json(plan))
    assert isinstance(restored, bk.Plan)
    assert (restored.grants, restored.budget) == (plan.grants, plan.budget)
    assert [d.outcome for d in restored.decisions] == [d.outcome for d in plan.decisions]
    assert {decision.item.payload for decision in restored.decisions} == {None}


@pytest.mark.parametrize("payload", [None, "Be brief.", 3, ["a", 1.5], {"role": "user", "content": None}])
def test_any_plain_payload_comes_back(payload: object) -> None:
    plan = bk.fit(bk.Budget(9, (), [bk.Allocation("a")]), [bk.Item("a", 3, payload=payload)])
    assert state.from_yaml(state.to_yaml(plan, texts=True)) == plan == state.from_json(state.to_json(plan, texts=True))


def test_a_payload_that_no_file_can_hold_is_named() -> None:
    plan = bk.fit(bk.Budget(9, (), [bk.Allocation("a")]), [bk.Item("a", 3, payload={1})])
    with pytest.raises(ValueError, match=re.escape("the payload of an item of section 'a' holds {1}, a set")):
        state.to_json(plan, texts=True)
    assert state.to_json(plan)


BUDGET = '{"window": 100, "allocations": [{"section": "a"}]}'
GRANT = '{"section": "a", "demand": %d, "limit": %d, "granted": %d}'
PLAN = '{"budgetkit": 1, "plan": {"budget": %s, "grants": [%s], "items": %s, "kept": %s, "reasons": %s, "cuts": []%s}}'
ONE_ITEM = ('[{"section": "a", "tokens": 30}]', "[30]", '["fits"]')


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"budgetkit": 1, "budget": {"window": 1, "window": 9}}', "saved state has 'window' twice in one mapping;"),
        ('{"budgetkit": true, "budget": {"window": 1}}', "has version True; this budgetkit reads 1"),
        ('{"budgetkit": 1.0, "budget": {"window": 1}}', "has version 1.0; this budgetkit reads 1"),
        (
            PLAN % (BUDGET, GRANT % (50, 900, 500), "[]", "[]", "[]", ""),
            "grant of 'a' is 500 of a demand of 50 and a limit of 900 tokens; no section gets more",
        ),
        (
            PLAN % (BUDGET, GRANT % (900, 50, 500), "[]", "[]", "[]", ""),
            "grant of 'a' is 500 of a demand of 900 and a limit of 50 tokens; no section gets more",
        ),
        (
            PLAN % (BUDGET, GRANT % (40, 100, 40), *ONE_ITEM, ""),
            "items of 'a' have 30 tokens and keep 30; its grant says 40 and 40; a plan of items sums them",
        ),
        (
            PLAN % (BUDGET, GRANT % (30, 100, 30), *ONE_ITEM, ', "texts": {"items": [], "cuts": []}'),
            "plan has texts for 0 items and 0 cuts; it has 1 items and 0 cuts; there is one for each",
        ),
        (
            PLAN % (BUDGET, GRANT % (30, 100, 30), *ONE_ITEM, ', "texts": {"items": [{}], "cuts": []}'),
            "text of an item holds both or none of 'message' and 'value'; one is known; keep one of them",
        ),
        (
            PLAN % (BUDGET, GRANT % (30, 100, 30), *ONE_ITEM, ', "texts": {"items": [{"message": 3}], "cuts": []}'),
            "message of an item is 3; it has a role and a content; write a mapping",
        ),
        (
            PLAN % (BUDGET, GRANT % (30, 100, 30), *ONE_ITEM, ', "texts": {"items": [{"message": {}}], "cuts": []}'),
            "a message without a role; it has nothing; give it one of",
        ),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(text: str, sentence: str) -> None:
    """In JSON, and in YAML, of which JSON is a part."""
    for read in (state.from_json, state.from_yaml):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            read(text)


def test_a_key_that_stands_twice_in_yaml_is_named() -> None:
    """YAML keeps the last one without a word."""
    with pytest.raises(ValueError, match="saved state has 'window' twice in one mapping; .* remove one of them"):
        state.from_yaml("budgetkit: 1\nbudget:\n  window: 1\n  name: mine\n  window: 9\n")
