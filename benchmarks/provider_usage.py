"""Counts against the bill: ``python -m benchmarks.provider_usage CALLS [SESSION]`` writes provider-usage.md.

CALLS is a file of recorded calls, a request with the provider's usage each; SESSION a conversation whose
provider counted every request. Anthropic's tokenizer is not public, so its counts are estimates: cl100k_base
stands in, a constant and a slope are fitted, and each call is estimated without itself.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import budgetkit as bk
from budgetkit.billing import fit_bill
from budgetkit.framing import framing_for
from budgetkit.trace import readings
from budgetkit.trace.importers import usage_of

WHY = (
    "Why: a schema for the answer stands in the prompt in a form that is not published, and is not counted. The image",
    "does not say its size and is taken as 1,024 pixels square; at the 800 by 400 of its address it would be exact.",
    "The Responses interface shows tools in a form of its own: the same request, sent twice, was counted 58 and 59",
    "there, and `tool_choice: required` (otel-022) costs tokens that nothing here counts. Anthropic's calls with tools",
    "carry a hidden prompt of some 360 tokens; those with an answer schema or thinking are billed for more as well.",
)
RESULTS = Path(__file__).parent / "provider-usage.md"


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call."""

    id: str
    api: str
    model: str
    kind: str
    counted: int
    billed: int

    @property
    def off(self) -> int:
        """What is counted too much, in tokens."""
        return self.counted - self.billed


def calls(path: Path) -> Iterator[Call]:
    """Count the request of every recorded call."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for trace, raw in zip(bk.load_traces(path), map(json.loads, lines), strict=True):
        messages = trace.messages[: len(_sent(raw["request"]))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            count = bk.counter(raw["model"], unknown="o200k_base")
        usage = usage_of({**raw["usage"], **_cached(raw["usage"])}, 0)
        counted = framing_for(raw["model"]).request(messages, count, trace.tools)
        billed = usage["context_tokens"] if usage else 0
        yield Call(raw["id"], raw["api"], raw["model"], _kind(raw), counted, billed)


def _sent(request: dict[str, Any]) -> tuple[bk.Message, ...]:
    """Read the request alone, without what was answered."""
    stream = BytesIO(json.dumps(request).encode())
    return bk.load_trace(stream).messages


def _cached(usage: dict[str, Any]) -> dict[str, int]:
    names = {"cache_read": "cache_read_input_tokens", "cache_write": "cache_creation_input_tokens"}
    return {name: usage[own] for own, name in names.items() if usage.get(own)}


def _kind(raw: dict[str, Any]) -> str:
    request = raw["request"]
    if not raw["model"].startswith(("gpt", "o1", "o3", "o4", "claude")):
        return "another model"
    if raw["media"]:
        return "image"
    if request.get("response_format") or request.get("text") or "structured" in raw["meta"]["cassette"]:
        return "answer schema"
    if request.get("tools") or request.get("functions") or any("tool_calls" in m for m in request.get("messages", [])):
        return "tools"
    return "thinking" if request.get("thinking") else "text"


def table(found: list[Call]) -> pd.DataFrame:
    """Sum up by interface and kind."""
    frame = pd.DataFrame([{"api": c.api, "kind": c.kind, "off": c.off, "billed": c.billed} for c in found])
    grouped = frame.groupby(["api", "kind"], sort=True)
    return grouped.agg(
        calls=("off", "size"),
        exact=("off", lambda off: int((off == 0).sum())),
        within_3=("off", lambda off: int((off.abs() <= 3).sum())),
        lowest=("off", "min"),
        highest=("off", "max"),
    ).reset_index()


def anthropic(found: list[Call]) -> str:
    """Estimate the text-only calls, each by a fit to the others."""
    text = [c for c in found if c.api.startswith("anthropic") and c.kind == "text"]
    bill = fit_bill([c.counted for c in text], [c.billed for c in text])
    inside = sum(bill.interval(c.counted)[0] <= c.billed <= bill.interval(c.counted)[1] for c in text)
    return (
        f"Anthropic, text only: billed = {bill.constant:.1f} + {bill.slope:.3f} x counted, fitted to {bill.readings} "
        f"calls; estimated without itself, nine in ten lie between {bill.low:+.1f} and {bill.high:+.1f} tokens "
        f"({inside} of {len(text)} inside)."
    )


def session(path: Path) -> str:
    """Fit the first third of a session's readings, and report the error on the rest."""
    trace = bk.load_trace(path)
    frame = readings(trace, bk.counter("o200k_base"))
    third = len(frame) // 3
    bill = fit_bill(frame["counted"][:third].to_numpy(), frame["billed"][:third].to_numpy())
    rest = frame[third:]
    error = (bill.constant + bill.slope * rest["counted"] - rest["billed"]) / rest["billed"]
    return (
        f"{trace.id}: {len(frame)} readings, {frame['billed'].min():,} to {frame['billed'].max():,} tokens. Fitted "
        f"to the first {third}: {bill.constant:,.0f} + {bill.slope:.4f} x o200k_base. On the other {len(rest)} the "
        f"error is {np.abs(error).mean():.2%} on average, {np.abs(error).max():.2%} at most and "
        f"{error.iloc[-1]:+.2%} at the end."
    )


def _markdown(frame: pd.DataFrame) -> str:
    head = f"| {' | '.join(frame.columns)} |\n|{' --- |' * len(frame.columns)}"
    return "\n".join([head, *(f"| {' | '.join(map(str, row))} |" for row in frame.itertuples(index=False))])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=Path)
    parser.add_argument("session", type=Path, nargs="?")
    asked = parser.parse_args()
    found = list(calls(asked.calls))
    off = [c for c in found if c.off and c.kind != "another model" and not c.api.startswith("anthropic")]
    page = [
        "# Counts against the bill",
        "",
        f"Written by `python -m benchmarks.provider_usage` from {len(found)} recorded calls. Off is counted less",
        "billed, in tokens.",
        "",
        _markdown(table(found)),
        "",
        *(f"- {c.id}, {c.model}, {c.kind}: {c.counted} for {c.billed} ({c.off:+d})" for c in off),
        "",
        *WHY,
        "",
        anthropic(found),
        "",
        *([session(asked.session), ""] if asked.session else []),
    ]
    RESULTS.write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page))


if __name__ == "__main__":
    main()
