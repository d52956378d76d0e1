"""Conversations: loading, counting, and planning again for another turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import budgetkit as bk
from benchmarks.measure import Row, interleaved, row
from budgetkit import files


def rows(folders: list[Path]) -> Iterator[Row]:
    """Give figures of the longest shipped conversation and of the longest in every folder that was named."""
    paths = [files.data_path("traces/coding-agent.jsonl")]
    paths += [
        max(folder.glob("*.jsonl"), key=_messages)
        for folder in folders
        if any(folder.glob("*.jsonl"))
    ]
    for path in paths:
        yield from _one(path)


def _messages(path: Path) -> int:
    try:
        return max(len(trace.messages) for trace in bk.load_traces(path))
    except ValueError:  # a file of another kind
        return 0


def _one(path: Path) -> Iterator[Row]:
    count = bk.counter("gpt-4o")
    count("the encoding is loaded once a process")
    longest = max(bk.load_traces(path), key=lambda trace: len(trace.messages))
    group = f"{len(longest.messages):,} messages"
    yield row(group, "load and count exactly, first time", [_first(path)], 1.0)
    counted = bk.load_trace(path, longest.id)
    counted.demand(count)
    turns = iter(range(10**9))
    cases: dict[str, Callable[[], object]] = {
        "demand by turn, counted before": lambda: counted.demand(count),
        "items of another turn": lambda: counted.items(next(turns) % len(counted.turns) + 1, count),
    }
    for name, found in interleaved(cases, 30).items():
        yield row(group, name, found)


def _first(path: Path) -> float:
    count = bk.counter("o200k_base")
    start = time.perf_counter()
    for trace in bk.load_traces(path):
        trace.demand(count)
    return time.perf_counter() - start
