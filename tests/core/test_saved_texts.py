"""Saved states that lie: keys twice, versions that are none, numbers that no plan has; and plans with texts."""

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

import budgetkit as bk
from budgetkit import presets, state
from budgetkit.state import schema
from budgetkit.truncation import cutter
from tests.messages import user


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


SCHEMA = jsonschema.Draft202012Validator(schema())


def planned(name: str) -> bk.Plan:
    """A plan of a shipped conversation by Plan #195, in which something is dropped."""
    count = bk.counter("chars/4")
    budget = presets.agent_prompt(2_000)
    return bk.fit(budget, bk.load_trace(name).items(2, count, budget.roles), cutter(count))


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [("support-chat", {"kept", "cut", "dropped"}), ("coding-agent", {"kept", "dropped"})],
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


def copies(plan: bk.Plan) -> list[object]:
    """Save a plan with its texts as JSON and as YAML, and load both."""
    as_json = state.from_json(state.to_json(plan, texts=True))
    return [as_json, state.from_yaml(state.to_yaml(plan, texts=True))]


def holding(payload: object, group: object = None) -> bk.Plan:
    """Plan one item with a payload."""
    item = bk.Item("a", 3, payload=payload, group=group)
    return bk.fit(bk.Budget(9, (), [bk.Allocation("a")]), [item])


@pytest.mark.parametrize("payload", [None, "Be brief.", 3, ["a", 1.5], user(None)])
def test_any_plain_payload_comes_back(payload: object) -> None:
    plan = holding(payload)
    assert copies(plan) == [plan, plan]


def test_a_payload_that_no_file_can_hold_is_named() -> None:
    plan = holding({1})
    refusal = "Cannot save the value of an item of section 'a': it contains a value of type set."
    with pytest.raises(ValueError, match=re.escape(refusal)):
        state.to_json(plan, texts=True)
    assert state.to_json(plan)


BUDGET = '{"window": 100, "allocations": [{"section": "a"}]}'
GRANT = '{"section": "a", "demand": %d, "limit": %d, "granted": %d}'
PLAN = '{"budgetkit": 1, "plan": {"budget": %s, "grants": [%s], "items": %s, "kept": %s, "reasons": %s, "cuts": []%s}}'
ONE_ITEM = ('[{"section": "a", "tokens": 30}]', "[30]", '["fits"]')
NO_ITEM = ("[]", "[]", "[]")


def saved_plan(
    grant: tuple[int, int, int] = (30, 100, 30), items: tuple[str, ...] = ONE_ITEM, texts: str = ""
) -> str:
    """Write the state of a plan with a grant (demand, limit, granted), items and perhaps their texts."""
    more = f', "texts": {{"items": [{texts}], "cuts": []}}' if texts else ""
    return PLAN % (BUDGET, GRANT % grant, *items, more)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"budgetkit": 1, "budget": {"window": 1, "window": 9}}', "Invalid saved state. Duplicate key 'window'."),
        ('{"budgetkit": true, "budget": {"window": 1}}', "Unknown version True of saved state."),
        ('{"budgetkit": 1.0, "budget": {"window": 1}}', "Unknown version 1.0 of saved state."),
        (saved_plan((50, 900, 500), NO_ITEM), "The grant of 'a' (500) exceeds its demand (50) or limit (900)."),
        (saved_plan((900, 50, 500), NO_ITEM), "The grant of 'a' (500) exceeds its demand (900) or limit (50)."),
        (saved_plan((40, 100, 40)), "The items of 'a' have 30 tokens and keep 30, but its grant has 40 and 40."),
        (saved_plan().replace("[30]", "[40]"), "An item of 'a' keeps 40 of its 30 tokens. Save the plan again."),
        (
            saved_plan().replace('"cuts": []', '"cuts": [0, 0]'),
            "Invalid cuts: [0, 0]. Expected increasing positions of 1 items.",
        ),
        (
            saved_plan(texts=" "),
            "Invalid plan: 1 items, 1 kept, 1 reasons, 0 texts; 0 cuts with 0 texts. Save",
        ),
        (
            saved_plan(texts="{}"),
            "The text of an item needs exactly one of 'message' and 'value'. Add or remove one.",
        ),
        (saved_plan(texts='{"message": 3}'), "Invalid plan.texts.items[0].message: 3. Expected a mapping"),
        (saved_plan(texts='{"message": {}}'), "Message without a role: it has nothing. Choose one of"),
    ],
)  # fmt: skip
def test_a_state_that_contradicts_itself_is_refused(text: str, sentence: str) -> None:
    """In JSON, and in YAML, of which JSON is a part."""
    for read in (state.from_json, state.from_yaml):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            read(text)


def test_a_key_that_stands_twice_in_yaml_is_named() -> None:
    """YAML keeps the last one without a word."""
    refusal = "Invalid saved state. Duplicate key 'window'. Remove one of them"
    with pytest.raises(ValueError, match=refusal):
        state.from_yaml("budgetkit: 1\nbudget:\n  window: 1\n  name: mine\n  window: 9\n")


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        ("cut \ud83d", "contains half of a surrogate pair. Remove that half."),
        (
            {"a": ["\udc00"]},
            "a of the value of an item of section 'a' contains half of a surrogate pair",
        ),
        ({1: "a", "1": "b"}, "a value of type dict. Use strings, numbers, lists and mappings with string keys"),
        (nested(450), "is nested deeper than 100 levels. Save a smaller part of it."),
        (10**5_000, "a value of type int. Use strings, numbers"),
        (3j, "a value of type complex. Use strings, numbers"),
    ],
    ids=["half", "half inside", "keys", "nested", "digits", "complex"],
)  # fmt: skip
def test_what_no_file_can_hold_is_refused_when_it_is_saved(payload: object, sentence: str) -> None:
    """0.1.0 wrote halves that few programs read, keys that came back as texts, and broke on what is nested."""
    plan = holding(payload)
    for save in (state.to_json, state.to_yaml):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            save(plan, texts=True)
        assert save(plan)


def test_what_is_nested_as_deep_as_is_saved_comes_back() -> None:
    plan = holding(nested(94), group=("a", ("b",)))
    assert copies(plan) == [plan, plan]


@pytest.mark.slow
@pytest.mark.parametrize("depth", [450, 5_000, 100_000])
def test_a_file_nested_without_end_loads_or_is_refused_in_words(depth: int) -> None:
    for inner in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        for group in ("", f', "group": {inner}'):
            grouped = (ONE_ITEM[0].replace("}", group + "}"), *ONE_ITEM[1:])
            text = saved_plan(items=grouped, texts=f'{{"value": {inner}}}')
            for read in (state.from_json, state.from_yaml):
                try:
                    read(text)
                except ValueError as refusal:
                    known = ("Invalid ", "The saved state is", "plan.items[0]")
                    assert str(refusal).startswith(known)


def test_half_a_character_that_0_1_0_wrote_is_read() -> None:
    """As U+FFFD, so that it can be saved again."""
    plan = state.from_json(saved_plan(texts='{"value": "cut \\ud83d"}'))
    assert isinstance(plan, bk.Plan)
    assert plan.decisions[0].item.payload == "cut \ufffd"


@pytest.mark.parametrize("field", ["name", "key", "value"])
def test_a_budget_is_named_by_whole_characters(field: str) -> None:
    roles = {"key": {"\ud83d": "a"}, "value": {"a": "\ud83d"}}.get(field, {})
    refusal = "Invalid name of a budget or a role: '.ud83d' contains half of a surrogate pair"
    with pytest.raises(ValueError, match=refusal):
        bk.Budget(9, name="\ud83d" if field == "name" else "", roles=roles)


@pytest.mark.parametrize(
    ("keys", "twice"),
    [
        ("yes: 1, true: 2", "True"),
        ("1: 1, 1.0: 2", "1.0"),
        ("a: 1, 'a': 2", "'a'"),
        ("~: 1, null: 2", "None"),
    ],
)
def test_keys_that_are_one_to_yaml_are_told(keys: str, twice: str) -> None:
    with pytest.raises(ValueError, match=f"Duplicate key {twice}. Remove one of them"):
        state.from_yaml(f"budgetkit: 1\nbudget: {{window: 9, roles: {{{keys}}}}}")


@pytest.mark.parametrize("old", ['"Be brief."', '"key"', '"g"', '"user"'])
@pytest.mark.parametrize("read", [state.from_json, state.from_yaml])
def test_half_a_character_is_read_as_it_is_counted_and_saved_again(
    old: str, read: Callable[[str], Any]
) -> None:
    """It was read as it stood, and then to_json refused it. Counters take it for U+FFFD, as Python's codecs do."""
    budget = bk.Budget(100, (), [bk.Allocation("a", keep="best")])
    payload = {"key": ["Be brief."]}
    item = bk.Item("a", 3, group=("g", 1), payload=payload, roles={"user": "a"})
    saved = state.to_json(bk.fit(budget, [item]), texts=True)
    assert old in saved
    plan = read(saved.replace(old, '"half \\ud83d"'))
    assert state.to_json(plan, texts=True) == saved.replace(old, '"half \ufffd"')
