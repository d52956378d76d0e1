"""Replay: 10,000 messages under five policies, and how the time grows with their number."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import budgetkit as bk
from benchmarks.measure import Row, interleaved, row
from budgetkit import policies

POLICIES: dict[str, policies.Policy] = {
    "oldest first": policies.OldestFirst(),
    "sliding window": policies.SlidingWindow(10),
    "summarise": policies.Summarise(),
    "results first, then to a low mark": policies.Chain(
        [policies.DropToolResults(), policies.TriggerTarget()]
    ),
    "importance": policies.Importance(lambda message: len(message.text) % 7),
}
TARGET = 0.08  # seconds for one policy over 10,000 messages


def conversation(messages: int, seed: int = 1) -> bk.Trace:
    """Make up a conversation of users, answers, and tool calls with long results."""
    draw = random.Random(seed)
    said: list[dict[str, Any]] = [{"role": "system", "content": "s" * 900}]
    while len(said) < messages:
        said.append({"role": "user", "content": "u" * draw.randint(20, 400)})
        if draw.random() < 0.4:
            call = {
                "id": str(len(said)),
                "type": "function",
                "function": {"name": "f", "arguments": "{}"},
            }
            said.append({"role": "assistant", "content": None, "tool_calls": [call]})
            said.append(
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": "r" * draw.randint(100, 3_000),
                }
            )
        said.append({"role": "assistant", "content": "a" * draw.randint(20, 800)})
    return bk.Trace("made up", tuple(bk.Message(each) for each in said[:messages]))


def rows() -> Iterator[Row]:
    """Give the times of each policy and of all, on conversations that are counted already."""
    count, budget = (
        bk.counter("chars/4"),
        bk.presets.working_memory(8_000, output=500, history_floor=0),
    )
    for messages in (10_000, 40_000):
        trace = conversation(messages)
        trace.demand(count, budget.roles)
        group = f"replay, {messages:,} messages"
        cases: dict[str, Callable[[], object]] = {
            name: _replayed(trace, budget, policy, count) for name, policy in POLICIES.items()
        }
        found = interleaved(cases, 5)
        for name, seconds in found.items():
            yield row(group, name, seconds, TARGET if messages == 10_000 else None)
        yield row(group, "all five", [sum(each) for each in zip(*found.values(), strict=True)])


def _replayed(
    trace: bk.Trace, budget: bk.Budget, policy: policies.Policy, count: Any
) -> Callable[[], object]:
    return lambda: bk.replay(trace, budget, policy, counter=count).frame()
