"""Tune a budget on conversations of your own, and say whether the gain holds on others.

Conversations are split, not turns. The choice is made on one part and reported on the other, beside the present
setting, with an interval from random parts of the conversations. What is best on the part it was chosen on always
looks good there; what counts is the other part, and nothing is chosen by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from math import prod
from random import Random
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget import Allocation, Budget, Reserve, Share
from budgetkit.budget.amounts import amount_of, check_tokens, tokens_of
from budgetkit.budget.quoting import brief, quoted
from budgetkit.counters import count_of
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, AnyModel, budget_of, read_budget
from budgetkit.inputs.configuration import filled_in
from budgetkit.inputs.conversations import AnyTrace, traces_of
from budgetkit.lab.accuracy.streaming import Client, answers
from budgetkit.lab.deciding.answers import (
    AnswerReserve,
    answer_reserve,
    recorded_lengths,
    reserve_of_answers,
)
from budgetkit.lab.replay import Replay, replay
from budgetkit.lab.replay.cost import Prices, prices_of
from budgetkit.lab.replay.losses import evidence, needed_there
from budgetkit.plan.allocating import with_undeclared
from budgetkit.promise import FEWEST_FOR_A_GAIN, typical
from budgetkit.pruning.history import SUMMARISED
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.pruning.policies.systems import policy_of
from budgetkit.trace import Trace

Floats = npt.NDArray[np.float64]
Setting = Mapping[str, Any]  # the name of a value, by line
Values = Mapping[
    str, Mapping[Any, Any]
]  # the values of a line by the names that a table gives them
Progress = Callable[[int, int], None]
Summaries = Literal["lost", "kept"]
NO_CAP: Final = "no cap"
CANNOT_BE_PLANNED: Final = "cannot be planned for every conversation"
TIE: Final = 1e-9  # means that differ by less come to the same
_ALL_PARTS_UP_TO: Final = 11  # conversations, of which every part is taken; of more, some are drawn
_PARTS: Final = 1_999
_MOST_PARTS: Final = 39_999
_LARGE: Final = 1 / 3  # of the whole, in one conversation


# --- what may be made small


@dataclass(frozen=True)
class Objective:
    """Something of a replay that should be small, and how it is said."""

    measure: Callable[..., float]
    noun: str  # "tokens cut"
    verb: str  # what a budget does: "cuts"
    less: str = "less"  # "fewer tokens"
    form: str = "{:,.0f}"
    at_a_corner: str = ""  # why more of the same always wins

    def __call__(self, outcome: Replay, **options: Any) -> float:
        """Return the number of one replay."""
        return self.measure(outcome, **options)

    def than_at_present(self, size: str = "", more: bool = False) -> str:
        """Say that a budget brings less, or more: "cuts 8 % fewer tokens than at present"."""
        less = self.less
        if more:
            less = less.replace("fewer", "more").replace("less", "more")
        return f"{self.verb} {size}{less} than at present"

    @property
    def unit(self) -> str:
        """What there is less of: " tokens"."""
        return self.less.removeprefix("fewer").removeprefix("less")


def _cut(outcome: Replay, summaries: Summaries = "lost") -> float:
    """Return the tokens that were cut: dropped, of other sections, and replaced by a summary."""
    cut = float(np.sum(outcome.kept.dropped))
    for section, column in outcome.columns.items():
        if section != outcome.section:
            cut += int(column["cut"].sum())
    if summaries == "kept":
        return cut
    replaced = np.array(outcome.kept.state, dtype=np.int64) == SUMMARISED
    return cut + float(np.asarray(outcome.placed.tokens)[replaced].sum())


def _lost_evidence(
    outcome: Replay, pairs: pd.DataFrame | None = None, summaries: Summaries = "lost"
) -> float:
    """Return how many needed messages are not there; what a summary replaced is not there."""
    if pairs is None:
        pairs = evidence(outcome.trace)
    _, needs, is_there = needed_there(outcome, pairs)
    if summaries == "kept":
        is_there = is_there | (np.array(outcome.kept.state, dtype=np.int64)[needs] == SUMMARISED)
    return float(np.sum(~is_there))


def _cost(outcome: Replay) -> float:
    return float(np.sum(outcome.cost))


def _uncached(outcome: Replay) -> float:
    return 1 - float(np.sum(outcome.cached)) / max(1, int(np.sum(outcome.sent)))


_MORE_ROOM = "What more room costs, in money and in room for the answer, is not in it."
#: What may be made small, by name.
OBJECTIVES: Mapping[str, Objective] = {
    "evidence": Objective(
        _lost_evidence,
        "needed messages lost",
        "loses",
        "fewer needed messages",
        "{:,.2f}",
        f"only what is lost: whatever leaves the history more room loses less. {_MORE_ROOM}",
    ),
    "cut": Objective(
        _cut,
        "tokens cut",
        "cuts",
        "fewer tokens",
        "{:,.0f}",
        f"only what is cut: whatever leaves the history more room cuts less. {_MORE_ROOM}",
    ),
    "cost": Objective(
        _cost,
        "US dollars",
        "costs",
        "less",
        "${:,.4f}",
        "only money: whatever sends less costs less. What is lost by it is not in it.",
    ),
    "uncached": Objective(
        _uncached,
        "share of input not cached",
        "sends",
        "less outside the cache",
        "{:.1%}",
        "only what is read anew: what is never cut stays in the cache. What more room costs is not in it.",
    ),
}


def objective_of(
    objective: str | Callable[[Replay], float], summaries: Summaries = "lost"
) -> tuple[str, Objective]:
    """Return an objective, or any function of a replay as one, with its name."""
    if isinstance(objective, Objective):
        return next(name for name, known in OBJECTIVES.items() if known == objective), objective
    if callable(objective):
        name = getattr(objective, "__name__", "objective")
        return name, Objective(objective, name, "has", f"less {name}")
    if objective not in OBJECTIVES:
        raise LookupError(
            f"no objective {brief(objective)}; known are {quoted(OBJECTIVES)}, or a function of a Replay"
        )
    known = OBJECTIVES[objective]
    if summaries == "kept" and objective in ("cut", "evidence"):
        known = replace(known, measure=partial(known.measure, summaries="kept"))
    return objective, known


# --- what may change


def candidates(
    budget: AnyBudget,
    traces: AnyTrace,
    counter: AnyCounter,
    risk: float = 0.05,
    locked: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """Return what each line is tried with, by the name that a table gives it; nothing for a line that is locked.

    An explorer and :func:`budgetkit.lab.deciding.tune` try the same. The answer's reserve never falls below what
    :func:`budgetkit.lab.deciding.answer_reserve` finds. A cap is tried at half, at once and at one and a half times its
    size, and the remainder with less than all that is left.

    Parameters
    ----------
    budget : Budget, str, Path or Mapping
        The present setting, or what holds it.
    traces : sequence of Trace, str or Path
        The conversations, or what holds them.
    counter : str, Model or callable
        From text to tokens.
    risk : float, default 0.05
        Share of the answers that may be longer than their reserve.
    locked : collection of str
        Lines that stay as they are.

    Returns
    -------
    dict
        For each line its sizes in tokens by name, None for no cap.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> values = candidates(budget, bk.load_traces("made-up-chats"), bk.counter("gpt-4o"))
    >>> {line: [*sizes] for line, sizes in values.items() if line in ("output", "history")}
    {'output': ['78', '139', '200'], 'history': ['no cap', '300', '200', '100']}
    """
    budget = with_undeclared(budget_of(budget), {})
    traces = traces_of(traces)
    count = count_of(counter)
    sizes: dict[str, list[int | None]] = {}

    # The answer: what answers need, the present reserve, and half-way.
    reserve = reserve_of_answers(budget)
    if reserve is not None and recorded_lengths(traces, count):
        least = answer_reserve(traces, count, risk).tokens
        now = budget.sizes[reserve.name]
        tried = [least, (least + now) // 2, now] if now > least else [least, 2 * least]
        sizes[reserve.name] = [size for size in tried if size < budget.window]

    # Caps; the remainder has none, and is tried with less than all.
    for section, cap in budget.caps.items():
        if section == budget.remainder and cap is None:
            parts = [budget.usable * quarters // 4 for quarters in (3, 2, 1)]
            sizes[section] = [None, *(size for size in parts if size > 0)]
        elif cap:
            sizes[section] = [cap // 2, cap, cap * 3 // 2]
    return {
        line: {NO_CAP if size is None else f"{size:,}": size for size in of_line}
        for line, of_line in sizes.items()
        if of_line and line not in locked
    }


def sizes_of(values: Values, setting: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of a table as the sizes that it stands for; a policy stays a name."""
    return {
        line: name if line == "policy" else values[line][name] for line, name in setting.items()
    }


def settings_to_try(values: Values, trials: int, seed: int) -> tuple[list[dict[str, Any]], str]:
    """Return all settings of these values, or so many drawn by the seed, none twice; and which of the two it is.

    Examples
    --------
    >>> lines = {"output": {500: 500, 1_000: 1_000}, "window": dict.fromkeys(range(4_000, 8_000))}
    >>> settings, search = settings_to_try(lines, trials=3, seed=0)
    >>> len(settings), search
    (3, 'drawn by the seed')
    """
    choices = [list(by_name) for by_name in values.values()]
    if prod(map(len, choices)) <= trials:
        drawn: Iterable[tuple[Any, ...]] = product(*choices)
        search = "all"
    else:
        random = Random(seed)
        once: dict[tuple[Any, ...], None] = {}  # keeps the order, and each setting once
        while len(once) < trials:
            once[tuple(random.choice(names) for names in choices)] = None
        drawn = once
        search = "drawn by the seed"
    return [dict(zip(values, setting, strict=True)) for setting in drawn], search


def values_of(vary: Mapping[str, Iterable[Any]]) -> dict[str, dict[Any, Any]]:
    """Return for each line what may be set, by the name it has in the table."""
    values: dict[str, dict[Any, Any]] = {}
    for line, choices in vary.items():
        by_name = dict(choices) if isinstance(choices, Mapping) else {c: c for c in choices}
        if line == "policy":
            by_name = {name: policy_of(choice) for name, choice in by_name.items()}
        if not by_name:
            raise ValueError(
                f"nothing to try for {brief(line)}; tuning needs at least one value a line; give some"
            )
        values[line] = by_name
    if not values:
        raise ValueError(
            "nothing to vary; tuning needs a line and values to try; give {'output': [500, 1_000]}, say"
        )
    return values


@dataclass(frozen=True)
class SearchSpace:
    """The present budget and policy, what may change, and what answers need at least."""

    budget: Budget
    policy: Policy
    values: Values
    floor: AnswerReserve | None = None

    def with_floor(
        self, traces: Sequence[Trace], count: Callable[[str], int], risk: float | None
    ) -> SearchSpace:
        """Find what answers need, where a setting could reserve less and answers are recorded."""
        reserve = reserve_of_answers(self.budget)
        if risk is None or reserve is None or not recorded_lengths(traces, count):
            return self
        follows_window = isinstance(reserve.size, Share) and "window" in self.values
        if reserve.name not in self.values and not follows_window:
            return self
        return replace(self, floor=answer_reserve(traces, count, risk))

    def apply(self, setting: Setting) -> tuple[Budget, Policy]:
        """Return the budget with a setting's lines, and the policy that it names, else the present one."""
        lines = {line: self.values[line][name] for line, name in setting.items()}
        policy = lines.pop("policy", self.policy)
        return (self.budget.assign(**lines) if lines else self.budget), policy

    def is_present(self, setting: Setting) -> bool:
        """Say whether a setting leaves the budget and the policy as they are."""
        try:
            return self.apply(setting) == (self.budget, self.policy)
        except ValueError:  # the budget refuses such sizes
            return False

    def is_short(self, setting: Setting) -> bool:
        """Say whether a setting reserves less for the answer than answers need."""
        reserve = reserve_of_answers(self.budget)
        if self.floor is None or reserve is None:
            return False
        signed = replace(self, budget=replace(self.budget, deficit="signed"))
        try:
            budget, _ = signed.apply(setting)
        except ValueError:  # it cannot be planned, whatever the answers need
            return False
        return budget.sizes[reserve.name] < self.floor.tokens

    def present(self) -> dict[str, Any]:
        """Return what the lines that vary are at present, by the names of the table where they have one."""
        now = {line.name: line.tokens for line in self.budget}
        now |= {"window": self.budget.window}
        setting: dict[str, Any] = {}
        for line, by_name in self.values.items():
            value: Any = self.policy if line == "policy" else now[line]
            otherwise = "present" if line == "policy" else value
            setting[line] = next((n for n, v in by_name.items() if v == value), otherwise)
        return setting

    def tokens(self, line: str, name: Any) -> int:
        """Return a value of a line in tokens; no cap is the whole window."""
        value = self.values[line][name]
        if isinstance(value, Mapping):
            value = value.get("cap", value.get("size"))
        elif isinstance(value, Reserve):
            value = value.size
        elif isinstance(value, Allocation):
            value = value.cap
        if value is None:
            return self.budget.window
        return tokens_of(amount_of("size", value), self.budget.window)

    def size(self, setting: Setting) -> int:
        """Return all lines of a setting in tokens."""
        return sum(self.tokens(line, name) for line, name in setting.items() if line != "policy")

    def notices(self, settings: Sequence[Setting], reasons: Sequence[str]) -> Iterator[str]:
        """Say how many settings were left out for what answers need, and whether the present one is below that too."""
        reserve = reserve_of_answers(self.budget)
        if self.floor is None or reserve is None:
            return
        need = f"{self.floor.tokens:,}"
        if self.is_short({}):
            now = self.budget.sizes[reserve.name]
            yield f"The present reserve of {now:,} tokens is below the {need} that answers need."
        below = sum(reason not in ("", CANNOT_BE_PLANNED) for reason in reasons)
        if below:
            yield (
                f"{below:,} of {len(settings):,} settings were left out: they reserve less than the {need} "
                f"tokens that answers need ({self.floor.sentence})."
            )

    def corner(self, best: Setting, tried: Sequence[Setting], objective: Objective) -> list[str]:
        """Say where a setting stands at the ends of all that was tried: then more of the same might be better still."""
        ends = []
        for line, name in best.items():
            names = {setting[line] for setting in tried}
            if len(names) < 2:
                continue
            if line == "policy":
                if not isinstance(self.values[line][name], OldestFirst):
                    return []
                ends.append(f"policy {name} is the plainest")
                continue
            sizes = {choice: self.tokens(line, choice) for choice in names}
            if sizes[name] == max(sizes.values()):
                ends.append(f"{line} {name} is the largest that was tried")
            elif sizes[name] == min(sizes.values()):
                ends.append(f"{line} {name} is the smallest that was tried")
            else:
                return []
        if not ends:
            return []
        why = "The best may lie beyond; try more."
        if objective.at_a_corner:
            why = f"It wins because the objective counts {objective.at_a_corner}"
        return [f"It is a corner: {', '.join(ends)}. {why}"]


# --- the search


def tune(
    traces: AnyTrace,
    budget: AnyBudget,
    vary: Mapping[str, Iterable[Any]] | None = None,
    objective: str | Callable[[Replay], float] | Sequence[str | Callable[[Replay], float]] = "cut",
    hold_out: float = 0.5,
    *,
    policy: Policy | str | None = None,
    prices: Prices | str | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    trials: int = 2_000,
    seed: int = 0,
    workers: int = 1,
    client: Client | None = None,
    progress: Progress | None = None,
    risk: float | None = 0.05,
    summaries: Summaries = "lost",
    no_more: Collection[str] = (),
    **options: Any,
) -> Tuned:
    """Choose the best setting of a few lines on some conversations, and measure it on the others.

    Parameters
    ----------
    traces : sequence of Trace, str or Path
        At least four conversations; twelve for an interval of the gain, if half of them are held out. A string is a
        shipped trace's name or a path.
    budget : Budget, str, Path or callable
        The present setting, or a preset or its name.
    vary : mapping of str to iterable, optional
        What may change: "window", a reserve or a section with the sizes to try, in tokens or shares; "policy" with
        names of :data:`budgetkit.pruning.policies.NAMED`, or a mapping of your own names to policies. When left
        out, what :func:`budgetkit.lab.deciding.candidates` finds for this budget and these conversations.
    objective : str, callable or sequence of both, default "cut"
        What should be small: "cut" (tokens), "evidence" (needed messages lost), "cost" (US dollars), "uncached" (share
        of what is sent) or any function from a `Replay` to a number. The first decides, the others are on the front.
    hold_out : float, default 0.5
        Share of the conversations that are kept to measure on.
    policy : Policy or str, optional
        The present policy, or its name; the oldest messages go first when left out.
    prices : Prices or str, optional
        What tokens cost, or the model whose prices hold; for "cost".
    model : str or Model, optional
        The model that answers: its window for a preset, its counter and its framing.
    window : int, optional
        Another window, in tokens.
    trials : int, default 2,000
        Settings to try at most. Where there are more, the seed draws which are tried, and the outcome says so.
    seed : int, default 0
        The same seed splits and draws the same.
    workers : int, default 1
        Processes.
    client : dask.distributed.Client, optional
        A cluster to work on.
    progress : callable, optional
        Told after each conversation how many are done, and of how many; an error that it raises ends the work.
    risk : float, optional, default 0.05
        Share of the answers that may be longer than their reserve: a setting that reserves less than
        :func:`budgetkit.lab.deciding.answer_reserve` finds is left out. None leaves none out.
    summaries : {"lost", "kept"}
        Whether what a summary replaces counts as lost.
    no_more : collection of str
        Objectives among those asked for of which the chosen setting may bring no more than the present one does.
    **options
        What else :func:`budgetkit.lab.replay.replay` takes: counter, framing, by, cache.

    Returns
    -------
    Tuned
        The setting, and its gain on the part held out.

    Raises
    ------
    ValueError
        If there are too few conversations, nothing to vary, or no setting that may be chosen.
    LookupError
        If a line, a policy or an objective is unknown.

    Examples
    --------
    >>> import budgetkit as bk
    >>> traces = bk.load_traces("mixed-language") * 4
    >>> budget = bk.presets.working_memory(4_000, output=1_000, history_floor=0)
    >>> tuned = tune(traces, budget, {"output": [500, 1_000]}, "cut")
    >>> tuned.best, tuned.tried
    ({'output': 500}, 2)
    """
    # What the caller passes, in whatever form.
    traces = traces_of(traces)
    budget = read_budget(budget)
    model, counter, policy = filled_in(budget, model, options.get("counter"), policy)
    budget = budget_of(budget, model, window)
    options |= {
        name: value for name, value in (("model", model), ("counter", counter)) if value is not None
    }
    if summaries not in ("lost", "kept"):
        raise ValueError(
            f"summaries {brief(summaries)}; known are 'lost' and 'kept'; give one of these"
        )
    if check_tokens("trials", trials) < 1:
        raise ValueError("0 trials; tuning tries at least one setting; give 1 or more")
    several = [objective] if isinstance(objective, str) or callable(objective) else objective
    objectives = dict(objective_of(aim, summaries) for aim in several)
    first = next(iter(objectives))
    options = {"prices": _needed_prices(first, prices), **options}
    chosen_on, held_out = split(len(traces), hold_out, seed)

    # What may change, and what the answers need whatever changes.
    count = count_of(options.get("counter") or model or "o200k_base")
    if vary is None:
        vary = candidates(budget, traces, count, risk or 0.05)
    now = OldestFirst() if policy is None else policy_of(policy)
    space = SearchSpace(budget, now, values_of(vary)).with_floor(traces, count, risk)
    settings, search = settings_to_try(space.values, trials, seed)

    # Scores: conversation x setting, the present one first, x objective; no number for one that may not be chosen.
    below = [space.is_short(setting) for setting in settings]
    allowed = [True, *(not short for short in below)]
    measurable = [{}, *(s for s, short in zip(settings, below, strict=True) if not short)]
    scores = np.full((len(traces), 1 + len(settings), len(objectives)), np.nan)
    scores[:, allowed] = _scores(
        partial(_measured, space, measurable, objectives, options),
        traces,
        workers,
        client,
        progress,
    )

    # The choice, by the part that is chosen on alone; a setting is left out where it may not be chosen.
    reasons = []
    for place, short in enumerate(below):
        reason = ""
        if short and space.floor is not None:
            reason = f"reserves less than the {space.floor.tokens:,} tokens that answers need"
        elif np.isnan(scores[:, 1 + place, 0]).any():
            reason = CANNOT_BE_PLANNED
        reasons.append(reason)
    means = scores[chosen_on].mean(axis=0)
    bounded = [column for column, name in enumerate(objectives) if name in no_more]
    brings_more = (means[1:, bounded] > means[0, bounded] + TIE).any(axis=1)
    row = _chosen_row(space, settings, means[:, 0], reasons, brings_more)

    stays = row is None or space.is_present(settings[row])
    best = space.present() if row is None else dict(settings[row])
    notices = [*space.notices(settings, reasons)]
    if not stays:
        tried = [setting for setting, reason in zip(settings, reasons, strict=True) if not reason]
        notices += space.corner(best, tried, objectives[first])
    changed_budget, changed_policy = space.apply({} if row is None else settings[row])
    return Tuned(
        best=best,
        budget=changed_budget,
        policy=changed_policy,
        table=_table(settings, list(objectives), means[1:], reasons),
        objective=first,
        of=prod(map(len, space.values.values())),
        scores=scores,
        parts=(chosen_on, held_out),
        seed=seed,
        search=search,
        row=row,
        stays=stays,
        notices=tuple(notices),
        aims=objectives,
    )


def sensitivity(
    traces: AnyTrace,
    budget: AnyBudget,
    vary: Mapping[str, Iterable[Any]],
    objective: str | Callable[[Replay], float] = "cut",
    hold_out: float = 0.5,
    *,
    policy: Policy | str | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    prices: Prices | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Move each line alone, and say what that does to an objective.

    Only the conversations that :func:`tune` chooses on with the same seed are looked at, so that those held out stay
    unseen.

    Parameters
    ----------
    traces, budget, vary, objective, hold_out, policy, model, window, prices, seed, progress, **options
        As :func:`tune` takes them, with one objective.

    Returns
    -------
    DataFrame
        One row a line and value: line, value, mean (of the objective over the conversations), change (against the
        present setting, a share) and spread (of the line's changes: the most less the least, 0 among them). The line
        with the widest spread comes first.

    Raises
    ------
    ValueError
        If there are too few conversations, or nothing to vary.
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
    name, measure = objective_of(objective)
    budget = budget_of(budget, model, window)
    options = {"prices": prices, **options} | ({} if model is None else {"model": model})
    traces = traces_of(traces)
    now = OldestFirst() if policy is None else policy_of(policy)
    space = SearchSpace(budget, now, values_of(vary))
    moves = [(line, value) for line, by_name in space.values.items() for value in by_name]
    settings: list[dict[str, Any]] = [{}, *({line: value} for line, value in moves)]
    chosen_on, _ = split(len(traces), hold_out, seed)
    work = partial(_measured, space, settings, {name: measure}, options)
    seen = [traces[place] for place in chosen_on]
    means = _scores(work, seen, progress=progress)[:, :, 0].mean(axis=0)
    if means[0]:
        changes = (means[1:] - means[0]) / means[0]
    else:
        changes = np.where(means[1:] == 0, 0.0, np.inf)
    table = pd.DataFrame(moves, columns=["line", "value"]).assign(mean=means[1:], change=changes)
    # The present setting changes nothing, and is one of the ends where all others lie on one side of it.
    by_line = table.groupby("line")["change"]
    spread = by_line.max().clip(lower=0.0) - by_line.min().clip(upper=0.0)
    table["spread"] = table["line"].map(spread)
    return table.sort_values("spread", ascending=False, kind="stable", ignore_index=True)


def split(many: int, hold_out: float, seed: int) -> tuple[list[int], list[int]]:
    """Return the conversations to choose on, and those held out."""
    held_out = round(many * hold_out)
    if not 2 <= held_out <= many - 2:
        raise ValueError(
            f"{many} conversations with {hold_out:g} of them held out; at least 2 are needed on each side; "
            "give more conversations, or another hold_out"
        )
    order = list(range(many))
    Random(seed).shuffle(order)
    return sorted(order[held_out:]), sorted(order[:held_out])


def _needed_prices(objective: str, prices_or_model: Prices | str | None) -> Prices | None:
    """Return the prices of a model or those given; a cost needs the price of input."""
    prices = prices_of(prices_or_model)
    if objective == "cost" and (prices is None or prices.input is None):
        raise ValueError(
            "a cost without prices; the price of input is needed; give prices=bk.cost.prices('gpt-4o'), or the "
            "model's name"
        )
    return prices


def _measured(
    space: SearchSpace,
    settings: Sequence[Setting],
    objectives: Mapping[str, Objective],
    options: Mapping[str, Any],
    trace: Trace,
) -> list[list[float]]:
    """Replay one conversation under every setting; what cannot be planned is not a number."""
    measures: dict[str, Callable[[Replay], float]] = {**objectives}
    if "evidence" in objectives:
        # What needs what is the same under every setting.
        measures["evidence"] = partial(objectives["evidence"], pairs=evidence(trace))
    rows = []
    for setting in settings:
        try:
            outcome = replay(trace, *space.apply(setting), **options)
        except ValueError:
            rows.append([float("nan")] * len(measures))
            continue
        rows.append([measure(outcome) for measure in measures.values()])
    return rows


def _scores(
    work: Callable[[Trace], Any],
    traces: Sequence[Trace],
    workers: int = 1,
    client: Client | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Do the work for every conversation, here, in processes or on a cluster."""
    with ExitStack() as stack:
        if client is None and workers > 1:
            coming = stack.enter_context(ProcessPoolExecutor(workers)).map(work, traces)
        else:
            coming = answers(work, traces, client)
        done = []
        for scores in coming:
            done.append(scores)
            if progress is not None:
                progress(len(done), len(traces))
    return np.array(done, dtype=np.float64)


def _chosen_row(
    space: SearchSpace,
    settings: Sequence[Setting],
    means: Floats,
    reasons: Sequence[str],
    brings_more: npt.NDArray[np.bool_],
) -> int | None:
    """Return the row of the best setting by the means, the present one first; None where the present one stays.

    Of settings that come to the same the present one is taken, else the larger. A present reserve that is below what
    answers need does not stay.
    """
    allowed = [row for row, reason in enumerate(reasons) if not reason]
    if not allowed:
        several = f"{len(settings):,} settings"
        if set(reasons) == {CANNOT_BE_PLANNED}:
            planned = CANNOT_BE_PLANNED.removeprefix("cannot ")
            raise ValueError(f"none of {several} can {planned}; vary {quoted(space.values)} less")
        raise ValueError(
            f"none of {several} may be chosen: each {' or '.join(sorted({*reasons}))}; vary "
            f"{quoted(space.values)} otherwise, or give risk=None"
        )

    # The present setting stays where no other may be chosen, or none is better.
    is_short = space.is_short({})
    bounded = [row for row in allowed if not brings_more[row]]
    if not bounded and not is_short:
        return None
    bounded = bounded or allowed
    least = min(float(means[1 + row]) for row in bounded)
    near = TIE * max(1.0, abs(least))
    tied = [row for row in bounded if means[1 + row] <= least + near]
    for row in tied:
        if space.is_present(settings[row]):
            return row
    if means[0] <= least + near and not is_short:
        return None
    return max(tied, key=lambda row: (space.size(settings[row]), -row))


def _table(
    settings: Sequence[Setting], names: Sequence[str], means: Floats, reasons: Sequence[str]
) -> pd.DataFrame:
    """Return all settings with their means on the part that is chosen on, and why one may not be chosen."""
    means = means.copy()
    means[[bool(reason) for reason in reasons]] = np.nan
    table = pd.DataFrame([dict(setting) for setting in settings])
    table[list(names)] = means
    # On the front is what no other row beats: as good in all columns and better in one.
    table["front"] = [
        not np.isnan(row).any()
        and not ((means <= row).all(axis=1) & (means < row).any(axis=1)).any()
        for row in means
    ]
    table["left out"] = list(reasons)
    return table


# --- what came of it


@dataclass(frozen=True)
class Tuned:
    """The setting that was chosen, and what it gains on conversations that it was not chosen on.

    Parameters
    ----------
    best : dict
        The chosen values, by line; "policy" by name. The present ones where no setting is better.
    budget : Budget
        The budget with them.
    policy : Policy
        The policy with them.
    table : DataFrame
        One row a setting: its values, for each objective the mean over the conversations that were chosen on, whether
        it is on the Pareto front of these, and "left out": why it may not be chosen, empty where it may.
    objective : str
        The first objective's name.
    of : int
        All settings there are.
    scores : ndarray
        Every measure: conversations x settings, the present one first, x objectives.
    parts : tuple of list of int
        The conversations that it was chosen on, and those that were held out.
    seed : int
        What split them.
    search : str
        How the settings that were tried were found: "all", or "drawn by the seed".
    row : int, optional
        The row of the table that was chosen; None where the present setting, which is none of them, stays.
    stays : bool
        Whether the chosen setting is the present one.
    notices : tuple of str
        What must be said beside it: settings that were left out, a setting at the end of all that was tried.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> tuned = bk.tune(bk.load_traces("made-up-chats"), budget, {"output": [100, 150, 200]}, "cut")
    >>> tuned.best, tuned.stays, tuned.holds_out
    ({'output': 100}, False, True)
    """

    best: dict[str, Any]
    budget: Budget
    policy: Policy
    table: pd.DataFrame
    objective: str
    of: int
    scores: Floats = field(repr=False)
    parts: tuple[list[int], list[int]] = field(repr=False)
    seed: int = 0
    search: str = "all"
    row: int | None = None
    stays: bool = False
    notices: tuple[str, ...] = ()
    aims: Mapping[str, Objective] = field(default_factory=dict, repr=False)

    @property
    def tried(self) -> int:
        """How many settings were tried, of how many there are: `of`."""
        return len(self.table)

    @property
    def conversations(self) -> tuple[int, int]:
        """How many conversations it was chosen on, and how many were held out."""
        return len(self.parts[0]), len(self.parts[1])

    @cached_property
    def chosen(self) -> Gain:
        """The gain of the chosen setting."""
        return self.gain_at(self.row)

    @property
    def gain(self) -> float:
        """The share by which the first objective is smaller than at the present setting, on the part held out."""
        return self.chosen.share

    @property
    def low(self) -> float:
        """The lower end of its 95 % interval."""
        return self.chosen.low

    @property
    def high(self) -> float:
        """The upper end."""
        return self.chosen.high

    @property
    def holds_out(self) -> bool:
        """Whether the gain on conversations held out has a 95 % interval that lies above 0."""
        return self.low > 0

    @property
    def front(self) -> pd.DataFrame:
        """The settings that no other beats in all objectives."""
        return self.table[self.table["front"]].reset_index(drop=True)

    def gains(self, row: int, objective: int = 0) -> tuple[float, float, float]:
        """Return the gain of a row of the table on the part held out, and its 95 % interval.

        The interval of a row that was not chosen is as wide as all rows of the front need it together, or all rows
        where it is not on the front: who looks at many settings finds one that was lucky.
        """
        gain = self.gain_at(row, objective)
        return gain.share, gain.low, gain.high

    def gain_at(self, row: int | None, objective: int = 0) -> Gain:
        """Return the gain of a row of the table, None for the present setting, on the part held out."""
        looked_at = 1  # rows among which this one was picked by hand
        if row is not None and row != self.row:
            front = self.table["front"].to_numpy()
            looked_at = max(1, int(front.sum()) if front[row] else len(self.table))
        held_out = self.scores[self.parts[1], :, objective]
        after = held_out[:, 0 if row is None else 1 + row]
        return gain_of(held_out[:, 0], after, self.seed, rows=looked_at)

    def __str__(self) -> str:
        objective = self.aims[self.objective]
        values = ", ".join(f"{line} {value}" for line, value in self.best.items())
        if np.isnan(self.gain):
            first = "The present setting cannot be planned for every conversation, so that no gain is measured."
        elif self.stays:
            first = f"No setting that was tried {objective.than_at_present()}: stay."
        else:
            first = saving("this setting", objective, self.chosen)
        sentences = [first, f"The setting: {values}.", *self.notices]
        if self.tried < self.of:
            sentences.append(f"{self.tried:,} of {self.of:,} settings were tried, {self.search}.")
        return " ".join(sentences)


@dataclass(frozen=True)
class Gain:
    """What a setting saves on conversations that it was not chosen on.

    Parameters
    ----------
    share : float
        By which share the objective is smaller than at the present setting; minus infinity where it is 0 at present
        and not with the setting.
    low, high : float
        The interval of the true share; not a number where the conversations are too few for one.
    before, after : float
        The objective at present and with the setting, summed over the conversations.
    conversations : int
        How many there are.
    largest : float
        Share of the whole, at present, that the largest conversation carries.
    without : float
        The share saved without that conversation.

    Examples
    --------
    >>> gain = gain_of(np.array([100.0] * 6), np.array([80.0, 90.0, 70.0, 80.0, 85.0, 75.0]), seed=0)
    >>> round(gain.share, 3), round(gain.low, 3), round(gain.high, 3), gain.holds
    (0.2, 0.1, 0.3, True)
    """

    share: float
    low: float
    high: float
    before: float
    after: float
    conversations: int
    largest: float
    without: float

    @property
    def holds(self) -> bool:
        """Whether the gain is above 0 in its whole interval."""
        return self.low > 0

    @property
    def notices(self) -> list[str]:
        """What must be said beside the number: too few conversations, or one that outweighs the others."""
        notices = []
        if self.conversations < FEWEST_FOR_A_GAIN:
            needs = f"An interval of a gain needs {FEWEST_FOR_A_GAIN} conversations"
            notices.append(f"{needs}; there are {self.conversations}.")
        elif np.isnan(self.low):
            notices.append(
                f"{self.conversations} conversations are too few for an interval of one setting among all."
            )
        if self.largest > _LARGE and self.conversations > 1:
            if not np.isfinite(self.without):
                rest = "nothing"
            else:
                rest = f"{percent(self.without)} %"
            notices.append(
                f"One conversation carries {percent(self.largest)} % of it; the others save {rest}."
            )
        return notices


def gain_of(before: Floats, after: Floats, seed: int, rows: int = 1) -> Gain:
    """Return what is saved, and its 95 % interval from random parts of the conversations.

    A part has each conversation or not, by a coin. The interval is that of Hartigan's typical values, see
    :mod:`budgetkit.promise`; where it is asked for several settings, it is as wide as they need it together.
    """
    others = np.arange(len(before)) != np.argmax(before)
    whole = float(before.sum())
    parts = _parts(len(before), seed, 0.05 / rows)
    saved = _saved(parts @ before, parts @ after)
    low, high = typical(saved.tolist(), 0.05 / rows) or (float("nan"), float("nan"))
    return Gain(
        share=float(_saved(before.sum(), after.sum())),
        low=low,
        high=high,
        before=whole,
        after=float(after.sum()),
        conversations=len(before),
        largest=float(before.max()) / whole if whole else 0.0,
        without=float(_saved(before[others].sum(), after[others].sum())),
    )


def _saved(before: Any, after: Any) -> Floats:
    """Return the share saved: 0 of nothing and for nothing, minus infinity where nothing becomes something."""
    before, after = np.asarray(before), np.asarray(after)
    ratio = np.where(after == 0, 1.0, np.inf)
    np.divide(after, before, out=ratio, where=before != 0)
    return np.asarray(1 - ratio)


def _parts(conversations: int, seed: int, risk: float) -> Floats:
    """Return which conversations are in each part: all parts that there are, but for the empty one, or random ones."""
    if conversations <= _ALL_PARTS_UP_TO:
        numbers = np.arange(1, 2**conversations)
        return np.asarray((numbers[:, None] >> np.arange(conversations)) & 1, dtype=np.float64)
    many = min(_MOST_PARTS, max(_PARTS, round(20 / risk) - 1))
    drawn = np.random.default_rng(seed).random((many, conversations)) < 0.5
    drawn[~drawn.any(axis=1)] = True
    return drawn.astype(np.float64)


def percent(share: float) -> str:
    """Write a share in percent: whole numbers from 10 on, one digit below.

    Examples
    --------
    >>> percent(0.5), percent(0.0321), percent(0.08), percent(-0.0004)
    ('50', '3.2', '8', '0')
    """
    number = round(100 * share, 1) + 0.0  # no minus before 0
    if abs(number) >= 10 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.1f}"


def saving(what: str, objective: Objective, gain: Gain, aside: str = "") -> str:
    """Say what a setting saves on conversations that it was not chosen on, and how sure that is.

    Examples
    --------
    >>> gain = gain_of(np.array([100.0] * 40), np.linspace(85, 99, 40), seed=0)
    >>> saving("this budget", OBJECTIVES["cost"], gain)[:62]
    'This budget costs 8 % less than at present on 40 conversations'
    >>> saving("this budget", OBJECTIVES["cost"], gain_of(np.ones(40), np.full(40, 1.2), seed=0))[:47]
    'No gain that holds: this budget costs 20 % more'
    >>> saving("this budget", OBJECTIVES["cut"], gain_of(np.zeros(40), np.full(40, 5.0), seed=0))[:63]
    'No gain: this budget cuts 200 tokens where the present one cuts'
    """
    where = f" on {gain.conversations:,} conversations that it was not chosen on"
    more = "".join(f" {notice}" for notice in gain.notices)
    if not gain.before and gain.after:
        instead = f"{gain.after:,.4g}{objective.unit} where the present one {objective.verb} none"
        return f"No gain: {what} {objective.verb} {instead}{where}.{more}"

    size = percent(abs(gain.share)) if abs(gain.share) >= 0.0005 else "under 0.1"
    size = f"{size} % " if gain.share else "no "
    sentence = f"{what} {objective.than_at_present(size, more=gain.share < 0)}{aside}{where}"
    if gain.holds:
        sentence = sentence[:1].upper() + sentence[1:]
    else:
        sentence = f"No gain that holds: {sentence}"
    if np.isneginf(gain.low):
        sentence += f"; the true saving is at most {percent(gain.high)} % with 95 % confidence"
    elif gain.high > gain.low:
        ends = f"{percent(gain.low)} and {percent(gain.high)} %"
        sentence += f"; the true saving lies between {ends} with 95 % confidence"
    return f"{sentence}.{more}"
