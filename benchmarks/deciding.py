"""Is a tuned budget better than a shipped preset, on conversations it was not tuned on?

    python -m benchmarks.deciding FOLDER [FILE ...]

Each file of many conversations is split in two halves. On the first half the output reserve and the policy are tuned
for one objective; on the second half the result stands beside every shipped preset under the policy that a preset has
when nothing is said, the oldest messages first. The window is half of the longest conversation, so that something
must go. Printed is the share by which the tuned budget is smaller in the objective, with its 95 % interval: above 0
it wins. What is not won is printed too.
"""

import sys
from pathlib import Path

import numpy as np

import budgetkit as bk
from budgetkit.deciding.tuned import gain_of
from budgetkit.deciding.tuning import OBJECTIVES
from budgetkit.trace import Trace

OBJECTIVE_NAMES = ("cut", "evidence", "cost")
POLICIES = {
    "oldest first": bk.policies.OldestFirst(),
    "low mark": bk.policies.TriggerTarget(),
    "last 6 turns": bk.policies.SlidingWindow(6),
}
FEWEST, MOST = 8, 60


def window_of(traces: list[Trace], count: bk.counter) -> int:  # type: ignore[valid-type]
    """Return half of the longest conversation, in tokens."""
    return max(400, max(int(trace.counts(count).sum()) for trace in traces) // 2)


def scores(traces: list[Trace], budget: bk.Budget, policy: object, name: str, prices: object) -> np.ndarray:
    """Return the objective of each conversation under one budget; not a number where it cannot be planned."""
    found = []
    for trace in traces:
        try:
            roles = budget.roles or None
            outcome = bk.replay(trace, budget, policy, prices=prices, roles=roles)  # type: ignore[arg-type]
            found.append(OBJECTIVES[name](outcome))
        except (ValueError, LookupError):
            found.append(float("nan"))
    return np.array(found)


def main(paths: list[str]) -> None:
    """Print a row for each file, objective and preset."""
    files = [each for path in map(Path, paths) for each in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]
    prices, count = bk.cost.prices("gpt-4o"), bk.counter("gpt-4o")
    print("| conversations | n | objective | tuned to | beside | smaller by | 95 % interval |")
    print("|---|--:|---|---|---|--:|---|")
    for file in files:
        try:
            traces = [trace for trace in bk.load_traces(file) if any(m.role == "assistant" for m in trace.messages)][
                :MOST
            ]
        except ValueError:
            continue
        if len(traces) < FEWEST:
            continue
        window = window_of(traces, count)
        start = bk.presets.working_memory(window, output=window // 8, history_floor=0)
        vary = {"output": [window // 16, window // 8, window // 5], "policy": POLICIES}
        for name in OBJECTIVE_NAMES:
            found = bk.tune(traces, start, vary, name, prices=prices, workers=2)
            held = sorted(np.random.default_rng(0).permutation(len(traces)).tolist()[: len(traces) // 2])
            rest = [traces[i] for i in held]
            tuned = scores(rest, found.budget, found.policy, name, prices)
            for preset, make in bk.presets.PRESETS.items():
                beside = scores(rest, make(window), bk.policies.OldestFirst(), name, prices)
                both = ~np.isnan(tuned) & ~np.isnan(beside)
                if both.sum() < 2 or not beside[both].sum():
                    shown = "| nothing lost there | |" if both.sum() >= 2 else "| cannot be planned | |"
                else:
                    gain, low, high = gain_of(beside[both], tuned[both], 0)
                    won = "" if low > 0 else " (not won)"
                    shown = f"| {100 * gain:.1f} %{won} | {100 * low:.1f} to {100 * high:.1f} |"
                best = ", ".join(f"{line} {value}" for line, value in found.best.items())
                print(f"| {file.stem} | {len(rest)} | {name} | {best} | {preset} {shown}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
