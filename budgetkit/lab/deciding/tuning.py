"""Tuning of a budget on conversations, with a test on held-out conversations.

The conversations are split into two halves. Each half chooses a setting, which is then compared with the current
setting on the other half. A setting always looks good on the half that chose it, so only the other half measures its
gain. Both measurements are pooled, which detects more true gains than a single measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, check_choice, check_tokens, quoted
from budgetkit.counters import count_of
from budgetkit.inputs.budgets import (
    AnyBudget,
    AnyCounter,
    AnyModel,
    budget_of,
    filled_in,
    read_budget,
)
from budgetkit.inputs.conversations import AnyTrace, traces_of
from budgetkit.lab.accuracy.streaming import Client, completed_tasks
from budgetkit.lab.deciding.objectives import (
    OBJECTIVES,
    AnyObjective,
    Gain,
    Objective,
    Summaries,
    objective_of,
)
from budgetkit.lab.deciding.space import (
    CANNOT_BE_PLANNED,
    SearchSpace,
    Setting,
    Vary,
    candidates,
    setting_text,
    settings_to_try,
    values_of,
)
from budgetkit.lab.figures.tables import is_unbeaten
from budgetkit.lab.replay.cost import Prices, prices_of
from budgetkit.lab.replay.losses import evidence
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.replaying import replay
from budgetkit.message import Data, Raw
from budgetkit.plan import Floats
from budgetkit.pruning import Policy, policy_of
from budgetkit.trace import Trace

Progress = Callable[[int, int], None]
_NO_PRICES = (
    "Missing prices for the objective 'cost'. Pass prices='gpt-5.4' or another model's name."
)
TIE = 1e-9  # means that differ by less are equal
#: Level of the pooled interval. The halves share their conversations: at 0.05, noise passes for a gain in 4 % of runs;
#: at 0.025, in at most 2.5 %, and the interval contains the true gain in at least 95 %.
POOLED_RISK = 0.025


@dataclass(frozen=True)
class Measurement:
    """A function that measures settings by replaying a conversation."""

    space: SearchSpace
    settings: Sequence[Setting]
    objectives: Mapping[str, Objective]
    options: Raw

    def __call__(self, trace: Trace) -> list[list[float]]:
        """Measure all settings on one conversation.

        The measurements of a setting are NaN if it cannot be planned or reserves too little for answers. The current
        setting, which changes nothing, may reserve too little. A first objective "cost" without prices
        raises `ValueError`.
        """
        measures: dict[str, Callable[[Replay], float]] = {**self.objectives}
        if "evidence" in measures:
            # The needed messages are the same under every setting.
            measures["evidence"] = partial(self.objectives["evidence"], pairs=evidence(trace))
        nothing = [float("nan")] * len(measures)
        rows = []
        for setting in self.settings:
            if setting and self.space.is_short(setting):
                rows.append(nothing)
                continue
            try:
                outcome = replay(trace, *self.space.apply(setting), **self.options)
            except ValueError:
                rows.append(nothing)
                continue
            row = [measure(outcome) for measure in measures.values()]
            if "cost" in [*measures][:1] and np.isnan(row[0]):
                raise ValueError(_NO_PRICES)
            rows.append(row)
        return rows

    def scores(
        self,
        traces: Sequence[Trace],
        workers: int = 1,
        client: Client | None = None,
        progress: Progress | None = None,
    ) -> Floats:
        """Measure all conversations, optionally in several processes or on a cluster."""
        rows = []
        is_split = client is None and workers > 1
        with ProcessPoolExecutor(workers) if is_split else nullcontext() as pool:
            results = pool.map(self, traces) if pool else completed_tasks(self, traces, client)
            for row in results:
                rows.append(row)
                if progress is not None:
                    progress(len(rows), len(traces))
        return np.array(rows, "float64")


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The best setting tried, and its gain on held-out conversations.

    Parameters
    ----------
    space : SearchSpace
        The current budget and policy, and the lines that may change.
    settings : sequence of dict
        The tried settings, each a mapping from lines to names of values.
    aims : mapping of str to Objective
        The objectives, of which the first decides.
    scores : ndarray
        All measurements, of shape (conversations, settings, objectives), the current setting first.
    parts : tuple of list of int
        Indices of the conversations in each half. The table shows the first half.
    seed : int
        Seed of the split and of the sample of settings.
    search : str
        How the settings were chosen: "all" or "drawn at random".
    no_more : collection of str
        Objectives that the chosen setting must not worsen.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> tuned = bk.deciding.tune(bk.load_traces("made-up-chats"), budget, {"output": [100, 150, 200]}, "cut")
    >>> tuned.best, tuned.stays, tuned.chosen.holds
    ({'output': 100}, False, True)
    """

    space: SearchSpace = field(repr=False)
    settings: Sequence[Setting] = field(repr=False)
    aims: Mapping[str, Objective] = field(repr=False)
    scores: Floats = field(repr=False)
    parts: tuple[list[int], list[int]] = field(repr=False)
    seed: int = 0
    search: str = "all"
    no_more: Collection[str] = ()

    @property
    def objective(self) -> str:
        """The first objective's name."""
        return next(iter(self.aims))

    @property
    def of(self) -> int:
        """The total number of settings, tried or not."""
        return prod(map(len, self.space.values.values()))

    @property
    def tried(self) -> int:
        """The number of settings that were tried."""
        return len(self.settings)

    @property
    def conversations(self) -> tuple[int, int]:
        """The number of conversations in each half."""
        return len(self.parts[0]), len(self.parts[1])

    @cached_property
    def reasons(self) -> list[str]:
        """The reason for excluding each setting, or "" for an allowed setting."""
        floor = self.space.floor
        reasons = [""] * self.tried
        for place in np.flatnonzero(np.isnan(self.scores[:, 1:, 0]).any(axis=0)).tolist():
            reasons[place] = CANNOT_BE_PLANNED
        for place, setting in enumerate(self.settings):
            if floor is not None and self.space.is_short(setting):
                need = f"the {floor.tokens:,} tokens that answers need"
                reasons[place] = f"reserves less than {need}"
        return reasons

    def choice(self, part: Sequence[int]) -> int | None:
        """Return the row of the best setting on some conversations.

        If the current setting is the best, return None. Settings that worsen an objective in `no_more` are left out,
        unless no others remain and the current setting reserves too little for answers. Among settings with equal
        results, the current setting is chosen, or else the setting with the largest sizes. A current setting that
        reserves too little for answers is never chosen.
        """
        allowed = [row for row, reason in enumerate(self.reasons) if not reason]
        if not allowed:
            vary = quoted(self.space.values)
            reasons = " or ".join(sorted({*self.reasons}))
            problem = (
                f"may be chosen: each {reasons}. Try other values of {vary}, or pass risk=None."
            )
            if reasons == CANNOT_BE_PLANNED:
                problem = (
                    f"can be planned for every conversation. Vary {vary} less, or return a number as the "
                    "objective."
                )
            raise ValueError(f"None of {self.tried:,} settings {problem}")

        # The current setting stays if no other is permitted or better.
        means = self.scores[part].mean(axis=0)
        columns = [place for place, name in enumerate(self.aims) if name in self.no_more]
        most = means[0, columns] + TIE
        is_short = self.space.is_short({})
        bounded = [row for row in allowed if (means[1 + row, columns] <= most).all()]
        if not bounded and not is_short:
            return None
        bounded = bounded or allowed
        least = min(float(means[1 + row, 0]) for row in bounded)
        least += TIE * max(1.0, abs(least))
        tied = [row for row in bounded if means[1 + row, 0] <= least]
        for row in tied:
            if self.space.is_present(self.settings[row]):
                return row
        if means[0, 0] <= least and not is_short:
            return None
        return max(tied, key=lambda row: (self.space.size(self.settings[row]), -row))

    @cached_property
    def row(self) -> int | None:
        """The table row of the candidate, or None for the current setting."""
        return self.choice(self.parts[0])

    @property
    def _is_present(self) -> bool:
        return self.row is None or self.space.is_present(self.settings[self.row])

    @property
    def candidate(self) -> Data:
        """The best setting on the first half, regardless of its gain."""
        return self.space.present() if self.row is None else dict(self.settings[self.row])

    @cached_property
    def stays(self) -> bool:
        """True if the current setting is best, or no gain is reliable.

        A current setting that cannot be planned, or reserves too little for answers, never stays.
        """
        must_go = self.space.is_short({}) or np.isnan(self.chosen.share)
        return self._is_present or not (must_go or self.chosen.holds)

    @property
    def best(self) -> Data:
        """The setting to use: the candidate, unless the current setting stays."""
        return self.space.present() if self.stays else self.candidate

    @cached_property
    def _applied(self) -> tuple[Budget, Policy]:
        return self.space.apply({} if self.stays else self.candidate)

    @property
    def budget(self) -> Budget:
        """The budget to use."""
        return self._applied[0]

    @property
    def policy(self) -> Policy:
        """The policy to use."""
        return self._applied[1]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A table of the settings, with their values and mean objectives."""
        means = self.scores[self.parts[0]].mean(axis=0)[1:]
        means[np.array(self.reasons) != ""] = np.nan
        table = pd.DataFrame(self.settings)
        table[list(self.aims)] = means
        means = means[:, ~np.isnan(means).all(axis=0)]  # without objectives that have no number
        table["front"] = is_unbeaten(means) & ~np.isnan(means).any(axis=1)
        table["left out"] = self.reasons
        return table

    @property
    def front(self) -> pd.DataFrame:
        """The settings that no other setting beats in all objectives."""
        return self.table[self.table["front"]].reset_index(drop=True)

    @cached_property
    def chosen(self) -> Gain:
        """The pooled gain of the candidate."""
        return self.gain_at(self.row)

    def gain_at(self, row: int | None, objective: int = 0) -> Gain:
        """Return the gain of a table row, or of the current setting.

        A row of None means the current setting. The gain of the candidate is pooled: each half is measured with the
        setting that the other half chose. All other rows are measured on the second half. The interval of such a row is
        corrected for the number of rows compared: the rows on the front, or all rows of the table for a row that is not
        on the front.
        """
        halves: list[tuple[int | None, list[int]]] = [(row, self.parts[1])]
        risk = 0.05
        if row == self.row:
            halves.append((self.choice(self.parts[1]), self.parts[0]))
            risk = POOLED_RISK
        elif row is not None:
            front = self.table["front"]
            risk /= int(front.sum()) if front[row] else self.tried
        scores = self.scores[:, :, objective]
        before = np.concatenate([scores[part, 0] for _, part in halves])
        after = np.concatenate([scores[part, 0 if at is None else 1 + at] for at, part in halves])
        return Gain(before, after, self.seed, risk)

    @property
    def notices(self) -> list[str]:
        """Limitations of the result, such as excluded settings.

        Other limitations are halves that choose different settings, and a best setting at the edge of the tried values.
        """
        notices = [*self.space.notices(self.settings, self.reasons)]
        if self._is_present:
            return notices
        other = self.choice(self.parts[1])
        if other != self.row:
            setting = self.space.present() if other is None else self.settings[other]
            notices.append(
                f"The other half chose {setting_text(setting)}; the gain combines both choices."
            )
        tried = [s for s, reason in zip(self.settings, self.reasons, strict=True) if not reason]
        return notices + self.space.corner(self.candidate, tried, self.aims[self.objective])

    def verdict(self, what: str = "this setting", aside: str = "", bound: str = "") -> str:
        """Describe the gain of the candidate in words."""
        aim = self.aims[self.objective]
        if np.isnan(self.chosen.share):
            return "The current setting cannot be planned for every conversation, so no gain is measured."
        if self.chosen.before.any() and self._is_present:
            return f"No setting tried {aim.than_at_present()}{bound}. Keep the current setting."
        return self.chosen.sentence(what, aim, aside)

    def __str__(self) -> str:
        sentences = [self.verdict(), f"The setting: {setting_text(self.best)}."]
        if self.best != self.candidate:
            sentences.append(
                f"Keep the current setting. The best candidate is {setting_text(self.candidate)}."
            )
        sentences += self.notices
        if self.tried < self.of:
            sentences.append(f"{self.tried:,} of {self.of:,} settings were tried, {self.search}.")
        return " ".join(sentences)


def tune(
    traces: AnyTrace,
    budget: AnyBudget,
    vary: Vary | None = None,
    objective: AnyObjective | Sequence[AnyObjective] = "cut",
    *,
    trials: int = 2_000,
    seed: int = 0,
    workers: int = 1,
    client: Client | None = None,
    progress: Progress | None = None,
    risk: float | None = 0.05,
    summaries: Summaries = "lost",
    no_more: Collection[str] = (),
    **options: Any,
) -> TuningResult:
    """Choose the best setting, and test it on held-out conversations.

    Parameters
    ----------
    traces : sequence of Trace, str or Path
        At least four conversations. An interval of the gain needs seven conversations in which the objective is above 0
        with or without the setting. A string is the name of a shipped trace or a path.
    budget : Budget, str, Path or callable
        The current budget, a preset, or the name of a preset.
    vary : mapping of str to iterable, optional
        The values to try for each line. For "window", a reserve or a section, these are sizes in tokens or shares. For
        "policy", these are names from :data:`budgetkit.pruning.policies.NAMED`, or a mapping of your own names to
        policies. Default: the values of :func:`budgetkit.lab.deciding.candidates` for this budget and these
        conversations.
    objective : str, callable or sequence of both, default "cut"
        Objectives to minimise: "cut" (tokens), "evidence" (needed messages lost), "cost" (US dollars), "uncached"
        (share of the sent tokens) or any function that returns a number for a `Replay`. The first objective decides;
        all objectives define the front, the settings that no other setting beats in all objectives.
    trials : int, default 2,000
        Maximum number of settings to try. If there are more settings, a random sample of them is tried, and the result
        says so.
    seed : int, default 0
        Seed of the split and of the sample.
    workers : int, default 1
        Number of processes that replay the conversations.
    client : dask.distributed.Client, optional
        Dask client of a cluster to use.
    progress : callable, optional
        Function called after each conversation, with the number of finished conversations and the total number. An
        error in this function stops the tuning.
    risk : float, optional, default 0.05
        Accepted share of answers longer than their reserve. Settings that reserve less than
        :func:`budgetkit.lab.deciding.answer_reserve` finds for this share are excluded. None excludes no settings.
    summaries : {"lost", "kept"}
        Whether summarised messages count as lost or as kept.
    no_more : collection of str
        Names of objectives that the chosen setting must not worsen. They are measured like the objectives, and count
        for the front.
    **options
        As in :func:`budgetkit.replay`: the current `policy` (default: drop the oldest messages first), `prices` for
        "cost", `model`, `window`, `counter`, `framing`, `by` and `cache`.

    Returns
    -------
    TuningResult
        The budget to use and the best candidate. The budget to use is the current budget unless the gain is reliable.

    Raises
    ------
    ValueError
        If there are too few conversations, nothing to vary, no permitted setting, or no price for the objective
        "cost" if it comes first or in `no_more`.
    LookupError
        If a line, a policy or an objective is unknown.

    Examples
    --------
    >>> import budgetkit as bk
    >>> traces = bk.load_traces("mixed-language") * 8
    >>> budget = bk.presets.working_memory(4_000, output=1_000, history_floor=0)
    >>> tuned = tune(traces, budget, {"output": [500, 1_000]}, "cut")
    >>> tuned.best, tuned.tried
    ({'output': 500}, 2)
    """
    traces, budget, policy, options = replay_case(traces, budget, **options)
    check_choice("summaries", summaries, ("lost", "kept"))
    check_tokens("trials", trials, 1)
    several = [objective] if isinstance(objective, str) or callable(objective) else objective
    objectives = dict(objective_of(aim, summaries) for aim in several)
    if not objectives:
        raise ValueError(f"No objective. Pass one of {quoted(OBJECTIVES)}.")
    if "cost" in no_more and options["prices"] is None:
        raise ValueError(_NO_PRICES)
    others = [name for name in no_more if name not in objectives]
    objectives |= dict(objective_of(name, summaries) for name in others)
    parts = split(len(traces), seed)

    # The values to try, and the minimum reserve for answers.
    count = count_of(options.get("counter") or options.get("model") or "o200k_base")
    if vary is None:
        vary = candidates(budget, traces, count, risk or 0.05)
    space = SearchSpace(budget, policy, values_of(vary)).with_floor(traces, count, risk)
    settings, search = settings_to_try(space.values, trials, seed)

    # Scores by conversation, setting (the current one first) and objective.
    measurement = Measurement(space, [{}, *settings], objectives, options)
    scores = measurement.scores(traces, workers, client, progress)
    result = TuningResult(
        space=space,
        settings=settings,
        aims=objectives,
        scores=scores,
        parts=parts,
        seed=seed,
        search=search,
        no_more=no_more,
    )
    result.choice(parts[0])  # raises if no setting may be chosen
    return result


def replay_case(
    traces: AnyTrace,
    budget: AnyBudget,
    policy: Policy | str | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    prices: Prices | str | None = None,
    counter: AnyCounter | None = None,
    **options: Any,
) -> tuple[list[Trace], Budget, Policy, Data]:
    """Convert a replay's arguments, taking defaults from a configuration."""
    budget = read_budget(budget)
    model, counter, policy = filled_in(budget, model, counter, policy)
    named = {"model": model, "counter": counter}
    options |= {name: value for name, value in named.items() if value is not None}
    rule = policy_of("oldest first" if policy is None else policy)
    sized = budget_of(budget, model, window)
    cache = options.get("cache")
    lasting = cache is not None and cache.is_for_an_hour
    return traces_of(traces), sized, rule, {**options, "prices": prices_of(prices, lasting)}


def sensitivity(
    traces: AnyTrace,
    budget: AnyBudget,
    vary: Vary,
    objective: AnyObjective = "cut",
    *,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Measure the effect of each line alone on an objective.

    Only the first half of the conversations is used, as split by :func:`tune` with the same seed.

    Parameters
    ----------
    traces, budget, vary, objective, seed, progress, **options
        As in :func:`tune`, with one objective.

    Returns
    -------
    DataFrame
        One row for each line and value, with the columns line, value, mean (of the objective over the conversations),
        change (relative to the current setting), conversations (number of conversations) and spread (range of the
        line's changes, including 0). The line with the largest spread is first.

    Raises
    ------
    ValueError
        If there are too few conversations, nothing to vary, or no price for the objective "cost".
    LookupError
        If a line, a policy or the objective is unknown.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> found = sensitivity(bk.load_traces("made-up-chats"), budget, {"output": [100, 200], "episodes": [10, 20]})
    >>> found.groupby("line", sort=False)["spread"].first().round(2).to_dict()
    {'output': 0.32, 'episodes': 0.0}
    """
    aims = dict([objective_of(objective)])
    traces, budget, policy, options = replay_case(traces, budget, **options)
    space = SearchSpace(budget, policy, values_of(vary))
    moves = [(line, value) for line, by_name in space.values.items() for value in by_name]
    settings: list[Data] = [{}, *({line: value} for line, value in moves)]
    seen = [traces[place] for place in split(len(traces), seed)[0]]
    scores = Measurement(space, settings, aims, options).scores(seen, progress=progress)
    before, *means = scores[:, :, 0].mean(axis=0)
    table = pd.DataFrame(moves, columns=["line", "value"]).assign(mean=means)
    changes = table["mean"] - before
    table["change"] = changes / before if before else np.where(changes == 0, 0.0, np.inf)
    table["conversations"] = len(seen)
    # The current setting, which changes nothing, is one end if all others lie on one side of it.
    by_line = table.groupby("line")["change"]
    spread = by_line.max().clip(lower=0.0) - by_line.min().clip(upper=0.0)
    table["spread"] = table["line"].map(spread)
    return table.sort_values("spread", ascending=False, kind="stable", ignore_index=True)


def split(many: int, seed: int) -> tuple[list[int], list[int]]:
    """Split the indices of conversations at random into two halves."""
    if many < 4:
        raise ValueError(f"Too few conversations: {many}. Pass at least 4.")
    order = list(range(many))
    Random(seed).shuffle(order)
    half = round(many / 2)
    return sorted(order[half:]), sorted(order[:half])
