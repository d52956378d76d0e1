"""Which settings matter: each line moved alone, with the others where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.inputs import budget_of, policy_of, traces_of
from budgetkit.inputs.budgets import AnyBudget, AnyModel
from budgetkit.inputs.conversations import AnyTrace
from budgetkit.lab.deciding.tuning import (
    Objective,
    Progress,
    answers_of,
    measured,
    named_objective,
    split,
    values_of,
)
from budgetkit.lab.replay.cost import Prices
from budgetkit.pruning.policies import OldestFirst, Policy


def sensitivity(
    traces: AnyTrace,
    budget: AnyBudget,
    vary: Mapping[str, Iterable[Any]],
    objective: str | Objective = "cut",
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
    name, measure = named_objective(objective)
    budget = budget_of(budget, model, window)
    options = options if model is None else {"model": model, **options}
    traces = traces_of(traces)
    values = values_of(budget, vary)
    moves = [(line, value) for line, by_name in values.items() for value in by_name]
    settings: list[dict[str, Any]] = [{}, *({line: value} for line, value in moves)]
    chosen_on, _ = split(len(traces), hold_out, seed)
    present = OldestFirst() if policy is None else policy_of(policy)
    work = partial(
        measured, budget, settings, {name: measure}, present, values, {"prices": prices, **options}
    )
    seen = [traces[place] for place in chosen_on]
    means = np.array(answers_of(work, seen, 1, None, progress))[:, :, 0].mean(axis=0)
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
