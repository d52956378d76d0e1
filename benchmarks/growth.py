"""Time and memory against size, over three decades: ``python -m benchmarks.growth`` writes ``growth.md`` and draws it.

    slope = least squares of log(median seconds) over log(size), from the second size on

n log n has a slope of 1.05 to 1.15 at these sizes. Memory is the peak that Python and numpy allocate in one call, as
tracemalloc sees it; what tiktoken allocates in Rust is not in it. A corpus is streamed from a file in processes of
their own (`benchmarks.corpus`), whose peak is that of resident memory. What a larger one takes is extrapolated:

    seconds(size) = seconds(largest) + (size - largest) x cost
    cost = (seconds(largest) - seconds(second)) / (largest - second)
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill

import numpy as np

import budgetkit as bk
from benchmarks import corpus
from benchmarks.arithmetic import counted_items
from benchmarks.figure import BLUE, STYLE
from benchmarks.measure import interleaved, machine, readable
from benchmarks.replaying import conversation

PAGE = Path(__file__).parent / "growth.md"
STEEPEST = 1.15  # n log n from a hundred to a million
REPEATS = 5
# Bytes of the corpus that is extrapolated to, and that costs are of.
STREAMED, GIGABYTE = (
    10_000_000_000,
    1_000_000_000,
)
WORDS = "the parcel left on Monday, thanks; naïve 包裹 посылка return f(x) == 42 [7]".split()  # noqa: SIM905

Sized = Callable[[int], Callable[[], object]]  # from a size, what is to be timed


@dataclass(frozen=True, slots=True)
class Growth:
    """Median seconds and peak bytes of one thing, by size."""

    name: str
    unit: str
    seconds: Mapping[int, float]
    peaks: Mapping[int, int]

    @property
    def slope(self) -> float:
        """The exponent with which the time grows; what the smallest size costs is mostly the call itself."""
        sizes = sorted(self.seconds)[1:]
        return float(
            np.polyfit(np.log(sizes), np.log([self.seconds[size] for size in sizes]), 1)[0]
        )

    @property
    def cost(self) -> float:
        """Seconds for one more of the unit, between the two largest sizes."""
        second, largest = sorted(self.seconds)[-2:]
        return (self.seconds[largest] - self.seconds[second]) / (largest - second)

    def extrapolated(self, size: int) -> float:
        """Return the seconds that a larger size would take."""
        largest = max(self.seconds)
        return self.seconds[largest] + (size - largest) * self.cost


def text(characters: int, seed: int = 1) -> str:
    """Make up a text of words in several scripts."""
    draw = random.Random(seed)
    return " ".join(draw.choices(WORDS, k=characters // 4))[:characters]


def counting(size: int) -> Callable[[], object]:
    """Count a text that was not seen: each call has another."""
    count, fresh = bk.counter("o200k_base"), iter(range(10**9))
    return lambda: count(text(size, next(fresh)))


def made(size: int) -> Callable[[], object]:
    """Make the text alone, which is taken off."""
    fresh = iter(range(10**9))
    return lambda: text(size, next(fresh))


def estimating(size: int) -> Callable[[], object]:
    """Estimate a text."""
    given, count = text(size), bk.counter("estimate:o200k_base")
    return lambda: count(given)


def planning(size: int) -> Callable[[], object]:
    """Fit counted items into a window that takes half of them."""
    items, budget = counted_items(size)
    return lambda: bk.fit(budget, items)


def replaying(size: int) -> Callable[[], object]:
    """Send a counted conversation through a budget, oldest messages dropped first."""
    trace, count = conversation(size), bk.counter("chars/4")
    budget = bk.presets.working_memory(8_000, output=500, history_floor=0)
    trace.demand(count, budget.roles)
    return lambda: bk.replay(trace, budget, bk.policies.OldestFirst(), counter=count).frame()


def documents(size: int) -> Callable[[], bk.corpora.Corpus]:
    """Make up documents of a thousand characters, other ones at each call."""
    fresh = iter(range(10**9))
    about = ("made up", "mixed", "made up", "1")
    return lambda: bk.corpora.Corpus(
        tuple(bk.corpora.Document(text(1_000, next(fresh)), *about) for _ in range(size))
    )


def comparing(size: int) -> Callable[[], object]:
    """Compare two counters over documents that were not seen."""
    make = documents(size)
    return lambda: bk.accuracy.compare(["chars/4", "estimate:o200k_base"], make(), "o200k_base")


def loading(folder: Path) -> Sized:
    """Read a conversation from a file of JSON lines."""

    def sized(size: int) -> Callable[[], object]:
        path, draw = folder / f"{size}.jsonl", random.Random(size)
        said = (
            {"role": ("user", "assistant")[at % 2], "content": text(draw.randint(20, 600), at)}
            for at in range(size)
        )
        path.write_text("".join(f"{json.dumps(each)}\n" for each in said), encoding="utf-8")
        return lambda: bk.load_trace(path)

    return sized


def streaming(most: float) -> Iterator[Growth]:
    """Count files of made-up text, in each way of `benchmarks.corpus` that is installed."""
    sizes = [size for size in (10**6, 10**7, 10**8, 10**9, 10**10) if size <= most]
    once = text(10**6).encode()[: 10**6].decode("utf-8", "ignore").encode().ljust(10**6)
    ways = [way for way in corpus.WAYS if way == "plain" or find_spec(way)]
    runs: dict[str, dict[int, corpus.Run]] = {way: {} for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / "corpus.txt"
            with path.open("wb") as file:
                file.writelines(once for _ in range(size // len(once)))
            for way in ways:
                runs[way][size] = corpus.measured(path, way)
    for way, each in runs.items():
        seconds, peaks = (
            {s: run.seconds for s, run in each.items()},
            {s: run.peak for s, run in each.items()},
        )
        yield Growth(f"stream, {corpus.WAYS[way]}", "bytes", seconds, peaks)


def measured(
    name: str, unit: str, sizes: tuple[int, ...], sized: Sized, less: Sized | None = None
) -> Growth:
    """Measure one thing at each size; what `less` takes is taken off."""
    seconds, peaks = dict[int, float](), dict[int, int]()
    for size in sizes:
        cases = {"it": sized(size)} | ({"less": less(size)} if less else {})
        found = {
            case: statistics.median(times) for case, times in interleaved(cases, REPEATS).items()
        }
        seconds[size] = found["it"] - found.get("less", 0.0)
        peaks[size] = peak(cases["it"])
    return Growth(name, unit, seconds, peaks)


def peak(call: Callable[[], object]) -> int:
    """Return the most bytes that were allocated at a time in one call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def all_growth(most: int, streamed: float) -> Iterator[Growth]:
    """Measure everything; `most` is the largest number of items to plan, `streamed` that of bytes to count."""
    decades = tuple(size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= most)
    yield measured(
        "exact count", "characters", (10_000, 100_000, 1_000_000, 10_000_000), counting, made
    )
    yield measured("estimate", "characters", (10_000, 100_000, 1_000_000, 10_000_000), estimating)
    yield measured("fit", "items", decades, planning)
    yield measured("replay", "messages", (100, 1_000, 10_000, 100_000), replaying)
    yield measured("compare", "documents", (10, 100, 1_000, 10_000), comparing, documents)
    with tempfile.TemporaryDirectory() as folder:
        yield measured("load", "messages", (100, 1_000, 10_000, 100_000), loading(Path(folder)))
    if streamed:
        yield from streaming(streamed)


def page(found: list[Growth]) -> str:
    """Write the table: a row for each thing and size, the slope beside the last."""
    rows = []
    for growth in found:
        for size, seconds in growth.seconds.items():
            last = size == max(growth.seconds)
            met = ("met" if growth.slope <= STEEPEST else "missed") if last else ""
            slope = f"{growth.slope:.2f}" if last else ""
            memory = f"{growth.peaks[size] / 2**20:,.2f}"
            rows.append(
                f"| {growth.name} | {size:,} {growth.unit} | {readable(seconds)} | {memory} | {slope} | {met} |"
            )
    head = f"| what | size | median | peak, MiB | slope | at most {STEEPEST} |\n| --- | --: | --: | --: | --: | --- |"
    told = "Written by `python -m benchmarks.growth`; what is measured and how is said at the head of its code."
    parts = (
        "# How time and memory grow",
        "",
        told,
        "",
        machine("budgetkit", "tiktoken", "numpy", "pandas"),
        "",
    )
    return "\n".join(
        [*parts, "![Time against size](growth.svg)", "", head, *rows, "", *_streamed(found)]
    )


def _streamed(found: list[Growth]) -> Iterator[str]:
    """Say what a gigabyte costs and what ten would take."""
    if ways := [growth for growth in found if growth.name.startswith("stream")]:
        size = f"{STREAMED / GIGABYTE:.0f} GB"
        if max(ways[0].seconds) < STREAMED:
            yield f"A corpus of {size} was not counted; its time is extrapolated as the head of the code says."
            size += ", extrapolated"
        yield from ("", f"| way | a gigabyte costs | {size} |", "| --- | --: | --: |")
    for growth in ways:
        yield f"| {growth.name} | {growth.cost * GIGABYTE:,.1f} s | {growth.extrapolated(STREAMED):,.0f} s |"
    yield ""


def draw(found: list[Growth], path: Path) -> None:
    """Draw time and memory against size; without matplotlib, which is an extra, say so."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        print("no figure: matplotlib (extra: peers) is absent")
        return
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.7 * len(found), 6), layout="constrained", facecolor="white")
        for place, growth in zip(figure.subplots(2, len(found)).T, found, strict=True):
            _curve(place[0], growth.name, "seconds", growth.seconds)
            _curve(
                place[1],
                f"slope {growth.slope:.2f}",
                "MiB",
                {s: b / 2**20 for s, b in growth.peaks.items()},
            )
            place[1].set_xlabel(growth.unit)
        figure.savefig(path, metadata={"Date": None})


def _curve(axes: object, title: str, label: str, found: Mapping[int, float]) -> None:
    """Draw one curve; its axis spans about a decade at least, so that what is flat looks flat."""
    limits = min(found.values()) / 3, max(found.values()) * 3
    axes.set(xscale="log", yscale="log", title=fill(title, 20), ylabel=label, ylim=limits)  # type: ignore[attr-defined]
    axes.plot(list(found), list(found.values()), "o-", color=BLUE)  # type: ignore[attr-defined]


def main() -> None:
    """Measure, write the page and draw it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--most", type=int, default=1_000_000, help="items to plan, at most")
    parser.add_argument(
        "--bytes", type=float, default=1e9, help="of the largest corpus to stream; 0 for none"
    )
    asked, found = parser.parse_args(), []
    for growth in all_growth(asked.most, asked.bytes):
        print(f"{growth.name}: slope {growth.slope:.2f}", flush=True)
        found.append(growth)
    PAGE.write_text(page(found), encoding="utf-8")
    draw(found, PAGE.with_suffix(".svg"))


if __name__ == "__main__":
    main()
