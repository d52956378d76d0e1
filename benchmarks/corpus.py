"""A corpus larger than memory, counted exactly: ``python -m benchmarks.corpus FOLDER`` writes corpus.md.

The folder's UTF-8 files are written into one file, again and again until it has the size. Each way counts it in a
process of its own, whose peak of resident memory is read at the end. The count is checked: passes over the folder meet
at seams, so the tokens of one pass, encoded by tiktoken in one go, times the passes are those of all.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.measure import machine
from budgetkit import streaming
from budgetkit.counters import counter, encodings, speed

RESULTS = Path(__file__).parent / "corpus.md"
ENCODING = "o200k_base"
WAYS = {
    "plain": "this process, tiktoken alone",
    "gigatoken": "this process, with gigatoken",
    "distributed": "the same on two Dask workers",
}


@dataclass(frozen=True, slots=True)
class Run:
    """What one way of counting took: seconds, and bytes of memory before and at most, of all its processes."""

    way: str
    tokens: int
    seconds: float
    before: int
    peak: int


def main() -> None:
    """Write the corpus, count it in each way and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.corpus", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=float, default=1e9, help="bytes of the corpus, at least")
    # For the processes that this one starts.
    parser.add_argument("--count", choices=WAYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.count:
        print(json.dumps(asdict(counted(asked.folder, asked.count))))
        return
    with tempfile.TemporaryDirectory() as home:
        once, corpus = Path(home) / "once.txt", Path(home) / "corpus.txt"
        passes = written(asked.folder, once, corpus, asked.size)
        runs = [measured(corpus, way) for way in WAYS if way == "plain" or find_spec(way)]
        expected = passes * len(
            encodings.encoding(ENCODING).encode(once.read_bytes().decode(), disallowed_special=())
        )
        RESULTS.write_text(
            "\n".join(page(runs, corpus.stat().st_size, passes, expected)), encoding="utf-8"
        )


def written(folder: Path, once: Path, corpus: Path, size: float) -> int:
    """Write the folder's texts once, and as often as the size takes; return how often that is."""
    with once.open("wb") as stream:
        for text in texts(folder):
            stream.write(b"\n" + text)
        stream.write(b"x")  # and the next pass begins with a line end: a seam
    passes = math.ceil(size / once.stat().st_size)
    with corpus.open("wb") as stream:
        for _ in range(passes):
            with once.open("rb") as part:
                shutil.copyfileobj(part, stream)
    return passes


def texts(folder: Path) -> Iterator[bytes]:
    """Give what of a folder is text."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        yield data


def measured(corpus: Path, way: str) -> Run:
    """Count in one way in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.corpus", str(corpus), "--count", way]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout.strip(), flush=True)
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def counted(corpus: Path, way: str) -> Run:
    """Count the corpus; loading the encoding is not timed."""
    without = (
        nullcontext()
        if way == "gigatoken"
        else mock.patch.object(speed, "accelerated", return_value=None)
    )
    with without, client_of(way) as client:
        counter(ENCODING)("Hello world")
        before = memory(client)
        start = time.perf_counter()
        found = streaming.count_files([corpus], ENCODING, client, progress=True)
        seconds = time.perf_counter() - start
        return Run(way, int(found["tokens"].sum()), seconds, before, memory(client))


def client_of(way: str) -> Any:
    """Start a cluster of this machine's own, where one is asked for."""
    if way != "distributed":
        return nullcontext()
    from distributed import Client

    return Client(n_workers=2, threads_per_worker=1, dashboard_address=None)


def memory(client: Any) -> int:
    """Return the most bytes that this process, and those of the cluster, have held so far."""
    return most_held() + sum(client.run(most_held).values() if client else ())


def most_held() -> int:
    """Return the most bytes that a process has held so far; on Linux `ru_maxrss` starts at the parent's peak."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def page(runs: list[Run], size: int, passes: int, expected: int) -> Iterator[str]:
    """Write the page."""
    yield from (
        "# A corpus counted in batches",
        "",
        f"Written by `python -m benchmarks.corpus`: one file of {size / 1e6:,.0f} MB, the UTF-8 files of a folder "
        f"{passes} times over, counted exactly",
        f"with {ENCODING} in blocks of {streaming.BLOCK / 2**20:.0f} MiB; memory is the most that was resident, "
        "before the count and at its end.",
        "",
        machine("budgetkit", "tiktoken", "gigatoken", "distributed"),
        "",
        "| way | tokens | | time | MB/s | memory before | memory at most |",
        "| --- | --: | --- | --: | --: | --: | --: |",
    )
    for run in runs:
        exact = "exact" if run.tokens == expected else f"wrong, {expected:,} expected"
        held = f"{run.before / 1e6:,.0f} MB | {run.peak / 1e6:,.0f} MB"
        rate = f"{run.seconds:.1f} s | {size / 1e6 / run.seconds:.1f}"
        yield f"| {WAYS[run.way]} | {run.tokens:,} | {exact} | {rate} | {held} |"
    yield ""


if __name__ == "__main__":
    main()
