"""Cutting a text to a budget: budgetkit beside the ways that document 003 writes down, and the plain ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

import budgetkit as bk
from benchmarks.counting import ENCODING, document
from benchmarks.measure import Row, interleaved, rows_beside
from budgetkit.counters import ExactCounter, encodings

COUNT = ExactCounter(ENCODING)
BASELINE, TEXTS = "encode, cut, decode", 100
OWN = ("budgetkit, head", "budgetkit, tail", "budgetkit, middle", "budgetkit, lines from the end")


def rows() -> Iterator[Row]:
    """Give each way's time and how much of the limit it leaves unused."""
    text = document()
    yield from _ways(text[:4_000], 500, True, ratios=dict.fromkeys(OWN, 1.5))
    yield from _one_after_the_other(text)
    yield from _ways(text[:40_000], 5_000, True)
    yield from _ways(text[:400_000], 50_000, False)
    yield from _ways(
        text * (1 + 4_500_000 // len(text)), 1_000, False, limits=dict.fromkeys(OWN, 0.7e-3)
    )


def _ways(
    text: str,
    limit: int,
    slow: bool,
    ratios: Mapping[str, float] = MappingProxyType({}),
    limits: Mapping[str, float] | None = None,
) -> Iterator[Row]:
    built = encodings.encoding(ENCODING)
    ways: dict[str, Callable[[], str]] = {
        BASELINE: lambda: built.decode(built.encode(text, disallowed_special=())[:limit], "ignore"),
        "budgetkit, head": lambda: bk.truncation.truncate(text, limit, COUNT, marker=""),
        "budgetkit, tail": lambda: bk.truncation.truncate(text, limit, COUNT, "tail", marker=""),
        "budgetkit, middle": lambda: bk.truncation.truncate(
            text, limit, COUNT, "middle", marker=""
        ),
        "budgetkit, lines from the end": lambda: bk.truncation.truncate(
            text, limit, COUNT, "tail", "line", marker=""
        ),
    }
    if slow:
        ways["document 003, halving"] = lambda: halved(text, limit)
    if slow and len(text) < 10_000:
        ways["document 003, line by line"] = lambda: line_by_line(text, limit)
    notes = {name: f"{COUNT.fresh(way()):,} of {limit:,} tokens" for name, way in ways.items()}
    size = COUNT.fresh(text)
    found = interleaved(ways, 9)
    group = f"cut {limit:,} of {size:,} tokens"
    yield from rows_beside(group, found, BASELINE, ratios, notes, limits)


def _one_after_the_other(text: str) -> Iterator[Row]:
    """Cut many texts, each of them once: what one cut among other work does not find in the processor's caches."""
    built = encodings.encoding(ENCODING)
    texts = [text[at : at + 4_000] for at in range(0, 4_000 * TEXTS, 4_000)]
    ways: dict[str, Callable[[str], str]] = {
        BASELINE: lambda text: built.decode(
            built.encode(text, disallowed_special=())[:500], "ignore"
        ),
        OWN[0]: lambda text: bk.truncation.truncate(text, 500, COUNT, marker=""),
        OWN[1]: lambda text: bk.truncation.truncate(text, 500, COUNT, "tail", marker=""),
        OWN[2]: lambda text: bk.truncation.truncate(text, 500, COUNT, "middle", marker=""),
        OWN[3]: lambda text: bk.truncation.truncate(text, 500, COUNT, "tail", "line", marker=""),
        "budgetkit, middle, with its marker": lambda text: bk.truncation.truncate(
            text, 500, COUNT, "middle"
        ),
    }
    found = interleaved({name: partial(_each, way, texts) for name, way in ways.items()}, 9)
    each = {name: [seconds / TEXTS for seconds in times] for name, times in found.items()}
    group = f"cut 500 tokens of each of {TEXTS} texts"
    yield from rows_beside(group, each, BASELINE, dict.fromkeys(OWN, 1.5), {})


def _each(way: Callable[[str], str], texts: list[str]) -> None:
    for text in texts:
        way(text)


def halved(text: str, limit: int) -> str:
    """Halve until it fits: document 003's way with any section."""
    characters = len(text)
    while _counted(text[:characters]) > limit and characters > 100:
        characters //= 2
    return text[:characters]


def line_by_line(text: str, limit: int) -> str:
    """Drop the oldest line and count again until it fits: document 003's way with a history."""
    lines = text.split("\n")
    while len(lines) > 1 and _counted("\n".join(lines)) > limit:
        lines.pop(0)
    return "\n".join(lines)


def _counted(text: str) -> int:
    return len(encodings.encoding(ENCODING).encode(text, disallowed_special=()))
