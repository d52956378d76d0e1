"""Which model, which window: the same conversations and the same kind of budget under several models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.counters import basis_of, counter
from budgetkit.inputs import policy_of, preset_of, traces_of
from budgetkit.inputs.budgets import AnyModel
from budgetkit.inputs.conversations import AnyTrace
from budgetkit.lab.replay import Replay, replay
from budgetkit.lab.replay.cost import Prices, prices
from budgetkit.models import Model
from budgetkit.models.resolved import facts_of, models_of
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.trace import Trace


def compare_models(
    traces: AnyTrace,
    models: AnyModel | Iterable[AnyModel],
    preset: str | Callable[[Model], Budget],
    policy: Policy | str | None = None,
    price: Callable[[str], Prices] = prices,
) -> pd.DataFrame:
    """Put models side by side on the same conversations.

    Parameters
    ----------
    traces : sequence of Trace, str or Path
        The conversations, or what holds them.
    models : str or Model, or an iterable of these
        One model or several.
    preset : callable or str
        From a model to its budget; or the name of a preset.
    policy : Policy or str, optional
        What leaves a history that has grown too large; the oldest messages first when left out.
    price : callable, optional
        From a model's name to its prices.

    Returns
    -------
    DataFrame
        One row a model, in the order given. Columns model, window (tokens), ends (the day on which its provider ends
        it, empty where none is known), largest (tokens of the longest conversation), fits (share of conversations of
        which nothing is lost), breaks (the section that loses something in most conversations, empty where none
        does), first_loss (median turn, missing where nothing is lost), cost (US dollars for all, with the model's
        prompt cache; missing where a price is not known), tax (its tokens for these texts against the first model's,
        a ratio), exact (whether it counts exactly) and basis (what its numbers rest on: "exact", "reconstructed" or
        "estimate").

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = compare_models(bk.load_traces("made-up-chats"), ["gpt-4o", "gpt-4"], bk.presets.working_memory)
    >>> table[["model", "window", "fits"]].values.tolist()
    [['gpt-4o', 128000, 1.0], ['gpt-4', 8192, 1.0]]
    """
    conversations = traces_of(traces)
    make = preset_of(preset)
    pruning = OldestFirst() if policy is None else policy_of(policy)
    rows = [
        _row(conversations, facts_of(model), make, pruning, price) for model in models_of(models)
    ]
    table = pd.DataFrame(rows)
    if not len(table):
        return table
    table.insert(
        list(table.columns).index("cost") + 1, "tax", table["tokens"] / table["tokens"].iloc[0]
    )
    return table.drop(columns="tokens")


def _row(
    traces: Sequence[Trace],
    of: Model,
    preset: Callable[[Model], Budget],
    policy: Policy,
    price: Callable[[str], Prices],
) -> dict[str, object]:
    count = counter(of)
    budget = preset(of)
    paid = price(of.name)
    sizes = [int(trace.counts(count).sum()) for trace in traces]
    outcomes = [replay(trace, budget, policy, counter=count, prices=paid) for trace in traces]
    losses = [_first_losses(outcome) for outcome in outcomes]
    turns = [min(lost.values()) for lost in losses if lost]
    sections = Counter(section for lost in losses for section in lost)
    return {
        "model": of.name,
        "window": of.window,
        "ends": of.ends,
        "largest": max(sizes),
        "fits": float(np.mean([not lost for lost in losses])),
        "breaks": sections.most_common(1)[0][0] if sections else "",
        "first_loss": float(np.median(turns)) if turns else np.nan,
        "cost": float(sum(np.sum(outcome.cost) for outcome in outcomes)),
        "tokens": sum(sizes),
        "exact": count.exact,
        "basis": basis_of(count),
    }


def _first_losses(outcome: Replay) -> dict[str, int]:
    """Return the turn at which each section first loses something."""
    lost = {
        section: column["cut"]
        for section, column in outcome.columns.items()
        if section != outcome.section
    }
    lost[outcome.section] = np.array(outcome.kept.dropped)
    requests = outcome.placed.requests
    first = {section: np.flatnonzero(tokens) for section, tokens in lost.items()}
    return {section: requests[places[0]].number for section, places in first.items() if len(places)}
