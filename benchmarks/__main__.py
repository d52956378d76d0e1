"""Measure, write ``benchmarks/results.md``, draw it, and add the medians to ``benchmarks/history.csv``.

Ends with 1, and names them, where targets are missed.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator
from datetime import date
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from benchmarks import (
    arithmetic,
    browser,
    counting,
    cutting,
    exploring,
    figure,
    living,
    replaying,
    startup,
    traces,
)
from benchmarks.measure import Row, machine, machine_class, readable

RESULTS = Path(__file__).parent / "results.md"
HISTORY = Path(__file__).parent / "history.csv"
COLUMNS = ("date", "machine", "version", "group", "what", "median_seconds", "target", "met")
PEERS = ("astro-anchor", "langchain-core", "litellm", "tokenizers", "gigatoken")
VERSIONS = ("budgetkit", "tiktoken", "numpy", "pandas", "plotly", "jupyterlab", *PEERS)


def main() -> None:
    """Run the groups that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--traces", type=Path, nargs="*", default=[], help="folders with conversations of your own"
    )
    groups_known = (
        "start",
        "count",
        "cut",
        "plan",
        "traces",
        "replay",
        "live",
        "explore",
        "browser",
    )
    parser.add_argument(
        "--only", nargs="*", choices=groups_known, help="these groups alone, shown and not stored"
    )
    asked = parser.parse_args()
    groups = {
        "start": startup.rows,
        "count": counting.rows,
        "cut": cutting.rows,
        "plan": arithmetic.rows,
        "traces": lambda: traces.rows(asked.traces),
        "replay": replaying.rows,
        "live": living.rows,
        "explore": exploring.rows,
        "browser": browser.rows,
    }
    chosen = [make for name, make in groups.items() if not asked.only or name in asked.only]
    found = list(_printed(chain.from_iterable(make() for make in chosen)))
    if not asked.only:
        RESULTS.write_text(_page(found), encoding="utf-8")
        figure.main()
        remember(found, HISTORY)
    missed = [_line(row) for row in found if row.met is False]
    if missed:
        sys.exit("\n".join([f"{len(missed)} targets are missed:", *missed]))


def remember(rows: Iterable[Row], path: Path) -> None:
    """Add the medians of a run to the history, a line each; figures compare within a class of machine."""
    begun = path.is_file()
    day, where, release = date.today().isoformat(), machine_class(), version("budgetkit")
    with path.open("a", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        if not begun:
            lines.writerow(COLUMNS)
        for row in rows:
            met = {None: "", True: "met", False: "missed"}[row.met]
            lines.writerow(
                [day, where, release, row.group, row.name, f"{row.median:.3g}", row.target, met]
            )


def _printed(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        print(_line(row), flush=True)
        yield row


def _line(row: Row) -> str:
    met = {None: "", True: "met", False: "missed"}[row.met]
    times = f"{readable(row.median)} | {readable(row.p95)}"
    return f"| {row.group} | {row.name} | {times} | {row.target} | {met} | {row.note} |"


def _page(rows: list[Row]) -> str:
    head = "| group | what | median | p95 | target | | beside |\n| --- | --- | --: | --: | --: | --- | --- |"
    return "\n".join(
        [
            "# What budgetkit costs in time",
            "",
            "Written by `make bench`: every group side by side in one run, repeats interleaved. Compare figures",
            "within a group; absolute times are those of the machine. Documents and messages are counted",
            f"{counting.IN_A_ROW} times in a row, and the time is that of one.",
            "",
            machine(*VERSIONS),
            "",
            "![Times of budgetkit and its peers, side by side](results.svg)",
            "",
            head,
            *(_line(row) for row in rows),
            "",
        ]
    )


if __name__ == "__main__":
    main()
