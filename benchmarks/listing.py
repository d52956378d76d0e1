"""The list of sessions beside ccusage, and predicted cache reads beside replay-doctor: writes listing.md.

    python -m benchmarks.listing FOLDER --ccusage "node node_modules/.bin/ccusage" [--replay-doctor replay-doctor]

FOLDER holds sessions of Claude Code, Codex and pi, packed by xz or not, whose names begin with their program's. They
are laid out in a made-up home until it holds 30 MB. Both programs list them in turn, five times warm and five times
cold (budgetkit without its kept bills; ccusage keeps none), and the medians stand beside each other. Sums must be
equal.
The calibration is the share of a session's requests whose cache read is predicted exactly, by what came before it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from warnings import catch_warnings

import budgetkit as bk
from benchmarks.measure import machine

PAGE: Final = Path(__file__).parent / "listing.md"
SIZE: Final = 30_000_000
REPEATS: Final = 5
#: Where each program keeps a session, by the name of its file.
HOMES: Final = {
    "claude-code": ".claude/projects/{0}/{0}.jsonl",
    "codex": ".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{0}.jsonl",
    "pi": ".pi/agent/sessions/{0}/{0}.jsonl",
}
#: The same programs' names here and in ccusage.
NAMES: Final = {
    "claude-code": ("Claude Code", "claude"),
    "codex": ("Codex", "codex"),
    "pi": ("pi", "pi"),
}


def lay_out(folder: Path, home: Path) -> dict[str, Path]:
    """Write the sessions of a folder where their programs keep them, at most 30 MB; return them by name."""
    files: dict[str, Path] = {}
    size = 0
    for path in sorted(folder.iterdir()):
        name = path.name.partition(".")[0]
        pattern = HOMES.get(name.rpartition("_")[0])
        if pattern is None or size > SIZE:
            continue
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        size += len(content)
        files[name] = home / pattern.format(name)
        files[name].parent.mkdir(parents=True, exist_ok=True)
        files[name].write_bytes(content)
    return files


def run(command: Sequence[str], home: Path) -> tuple[str, float]:
    """Run a command in a home; return its output and the seconds that it took."""
    place = {"HOME": str(home), "BUDGETKIT_CACHE": str(home / "kept"), "NO_COLOR": "1"}
    begun = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | place
    )
    return done.stdout, time.perf_counter() - begun


def timings(home: Path, ccusage: list[str]) -> dict[str, float]:
    """Return the median seconds of both lists, run in turn."""
    ours = [sys.executable, "-m", "budgetkit", "sessions"]
    theirs = [*ccusage, "session", "--offline"]
    seconds: dict[str, list[float]] = {"cold": [], "warm": [], "ccusage": []}
    for _ in range(REPEATS):
        shutil.rmtree(home / "kept", ignore_errors=True)
        for name, command in (("cold", ours), ("ccusage", theirs), ("warm", ours)):
            seconds[name].append(run(command, home)[1])
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def sums(home: Path, ccusage: list[str]) -> Iterator[tuple[str, int, int, float, float]]:
    """Give for each program the prompt tokens and the dollars, ours and ccusage's."""
    ours = [sys.executable, "-m", "budgetkit", "sessions", "--by", "agent", "--json"]
    rows = {row["agent"]: row for row in json.loads(run(ours, home)[0])}
    for name, command in NAMES.values():
        if name not in rows:
            continue
        answer = run([*ccusage, command, "daily", "--offline", "--json"], home)[0]
        totals = json.loads(answer)["totals"]
        kinds = ("inputTokens", "cacheReadTokens", "cacheCreationTokens")
        tokens = sum(int(totals[kind]) for kind in kinds)
        cost = float(totals.get("totalCost", totals.get("costUSD")))
        yield name, rows[name]["prompt"], tokens, rows[name]["cost"] or 0.0, cost


def predicted(path: Path) -> float:
    """Return the share of a session's requests after the first whose read we predict exactly."""
    with catch_warnings(action="ignore"):
        rows = bk.Session(path).requests().iloc[1:]
    return float((rows["foretold"] == rows["read"]).mean())


def calibrations(files: dict[str, Path], doctor: str) -> Iterator[tuple[str, str, float]]:
    """Give for each session of Claude Code the share that replay-doctor predicts exactly, and ours."""
    for name, path in files.items():
        if not name.startswith("claude-code"):
            continue
        answer = subprocess.run([doctor, str(path)], capture_output=True, text=True, check=False)
        share = re.search(r"(\d+\.\d)% exact", answer.stdout)
        yield name, share.group(1) + "%" if share else "not said", predicted(path)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.listing", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ccusage", required=True)
    parser.add_argument("--replay-doctor", dest="doctor")
    options: Any = parser.parse_args()
    ccusage = options.ccusage.split()
    lines = ["# The list of sessions, beside ccusage", ""]
    with TemporaryDirectory() as place:
        home = Path(place)
        files = lay_out(options.folder, home)
        size = sum(path.stat().st_size for path in files.values()) / 1e6
        taken = timings(home, ccusage)
        load = os.getloadavg()[0]
        lines += [
            f"Written by `python -m benchmarks.listing`: {len(files)} sessions, {size:.0f} MB, medians of {REPEATS}"
            f" runs in turn; the machine's load was {load:.1f}.",
            "",
            machine("budgetkit", "numpy", "pandas"),
            "",
            "| | seconds | times ccusage | wanted |",
            "|---|--:|--:|--:|",
            f"| ccusage | {taken['ccusage']:.2f} | | |",
        ]
        for name, wanted in (("warm", 1.5), ("cold", 5)):
            ratio = taken[name] / taken["ccusage"]
            lines.append(f"| budgetkit, {name} | {taken[name]:.2f} | {ratio:.1f} | {wanted} |")
        lines += [
            "",
            "| | prompt tokens | ccusage's | dollars | ccusage's |",
            "|---|--:|--:|--:|--:|",
        ]
        for name, tokens, their_tokens, cost, their_cost in sums(home, ccusage):
            lines.append(
                f"| {name} | {tokens:,} | {their_tokens:,} | {cost:,.2f} | {their_cost:,.2f} |"
            )
        lines += ["", "Dollars differ where one of the two has no price for a session's model."]
        if options.doctor:
            lines += ["", "## Reads of the cache that are predicted exactly", ""]
            lines += ["| session | replay-doctor | budgetkit |", "|---|--:|--:|"]
            for name, theirs, share in calibrations(files, options.doctor):
                lines.append(f"| {name} | {theirs} | {share:.1%} |")
    PAGE.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
