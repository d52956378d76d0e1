"""Fit data/calibrations.csv: ``python -m benchmarks.calibrations CALLS`` reads recorded calls and writes the table.

CALLS is a file of recorded calls, a request with the provider's usage each, and the project it comes from. A group of
families shares all constants but the hidden prompt of its tools. Everything is fitted by least absolute relative error,
projects of ten calls and more weighing the same; the spreads are those of projects that had no part in the fit.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import budgetkit as bk
from budgetkit.models.names import openai_family
from budgetkit.requests.billing.charges import count_charges
from budgetkit.requests.billing.estimates import (
    CONSTANTS,
    Estimate,
    EstimatedRules,
    constant_counts,
)
from budgetkit.requests.reading.request import ProviderRequest, read_request

TABLE = Path(__file__).parent.parent / "data" / "calibrations.csv"
READ = "2026-11-21"
OWN = {"json": ("tools", "forced", "sequential"), "words": ("tool", "property", "call")}
FREE_SCHEMA = ("gemini", "mistral")  # groups whose answer schema costs nothing
TEXT = 5
FEW = 10  # calls: from so many on projects weigh the same, below a call of theirs no more than one of theirs
# What all families of a group share, and what is fitted for each: for tools that stand as JSON, and for Gemini's.
SHARED = {"json": ("request", "turn", "call", "schema", "thinking"), "words": ("request", "schema")}

# Group: (encoding, form of its tools), and its families with the pattern of their models' names.
GROUPS: dict[str, tuple[str, str, dict[str, str]]] = {
    "claude": (
        "cl100k_base",
        "json",
        {
            "claude-3-opus": "claude-3-opus",
            "claude-3-sonnet": "claude-3-sonnet",
            "claude-3-haiku": "claude-3(-5)?-haiku",
            "claude-3.5-sonnet": "claude-3-5-sonnet",
            "claude-3.7": "claude-3-7",
            "claude-4.5": "claude-((haiku|sonnet|opus)-)?4-[56]",
            "claude-4": "claude-(sonnet|opus)-4(-[01]|-20|$)",
            "claude-2": "claude-(v?[12]|instant)",
        },
    ),
    "gemini": ("o200k_base", "words", {"gemini-2.0": "gemini-(1-5|2-0)", "gemini": "gemini|gemma"}),
    "nova-2": ("o200k_base", "json", {"nova-2": "nova-2"}),
    "nova": ("o200k_base", "json", {"nova": "nova|titan"}),
    "deepseek": ("o200k_base", "json", {"deepseek": "deepseek"}),
    "qwen": ("o200k_base", "json", {"qwen": "qwen"}),
    "mistral": ("o200k_base", "json", {"mistral": "mi[sx]tra|devstral|codestral"}),
    "grok-4.3": ("o200k_base", "json", {"grok-4.3": "grok-4-[3-9]"}),
    "grok": ("o200k_base", "json", {"grok": "grok"}),
    "gpt-oss": ("o200k_base", "json", {"gpt-oss": "gpt-oss"}),
    "llama": ("o200k_base", "json", {"llama": "llama"}),
    "any other": ("o200k_base", "json", {"any other": ""}),
}
# What no recording shows is taken from a provider's documentation or from measurements described elsewhere.
GIVEN: dict[str, dict[str, int]] = {
    "claude-3-opus": {"tools": 530, "forced": 281},
    "claude-3-sonnet": {"tools": 159, "forced": 235},
    "claude-3-haiku": {"tools": 264, "forced": 340},
    "claude-3.5-sonnet": {"tools": 294, "forced": 261},
    "claude-3.7": {"tools": 346, "forced": 313},
    "claude-4": {"tools": 346, "forced": 313},
    "claude-4.5": {"tools": 346},
}
# Claude's documents: two calls of claude-sonnet-4-6 cost 38 and 42 more than their text; with citations eight calls of
# it and claude-haiku-4-5 in two projects 583 to 598, search results 566. Every Claude that can cite (Anthropic,
# Citations, read 2026-11-27: not Claude 3) is taken to do so alike.
DOCUMENT = 40
CITATIONS = 550
FORCED = 100  # more than without, where neither recordings nor documentation say
NEWER = Estimate(
    "claude-5",
    "claude-.*(4-[7-9]|(sonnet|opus|haiku|fable|mythos)-5)",
    "cl100k_base",
    1.39,
    {},
    tool_times=1.37,
    source="1.41 x o200k_base and the hidden prompts of sonnet-5, from recorded calls of public projects",
    date=READ,
)
NEWER_PROMPTS = {"tools": 338, "forced": 455, "sequential": 0}
# Claude Opus 4.7's frame, from data/frames.toml.
OPUS = replace(
    NEWER,
    family="claude-opus-4.7",
    pattern="claude-.*4-7",
    tool_times=1.1,
    source="1.41 x o200k_base and the constants of data/frames.toml, from recorded calls of public projects",
)
OPUS_FRAME = {"request": 11, "turn": 3, "tools": 675, "forced": 804, "schema": 118, "thinking": 29}

# Cohere's prompt that nobody sees stands in `tokens` of its usage, not in `billed_units`; read 2026-11-27.
COHERE = Estimate(
    "cohere",
    "command-[ar]|cohere",
    "o200k_base",
    1.0,
    {"request": 495, "turn": 4, "tools": 910, "forced": 927},
    source="0xPlaygrounds/rig@b75850e89949, 28 recorded calls of command-a-03-2025",
    date="2026-11-27",
)
COHERE_REASONING = replace(
    COHERE,
    family="cohere-reasoning",
    pattern="command-a-reasoning",
    constants={"request": 1388, "turn": 4, "tools": 17, "forced": 17},
    source="0xPlaygrounds/rig@b75850e89949, 2 recorded calls of command-a-reasoning-08-2025",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded call, as the fit sees it."""

    project: str
    family: str
    kind: str
    words: int
    marks: int
    times: tuple[tuple[str, int], ...]
    billed: int

    def of(self, constant: str) -> int:
        """Return how often it pays a constant."""
        return dict(self.times)[constant]


def recorded(path: Path) -> Iterable[dict[str, Any]]:
    """Read a file of recorded calls, packed or not."""
    packed = path.read_bytes()
    text = (lzma.decompress(packed) if path.suffix == ".xz" else packed).decode()
    yield from (json.loads(line) for line in text.split("\n") if line.strip())


def project_of(call: dict[str, Any]) -> str:
    """Name the project that a call comes from: what stands before the version."""
    return str(call.get("repo") or call.get("source") or "").partition("@")[0]


def families() -> list[tuple[str, str, str, str, str]]:
    """List group, encoding, form of tools, family and pattern."""
    return [
        (group, encoding, form, family, pattern)
        for group, (encoding, form, named) in GROUPS.items()
        for family, pattern in named.items()
    ]


def kind_of(request: ProviderRequest) -> str:
    """Say what a request holds that costs more than text."""
    results = any(message.role in ("tool", "function") for message in request.messages)
    return (
        "results"
        if results
        else "tools"
        if request.tools
        else "answer schema"
        if request.schema
        else "text"
    )


@cache
def _counter(name: str) -> Any:
    return bk.counter(name)


def rows(calls: Iterable[dict[str, Any]]) -> list[Row]:
    """Count what can be counted of every call that a family is fitted to; a project's repeated calls stand once."""
    return list(dict.fromkeys(row for call in calls if (row := row_of(call)) is not None))


def row_of(call: dict[str, Any]) -> Row | None:
    """Count a call of another provider than OpenAI; None with images or what nobody can count."""
    if openai_family(call["model"]):
        return None
    request = replace(read_request(call["request"]), model=call["model"])
    name = re.sub(r"[.:_]", "-", call["model"].casefold())
    if (
        request.uncounted
        or any(message.images for message in request.messages)
        or re.search(NEWER.pattern, name)
    ):
        return None
    group, encoding, form, family, pattern = next(
        each for each in families() if re.search(each[4], name)
    )
    constants = dict.fromkeys(CONSTANTS, 0)
    plain = Estimate(
        family,
        pattern,
        encoding,
        1.0,
        constants,
        tool_form=form,
        schema_shown=group not in FREE_SCHEMA,
    )
    charges = EstimatedRules(plain).charges(request)
    words = sum(count_charges(charges, _counter(encoding)))
    marks = sum(count_charges(charges, lambda text: len(re.findall(r"[^\w\s]", text))))
    times = tuple(constant_counts(request).items())
    return Row(
        project_of(call), family, kind_of(request), words, marks, times, call["input_tokens"]
    )


def fit(found: Sequence[Row]) -> dict[str, Estimate]:
    """Fit all families."""
    made: dict[str, Estimate] = {}
    for group, (encoding, form, named) in GROUPS.items():
        own = [row for row in found if row.family in named]
        # A group that nobody recorded is any other.
        own = own if own and group != "any other" else list(found)
        (slope, mark), shared, hidden = _solve(own, list(named), SHARED[form], OWN[form])
        for family, pattern in named.items():
            constants = {
                name: round(shared.get(name, hidden.get((family, name), 0))) for name in CONSTANTS
            }
            constants |= {
                name: own for name, own in GIVEN.get(family, {}).items() if not constants[name]
            }
            if group == "claude" and family != "claude-2":
                constants["document"] = DOCUMENT
                constants["citations"] = 0 if family.startswith("claude-3-") else CITATIONS
            constants["forced"] = constants["forced"] or constants["tools"] + (
                FORCED if group == "claude" else 0
            )
            made[family] = Estimate(
                family,
                pattern,
                encoding,
                round(slope, 3),
                constants,
                round(mark, 3),
                form,
                group not in FREE_SCHEMA,
            )
    return made


def _solve(
    own: Sequence[Row], named: list[str], shared: Sequence[str], prompts: Sequence[str]
) -> tuple[tuple[float, float], dict[str, float], dict[tuple[str, str], float]]:
    """Solve one group: slope and tokens for a punctuation mark, constants that all share, and each family's own."""
    hidden = [(family, name) for family in named for name in prompts]
    if not own:
        return (1.0, 0.0), {}, {}
    columns = np.array(
        [
            [row.words, row.marks * ("tool" in prompts), *(row.of(name) for name in shared)]
            + [row.of(name) * (row.family == family or len(named) == 1) for family, name in hidden]
            for row in own
        ],
        dtype=np.float64,
    )
    billed = np.array([row.billed for row in own], dtype=np.float64)
    weight = Counter(row.project for row in own)
    weights = np.array([1 / max(FEW, weight[row.project]) for row in own]) / np.maximum(billed, 30)
    # Slope and mark are the text's; calls and schemas of two interfaces differ too much to help.
    if "tool" in prompts:
        weights *= [TEXT if row.kind == "text" else 1 for row in own]
    names = ["slope", "mark", *shared, *(name for _, name in hidden)]
    used = (columns != 0).any(axis=0)
    solved = np.zeros(columns.shape[1])
    while True:  # nothing costs less than nothing, but a shorter hidden prompt
        solved[:] = 0
        solved[used] = least_absolute(columns[:, used], billed, weights)
        lowest = int(np.argmin(np.where([name == "sequential" for name in names], 0, solved)))
        if solved[lowest] >= 0:
            break
        used[lowest] = False
    return (
        (float(solved[0]), float(solved[1])),
        dict(zip(shared, solved[2:], strict=False)),
        dict(zip(hidden, solved[2 + len(shared) :], strict=True)),
    )


def least_absolute(columns: Any, y: Any, weights: Any) -> Any:
    """Fit a sum of columns by least weighted absolute error, as repeated least squares; for constants of a request."""
    found = np.zeros(columns.shape[1])
    scale = weights
    for _ in range(100):
        found = np.asarray(
            np.linalg.lstsq(columns * scale[:, None], y * scale, rcond=None)[0], dtype=np.float64
        )
        scale = np.sqrt(weights / np.maximum(np.abs(y - columns @ found), 1e-2))
    return found


def estimated(row: Row, estimate: Estimate) -> float:
    """Estimate a call."""
    return (
        estimate.slope * row.words
        + estimate.mark * row.marks
        + sum(estimate.constants[name] * row.of(name) for name in CONSTANTS)
    )


def left_out(found: Sequence[Row]) -> dict[str, dict[str, Estimate]]:
    """Fit all families without each project in turn."""
    return {
        project: fit([row for row in found if row.project != project])
        for project in sorted({row.project for row in found})
    }


def spreads(
    found: Sequence[Row], without: dict[str, dict[str, Estimate]]
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return for each group and kind the range of bills around estimates that their project had no part in.

    A group of one project takes the range of all, three times as wide.
    """
    ranges = {}
    for group, (_, _, named) in GROUPS.items():
        for kind in ("text", "tools"):
            listed = [row for row in found if (row.kind == "text") == (kind == "text")]
            own = [row for row in listed if row.family in named]
            alone = group == "any other" or len({row.project for row in own}) < 2
            own = listed if alone else own
            off = [
                row.billed / max(1.0, estimated(row, without[row.project][row.family])) - 1
                for row in own
            ]
            weight = Counter(row.project for row in own)
            weights = np.array([1 / max(FEW, weight[row.project]) for row in own])
            ranges[group, kind] = _range(np.array(off), weights, 1 if alone else len(weight))
    return ranges


def _range(off: Any, weights: Any, projects: int) -> tuple[float, float]:
    """Return the middle 92 % of weighted errors, wider the fewer projects were seen."""
    order, wider = np.argsort(off), 1 + 2 / projects
    at = np.cumsum(weights[order]) / weights.sum()
    low, high = (off[order][min(len(off) - 1, np.searchsorted(at, end))] for end in (0.04, 0.96))
    return float(max(-0.9, low * wider)), float(min(3, high * wider))


def versions(calls: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Name each project with the version its recordings were read at, as their source tells it."""
    sources = {project_of(call): str(call.get("source") or "") for call in calls}
    commits = {
        project: source.partition("@")[2].partition(":")[0] for project, source in sources.items()
    }
    return {
        project: f"{project}@{commit}" if commit else project for project, commit in commits.items()
    }


def written(found: Sequence[Row], named: dict[str, str]) -> list[list[Any]]:
    """Write the table's rows, its header first."""
    made, ranges = fit(found), spreads(found, left_out(found))
    shared = {**made["claude-4.5"].constants, **NEWER_PROMPTS}
    listed = [
        ("claude", replace(OPUS, constants={**shared, **OPUS_FRAME})),
        ("claude", replace(NEWER, constants=shared)),
        *((group, made[family]) for group, *_, family, _ in families()),
    ]
    listed[-1:-1] = [("any other", COHERE_REASONING), ("any other", COHERE)]
    header = [
        "family",
        "pattern",
        "counter",
        "slope",
        "mark",
        *CONSTANTS,
        "tool_form",
        "schema_shown",
        "tool_times",
    ]
    table: list[list[Any]] = [
        [*header, "text_low", "text_high", "calls", "projects", "source", "date"]
    ]
    for group, each in listed:
        own = [row for row in found if row.family == each.family]
        projects = sorted({named[row.project] for row in own})
        shown = "yes" if each.schema_shown else "no"
        table.append(
            [each.family, each.pattern, each.counter, each.slope, each.mark]
            + [each.constants.get(name, 0) for name in CONSTANTS]
            + [each.tool_form, shown, each.tool_times]
            + [f"{end:.3f}" for end in ranges[group, "text"]]
            + [
                len(own),
                len(projects),
                each.source or "; ".join(projects) or "Anthropic's documentation",
                each.date or READ,
            ]
        )
    return table


def main() -> None:
    """Write the table to its file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=Path)
    calls = list(recorded(parser.parse_args().calls))
    found = rows(calls)
    told = (
        "# Slopes and constants of providers whose tokenizer is not public, fitted by benchmarks/calibrations.py to "
        f"{len(found)} recorded calls of {len({row.project for row in found})} public projects on GitHub (request and "
        f"provider's own usage) at each row's commits; read {READ}; columns in data/README.md\n"
    )
    with TABLE.open("w", encoding="utf-8", newline="") as out:
        out.write(told)
        csv.writer(out, lineterminator="\n").writerows(written(found, versions(calls)))


if __name__ == "__main__":
    main()
