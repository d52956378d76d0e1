"""The kernel's part of a slider's move in the budget explorer: from the new value to all that is sent to the page."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, interleaved, row
from benchmarks.replaying import conversation

MOVES, MANY = 200, 10_000
MESSAGES, OPENING = 5_000, 0.6  # seconds to open a conversation of so many messages
CASES = {"without a conversation": (None, 0.005), "with one of 75 turns": ("support-chat", 0.008)}
STATM = Path("/proc/self/statm")


def rows() -> Iterator[Row]:
    """Give the time of a move, and what many moves add to the memory of the process."""
    import budgetkit as bk

    for name, (trace, limit) in CASES.items():
        explorer = bk.BudgetExplorer("chat", trace, window=64_000)
        _moved(explorer, 20)
        yield row("explore", f"a slider's move, {name}", _moved(explorer, MOVES), limit)
    if STATM.exists():
        yield _memory(explorer)
    long = conversation(MESSAGES)
    opened = interleaved({"open": lambda: bk.BudgetExplorer("chat", long, window=64_000)}, 5)[
        "open"
    ]
    yield row(
        "explore", f"open a conversation of {MESSAGES:,} messages, opened before", opened, OPENING
    )


def _moved(explorer: Any, moves: int) -> list[float]:
    seconds = []
    for i in range(moves):
        start = time.perf_counter()
        explorer.move("output", f"{10 + 0.5 * (i % 40)}%")
        seconds.append(time.perf_counter() - start)
    return seconds


def _memory(explorer: Any) -> Row:
    """Compare the memory after a tenth of the moves with that after all; flat is less than 1 MB more."""
    _moved(explorer, MANY // 10)
    before = _megabytes()
    seconds = sorted(_moved(explorer, MANY - MANY // 10))
    more = _megabytes() - before
    note = f"{more:+.1f} MB from move {MANY // 10:,} to {MANY:,}"
    median, p95 = seconds[len(seconds) // 2], seconds[int(0.95 * len(seconds))]
    return Row(
        "explore",
        f"{MANY:,} moves in one session",
        median,
        p95,
        MANY,
        "< 1 MB more",
        more < 1,
        note,
    )


def _megabytes() -> float:
    gc.collect()
    return int(STATM.read_text(encoding="ascii").split()[1]) * 4_096 / 1e6
