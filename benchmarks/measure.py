"""Interleaved repeats, medians and 95th percentiles: the one way in which every figure here is measured."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure."""

    group: str
    name: str
    median: float
    p95: float
    repeats: int
    target: str = ""
    met: bool | None = None
    note: str = ""


def interleaved(
    cases: Mapping[str, Callable[[], object]], repeats: int, in_a_row: int = 1
) -> dict[str, list[float]]:
    """Run the cases in turn, so that a slow moment of the machine strikes them all; seconds by case.

    Each time a case runs so often in a row, and the time is that of one.
    """
    for case in cases.values():
        case()
    gc.freeze()  # exempts earlier objects from the collections below
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, case in cases.items():
            gc.collect()
            start = time.perf_counter()
            for _ in range(in_a_row):
                case()
            seconds[name].append((time.perf_counter() - start) / in_a_row)
    gc.unfreeze()
    return seconds


def row(
    group: str,
    name: str,
    seconds: list[float],
    limit: float | None = None,
    times: int = 1,
    limit_p95: float | None = None,
) -> Row:
    """Sum up one case; `times` calls were timed as one.

    It is met where its median stays under `limit` and its 95th percentile under `limit_p95`, both in seconds.
    """
    each = sorted(s / times for s in seconds)
    median, p95 = statistics.median(each), each[min(len(each) - 1, int(0.95 * len(each)))]
    bounds = [("", median, limit), ("p95 ", p95, limit_p95)]
    asked = [
        (f"{what}< {readable(most)}", found < most)
        for what, found, most in bounds
        if most is not None
    ]
    met = all(kept for _, kept in asked) if asked else None
    return Row(group, name, median, p95, len(each), ", ".join(said for said, _ in asked), met)


def rows_beside(
    group: str,
    seconds: Mapping[str, list[float]],
    baseline: str,
    ratios: Mapping[str, float],
    notes: Mapping[str, str],
    limits: Mapping[str, float] | None = None,
) -> Iterator[Row]:
    """Sum up cases beside one of them; `ratios` are how many times as fast as it a case is to be."""
    slowest = statistics.median(seconds[baseline])
    for name, each in seconds.items():
        found = row(group, name, each, (limits or {}).get(name))
        times = slowest / found.median
        said = [notes.get(name, ""), "" if name == baseline else f"{times:.3g} times as fast"]
        if name in ratios:
            found = replace(
                found, target=f"{ratios[name]:g} times as fast", met=times >= ratios[name]
            )
        yield replace(found, note=", ".join(filter(None, said)))


def readable(seconds: float) -> str:
    """Write seconds with a unit that leaves one to three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def machine(*packages: str) -> str:
    """Say what the figures were measured on: cores, system, and those of the packages that are installed."""
    installed = []
    for name in packages:
        try:
            installed.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"{machine_class()}.{platform.python_version_tuple()[2]}; {', '.join(installed)}."


def machine_class() -> str:
    """Say which machines' figures may be compared: the cores that may be used, the system and Python."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = ".".join(platform.python_version_tuple()[:2])
    return f"{cores} cores, {platform.system()} {platform.machine()}, Python {python}"
