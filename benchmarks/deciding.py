"""Is a tuned budget better than a shipped preset, on conversations it was not tuned on?

    python -m benchmarks.deciding FOLDER [FILE ...]

Each file of many conversations is split in two halves. On the first half the output reserve, the cap of the history
and the policy are tuned for one objective; on the second half the result stands beside every shipped preset under the
policy that a preset has when nothing is said, the oldest messages first. The window is half of the longest
conversation, so that something must go. Printed is the share by which the tuned budget is smaller in the objective,
with its 95 % interval: where all of it is above 0, the tuned budget wins. Where it does not, the last column says so,
and whether the preset's requests are then larger than the window; a table at the end counts.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import budgetkit as bk
from budgetkit.lab.deciding.objectives import OBJECTIVES, Gain, percent
from budgetkit.trace import Trace

OBJECTIVE_NAMES = ("cut", "evidence", "cost")
POLICIES = {
    "oldest first": bk.policies.OldestFirst(),
    "low mark": bk.policies.TriggerTarget(),
    "last 6 turns": bk.policies.SlidingWindow(6),
}
FEWEST, MOST = 8, 60
BEYOND = ", but sends more than the window"


def window_of(traces: list[Trace], count: bk.counter) -> int:  # type: ignore[valid-type]
    """Return half of the longest conversation, in tokens."""
    return max(400, max(int(trace.counts(count).sum()) for trace in traces) // 2)


def scores(
    traces: list[Trace], budget: bk.Budget, policy: Any, name: str, prices: Any
) -> tuple[np.ndarray, bool]:
    """Return the objective of each conversation, and whether some request is larger than the window.

    Where a conversation cannot be planned, the objective is not a number.
    """
    found, beyond = [], False
    for trace in traces:
        try:
            outcome = bk.replay(trace, budget, policy, prices=prices)
            found.append(OBJECTIVES[name](outcome))
            beyond |= bool((outcome.sent > budget.window).any())
        except (ValueError, LookupError):
            found.append(float("nan"))
    return np.array(found), beyond


def main(paths: list[str]) -> None:
    """Print a row for each file, objective and preset."""
    files = [
        each
        for path in map(Path, paths)
        for each in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])
    ]
    prices, count = bk.cost.prices("gpt-4o"), bk.counter("gpt-4o")
    print(
        "| conversations | n | objective | tuned to | beside | smaller by | 95 % interval | won |"
    )
    print("|---|--:|---|---|---|--:|---|---|")
    counted: Counter[tuple[str, str]] = Counter()
    for file in files:
        try:
            traces = [
                trace
                for trace in bk.load_traces(file)
                if any(m.role == "assistant" for m in trace.messages)
            ]
        except ValueError:
            continue
        traces = traces[:MOST]
        if len(traces) < FEWEST:
            continue
        window = window_of(traces, count)
        start = bk.presets.working_memory(window, output=window // 8, history_floor=0)
        caps = {"no cap": None, "1/2": window // 2, "1/4": window // 4, "1/8": window // 8}
        outputs = [window // 16, window // 8, window // 5]
        needs = bk.deciding.answer_reserve(traces, count).tokens
        if needs > outputs[-1]:
            outputs.append(needs)  # a smaller reserve is never chosen
        vary = {"output": outputs, "history": caps, "policy": POLICIES}
        for name in OBJECTIVE_NAMES:
            found = bk.deciding.tune(traces, start, vary, name, prices=prices, workers=2)
            rest = [traces[i] for i in found.parts[1]]  # those that it was not chosen on
            tuned, _ = scores(rest, *found.space.apply(found.candidate), name, prices)
            best = ", ".join(f"{line} {value}" for line, value in found.candidate.items())
            for preset, make in bk.presets.PRESETS.items():
                beside, beyond = scores(rest, make(window), bk.policies.OldestFirst(), name, prices)
                shown, won = compared(tuned, beside)
                won += BEYOND if beyond and won.startswith("no") else ""
                counted[name, won] += 1
                print(
                    f"| {file.stem} | {len(rest)} | {name} | {best} | {preset} | {shown} | {won} |",
                    flush=True,
                )
    summed(counted)


def compared(tuned: np.ndarray, beside: np.ndarray) -> tuple[str, str]:
    """Return by how much the tuned budget is smaller, with the interval, and whether it wins."""
    both = ~np.isnan(tuned) & ~np.isnan(beside)
    if both.sum() < 2:
        return "| ", "cannot be planned"
    if not beside[both].sum():
        return "| ", "yes, by nothing" if not tuned[both].sum() else "no: nothing lost there"
    gain = Gain(beside[both], tuned[both])
    if np.isnan(gain.low):
        return f"{percent(gain.share)} % | ", "no: too few conversations"
    won = "yes" if gain.holds else "no: it loses" if gain.high < 0 else "no: unsure"
    return f"{percent(gain.share)} % | {percent(gain.low)} to {percent(gain.high)}", won


def summed(counted: Counter[tuple[str, str]]) -> None:
    """Print how often each objective was won."""
    ways = sorted({won for _, won in counted}, reverse=True)
    print(f"\n| objective | {' | '.join(ways)} |\n|---|{'--:|' * len(ways)}")
    for name in OBJECTIVE_NAMES:
        print(f"| {name} | {' | '.join(str(counted[name, way]) for way in ways)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
