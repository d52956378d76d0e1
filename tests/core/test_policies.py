"""Pruning policies as values: what they ask for, and whose systems' numbers they come out with."""

from collections.abc import Callable

import pytest

import budgetkit as bk
from budgetkit.pruning.policies import (
    Chain,
    DropToolResults,
    Floor,
    OldestFirst,
    Policy,
    PruningContext,
    SlidingWindow,
    Step,
    Summarise,
    TriggerTarget,
)
from tests.messages import calling, tool_call, tool_result, user


def marks(policy: Policy, room: Callable[[int], PruningContext], most: int) -> tuple[int, int]:
    """Return the largest size that is left alone, and the size that the next larger one is cut down to."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if policy.cuts(room(middle)) else (middle, high)
    return low, policy.cuts(room(high))[0].down_to


def test_agent_framework_evicts_above_half_and_truncates_above_eight_tenths() -> None:
    """P7: of 111,616, all old tool results go above 55,808, messages above 89,292 down to 55,808."""
    budget = bk.Budget(128_000, [bk.Reserve("output", 16_384)])
    results, messages = bk.policies.system("agent-framework").stages

    def room(tokens: int) -> PruningContext:
        return PruningContext(tokens, 111_616, 0, budget.usable, budget.window)

    assert budget.usable == 111_616
    assert marks(results, room, 128_000) == (55_808, 0)
    assert isinstance(results, DropToolResults)
    assert (results.intact, results.placeholder) == (4, 1_024)
    assert marks(messages, room, 128_000) == (89_292, 55_808)


def test_haystack_compacts_at_seven_tenths_to_four_tenths_of_the_window() -> None:
    """P8: of 100,000, with 10,000 in other sections, the history may grow to 60,000 and comes down to 30,000."""
    (policy,) = bk.policies.system("haystack").stages
    assert marks(policy, lambda n: PruningContext(n, 80_000, 10_000, 90_000, 100_000), 100_000) == (
        60_000,
        30_000,
    )


@pytest.mark.parametrize(("high", "low"), [(0.4, 0.7), (0.7, 0.0)])
def test_a_target_lies_above_nothing_and_below_its_trigger(high: float, low: float) -> None:
    with pytest.raises(ValueError, match=r"Use 0 < target <= trigger\."):
        TriggerTarget(bk.Share(high), bk.Share(low))


def test_prompt_poet_removes_whole_steps() -> None:
    """P10: a surplus of 1,001 with a step of 500 removes 1,500."""
    room = PruningContext(tokens=11_001, limit=10_000)
    (policy,) = Step(500).stages
    assert room.tokens - policy.cuts(room)[0].down_to == 1_500
    assert policy.cuts(PruningContext(tokens=10_000, limit=10_000)) == ()


def test_octopus_keeps_four_thousand_tokens_and_whole_exchanges() -> None:
    octopus = bk.policies.system("octopus")
    expected = ((OldestFirst(),), "turn", Floor(4_000, "tokens"))
    assert (octopus.stages, octopus.unit, octopus.floor) == expected


@pytest.mark.parametrize("name", ["agent-framework", "haystack", "octopus", "prompt-poet"])
def test_every_preset_makes_a_policy_that_leaves_a_small_history_alone(name: str) -> None:
    assert all(
        stage.cuts(PruningContext(10, 1_000, 10, 1_200, 1_500)) == ()
        for stage in bk.policies.system(name).stages
    )


def test_a_chain_asks_its_policies_and_those_of_chains_within_it() -> None:
    chain = Chain([DropToolResults(), Chain([Step(10), Summarise()])])
    assert chain.stages == (DropToolResults(), Step(10), Summarise())
    assert chain.last_resort(PruningContext(5, 3)) == bk.policies.Cut(3)


def test_a_policy_is_a_value_that_shows_what_was_changed() -> None:
    assert repr(Step(500, unit="turn")) == "Step(500, unit='turn')"
    assert repr(OldestFirst()) == "OldestFirst()"
    assert Step(500) == Step(500) != Step(501)
    assert hash(Step(500)) == hash(Step(500))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Floor(0), "Invalid least of the floor: 0. Use 1 or more."),
        (lambda: Floor(1, "words"), "Invalid unit of the floor: 'words'. Choose one of: 'tokens"),  # type: ignore[arg-type]
        (lambda: SlidingWindow(0), "Invalid turns of the sliding window: 0. Use 1 or more."),
        (lambda: Step(0), "Invalid step: 0. Use 1 or more."),
        (
            lambda: OldestFirst(unit="word"),  # type: ignore[arg-type]
            "Invalid unit of the policy: 'word'. Choose one of: 'message', 'turn",
        ),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def results_of(calls: int, size: int = 400) -> bk.Trace:
    """An agent at work: one question, and so many tool calls with a result each."""
    raw: list[dict[str, object]] = [user("go")]
    for number in range(calls):
        call = tool_call(str(number), "look")
        raw += [calling(call), tool_result(str(number), "x " * size)]
    return bk.Trace("calls", tuple(bk.Message(each) for each in raw))


def test_tool_results_are_cleared_to_a_target_of_their_own_and_the_cache_lives_longer() -> None:
    """All but the newest 3, once above 8,000: few requests cut, while those that stop at the trigger cut each time."""
    budget = bk.Budget(
        20_000, [], [bk.Allocation("history"), bk.Allocation("current")], remainder="history"
    )
    roles = dict.fromkeys(("user", "assistant", "tool", "system"), "history")
    roles["current"] = "current"
    found = {}
    for name, target in (("own", 0), ("trigger", None)):
        policy = DropToolResults(intact=3, trigger=8_000, target=target)
        cache = bk.cost.CACHES["longest prefix"]
        found[name] = bk.replay(
            results_of(60), budget, policy, by="request", roles=roles, cache=cache
        )
    cuts = {
        name: int((outcome.frame()["shrunk_messages"] > 0).sum()) for name, outcome in found.items()
    }
    assert cuts["own"] < cuts["trigger"] / 4
    costs = {name: outcome.totals()["relative_cost"] for name, outcome in found.items()}
    assert costs["own"] < costs["trigger"]
    left = found["own"].messages().query("role == 'tool'")["fate"]
    assert left.tolist()[-3:] == ["kept"] * 3


def test_agent_framework_shortens_all_old_results_at_once_and_then_waits() -> None:
    """0.1.0 shortened one at every request once half of the window was full, and the cache ended there each time.

    What is left of each result adds up, so that in the end the new way cuts at every request too.
    """
    budget = bk.Budget(
        40_000, [], [bk.Allocation("history"), bk.Allocation("current")], remainder="history"
    )
    roles = dict.fromkeys(("user", "assistant", "tool", "system"), "history")
    roles["current"] = "current"
    policy = bk.policies.system("agent-framework")
    frame = bk.replay(results_of(12, 2_500), budget, policy, by="request", roles=roles).frame()
    assert frame.loc[frame["dropped"] > 0, "request"].tolist() == [9, 12]


def test_a_target_of_results_is_at_most_the_trigger() -> None:
    refusal = "Invalid target 900 for trigger 800. Use target <= trigger."
    with pytest.raises(ValueError, match=refusal):
        DropToolResults(trigger=800, target=900)
    with pytest.raises(ValueError, match="Use target <= trigger"):
        DropToolResults(trigger=bk.Share("0.5"), target=bk.Share("0.6"))
