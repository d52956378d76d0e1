"""Cutting a text to a budget: budgetkit beside the ways that document 003 writes down, and the plain ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import budgetkit as bk
from benchmarks.counting import ENCODING, document
from benchmarks.measure import Row, interleaved, rows_beside
from budgetkit.counters import ExactCounter, encodings

COUNT = ExactCounter(ENCODING)


def rows() -> Iterator[Row]:
    """Give each way's time and how much of the limit it leaves unused."""
    text = document()
    for characters, limit, slow in ((4_000, 500, True), (40_000, 5_000, True), (400_000, 50_000, False)):
        yield from _ways(text[:characters], limit, slow)
    million = text * (1 + 4_500_000 // len(text))
    yield from _ways(
        million, 1_000, False, {"budgetkit, head": 1e-3, "budgetkit, tail": 1e-3, "budgetkit, middle": 1e-3}
    )


def _ways(text: str, limit: int, slow: bool, limits: dict[str, float] | None = None) -> Iterator[Row]:
    built = encodings.encoding(ENCODING)
    ways: dict[str, Callable[[], str]] = {
        "encode, cut, decode": lambda: built.decode(built.encode(text, disallowed_special=())[:limit], "ignore"),
        "budgetkit, head": lambda: bk.truncate(text, limit, COUNT, marker=""),
        "budgetkit, tail": lambda: bk.truncate(text, limit, COUNT, "tail", marker=""),
        "budgetkit, middle": lambda: bk.truncate(text, limit, COUNT, "middle", marker=""),
        "budgetkit, lines from the end": lambda: bk.truncate(text, limit, COUNT, "tail", "line", marker=""),
    }
    if slow:
        ways["document 003, halving"] = lambda: halved(text, limit)
    if slow and len(text) < 10_000:
        ways["document 003, line by line"] = lambda: line_by_line(text, limit)
    notes = {name: f"{COUNT.fresh(way()):,} of {limit:,} tokens" for name, way in ways.items()}
    size = COUNT.fresh(text)
    found = interleaved(ways, 9)
    group = f"cut {limit:,} of {size:,} tokens"
    yield from rows_beside(group, found, "encode, cut, decode", {}, notes, limits)


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
