"""Plans: toy cases in full, then the invariants that no budget may break."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import presets
from budgetkit.budget.allocation import Keep
from budgetkit.plan import Plan
from budgetkit.plan.batch import RequestBatch
from budgetkit.plan.decisions import OVER_CAP, WINDOW_FULL
from budgetkit.plan.items import Items, Units, select
from tests.strategies import DEMANDS, ITEMS, budgets


def granted(plan: Plan) -> dict[str, int]:
    return {g.section: g.granted for g in plan.grants}


# Lines of a budget, its window, and what each demand is granted.
FLOWS = [
    bk.Allocation("history", importance=1),
    bk.Allocation("retrieval", 400, importance=5),
    bk.Allocation("system", required=True),
]
PROMISED = [
    bk.Allocation("retrieval", importance=9),
    bk.Allocation("history", floor=400, importance=1),
]
CUT_OR_DROPPED = [
    bk.Allocation("system", required=True),
    bk.Allocation("retrieval", 500, overflow="truncate", when_full="drop", importance=1),
]
ONE_TO_TWO = [bk.Allocation("a", weight=1), bk.Allocation("b", weight=2)]
WATER = [*ONE_TO_TWO, bk.Allocation("c", weight=3)]
FLOORED_WATER = [replace(WATER[0], floor=300), *WATER[1:]]
FLOOR_IN_POOL = [
    bk.Allocation("capped", 80),
    bk.Allocation("a", importance=9),
    bk.Allocation("b", floor=10, importance=1),
]
DROPS_WHOLE = [bk.Allocation("a", when_full="drop", importance=9), bk.Allocation("b", importance=1)]
GRANTED = {
    # required first, then by importance; each takes of what the earlier left
    "flow": (FLOWS, 800, {"history": (900, 100), "retrieval": (900, 400), "system": (300, 300)}),
    # a floor is kept although its section is asked last, and only as far as it is wanted
    "floor": (PROMISED, 1_000, {"retrieval": (900, 600), "history": (900, 400)}),
    "unwanted floor": (PROMISED, 1_000, {"retrieval": (900, 900), "history": (50, 50)}),
    # cut to its cap, and yet left out whole where the window is full
    "over cap": (CUT_OR_DROPPED, 1_000, {"system": (400, 400), "retrieval": (900, 500)}),
    "over window": (CUT_OR_DROPPED, 1_000, {"system": (600, 600), "retrieval": (900, 0)}),
    "in window": (CUT_OR_DROPPED, 1_000, {"system": (600, 600), "retrieval": (400, 400)}),
    # 1 to 2 of 100 is 33 and 67, not 33 and 66; what one leaves goes to the others, floors first
    "weights": (ONE_TO_TWO, 100, {"a": (500, 33), "b": (500, 67)}),
    "rest of a weight": (ONE_TO_TWO, 100, {"a": (10, 10), "b": (500, 90)}),
    "three weights": (WATER, 600, {"a": (900, 180), "b": (900, 360), "c": (60, 60)}),
    "two that rise": (WATER, 600, {"a": (20, 20), "b": (900, 232), "c": (900, 348)}),
    "floor and weights": (FLOORED_WATER, 600, {"a": (900, 350), "b": (900, 100), "c": (900, 150)}),
    # 1 to 1 of 100, whoever stands first and is asked first; 0.1.0 stranded 40
    **{
        f"{names} {importance}": (
            [
                bk.Allocation(name, weight=1, importance=importance if name == "a" else 5)
                for name in names
            ],
            100,
            {"a": (100, 90), "b": (10, 10)},
        )
        for names in ("ab", "ba")
        for importance in (1, 9)
    },
    # not monotone: a larger window lets the first section in whole, and the second goes
    "small window": (DROPS_WHOLE, 59, {"a": (60, 0), "b": (60, 59)}),
    "large window": (DROPS_WHOLE, 60, {"a": (60, 60), "b": (60, 0)}),
}


@pytest.mark.parametrize("name", GRANTED)
def test_what_each_section_is_granted(name: str) -> None:
    lines, window, sections = GRANTED[name]
    plan = bk.allocate(
        bk.Budget(window, (), lines), {s: asked for s, (asked, _) in sections.items()}
    )
    assert granted(plan) == {s: given for s, (_, given) in sections.items()}
    assert plan.used + plan.free == window


def test_each_limit_is_what_is_left_for_the_section() -> None:
    budget = bk.Budget(1_000, [bk.Reserve("output", 200)], FLOWS)
    plan = bk.allocate(budget, {"system": 300, "retrieval": 900, "history": 900})
    assert [g.limit for g in plan.grants] == [100, 400, 800]
    assert (plan.used, plan.reserved, plan.free) == (800, 200, 0)


def test_floors_do_not_stretch_the_pool() -> None:
    """A promise to an uncapped section is kept out of what the others take of the pool."""
    budget = bk.Budget(100, (), FLOOR_IN_POOL, order="pool together")
    plan = bk.allocate(budget, {"a": 50, "b": 50})
    assert (granted(plan)["a"], granted(plan)["b"], plan.shared_pool_use) == (10, 10, 20)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("importance", {"system": 100, "memory": 500, "notes": 400}),
        ("pool together", {"system": 100, "memory": 500, "notes": 100}),
        ("pool each", {"system": 100, "memory": 500, "notes": 400}),
    ],
)
def test_pool(order: str, expected: dict[str, int]) -> None:
    """Without a cap: all that is left, the pool of 600 together, or up to the pool each."""
    budget = bk.Budget(1_000, (), [bk.Allocation("system", 400)], undeclared="pool", order=order)  # type: ignore[arg-type]
    plan = bk.allocate(budget, {"system": 100, "memory": 500, "notes": 500})
    assert granted(plan) == expected
    assert plan.shared_pool_use == expected["memory"] + expected["notes"]


def test_reserve_for_a_section_is_spent_by_it_first() -> None:
    """500 held for the current message: 100 of them are used, 400 stay reserved; the parts sum to the window."""
    lines = [bk.Allocation("current", 500, required=True), bk.Allocation("history")]
    budget = bk.Budget(1_000, [bk.Reserve("incoming", 500, serves="current")], lines)
    plan = bk.allocate(budget, {"current": 100, "history": 900})
    assert granted(plan) == {"current": 100, "history": 500}
    assert (plan.used, plan.reserved, plan.free) == (600, 400, 0)


def test_overrun_is_reported_signed() -> None:
    """What is required does not shrink; the deficit is a number and a sentence."""
    budget = bk.Budget(
        100, [bk.Reserve("output", 20)], [bk.Allocation("system", required=True)], deficit="signed"
    )
    plan = bk.allocate(budget, {"system": 130})
    assert plan.free == -50
    assert "by 50 tokens: system 130, reserves 20. Lower a reserve" in plan.warnings[0]
    with pytest.raises(ValueError, match="by 50 tokens"):
        bk.allocate(replace(budget, deficit="raise"), {"system": 130})
    with pytest.raises(ValueError, match="by 50 tokens"):
        bk.plan.allocate_many(replace(budget, deficit="raise"), pd.DataFrame({"system": [20, 130]}))


def test_dropped_by_cap_and_dropped_by_window_are_told_apart() -> None:
    """Four items of 40: one is over its section's cap of 150, one more finds the window full."""
    lines = [bk.Allocation("system", required=True), bk.Allocation("history", 150, keep="newest")]
    budget = bk.Budget(150, (), lines, deficit="signed")
    plan = bk.fit(budget, [bk.Item("system", 60), *[bk.Item("history", 40)] * 4])
    assert [d.reason for d in plan.decisions] == [
        *("fits", "over its cap", "window full", "fits", "fits")
    ]
    assert (
        plan.decisions.dropped("history", OVER_CAP)
        == plan.decisions.dropped("history", WINDOW_FULL)
        == 1
    )
    frame = plan.frame().set_index("section").loc["history"]
    assert (frame["dropped_by_cap"], frame["dropped_by_window"], frame["cut"]) == (1, 1, 80)


def test_items_of_the_pool_compete_by_importance() -> None:
    """One pool of 100 for two sections: handed out item by item, or section by section."""
    items = [
        bk.Item("a", 60, importance=1),
        bk.Item("b", 40, importance=2),
        bk.Item("b", 50, importance=3),
    ]
    lines = [bk.Allocation("a", keep="best"), bk.Allocation("b", keep="best")]
    by_item = bk.Budget(100, (), lines, order="pool by item")
    assert [d.outcome for d in bk.fit(by_item, items).decisions] == ["dropped", "kept", "kept"]
    by_section = replace(by_item, order="pool together")
    expected = ["kept", "dropped", "dropped"]
    assert [d.outcome for d in bk.fit(by_section, items).decisions] == expected


@pytest.mark.parametrize(("keep", "stays"), [("first", 1), ("best", 1), ("newest", 2)])
def test_the_pool_goes_by_score_unless_the_first_keeps_the_newest(keep: Keep, stays: int) -> None:
    """`Allocation.keep` says so: "first", which nobody has to write, is by score there, undeclared sections too."""
    items = [bk.Item("a", 60, score=0.1), bk.Item("b", 60, score=0.9), bk.Item("c", 60, score=0.5)]
    budget = bk.Budget(
        100, (), [bk.Allocation("a", keep=keep)], order="pool by item", undeclared="pool"
    )
    plan = bk.fit(budget, items)
    assert [
        place for place, decision in enumerate(plan.decisions) if decision.outcome == "kept"
    ] == [stays]
    # with one section the order changes nothing else: "importance" keeps the first of it
    alone = [bk.Item("a", 60, score=0.1), bk.Item("a", 60, score=0.9)]
    by_importance = bk.fit(replace(budget, order="importance"), alone)
    assert [decision.outcome for decision in by_importance.decisions].index("kept") == (
        keep != "first"
    )


def test_a_group_stays_or_goes_together_within_and_across_sections() -> None:
    """A call of 10 and its result of 80 do not fit 60 together, so both go, wherever they stand."""
    one = bk.Budget(60, (), [bk.Allocation("history", keep="newest", fill="skip")])
    items = [
        bk.Item("history", 20),
        bk.Item("history", 10, group=1),
        bk.Item("history", 80, group=1),
    ]
    assert [d.outcome for d in bk.fit(one, items).decisions] == ["kept", "dropped", "dropped"]
    two = bk.Budget(200, (), [bk.Allocation("history"), bk.Allocation("tool", 50)])
    split = [bk.Item("history", 20), bk.Item("history", 10, group=1), bk.Item("tool", 80, group=1)]
    plan = bk.fit(two, split)
    assert [d.reason for d in plan.decisions] == ["fits", "its pair was dropped", "over its cap"]
    assert granted(plan) == {"history": 20, "tool": 0}


def test_required_stands_whole_although_it_is_over_its_cap() -> None:
    """An oversize system prompt is not dropped, nor is what stands behind it, as numbers and as items."""
    budget = bk.Budget(1_000, (), [bk.Allocation("system", 100, required=True)])
    plan = bk.fit(budget, [bk.Item("system", 300), bk.Item("system", 50)])
    assert [d.outcome for d in plan.decisions] == ["kept", "kept"]
    assert plan.grants == bk.allocate(budget, {"system": 350}).grants
    assert "system is required and needs 350 tokens, 250 above its cap (100)" in plan.warnings[0]


def test_a_required_list_keeps_its_first_item_although_it_is_over_its_cap() -> None:
    """Of ranked passages the cap takes the rest."""
    budget = bk.Budget(1_000, (), [bk.Allocation("knowledge", 100, required=True, keep="best")])
    plan = bk.fit(budget, [bk.Item("knowledge", 300, 0.9), bk.Item("knowledge", 50, 0.5)])
    assert [d.outcome for d in plan.decisions] == ["kept", "dropped"]
    assert bk.allocate(budget, {"knowledge": 350})["knowledge"].granted == 100


@pytest.mark.parametrize("make", [presets.rag, presets.chat])
def test_every_way_grants_all_of_a_required_section(make: Callable[..., bk.Budget]) -> None:
    """0.1.0 granted 819 of 900 as a number and 900 as an item; 0.2.0 built it with 819."""
    budget, frame = make(8_192), pd.DataFrame({"system": [900]})
    assert budget.cap("system") == 819
    items = Items([bk.Item("system", 500), bk.Item("system", 400)])
    built = bk.build(
        budget, system="so " * 900, counter="words/1", framing=bk.requests.FRAMINGS["text"]
    )
    found = [
        bk.allocate(budget, {"system": 900})["system"].granted,
        bk.fit(budget, items)["system"].granted,
        bk.plan.allocate_many(budget, frame).set_index("section").loc["system", "granted"],
        RequestBatch(frame, lambda row: items).columns(budget)["system"]["granted"][0],
        built.plan["system"].granted,
    ]
    assert found == [900] * 5
    assert built.messages[0]["content"] == "so " * 900


def test_a_cap_of_0_switches_a_required_section_off_by_every_way() -> None:
    """0.1.0 granted nothing to the number and all to the item; a share that comes to nothing is no switch."""
    off = bk.Budget(100, (), [bk.Allocation("system", 0, required=True)])
    small = bk.Budget(
        5, (), [bk.Allocation("system", bk.Share(0.1), required=True)], deficit="signed"
    )
    for budget, kept in ((off, 0), (small, 5)):
        assert bk.allocate(budget, {"system": 5})["system"].granted == kept
        assert bk.fit(budget, [bk.Item("system", 5)])["system"].granted == kept


def test_a_floor_keeps_at_least_so_much_of_whole_items() -> None:
    """ "Always keep at least": messages of 30 for a floor of 100 are four of them, where 0.1.0 kept three."""
    lines = [
        bk.Allocation("system", required=True),
        bk.Allocation("history", floor=100, keep="newest"),
    ]
    budget = bk.Budget(500, (), lines, deficit="signed")
    items = [bk.Item("system", 450), *[bk.Item("history", 30)] * 10]
    plan = bk.fit(budget, items)
    assert (plan["history"].granted, plan.free) == (120, -70)
    waiting = replace(budget, allocations=[bk.Allocation("notes", importance=9), lines[1]])
    plan = bk.fit(waiting, [bk.Item("notes", 10)] * 50 + items[1:])
    assert (plan["notes"].granted, plan["history"].granted) == (380, 120)


def test_every_turn_of_a_working_memory_keeps_its_4000_tokens_of_history() -> None:
    """Octopus' floor; in 39 of 41 turns 0.1.0 kept less."""
    count = bk.counter("chars/4")
    trace = bk.Trace(
        "long",
        tuple(
            bk.Message({"role": r, "content": "word " * 300}) for r in ("user", "assistant") * 40
        ),
    )
    budget = presets.working_memory(8_192)
    plans = [bk.fit(budget, trace.items(turn, count, budget.roles)) for turn in range(1, 41)]
    kept = [(plan["history"].granted, min(4_000, plan["history"].demand)) for plan in plans]
    assert all(granted >= promised for granted, promised in kept)
    assert sum(promised == 4_000 for _, promised in kept) > 30


WEIGHTED = st.lists(
    st.tuples(
        st.integers(1, 5), st.none() | st.integers(0, 200), st.integers(0, 60), st.integers(1, 3)
    ),
    min_size=1,
    max_size=6,
)


@given(
    st.integers(1, 600),
    WEIGHTED,
    st.lists(st.integers(0, 300), min_size=6, max_size=6),
    st.permutations(range(6)),
)
def test_nothing_is_free_while_a_weighted_section_asks_and_the_order_does_not_matter(
    window: int, drawn: list[tuple[int, int | None, int, int]], wants: list[int], order: list[int]
) -> None:
    """But for the token of a rounded part, in whatever order they stand and are asked."""
    lines = [
        bk.Allocation(
            f"s{i}",
            cap,
            floor=min(floor, window // 10, cap or 0),
            weight=weight,
            importance=importance,
        )
        for i, (weight, cap, floor, importance) in enumerate(drawn)
    ]
    demand = {a.section: wants[i] for i, a in enumerate(lines)}
    plan = bk.allocate(bk.Budget(window, (), lines, deficit="signed"), demand)
    wanted = {
        s: tokens if (cap := plan.budget.caps[s]) is None else min(tokens, cap)
        for s, tokens in demand.items()
    }
    asking = [s for s, tokens in granted(plan).items() if tokens < wanted[s]]
    assert plan.free == 0 if asking else plan.free >= 0
    turned = [
        replace(lines[i], importance=10 - lines[i].importance) for i in order if i < len(lines)
    ]
    other = granted(bk.allocate(bk.Budget(window, (), turned, deficit="signed"), demand))
    assert all(abs(other[s] - tokens) <= len(lines) for s, tokens in granted(plan).items())


def test_what_is_lacking_is_not_divided_by_weight() -> None:
    """A window of 2 that is held whole for one section gave it 3: its lack was shared with one that asks nothing."""
    lines = [bk.Allocation("a", floor=2, weight=1), bk.Allocation("b", weight=2)]
    for window, granted in ((0, 2), (2, 2), (3, 3)):
        budget = bk.Budget(window, [bk.Reserve("held", 2, serves="a")], lines, deficit="signed")
        assert bk.allocate(budget, {"a": 3})["a"].granted == granted
        assert bk.fit(budget, [bk.Item("a", 1)] * 3)["a"].granted == granted


def test_a_weight_is_small_enough_to_be_counted_with() -> None:
    """Times a number of tokens it would pass 64 bits."""
    refusal = "Invalid weight of 'a': 65,537. Use at most 65,536; divide"
    with pytest.raises(ValueError, match=refusal):
        bk.Allocation("a", weight=65_537)


def test_a_reserve_for_a_competitor_of_the_pool_is_refused() -> None:
    """Who competes item by item has nothing of its own: 0.1.0 overran the window by what was held."""
    held = [bk.Reserve("held", 50, serves="a")]
    refusal = "Items compete for the pool, .* cannot have a floor, a weight or a reserve: 'a'"
    with pytest.raises(ValueError, match=refusal):
        bk.Budget(100, held, [bk.Allocation("a"), bk.Allocation("b")], order="open by item")


def test_cut_is_asked_for_the_first_item_that_does_not_fit() -> None:
    """The cut item has the room that is left; one that returns too much is refused."""
    budget = bk.Budget(100, (), [bk.Allocation("history", keep="newest", granularity="token")])
    items = [bk.Item("history", 50), bk.Item("history", 80), bk.Item("history", 70)]
    plan = bk.fit(budget, items, cut=lambda item, limit, _: replace(item, tokens=limit - 2))
    expected = [("dropped", 0), ("cut", 28), ("kept", 70)]
    assert [(d.outcome, d.kept) for d in plan.decisions] == expected
    assert [item.tokens for item in plan.decisions.items] == [28, 70]
    with pytest.raises(ValueError, match="cut returned an item of 31 tokens for a limit of 30"):
        bk.fit(budget, items, cut=lambda item, limit, _: replace(item, tokens=limit + 1))


def test_a_member_of_a_group_is_never_cut() -> None:
    """A result that does not fit is not shortened while its call goes: both go."""
    lines = [
        bk.Allocation("history", granularity="token"),
        bk.Allocation("tool", 50, granularity="token", keep="newest"),
    ]
    items = [bk.Item("history", 10, group=1), bk.Item("tool", 80, group=1)]
    plan = bk.fit(
        bk.Budget(200, (), lines), items, cut=lambda item, limit, _: replace(item, tokens=limit)
    )
    assert [d.outcome for d in plan.decisions] == ["dropped", "dropped"]


def test_required_stays_whole_where_nothing_can_cut_it() -> None:
    """A cut that finds nothing useful to keep does not make a system prompt vanish."""
    line = bk.Allocation("system", 50, required=True, granularity="token")
    items = [bk.Item("system", 0), bk.Item("system", 80), bk.Item("system", 30)]
    plan = bk.fit(bk.Budget(1_000, (), [line]), items, cut=lambda item, limit, _: None)
    assert [d.kept for d in plan.decisions] == [0, 80, 0]
    assert (
        "system is required and loses 30 of 110 tokens (1 item) because it is over its cap (50)"
        in plan.warnings[0]
    )


def test_competing_items_do_not_overrun_a_window_with_caps_among_them() -> None:
    """Competitors are asked together, after those with a cap."""
    lines = [
        bk.Allocation("a", importance=9, keep="best"),
        bk.Allocation("b", 50, importance=7),
        bk.Allocation("c", importance=5, keep="best"),
    ]
    budget = bk.Budget(100, (), lines, order="open by item")
    plan = bk.fit(budget, [bk.Item("a", 30), bk.Item("b", 50), bk.Item("c", 70)])
    assert (granted(plan), plan.free) == ({"a": 30, "b": 50, "c": 0}, 20)


NEGATIVE = pd.DataFrame({"memory": [-1]})


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda b: bk.allocate(b, {"memroy": 1}), LookupError, "Unknown section 'memroy'. Did you mean"),
        (lambda b: bk.allocate(b, {"memory": -1}), ValueError, "Invalid demand of 'memory': -1. Use"),
        (lambda b: bk.allocate(b, {"memory": 1.5}), TypeError,  # type: ignore[dict-item]
         "Invalid demand of 'memory': 1.5. Expected a whole"),
        (lambda b: bk.fit(b, [bk.Item("memroy", 1)]), LookupError,
         "Choose one of: 'memory'. Give a new section its own Allocation in the Budget"),
        (lambda b: bk.allocate(b, {})["memroy"], LookupError, "Unknown section 'memroy'"),
        (lambda b: bk.allocate(b, {}).remainder, ValueError, "has no remainder. Pass"),
        (lambda b: bk.plan.allocate_many(b, NEGATIVE), ValueError, "Invalid demand of 'memory': a number is negative"),
    ],
)  # fmt: skip
def test_an_error_has_a_problem_and_a_fix(call: object, error: type, sentence: str) -> None:
    """One clear sentence each."""
    with pytest.raises(error, match=sentence):
        call(bk.Budget(100, (), [bk.Allocation("memory")]))  # type: ignore[operator]


@given(budgets(), DEMANDS)
def test_numbers_add_up_and_stay_within_limits(budget: bk.Budget, demand: dict[str, int]) -> None:
    """0 <= granted <= min(demand, limit); used, free and reserved are the window, to the token."""
    plan = bk.allocate(budget, demand)
    for grant in plan.grants:
        assert 0 <= grant.granted <= min(grant.demand, grant.limit)
        cap = plan.budget.caps[grant.section]
        line = next(a for a in plan.budget.allocations if a.section == grant.section)
        assert cap is None or grant.granted <= cap or (line.stands_whole and cap > 0)
    assert plan.used + plan.free + plan.reserved == budget.window
    assert plan.reserved >= 0


@given(budgets(), DEMANDS)
def test_only_required_and_floors_overrun(budget: bk.Budget, demand: dict[str, int]) -> None:
    """Without them there is no overrun, but for reserves that exceed the window by themselves."""
    plan = bk.allocate(budget, demand)
    held = plan.budget.held
    unavoidable = plan.budget.reserved
    for allocation in plan.budget.allocations:
        section = allocation.section
        wanted = demand.get(section, 0)
        claim = wanted if allocation.required else min(plan.budget.floors[section], wanted)
        unavoidable += max(0, claim - held.get(section, 0))
    assert plan.free >= min(0, budget.window - unavoidable)


@given(budgets(), ITEMS)
def test_each_item_has_one_decision(budget: bk.Budget, items: list[bk.Item]) -> None:
    """What stays of the items is what was granted; the same items give the same plan."""
    plan = bk.fit(budget, items)
    assert len(plan.decisions) == len(items)
    frame = plan.decisions.frame()
    for grant in plan.grants:
        assert grant.granted == frame.loc[frame["section"] == grant.section, "kept"].sum()
        assert 0 <= grant.granted <= min(grant.demand, grant.limit)
    assert plan.used + plan.free + plan.reserved == budget.window
    assert bk.fit(budget, Items(items)) == plan


@given(budgets(), ITEMS)
def test_whole_items_stay_within_their_caps(budget: bk.Budget, items: list[bk.Item]) -> None:
    """A cap is exceeded by a required section alone: by the first item of a list, by all that stands in order."""
    plan = bk.fit(budget, items)
    for allocation in plan.budget.allocations:
        cap = plan.budget.caps[allocation.section]
        largest = max((i.tokens for i in items if i.section == allocation.section), default=0)
        if cap is not None:
            whole = plan[allocation.section].demand if allocation.stands_whole and cap else 0
            most = 0 if cap == 0 else max(cap, largest, whole)
            assert plan[allocation.section].granted <= (most if allocation.required else cap)


@given(budgets(), st.lists(DEMANDS, min_size=1, max_size=6))
def test_many_demands_at_once_are_alike(budget: bk.Budget, demands: list[dict[str, int]]) -> None:
    """Arrays give what one plan after the other gives."""
    frame = (
        pd.DataFrame(demands).fillna(0).astype("int64")
        if any(demands)
        else pd.DataFrame(index=range(len(demands)))
    )
    tidy = bk.plan.allocate_many(budget, frame)
    for row, demand in frame.iterrows():
        plan = bk.allocate(budget, {str(s): int(t) for s, t in demand.items()})
        mine = tidy[tidy["row"] == row].set_index("section")
        for grant in plan.grants:
            assert (mine.loc[grant.section, "limit"], mine.loc[grant.section, "granted"]) == (
                grant.limit,
                grant.granted,
            )


@given(
    ITEMS, st.integers(1, 300), st.integers(0, 300), st.sampled_from(["first", "newest", "best"])
)
def test_prefix_is_monotone_in_the_window(
    items: list[bk.Item], window: int, more: int, keep: str
) -> None:
    """With one section, a larger window never drops what a smaller one kept."""
    line = bk.Allocation("system", keep=keep)  # type: ignore[arg-type]
    items = [replace(item, section="system") for item in items]
    small, large = (
        bk.fit(bk.Budget(w, (), [line]), items).decisions for w in (window, window + more)
    )
    assert ((small.kept > 0) <= (large.kept > 0)).all()


@given(st.integers(1, 500), st.integers(0, 100), DEMANDS)
def test_allocate_grows_with_the_window(window: int, more: int, demand: dict[str, int]) -> None:
    """Truncated sections with caps in tokens only gain."""
    lines = [
        bk.Allocation(s, 100, importance=i) for i, s in enumerate(("system", "memory", "history"))
    ]
    small, large = (
        bk.allocate(bk.Budget(w, (), lines, deficit="signed", undeclared="pool"), demand)
        for w in (window, window + more)
    )
    assert all(a.granted <= b.granted for a, b in zip(small.grants, large.grants, strict=True))


def test_not_monotone_with_two_shares() -> None:
    """A larger window raises the reserve by more than it adds to the rest."""
    reserves = [bk.Reserve("output", bk.Share(0.5)), bk.Reserve("safety", bk.Share(0.5))]
    rest = [
        bk.Budget(w, reserves, deficit="signed", rounding="nearest").usable for w in (9, 10, 11)
    ]
    assert rest == [-1, 0, -1]


def test_not_monotone_with_skip() -> None:
    """More room lets a large item in, for which two small ones go."""
    line = bk.Allocation("a", keep="first", fill="skip")
    items = [bk.Item("a", 50), bk.Item("a", 20), bk.Item("a", 20)]
    kept = [bk.fit(bk.Budget(w, (), [line]), items).decisions.kept.tolist() for w in (49, 50)]
    assert kept == [[0, 20, 20], [50, 0, 0]]


def test_knapsack_finds_what_greedy_misses() -> None:
    """One of 600 for .95, fifteen of 500 for .55: greedy keeps 60 % of 1,000, two small ones are worth 1.10."""
    items = [bk.Item("a", 600, 0.95), *[bk.Item("a", 500, 0.55)] * 15]
    kept = {}
    for how in ("skip", "knapsack"):
        line = bk.Allocation("a", keep="best", fill=how)
        kept[how] = bk.fit(bk.Budget(1_000, (), [line]), items)["a"].granted
    assert kept == {"skip": 600, "knapsack": 1_000}


@given(ITEMS.filter(lambda items: len(items) <= 10), st.integers(1, 300))
def test_knapsack_equals_trying_every_choice(items: list[bk.Item], limit: int) -> None:
    """Held against the slow, obvious twin."""
    assume(items)
    items = [replace(item, section="a") for item in items]
    plan = bk.fit(bk.Budget(limit, (), [bk.Allocation("a", fill="knapsack")]), items)
    best = 0.0
    for choice in range(1 << len(items)):
        chosen = [item for i, item in enumerate(items) if choice >> i & 1]
        if sum(item.tokens for item in chosen) <= limit:
            best = max(best, sum(item.score for item in chosen))
    assert sum(item.score for item in plan.decisions.items) == best
    assert np.all(plan.decisions.kept.sum() <= limit)


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(0, 400))
def test_skip_keeps_what_walking_unit_by_unit_keeps(sizes: list[int], limit: int) -> None:
    """The slow twin: one unit after the other, each that still fits; sizes that fall one by one among them."""
    for units in (sizes, sorted(sizes, reverse=True), sorted(sizes)):
        room, kept = limit, []
        for size in units:
            kept.append(size <= room)
            room -= size if size <= room else 0
        front, others = select(Units(units, None, range(len(units))), limit, "skip")
        assert [place < front or place in others for place in range(len(units))] == kept


@pytest.mark.parametrize("count", [1, 50, 3_000])
@pytest.mark.parametrize(
    "scores", [(0.5,), (0.0, -0.0, 0.1, 0.7), (float("inf"), 1.0, float("-inf"))]
)
@pytest.mark.parametrize("importance", [(None,), (None, 3, 9)])
def test_the_best_come_first_and_the_first_of_equals_before_the_others(
    count: int, scores: tuple[float, ...], importance: tuple[int | None, ...]
) -> None:
    chance = np.random.default_rng(20261121)
    items = [
        bk.Item("retrieval", number, scores[a % len(scores)], importance[b % len(importance)])
        for number, (a, b) in enumerate(chance.integers(0, 12, (count, 2)).tolist())
    ]
    best = sorted(
        items,
        key=lambda item: (5 if item.importance is None else item.importance, item.score),
        reverse=True,
    )
    assert Items(items).units(("retrieval",), "best", (5,)).tokens == [item.tokens for item in best]


@pytest.mark.parametrize("make", ["fit", "allocate"])
def test_a_section_that_is_called_almost_as_a_declared_one_is_warned_of(make: str) -> None:
    """The passages drew on the shared pool, and the section that was meant stayed empty, in silence."""
    budget = presets.rag(8_192)
    with pytest.warns(UserWarning, match="retreival is not declared .* Did you mean retrieval"):
        if make == "fit":
            plan = bk.fit(budget, [bk.Item("retreival", 300)])
        else:
            plan = bk.allocate(budget, {"retreival": 300})
    assert plan.warnings[0].startswith("retreival is not declared")


def test_a_section_of_another_name_draws_on_the_pool_without_a_word() -> None:
    assert bk.fit(presets.rag(8_192), [bk.Item("notes", 300)]).warnings == ()


def test_a_floor_that_grows_above_its_cap_in_a_larger_window_ends_no_warning() -> None:
    """The plan's warnings ended with "The floor of 'history' (2,004) is above its cap (2,000)"."""
    budget = bk.Budget(
        8_000,
        [bk.Reserve("output", 1_000, serves="output")],
        [
            bk.Allocation("system", 1_000),
            bk.Allocation("history", 2_000, floor=bk.Share(0.2)),
            bk.Allocation("current"),
        ],
    )
    plan = bk.allocate(budget, {"system": 10, "history": 10, "current": 9_000})
    (warning,) = plan.warnings
    assert warning.endswith("shorten another section, or choose a larger window.")
    assert "a larger window" in plan._repr_html_()
