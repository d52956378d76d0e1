"""Planning: budgets of seven sections, 100 to 10,000 items, and the same windows in other libraries."""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Callable, Iterator

import budgetkit as bk
from benchmarks.measure import Row, interleaved, row, rows_beside
from budgetkit.plan.items import Items

FIT, MOVE = "budgetkit, fit of counted items", "budgetkit, fit again, each of 10 moves"
_MEDIANS: dict[tuple[str, int], float] = {}
#: How many times as fast as the best peer a first plan and a plan again are to be, by items.
RATIOS = {100: (1.5, 3.0), 1_000: (3.0, 10.0), 10_000: (4.0, 25.0)}
SECTIONS = ("system", "memory", "retrieval", "conversation", "tool", "examples", "user")


def rows() -> Iterator[Row]:
    """Give the figures of planning, from one demand to 10,000 items."""
    yield from _numbers()
    for count in (100, 1_000, 10_000):
        yield from _items(count)


def _numbers() -> Iterator[Row]:
    lines = [
        bk.Allocation(s, 3_000, required=s == "system", importance=i)
        for i, s in enumerate(SECTIONS)
    ]
    budget = bk.Budget(32_000, [bk.Reserve("output", bk.Share(0.15), serves="output")], lines)
    demand = dict.fromkeys(SECTIONS, 2_900)
    cases: dict[str, Callable[[], object]] = {
        "allocate, 7 sections": lambda: [bk.allocate(budget, demand) for _ in range(100)],
        "assign and allocate, 7 sections": lambda: [
            bk.allocate(budget.assign(output=n), demand) for n in range(100)
        ],
    }
    seconds = interleaved(cases, 50)
    for (name, found), limit in zip(seconds.items(), (20e-6, None), strict=True):
        yield row("plan", name, found, limit, times=100)


def _items(count: int) -> Iterator[Row]:
    items, budget = counted_items(count)
    columns = Items(items)
    windows = iter(range(10**9))
    own: dict[str, Callable[[], object]] = {
        FIT: lambda: bk.fit(budget, items),
        MOVE: lambda: [
            bk.fit(budget.assign(window=budget.window + next(windows)), columns) for _ in range(10)
        ],
    }
    peers = (
        _anchor(items, budget.window)
        | _langchain(items, budget.window)
        | _litellm(items, budget.window)
    )
    seconds = interleaved(own | peers, 30 if count < 10_000 else 15)
    seconds[MOVE] = [each / 10 for each in seconds[MOVE]]
    limits = {FIT: 4e-3} if count == 10_000 else {}
    ratios = dict(zip((FIT, MOVE), RATIOS[count], strict=True)) if peers else {}
    best = min(peers, key=lambda name: statistics.median(seconds[name]), default=FIT)
    yield from rows_beside(
        f"{count:,} items", seconds, best, ratios, _notes(count, seconds), limits
    )


def _notes(count: int, seconds: dict[str, list[float]]) -> dict[str, str]:
    """Say how many times as long each takes as for a tenth of the items; n log n would be 10 to 13."""
    found = {}
    for name, each in seconds.items():
        median = statistics.median(each)
        if before := _MEDIANS.get((name, count // 10)):
            found[name] = f"{median / before:.3g} times as long as for {count // 10:,}"
        _MEDIANS[name, count] = median
    return found


def counted_items(count: int) -> tuple[list[bk.Item], bk.Budget]:
    """Make up counted items, and a budget that takes half of their tokens."""
    chance = random.Random(20261121)
    items = [
        bk.Item(
            chance.choice(("conversation", "retrieval", "memory")),
            chance.randint(5, 400),
            round(chance.random(), 3),
        )
        for _ in range(count)
    ]
    total = sum(item.tokens for item in items)
    lines = [
        bk.Allocation("retrieval", total // 8, keep="best", fill="skip"),
        bk.Allocation("memory", total // 8),
    ]
    return items, bk.Budget(total // 2, (), [*lines, bk.Allocation("conversation", keep="newest")])


class _Characters:
    """anchor asks for a tokenizer; items that carry their counts never use it."""

    def count_tokens(self, text: str) -> int:
        return len(text)

    def truncate_to_tokens(self, text: str, max_tokens: int) -> str:
        return text[:max_tokens]


def _anchor(items: list[bk.Item], window: int) -> dict[str, Callable[[], object]]:
    try:
        from anchor import ContextItem, ContextPipeline, QueryBundle, SourceType, TokenBudget
        from anchor.pipeline.step import PipelineStep
    except ImportError:
        return {}
    theirs = [
        ContextItem(content=".", source=SourceType(i.section), token_count=i.tokens, score=i.score)
        for i in items
    ]
    pipeline = ContextPipeline(max_tokens=window, tokenizer=_Characters()).with_budget(
        TokenBudget(total_tokens=window)
    )
    pipeline.add_step(PipelineStep(name="given", fn=lambda *_: list(theirs)))
    query = QueryBundle(query_str="?")
    return {"astro-anchor, build": lambda: pipeline.build(query)}


def _langchain(items: list[bk.Item], window: int) -> dict[str, Callable[[], object]]:
    try:
        from langchain_core.messages import AIMessage, HumanMessage, trim_messages
    except ImportError:
        return {}
    kinds = (HumanMessage, AIMessage)
    theirs = [
        kinds[i % 2](content=".", additional_kwargs={"n": item.tokens})
        for i, item in enumerate(items)
    ]

    def count(messages: list[object]) -> int:
        return sum(message.additional_kwargs["n"] for message in messages)  # type: ignore[attr-defined]

    return {
        "langchain-core, trim_messages": lambda: trim_messages(
            theirs, max_tokens=window, token_counter=count, strategy="last"
        )
    }


def _litellm(items: list[bk.Item], window: int) -> dict[str, Callable[[], object]]:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network first
    try:
        from litellm.utils import trim_messages
    except ImportError:
        return {}
    if len(items) > 100:
        return {}  # it counts text anew at every step: minutes
    theirs = [
        {"role": ("user", "assistant")[i % 2], "content": "word " * item.tokens}
        for i, item in enumerate(items)
    ]
    return {
        "litellm, trim_messages, text counted": lambda: trim_messages(theirs, max_tokens=window)
    }
