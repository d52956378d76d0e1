"""Write data/exactness.csv: ``python -m benchmarks.exactness CALLS...`` counts recorded calls by the rules.

CALLS are files of recorded calls (JSON lines, packed by xz or not): a request, the model that answered, the provider's
``input_tokens`` and the project each. Run it where all vocabularies are (extras ``claude`` and ``makers``, and Gemma's
file in ``$BUDGETKIT_TOKENIZERS``), and with ``--estimates`` where no extra is. Rules that a run has no call of keep
their rows. In an interval a project weighs as the root of its calls.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.calibrations import project_of, recorded
from budgetkit.requests import count_request
from budgetkit.requests.billing.estimates import EstimatedRules
from budgetkit.requests.billing.evidence import CALLS, Evidence, coarser_names, evidence_rows
from budgetkit.requests.billing.frames import FrameRules
from budgetkit.requests.billing.framing import rules_for
from budgetkit.requests.billing.openai import OpenAIRules
from budgetkit.requests.reading.parts import objects_in
from budgetkit.requests.reading.request import read_request

TABLE = Path(__file__).parent.parent / "data" / "exactness.csv"
READ = "2026-11-23"
#: The end of an id that OpenAI writes; eight of its digits are the time of the answer, in seconds since 1970.
_ID = re.compile(r"[a-z]+_([0-9a-f]{32,})")
_TIME_AT = (0, 16, 18)  # where they begin, by the form of the id
_FIRST_ANSWER = 1_735_689_600  # 2025-01-01: the interface is younger
_AS_TODAY = 1_743_465_600  # 2025-04-01: from then on the interface bills as it does today
_REDACTED = "REDACTED"
TAIL = 0.04  # of the weight at either end, outside the interval
HEAD = (
    "# How often the rules counted recorded calls of public projects on GitHub exactly (request and provider's own "
    f"usage), by the parts of a call; written by benchmarks/exactness.py, calls read {READ}; columns in data/README.md"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """One recorded call, and how far its count is off."""

    names: tuple[str, ...]  # its combination and the coarser ones
    project: str
    counted: int
    billed: int
    request: str  # its digest
    is_past: bool = False  # whether it was billed otherwise than today

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
    rules = rules_of_call(call)
    is_responses = isinstance(rules, OpenAIRules) and request.shape == "responses"
    return Judged(
        names=coarser_names(request, rules.name),
        project=project_of(call),
        counted=count.tokens,
        billed=call["input_tokens"],
        request=hashlib.sha256(written.encode()).hexdigest(),
        is_past=is_responses and is_past(call.get("response")),
    )


def is_past(answer: Any) -> bool:
    """Say whether an answer's ids tell that it was given before OpenAI billed as today, or that no provider wrote them.

    >>> is_past([{"id": "msg_67d44729a01081908211b3a88551948e0e8e4f6e450e93f0"}]), is_past([{"id": "fc_12345xyz"}])
    (True, True)
    >>> is_past([{"id": "fc_0a4196b7bcc23a9a00695971f347648195bd604c6a0cb0a69a"}]), is_past([])
    (False, False)
    """
    ids = [str(item["id"]) for item in objects_in(answer) if item.get("id")]
    if not ids or _REDACTED in ids[0]:
        return False
    written = _ID.fullmatch(ids[0])
    if written is None:
        return True
    times = (int(written[1][at : at + 8], 16) for at in _TIME_AT)
    return any(_FIRST_ANSWER <= time < _AS_TODAY for time in times)


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
    """Sum up one combination; what was billed otherwise than today takes no part in its interval."""
    low, high = interval([row for row in rows if not row.is_past] or rows)
    return Evidence(
        combination=name,
        calls=len(rows),
        projects=len({row.project for row in rows}),
        exact=sum(row.counted == row.billed for row in rows),
        low=round(low, 4),
        high=round(high, 4),
    )


def interval(rows: Sequence[Judged]) -> tuple[float, float]:
    """Return between which errors 92 % of calls lie; a project weighs as the root of its calls: none decides alone."""
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


def rules_of_row(combination: str) -> str:
    """Return the rules, and the interface, that a row is of.

    >>> rules_of_row("gpt-4o chat: tools, calls")
    'gpt-4o chat'
    """
    return combination.partition(": ")[0]


def main() -> None:
    """Write the table to its file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=Path, nargs="+")
    parser.add_argument("--estimates", action="store_true", help="write the rows of estimates")
    settings = parser.parse_args()
    judged = [judge(call) for path in settings.calls for call in recorded(path)]
    rows = [
        row
        for row in table(call for call in judged if call is not None)
        if row.combination.startswith("estimate") == settings.estimates
    ]
    tried = {rules_of_row(row.combination) for row in rows}
    rows += [row for row in evidence_rows().values() if rules_of_row(row.combination) not in tried]
    rows.sort(key=lambda row: row.combination)
    TABLE.write_text(written(rows), encoding="utf-8")
    earned = [row for row in rows if row.earns_exact and ": any" not in row.combination]
    print(
        f"{len(judged)} calls, {len(rows)} combinations, {len(earned)} of them exact (from {CALLS} calls on):"
    )
    for row in earned:
        print(f"  {row.combination}: {row}")


if __name__ == "__main__":
    main()
