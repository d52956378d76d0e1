"""Recorded sessions: ``python -m benchmarks.sessions FOLDER [CONVERSATION]`` writes sessions.md.

FOLDER holds sessions of coding agents, packed by xz or not. For each: what is read of it, how well the reads of its
cache are foretold, and which causes its misses have. Where FOLDER has a MANIFEST.csv (columns file, requests, fresh,
cache_read, cache_write), what is read is held against it. CONVERSATION is one with tool results: what masking them
saves, by what reading from the cache costs.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from warnings import catch_warnings

import pandas as pd

import budgetkit as bk
from budgetkit.lab.sessions.foretelling import LEAST_MISS, expected
from budgetkit.lab.sessions.turning import by_price_of_reading

RESULTS: Final = Path(__file__).parent / "sessions.md"
_ENDINGS: Final = (".jsonl", ".json", ".jsonl.xz", ".json.xz")
_HELD: Final = {"requests": "requests", "fresh": "fresh", "cache_read": "read", "cache_write": "written"}


def loaded(folder: Path) -> Iterator[tuple[str, bk.Session]]:
    """Give each session of a folder that tells its usage, by the name of its file."""
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(_ENDINGS):
            continue
        with catch_warnings(action="ignore"):
            trace = bk.load_trace(path)
            if len(bk.trace.usage_frame(trace)) > 1:
                yield path.name, bk.Session(trace)


def program_of(name: str) -> str:
    """Return the program of a session, as the name of its file says it.

    >>> program_of("claude-code_1.jsonl.xz")
    'claude-code'
    """
    return name.partition(".")[0].rpartition("_")[0] or name


def table(sessions: list[tuple[str, bk.Session]]) -> pd.DataFrame:
    """Say for each program how many reads are foretold, plainly and with what happened, and what is unexplained."""
    rows: list[dict[str, Any]] = []
    for name, session in sessions:
        frame, missed = session.requests(), session.misses()
        plain = abs(expected(session.usage) - frame["read"]).iloc[1:] <= LEAST_MISS
        close = abs(frame["foretold"] - frame["read"]).iloc[1:] <= LEAST_MISS
        unexplained = missed.loc[missed["cause"] == "unexplained", "missed"].sum()
        row = {"program": program_of(name), "sessions": 1, "pairs": len(close), "plainly": int(plain.sum())}
        row |= {"foretold": int(close.sum()), "misses": len(missed), "missed": int(missed["missed"].sum())}
        rows.append(row | {"unexplained": int(unexplained)})
    return pd.DataFrame(rows).groupby("program").sum()


def causes(sessions: list[tuple[str, bk.Session]]) -> pd.DataFrame:
    """Sum the misses by cause."""
    every = pd.concat([session.misses() for _, session in sessions])
    sums = every.groupby("cause").agg(misses=("missed", "size"), missed=("missed", "sum"))
    return sums.sort_values("missed", ascending=False)


def differing(sessions: list[tuple[str, bk.Session]], manifest: Path) -> list[str]:
    """Name the sessions whose requests or tokens differ from those of a manifest."""
    with manifest.open(encoding="utf-8", newline="") as stream:
        held = {row["file"]: row for row in csv.DictReader(stream)}
    names = []
    for name, session in sessions:
        totals = session.totals()
        if name in held and any(int(held[name][column]) != totals[ours] for column, ours in _HELD.items()):
            names.append(name)
    return names


def page(folder: Path, conversation: Path | None) -> str:
    """Write the page."""
    sessions = list(loaded(folder))
    sums = table(sessions)
    lines = ["# Recorded sessions", ""]
    lines += [f"{len(sessions):,} sessions of coding agents with usage; `python -m benchmarks.sessions`.", ""]
    if (manifest := folder / "MANIFEST.csv").is_file():
        names = differing(sessions, manifest)
        told = ", ".join(names) if names else "none"
        lines += [f"Sessions whose requests, fresh, read or written tokens differ from an own reading: {told}.", ""]
    lines += ["## How many reads of the cache are foretold within 1,024 tokens", ""]
    lines += ["Plainly: what the request before read and wrote is read next.", ""]
    lines += ["| | sessions | pairs of requests | plainly | foretold | misses | tokens missed | unexplained |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name, row in sums.iterrows():
        shares = [row[column] / row["pairs"] for column in ("plainly", "foretold")]
        rest = row["unexplained"] / max(1, row["missed"])
        cells = [f"{row['sessions']:,}", f"{row['pairs']:,}", *(f"{share:.1%}" for share in shares)]
        cells += [f"{row['misses']:,}", f"{row['missed']:,}", f"{rest:.0%}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    by_cause = causes(sessions)
    lines += ["", "## Why they missed", "", "| cause | misses | tokens | share |", "|---|--:|--:|--:|"]
    for cause, row in by_cause.iterrows():
        lines.append(
            f"| {cause} | {row['misses']:,} | {row['missed']:,} | {row['missed'] / by_cause['missed'].sum():.0%} |"
        )
    lines += [
        "",
        "A cause is what the session shows to have happened before the request, or where its read stopped. The",
        "",
    ]
    lines[-2] += (
        " provider does not confirm it: *head changed with a user's message* and *older copy read* are shapes that"
    )
    lines[-2] += " repeat, not reasons that somebody named. *Unexplained* is what no shape fits."
    if conversation is not None:
        rule = bk.policies.ClearResults(keep_uses=10)
        trace = bk.load_trace(conversation)
        prices = by_price_of_reading(bk.Session(trace), {"masking": rule}, counter="o200k_base")
        lines += ["## What masking old tool results saves, by the price of a cached token", ""]
        lines += ["All but the newest ten results become placeholders, at every request; published without a cache: "]
        lines[-1] += "−52 % (arXiv 2508.21433)."
        lines += ["", "| a read costs, of the input price | change | |", "|--:|--:|---|"]
        for cell in prices.to_dict("records"):
            turn = "here it turns" if cell["turns"] else ""
            lines.append(f"| {cell['read']:g} | {cell['change']:+.1%} | {turn} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("conversation", type=Path, nargs="?")
    given = parser.parse_args()
    RESULTS.write_text(page(given.folder, given.conversation).rstrip() + "\n", encoding="utf-8")
