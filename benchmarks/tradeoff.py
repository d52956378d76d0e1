"""Error against time, for every way of counting: ``python -m benchmarks.tradeoff [FOLDER ...] [--exact o200k_base]``.

    error = mean over classes and languages of mean |counted / exact - 1|;  bias = the same, signed

Writes ``tradeoff.md`` and draws ``tradeoff.svg``. Pieces are those of the mini-corpus and of the folders; messages are
those of the shipped conversations. The sources are dealt out to two halves. What is fitted or trained here is measured
only on the half that it did not see. What the estimator's parts buy is shown by estimators that are trained on the
folders with a part left out, and that do not look it up. Without a folder there is nothing to train them on.

Times are processor time, the least of several, each way in turn. Nothing was counted before: counts are forgotten.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import budgetkit as bk
from benchmarks.accuracy import LARGE, chosen, table
from benchmarks.estimator_parts import PARTS, Part, trained, training
from benchmarks.figure import BLUE, GREY, STYLE, scaled
from benchmarks.measure import machine, readable
from benchmarks.sample import sampled
from budgetkit import corpora, files
from budgetkit.counters import Counter, ExactCounter, calibrate, counter, estimate, speed
from budgetkit.counters.estimate import EstimateCounter, Weights
from budgetkit.counters.estimate import load_weights as table_of
from budgetkit.counters.exact import memory
from budgetkit.lab.accuracy.corpora import Corpus, Document

PAGE = Path(__file__).parent / "tradeoff.md"
RATIOS = ("chars/4", "chars/3.5 (ceil, minimum 0)", "bytes/4", "utf16/4", "words/0.75")
ENCODINGS = ("o200k_base", "cl100k_base")
SHORTEST, LONGEST = 60, 460  # characters of a short message
REPEATS, SEEDS = 5, 10
MINI, FOLDERS, MESSAGES = "mini-corpus", "folders", "messages"
COLOURS = {
    "ratio": GREY,
    "calibrated": "#E69F00",
    "estimate": BLUE,
    "part": BLUE,
    "sampled": "#D55E00",
    "exact": "#009E73",
}
LEADER = {"arrowstyle": "-", "lw": 0.8, "alpha": 0.4, "relpos": (0, 0.5)}
Forget = Callable[[], object]
Seconds = tuple[float, float, float]  # of a message, of one of a batch, of a megabyte


@dataclass(frozen=True, slots=True)
class Way:
    """One way of counting, as learned without the first and without the second half of the sources."""

    name: str
    group: str
    counters: tuple[Counter, Counter]
    forget: Forget = lambda: None
    faster: bool = False
    learned_here: bool = False


def main() -> None:
    """Measure, write the page and draw it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tradeoff", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--exact", default=ENCODINGS[0], choices=ENCODINGS)
    parser.add_argument("--out", type=Path, default=PAGE)
    asked = parser.parse_args()
    found, about = measured(asked.folders, asked.exact)
    asked.out.write_text(page(found, about, asked.exact), encoding="utf-8")
    draw(found, asked.out.with_suffix(".svg"))
    print(asked.out.read_text(encoding="utf-8"))


def measured(
    folders: Sequence[Path], exact: str, parts: Mapping[str, Part] = PARTS, repeats: int = REPEATS
) -> tuple[pd.DataFrame, str]:
    """Measure every way; return a row for each, and a sentence on the texts."""
    lessons = [document for folder in folders for document in training().read(folder)]
    texts = gathered(lessons)
    # Dealt out apart, so that a text that is shipped with the kit moves none of the folders' to the other half.
    of_folders = texts["set"] == FOLDERS
    half = halves(texts["source"][~of_folders]) | halves(texts["source"][of_folders])
    texts = texts.assign(
        half=texts["source"].map(half), exact=ExactCounter(exact).many(texts["text"].tolist())
    )
    tables = {exact: table_of(exact)}
    with mock.patch.multiple(
        estimate, load_weights=tables.__getitem__, table_names=lambda: (*tables,)
    ):
        ways = [*known_ways(texts, exact)]
        ways += trained_ways(lessons, half, exact, tables, parts) if lessons else []
        large = joined(lessons)
        seconds = times(ways, texts[texts["set"] == MESSAGES]["text"].tolist(), large, repeats)
        rows = [row(way, texts, seconds[way.name], large, exact) for way in ways]
    sizes = texts.groupby("set", sort=False).size()
    told = ", ".join(f"{number:,} of {name}" for name, number in sizes.items())
    return pd.DataFrame(
        rows
    ), f"Texts: {told}. Large text: {len(large.encode()) / 1e6:.1f} MB of all classes."


def gathered(lessons: Sequence[Any]) -> pd.DataFrame:
    """Cut pieces of the mini-corpus and the folders; short messages of the shipped conversations, each once."""
    kinds = [lesson.kind.partition("/") for lesson in lessons]
    read = zip(lessons, kinds, strict=True)
    given = Corpus(
        tuple(
            Document(d.text, kind, of, d.source, str(at))
            for at, (d, (kind, _, of)) in enumerate(read)
        )
    )
    sets = {MINI: corpora.shipped().pieces(most=6), FOLDERS: chosen(given.pieces(most=6))}
    rows = [
        (name, d.kind, d.language, d.source, d.text)
        for name, pieces in sets.items()
        for d in pieces
    ]
    for path in files.data_files("traces"):
        said = dict.fromkeys(
            m.text for trace in bk.load_traces(files.data_path(path)) for m in trace.messages
        )
        short = [text for text in said if SHORTEST <= len(text) <= LONGEST]
        rows += [
            (MESSAGES, "chat", Path(path).stem, f"trace {Path(path).stem}", text) for text in short
        ]
    return pd.DataFrame(rows, columns=["set", "class", "language", "source", "text"])


def halves(sources: Iterable[str]) -> dict[str, int]:
    """Deal sources out to two halves; one whose name begins with another's goes with it."""
    names = sorted(set(sources))
    families: dict[str, str] = {}
    for name in names:
        before = [*families.values()][-1:]
        families[name] = before[0] if before and name.startswith(before[0]) else name
    order = {family: number % 2 for number, family in enumerate(dict.fromkeys(families.values()))}
    return {name: order[family] for name, family in families.items()}


def known_ways(texts: pd.DataFrame, exact: str) -> Iterator[Way]:
    """Give every way of counting that the kit has."""
    for name in RATIOS:
        yield Way(name, "ratio", (counter(name),) * 2)
    other = next(name for name in ENCODINGS if name != exact)
    for name in ("chars/4", other):
        yield Way(
            f"calibrated {name}",
            "calibrated",
            fitted(name, texts),
            memory(name).forget,
            learned_here=True,
        )
    yield Way("estimate, as shipped", "estimate", (EstimateCounter(exact),) * 2)
    yield Way(
        "sampled (a large text)",
        "sampled",
        (counter(lambda text: sampled(text, exact).tokens),) * 2,
    )
    yield Way("exact, tiktoken", "exact", (ExactCounter(exact),) * 2, memory(exact).forget)
    if (faster := speed.accelerated(exact)) is not None:
        yield Way(
            "exact, extra fast",
            "exact",
            (ExactCounter(exact),) * 2,
            partial(forgotten, faster, exact),
            faster=True,
        )


def fitted(name: str, texts: pd.DataFrame) -> tuple[Counter, Counter]:
    """Fit a slope to each half of the sources' texts, for the other half."""
    rough = counter(name)
    first, second = (texts[texts["half"] != half] for half in (0, 1))
    one, other = (
        calibrate(rough, part["text"].tolist(), part["exact"].tolist()) for part in (first, second)
    )
    return one, other


def forgotten(faster: Any, exact: str) -> None:
    """Forget counts, and the words that the faster tokenizer saw."""
    memory(exact).forget()
    faster.encode, faster.counted = speed._encode(exact), 0


def trained_ways(
    lessons: Sequence[Any],
    half: Mapping[str, int],
    exact: str,
    tables: dict[str, Weights],
    parts: Mapping[str, Part],
) -> Iterator[Way]:
    """Give an estimator without each part, its tables learned without one and without the other half of the sources."""
    for left_out in (0, 1):
        seen = [document for document in lessons if half.get(document.source) != left_out]
        tables.update((f"{name} {left_out}", made) for name, made in trained(exact, seen, parts))
    for name in parts:
        both = (EstimateCounter(f"{name} 0"), EstimateCounter(f"{name} 1"))
        yield Way(f"trained here, {name}", "part", both, learned_here=True)


def joined(lessons: Sequence[Any]) -> str:
    """Join as much of every class, up to a large document."""
    classes: dict[str, list[str]] = {}
    for document in corpora.shipped():
        classes.setdefault(f"{document.kind}/{document.language}", []).append(document.text)
    for lesson in lessons:
        classes.setdefault(lesson.kind, []).append(lesson.text)
    return "\n".join("\n".join(texts)[: LARGE // len(classes)] for texts in classes.values())


def times(ways: Sequence[Way], messages: list[str], large: str, repeats: int) -> dict[str, Seconds]:
    """Give seconds a message, a message of a batch, and a megabyte; the least of the repeats."""
    megabytes = len(large.encode("utf-8", "surrogatepass")) / 1e6
    least = {way.name: np.full(3, np.inf) for way in ways}
    for _ in range(repeats):
        for way in ways:
            count = way.counters[0]
            calls = (
                lambda c=count: [*map(c, messages)],
                partial(count.many, messages),
                partial(count.many, [large]),
            )
            found = [timed(way, call) for call in calls]
            least[way.name] = np.minimum(least[way.name], found)
    return {
        name: (a / len(messages), b / len(messages), c / megabytes)
        for name, (a, b, c) in least.items()
    }


def timed(way: Way, call: Callable[[], object]) -> float:
    """Return the processor time of one call of which nothing is remembered."""
    way.forget()
    slow = mock.patch.object(speed, "accelerated", return_value=None)
    with nullcontext() if way.faster else slow:
        began = time.process_time()
        call()
        return time.process_time() - began


def row(
    way: Way, texts: pd.DataFrame, seconds: tuple[float, float, float], large: str, exact: str
) -> dict[str, object]:
    """Put together what was measured of one way; what was fitted here has seen the large text."""
    counted = np.zeros(len(texts))
    for half, count in enumerate(way.counters):
        mine = (texts["half"] == half).to_numpy()
        counted[mine] = count.many(texts["text"][mine].tolist())
    error = texts.assign(error=100 * (counted / texts["exact"] - 1))
    found: dict[str, object] = {
        "way": way.name,
        "group": way.group,
        "learned here": way.learned_here,
    }
    found |= dict(zip(("message", "message of a batch", "megabyte"), seconds, strict=True))
    for name in () if way.group == "sampled" else texts["set"].unique():
        by_class = error[error["set"] == name].groupby(["class", "language"])["error"]
        found[f"{name}, error"] = by_class.apply(lambda some: some.abs().mean()).mean()
        found[f"{name}, bias"] = by_class.mean().mean()
    return found | {
        "large text, error": float("nan") if way.learned_here else large_error(way, large, exact)
    }


def large_error(way: Way, large: str, exact: str) -> float:
    """Return how far off the large text is, in percent; where slices are drawn, the mean over several draws."""
    truth = ExactCounter(exact)(large)
    draws = (
        [sampled(large, exact, seed).tokens for seed in range(SEEDS)]
        if way.group == "sampled"
        else None
    )
    return 100 * float(
        np.mean([abs(count / truth - 1) for count in draws or way.counters[0].many([large])])
    )


def page(found: pd.DataFrame, about: str, exact: str) -> str:
    """Write the page."""
    shown = found.drop(columns=["group", "learned here"]).copy()
    for name in ("message", "message of a batch", "megabyte"):
        shown[name] = shown[name].map(readable)
    errors = [name for name in shown.columns if name.endswith((", error", ", bias"))]
    for name in errors:
        spelled = "{:+.1f}" if name.endswith("bias") else "{:.1f}"
        shown[name] = ["" if np.isnan(each) else spelled.format(each) for each in found[name]]
    lines = [
        f"# What a count costs, and how wrong it is, against {exact}",
        "",
        "Written by `python -m benchmarks.tradeoff [FOLDER ...]`; the head of its code says what is measured, and how.",
        "",
        f"{about} Errors and biases are in percent.",
        "What is calibrated or trained here was measured on sources that it did not see. The estimate as shipped has",
        "learned from many public sources, perhaps from those of the folders; of the mini-corpus and the messages",
        "nothing was learned. Sampled is a text of more than 200,000 characters; a shorter one is counted. The extra",
        "fast takes no part in counting one short message. Times are processor time, that of all threads together.",
        "What is trained here learns from little text, so that it takes minutes: compare it with `all of it`.",
        "",
        machine("budgetkit", "tiktoken", "gigatoken", "numpy"),
        "",
        "![Error against time](tradeoff.svg)",
        "",
        *table(shown),
    ]
    return "\n".join(lines) + "\n"


def draw(found: pd.DataFrame, path: Path) -> None:
    """Draw errors against times; without matplotlib, which is an extra, say so."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        print("no figure: matplotlib (extra: peers) is absent")
        return
    shown = [*panels(found)]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4 * len(shown), 6.4), layout="constrained", facecolor="white")
        for axes, (title, unit, points) in zip(
            figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True
        ):
            scattered(axes, title, unit, points)
        said = "Better is lower and further left. The error of what is sampled is that of a large text."
        figure.supxlabel(said, x=0.01, ha="left", fontsize=9, color="#555555")
        figure.savefig(path, metadata={"Date": None})


def panels(found: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Choose what is drawn: way, group, seconds, and error in percent."""
    known, parts = found[found["group"] != "part"], found[found["group"] == "part"]
    pieces = known[f"{MINI}, error"].where(known["group"] != "sampled", known["large text, error"])
    small = known[known["group"] != "sampled"]  # it would be counted
    yield (
        "How long does a short message take,\nand how wrong is it?",
        "message",
        points(small, f"{MESSAGES}, error"),
    )
    yield (
        "How long does a megabyte take, and\nhow wrong are pieces of the mini-corpus?",
        "megabyte",
        (points(known.assign(pieces=pieces), "pieces", "megabyte")),
    )
    if len(parts):
        title = "What do the parts of the estimator buy,\non sources left out?"
        yield title, "message", points(parts, f"{FOLDERS}, error")


def points(rows: pd.DataFrame, error: str, unit: str = "message") -> pd.DataFrame:
    """Give name, group, seconds and error of each way, from the lowest error up."""
    names = {"way": "name", "group": "group", unit: "seconds", error: "error"}
    return rows[[*names]].rename(columns=names).sort_values(["error", "seconds"], ignore_index=True)


def scattered(axes: Any, title: str, unit: str, points: pd.DataFrame) -> None:
    """Draw a point for each way, and the names in a column on the right, from the lowest error up."""
    least, most = (
        (0.0, points["error"].max())
        if len(set(points["group"])) > 1
        else tuple(points["error"].agg(["min", "max"]))
    )
    margin = 0.05 * (most - least)
    heights = apart(points["error"], margin)
    for name, group, seconds, error, height in zip(
        *(points[column] for column in points), heights, strict=True
    ):
        axes.plot(seconds, error, "o", color=COLOURS[group], ms=8, zorder=3)
        text, at = f"{name.removeprefix('trained here, ')}, {error:.1f} %", (1.04, height)
        line = LEADER | {"color": COLOURS[group]}
        beside = {
            "xycoords": "data",
            "textcoords": axes.get_yaxis_transform(),
            "va": "center",
            "fontsize": 9,
        }
        axes.annotate(text, (seconds, error), at, arrowprops=line, **beside)
    axes.set(
        xscale="log",
        title=title,
        xlabel=f"processor time of a {unit}",
        ylabel="mean absolute error, %",
    )
    axes.set_xlim(points["seconds"].min() / 1.5, points["seconds"].max() * 1.5)
    axes.set_ylim(least - margin, max(most, heights[-1]) + margin)
    scaled(axes.xaxis)
    if points["seconds"].max() < 20 * points["seconds"].min():
        axes.xaxis.get_major_locator().set_params(subs=(1, 2, 5))
    axes.grid(color="#E6E6E6", axis="y")


def apart(errors: Iterable[float], gap: float) -> list[float]:
    """Say how high the names of points stand, lowest first, so that no two touch."""
    return [*accumulate(errors, lambda below, error: max(error, below + gap))]


if __name__ == "__main__":
    main()
