"""Random budgets, demands and items for the property tests."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.budget.allocation import Order
from budgetkit.budget.amounts import Amount

SECTIONS = ("system", "memory", "retrieval", "history", "tool")
TOKENS = st.integers(0, 300)


def amounts(largest: int = 200) -> st.SearchStrategy[Amount]:
    """Tokens, or a share of the window."""
    shares = st.builds(
        bk.Share, st.integers(0, 40).map(lambda percent: percent / 100), st.integers(0, 20)
    )
    return st.one_of(st.integers(0, largest), shares)


@st.composite
def allocations(draw: st.DrawFn, section: str, floors: bool = True) -> bk.Allocation:
    """One section with every field at random, its floor never above its cap."""
    cap = draw(st.none() | st.integers(0, 200))
    floor = draw(st.integers(0, 60 if cap is None else min(cap, 60))) if floors else 0
    required = draw(st.booleans())
    return bk.Allocation(
        section,
        cap,
        floor=floor,
        weight=draw(st.integers(0, 3)) if floors else 0,
        importance=draw(st.integers(1, 10)),
        required=required,
        overflow="truncate" if required else draw(st.sampled_from(["truncate", "drop"])),
        when_full=draw(st.sampled_from(["truncate", "drop"])),
        keep=draw(st.sampled_from(["first", "newest", "best"])),
        fill=draw(st.sampled_from(["prefix", "skip", "knapsack"])),
        limit_items=draw(st.none() | st.integers(0, 5)),
    )


@st.composite
def budgets(draw: st.DrawFn) -> bk.Budget:
    """Any budget that shows its deficit, over-committed ones among them."""
    order: Order = draw(st.sampled_from(get_args(Order)))
    names = draw(st.lists(st.sampled_from(SECTIONS), unique=True, min_size=1))
    lines = [draw(allocations(name, floors="by item" not in order)) for name in names]
    reserves = [
        bk.Reserve("output", draw(amounts()), serves="output"),
        bk.Reserve("safety", draw(amounts(50))),
    ]
    if draw(st.booleans()) and (
        "by item" not in order or lines[0].required or lines[0].cap is not None
    ):
        reserves.append(bk.Reserve("held", draw(st.integers(0, 50)), serves=names[0]))
    return bk.Budget(
        draw(st.integers(0, 1_000)),
        reserves,
        lines,
        kind=draw(st.sampled_from(["shared", "input", "usable"])),
        order=order,
        deficit=draw(st.sampled_from(["signed", "clamp"])),
        undeclared="pool",
        rounding=draw(st.sampled_from(["floor", "nearest", "largest_remainder"])),
    )


DEMANDS = st.dictionaries(st.sampled_from(SECTIONS), TOKENS)
ITEMS = st.lists(
    st.builds(
        bk.Item,
        st.sampled_from(SECTIONS),
        st.integers(0, 80),
        score=st.sampled_from([0.0, 0.25, 0.5, 0.75]),
        importance=st.none() | st.integers(1, 10),
    ),
    max_size=30,
)
