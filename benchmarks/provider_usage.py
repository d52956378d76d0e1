"""Counts against the bill: ``python -m benchmarks.provider_usage CALLS [SESSION]`` writes provider-usage.md.

CALLS is a file of recorded calls (JSON lines, packed by xz or not): a request, the model that answered, the provider's
``input_tokens`` and the project each. SESSION is a conversation whose provider counted every request. Estimates of
providers whose tokenizer is not public are made without the calls of their own project, intervals too.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import budgetkit as bk
from benchmarks import calibrations
from benchmarks.calibrations import kind_of, left_out, project_of, recorded, row_of, rows, spreads
from budgetkit.framing.openai_families import family_of
from budgetkit.framing.request import Request
from budgetkit.framing.requests import read_request
from budgetkit.trace import readings

RESULTS = Path(__file__).parent / "provider-usage.md"
JUDGED = 100  # calls: smaller groups are shown only
NEITHER_SIDE = 1.5  # tokens that an estimate is rounded by


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call, counted."""

    api: str
    kind: str
    project: str
    counted: float
    low: float
    high: float
    billed: int
    litellm: int | None


def counted(path: Path) -> Iterator[Call]:
    """Count the request of every recorded call."""
    listed = list(recorded(path))
    found = rows(listed)
    fits = left_out(found)
    groups = {family: group for group, *_, family, _ in calibrations.families()}
    ranges = {
        project: spreads(rest := [row for row in found if row.project != project], left_out(rest))
        for project in sorted({row.project for row in found})
    }
    for call in listed:
        request = read_request(call["request"])
        own = bk.count_request(call["request"], model=call["model"])
        tokens, (low, high) = float(own.tokens), own.interval
        row = row_of(call)
        if row is not None:
            tokens = calibrations.estimated(row, fits[row.project][row.family])
            below, above = ranges[row.project][groups[row.family], "text" if row.kind == "text" else "tools"]
            low, high = round(tokens * (1 + below) - NEITHER_SIDE), round(tokens * (1 + above) + NEITHER_SIDE)
        maker = "" if family_of(call["model"]) or not call["api"].startswith("openai") else ", other makers"
        ends = float(low), float("inf") if high is None else float(high)
        kind = _kind(request, own)
        yield Call(
            call["api"] + maker,
            kind,
            project_of(call),
            round(tokens),
            *ends,
            call["input_tokens"],
            _litellm(call, request),
        )


def _kind(request: Request, own: bk.RequestCount) -> str:
    """Say what a call holds, or why it is reported apart."""
    if own.uncounted:
        first = own.uncounted[0]
        return "apart: " + next(
            (name for name in ("built-in tool", "server state", "reasoning") if name in first), "media"
        )
    return "image" if any(message.images for message in request.messages) else kind_of(request)


def _litellm(call: dict[str, Any], request: Request) -> int | None:
    """Count the same with litellm, or None where it is not there or gives up."""
    os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1"}
    try:
        import litellm
    except ImportError:
        return None
    litellm.disable_hf_tokenizer_download = True
    tools = [tool if "function" in tool else {"type": "function", "function": dict(tool)} for tool in request.tools]
    messages = [dict(message.raw) for message in request.messages]
    try:
        return int(litellm.token_counter(model=call["model"], messages=messages, tools=tools or None))
    except Exception:  # it raises whatever it comes upon; such rows count as missed
        return None


def table(found: Sequence[Call]) -> pd.DataFrame:
    """Sum up by interface and kind, each project weighing the same in the shares."""
    frame = pd.DataFrame([{name: getattr(call, name) for name in Call.__slots__} for call in found])
    return pd.DataFrame(
        [{"api": api, "kind": kind, **_summed(own)} for (api, kind), own in frame.groupby(["api", "kind"], sort=True)]
    )


def _summed(own: pd.DataFrame) -> dict[str, Any]:
    off = own["counted"] - own["billed"]
    relative = off / own["billed"]
    covered = (own["low"] <= own["billed"]) & (own["billed"] <= own["high"])
    theirs = own["litellm"] - own["billed"]
    weight = 1 / own["project"].map(Counter(own["project"]))
    weight /= weight.sum()
    return {
        "calls": len(own),
        "projects": own["project"].nunique(),
        "exact": int((off == 0).sum()),
        "within 3": int((off.abs() <= 3).sum()),
        "exact, by project": f"{(weight * (off == 0)).sum():.0%}",
        "within 3, by project": f"{(weight * (off.abs() <= 3)).sum():.0%}",
        "median error": f"{relative.median():+.1%}",
        "90th percentile": f"{relative.quantile(0.9):+.1%}",
        "of size, median": f"{relative.abs().median():.1%}",
        "of size, 90th": f"{relative.abs().quantile(0.9):.1%}",
        "in interval": f"{covered.mean():.0%}{'' if len(own) >= JUDGED else ' (few)'}",
        "litellm exact": int((theirs == 0).sum()),
        "litellm within 3": int((theirs.abs() <= 3).sum()),
    }


def session(path: Path) -> str:
    """Fit the first third of a session's readings, and report the error on the rest."""
    trace = bk.load_trace(path)
    frame = readings(trace, bk.counter("o200k_base"))
    third = len(frame) // 3
    bill = bk.fit_bill(frame["counted"][:third].to_numpy(), frame["billed"][:third].to_numpy())
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


def page(found: Sequence[Call], told: str = "") -> str:
    """Write the page."""
    summed = table(found)
    apart = summed["kind"].str.startswith("apart")
    text = [
        "# Counts against the bill",
        "",
        f"Written by `python -m benchmarks.provider_usage` from {len(found)} recorded calls of "
        f"{len({call.project for call in found})} projects.",
        "An error is counted less billed, as a share of the bill; of size is its size. OpenAI's rules have no fits.",
        "Estimates of other makers, and their intervals (19 in 20 wanted), are made without the call's project.",
        "What litellm raises on counts as missed by it.",
        "",
        _markdown(summed[~apart]),
        "",
        "Apart: media whose size nobody can read, tools and state of the provider, reasoning before a call. The count",
        "names what it lacks and gives no upper end.",
        "",
        _markdown(summed[apart]),
        "",
        *([told, ""] if told else []),
    ]
    return "\n".join(text)


def main() -> None:
    """Write the page to its file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=Path)
    parser.add_argument("session", type=Path, nargs="?")
    asked = parser.parse_args()
    written = page(list(counted(asked.calls)), session(asked.session) if asked.session else "")
    RESULTS.write_text(written, encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
