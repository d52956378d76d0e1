"""The question is never lost: items know the roles they were made with, and every preset keeps what is asked."""

import pytest

import budgetkit as bk
from budgetkit.conversation import assembly
from budgetkit.plan.batch import RequestBatch
from budgetkit.plan.items import Item
from budgetkit.presets import PRESETS
from tests.messages import system

WORDS = {"system": "Be brief.", "user": "Where is my parcel?", "assistant": "On its way."}


def count(text: str) -> int:
    return len(text.split())


def conversation(turns: int) -> bk.Trace:
    """A system prompt, and as many questions with an answer each; the last is open."""
    said = [
        {"role": role, "content": f"{WORDS[role]} {n}"}
        for n in range(turns)
        for role in ("user", "assistant")
    ]
    messages = [system(WORDS["system"]), *said[:-1]]
    return bk.Trace("toy", tuple(map(bk.Message, messages)))


@pytest.mark.parametrize("name", ["chat", "rag", "agent", "agent_prompt", "memory_engine"])
def test_items_made_for_other_roles_are_an_error_that_says_so(name: str) -> None:
    """The default table has a history and a current message, which these budgets do not know by that name."""
    items = conversation(60).items(60, count)
    refusal = r"made with other roles: .*trace\.items\(turn, count, budget\.roles\)"
    with pytest.raises(LookupError, match=refusal):
        bk.fit(PRESETS[name](8_000), items)


def test_demands_made_for_other_roles_are_the_same_error() -> None:
    """A frame of demands knows its roles too, for one plan, for many, for a sweep and for a batch."""
    demand, budget = conversation(4).demand(count), bk.presets.chat(8_000)
    for plan in (
        lambda: bk.plan.allocate_many(budget, demand),
        lambda: bk.sweep(budget, demand, window=[4_000]),
        lambda: RequestBatch(demand).columns(budget),
    ):
        refusal = "'user' goes to 'history', but to 'conversation' in this budget"
        with pytest.raises(LookupError, match=refusal):
            plan()
    assert (
        bk.plan.allocate_many(budget, conversation(4).demand(count, budget.roles))["cut"].sum() == 0
    )


def test_sections_that_both_tables_know_are_a_warning() -> None:
    """The agent's table has a section for the results of tools; planned with the chat's they compete elsewhere."""
    agent, chat = bk.presets.agent(8_000), bk.presets.chat(8_000)
    items = conversation(3).items(3, count, chat.roles)
    assert bk.fit(chat, items).warnings == ()
    assert (
        "'tool' goes to 'conversation', but to 'tool' in this budget"
        in bk.fit(agent, items).warnings[0]
    )


def test_a_table_of_ones_own_and_items_by_hand_are_taken_as_they_are() -> None:
    """A role that the budget's table lacks, one entry less, or a budget without a table say nothing."""
    budget, trace = bk.presets.working_memory(100_000), conversation(3)
    without_step = {role: section for role, section in budget.roles.items() if role != "step"}
    plain = bk.Budget(8_000, undeclared="pool")
    items = [Item("history", 5), Item("notes", 5)]
    assert bk.fit(budget, trace.items(3, count, without_step | {"note": "history"})).warnings == ()
    assert bk.fit(plain, trace.items(3, count)).warnings == bk.fit(plain, items).warnings == ()


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("window", [200, 500, 4_000])
def test_the_current_message_is_required_and_sent_last(name: str, window: int) -> None:
    """However small the window is, the question is in the request and nothing comes after it."""
    changes = {"deficit": "signed"} if name in ("chat", "rag", "agent") else {}
    budget, trace = PRESETS[name](window, **changes), conversation(80)
    asked = budget.roles["current"]
    assert next(a for a in budget.allocations if a.section == asked).required
    assert budget.sections[-1] == asked
    notes = [Item(s, 3, payload="A note.") for s in budget.sections if s != asked]
    plan = bk.fit(budget, trace.items(80, count, budget.roles) + notes)
    assert assembly.messages(plan)[-1] == trace.messages[-1].raw


def test_agent_prompt_keeps_the_figures_of_its_document() -> None:
    """Plan #195 has no section for what is asked: it takes of the 1,000 tokens that nobody claims."""
    budget = bk.presets.agent_prompt()
    assert (budget.capped, budget.shared_pool) == (3_000, 1_000)
    full = {section: cap for section, cap in budget.caps.items() if cap is not None}
    plan = bk.allocate(budget, {**full, "current_message": 408})
    assert (plan["current_message"].granted, plan.used, plan.free) == (408, 3_408, 592)


def test_agent_prompt_lets_a_configuration_say_what_the_current_message_may_take() -> None:
    """Named, it is a section as any other, and still the last."""
    own = {"sections": {"current_message": {"max_tokens": 50}, "notes": {"max_tokens": 10}}}
    budget = bk.presets.agent_prompt(None, own)
    assert budget.sections[-2:] == ("notes", "current_message")
    assert (budget.cap("current_message"), budget.allocations[-1].required) == (50, True)


def test_a_saved_plan_keeps_the_roles_of_its_items() -> None:
    """Loaded again, a plan of items made for other roles still says so; each table is written once."""
    budget, trace = bk.presets.working_memory(4_000, output=100), conversation(3)
    plan = bk.fit(budget, [*trace.items(3, count, budget.roles), Item("episodes", 5)])
    for read, write in (
        (bk.state.from_json, bk.state.to_json),
        (bk.state.from_yaml, bk.state.to_yaml),
    ):
        loaded = read(write(plan))
        assert isinstance(loaded, bk.Plan)
        expected = [*([dict(budget.roles)] * (len(plan.decisions) - 1)), None]
        assert [item.roles for item in loaded.decisions.columns.items] == expected
        assert loaded.warnings == plan.warnings
    assert len(bk.state.to_dict(plan)["plan"]["roles"]["tables"]) == 1
    other = bk.fit(bk.presets.agent(8_000), trace.items(3, count, bk.presets.rag(8_000).roles))
    assert "made with other roles" in other.warnings[0]
    assert bk.state.from_json(bk.state.to_json(other)).warnings == other.warnings  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "roles", [{"tables": [], "items": [0]}, {"tables": [{"user": "history"}], "items": [1]}]
)
def test_roles_of_a_file_that_fit_no_items_are_refused(roles: dict[str, object]) -> None:
    data = bk.state.to_dict(bk.fit(bk.Budget(100, undeclared="pool"), [Item("history", 5)]))
    data["plan"]["roles"] = roles
    with pytest.raises(ValueError, match=r"Invalid roles: .* Save the plan again"):
        bk.state.from_dict(data)
