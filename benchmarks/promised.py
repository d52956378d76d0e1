"""What is promised beside what comes true, split by source: ``python -m benchmarks.promised FOLDER...``.

Writes ``benchmarks/promised-and-observed.md`` and prints a row for each promise: what was promised, what was observed,
how wide it is, and n; ends with 1 where one is missed. What was seen too few times to say is "not judged", and no
miss: gains of noise, say, which are simulated, in fewer than 1,000 runs. Folders hold texts (a
``MANIFEST.csv`` says class, language and source), conversations (JSONL, one a line), or both. Whatever is learned is
learned from one part of the sources, and asked of the others. Recorded calls (``--calls``) are judged by those of all
other projects.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import budgetkit as bk
from benchmarks.accuracy import chosen, gathered, lists_texts, table
from benchmarks.measure import machine
from benchmarks.promises import Promised, counts, gains, means, reserves, windows
from budgetkit import accuracy
from budgetkit.lab.accuracy.buffers import filled_windows
from budgetkit.lab.accuracy.corpora import Corpus
from budgetkit.lab.replay.forecast import (
    Pace,
    bursts_notice,
    own_pace,
    pace_beside,
    paths,
    straight_line,
)
from budgetkit.lab.replay.outlook import MOST_OTHERS, turn_sizes

RESULTS = Path(__file__).parent / "promised-and-observed.md"
COUNTERS = ("chars/4", "words/0.75", "estimate:o200k_base")
SIZES = (4_096, 8_192, 16_000, 32_000)
RISKS = (0.05, 0.01)
# Times the pace's shipped spread.
WIDTHS = (
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    1.0,
    1.1,
    1.2,
    1.3,
    1.5,
    1.75,
    2.0,
)
PARTS = (0.1, 0.25, 0.5)  # of a conversation, as the budget of its history
IMPORTANCE: Mapping[str, bk.policies.Policy] = {
    "long ones": bk.policies.Importance(lambda message: len(message.text)),
    "short ones": bk.policies.Importance(lambda message: -len(message.text)),
    "with digits": bk.policies.Importance(lambda message: sum(map(str.isdigit, message.text))),
    "with capitals": bk.policies.Importance(lambda message: sum(map(str.isupper, message.text))),
    "of the user": bk.policies.Importance(lambda message: message.role == "user"),
    "no questions": bk.policies.Importance(lambda message: "?" not in message.text),
}
POLICIES: Mapping[str, bk.policies.Policy] = {
    "oldest first": bk.policies.OldestFirst(),
    "whole turns": bk.policies.OldestFirst(unit="turn"),
    "last 3 turns": bk.policies.SlidingWindow(3),
    "last 20 turns": bk.policies.SlidingWindow(20),
    "down to a half": bk.policies.TriggerTarget(bk.Share(1), bk.Share("0.5")),
    **IMPORTANCE,
}
SPLITS = 4
KNOWN_SPLITS = 3
FILLED = 40  # windows of each kind
ALLOWED = 1.5
LEAST_FORETOLD = 0.88
# Factors of a band: at the end beside others; alone after so many turns.
MOST_BESIDE, MOST_ALONE, LONG = (
    2.9,
    2.0,
    30,
)
KNOWN_WINDOWS = (4_096, 128_000)
MOST_KNOWN = 0.07  # of windows of a kind that is known, where 5 % is promised


def main() -> int:
    """Measure on the folders, write the page, and return 1 where a promise was missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.promised", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--calls", nargs="*", type=Path, default=[], help="files of recorded calls")
    parser.add_argument("--runs", type=int, default=2_000, help="runs of tuning on noise")
    asked = parser.parse_args()
    texts = [*filter(lists_texts, asked.folders)]
    pieces = chosen((gathered(texts) if texts else Corpus(())).pieces(most=6))
    errors = accuracy.compare(COUNTERS, pieces) if len(pieces) else None
    found = conversations(asked.folders)
    legend = {name: f"source {number}" for number, name in enumerate(found, 1)}
    found = {legend[name]: traces for name, traces in found.items()}

    promises = [*counts(asked.calls), *gains(asked.runs), *windows(found), *reserves(found)]
    promises += [] if errors is None else means(errors)
    buffer_promises, buffer_page = ([], []) if errors is None else buffers(errors)
    promises += [] if errors is None else known_kinds(errors)
    forecast_promises, forecast_page = forecasts(found)
    promises += [*buffer_promises, *forecast_promises]

    page = [
        "# Promised and observed",
        "",
        f"Written by `python -m benchmarks.promised`, split by source, on {date.today()}.",
        "",
    ]
    page += [machine("budgetkit", "numpy"), ""]
    page += table(pd.DataFrame([promise.row() for promise in promises]))
    page += ["", *buffer_page, *forecast_page, *evidence(found)]
    asked.out.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(page))
    print(*(f"{number}: {name}" for name, number in legend.items()), sep="\n")
    return int(any(promise.is_missed for promise in promises))


def buffers(errors: pd.DataFrame) -> tuple[list[Promised], list[str]]:
    """Ask half of the sources for the buffer, and fill windows with the other half."""
    found = (
        pd.DataFrame(overflows(errors))
        .groupby(["counter", "window", "promised"], sort=False)
        .mean()
        .reset_index()
    )
    promises = [
        Promised(
            promise=f"buffer_for, {row.counter}, a window of {row.window:,}: it overflows",
            promised=f"at most {100 * row.promised:g} %",
            observed=float(row.observed),
            width=f"{100 * row.share:.1f} % reserved, {100 * row.needed:.1f} % needed",
            n=SPLITS,
            judged_from=SPLITS,
            is_kept=bool(row.observed <= ALLOWED * row.promised),
        )
        for row in found.itertuples()
    ]
    shown = found.assign(
        kept=np.where(found["observed"] <= ALLOWED * found["promised"], "yes", "no")
    )
    for name in ("promised", "share", "needed", "observed", "others"):
        shown[name] = (100 * shown[name]).map("{:.1f} %".format)
    columns = {
        "share": "reserved",
        "needed": "needed by the texts that were seen",
        "others": "windows of kinds it names as lacking",
    }
    pieces = len(errors) // errors["counter"].nunique()
    return promises, [
        "## Buffers: windows that overflow",
        "",
        f"{pieces:,} pieces of {errors['source'].nunique()} sources, {SPLITS} times split in two halves by "
        "source. One half asks for the buffer; windows",
        "are filled with the other half's pieces, each with one class or one language (as many of each), of which "
        "the first half has the class",
        f"and the language. Kept is a promise that is missed in at most {ALLOWED} times as many windows.",
        "",
        *table(shown.rename(columns=columns)),
        "",
    ]


def overflows(errors: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Give the share of windows that overflow, by split, counter, window and risk."""
    sources = errors["source"].unique()
    for split in range(SPLITS):
        random = np.random.default_rng(split)
        taken = set(random.permutation(sources)[: len(sources) // 2])
        for name, rows in errors.groupby("counter", sort=False):
            mine, others = rows[rows["source"].isin(taken)], rows[~rows["source"].isin(taken)]
            alike = others["class"].isin(mine["class"]) & others["language"].isin(mine["language"])
            for window in SIZES:
                filled = filled_windows(mine, window, seed=split)
                for risk in RISKS:
                    buffer = filled.read_off(risk)
                    share = buffer.share
                    row: dict[str, object] = {
                        "counter": name,
                        "window": window,
                        "promised": risk,
                        "share": share,
                    }
                    row["needed"] = buffer.needed
                    seen, unseen = (
                        filled_over(part, window, share, random)
                        for part in (others[alike], others[~alike])
                    )
                    yield row | {"observed": seen, "others": unseen}


def known_kinds(errors: pd.DataFrame) -> Iterator[Promised]:
    """Ask half of the sources for the buffer of a kind that they have, and fill windows with others of that kind."""
    sources = errors["source"].unique()
    for name, rows in errors.groupby("counter", sort=False):
        for window in KNOWN_WINDOWS:
            over, shares, needs = [], [], []
            for split in range(KNOWN_SPLITS):
                random = np.random.default_rng(split)
                taken = set(random.permutation(sources)[: len(sources) // 2])
                is_mine = rows["source"].isin(taken)
                asked: dict[tuple[str, str], accuracy.Buffer] = {}
                known = set(
                    zip(rows.loc[is_mine, "class"], rows.loc[is_mine, "language"], strict=True)
                )
                for key, texts in rows[~is_mine].groupby(
                    ["class", "language", "source"], sort=False
                ):
                    kind = (str(key[0]), str(key[1]))
                    if kind not in known:
                        continue
                    if kind not in asked:
                        asked[kind] = accuracy.buffer_for(
                            rows[is_mine], window, RISKS[0], seed=split, kinds=kind
                        )
                    share = asked[kind].share
                    over.append(
                        np.mean([_overflows(texts, window, share, random) for _ in range(FILLED)])
                    )
                    shares.append(share)
                    needs.append(asked[kind].needed)
            if not over:
                continue
            yield Promised(
                promise=f"buffer_for a kind that is known, {name}, a window of {window:,}: it overflows",
                promised=f"at most {100 * RISKS[0]:g} %",
                observed=float(np.mean(over)),
                width=f"{100 * np.mean(shares):.1f} % reserved, {100 * np.mean(needs):.1f} % needed",
                n=len(over),
                is_kept=bool(np.mean(over) <= MOST_KNOWN),
            )


def filled_over(
    errors: pd.DataFrame, window: int, share: float, random: np.random.Generator
) -> float:
    """Fill windows piece by piece until the estimate says that they are full; return the share that overflows."""
    over = []
    for column in ("class", "language"):
        weights = errors[column].value_counts(normalize=True, sort=False)
        for kind in random.choice(weights.index.to_numpy(), 5 * FILLED, p=weights.to_numpy()):
            over.append(_overflows(errors[errors[column] == kind], window, share, random))
    return float(np.mean(over)) if over else float("nan")


def _overflows(texts: pd.DataFrame, window: int, share: float, random: np.random.Generator) -> bool:
    exact, estimate = texts["exact"].to_numpy(), texts["estimate"].to_numpy()
    room = window * (1 - share)
    order = random.integers(0, len(texts), max(1, int(1.5 * room / max(estimate.mean(), 1)) + 20))
    filled = np.cumsum(estimate[order]) <= room
    return bool(exact[order][filled].sum() > window)


def conversations(folders: Sequence[Path]) -> dict[str, list[bk.Trace]]:
    """Read the conversations of folders, by file: each file is a source."""
    found: dict[str, list[bk.Trace]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.jsonl")):
        try:
            found[path.stem] = [trace for trace in bk.load_traces(path) if trace.turns]
        except ValueError:  # a file of another kind
            continue
    return found


def evidence(sources: dict[str, list[bk.Trace]]) -> list[str]:
    """Ask what policies keep of marked evidence, and whether the proxy ranks them as the marks do."""
    marked = {
        name: [trace for trace in traces if _is_marked(trace)] for name, traces in sources.items()
    }
    marked = {name: traces for name, traces in marked.items() if traces}
    if not marked:
        return [
            "## Evidence",
            "",
            "No conversation of these folders marks what its messages need.",
            "",
        ]
    page = [
        "## Evidence",
        "",
        "Share of the marked evidence that is there when it is needed, with that part of the conversation as the "
        "history's budget. A conversation in",
        "which a policy cannot come down to a budget, since single messages are larger, is left out of that budget; "
        "whole turns may be larger than it.",
        "Rank agreement is Kendall's tau between marks and proxy, the mean of the budgets: 0.5 is promised over all "
        "policies that bring nothing back, 0.45 among",
        "those by importance. In files of `benchmarks.called` a mark is what a tool call copies from an earlier turn.",
        "",
    ]
    return page + [line for name, traces in marked.items() for line in _evidence_of(name, traces)]


def _evidence_of(name: str, traces: Sequence[bk.Trace]) -> list[str]:
    true, proxied = (_within(traces, by) for by in ("marks", "names"))
    used = true.groupby("part")["trace"].nunique()
    size = int(np.median([len(trace.messages) for trace in traces]))
    page = [
        f"### {name}",
        "",
        f"{len(traces)} conversations with marks, {size} messages in the middle one; ",
    ]
    page[-1] += "used: " + (", ".join(f"{n} at {at:.0%}" for at, n in used.items()) or "none") + "."
    if not len(used):
        return [*page, ""]
    shares = [_shares(rows) for rows in (true, proxied)]
    shown = (
        (100 * shares[0]).map("{:.0f} %".format).rename(columns="at {:.0%}".format).reset_index()
    )
    parts = [at for at in used.index if at in shares[1]]
    taus = [
        f"{np.mean([kendall(*(frame[at].loc[names] for frame in shares)) for at in parts]):.2f} {among}"
        for names, among in (
            (list(POLICIES), "over all"),
            (list(IMPORTANCE), "among those by importance"),
        )
    ]
    return [
        *page,
        "",
        *table(shown),
        "",
        f"Rank agreement of the proxy with the marks: {', '.join(taus)}.",
        "",
    ]


def _within(traces: Sequence[bk.Trace], by: str) -> pd.DataFrame:
    """Replay conversations, and leave out a budget that some policy cannot come down to."""
    rows = pd.concat([kept(trace, by).assign(trace=number) for number, trace in enumerate(traces)])
    return rows[~rows.groupby(["trace", "part"])["over"].transform("any")]


def _is_marked(trace: bk.Trace) -> bool:
    return any(message.raw.get("evidence") for message in trace.messages)


def kept(trace: bk.Trace, by: Any) -> pd.DataFrame:
    """Replay a conversation under every policy at parts of its own size."""
    count, found = bk.counter("o200k_base"), bk.deciding.evidence(trace, by=by)
    whole = int(trace.counts(count).sum())
    allocations = [bk.Allocation("history"), bk.Allocation("current")]
    budget = bk.Budget(10 * whole, [], allocations, remainder="history", undeclared="pool")
    roles = dict.fromkeys(("user", "assistant", "tool", "system"), "history")
    by_request = any(message.tool_calls for message in trace.messages)
    options = {
        "by": "request" if by_request else "turn",
        "roles": roles | {"step": "current", "current": "current"},
    }
    rows = []
    for part in PARTS:
        limit = round(part * whole)
        for name, policy in POLICIES.items():
            outcome = bk.replay(trace, budget.assign(history=limit), policy, **options)
            lost = bk.deciding.losses(outcome, found)
            needed, present, possible = (
                int(lost[column].sum()) for column in ("needed", "present", "possible")
            )
            over = policy.unit != "turn" and bool((outcome.frame()["history"] > limit).any())
            rows.append(
                {"policy": name, "part": part, "needed": needed, "present": present, "over": over}
            )
        rows.append(
            {
                "policy": "hindsight",
                "part": part,
                "needed": needed,
                "present": possible,
                "over": False,
            }
        )
    return pd.DataFrame(rows)


def _shares(rows: pd.DataFrame) -> pd.DataFrame:
    sums = rows.groupby(["policy", "part"], sort=False)[["needed", "present"]].sum()
    return (
        (sums["present"] / sums["needed"])
        .unstack("part")
        .rename_axis(columns=None)
        .sort_index(axis=1)
    )


def kendall(one: pd.Series[float], other: pd.Series[float]) -> float:
    """Return Kendall's tau-b.

    Examples
    --------
    >>> kendall(pd.Series([1, 2, 3]), pd.Series([1, 3, 2])).__round__(2)
    0.33
    """
    above = np.triu_indices(len(one), 1)
    signs = [
        np.sign(np.subtract.outer(each.to_numpy(), each.to_numpy())[above]) for each in (one, other)
    ]
    untied = float(np.sqrt(np.prod([(each != 0).sum() for each in signs], dtype=float)))
    return float((signs[0] * signs[1]).sum() / untied) if untied else 0.0


def forecasts(sources: dict[str, list[bk.Trace]]) -> tuple[list[Promised], list[str]]:
    """Draw the rest of conversations from their first third, and look where the truth lies: of real ones only."""
    rows: list[dict[str, Any]] = []
    for name, traces in sources.items():
        count = bk.counter("o200k_base")
        real = [
            trace for trace in traces if not (trace.meta.get("made_up") or trace.meta.get("copy"))
        ]
        known = [turn_sizes(trace, count) for trace in real]
        for i, trace in enumerate(real):
            others = (known[:i] + known[i + 1 :])[:MOST_OTHERS]
            rows += _forecast(
                name, int(trace.counts(count)[: trace.turns[0].start].sum()), known[i], others
            )
    if not rows:
        return [], []
    frame = pd.DataFrame(rows)
    promises = []
    shown = []
    for (at, told), group in frame.groupby(["at", "told by"], sort=False):
        others = frame[(frame["told by"] == told) & (frame["at"] == at)]
        learned = [
            _held_by_others(others, group, name, WIDTHS) for name in group["source"].unique()
        ]
        row = {"at": at, "told by": told, "conversations": len(group), "promised": "90 %"}
        row["held"] = f"{100 * group['inside 1.0'].mean():.0f} %"
        row["held, width learned on the other sources"] = (
            f"{100 * float(np.concatenate(learned).mean()):.0f} %"
        )
        row |= _errors(group)
        shown.append(row)
        if not len(foretold := group[group["notice"] == ""]):
            continue
        by_source = foretold.groupby("source")["inside 1.0"].mean()
        width = float(foretold["width"].median())
        bursts = len(group) - len(foretold)
        promises.append(
            Promised(
                promise=f"forecast by {told}, {at}: the 90 % band holds, mean over sources ({bursts} in bursts)",
                promised=f"at least {100 * LEAST_FORETOLD:g} %",
                observed=float(by_source.mean()),
                width=f"a factor of {width:.1f}",
                n=len(foretold),
                is_kept=bool(
                    by_source.mean() >= LEAST_FORETOLD
                    and width <= _MOST_WIDE.get((at, told), np.inf)
                ),
            )
        )
    each = [
        {"source": name, "told by": told, "conversations": len(group) // 3}
        | {"held": f"{100 * group['inside 1.0'].mean():.0f} %"}
        | _errors(group[group["at"] == "the end"])
        for (name, told), group in frame.groupby(["source", "told by"], sort=False)
    ]
    return promises, [
        "## Forecasts: sizes to come",
        "",
        "The first third of a conversation of 6 turns and more is seen, the rest foretold: by its own turns alone, or "
        "beside the others of its file",
        f"(at least 5, at most {MOST_OTHERS}; never by its own later turns). Errors are those of the size of the whole "
        "conversation, in the middle (median). The shipped width of the band was",
        "learned on such conversations; beside it stands what is held when the width is learned on all other sources "
        "(one left out at a time).",
        "",
        *table(pd.DataFrame(shown)),
        "",
        "By source; held is of all three places, the errors are those at the end.",
        "",
        *table(pd.DataFrame(each)),
        "",
    ]


_MOST_WIDE: Mapping[tuple[str, str], float] = {
    ("the end", "others too"): MOST_BESIDE,
    (f"the end, {LONG} turns seen", "its own turns"): MOST_ALONE,
}


def _errors(group: pd.DataFrame) -> dict[str, str]:
    middle = group["middle"].median()
    line = group["line"].median()
    return {
        "error": f"{100 * middle:.1f} %",
        "of the straight line": f"{100 * line:.1f} %",
        "difference": f"{100 * (middle / line - 1):+.0f} %" if line else "",
    }


def _held_by_others(
    others: pd.DataFrame, group: pd.DataFrame, source: str, widths: Sequence[float]
) -> np.ndarray:
    """Take the least width that holds nine in ten of the other sources' conversations, and say which of its own."""
    learned = others[others["source"] != source]
    enough = [width for width in widths if learned[f"inside {width}"].mean() >= 0.9]
    return group.loc[
        group["source"] == source, f"inside {enough[0] if enough else widths[-1]}"
    ].to_numpy(float)


def _widened(pace: Pace, width: float) -> Pace:
    """Return a pace whose spread is so many times as wide; of 0 the turns seen say all."""
    return Pace(pace.middle, width * pace.spread, pace.is_whole or not width)


def _forecast(
    source: str, opening: int, sizes: np.ndarray, others: Sequence[np.ndarray]
) -> Iterator[dict[str, Any]]:
    if len(sizes) < 6:
        return
    places = [(max(2, len(sizes) // 3), "a quarter", 0.25), (max(2, len(sizes) // 3), "half", 0.5)]
    places.append((max(2, len(sizes) // 3), "the end", 1.0))
    if len(sizes) >= LONG + LONG // 3:
        places.append((LONG, f"the end, {LONG} turns seen", 1.0))
    for seen, at, part in places:
        start, known = opening + int(sizes[:seen].sum()), sizes[:seen]
        beside = None if seen == LONG and at.endswith("seen") else pace_beside(known, others)
        turns = max(1, round((len(sizes) - seen) * part))
        truth = start + int(sizes[seen : seen + turns].sum())
        line = abs(float(straight_line(known, turns, start)[-1]) / truth - 1)
        for told, pace in (("its own turns", None), *([("others too", beside)] if beside else [])):
            pace = pace or own_pace(known)
            drawn = {
                width: paths(known, turns, start, 400, pace=_widened(pace, width))[:, -1]
                for width in WIDTHS
            }
            row: dict[str, Any] = {"source": source, "at": at, "told by": told, "line": line}
            row["notice"] = bursts_notice(known, others)
            for width, ends in drawn.items():
                low, high = np.quantile(ends, (0.05, 0.95))
                row[f"inside {width}"] = bool(low <= truth <= high)
                if width == 1.0:
                    row["width"] = high / max(low, 1)
            yield row | {"middle": abs(float(np.median(drawn[1.0])) / truth - 1)}


if __name__ == "__main__":
    sys.exit(main())
