"""Exact counting at every size, first call included, on one, two and four cores: writes processes.md.

    python -m benchmarks.processes FOLDER [--cores 1 2 4] [--repeats 10]

The UTF-8 text of a folder is cut into documents and messages that no call sees twice. Each process counts all of them
in one way and is told which cores it may use; the loading of the encoding is not timed. A figure is the median over
processes, beside the same calls of `len(encoding.encode(text))`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import machine
from budgetkit.counters import counter, encodings, speed

PAGE = Path(__file__).parent / "processes.md"
ENCODING = "o200k_base"
DOCUMENT, MESSAGES = 1_500_000, 10_000
WAYS = ("tiktoken", "budgetkit", "with gigatoken")


def main() -> None:
    """Run every way on every number of cores and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.processes", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeats", type=int, default=10)
    # For the processes that this one starts.
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.way:
        print(json.dumps(dict(timed(asked.folder, asked.way))))
        return
    lines = []
    for line in table(asked.folder, asked.cores, asked.repeats):
        print(line, flush=True)
        lines.append(f"{line}\n")
    PAGE.write_text("".join(lines), encoding="utf-8")


def table(folder: Path, allowed: list[int], repeats: int) -> Iterator[str]:
    """Give the lines of the page: a row for each number of cores and kind of call, as times of tiktoken's speed."""
    yield from ("# Exact counting in processes of their own", "")
    yield from (
        f"Written by `python -m benchmarks.processes`: medians of {repeats} processes, loading not timed;",
    )
    yield from ("tiktoken's time of a call, and how many times as fast the others are.", "")
    yield from (machine("budgetkit", "tiktoken", "gigatoken"), "")
    yield from (
        "| cores | calls | tiktoken | budgetkit | with gigatoken |",
        "| --: | --- | --: | --: | --: |",
    )
    for cores in allowed:
        rounds = [{way: run(folder, way, cores) for way in WAYS} for _ in range(repeats)]  # in turn
        runs = {way: [each[way] for each in rounds] for way in WAYS}
        for case in runs[WAYS[0]][0]:
            middle = {way: statistics.median(each[case] for each in runs[way]) for way in WAYS}
            times = (f"{middle[WAYS[0]] / middle[way]:.2f}" for way in WAYS[1:])
            yield f"| {cores} | {case} | {1e3 * middle[WAYS[0]]:.3g} ms | {' | '.join(times)} |"


def run(folder: Path, way: str, cores: int) -> dict[str, float]:
    """Count in one way in a process that may use the last so many cores."""
    allowed = sorted(os.sched_getaffinity(0))[-cores:]
    command = [sys.executable, "-m", "benchmarks.processes", str(folder), "--way", way]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def timed(folder: Path, way: str) -> Iterator[tuple[str, float]]:
    """Time the calls of a process one after the other, seconds each; the small ones come first."""
    built, count = encodings.encoding(ENCODING), counter(ENCODING)
    if way == "with gigatoken":
        speed.accelerated(ENCODING)
    alone = way == "tiktoken"
    one: Callable[[str], int] = (
        (lambda text: len(built.encode(text, disallowed_special=()))) if alone else count
    )
    many = (lambda texts: [*map(one, texts)]) if alone else count.many  # type: ignore[attr-defined]
    text = unseen(folder)
    for size in (200, 2_000, 20_000, 100_000, 300_000):
        cut = [next(text)[:size] for _ in range(20)]
        yield f"a text of {size:,}, first", seconds(lambda: one(cut[0]))  # noqa: B023  # called at once
        yield f"a text of {size:,}", seconds(lambda: [*map(one, cut[1:])]) / 19  # noqa: B023
    documents = [next(text) for _ in range(10)]
    yield "a document of 1.5 million, first", seconds(lambda: one(documents[0]))
    yield "a document of 1.5 million, second", seconds(lambda: one(documents[1]))
    yield (
        "a document of 1.5 million, third to tenth",
        seconds(lambda: [*map(one, documents[2:])]) / 8,
    )
    yield "a document of 1.5 million, again", seconds(lambda: one(documents[9]))
    for number in ("first", "second"):
        messages = [*cut_up(next(text) + next(text))]
        yield f"{len(messages):,} messages, {number}", seconds(lambda: many(messages))  # noqa: B023


def unseen(folder: Path) -> Iterator[str]:
    """Give documents made of a folder's text, in another order each time that it is used up."""
    read = (
        path.read_bytes().decode("utf-8", "replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
    pieces = [text[at : at + 5_000] for text in read for at in range(0, len(text), 5_000)]
    chance = random.Random(20261122)
    while True:
        chance.shuffle(pieces)
        words = "".join(pieces)
        yield from (words[at : at + DOCUMENT] for at in range(0, len(words) - DOCUMENT, DOCUMENT))


def cut_up(text: str) -> Iterator[str]:
    """Cut a text into messages of 50 to 350 characters."""
    chance, at = random.Random(20261122), 0
    for _ in range(MESSAGES):
        size = chance.randint(50, 350)
        yield text[at : at + size]
        at += size


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
