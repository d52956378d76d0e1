"""The figure of ``results.md``: ``python -m benchmarks.figure`` draws the stored table anew as ``results.svg``.

Times of budgetkit and of peers side by side, on logarithmic scales: assembling a window by number of items, counting,
and cutting. `make bench` draws it after each run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from benchmarks.measure import readable

RESULTS = Path(__file__).parent / "results.md"
Ways = Mapping[str, tuple[float, str]]  # seconds, and by how much the counts are off
Times = dict[str, dict[str, tuple[float, str]]]  # ways by group
BLUE, SKY, GREY, INK = "#0072B2", "#56B4E9", "#8A8A8A", "#222222"
PEERS = {"astro-anchor": "#D55E00", "langchain-core": "#E69F00", "litellm": "#CC79A7"}
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
WIDTH, HEIGHT = 13.0, 9.6  # inches
BESIDE: dict[str, Any] = {"va": "center", "fontsize": 9, "zorder": 1.5}
OPAQUE = {"facecolor": "white", "edgecolor": "none", "pad": 1}
STYLE: Any = {
    "svg.hashsalt": "budgetkit",  # the same table gives the same bytes
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#BBBBBB",
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlepad": 12,
    "text.color": INK,
    "xtick.color": "#555555",
    "ytick.color": INK,
}


def main() -> None:
    """Draw the stored table."""
    draw(RESULTS.read_text(encoding="utf-8"), RESULTS.with_suffix(".svg"))


def draw(page: str, path: Path) -> None:
    """Draw a page of results into a file; without matplotlib, which is an extra, say so."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        print("no figure: matplotlib (extra: peers) is absent")
        return
    found = times(page)
    measured_on = next(line for line in page.splitlines() if " cores, " in line)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained", facecolor="white")
        layout: Any = figure.get_layout_engine()
        layout.set(wspace=0.03, hspace=0.06)
        places = figure.subplots(2, 2, height_ratios=(1.15, 1)).flat
        assembly(next(places), found)
        for title, ways in panels(found):
            compared(next(places), title, ways)
        said = "Medians of one run on logarithmic scales; blue is budgetkit; percents say how far a count is off."
        figure.supxlabel(
            "\n".join(wrap(f"{said} {measured_on}", 165)),
            x=0.01,
            ha="left",
            fontsize=9,
            color="#555555",
        )
        figure.savefig(path, metadata={"Date": None})


def times(page: str) -> Times:
    """Read the medians of a page of results, and by how much the counts are off."""
    found: Times = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        size = re.fullmatch(r"([\d.e+]+) (s|ms|µs|ns)", cells[2]) if len(cells) > 2 else None
        if size:
            off = re.match(r"[+-][\d.]+ % of tokens", cells[-1])
            found.setdefault(cells[0], {})[cells[1]] = (
                float(size[1]) * UNITS[size[2]],
                off[0] if off else "",
            )
    return found


def panels(found: Times) -> Iterator[tuple[str, Ways]]:
    """Choose what is compared way by way, with the question that it answers."""
    document = next(name for name in found if name.startswith("a document"))
    messages = next(
        name for name in found if re.fullmatch(r"[\d,]+ messages", name) and len(found[name]) > 3
    )
    longest = max(
        (name for name in found if name.startswith("cut ")), key=lambda name: numbers(name)[-1]
    )
    yield f"How long does it take to count\n{document}?", found[document]
    yield f"How long does it take to count\n{messages}?", found[messages]
    yield f"How long does it take to\n{longest}?", found[longest]


def numbers(text: str) -> list[int]:
    """Give the whole numbers of a text."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def assembly(axes: Any, found: Times) -> None:
    """Draw the time of one window by number of items, a line for each way."""
    groups = {
        numbers(name)[0]: ways
        for name, ways in found.items()
        if re.fullmatch(r"[\d,]+ items", name)
    }
    names = dict.fromkeys(way for ways in groups.values() for way in ways)
    lines = {
        way: [(size, ways[way][0]) for size, ways in sorted(groups.items()) if way in ways]
        for way in names
    }
    for way, points in lines.items():
        colour = PEERS.get(way.partition(",")[0], SKY if "again" in way else BLUE)
        axes.plot(*zip(*points, strict=True), "o-", color=colour, lw=2.6 if own(way) else 1.6, ms=6)
    for way, height in apart(lines).items():
        size, seconds = lines[way][-1]
        # Beside a line that ends early are others.
        name = way if size == max(groups) else way.replace(", ", ",\n")
        weight = "bold" if own(way) else "normal"
        axes.text(
            size * 1.2, height, f"{name}\n{readable(seconds)}", weight=weight, bbox=OPAQUE, **BESIDE
        )
    axes.set(
        xscale="log",
        yscale="log",
        title="How long does it take to\nassemble a window of so many items?",
    )
    axes.set_xticks(sorted(groups), [f"{size:,}" for size in sorted(groups)])
    axes.set_xlim(min(groups) * 0.75, max(groups) * 40)
    axes.spines["bottom"].set_bounds(min(groups) * 0.75, max(groups))
    scaled(axes.yaxis)
    axes.yaxis.get_major_locator().set_params(subs=(1, 3))


def apart(lines: Mapping[str, list[tuple[int, float]]]) -> dict[str, float]:
    """Say how high the name of each line stands so that no two touch, from the lowest up."""
    every = [seconds for points in lines.values() for _, seconds in points]
    gap = (max(every) / min(every)) ** 0.085
    heights: dict[str, float] = {}
    below: dict[int, float] = {}
    for way, points in sorted(lines.items(), key=lambda line: line[1][-1][1]):
        size, seconds = points[-1]
        heights[way] = below[size] = max(seconds, below.get(size, 0.0) * gap)
    return heights


def compared(axes: Any, title: str, ways: Ways) -> None:
    """Draw the time of each way to do one thing, the fastest on top."""
    ordered = sorted(ways.items(), key=lambda way: -way[1][0])
    for place, (way, (seconds, off)) in enumerate(ordered):
        colour = BLUE if own(way) else GREY
        axes.hlines(place, 0, seconds, color=colour, lw=1.2, alpha=0.5)
        axes.plot(seconds, place, "o", color=colour, ms=8)
        said = ", ".join(filter(None, (readable(seconds), off.removesuffix(" of tokens"))))
        axes.annotate(said, (seconds, place), (9, 0), textcoords="offset points", **BESIDE)
    axes.set(xscale="log", title=title, ylim=(-0.6, len(ordered) - 0.4))
    axes.set_yticks(range(len(ordered)), [way for way, _ in ordered])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(ordered[-1][1][0] / 2, ordered[0][1][0] * 16)
    scaled(axes.xaxis)
    for label, (way, _) in zip(axes.get_yticklabels(), ordered, strict=True):
        label.set_fontweight("bold" if own(way) else "normal")


def scaled(axis: Any) -> None:
    """Mark a logarithmic axis in seconds."""
    axis.set_major_formatter(lambda seconds, _: readable(seconds))
    axis.axes.minorticks_off()
    axis.grid(color="#E6E6E6")
    axis.axes.set_axisbelow(True)


def own(way: str) -> bool:
    """Tell whether it is budgetkit's."""
    return way.startswith("budgetkit")


if __name__ == "__main__":
    main()
