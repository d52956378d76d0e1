"""Which model, which window: the same conversations and the same kind of budget under several models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.counters import counter
from budgetkit.models import Model, model
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.replay import replay
from budgetkit.replay.cost import Prices, prices
from budgetkit.trace import Trace

_DRAWS = 2_000


def compare_models(
    traces: Sequence[Trace],
    models: Iterable[str | Model],
    preset: Callable[[Model], Budget],
    policy: Policy | None = None,
    price: Callable[[str], Prices] = prices,
) -> pd.DataFrame:
    """Put models side by side on the same conversations.

    Parameters
    ----------
    traces : sequence of Trace
        The conversations.
    models : iterable of str or Model
        By name.
    preset : callable
        From a model to its budget.
    policy : Policy, optional
        What leaves a history that has grown too large; the oldest messages first when left out.
    price : callable, optional
        From a model's name to its prices.

    Returns
    -------
    DataFrame
        One row a model, in the order given. Columns model, window (tokens), largest (tokens of the longest
        conversation), fits (share of conversations of which nothing is lost), first_loss (median turn, missing where
        nothing is lost), cost (US dollars for all, with the model's prompt cache; missing where a price is not known),
        tax (its tokens for these texts against the first model's, a ratio) and exact (whether it counts exactly).

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = compare_models(bk.load_traces("made-up-chats"), ["gpt-4o", "gpt-4"], bk.presets.working_memory)
    >>> table[["model", "window", "fits"]].values.tolist()
    [['gpt-4o', 128000, 1.0], ['gpt-4', 8192, 1.0]]
    """
    rows = [_row(traces, each if isinstance(each, Model) else model(each), preset, policy, price) for each in models]
    table = pd.DataFrame(rows)
    table.insert(6, "tax", table["tokens"] / table["tokens"].iloc[0] if len(table) else [])
    return table.drop(columns="tokens")


def _row(
    traces: Sequence[Trace],
    of: Model,
    preset: Callable[[Model], Budget],
    policy: Policy | None,
    price: Callable[[str], Prices],
) -> dict[str, object]:
    count, budget, own, paid = counter(of), preset(of), policy or OldestFirst(), price(of.name)
    sizes = [int(trace.counts(count).sum()) for trace in traces]
    outcomes = [replay(trace, budget, own, count=count, prices=paid) for trace in traces]
    dropped = [np.flatnonzero(outcome.kept.dropped) for outcome in outcomes]
    first = [each.placed.requests[lost[0]].number for each, lost in zip(outcomes, dropped, strict=True) if len(lost)]
    return {
        "model": of.name,
        "window": of.window,
        "largest": max(sizes),
        "fits": float(np.mean([not len(lost) for lost in dropped])),
        "first_loss": float(np.median(first)) if first else np.nan,
        "cost": float(sum(np.sum(outcome.cost) for outcome in outcomes)),
        "tokens": sum(sizes),
        "exact": count.exact,
    }


def answer_lengths(
    traces: Sequence[Trace], count: Callable[[str], int], share: float = 0.95, seed: int = 0
) -> tuple[int, int, int]:
    """Return how much to reserve for an answer, from the answers in conversations.

    Parameters
    ----------
    traces : sequence of Trace
        The conversations.
    count : callable
        From text to tokens.
    share : float, default 0.95
        Share of the answers that are to have room.
    seed : int, default 0
        The same seed draws the same.

    Returns
    -------
    tuple of int
        The quantile in tokens, and its 95 % interval from drawing conversations again, since the answers of one
        conversation are alike.

    Raises
    ------
    ValueError
        If no conversation has an answer.

    Examples
    --------
    >>> import budgetkit as bk
    >>> answer_lengths(bk.load_traces("made-up-chats"), bk.counter("gpt-4o"))
    (77, 76, 79)
    """
    lengths = recorded_lengths(traces, count)
    if not lengths:
        raise ValueError(f"{len(traces)} conversations without an answer; a reserve is read off answers; give some")
    draws = np.random.default_rng(seed).integers(0, len(lengths), (_DRAWS, len(lengths)))
    drawn = [np.concatenate([lengths[i] for i in draw]) for draw in draws]
    quantiles = [np.quantile(each, share, method="higher") for each in drawn]
    low, high = np.quantile(quantiles, [0.025, 0.975])
    return int(np.quantile(np.concatenate(lengths), share, method="higher")), int(low), int(high)


def recorded_lengths(traces: Sequence[Trace], count: Callable[[str], int]) -> list[npt.NDArray[np.int64]]:
    """Count the answers of each conversation that has some."""
    answers = [[message for message in trace.messages if message.role == "assistant"] for trace in traces]
    return [np.array([count("".join(each.texts)) for each in said], dtype=np.int64) for said in answers if said]
