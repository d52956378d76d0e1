"""Tune a budget on conversations of your own, and say whether the gain holds on others.

Conversations are split, not turns. The choice is made on one part and reported on the other, beside the present
setting, with an interval from random parts of the conversations. What is best on the part it was chosen on always
looks good there; what counts is the other part, and nothing is chosen by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import prod
from random import Random
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.quoting import brief, quoted
from budgetkit.counters import count_of
from budgetkit.inputs.budgets import AnyBudget, AnyModel, budget_of, read_budget
from budgetkit.inputs.configuration import filled_in
from budgetkit.inputs.conversations import AnyTrace, traces_of
from budgetkit.inputs.policies import policy_of
from budgetkit.lab.accuracy.dask import Client, answers
from budgetkit.lab.deciding.candidates import candidates, settings_to_try
from budgetkit.lab.deciding.choosing import (
    TIE,
    Setting,
    Values,
    answer_floor,
    chosen_row,
    corner,
    is_below,
    is_present,
    left_out_notice,
    present_setting,
    why_not,
    with_setting,
)
from budgetkit.lab.deciding.gain import Floats
from budgetkit.lab.deciding.tuned import Tuned
from budgetkit.lab.replay import Replay, replay
from budgetkit.lab.replay.cost import Prices, prices_of
from budgetkit.lab.replay.evidence import evidence
from budgetkit.lab.replay.losses import needed_there
from budgetkit.pruning.history import SUMMARISED
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.trace import Trace

Objective = Callable[[Replay], float]
Progress = Callable[[int, int], None]
Summaries = Literal["lost", "kept"]


def _cut(outcome: Replay, summaries: Summaries = "lost") -> float:
    """Return the tokens that were cut: dropped, of other sections, and replaced by a summary."""
    others = sum(
        int(c["cut"].sum()) for section, c in outcome.columns.items() if section != outcome.section
    )
    dropped = float(np.sum(outcome.kept.dropped))
    if summaries == "kept":
        return dropped + others
    replaced = np.array(outcome.kept.state, dtype=np.int64) == SUMMARISED
    return dropped + others + float(np.asarray(outcome.placed.tokens)[replaced].sum())


def _uncached(outcome: Replay) -> float:
    return 1 - float(np.sum(outcome.cached)) / max(1, int(np.sum(outcome.sent)))


def _cost(outcome: Replay) -> float:
    return float(np.sum(outcome.cost))


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


#: What may be made small, by name: tokens cut, needed messages lost, US dollars, the share not read from a cache.
OBJECTIVES: dict[str, Objective] = {
    "cut": _cut,
    "evidence": _lost_evidence,
    "cost": _cost,
    "uncached": _uncached,
}


def tune(
    traces: AnyTrace,
    budget: AnyBudget,
    vary: Mapping[str, Iterable[Any]] | None = None,
    objective: str | Objective | Sequence[str | Objective] = "cut",
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
    # what the caller passes, in whatever form
    traces = traces_of(traces)
    budget = read_budget(budget)
    model, counter, policy = filled_in(budget, model, options.get("counter"), policy)
    budget = budget_of(budget, model, window)
    if model is not None:
        options["model"] = model
    if counter is not None:
        options["counter"] = counter

    if summaries not in ("lost", "kept"):
        raise ValueError(
            f"summaries {brief(summaries)}; known are 'lost' and 'kept'; give one of these"
        )
    if check_tokens("trials", trials) < 1:
        raise ValueError("0 trials; tuning tries at least one setting; give 1 or more")
    if isinstance(objective, str) or callable(objective):
        several = [objective]
    else:
        several = list(objective)
    objectives = dict(named_objective(aim, summaries) for aim in several)
    first = next(iter(objectives))
    present_policy = OldestFirst() if policy is None else policy_of(policy)
    options = {"prices": _needed_prices(first, prices), **options}
    chosen_on, held_out = split(len(traces), hold_out, seed)

    # What may change, and what the answers need whatever changes.
    count = count_of(options.get("counter") or model or "o200k_base")
    if vary is None:
        vary = candidates(budget, traces, count, risk or 0.05)
    values = values_of(budget, vary)
    floor = answer_floor(budget, values, traces, count, risk)

    # Scores: conversation x setting, the present one first, x objective; no number for one that may not be chosen.
    settings, search = settings_to_try(values, trials, seed)
    with_present: list[Setting] = [{}, *settings]
    is_allowed = [not is_below(budget, setting, values, floor) for setting in with_present]
    measurable = [
        setting for setting, allowed in zip(with_present, is_allowed, strict=True) if allowed
    ]
    work = partial(measured, budget, measurable, objectives, present_policy, values, options)
    rows = answers_of(work, list(traces), workers, client, progress)
    scores = np.full((len(traces), len(with_present), len(objectives)), np.nan)
    scores[:, is_allowed] = np.array(rows, dtype=np.float64).reshape(
        len(traces), len(measurable), len(objectives)
    )

    left_out = [
        why_not(budget, setting, values, floor, scores[:, 1 + row])
        for row, setting in enumerate(settings)
    ]
    table = _table(settings, list(objectives), scores, chosen_on, left_out)
    means = scores[chosen_on].mean(axis=0)
    bounded = [place for place, name in enumerate(objectives) if name in no_more]
    brings_more = (means[1:, bounded] > means[0, bounded] + TIE).any(axis=1)
    choice = chosen_row(
        budget, settings, values, present_policy, means[:, 0], left_out, brings_more, floor
    )

    # The setting that was chosen; the present one where no other is better.
    stays = choice is None or is_present(budget, settings[choice], values, present_policy)
    if choice is None:
        best = present_setting(budget, values, present_policy)
    else:
        best = dict(settings[choice])
    setting = {} if choice is None else settings[choice]
    changed_budget, changed_policy = with_setting(budget, setting, present_policy, values)
    notices = [*left_out_notice(budget, settings, left_out, floor)]
    if not stays:
        allowed = [settings[row] for row, reason in enumerate(left_out) if not reason]
        tried = {
            line: {row[line]: by_name[row[line]] for row in allowed}
            for line, by_name in values.items()
        }
        notices += corner(best, tried, budget, first)

    tuned = Tuned(
        best=best,
        budget=changed_budget,
        policy=changed_policy,
        table=table,
        gain=0.0,
        low=0.0,
        high=0.0,
        conversations=(len(chosen_on), len(held_out)),
        objective=first,
        tried=len(settings),
        of=prod(map(len, values.values())),
        scores=scores,
        parts=(chosen_on, held_out),
        seed=seed,
        search=search,
        row=choice,
        stays=stays,
        notices=tuple(notices),
    )
    gain = tuned.gain_at(choice)
    return replace(tuned, gain=gain.share, low=gain.low, high=gain.high)


def _needed_prices(objective: str, prices_or_model: Prices | str | None) -> Prices | None:
    """Return the prices of a model or those given; a cost needs the price of input."""
    prices = prices_of(prices_or_model)
    if objective == "cost" and (prices is None or prices.input is None):
        rule = "the price of input is needed"
        raise ValueError(
            f"a cost without prices; {rule}; give prices=bk.cost.prices('gpt-4o'), or the model's name"
        )
    return prices


def named_objective(
    objective: str | Objective, summaries: Summaries = "lost"
) -> tuple[str, Objective]:
    """Return an objective with its name."""
    if callable(objective):
        return getattr(objective, "__name__", "objective"), objective
    if objective not in OBJECTIVES:
        names = quoted(OBJECTIVES)
        raise LookupError(
            f"no objective {brief(objective)}; known are {names}, or a function of a Replay"
        )
    measure = OBJECTIVES[objective]
    if summaries == "kept" and objective in ("cut", "evidence"):
        return objective, partial(measure, summaries="kept")  # type: ignore[call-arg]
    return objective, measure


def values_of(budget: Budget, vary: Mapping[str, Iterable[Any]]) -> dict[str, dict[Any, Any]]:
    """Return for each line what may be set, by the name it has in the table."""
    values: dict[str, dict[Any, Any]] = {}
    for line, choices in vary.items():
        if isinstance(choices, Mapping):
            by_name = dict(choices)
        else:
            by_name = {choice: choice for choice in choices}
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


def measured(
    budget: Budget,
    settings: Sequence[Setting],
    objectives: Mapping[str, Objective],
    policy: Policy,
    values: Values,
    options: Mapping[str, Any],
    trace: Trace,
) -> list[list[float]]:
    """Replay one conversation under every setting; what cannot be planned is not a number."""
    measures = dict(objectives)
    if settings and "evidence" in objectives:
        # What needs what is the same under every setting.
        measures["evidence"] = partial(measures["evidence"], pairs=evidence(trace))  # type: ignore[call-arg]
    rows = []
    for setting in settings:
        try:
            changed, pruned_by = with_setting(budget, setting, policy, values)
            outcome = replay(trace, changed, pruned_by, **options)
        except ValueError:
            rows.append([float("nan")] * len(measures))
            continue
        rows.append([measure(outcome) for measure in measures.values()])
    return rows


def answers_of(
    work: Callable[[Trace], Any],
    traces: list[Trace],
    workers: int,
    client: Client | None,
    progress: Progress | None = None,
) -> list[Any]:
    """Do the work for every conversation, here, in processes or on a cluster."""
    with ExitStack() as stack:
        if client is None and workers > 1:
            coming = stack.enter_context(ProcessPoolExecutor(workers)).map(work, traces)
        else:
            coming = answers(work, traces, client)
        done = []
        for answer in coming:
            done.append(answer)
            if progress is not None:
                progress(len(done), len(traces))
        return done


def _table(
    settings: Sequence[Setting],
    names: Sequence[str],
    scores: Floats,
    chosen_on: Sequence[int],
    left_out: Sequence[str],
) -> pd.DataFrame:
    """Return all settings with their means on the part that is chosen on, and why one may not be chosen."""
    means = scores[chosen_on, 1:].mean(axis=0)
    means[[bool(reason) for reason in left_out]] = np.nan
    table = pd.DataFrame([dict(setting) for setting in settings])
    for place, name in enumerate(names):
        table[name] = means[:, place]
    table["front"] = _on_front(means)
    table["left out"] = list(left_out)
    return table


def _on_front(means: Floats) -> npt.NDArray[np.bool_]:
    """Say which rows no other row beats: as good in all columns and better in one."""
    return np.array(
        [
            not np.isnan(row).any()
            and not ((means <= row).all(axis=1) & (means < row).any(axis=1)).any()
            for row in means
        ],
        dtype=np.bool_,
    )
