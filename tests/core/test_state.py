"""Saved states: exact round trips, a schema that holds, and nothing but data read."""

import json
import re
import time
from collections.abc import Callable
from enum import StrEnum

import jsonschema
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import presets, state
from budgetkit.presets import PRESETS
from budgetkit.state import schema
from tests.strategies import ITEMS, budgets

SCHEMA = jsonschema.Draft202012Validator(schema())


@pytest.mark.parametrize("name", PRESETS)
def test_presets_round_trip(name: str) -> None:
    """Through JSON and YAML, and the schema accepts them."""
    budget = PRESETS[name](bk.model("gpt-4o"))
    assert (
        state.from_json(state.to_json(budget)) == budget == state.from_yaml(state.to_yaml(budget))
    )
    SCHEMA.validate(json.loads(state.to_json(budget)))


@given(budgets(), ITEMS)
def test_any_budget_and_plan_round_trip(budget: bk.Budget, items: list[bk.Item]) -> None:
    """Exactly, decisions included; the same value gives the same bytes."""
    plan = bk.fit(budget, items)
    for value in (budget, plan):
        text = state.to_json(value)
        restored = state.from_json(text)
        assert restored == value == state.from_yaml(state.to_yaml(value))
        assert state.to_json(restored) == text
        SCHEMA.validate(json.loads(text))


ODD = st.sampled_from(
    ["null", "1e5", "a: b", "a #b", "- a", " a", "a\n", "\n", "'", '"', "? a", "é", "--- ", "<<"]
)
TOLD = st.lists(ODD | st.text(st.characters(max_codepoint=126), max_size=50), max_size=9).map(
    " ".join
)


@given(st.recursive(TOLD, lambda deep: st.lists(deep) | st.dictionaries(TOLD, deep), max_leaves=6))
def test_yaml_is_written_as_pyyaml_writes_it_without_its_part_in_c(said: object) -> None:
    """That part is faster, and writes long keys and escapes in its own way."""
    plan = bk.fit(
        bk.Budget(100, [], [bk.Allocation("a")]), [bk.Item("a", 5, payload={"said": said})]
    )
    plain = yaml.safe_dump(state.to_dict(plan, texts=True), sort_keys=False, allow_unicode=True)
    assert state.to_yaml(plan, texts=True) == plain


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="this PyYAML has no part in C")
@pytest.mark.parametrize("name", PRESETS)
def test_a_budget_is_written_by_the_part_in_c(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slider writes it at every move; in Python alone that took a third of the move."""
    budget = PRESETS[name](bk.model("gpt-4o"))
    written = state.to_yaml(budget)
    monkeypatch.setattr(
        yaml.SafeDumper, "represent", lambda *given: pytest.fail("written in Python")
    )
    assert state.to_yaml(budget) == written


def test_the_plan_of_a_conversation_round_trips_without_its_texts() -> None:
    """Tool calls stay grouped with their results; what the items stand for is not saved."""
    budget = presets.agent(bk.model("gpt-4o"))
    items = bk.load_trace("coding-agent").items(12, bk.counter("chars/4"), budget.roles)
    saved = state.to_json(bk.fit(budget, items))
    restored = state.from_json(saved)
    assert isinstance(restored, bk.Plan)
    assert [d.item.group for d in restored.decisions] == [item.group for item in items]
    assert {d.item.payload for d in restored.decisions} == {None}
    assert {key for item in json.loads(saved)["plan"]["items"] for key in item} <= {
        "section",
        "tokens",
        "group",
    }
    assert state.to_json(restored) == saved
    SCHEMA.validate(json.loads(saved))


def test_a_share_clamped_to_nothing_stays_nothing() -> None:
    """0 is a limit, not the absence of one."""
    budget = bk.Budget(100, [bk.Reserve("output", bk.Share(0.5, 0, 0))])
    restored = state.from_yaml(state.to_yaml(budget))
    assert isinstance(restored, bk.Budget)
    assert (restored, restored.sizes["output"]) == (budget, 0)


def test_numbers_of_numpy_are_saved_as_plain_numbers() -> None:
    """A cap taken from a column of a frame is as good as one typed in."""
    budget = presets.chat(8_192).assign(conversation=np.int64(1_000))  # type: ignore[arg-type]
    assert state.from_yaml(state.to_yaml(budget)) == budget
    assert type(budget.allocations[3].cap) is int


class Kind(StrEnum):
    """Names that are texts and more."""

    MEMORY = "memory"


def test_columns_of_numpy_and_enumerations_are_saved_as_what_they_stand_for() -> None:
    """In items too, whose scores and groups often come from a frame."""
    budget = bk.Budget(100, (), [bk.Allocation(Kind.MEMORY)])
    item = bk.Item(
        Kind.MEMORY,
        3,
        score=np.float32(0.5),  # type: ignore[arg-type]
        importance=np.int8(2),  # type: ignore[arg-type]
        group=("call", (np.int64(7),)),
    )
    plan = bk.fit(budget, [item])
    for restored in (state.from_json(state.to_json(plan)), state.from_yaml(state.to_yaml(plan))):
        assert restored == plan
        assert isinstance(restored, bk.Plan)
        assert restored.decisions[0].item.group == ("call", (7,))
        assert type(restored.budget.sections[0]) is str
    SCHEMA.validate(json.loads(state.to_json(plan)))


def test_a_group_that_no_file_can_hold_is_named() -> None:
    """Before anything is written."""
    plan = bk.fit(bk.Budget(100, (), [bk.Allocation("a")]), [bk.Item("a", 3, group=frozenset({1}))])
    for save in (state.to_json, state.to_yaml):
        refusal = r"Cannot save group of .*: it contains a value of type frozenset. Use strings"
        with pytest.raises(ValueError, match=refusal):
            save(plan)


PLAN = (
    '{"budgetkit": 1, "plan": {"budget": {"window": 1}, "grants": [], "items": [], '
    '"kept": %s, "reasons": %s, "cuts": %s}}'
)


ITEMS_OF_A = (
    '{"budgetkit": 1, "plan": {"budget": {"window": 100, "allocations": [{"section": "a"}]}, '
    '"grants": [{"section": "a", "demand": 30, "limit": 100, "granted": %s}], '
    '"items": [{"section": "a", "tokens": 30%s}], "kept": [%s], "reasons": ["fits"], "cuts": []}}'
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "Invalid JSON in saved state"),
        ("[]", "Invalid saved state: a value of type list. Expected a mapping with keys"),
        ('{"budgetkit": 2, "budget": {"window": 1}}', "Unknown version 2 of saved state."),
        ('{"budget": {"window": 1}}', "Not a saved state (its keys: 'budget'). Pass a state saved by"),
        ('{"hello": 1}', "Not a saved state (its keys: 'hello'). Pass a state"),
        ("{}", "Not a saved state (its keys: none)."),
        ('{"budgetkit": 1}', "A saved state needs exactly one of 'budget' and 'plan'"),
        (
            '{"budgetkit": 1, "budget": {"windw": 1}}',
            "Unknown key in budget: 'windw'. Did you mean 'window'? Choose one of: 'allocations'",
        ),
        ('{"budgetkit": 1, "budget": {}}', "Missing in budget: 'window'. It needs 'window'; save it again."),
        ('{"budgetkit": 1, "budget": {"window": -1}}', "Invalid window: -1"),
        ('{"budgetkit": 1, "budget": {"window": "1"}}', "Invalid budget.window: '1'. Expected a whole number"),
        ('{"budgetkit": 1, "budget": {"window": 1, "reserves": 3}}', "Invalid budget.reserves: 3. Expected a list"),
        (
            '{"budgetkit": 1, "budget": {"window": 1, "reserves": [{"name": "a", "size": {"ratio": 2}}]}}',
            "Invalid ratio: 2",
        ),
        ('{"budgetkit": 1, "plan": {"budget": {"window": 1}}}', "Missing in plan: 'cuts', 'grants'"),
        (
            '{"budgetkit": 1, "budget": {"window": 1, "constrained_below": "x"}}',
            "Invalid budget.constrained_below: 'x'. Expected",
        ),
        (
            '{"budgetkit": 1, "budget": {"window": 1, "roles": {"user": 3}}}',
            "Invalid budget.roles.user: 3. Expected a string",
        ),
        (
            '{"budgetkit": 1, "budget": {"window": 1, "allocations": ["a"]}}',
            "Invalid allocation: a value of type str. Expected a mapping",
        ),
        (
            '{"budgetkit": 1, "budget": {"window": 1, "allocations": [{"section": "a", "importance": "hi"}]}}',
            "Invalid budget.allocations[0].importance: 'hi'. Expected a whole number",
        ),
        (PLAN % ("[]", "null", "[]"), "Invalid plan.reasons: None. Expected a list"),
        (PLAN % ("[]", "[[]]", "[]"), "Invalid plan.reasons[0]: []. Choose one of: 'fits', "),
        (PLAN % ("[]", "[]", "[7]"), "Invalid cuts: [7]. Expected increasing positions of 0 items"),
        (PLAN % ("5", "[]", "[]"), "Invalid plan.kept: 5. Expected a list"),
        (ITEMS_OF_A % ('"30!"', "", "30"), "Invalid plan.grants[0].granted: '30!'. Expected a whole"),
        (ITEMS_OF_A % ("30", "", '"30"'), "Invalid plan.kept[0]: '30'. Expected"),
        (ITEMS_OF_A % ("30", "", "1e999"), "Invalid plan.kept[0]: inf. Expected a whole"),
        (ITEMS_OF_A % ("30", ', "group": {"a": 1}', "30"), "Invalid group of an item: {'a': 1}. Expected texts"),
        (ITEMS_OF_A % ("30", ', "group": [[{}]]', "30"), "Invalid group of an item: {}. Expected texts"),
        (ITEMS_OF_A % ("30", ', "importance": "high"', "30"), "Invalid plan.items[0].importance: 'high'. Expected"),
        (ITEMS_OF_A % ("30", ', "score": "high"', "30"), "plan.items[0]: Invalid score: 'high'. Expected a number"),
        (
            ITEMS_OF_A.replace('"a", "demand"', '"b", "demand"') % ("30", "", "30"),
            "The grants ('b') do not match the sec",
        ),
        ("[" * 100_000, "Invalid JSON in saved state"),
    ],
)  # fmt: skip
def test_errors(text: str, sentence: str) -> None:
    """One clear sentence each, and never another kind of error."""
    with pytest.raises(ValueError, match=re.escape(sentence)):
        state.from_json(text)


def test_only_budgets_and_plans_are_saved() -> None:
    """Anything else says what is."""
    with pytest.raises(TypeError, match="Invalid value to save: .*. Expected a Budget or a Plan"):
        state.to_json(3)  # type: ignore[arg-type]
    assert state.to_json(presets.chat(8_192)).startswith('{\n  "budgetkit": 1')


@pytest.mark.parametrize("number", ["010", "1:30", "0x10", "0b11", "-0o7", "1:30.5", "2026-11-21"])
def test_what_yaml_alone_takes_for_another_number_is_a_text(number: str) -> None:
    """A window of 010 tokens was one of 8, and 1:30 one of 90."""
    refusal = f"Invalid budget.window: '{number}'. Expected a whole number"
    with pytest.raises(ValueError, match=refusal):
        state.from_yaml(f"budgetkit: 1\nbudget: {{window: {number}}}")
    plan = bk.fit(bk.Budget(9, (), [bk.Allocation("a")]), [bk.Item("a", 3, payload=number)])
    assert state.from_yaml(state.to_yaml(plan, texts=True)) == plan


@given(st.from_regex(r"[-+.0-9_:eExobinfaNIN~<=]{1,8}|[a-zA-Z]{1,5}", fullmatch=True))
def test_a_text_that_looks_like_a_number_comes_back_as_the_text(text: str) -> None:
    """YAML quotes what it would read as something else; here less is something else."""
    budget = bk.Budget(9, name=text)
    assert state.from_yaml(state.to_yaml(budget)) == budget


TOO_LONG = [
    *("1e-9999", "1E-99999999", "0e-99999999", "1e99999999", "1e-999999999999999999999"),
    *("0." + "3" * 1_000_000, "0." + "0" * 1_000_000 + "1", "9" * 5_000, "nan", "-inf", "sNaN"),
]


@pytest.mark.parametrize("ratio", TOO_LONG, ids=lambda ratio: ratio[:12])
def test_a_number_too_long_to_calculate_with_is_refused_at_once(ratio: str) -> None:
    """An exponent is a short text, and as an exact fraction as many digits as it says."""
    start = time.process_time()
    reserve = {"name": "a", "size": {"ratio": ratio}}
    saved = json.dumps({"budgetkit": 1, "budget": {"window": 9, "reserves": [reserve]}})
    prompt = {"allocations": {"a": {"max_tokens": f"{ratio}%"}}}
    asked: list[Callable[[], object]] = [
        lambda: state.from_json(saved),
        lambda: state.from_yaml(saved),
        lambda: bk.Share(ratio),
        lambda: bk.counter(f"chars/{ratio}"),
        lambda: bk.counter(f"chars/1/{ratio}"),
        lambda: presets.agent_prompt(None, prompt),
    ]
    for ask in asked:
        refusal = r"^(budget.*: )?Invalid (ratio|max_tokens of 'a'): .*\. Use "
        with pytest.raises(ValueError, match=refusal):
            ask()
    assert time.process_time() - start < 1


@pytest.mark.slow
def test_numbers_of_a_million_digits_are_refused_at_once() -> None:
    """In hexadecimal and in sixties YAML reads them, and an error that writes them out takes minutes."""
    start = time.process_time()
    for number in ("0x" + "f" * 1_000_000, ":".join(["1"] * 300_000), "9" * 1_000_000):
        with pytest.raises(ValueError, match=r"^.{1,500}$"):
            state.from_yaml(f"budgetkit: 1\nbudget: {{window: {number}}}")
    for ask in (
        bk.Budget,
        lambda number: bk.Allocation("a", number),
        lambda number: bk.Share(0.5, number),
    ):
        refusal = "a whole number of about 1,0[0-9,]* digits. Use at most"
        with pytest.raises(ValueError, match=refusal):
            ask(10**1_000_000)
    assert time.process_time() - start < 4


def test_every_float_is_a_ratio() -> None:
    """Bounds leave out no number that a program has."""
    for ratio in (5e-324, 2.2250738585072014e-308, 0.1 + 0.2, 1e-300, 1.0):
        assert bk.Share(ratio).of(10) >= 0
