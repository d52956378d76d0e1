"""What is promised beside what comes true, split by source: ``python -m benchmarks.promised FOLDER...``.

Writes ``benchmarks/promised-and-observed.md``. Folders hold texts (a ``MANIFEST.csv`` says class, language and source),
conversations (JSONL, one a line), or both. Whatever is learned is learned from one part of the sources, and asked of
the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import budgetkit as bk
from benchmarks.accuracy import chosen, gathered, table
from benchmarks.measure import machine
from budgetkit import accuracy
from budgetkit.accuracy.corpora import Corpus
from budgetkit.replay import turn_sizes
from budgetkit.replay.forecast import paths, straight_line

RESULTS = Path(__file__).parent / "promised-and-observed.md"
COUNTERS = ("chars/4", "words/0.75", "estimate:o200k_base")
SIZES = (4_096, 8_192, 16_000, 32_000)
RISKS = (0.05, 0.01)
WIDTHS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0)  # times the pace's shipped spread
PARTS = (0.1, 0.25, 0.5)  # of a conversation, as the budget of its history
IMPORTANCE: Mapping[str, bk.policies.Policy] = {
    "long ones": bk.policies.Importance(lambda message: len(message.text)),
    "short ones": bk.policies.Importance(lambda message: -len(message.text)),
    "with digits": bk.policies.Importance(lambda message: sum(map(str.isdigit, message.text))),
    "with capitals": bk.policies.Importance(lambda message: sum(map(str.isupper, message.text))),
    "of the user": bk.policies.Importance(lambda message: message.role == "user"),
    "no questions": bk.policies.Importance(lambda message: "?" not in message.text),
}
POLICIES: Mapping[str, bk.policies.Policy] = {
    "oldest first": bk.policies.OldestFirst(),
    "whole turns": bk.policies.OldestFirst(unit="turn"),
    "last 3 turns": bk.policies.SlidingWindow(3),
    "last 20 turns": bk.policies.SlidingWindow(20),
    "down to a half": bk.policies.TriggerTarget(bk.Share(1), bk.Share("0.5")),
    **IMPORTANCE,
}
RETURNING: Mapping[str, bk.policies.Policy] = {
    "half of it brought back": bk.policies.BringBack(),
    "nine tenths brought back": bk.policies.BringBack(share=bk.Share("0.9")),
}
SPLITS = 10
FILLED = 40  # windows of each kind
ALLOWED = 1.5


def main() -> None:
    """Measure on the folders and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.promised", description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    page = ["# Promised and observed", "", "Written by `python -m benchmarks.promised`, split by source.", ""]
    page += [machine("budgetkit", "numpy"), ""]
    texts = [folder for folder in asked.folders if _lists_texts(folder / "MANIFEST.csv")]
    page += buffers(gathered(texts) if texts else Corpus(()))
    found = conversations(asked.folders)
    page += forecasts(found) + evidence(found)
    asked.out.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(page))


def _lists_texts(manifest: Path) -> bool:
    """Say whether a folder's manifest gives its texts a class, without which there are no kinds."""
    return manifest.is_file() and "class" in manifest.read_text(encoding="utf-8").partition("\n")[0].split(",")


def buffers(corpus: Corpus) -> list[str]:
    """Ask half of the sources for the buffer, and fill windows with the other half."""
    pieces = chosen(corpus.pieces(most=6))
    if not len(pieces):
        return []
    errors = accuracy.compare(COUNTERS, pieces)
    found = pd.DataFrame(overflows(errors)).groupby(["counter", "window", "promised"], sort=False).mean().reset_index()
    shown = found.assign(kept=np.where(found["observed"] <= ALLOWED * found["promised"], "yes", "no"))
    for name in ("promised", "share", "observed", "others"):
        shown[name] = (100 * shown[name]).map("{:.1f} %".format)
    columns = {"share": "held back", "others": "windows of kinds it names as lacking"}
    return [
        "## Buffers: windows that overflow",
        "",
        f"{len(pieces):,} pieces of {errors['source'].nunique()} sources, {SPLITS} times split in two halves by "
        "source. One half asks for the buffer; windows",
        "are filled with the other half's pieces, each with one class or one language (as many of each), of which "
        "the first half has the class",
        f"and the language. Kept is a promise that is missed in at most {ALLOWED} times as many windows.",
        "",
        *table(shown.rename(columns=columns)),
        "",
    ]


def overflows(errors: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Give the share of windows that overflow, by split, counter, window and risk."""
    sources = errors["source"].unique()
    for split in range(SPLITS):
        random = np.random.default_rng(split)
        taken = set(random.permutation(sources)[: len(sources) // 2])
        for name, rows in errors.groupby("counter", sort=False):
            mine, others = rows[rows["source"].isin(taken)], rows[~rows["source"].isin(taken)]
            alike = others["class"].isin(mine["class"]) & others["language"].isin(mine["language"])
            for window in SIZES:
                for risk in RISKS:
                    share = accuracy.buffer_for(mine, window, risk, seed=split).share
                    row: dict[str, object] = {"counter": name, "window": window, "promised": risk, "share": share}
                    seen, unseen = (
                        filled_over(part, window, share, random) for part in (others[alike], others[~alike])
                    )
                    yield row | {"observed": seen, "others": unseen}


def filled_over(errors: pd.DataFrame, window: int, share: float, random: np.random.Generator) -> float:
    """Fill windows piece by piece until the estimate says that they are full; return the share that overflows."""
    over = []
    for column in ("class", "language"):
        weights = errors[column].value_counts(normalize=True, sort=False)
        for kind in random.choice(weights.index.to_numpy(), 5 * FILLED, p=weights.to_numpy()):
            over.append(_overflows(errors[errors[column] == kind], window, share, random))
    return float(np.mean(over)) if over else float("nan")


def _overflows(texts: pd.DataFrame, window: int, share: float, random: np.random.Generator) -> bool:
    exact, estimate = texts["exact"].to_numpy(), texts["estimate"].to_numpy()
    room = window * (1 - share)
    order = random.integers(0, len(texts), max(1, int(1.5 * room / max(estimate.mean(), 1)) + 20))
    filled = np.cumsum(estimate[order]) <= room
    return bool(exact[order][filled].sum() > window)


def conversations(folders: Sequence[Path]) -> dict[str, list[bk.Trace]]:
    """Read the conversations of folders, by file: each file is a source."""
    found: dict[str, list[bk.Trace]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.jsonl")):
        try:
            found[path.stem] = [trace for trace in bk.load_traces(path) if trace.turns]
        except ValueError:  # a file of another kind
            continue
    return found


def evidence(sources: dict[str, list[bk.Trace]]) -> list[str]:
    """Ask what policies keep of marked evidence, and whether the proxy ranks them as the marks do."""
    marked = [trace for traces in sources.values() for trace in traces if _is_marked(trace)]
    names = [name for name, traces in sources.items() if any(map(_is_marked, traces))]
    if not marked:
        return ["## Evidence", "", "No conversation of these folders marks what its messages need.", ""]
    true, proxied = (pd.concat([kept(trace, by) for trace in marked]) for by in ("marks", "names"))
    shares = [_shares(rows) for rows in (true, proxied)]
    asked = (list(POLICIES), list(IMPORTANCE))
    taus = [[kendall(*(frame[at].loc[each] for frame in shares)) for at in PARTS] for each in asked]
    shown = (100 * shares[0]).map("{:.0f} %".format).rename(columns="at {:.0%}".format).reset_index()
    return [
        "## Evidence",
        "",
        f"{len(marked)} conversations with marks ({', '.join(names)}).",
        "Share of the marked evidence that is there when it is needed, with "
        "that part of the conversation as the history's budget:",
        "",
        *table(shown),
        "",
        f"Rank agreement (Kendall's tau, mean of the budgets) of the proxy with the marks: {np.mean(taus[0]):.2f} "
        f"over all policies that bring nothing back (0.5 promised), {np.mean(taus[1]):.2f} among those by importance "
        "(0.45 promised).",
        "",
    ]


def _is_marked(trace: bk.Trace) -> bool:
    return any(message.raw.get("evidence") for message in trace.messages)


def kept(trace: bk.Trace, by: Any) -> pd.DataFrame:
    """Replay a conversation under every policy at parts of its own size."""
    count, found = bk.counter("o200k_base"), bk.evidence(trace, by=by)
    whole = int(trace.counts(count).sum())
    budget = bk.Budget(10 * whole, [], [bk.Allocation("history"), bk.Allocation("current")], remainder="history")
    options = {"roles": {"step": "current", "current": "current", "user": "history", "assistant": "history",
                         "tool": "history", "system": "history"}}  # fmt: skip
    frames = []
    for part in PARTS:
        every = {**POLICIES, **IMPORTANCE, **RETURNING}
        frame = bk.evidence_shares(trace, budget, every, [round(part * whole)], found, **options)
        bound = frame.iloc[:1].assign(policy="hindsight", present=(frame["possible"] * frame["needed"]).iloc[:1])
        frames.append(pd.concat([frame, bound]).assign(part=part))
    return pd.concat(frames)


def _shares(rows: pd.DataFrame) -> pd.DataFrame:
    sums = rows.groupby(["policy", "part"], sort=False)[["needed", "present"]].sum()
    return (sums["present"] / sums["needed"]).unstack("part").rename_axis(columns=None)


def kendall(one: pd.Series[float], other: pd.Series[float]) -> float:
    """Return Kendall's tau-b.

    Examples
    --------
    >>> kendall(pd.Series([1, 2, 3]), pd.Series([1, 3, 2])).__round__(2)
    0.33
    """
    above = np.triu_indices(len(one), 1)
    signs = [np.sign(np.subtract.outer(each.to_numpy(), each.to_numpy())[above]) for each in (one, other)]
    untied = float(np.sqrt(np.prod([(each != 0).sum() for each in signs], dtype=float)))
    return float((signs[0] * signs[1]).sum() / untied) if untied else 0.0


def forecasts(sources: dict[str, list[bk.Trace]]) -> list[str]:
    """Draw the rest of conversations from their first third, and look where the truth lies; not of made-up ones."""
    real = [(name, trace) for name, traces in sources.items() for trace in traces if not trace.meta.get("made_up")]
    rows = [row for name, trace in real for row in _forecast(name, trace)]
    if not rows:
        return []
    frame = pd.DataFrame(rows)
    widths = list(WIDTHS)
    shown = []
    for at, group in frame.groupby("at", sort=False):
        learned = [_held_by_others(frame, group, name, widths) for name in group["source"].unique()]
        held = group[f"inside {1.0}"].mean()
        row = {"at": at, "conversations": len(group), "promised": "90 %", "held": f"{100 * held:.0f} %"}
        row["held, width learned on the other sources"] = f"{100 * float(np.concatenate(learned).mean()):.0f} %"
        row["median error"] = f"{100 * group['middle'].median():.1f} %"
        row["of the straight line"] = f"{100 * group['line'].median():.1f} %"
        shown.append(row)
    by_source = frame.groupby("source", sort=False)[["inside 1.0", "middle", "line"]].agg(["mean", "median"])
    each = pd.DataFrame(
        {
            "source": by_source.index,
            "conversations": frame.groupby("source", sort=False).size().to_numpy() // 3,
            "held": (100 * by_source["inside 1.0", "mean"]).map("{:.0f} %".format).to_numpy(),
            "median error": (100 * by_source["middle", "median"]).map("{:.1f} %".format).to_numpy(),
            "of the straight line": (100 * by_source["line", "median"]).map("{:.1f} %".format).to_numpy(),
        }
    )
    return [
        "## Forecasts: sizes to come",
        "",
        "The first third of a conversation of 6 turns and more is seen, the rest foretold. Errors are those of the "
        "size of the whole conversation. The",
        "shipped width of the band was learned on such conversations; beside it stands what is held when the width "
        "is learned on all other sources (one left out at a time).",
        "",
        *table(pd.DataFrame(shown)),
        "",
        *table(each),
        "",
    ]


def _held_by_others(frame: pd.DataFrame, group: pd.DataFrame, source: str, widths: Sequence[float]) -> np.ndarray:
    """Take the least width that holds nine in ten of the other sources' conversations, and say which of its own."""
    others = frame[frame["source"] != source]
    enough = [width for width in widths if others[f"inside {width}"].mean() >= 0.9]
    return group.loc[group["source"] == source, f"inside {enough[0] if enough else widths[-1]}"].to_numpy(float)


def _forecast(source: str, trace: bk.Trace) -> Iterator[dict[str, object]]:
    count = bk.counter("o200k_base")
    sizes = turn_sizes(trace, count)
    if len(sizes) < 6:
        return
    seen = max(2, len(sizes) // 3)
    start = int(trace.counts(count)[: trace.turns[0].start].sum()) + int(sizes[:seen].sum())
    for at, part in (("a quarter", 0.25), ("half", 0.5), ("the end", 1.0)):
        turns = max(1, round((len(sizes) - seen) * part))
        truth = start + int(sizes[seen : seen + turns].sum())
        row: dict[str, object] = {"source": source, "at": at}
        drawn = {width: paths(sizes[:seen], turns, start, 400, widen=width)[:, -1] for width in WIDTHS}
        for width, ends in drawn.items():
            low, high = np.quantile(ends, (0.05, 0.95))
            row[f"inside {width}"] = bool(low <= truth <= high)
        row["middle"] = abs(float(np.median(drawn[1.0])) / truth - 1)
        yield row | {"line": abs(float(straight_line(sizes[:seen], turns, start)[-1]) / truth - 1)}


if __name__ == "__main__":
    main()
