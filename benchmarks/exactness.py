"""Write data/exactness.csv: ``python -m benchmarks.exactness CALLS...`` counts recorded calls by the rules.

CALLS are files of recorded calls (JSON lines, packed by xz or not): a request, the model that answered, the provider's
``input_tokens`` and the project each. Run it where all vocabularies are (extras ``claude`` and ``open``, and Gemma's
file in ``$BUDGETKIT_TOKENIZERS``). In an interval a project weighs as the root of its calls.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.calibrations import project_of, recorded
from budgetkit.requests import count_request
from budgetkit.requests.billing.estimates import EstimatedRules
from budgetkit.requests.billing.frames import FrameRules
from budgetkit.requests.billing.framing import OpenAIRules, rules_for
from budgetkit.requests.billing.request_count import CALLS, Evidence, coarser_names, rules_name
from budgetkit.requests.reading.request import read_request

TABLE = Path(__file__).parent.parent / "data" / "exactness.csv"
READ = "2026-11-23"
TAIL = 0.025  # of the weight at either end, outside the interval
HEAD = (
    "# How often the rules were right about recorded calls of public projects on GitHub (request and provider's own "
    f"usage), by what a call holds; written by benchmarks/exactness.py, calls read {READ}; columns in data/README.md"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """One recorded call, and how far its count is off."""

    names: tuple[str, ...]  # its combination and the coarser ones
    project: str
    counted: int
    billed: int
    request: str  # its digest

    @property
    def error(self) -> float:
        """Billed less counted, as a share of the count."""
        return (self.billed - self.counted) / max(1, self.counted)


def judge(call: dict[str, Any]) -> Judged | None:
    """Count one call; None for what cannot be read, or holds something that nobody can count."""
    host = host_of_call(call)
    try:
        request = read_request(call["request"])
        count = count_request(call["request"], model=call["model"], host=host)
    except ValueError:
        return None
    if count.uncounted or any(row.kind == "media" for row in count.ledger):
        return None
    written = json.dumps(call["request"], sort_keys=True, default=str)
    return Judged(
        names=coarser_names(request, rules_name(rules_of_call(call))),
        project=project_of(call),
        counted=count.tokens,
        billed=call["input_tokens"],
        request=hashlib.sha256(written.encode()).hexdigest(),
    )


def rules_of_call(call: dict[str, Any]) -> OpenAIRules | FrameRules | EstimatedRules:
    """Return the rules that bill a call, those of the host that passed it on where there are such."""
    return rules_for(call["model"], host_of_call(call))


def host_of_call(call: dict[str, Any]) -> str:
    """Return who passed a call on, as far as the recording tells: Vertex by a field of its usage."""
    if "trafficType" in json.dumps(call["usage"]):
        return "vertex"
    return str(call.get("host") or "").partition(".")[0]


def table(calls: Iterable[Judged]) -> list[Evidence]:
    """Sum up all combinations; equal calls of one project stand once."""
    by_name: dict[str, list[Judged]] = {}
    for call in dict.fromkeys(calls):
        for name in dict.fromkeys(call.names):
            by_name.setdefault(name, []).append(call)
    return [evidence(name, rows) for name, rows in sorted(by_name.items())]


def evidence(name: str, rows: Sequence[Judged]) -> Evidence:
    """Sum up one combination."""
    low, high = interval(rows)
    return Evidence(
        combination=name,
        calls=len(rows),
        projects=len({row.project for row in rows}),
        exact=sum(row.counted == row.billed for row in rows),
        low=round(low, 4),
        high=round(high, 4),
    )


def interval(rows: Sequence[Judged]) -> tuple[float, float]:
    """Return between which errors 19 in 20 calls lie; a project weighs as the root of its calls: none decides alone."""
    calls_of = Counter(row.project for row in rows)
    ordered = sorted((row.error, calls_of[row.project] ** -0.5) for row in rows)
    total = sum(weight for _, weight in ordered)
    tail = TAIL * total

    def end(pairs: Sequence[tuple[float, float]]) -> float:
        """Return the error behind which the tail lies."""
        passed = 0.0
        for error, weight in pairs:
            passed += weight
            if passed > tail:
                return error
        return pairs[-1][0]

    return min(0.0, end(ordered)), max(0.0, end(ordered[::-1]))


def written(rows: Sequence[Evidence]) -> str:
    """Write the table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("combination", "calls", "projects", "exact", "low", "high"))
    for row in rows:
        writer.writerow(
            (row.combination, row.calls, row.projects, row.exact, f"{row.low:g}", f"{row.high:g}")
        )
    return f"{HEAD}\n{text.getvalue()}"


def main() -> None:
    """Write the table to its file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=Path, nargs="+")
    settings = parser.parse_args()
    judged = [judge(call) for path in settings.calls for call in recorded(path)]
    rows = table(call for call in judged if call is not None)
    TABLE.write_text(written(rows), encoding="utf-8")
    earned = [row for row in rows if row.earns_exact and ": any" not in row.combination]
    print(
        f"{len(judged)} calls, {len(rows)} combinations, {len(earned)} of them exact (from {CALLS} calls on):"
    )
    for row in earned:
        print(f"  {row.combination}: {row}")


if __name__ == "__main__":
    main()
