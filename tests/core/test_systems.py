"""Systems by name: what each rule keeps, at which mark it acts, and that every row says where it was read."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.budget import Share
from budgetkit.conversation.saved_settings import plain_value
from budgetkit.extras.adapters.keeper import Keeper
from budgetkit.pruning.dropping import Visit, retain
from budgetkit.pruning.history import Slots
from budgetkit.pruning.policies import (
    SYSTEMS,
    CapResults,
    ClearResults,
    Compact,
    DropToolResults,
    Floor,
    OldestFirst,
    Policy,
    PruningContext,
    Step,
    Trigger,
    TriggerTarget,
    system,
)
from budgetkit.pruning.policies.systems import NAMED, policy_of
from tests.messages import assistant, tool_call, tool_result, user


def gone(
    policy: Policy, tokens: list[int], results: str = "", important: str = "", window: int = 1_000
) -> list[int]:
    """Send all messages in one request; list those that have left or become a placeholder."""
    count = len(tokens)
    is_result = [mark == "r" for mark in results.ljust(count)]
    importance = [int(mark == "u") for mark in important.ljust(count)]
    slots = Slots(list(tokens), list(range(count)), [1] * count, is_result, importance)
    room = PruningContext(0, limit=10**9, usable=10**9, window=window)
    kept = retain(slots, [Visit(room, range(count), count)], policy)
    return [slot for slot in range(count) if kept.gone[slot] >= 0 or kept.shrunk[slot] >= 0]


def test_a_compaction_keeps_the_newest_tokens_and_writes_one_summary() -> None:
    rule = Compact((Trigger("tokens", 500),), keep_tail=200, size=10)
    assert gone(rule, [100] * 6) == [0, 1, 2, 3]
    assert gone(rule, [100] * 4) == [], "below its mark it does nothing"
    assert gone(rule, [100] * 5 + [400]) == [0, 1, 2, 3, 4], (
        "the newest message stays however large it is"
    )


def test_a_compaction_keeps_the_first_messages_and_the_newest_ones() -> None:
    rule = Compact((Trigger("messages", 5, above=True),), keep_head=2, keep_messages=3, size=10)
    assert gone(rule, [100] * 8) == [2, 3, 4]
    assert gone(rule, [100] * 5) == []


def test_of_the_tail_only_what_the_user_said_stays() -> None:
    rule = Compact((Trigger("tokens", 100),), keep_tail=300, keep_role="user", size=10)
    assert gone(rule, [100] * 6, important="u u u ") == [0, 1, 3], (
        "the newest, and what the user said: 300 tokens"
    )


@pytest.mark.parametrize("keep_head", [0, 2])
@pytest.mark.parametrize("role", [None, "user"])
def test_a_second_compaction_takes_the_summary_too(keep_head: int, role: str | None) -> None:
    """A session that is summarised a hundred times holds one summary: no pile of them fills the window by itself."""
    rule = Compact(
        (Trigger("tokens", 500),), keep_tail=100, keep_head=keep_head, keep_role=role, size=50
    )
    count = 40
    slots = Slots([100] * count, list(range(count)), [1] * count, [False] * count, [1] * count)
    visits = [
        Visit(PruningContext(0, limit=10**9, window=1_000, usable=10**9), [slot], slot + 1)
        for slot in range(count)
    ]
    kept = retain(slots, visits, rule)
    after = [size for size, number in zip(kept.tokens, kept.summaries, strict=True) if number]
    assert len(after) > 5
    assert set(after) == {100 * keep_head + 50 + 100}


def test_a_summary_that_saves_nothing_is_not_written() -> None:
    rule = Compact((Trigger("tokens", 100),), keep_tail=100, size=150, reattached=60)
    assert gone(rule, [100, 100, 100]) == []


def test_a_rule_can_wait_for_a_pause_and_for_a_size_together() -> None:
    """As a dialog at a session's resumption does: after an hour, and only where the prompt is large."""
    rule = Compact(
        (Trigger("idle", 3_600), Trigger("tokens", 100)), join="all", keep_tail=100, size=10
    )

    def acts(tokens: int, pause: float) -> bool:
        return bool(rule.cuts(PruningContext(tokens, limit=10**9, window=1_000, pause=pause)))

    assert acts(200, pause=3_600)
    assert not acts(200, pause=3_599)
    assert not acts(50, pause=3_600)
    assert PruningContext(200, limit=10**9).pause == 0, "a pause that nobody knows is none"


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("octopus", (OldestFirst(),)),
        ("haystack", (TriggerTarget(Share(0.7), Share(0.4), of="window", whole_turns=True),)),
        ("prompt-poet", (Step(1_000),)),
        (
            "agent-framework",
            (
                DropToolResults(1_024, 4, Share(0.5), "usable", target=0, calls_intact=True),
                TriggerTarget(Share(0.8), Share(0.5), of="usable"),
            ),
        ),
    ],
)
def test_systems_that_only_drop_are_in_the_table(name: str, rules: tuple[Policy, ...]) -> None:
    row = system(name)
    assert row.policies == rules
    assert (row.unit, row.floor) == (
        ("turn", Floor(4_000, "tokens")) if name == "octopus" else ("message", Floor())
    )


def test_results_are_cleared_but_for_the_newest_and_only_where_it_gains_enough() -> None:
    by_uses = ClearResults((Trigger("tokens", 100),), keep_uses=2, least_gain=50)
    assert gone(by_uses, [100] * 6, results="rrrrr") == [0, 1, 2]
    by_tokens = ClearResults(keep_tokens=200, least_gain=200)
    assert gone(by_tokens, [100] * 6, results="rrrrr") == [0, 1, 2]
    assert gone(ClearResults(keep_tokens=200, least_gain=400), [100] * 6, results="rrrrr") == []


def test_the_results_of_the_newest_calls_stay_however_many_results_they_have() -> None:
    """Two calls with two results each: one call that stays is two results that stay."""
    slots = Slots(
        [10, 50, 50, 10, 50, 50], [0, 0, 0, 3, 3, 3], [1] * 6, [False, True, True] * 2, [0] * 6
    )
    rule = DropToolResults(5, 1, trigger=100, target=0, calls_intact=True)
    kept = retain(slots, [Visit(PruningContext(0, limit=10**9), range(6), 6)], rule)
    assert [slot for slot in range(6) if kept.shrunk[slot] >= 0] == [1, 2]


@pytest.mark.parametrize(
    ("target", "stays"),
    [
        (50, [2, 3, 4, 5, 6]),
        (45, [4, 5, 6]),  # 40 are left without the second question, but its answer leaves with it
        (20, [4, 6]),  # the running question and its newest step
        (5, [4, 6]),
    ],
)
def test_earlier_turns_go_whole_the_running_by_steps(target: int, stays: list[int]) -> None:
    roles = ["user", "assistant"] * 2 + ["user", "assistant", "assistant"]
    slots = Slots([10] * 7, list(range(7)), [1, 1, 2, 2, 3, 3, 3], [False] * 7, [0] * 7, roles)
    rule = TriggerTarget(60, target, whole_turns=True)
    kept = retain(slots, [Visit(PruningContext(0, limit=10**9, turn=3), range(7), 7)], rule)
    assert [slot for slot in range(7) if kept.gone[slot] < 0] == stays


def test_what_tools_answer_is_cut_when_it_arrives() -> None:
    assert [CapResults(10).arriving(50, is_result) for is_result in (True, False)] == [10, 50]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_says_where_it_was_read_and_what_is_assumed(name: str) -> None:
    rules = system(name)
    assert rules.sources and rules.version and rules.date and rules.label
    assert policy_of(name) == NAMED[name]() == rules
    assert rules.with_summaries(77).summarises is rules.summarises
    if rules.summarises:
        assert any("summary" in each for each in rules.assumed)
        assert rules.summary_call is not None


@pytest.mark.parametrize("name", ["octopus", "prompt-poet"])
def test_a_system_is_one_policy_by_its_name_and_its_row(name: str) -> None:
    assert policy_of(name) == policy_of(system(name))


HELLO = user("Hello")
SUMMARISES: dict[str, Any] = {"summarise": lambda messages: "They spoke."}
SAVED = json.loads(bk.Conversation("chat", window=8_000).to_json())


def saved_under(policy: Policy) -> str:
    """Write a saved conversation whose policy somebody has replaced."""
    settings = {**SAVED["settings"], "policy": plain_value(policy)}
    return json.dumps({**SAVED, "settings": settings})


@pytest.mark.parametrize(
    "run",
    [
        lambda rule: bk.Conversation("chat", rule, window=8_000, **SUMMARISES),
        lambda rule: bk.Conversation(
            "chat", bk.policies.Chain([Step(), policy_of(rule)]), window=8_000, **SUMMARISES
        ),
        lambda rule: bk.Conversation.from_json(json.dumps(SAVED), rule, **SUMMARISES),
        lambda rule: bk.Conversation.from_json(saved_under(policy_of(rule)), **SUMMARISES),
        lambda rule: bk.trim([HELLO], 1_000, policy=rule),
        lambda rule: bk.build("chat", window=8_000, policy=rule, question="Hello"),
        lambda rule: Keeper(1_000, rule, **SUMMARISES),
    ],
    ids=["Conversation", "chain", "from_json", "saved", "trim", "build", "adapter"],
)
@pytest.mark.parametrize("form", ["name", "policy"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_product_rules_are_for_replays(run: Callable[[Any], object], form: str, name: str) -> None:
    """Under "codex" a conversation ended in a KeyError, and others lost summaries that were paid for."""
    rule = name if form == "name" else system(name)
    refusal = rf"^'{name}' is a product's rule and works only in bk.replay"
    with pytest.raises(ValueError, match=refusal):
        run(rule)


@pytest.mark.parametrize("rule", [Compact(), ClearResults()])
def test_the_parts_of_products_run_in_replays_alone(rule: Policy) -> None:
    refusal = "is a product's rule and works only in bk.replay. Choose "
    with pytest.raises(ValueError, match=refusal):
        bk.Conversation("chat", rule, window=8_000)


def test_the_rule_to_take_instead_of_a_product_is_one_that_trim_takes() -> None:
    """trim and build asked for summarise=, which they do not have."""
    with pytest.raises(ValueError, match=r"Choose Summarise\(text=...\) or"):
        bk.trim([HELLO], 100, policy="claude-code")
    with pytest.raises(ValueError, match="Pass it as text= to the policy"):
        bk.trim([HELLO], 100, policy="summarise")
    policy = bk.policies.Summarise(text=lambda messages: "A summary.")
    assert bk.trim([HELLO], 100, policy=policy) == [HELLO]


def test_a_configuration_with_a_product_is_for_replays() -> None:
    settings = {"model": "gpt-4o", "policy": "codex", "budget": "chat"}
    assert bk.replay([HELLO], settings).frame()["sent"].tolist()
    for run in (
        lambda: bk.Conversation(settings),
        lambda: bk.trim([HELLO], settings),
        lambda: bk.build(settings, question="Hello"),
    ):
        with pytest.raises(ValueError, match="'codex' is a product's rule"):
            run()


@pytest.mark.parametrize(
    ("name", "below", "at"),
    [
        ("claude-code", 166_999, 167_000),
        ("codex", 179_999, 180_000),
        ("gemini-cli", 99_999, 100_000),
        ("opencode", 179_999, 180_000),
        ("pi", 183_616, 183_617),
        ("cline", 161_999, 162_000),
        ("anthropic-context-editing", 100_000, 100_001),
        ("langchain", 169_999, 170_000),
    ],
)
def test_each_of_eight_systems_acts_at_its_real_mark(name: str, below: int, at: int) -> None:
    def acts(tokens: int) -> bool:
        room = PruningContext(tokens, limit=200_000, window=200_000, usable=200_000)
        first = next(
            stage for stage in system(name).stages if isinstance(stage, Compact | ClearResults)
        )
        return bool(first.cuts(room))

    assert (acts(below), acts(at)) == (False, True)


def long_session(turns: int) -> list[dict[str, Any]]:
    """Write a session whose turns call two tools at once, and sometimes get a long result."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s" * 400}]
    for turn in range(turns):
        ids = [f"{turn}a", f"{turn}b"]
        calls = [tool_call(i, "look") for i in ids]
        messages.append(user("q" * (50 + turn % 7 * 60)))
        messages.append(assistant(None, tool_calls=calls))
        messages += [tool_result(i, "r" * (200 + turn % 11 * 400)) for i in ids]
        messages.append(assistant("a" * (80 + turn % 5 * 90)))
    return messages


SESSION = bk.Trace("long", tuple(map(bk.Message, long_session(200))))


@pytest.mark.parametrize("window", [12_000, 60_000, 240_000])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_rules_of_a_product_work_through_two_hundred_turns(name: str, window: int) -> None:
    budget = bk.presets.working_memory(window, output=1_000, history_floor=0)
    outcome = bk.replay(
        SESSION,
        budget,
        name,
        counter=len,
        framing=bk.requests.Framing(),
        by="request",
        start_on="any",
    )
    frame = outcome.frame()
    assert len(frame) == 400
    assert (frame["sent"] - frame["over"] <= budget.usable).all()
    assert (frame["cached"] <= frame["sent"]).all()
    written = {place: request for request, place, _, _ in outcome.kept.written}
    assert all(written[place] <= request for request, place in outcome.kept.dropped_summaries)
    assert len(outcome.kept.written) == frame["summary_calls"].sum()
    assert frame["dropped"].sum() + len(outcome.kept.written) > 0
