"""Tune a budget on conversations of your own, and say whether the gain holds on others.

Conversations are split, not turns. The choice is made on one part and reported on the other, beside the present
setting, with an interval from drawing conversations again. What is best on the part it was chosen on always looks
good there; what counts is the other part.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import product
from math import prod
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.accuracy.dask import Client, answers
from budgetkit.budget import Budget
from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.quoting import brief, quoted
from budgetkit.deciding.search import searched
from budgetkit.deciding.tuned import Floats, Tuned, gain_of
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.pruning.policies.systems import policy_of
from budgetkit.replay import Replay, replay
from budgetkit.replay.cost import Prices, prices_of
from budgetkit.replay.evidence import evidence
from budgetkit.replay.losses import needed_there
from budgetkit.trace import Trace

Objective = Callable[[Replay], float]
Progress = Callable[[int, int], None]


def _cut(outcome: Replay) -> float:
    others = sum(int(c["cut"].sum()) for s, c in outcome.columns.items() if s != outcome.section)
    return float(np.sum(outcome.kept.dropped)) + others


def _uncached(outcome: Replay) -> float:
    return 1 - float(np.sum(outcome.cached)) / max(1, int(np.sum(outcome.sent)))


def _cost(outcome: Replay) -> float:
    return float(np.sum(outcome.cost))


def _lost_evidence(outcome: Replay, found: pd.DataFrame | None = None) -> float:
    _, _, there = needed_there(outcome, evidence(outcome.trace) if found is None else found)
    return float(np.sum(~there))


#: What may be made small, by name: tokens cut, needed messages lost, US dollars, the share not read from a cache.
OBJECTIVES: dict[str, Objective] = {"cut": _cut, "evidence": _lost_evidence, "cost": _cost, "uncached": _uncached}


def tune(
    traces: Sequence[Trace],
    budget: Budget,
    vary: Mapping[str, Iterable[Any]],
    objective: str | Objective | Sequence[str | Objective] = "cut",
    hold_out: float = 0.5,
    *,
    policy: Policy | None = None,
    prices: Prices | str | None = None,
    trials: int = 2_000,
    seed: int = 0,
    workers: int = 1,
    client: Client | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Tuned:
    """Choose the best setting of a few lines on some conversations, and measure it on the others.

    Parameters
    ----------
    traces : sequence of Trace
        At least four conversations.
    budget : Budget
        The present setting.
    vary : mapping of str to iterable
        What may change: "window", a reserve or a section with the sizes to try, in tokens or shares; "policy" with
        names of :data:`budgetkit.pruning.policies.NAMED`, or a mapping of your own names to policies.
    objective : str, callable or sequence of both, default "cut"
        What should be small: "cut" (tokens), "evidence" (needed messages lost), "cost" (US dollars), "uncached" (share
        of what is sent) or any function from a `Replay` to a number. The first decides, the others are on the front.
    hold_out : float, default 0.5
        Share of the conversations that are kept to measure on.
    policy : Policy, optional
        The present policy; the oldest messages go first when left out.
    prices : Prices or str, optional
        What tokens cost, or the model whose prices hold; for "cost".
    trials : int, default 2,000
        Settings to try at most. Where there are more, Optuna (extra: search) proposes in rounds which are tried; where
        it is not installed, they are drawn. What is found says which.
    seed : int, default 0
        The same seed splits, draws and proposes the same.
    workers : int, default 1
        Processes.
    client : dask.distributed.Client, optional
        A cluster to work on.
    progress : callable, optional
        Told after each conversation how many are done, and of how many, over all rounds; an error that it raises ends
        the work.
    **options
        What else :func:`budgetkit.replay.replay` takes: count, framing, by, cache.

    Returns
    -------
    Tuned
        The setting, and its gain on the part held out.

    Raises
    ------
    ValueError
        If there are too few conversations, nothing to vary, or no setting that can be planned.
    LookupError
        If a line, a policy or an objective is unknown.

    Examples
    --------
    >>> import budgetkit as bk
    >>> traces = bk.load_traces("mixed-language") * 4
    >>> budget = bk.presets.working_memory(4_000, output=1_000, history_floor=0)
    >>> found = tune(traces, budget, {"output": [500, 1_000]}, "cut")
    >>> found.best, found.tried
    ({'output': 500}, 2)
    """
    asked = [objective] if isinstance(objective, str) or callable(objective) else list(objective)
    named = dict(named_objective(each) for each in asked)
    values = values_of(budget, vary)
    if check_tokens("trials", trials) < 1:
        raise ValueError("0 trials; tuning tries at least one setting; give 1 or more")
    prices = prices_of(prices)
    if next(iter(named)) == "cost" and (prices is None or prices.input is None):
        known = "the price of input is needed"
        raise ValueError(f"a cost without prices; {known}; give prices=bk.cost.prices('gpt-4o'), or the model's name")
    chosen_on, held = split(len(traces), hold_out, seed)
    own, options = policy or OldestFirst(), {"prices": prices, **options}

    def measure(settings: Sequence[Mapping[str, Any]], number: int = 0, rounds: int = 1) -> Floats:
        work = partial(measured, budget, settings, named, own, values, options)
        rows = answers_of(work, list(traces), workers, client, _of_rounds(progress, number, rounds))
        return np.array(rows, dtype=np.float64).reshape(len(traces), len(settings), len(named))

    of, how = prod(map(len, values.values())), "all"
    if of <= trials:
        settings = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
        scores = measure([{}, *settings])  # conversation x setting x objective
    else:
        settings, scores, how = searched(values, trials, seed, chosen_on, len(named), measure)
    table, best = _table(settings, list(named), scores, chosen_on, held, list(values))
    changed, with_policy = _with_setting(budget, settings[best], own, values)
    many, first = (len(chosen_on), len(held)), next(iter(named))
    gained, parts = gain_of(scores[held, 0, 0], scores[held, 1 + best, 0], seed), (chosen_on, held)
    tried = len(settings), of
    return Tuned(settings[best], changed, with_policy, table, *gained, many, first, *tried, scores, parts, seed, how)


def _of_rounds(progress: Progress | None, number: int, rounds: int) -> Progress | None:
    """Tell how many conversations are done in all rounds together."""
    return None if progress is None else lambda done, of: progress(number * of + done, rounds * of)


def named_objective(asked: str | Objective) -> tuple[str, Objective]:
    """Return an objective with its name."""
    if callable(asked):
        return getattr(asked, "__name__", "objective"), asked
    if asked not in OBJECTIVES:
        raise LookupError(f"no objective {brief(asked)}; known are {quoted(OBJECTIVES)}, or a function of a Replay")
    return asked, OBJECTIVES[asked]


def values_of(budget: Budget, vary: Mapping[str, Iterable[Any]]) -> dict[str, dict[Any, Any]]:
    """Return for each line what may be set, by the name it has in the table."""
    found: dict[str, dict[Any, Any]] = {}
    for line, given in vary.items():
        listed = dict(given) if isinstance(given, Mapping) else {each: each for each in given}
        if line == "policy":
            listed = {name: policy_of(each) for name, each in listed.items()}
        if not listed:
            raise ValueError(f"nothing to try for {brief(line)}; tuning needs at least one value a line; give some")
        found[line] = listed
    if not found:
        raise ValueError("nothing to vary; tuning needs a line and values to try; give {'output': [500, 1_000]}, say")
    return found


def split(many: int, hold_out: float, seed: int) -> tuple[list[int], list[int]]:
    """Return the conversations to choose on, and those held out."""
    held = round(many * hold_out)
    if not 2 <= held <= many - 2:
        raise ValueError(
            f"{many} conversations with {hold_out:g} of them held out; at least 2 are needed on each side; "
            "give more conversations, or another hold_out"
        )
    order = list(range(many))
    Random(seed).shuffle(order)
    return sorted(order[held:]), sorted(order[:held])


def _with_setting(
    budget: Budget, setting: Mapping[str, Any], policy: Policy, values: Mapping[str, Any]
) -> tuple[Budget, Policy]:
    """Return the budget with a setting's lines, and the policy that it names, else the present one."""
    lines = {line: values[line][name] for line, name in setting.items() if line != "policy"}
    own = values["policy"][setting["policy"]] if "policy" in setting else policy
    return (budget.assign(**lines) if lines else budget), own


def measured(
    budget: Budget,
    settings: Sequence[Mapping[str, Any]],
    objectives: Mapping[str, Objective],
    policy: Policy,
    values: Mapping[str, Any],
    options: Mapping[str, Any],
    trace: Trace,
) -> list[list[float]]:
    """Replay one conversation under every setting; what cannot be planned is not a number."""
    found = evidence(trace) if settings and "evidence" in objectives else None
    own = dict(objectives) | ({} if found is None else {"evidence": partial(_lost_evidence, found=found)})
    rows = []
    for setting in settings:
        try:
            changed, pruned_by = _with_setting(budget, setting, policy, values)
            outcome = replay(trace, changed, pruned_by, **options)
        except ValueError:
            rows.append([float("nan")] * len(own))
            continue
        rows.append([measure(outcome) for measure in own.values()])
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
        spread = client is None and workers > 1
        found = stack.enter_context(ProcessPoolExecutor(workers)).map(work, traces) if spread else None
        done = []
        for answer in answers(work, traces, client) if found is None else found:
            done.append(answer)
            if progress is not None:
                progress(len(done), len(traces))
        return done


def _table(
    settings: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    scores: Floats,
    chosen_on: Sequence[int],
    held: Sequence[int],
    lines: Sequence[str],
) -> tuple[pd.DataFrame, int]:
    """Return all settings with their means on both parts, and which is best on the first."""
    means = scores[chosen_on, 1:].mean(axis=0)
    if np.isnan(means[:, 0]).all():
        told = f"none of {len(settings):,} settings can be planned for every conversation"
        raise ValueError(f"{told}; vary {quoted(lines)} less")
    table = pd.DataFrame([dict(setting) for setting in settings])
    for place, name in enumerate(names):
        table[name], table[f"{name} held out"] = means[:, place], scores[held, 1:].mean(axis=0)[:, place]
    table["front"] = _on_front(means)
    return table, int(np.nanargmin(means[:, 0]))


def _on_front(means: Floats) -> npt.NDArray[np.bool_]:
    """Say which rows no other row beats: as good in all columns and better in one."""
    return np.array(
        [
            not np.isnan(row).any() and not ((means <= row).all(axis=1) & (means < row).any(axis=1)).any()
            for row in means
        ],
        dtype=np.bool_,
    )
