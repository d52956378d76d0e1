"""A request in one call, as Octopus' BuildAsync and anchor's pipeline make it, and the memory engine's record."""

import asyncio
import dataclasses
import json
import warnings
from typing import Any

import numpy as np
import pytest

import budgetkit as bk
from budgetkit.presets import PRESETS
from budgetkit.requests import DEFAULT_FRAMING
from tests.messages import assistant, calling, system, tool_call, tool_result, user

COUNT = bk.counter("gpt-4o")
HISTORY = [
    {"role": role, "content": f"{role} says {turn}"}
    for turn in range(6)
    for role in ("user", "assistant")
]
PARTS: dict[str, Any] = {
    "system": "Be brief.",
    "procedure": "Ask for the number of the order first.",
    "knowledge": [("Refunds take five days.", 0.9), ("Parcels leave at noon.", 0.4)],
    "episodes": ["Last week she asked for a refund."],
    "history": HISTORY,
    "current": "Where is my refund?",
}


def texts(built: Any) -> list[str]:
    return [message["content"] for message in built.messages]


def test_octopus_six_components_stand_in_the_documents_order_and_under_its_roles() -> None:
    built = bk.build(bk.presets.working_memory(8_000), COUNT, context_role="context", **PARTS)
    passages = ["context"] * 3
    expected = ["system", "system", *passages, *["user", "assistant"] * 6, "user"]
    assert [message["role"] for message in built.messages] == expected
    assert built.messages[1]["content"] == PARTS["procedure"]
    assert built.messages[-1]["content"] == PARTS["current"]
    roles = [{**m, "role": "system"} if m["role"] == "context" else m for m in built.messages]
    assert built.plan.used == DEFAULT_FRAMING.request(roles, COUNT)


def test_components_that_are_empty_are_absent() -> None:
    parts = {**PARTS, "procedure": None, "episodes": [], "system": ""}
    built = bk.build(bk.presets.working_memory(8_000), COUNT, **parts)
    assert texts(built)[:2] == ["Refunds take five days.", "Parcels leave at noon."]


def for_seven_messages() -> bk.Budget:
    """A budget that leaves the history seven of its messages."""
    others = bk.build(bk.presets.working_memory(8_000), COUNT, **{**PARTS, "history": []}).plan.used
    seven = 7 * DEFAULT_FRAMING.message(HISTORY[0], COUNT)
    return bk.presets.working_memory(others + seven, output=0, history_floor=0)


@pytest.mark.parametrize(
    ("policy", "first"),
    [
        (bk.policies.SlidingWindow(2), "user says 4"),
        # As a running conversation, it begins with the user.
        (bk.policies.OldestFirst(), "user says 3"),
        (None, "assistant says 2"),
    ],
)
def test_the_policy_prunes_the_history_to_what_others_leave(policy: Any, first: str) -> None:
    budget = for_seven_messages()
    built = bk.build(budget, COUNT, policy=policy, start_on="any", **PARTS)
    said = [m["content"] for m in built.messages if m["role"] in ("user", "assistant")]
    assert said[0] == first
    assert said[-1] == PARTS["current"]
    assert built.plan.used <= budget.window


@pytest.mark.parametrize("policy", [bk.policies.OldestFirst(), None])
def test_a_request_begins_with_a_message_of_the_users(policy: Any) -> None:
    """Anthropic, Gemini and Converse refuse one that begins with the assistant's."""
    budget = for_seven_messages()
    built = bk.build(budget, COUNT, policy=policy, **PARTS)
    said = [m["content"] for m in built.messages if m["role"] in ("user", "assistant")]
    assert said[:2] == ["user says 3", "assistant says 3"]
    with pytest.raises(ValueError, match="start_on"):
        bk.build(budget, COUNT, start_on="assistant", **PARTS)  # type: ignore[arg-type] # on purpose


def test_a_tool_call_leaves_with_its_result() -> None:
    call = calling({"id": "1", "function": {"name": "f", "arguments": "{}"}})
    said = [call, tool_result("1", "a result " * 20), user("Hi")]
    budget = bk.presets.working_memory(60, output=0, history_floor=0)
    built = bk.build(budget, COUNT, history=said, current="And?")
    assert [message["role"] for message in built.messages] == ["user", "user"]


@pytest.mark.parametrize(
    ("form", "model"),
    [("responses", "gpt-4o"), ("anthropic", "claude-haiku-4-5"), ("gemini", "gemini-2.5-flash")],
)
@pytest.mark.parametrize("window", [400, 2_000, 9_000])
def test_a_plan_has_the_tokens_of_its_request_in_any_form(
    form: Any, model: str, window: int
) -> None:
    """Parallel calls were planned as in a chat: 1,459 tokens where the request had 1,759."""
    calls = [tool_call(f"c{n}", "look", '{"place": "Lisbon"}') for n in range(9)]
    said = [user("Where?"), calling(*calls)]
    said += [tool_result(call["id"], "Sunny. " * 30) for call in calls]
    said += [assistant("Here."), user("And?"), calling(tool_call("never", "look"))]
    budget = bk.presets.working_memory(window, output=50, history_floor=0)
    built = bk.build(budget, model=model, history=said, current="Now?", form=form)
    name = {"responses": "input", "gemini": "contents"}.get(form, "messages")
    body = {"model": model, name: built.messages}
    assert built.plan.used == bk.count_request(body).tokens <= window - 50
    assert "never" not in json.dumps(built.messages)
    assert any("a call has no result" in warning for warning in built.warnings)


@pytest.mark.parametrize(
    "history",
    [
        [{"role": "user", "parts": [{"text": "word " * 900}]}],
        [{"role": "user", "content": [{"text": "word " * 900}]}],
    ],
)
def test_a_request_has_the_form_of_a_history_that_is_dropped(history: Any) -> None:
    budget = bk.presets.working_memory(400, output=50, history_floor=0)
    built = bk.build(budget, COUNT, history=history, current="Now?")
    (message,) = built.messages
    assert message.keys() == history[0].keys()
    assert [*message.values()][1] == [{"text": "Now?"}]


def test_stores_are_asked_at_the_same_time() -> None:
    budget = bk.presets.working_memory(8_000)

    async def ask() -> bk.Plan:
        met = asyncio.Barrier(2)

        async def find(found: Any) -> Any:
            await asyncio.wait_for(met.wait(), 5)  # nobody gets on before both are asked
            return found

        stores = {"procedure": find(PARTS["procedure"]), "knowledge": find(PARTS["knowledge"])}
        return (await bk.conversation.build_async(budget, COUNT, **{**PARTS, **stores})).plan

    assert asyncio.run(ask()).used == bk.build(budget, COUNT, **PARTS).plan.used


def test_anchors_pipeline_is_one_call_with_its_diagnostics() -> None:
    passages = [("Refunds take five days. " * 40, 0.9), ("Parcels leave at noon. " * 40, 0.8)]
    question, budget = "Where is my refund?", bk.presets.rag(500)
    built = bk.build(budget, COUNT, system="Be brief.", retrieval=passages, user=question)
    assert (texts(built)[0], texts(built)[-1]) == ("Be brief.", question)
    assert built.plan["retrieval"].granted <= 200 < built.plan["retrieval"].demand
    assert built.plan["system"].granted == DEFAULT_FRAMING.message(system("Be brief."), COUNT)


def test_a_section_that_the_budget_does_not_have_is_told() -> None:
    with pytest.raises(LookupError, match="retreival"):
        bk.build(bk.presets.working_memory(8_000), COUNT, retreival="x")


def test_the_memory_engines_record_has_the_documents_eight_fields() -> None:
    found = bk.conversation.memory_tokens("gpt-4o", [user("Hello world")], "Be brief.")
    assert dataclasses.asdict(found) == {
        "model": "gpt-4o",
        "context_window": 128_000,
        "messages_tokens": 10,
        "directive_tokens": 3,
        "response_reserve": 4_096,
        "safety_buffer": 6_400,
        "memory_tokens": 117_491,
        "is_constrained": False,
    }
    small = bk.model("gpt-4o", window=20_000)
    full = bk.conversation.memory_tokens(small, [user("word " * 30_000)])
    assert (full.memory_tokens, full.is_constrained) == (0, True)
    with pytest.warns(UserWarning, match="Unknown model"):
        assert bk.conversation.memory_tokens("a-model-of-mine").context_window == 8_192


def test_typical_sizes_are_ranges_and_their_examples_lie_within() -> None:
    preset = PRESETS["working_memory"]
    assert [*preset.ranges["system"]] == [500, 3_000]
    assert preset.ranges.keys() == preset.demand.keys()
    for section, (low, high) in preset.ranges.items():
        assert low <= preset.demand[section] <= high


class Asked:
    """A provider's counter, as `endpoints.provider_counter` makes one; it answers one token more than gpt-4o's."""

    name, exact = "gpt-4o (counted by OpenAI)", True

    def __call__(self, text: str) -> int:
        return COUNT(text) + 1

    def many(self, texts: list[str]) -> list[int]:
        return [self(text) for text in texts]


def test_the_three_ways_of_counting_stand_in_one_table() -> None:
    asked = type("ProviderCounter", (Asked,), {})()
    found = bk.accuracy.ways(["Hello world", "Where is my order?"], "chars/4", "gpt-4o", asked)
    assert found["kind"].tolist() == ["characters", "tokenizer", "endpoint"]
    assert found["tokens"].tolist() == [6, 7, 9]
    assert found["off"].tolist() == [6 / 9 - 1, 7 / 9 - 1, 0.0]
    assert found["network"].tolist() == [False, False, True]
    assert (found["microseconds"] > 0).all()
    with pytest.raises(ValueError, match=r"^No texts to count\. Pass at least one\.$"):
        bk.accuracy.ways([])


def test_the_last_section_that_is_given_pays_what_every_request_costs() -> None:
    budget = bk.presets.working_memory(8_000)
    for last in ({"history": HISTORY[:1]}, {"current": ""}):
        given: dict[str, Any] = {"system": "Be brief.", **last}
        for policy in (None, bk.policies.SlidingWindow(2)):
            built = bk.build(budget, COUNT, policy=policy, **given)
            assert built.plan.used == DEFAULT_FRAMING.request(built.messages, COUNT)


def test_scores_of_any_kind_nothing_and_what_is_no_pair() -> None:
    budget = bk.presets.rag(4_000)
    for score in (0.9, np.float32(0.9), np.int64(1)):
        built = bk.build(budget, COUNT, retrieval=("passage", score), user="q")
        assert texts(built) == ["passage", "q"]
    built = bk.build(budget, COUNT, retrieval=[None, "x"], user="q")
    assert texts(built) == ["x", "q"]
    for wrong in (("a", 0.5, "b"), ("a", "b"), (None, 0.5)):
        refusal = "section 'retrieval': a value of type .*. Expected a string, .*, or a pair"
        with pytest.raises(ValueError, match=refusal):
            bk.build(budget, COUNT, retrieval=[wrong], user="q")


@dataclasses.dataclass
class Document:
    """A retrieved document as LangChain has it."""

    page_content: str
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
    type: str = "Document"


PRESETS_THAT_BUILD = ("chat", "rag", "agent", "agent_prompt", "working_memory", "memory_engine")


@pytest.mark.parametrize("name", PRESETS_THAT_BUILD)
@pytest.mark.parametrize("keyword", ["current", "question", "query", "user"])
def test_the_question_is_the_users_and_last_in_every_preset(name: str, keyword: str) -> None:
    budget = PRESETS[name](8_192)
    history = dict(budget.roles)["user"]
    given: dict[str, Any] = {keyword: "Where is my refund?", history: HISTORY}
    built = bk.build(budget, COUNT, **given)
    assert built.messages[-1] == user("Where is my refund?")
    said = [message["content"] for message in HISTORY]
    assert texts(built)[:-1] == said
    assert built.plan.used == DEFAULT_FRAMING.request(built.messages, COUNT)
    given[keyword] = "And?"
    pruned = bk.build(budget, COUNT, policy=bk.policies.SlidingWindow(2), **given)
    assert texts(pruned) == [*said[-4:], "And?"]


def test_the_question_comes_last_wherever_its_section_stands() -> None:
    sections = [bk.Allocation("user"), bk.Allocation("system"), bk.Allocation("notes")]
    budget = bk.Budget(500, (), sections)
    built = bk.build(budget, COUNT, system="Be brief.", notes="A note.", query="Where is it?")
    expected = [("system", "Be brief."), ("system", "A note."), ("user", "Where is it?")]
    assert [(message["role"], message["content"]) for message in built.messages] == expected


@pytest.mark.parametrize("name", ["chat", "rag", "agent", "agent_prompt"])
def test_a_section_that_is_not_declared_is_refused_where_others_draw_on_the_pool(name: str) -> None:
    """`history=` put old turns after the question."""
    budget = PRESETS[name](8_192)
    refusal = f"Unknown section 'history'.*The history is '{dict(budget.roles)['user']}'"
    with pytest.raises(LookupError, match=refusal):
        bk.build(budget, COUNT, history=HISTORY, user="Where is it?")


def test_the_question_is_given_once_and_by_its_user() -> None:
    budget = bk.presets.chat(8_192)
    refusal = "The question was given twice, once as 'query'. Pass it once."
    with pytest.raises(ValueError, match=refusal):
        bk.build(budget, COUNT, question="Where?", query="Where?")
    with pytest.raises(ValueError, match="Invalid role of the question: 'system'. Expected 'user'"):
        bk.build(budget, COUNT, question=system("Where?"))


@pytest.mark.parametrize(
    "passage",
    [
        "Five days.",
        {"text": "Five days."},
        {"content": "Five days.", "score": 0.5},
        {"page_content": "Five days."},
        Document("Five days."),
        (Document("Five days."), 0.7),
        bk.Item("retrieval", 3, score=0.4, payload="Five days."),
        bk.Item("retrieval", 3, payload=Document("Five days.")),
    ],
)
def test_a_passage_is_taken_as_what_it_is(passage: Any) -> None:
    for value in (passage, [passage]):
        built = bk.build(bk.presets.rag(4_000), COUNT, retrieval=value, question="When?")
        assert texts(built) == ["Five days.", "When?"]


def test_a_passages_own_score_counts() -> None:
    low, high = {"text": "Low.", "score": 0.1}, {"text": "High.", "score": 0.9}
    budget = bk.presets.working_memory(8_000, best=1)
    built = bk.build(budget, COUNT, knowledge=[low, high], question="?")
    assert texts(built) == ["High.", "?"]


@pytest.mark.parametrize(
    "value", [3, 2.5, b"text", object(), {"url": "x"}, {"text": None}, [["nested"]], True]
)
def test_anything_else_is_refused_and_never_sent_as_it_prints_itself(value: Any) -> None:
    with pytest.raises(ValueError, match="text"):
        bk.build(bk.presets.rag(4_000), COUNT, retrieval=[value], question="When?")


def test_texts_of_no_tokens_differ_by_nothing_known() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bk.accuracy.ways([""])["off"].isna().all()
        assert bk.accuracy.ways([""], lambda text: 1, "o200k_base")["off"].isna().all()


def test_a_greeting_that_is_left_out_though_all_fits_is_said() -> None:
    """It left in silence, and was no part of the plan."""
    given: dict[str, Any] = {"conversation": [assistant("I am Ann.")], "question": "Where is it?"}
    built = bk.build(bk.presets.chat(4_000), COUNT, **given)
    assert [message["role"] for message in built.messages] == ["user"]
    assert "1 message (" in built.warnings[0]
    assert 'Set start_on="any" to keep all' in built.warnings[0]
    assert bk.build(bk.presets.chat(4_000), COUNT, start_on="any", **given).warnings == ()
