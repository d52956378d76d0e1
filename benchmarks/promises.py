"""Promises of the next one, beside what comes true: gains of noise, windows, reserves, means; with widths and n.

A row is one promise: what was promised, what was observed on others, how wide it had to be, and on how many units. A
promise that always holds and is as wide as a barn door tells nothing, so both stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import budgetkit as bk
from benchmarks.calibrations import recorded
from benchmarks.exactness import Judged, judge, table
from budgetkit import accuracy
from budgetkit.counters import basis_of
from budgetkit.lab.deciding.objectives import Gain
from budgetkit.lab.deciding.space import answer_reserve, recorded_lengths
from budgetkit.models import resolve
from budgetkit.plan import Floats
from budgetkit.promise import needed, upper
from budgetkit.requests.billing.evidence import find_evidence

RISK = 0.05
HELD_OUT = (8, 15, 30)
SETTINGS = 20
MOST_CLAIMS, LEAST_COVERED, LEAST_SEEN = 0.033, 0.93, 0.85
LEAST_MEANS = 0.68
MOST_CUT = 0.051  # of the next conversations, where 5 % is promised
DRAWN = 20_000  # times that conversations are drawn for a window
ROUNDS = 60  # splits of the conversations of a folder
#: Fewest that a row is judged on: at 1,000 runs of a chance of 2.5 %, one standard error is 0.5 points; at 5 it is 7.
JUDGED_RUNS = 1_000
#: Conversations, splits and such: as many as a 90 % promise of the next one needs.
JUDGED = needed(0.1)
LEAST_EXACT, LEAST_BILLS = 0.98, 0.88  # of the next project's calls
SLACK = 1.2  # times the risk: what a mean over few splits may differ by


@dataclass(frozen=True)
class Promised:
    """One promise beside what came true.

    Examples
    --------
    >>> few = Promised("noise claims a gain", "at most 3.3 %", 0.2, "40 points", n=5, is_kept=False, judged_from=1_000)
    >>> few.verdict, few.is_missed
    ('not judged (n = 5)', False)
    """

    promise: str
    promised: str
    observed: float
    width: str
    n: int
    is_kept: bool
    judged_from: int = JUDGED

    @property
    def is_missed(self) -> bool:
        """Whether it was not kept, on enough to say so."""
        return not self.is_kept and self.n >= self.judged_from

    @property
    def verdict(self) -> str:
        """Whether it was kept, in a word; what was seen too few times is not judged."""
        if self.n < self.judged_from:
            return f"not judged (n = {self.n:,})"
        return "yes" if self.is_kept else "no"

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return {
            "promise": self.promise,
            "promised": self.promised,
            "observed": f"{100 * self.observed:.1f} %",
            "width": self.width,
            "n": self.n,
            "kept": self.verdict,
        }


def gains(runs: int) -> Iterator[Promised]:
    """Tune on noise, and on a true gain of 30 %: what is claimed, what the intervals hold, what is seen."""
    for held_out in HELD_OUT:
        random = np.random.default_rng(held_out)
        noise = []
        true = []
        for run in range(runs):
            present, other = noisy(random, held_out)
            noise.append(Gain(present, other, seed=run))
            true.append(Gain(present, 0.7 * other, seed=run))
        claims = float(np.mean([gain.holds for gain in noise]))
        covered = float(np.mean([gain.low <= 0 <= gain.high for gain in noise]))
        seen = float(np.mean([gain.holds for gain in true]))
        wide = float(np.median([gain.high - gain.low for gain in noise]))
        where = f"{held_out} conversations held out"
        promised = partial(
            Promised, width=f"{100 * wide:.0f} points", n=runs, judged_from=JUDGED_RUNS
        )
        yield promised(
            promise=f"tune, noise only, {where}: a gain is claimed",
            promised=f"at most {100 * MOST_CLAIMS:g} %",
            observed=claims,
            is_kept=claims <= MOST_CLAIMS,
        )
        yield promised(
            promise=f"tune, noise only, {where}: the interval holds",
            promised=f"at least {100 * LEAST_COVERED:g} %",
            observed=covered,
            is_kept=covered >= LEAST_COVERED,
        )
        if held_out != max(HELD_OUT):
            continue
        yield promised(
            promise=f"tune, a true gain of 30 %, {where}: it is seen",
            promised=f"at least {100 * LEAST_SEEN:g} %",
            observed=seen,
            is_kept=seen >= LEAST_SEEN,
        )


def noisy(random: np.random.Generator, held_out: int) -> tuple[Floats, Floats]:
    """Return an objective at present and of the best of many settings that are no better, chosen on another half."""
    sizes = random.lognormal(0, 0.7, 2 * held_out)
    present = sizes * random.lognormal(0, 0.3, 2 * held_out)
    others = sizes[:, None] * random.lognormal(0, 0.3, (2 * held_out, SETTINGS))
    best = int(others[:held_out].mean(axis=0).argmin())
    return present[held_out:], others[held_out:, best]


def windows(sources: Mapping[str, Sequence[bk.Trace]]) -> Iterator[Promised]:
    """Ask a part of the conversations for a window that cuts one in twenty of the next, and count the others."""
    count = bk.counter("o200k_base")
    sizes = np.array(
        [int(trace.counts(count).sum()) for traces in sources.values() for trace in traces]
    )
    for seen in (19, 20, 40):
        if len(sizes) < seen + 20:
            continue
        cut, wide = [], []
        for split in range(DRAWN):
            order = np.random.default_rng(split).permutation(sizes)
            window = float(upper(order[:seen].tolist(), RISK) or 0)
            # Some of the windows are asked of `solve` itself; a draw takes far less than a search.
            if split < ROUNDS and window != _window(order[:seen]):
                raise AssertionError(f"solve finds another window than {window:,.0f}")
            cut.append(float((order[seen:] > window).mean()))
            wide.append(window / max(1.0, float(np.quantile(order[seen:], 1 - RISK))))
        yield Promised(
            promise=f"solve on {seen} conversations: others are cut",
            promised=f"at most {100 * RISK:g} %",
            observed=float(np.mean(cut)),
            width=f"{np.median(wide):.2f} x what they need",
            n=DRAWN,
            is_kept=float(np.mean(cut)) <= MOST_CUT,
        )


def _window(sizes: Floats) -> int:
    """Return the smallest window that is promised to cut one in twenty of the next conversations."""
    budget = bk.Budget(1_000, [], [bk.Allocation("history")])
    demands = [pd.DataFrame({"history": [int(size)]}) for size in sizes]
    solution = bk.deciding.solve(demands, budget, "window", bk.deciding.cut_at_most(RISK))
    return solution.value or 0


def reserves(sources: Mapping[str, Sequence[bk.Trace]]) -> Iterator[Promised]:
    """Ask half of a file's conversations for the reserve of an answer, and measure the others' answers."""
    count = bk.counter("o200k_base")
    longer, wide, files = [], [], 0
    for traces in sources.values():
        answering = [trace for trace in traces if recorded_lengths([trace], count)]
        if len(answering) < 2 * needed(RISK):
            continue
        files += 1
        for split in range(ROUNDS // 6):
            order = np.random.default_rng(split).permutation(len(answering))
            half = len(order) // 2
            found = answer_reserve([answering[place] for place in order[:half]], count, RISK)
            others = recorded_lengths([answering[place] for place in order[half:]], count)
            longer.append(float(np.mean([(answers > found.tokens).mean() for answers in others])))
            wide.append(
                found.tokens / max(1.0, float(np.quantile(np.concatenate(others), 1 - RISK)))
            )
    if longer:
        yield Promised(
            promise=f"answer_reserve in {files} files: others' answers are longer",
            promised=f"at most {100 * RISK:g} %",
            observed=float(np.mean(longer)),
            width=f"{np.median(wide):.2f} x what they need",
            n=len(longer),
            is_kept=float(np.mean(longer)) <= SLACK * RISK,
        )


def means(errors: pd.DataFrame) -> Iterator[Promised]:
    """Ask half of the sources for the interval of a mean error, and look whether the other half's lies in it."""
    held, wide = [], []
    sources = errors["source"].unique()
    for split in range(ROUNDS):
        random = np.random.default_rng(split)
        taken = set(random.permutation(sources)[: len(sources) // 2])
        is_mine = errors["source"].isin(taken)
        table = accuracy.summary(errors[is_mine], ["counter"], seed=split).set_index("counter")
        for name, rows in errors[~is_mine].groupby("counter", sort=False):
            low, high = table.loc[name, ["mape_low", "mape_high"]].to_numpy(float)
            if np.isnan(low):
                continue
            mean = float(rows["error"].abs().mean())
            held.append(low <= mean <= high)
            wide.append((high - low) / max(mean, 1e-9))
    if held:
        yield Promised(
            promise="summary: other sources' mean error lies in the interval",
            promised=f"at least {100 * LEAST_MEANS:g} %",
            observed=float(np.mean(held)),
            width=f"{100 * float(np.median(wide)):.0f} % of the mean",
            n=len(held),
            is_kept=float(np.mean(held)) >= LEAST_MEANS,
        )


def counts(paths: Sequence[Path]) -> Iterator[Promised]:
    """Ask the calls of all other projects how sure a count is, and look at the bill."""
    judged = [(call["model"], judge(call)) for path in paths for call in recorded(path)]
    calls = list(dict.fromkeys((model, row) for model, row in judged if row is not None))
    without = {
        project: {
            row.combination: row for row in table(row for _, row in calls if row.project != project)
        }
        for project in {row.project for _, row in calls}
    }
    exact = []
    held: dict[str, list[tuple[str, bool, float]]] = {}
    for model, row in calls:
        evidence = find_evidence(row.names, without[row.project])
        if evidence.earns_exact and basis_of(bk.counter(resolve(model))) == "exact":
            exact.append(row.counted == row.billed)
        low = min(row.counted - 1, round(row.counted * (1 + evidence.low)))
        high = max(row.counted + 1, round(row.counted * (1 + evidence.high)))
        held.setdefault(maker(row), []).append(
            (row.project, low <= row.billed <= high, high / max(1, low))
        )
    if exact:
        yield Promised(
            promise="count_request, called exact: it is",
            promised=f"at least {100 * LEAST_EXACT:g} %",
            observed=float(np.mean(exact)),
            width="0",
            n=len(exact),
            is_kept=float(np.mean(exact)) >= LEAST_EXACT,
        )
    for name, rows in sorted(held.items()):
        frame = pd.DataFrame(rows, columns=["project", "is_held", "width"])
        observed = float(frame.groupby("project")["is_held"].mean().mean())
        yield Promised(
            promise=f"count_request, {name}, {len(frame):,} calls: the bill lies in the interval, mean over projects",
            promised=f"at least {100 * LEAST_BILLS:g} %",
            observed=observed,
            width=f"a factor of {frame['width'].median():.2f}",
            n=int(frame["project"].nunique()),
            is_kept=observed >= LEAST_BILLS,
        )


def maker(row: Judged) -> str:
    """Return whose rules counted a call, without the kind of its content."""
    name = row.names[-2].partition(":")[0]
    if name.startswith("estimate-"):
        return f"{name.removeprefix('estimate-')} by estimate"
    return name
