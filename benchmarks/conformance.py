"""Do budgetkit and astro-anchor keep the same items? Random budgets and items, every difference named.

anchor lets each allocated source keep what fits its cap, then lets everything compete for the window, best
first, passing over what does not fit. budgetkit says the same with ``fill="skip"`` and a shared pool in which items
compete. Two things are documented by anchor and not done by its code, and there the two may differ:

- the shared pool: sources without an allocation take the whole window, and push allocated ones out;
- the system prompt: one that is larger than its cap vanishes. Here it is required and stays.

And equals stand in the order in which anchor's pipeline comes to them, source by source once any is allocated; here as
they were given. What its pipeline is told of the window is apart from the budget's total, which it never reads.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import budgetkit as bk

SOURCES = ("retrieval", "memory", "system", "user", "tool", "conversation")
POOL = "sources of the shared pool push allocated ones out"
SYSTEM = "a system prompt over its cap is dropped"
TIES = "equals stand source by source"


@dataclass(frozen=True, slots=True)
class Case:
    """One window with its allocations, and items that want in."""

    window: int
    reserve: int
    caps: dict[str, int]
    overflow: dict[str, Any]
    items: list[bk.Item]


def cases(number: int = 2_000, seed: int = 20261121) -> list[Case]:
    """Make that many cases, the same for the same seed: every set of allocated sources, many ties, tight windows."""
    chance = random.Random(seed)
    return [_case(chance, i) for i in range(number)]


def _case(chance: random.Random, number: int) -> Case:
    window = chance.randint(50, 2_000)
    reserve = chance.choice((0, window // 10, window // 3))
    # Each set of sources comes again and again.
    allocated = [s for i, s in enumerate(SOURCES) if number >> i & 1]
    left, caps = window - reserve, {}
    for source in chance.sample(allocated, len(allocated)):
        if left > 1:
            caps[source] = chance.randint(1, max(1, min(left, window // 3)))
            left -= caps[source]
    overflow = {s: chance.choice(("truncate", "drop")) for s in caps}
    largest = chance.choice((20, 100, 400))
    items = [
        bk.Item(
            chance.choice(SOURCES),
            chance.randint(1, largest),
            score=chance.randint(0, 4) / 4,
            importance=chance.randint(1, 3) * 3,
        )
        for _ in range(chance.randint(0, 40))
    ]
    return Case(window, reserve, caps, overflow, items)


def kept_by_anchor(
    case: Case, budget: Any = None, total: int | None = None
) -> tuple[set[int], int]:
    """Return which items anchor's own pipeline keeps, and the tokens that sources without an allocation took.

    By its budget of the case, or the one that is given; with the total of its window, or the one that is given.
    """
    from anchor import ContextItem, ContextPipeline, QueryBundle, SourceType, TokenBudget
    from anchor.models.budget import BudgetAllocation
    from anchor.pipeline.step import PipelineStep

    given = [
        ContextItem(
            id=str(i),
            content=".",
            source=SourceType(item.section),
            token_count=item.tokens,
            score=item.score,
            priority=item.importance or 5,
        )
        for i, item in enumerate(case.items)
    ]
    allocations = [
        BudgetAllocation(source=SourceType(s), max_tokens=cap, overflow_strategy=case.overflow[s])
        for s, cap in case.caps.items()
    ]
    budget = budget or TokenBudget(
        total_tokens=total or case.window, allocations=allocations, reserve_tokens=case.reserve
    )
    pipeline = ContextPipeline(max_tokens=case.window, tokenizer=_NoTokenizer()).with_budget(budget)
    pipeline.add_step(PipelineStep(name="given", fn=lambda *_: given))
    result = pipeline.build(QueryBundle(query_str="?"))
    return {int(item.id) for item in result.window.items}, result.diagnostics["shared_pool_usage"]


class _NoTokenizer:
    """anchor asks for a tokenizer; items that carry their counts never use it."""

    def count_tokens(self, text: str) -> int:
        raise AssertionError("every item is counted already")

    def truncate_to_tokens(self, text: str, max_tokens: int) -> str:
        raise AssertionError("no text is cut")


def kept_by_budgetkit(case: Case, as_given: bool = False) -> set[int]:
    """Return which items budgetkit keeps under the same allocations, given as they are or in anchor's order."""
    order = [*range(len(case.items))] if as_given else _in_anchors_order(case)
    plan = bk.fit(budget(case), [case.items[i] for i in order])
    return {i for i, tokens in zip(order, plan.decisions.kept.tolist(), strict=True) if tokens}


def budget(case: Case) -> bk.Budget:
    """Write a case as a budget."""
    lines = [
        bk.Allocation(
            source,
            case.caps.get(source),
            keep="best",
            fill="skip",
            overflow="drop" if case.overflow.get(source) == "drop" else "truncate",
            required=_required(case, source),
        )
        for source in sorted(SOURCES, key=lambda source: source not in case.caps)
    ]
    reserves = [bk.Reserve("output", case.reserve, serves="output")]
    return bk.Budget(case.window, reserves, lines, order="open by item", deficit="signed")


def _required(case: Case, source: str) -> bool:
    return source == "system" and case.overflow.get(source) == "truncate"


def _in_anchors_order(case: Case) -> list[int]:
    best_first = sorted(
        range(len(case.items)),
        key=lambda i: (-(case.items[i].importance or 5), -case.items[i].score),
    )
    if not case.caps:
        return best_first
    sources = list(dict.fromkeys(case.items[i].section for i in best_first))
    return sorted(best_first, key=lambda i: sources.index(case.items[i].section))


def named(case: Case, theirs: set[int], ours: set[int], pool_used: int) -> set[str]:
    """Name what of anchor's documents its code does not do in a case."""
    found = set()
    pushed_out = any(case.items[i].section in case.caps for i in ours - theirs)
    if pushed_out and pool_used > case.window - case.reserve - sum(case.caps.values()):
        found.add(POOL)
    system = [i for i in _in_anchors_order(case) if case.items[i].section == "system"]
    if system and _required(case, "system") and case.items[system[0]].tokens > case.caps["system"]:
        found.add(SYSTEM)
    return found


@dataclass(frozen=True, slots=True)
class Tally:
    """What came out of comparing."""

    same: int
    different: Counter[str]
    unexplained: list[Case]

    @property
    def line(self) -> str:
        """Say it in a sentence."""
        named = ", ".join(
            f"{count:,} where {name}" for name, count in sorted(self.different.items())
        )
        total = self.same + self.different.total() + len(self.unexplained)
        return (
            f"Of {total:,} random budgets and item sets, budgetkit and astro-anchor keep the same items in "
            f"{self.same:,}; different are {named}; {len(self.unexplained)} otherwise."
        )


def compare(number: int = 2_000) -> Tally:
    """Run every case through both."""
    same, different, unexplained = 0, Counter[str](), []
    for case in cases(number):
        theirs, pool_used = kept_by_anchor(case)
        ours = kept_by_budgetkit(case)
        if theirs == kept_by_budgetkit(case, as_given=True):
            same += 1
        elif theirs == ours:
            different[TIES] += 1
        elif reasons := named(case, theirs, ours, pool_used):
            different[" and ".join(sorted(reasons))] += 1
        else:
            unexplained.append(case)
    return Tally(same, different, unexplained)
