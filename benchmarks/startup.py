"""Fresh processes: what importing and the first exact count cost."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row, row
from budgetkit import files

TEXT = "'The quick brown fox jumps over the lazy dog. ' * 20"
CACHE_NAMES = {
    "o200k_base": "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
    "cl100k_base": "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
}


def rows(repeats: int = 15) -> Iterator[Row]:
    """Give import time over bare Python, and the first count beside tiktoken's with its cache warm."""
    with tempfile.TemporaryDirectory() as cache:
        _warm(Path(cache))
        scripts = {"bare": "pass", "import": "import budgetkit"}
        for encoding in CACHE_NAMES:
            scripts[f"tiktoken {encoding}"] = (
                f"import tiktoken; tiktoken.get_encoding('{encoding}').encode({TEXT})"
            )
            scripts[f"budgetkit {encoding}"] = (
                f"import budgetkit; budgetkit.counter('{encoding}')({TEXT})"
            )
        seconds = _processes(scripts, cache, repeats)
    bare = sorted(seconds["bare"])[repeats // 2]
    yield row(
        "start", "import budgetkit, over bare Python", [s - bare for s in seconds["import"]], 15e-3
    )
    for encoding in CACHE_NAMES:
        theirs = row(
            "start",
            f"first count, tiktoken, cache warm, {encoding}",
            seconds[f"tiktoken {encoding}"],
        )
        yield theirs
        limit = 1.15 * theirs.median
        yield row(
            "start", f"first count, budgetkit, {encoding}", seconds[f"budgetkit {encoding}"], limit
        )


def _warm(cache: Path) -> None:
    """Put the shipped vocabularies where tiktoken looks for what it would download."""
    for encoding, address in CACHE_NAMES.items():
        name = hashlib.sha1(address.encode()).hexdigest()
        (cache / name).write_bytes(
            gzip.decompress(files.read_bytes(f"encodings/{encoding}.tiktoken.gz"))
        )


def _processes(scripts: dict[str, str], cache: str, repeats: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in scripts}
    environment = {
        "TIKTOKEN_CACHE_DIR": cache,
        "PYTHONPATH": str(Path(files.__file__).parent.parent),
    }
    for _ in range(repeats + 1):
        for name, script in scripts.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", script], check=True, env=environment)
            seconds[name].append(time.perf_counter() - start)
    return {name: found[1:] for name, found in seconds.items()}
