"""Speed: how fast a counter is on somebody's texts, measured where it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import accumulate, takewhile

from budgetkit.counters import Counter

SAMPLE = 300_000  # characters
ROUNDS = 3
_LONG = 0.15  # seconds; what takes longer is measured once


def speed(count: Counter, texts: Sequence[str]) -> float:
    """Measure how fast a counter is.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> speed(counter("chars/4"), ["Hello world"] * 100) > 0
    True
    """
    ends = accumulate(len(text) for text in texts)
    sample = texts[: max(1, sum(1 for _ in takewhile(lambda end: end <= SAMPLE, ends)))]
    sample = [text[:SAMPLE] for text in sample]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in sample)
    best = float("inf")
    for _ in range(ROUNDS):
        mark = f" {time.perf_counter_ns()}"
        marked = [text + mark for text in sample]
        start = time.perf_counter()
        count.many(marked)
        best = min(best, time.perf_counter() - start)
        if best > _LONG:
            break
    return size / 1e6 / max(best, 1e-9)
