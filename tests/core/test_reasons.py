"""The reason for a loss is the one that would have to change, and a section has one answer everywhere."""

import pytest

import budgetkit as bk
from budgetkit import presets

# A cap of 300 in a window that leaves 182 for it.
SECTIONS = [
    bk.Allocation("system", required=True),
    bk.Allocation("knowledge", 300, granularity="token"),
    bk.Allocation("question", required=True),
]
ROOM_BELOW_CAP = bk.Budget(1_000, [bk.Reserve("output", 100)], SECTIONS)


def in_window_and_cap(plan: bk.Plan) -> tuple[list[str], list[str]]:
    """Return the sections that lose something to the window, and those that lose something to their cap."""
    diagnostics = plan.diagnostics
    return [*diagnostics["window_overflow_by_source"]], [*diagnostics["budget_overflow_by_source"]]  # type: ignore[misc]


def test_one_item_over_both_is_lost_to_the_window() -> None:
    """303 tokens asked, cap 300, 182 left: 0.3.0 said that the cap is to be raised."""
    words = bk.counter("words/1")
    items = [bk.Item("system", 718), bk.Item("knowledge", 303, payload="so " * 303)]
    for cut in (None, bk.truncation.cutter(words)):
        plan = bk.fit(ROOM_BELOW_CAP.assign(knowledge={"granularity": "item"}), items, cut)
        assert plan.decisions[1].reason == "window full"
    plan = bk.fit(ROOM_BELOW_CAP, items, bk.truncation.cutter(words))
    assert plan["knowledge"].granted == 182
    assert plan.decisions[1].reason == "window full"
    (warning,) = plan.warnings
    assert "knowledge loses 121 of 303 tokens (1 item cut) because the window" in warning


def test_build_names_the_window_as_well() -> None:
    built = bk.build(
        ROOM_BELOW_CAP,
        "words/1",
        framing=bk.requests.FRAMINGS["text"],
        system="so " * 718,
        knowledge=["so " * 303],
    )
    assert built.plan["knowledge"].limit == 182
    assert in_window_and_cap(built.plan) == (["knowledge"], [])


def test_items_beyond_the_cap_are_lost_to_it_as_numbers_are() -> None:
    """Of 500 tokens 200 lie beyond the cap, and of the rest 118 have no room."""
    numbers = bk.allocate(ROOM_BELOW_CAP, {"system": 718, "knowledge": 500})
    assert numbers.diagnostics["budget_overflow_by_source"] == {"knowledge": 200}
    assert numbers.diagnostics["window_overflow_by_source"] == {"knowledge": 118}
    whole = ROOM_BELOW_CAP.assign(knowledge={"granularity": "item"})
    items = bk.fit(whole, [bk.Item("system", 718), *[bk.Item("knowledge", 100)] * 5])
    assert items.diagnostics["budget_overflow_by_source"] == {"knowledge": 2}
    assert items.diagnostics["window_overflow_by_source"] == {"knowledge": 2}


def test_a_required_text_over_its_cap_has_one_answer() -> None:
    """Plan #195 cuts it to its cap: 0.3.0 said 500, 701 and 500."""
    budget = presets.agent_prompt(4_000)
    text = "so " * 701
    item = bk.Item("system_prompt", 701, payload=text)
    granted = {
        bk.allocate(budget, {"system_prompt": 701})["system_prompt"].granted,
        bk.fit(budget, [item])["system_prompt"].granted,
        bk.fit(budget, [item], bk.truncation.cutter(bk.counter("words/1")))[
            "system_prompt"
        ].granted,
        bk.build(
            budget,
            "words/1",
            framing=bk.requests.FRAMINGS["text"],
            system_prompt=text,
            current_message="?",
        )
        .plan["system_prompt"]
        .granted,
    }
    assert granted == {500}


def test_a_text_that_was_cut_in_numbers_alone_is_not_sent_whole() -> None:
    plan = bk.fit(presets.agent_prompt(4_000), [bk.Item("system_prompt", 701, payload="so " * 701)])
    assert plan.decisions[0].kept == 500
    with pytest.raises(ValueError, match="An item of section 'system_prompt' has no text"):
        bk.conversation.assembly.messages(plan)


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^The window is 0 tokens\. Use at least 1\.$"):
        bk.Budget(0)
    with pytest.raises(ValueError, match="The window is 0 tokens"):
        bk.Budget(100).assign(window=0)


def test_a_model_without_a_reserve_for_its_answer_is_said() -> None:
    """A window of gpt-4o holds prompt and answer: 0.3.0 planned 128,000 tokens of prompt in silence."""
    budget = presets.agent_prompt("gpt-4o")
    sentence = "No tokens are reserved for the answer, but the window holds both"
    assert any(sentence in warning for warning in bk.allocate(budget, {}).warnings)
    reserved = presets.agent_prompt("gpt-4o", {"output_reserve": 4_096})
    assert bk.allocate(reserved, {}).warnings == ()
    assert bk.allocate(presets.agent_prompt(4_000), {}).warnings == ()

    # A trim and each request of a conversation say it too; a cap below the window leaves room for the answer.
    question = [{"role": "user", "content": "hi"}]
    for most in (budget, "agent_prompt", 128_000):
        (warning,) = bk.trim(question, most, model="gpt-4o").warnings
        assert sentence in warning
    for most in (reserved, presets.agent_prompt(4_000), 127_000):
        assert bk.trim(question, most, model="gpt-4o").warnings == ()
    assert (
        bk.trim(question, 272_000, model="gpt-5").warnings == ()
    )  # its answer has a place of its own
    for most, warned in ((budget, 1), (reserved, 0)):
        talk = bk.Conversation(most, model="gpt-4o")
        talk.add(question)
        assert len(talk.request().warnings) == warned


@pytest.mark.parametrize("output", [500, 1_000])
def test_a_reserve_that_leaves_no_window_is_refused(output: int) -> None:
    """0.3.0 planned with a pool of -4,500 tokens."""
    with pytest.raises(ValueError, match=rf"Reserves \({output:,}\) fill the window \(500\)"):
        presets.working_memory(500, output=output)


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    sentence = (
        r"Unknown preset 'wroking'\. Did you mean 'working_memory'\? Choose one of: 'agent', "
    )
    with pytest.raises(AttributeError, match=sentence) as error:
        presets.wroking  # noqa: B018
    assert "Preset," not in str(error.value)
    with pytest.raises(LookupError, match=r"Unknown preset 'wroking'\. .* Choose one of: 'chat', "):
        presets.preset("wroking")


def test_the_documents_agent_settings_pass_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    whole = {"agent": {"context_budget": {"total_tokens": 4_000, "sections": {}}}}
    for value in (whole, whole["agent"]):
        jsonschema.validate(value, presets.CONTEXT_BUDGET_SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {"agent": {"context_budget": {"totl": 1}}}, presets.CONTEXT_BUDGET_SCHEMA
        )


def test_the_best_few_hold_for_numbers_as_for_items() -> None:
    """Of six passages of 120 tokens and one of 18 the best three are 360: 0.3.0 granted 738 as numbers."""
    passages = [{"text": "so " * 120, "score": n / 10} for n in range(6)]
    passages.append({"text": "so " * 18, "score": 0.01})
    message = bk.Message({"role": "user", "content": "so", "contexts": passages})
    trace = bk.Trace("mine", (message,), contexts={0: message.contexts})
    words = bk.counter("words/1")
    budget, text = presets.working_memory(100_000), bk.requests.FRAMINGS["text"]
    demand = trace.demand(words, budget.roles, text)
    assert demand["knowledge"].tolist() == [738]
    numbers = bk.plan.allocate_many(budget, demand).set_index("section").loc["knowledge"]
    items = bk.fit(budget, trace.items(1, words, budget.roles, text))["knowledge"]
    assert items.granted == numbers["granted"] == 360
    assert items.cut == numbers["cut"] == 378
    swept = bk.sweep(budget, demand.tail(1), window=[50_000, 100_000])
    assert swept.query("section == 'knowledge'")["granted"].tolist() == [360, 360]


def test_build_takes_markers_and_tells_the_budget() -> None:
    """Document 003 has both; 0.3.0 took neither."""
    budget = presets.agent_prompt(4_000)
    built = bk.build(
        budget,
        "gpt-4o",
        markers={"first": "[...truncated]", "best": "[...]", "newest": "[...]"},
        tell=True,
        system_prompt="so " * 900,
        current_message="Why?",
    )
    assert built.messages[0]["content"].endswith("[...truncated]")
    assert built.messages[-1]["role"] == "system"
    assert "- system_prompt: 500/500" in built.messages[-1]["content"]
    assert bk.count_request({"messages": built.messages}, model="gpt-4o").tokens <= 4_000
    without = bk.build(budget, "gpt-4o", current_message="Why?")
    assert [message["role"] for message in without.messages] == ["user"]
