"""A running conversation: its next request at 1,000 messages, a chat of 200 turns, and trim beside the peers'."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import budgetkit as bk
from benchmarks.measure import Row, interleaved, row, rows_beside
from budgetkit import policies

_NUMBERS = itertools.count()
OURS, THEIRS = (
    "budgetkit, trim, of dictionaries",
    "langchain-core, of its own messages, counted by budgetkit",
)
REQUEST, CHAT = 1e-3, 0.1  # seconds: a request after the first, 200 turns in all


def said(place: int) -> dict[str, Any]:
    """Make up a message that nobody has counted before."""
    words = f"message {next(_NUMBERS)} " + "some words of a chat " * 10
    return {"role": ("user", "assistant")[place % 2], "content": words}


def rows() -> Iterator[Row]:
    """Give the times, counting by o200k_base included, on messages that are new."""
    count = bk.counter("o200k_base")
    count("the encoding is loaded once a process")
    for messages in (100, 1_000, 4_000):
        limit = REQUEST if messages == 1_000 else None
        yield row(
            "next request, two new messages",
            f"of {messages:,} messages",
            _requests(count, messages),
            limit,
        )
    chats = interleaved({"a chat of 200 turns, a request each": lambda: _chat(count)}, 7)
    yield from (
        row("a running conversation", name, seconds, CHAT) for name, seconds in chats.items()
    )
    yield from _trimmed(count)


def _requests(count: Any, messages: int) -> list[float]:
    talk = bk.Conversation(bk.presets.working_memory(1_000_000), policies.OldestFirst(), count)
    talk.add([said(place) for place in range(messages - 1)])
    talk.request()
    found = []
    for _ in range(100):
        talk.add(said(1), said(0))
        start = time.perf_counter()
        talk.request()
        found.append(time.perf_counter() - start)
    return found


def _chat(count: Any) -> None:
    talk = bk.Conversation(bk.presets.working_memory(16_000), policies.TriggerTarget(), count)
    for _ in range(200):
        talk.add(said(0))
        talk.request()
        talk.add(said(1))


def _trimmed(count: Any) -> Iterator[Row]:
    """Trim to a quarter, all counts remembered; langchain's own messages are the baseline, which need no reading."""
    for messages in (100, 1_000):
        listed = [said(place) for place in range(messages + 1)]
        most = sum(count(each["content"]) for each in listed) // 4
        cases: dict[str, Callable[[], object]] = {
            OURS: lambda given=listed, to=most: bk.trim(given, to, count)
        }
        cases |= _langchain(listed, most, count) | (_litellm(listed) if messages == 100 else {})
        found = interleaved(cases, 15, in_a_row=3)
        baseline, ratios = (THEIRS, {OURS: 1.5}) if THEIRS in cases else (OURS, {})
        yield from rows_beside(
            f"{messages:,} messages and a question trimmed to a quarter",
            found,
            baseline,
            ratios,
            {},
        )


def _langchain(
    messages: list[dict[str, Any]], most: int, count: Any
) -> dict[str, Callable[[], object]]:
    try:
        from langchain_core.messages import AIMessage, HumanMessage, trim_messages
    except ImportError:
        return {}
    theirs = [
        (HumanMessage, AIMessage)[i % 2](content=each["content"]) for i, each in enumerate(messages)
    ]

    def counted(listed: list[Any]) -> int:
        return sum(count(each.content) for each in listed)

    more: dict[str, Any] = {"max_tokens": most, "strategy": "last", "include_system": True}
    return {
        THEIRS: lambda: trim_messages(theirs, token_counter=counted, **more),
        "langchain-core, of dictionaries, counted by budgetkit": lambda: trim_messages(
            messages, token_counter=counted, **more
        ),
        "langchain-core, of its own messages, approximately": lambda: trim_messages(
            theirs, token_counter="approximate", **more
        ),
    }


def _litellm(messages: list[dict[str, Any]]) -> dict[str, Callable[[], object]]:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network first
    try:
        from litellm.utils import trim_messages
    except ImportError:
        return {}
    few = messages[:61]  # it counts all texts anew at every step
    return {"litellm, of 61 messages": lambda: trim_messages(few, max_tokens=800)}
