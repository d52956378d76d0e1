"""Budgets as values: lines, pools, changes, and errors that say how to mend them."""

import re
from dataclasses import replace

import pytest

import budgetkit as bk

LINES = [bk.Allocation("system", 800, required=True), bk.Allocation("history", floor=100)]
BUDGET = bk.Budget(8_192, [bk.Reserve("output", bk.Share(0.15), serves="output")], LINES)


def test_iterating_gives_the_lines_that_a_slider_needs() -> None:
    """Reserves first, then sections; a section without a cap has no tokens of its own."""
    assert [(line.name, line.kind, line.tokens) for line in BUDGET] == [
        ("output", "reserve", 1_228),
        ("system", "allocation", 800),
        ("history", "allocation", None),
    ]


def test_assign_changes_a_line_and_leaves_the_budget_as_it_was() -> None:
    """A size, a cap, the window, some fields, or a whole line."""
    changed = BUDGET.assign(
        window=10_000, output=500, system=bk.Share(0.1), history={"floor": 700, "keep": "newest"}
    )
    assert (changed.usable, changed.cap("system"), changed.floors["history"]) == (9_500, 1_000, 700)
    assert changed.allocations[1].keep == "newest"
    assert BUDGET.window == 8_192
    assert BUDGET.assign(system=bk.Allocation("system", 7)).cap("system") == 7
    assert BUDGET.assign(system=None).cap("system") == BUDGET.usable


@pytest.mark.parametrize(
    ("kind", "usable"), [("shared", 6_964), ("input", 8_192), ("usable", 8_192)]
)
def test_what_the_window_holds_decides_whether_answers_claim_it(kind: str, usable: int) -> None:
    """The reserve is known either way."""
    budget = replace(BUDGET, kind=kind)  # type: ignore[arg-type]
    assert (budget.usable, budget.sizes["output"]) == (usable, 1_228)


@pytest.mark.parametrize("rounding", ["floor", "nearest", "largest_remainder"])
def test_reserves_and_caps_are_rounded_together(rounding: str) -> None:
    """Shares that sum to 1 claim the whole window with the largest remainder, and never more than it."""
    lines = [bk.Allocation("a", bk.Share(0.5)), bk.Allocation("b", bk.Share(0.35))]
    budget = bk.Budget(
        8_191,
        [bk.Reserve("output", bk.Share(0.15))],
        lines,
        deficit="signed",
        rounding=rounding,  # type: ignore[arg-type]
    )
    assert budget.shared_pool == {"floor": 2, "nearest": -1, "largest_remainder": 0}[rounding]


@pytest.mark.parametrize(("deficit", "usable", "pool"), [("signed", -100, -900), ("clamp", 0, 0)])
def test_deficit_is_signed_or_clamped(deficit: str, usable: int, pool: int) -> None:
    """The signed number is always to be had as `unclaimed`."""
    budget = bk.Budget(400, [bk.Reserve("output", 500)], [bk.Allocation("a", 800)], deficit=deficit)  # type: ignore[arg-type]
    assert (budget.usable, budget.shared_pool, budget.unclaimed) == (usable, pool, -900)


def test_who_is_asked_first() -> None:
    """Required, then by importance; or required, then those with a cap."""
    lines = [
        bk.Allocation("a", importance=9),
        bk.Allocation("b", 10),
        bk.Allocation("c", required=True),
    ]
    for order, names in (("importance", "cab"), ("caps first", "cba"), ("pool by item", "cba")):
        budget = bk.Budget(100, (), lines, order=order)  # type: ignore[arg-type]
        assert "".join(a.section for a in budget.asked) == names


def test_repr_says_the_sizes() -> None:
    """Short enough for a notebook's output."""
    expected = "Budget(window=8192, output=1228, system=800, history=pool, shared_pool=6164)"
    assert repr(BUDGET) == expected
    assert repr(LINES[0]) == "Allocation('system', cap=800, required=True)"


OF_SYSTEM = "Unknown field of Allocation('system', cap=800, required=True)"
OF_OUTPUT = "Unknown field of Reserve('output', Share(0.15), serves='output')"
FLOOR = [bk.Allocation("a", floor=1)]


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: bk.Budget(-1), ValueError, "Invalid window: -1. Use 0 or more."),
        (lambda: bk.Budget(True), TypeError, "Invalid window: True"),
        (lambda: bk.Budget(1.5), TypeError,  # type: ignore[arg-type]
         "Invalid window: 1.5. Expected a whole number of tokens"),
        (lambda: bk.Reserve("output", -5), ValueError, "Invalid reserve 'output': -5"),
        (lambda: bk.Allocation("a", cap="9"), TypeError, "Invalid cap of 'a': '9'"),  # type: ignore[arg-type]
        (lambda: bk.Allocation(""), ValueError, "Expected a non-empty string"),
        (lambda: bk.Allocation("a", fill="most"), ValueError,  # type: ignore[arg-type]
         "Choose one of: 'prefix', 'skip', 'knapsack'."),
        (lambda: bk.Allocation("a", required=True, overflow="drop"), ValueError,
         "is required and has overflow='drop'. Use"),
        (lambda: bk.Allocation("a", weight=-1), ValueError, "Invalid weight of 'a': -1"),
        (lambda: bk.Budget(9, order="best"), ValueError,  # type: ignore[arg-type]
         "Choose one of: 'importance', 'caps first', 'pool together'"),
        (lambda: bk.Budget(9, (), [bk.Allocation("a")] * 2), ValueError,
         "Duplicate reserve or section name: 'a'. Use each name once"),
        (lambda: bk.Budget(9, (), [bk.Allocation("window")]), ValueError,
         "Duplicate reserve or section name: 'window'."),
        (lambda: bk.Budget(9, [bk.Reserve("a", 1)], [bk.Allocation("a")]), ValueError, "Duplicate reserve or section"),
        (lambda: bk.Budget(9, [bk.Reserve("r", 1, serves="b")]), ValueError, "Unknown section for reserve 'r': 'b'."),
        (lambda: bk.Budget(9, remainder="b"), ValueError, "Unknown remainder 'b'."),
        (lambda: bk.Budget(9, (), [bk.Allocation("a", 3, floor=4)]), ValueError,
         "floor of 'a' (4) is above its cap (3)"),
        (lambda: BUDGET.assign(system={"flor": 1}), LookupError, f"{OF_SYSTEM}: 'flor'. Did you mean 'floor'?"),
        (lambda: BUDGET.assign(system={3: 1}), LookupError, "Unknown field of"),  # type: ignore[dict-item]
        (lambda: BUDGET.assign(output={"cap": 1}), LookupError, f"{OF_OUTPUT}: 'cap'."),
        (lambda: BUDGET.assign(histroy=1), LookupError,
         "Unknown reserve or section 'histroy'. Did you mean 'history'? Choose one of: 'window'"),
        (lambda: BUDGET.cap("memory"), LookupError, "Unknown section 'memory'"),
        (lambda: bk.Budget(9, (), FLOOR, order="pool by item"), ValueError,
         "Remove it, or choose another order, such as 'pool together'"),
    ],
)  # fmt: skip
def test_errors(make: object, error: type[Exception], sentence: str) -> None:
    """One clear sentence each: what was asked, what is known, what to do."""
    with pytest.raises(error, match=re.escape(sentence)):
        make()  # type: ignore[operator]
