"""Counts against the bill: ``python -m benchmarks.provider_usage CALLS... [--session FILE]`` writes provider-usage.md.

CALLS are files of recorded calls (JSON lines, packed by xz or not): a request, the model that answered, the provider's
``input_tokens`` and the project each. The session is a conversation whose provider counted every request. Estimates,
intervals and the word exact are those that the calls of all other projects would give. Run it where all vocabularies
are, as benchmarks/exactness.py is.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import budgetkit as bk
from benchmarks import calibrations, exactness
from benchmarks.calibrations import kind_of, left_out, project_of, recorded, row_of, rows, spreads
from budgetkit.counters import basis_of
from budgetkit.requests.evidence import looked_up
from budgetkit.requests.frames import frame_for
from budgetkit.requests.openai_families import family_of
from budgetkit.requests.providers import counter_for
from budgetkit.requests.request import Request, read_request
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
    called_exact: bool = False


def counted(paths: Sequence[Path]) -> Iterator[Call]:
    """Count the request of every recorded call, without what its own project says."""
    listed = [call for path in paths for call in recorded(path)]
    estimates = _estimates(listed)
    judged = [exactness.judge(call) for call in listed]
    known = [row for row in judged if row is not None]
    tables = {
        project: {row.combination: row for row in exactness.table(row for row in known if row.project != project)}
        for project in sorted({row.project for row in known})
    }
    for call, row in zip(listed, judged, strict=True):
        project = project_of(call)
        try:
            request = read_request(call["request"])
            own = bk.count_request(call["request"], model=call["model"], host=exactness.host_of_call(call))
        except ValueError:
            continue
        tokens = float(own.tokens)
        low, high = own.interval
        called_exact = False
        if row is not None and own.basis != "estimate" or family_of(call["model"]) or frame_for(call["model"]):
            evidence = looked_up(row.names, tables[project]) if row is not None else None
            if evidence is not None:
                low = min(own.tokens - 1, round(tokens * (1 + evidence.low)))
                high = max(own.tokens + 1, round(tokens * (1 + evidence.high)))
                is_own = basis_of(counter_for(call["model"])) == "exact"
                called_exact = evidence.earns_exact and is_own
                if called_exact:
                    low = high = own.tokens
        elif (estimate := estimates(call)) is not None:
            tokens, low, high = estimate
        yield Call(
            api=f"{maker_of(call['model'])}, {call['api']}",
            kind=_kind(request, own),
            project=project,
            counted=round(tokens),
            low=float(low),
            high=float("inf") if high is None else float(high),
            billed=call["input_tokens"],
            litellm=_litellm(call, request),
            called_exact=called_exact,
        )


def _estimates(listed: Sequence[dict[str, Any]]) -> Callable[[dict[str, Any]], tuple[float, int, int] | None]:
    """Return what estimates a call by slopes and constants that were fitted without its project."""
    found = rows(listed)
    fits = left_out(found)
    groups = {family: group for group, *_, family, _ in calibrations.families()}
    ranges = {
        project: spreads(rest := [row for row in found if row.project != project], left_out(rest))
        for project in sorted({row.project for row in found})
    }

    def estimate(call: dict[str, Any]) -> tuple[float, int, int] | None:
        row = row_of(call)
        if row is None:
            return None
        tokens = calibrations.estimated(row, fits[row.project][row.family])
        below, above = ranges[row.project][groups[row.family], "text" if row.kind == "text" else "tools"]
        return tokens, round(tokens * (1 + below) - NEITHER_SIDE), round(tokens * (1 + above) + NEITHER_SIDE)

    return estimate


def maker_of(model: str) -> str:
    """Return who made a model, as far as its name says."""
    name = model.casefold()
    for maker in ("claude", "gemini", "deepseek", "qwen", "mistral", "llama", "gpt-oss", "grok", "nova"):
        if maker in name:
            return maker
    return "openai" if family_of(model) else "others"


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
    summed = pd.DataFrame(
        [{"api": api, "kind": kind, **_summed(own)} for (api, kind), own in frame.groupby(["api", "kind"], sort=True)]
    )
    if frame["litellm"].isna().all():  # it was not installed: nothing is said of it
        return summed.drop(columns=["litellm exact", "litellm within 3"])
    return summed


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
        "within 1, by project": f"{(weight * (off.abs() <= 1)).sum():.0%}",
        "called exact": int(own["called_exact"].sum()),
        "of these true": int((own["called_exact"] & (off == 0)).sum()),
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
        "An error is counted less billed, as a share of the bill; of size is its size. Intervals (19 in 20 wanted),",
        "the word exact and fitted estimates are those that the calls of all other projects give; rules and",
        "constants of OpenAI, Claude, Gemini, DeepSeek and Qwen were derived with these calls in sight.",
        "Shares by project weigh each project the same. What litellm raises on counts as missed by it; without it, its",
        "columns are not there.",
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
    parser.add_argument("calls", type=Path, nargs="+")
    parser.add_argument("--session", type=Path)
    settings = parser.parse_args()
    written = page(list(counted(settings.calls)), session(settings.session) if settings.session else "")
    RESULTS.write_text(written, encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
