"""How long a conversation can go on with a model: until the window is full, something is cut, or money runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.counters import counter
from budgetkit.framing import Framing
from budgetkit.models import Model
from budgetkit.plan.items import Floats, Ints
from budgetkit.replay.cost import MILLION, Prices
from budgetkit.replay.forecast import first_over, paths
from budgetkit.trace import Trace

Preset = Callable[[Model], Budget]


def turn_sizes(trace: Trace, count: Callable[[str], int], framing: Framing | None = None) -> Ints:
    """Return how much each turn adds to the conversation.

    Parameters
    ----------
    trace : Trace
        The conversation.
    count : callable
        From text to tokens.
    framing : Framing, optional
        What a message costs beyond its text; OpenAI's when left out.

    Returns
    -------
    int64 array, shape (turns,)
        The user's message and all that follows it, in tokens.

    Examples
    --------
    >>> import budgetkit as bk
    >>> len(turn_sizes(bk.load_trace("support-chat"), len))
    75
    """
    sums = np.concatenate(([0], np.cumsum(trace.counts(count, framing))))
    return np.array([sums[turn.end] - sums[turn.start] for turn in trace.turns], dtype=np.int64)


def outlook(
    trace: Trace,
    models: Iterable[Model],
    preset: Preset,
    prices: Callable[[str], Prices] | None = None,
    money: float | None = None,
    turns: int = 1_000,
    samples: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """Forecast three turns for each model: the first cut, the full window, and the end of the money.

    Parameters
    ----------
    trace : Trace
        The conversation so far; its turns are drawn from, and it goes on from its start.
    models : iterable of Model
        Their windows, and the encodings that count for them.
    preset : callable
        From a model to the budget that it is used with; its remainder says when something is cut.
    prices : callable, optional
        From a model's name to its prices, such as :func:`budgetkit.replay.cost.prices`.
    money : float, optional
        What may be spent, in US dollars; every request reads the last one from the cache and writes what is new.
    turns : int, default 1,000
        How far to look.
    samples : int, default 500
        How many conversations to draw.
    seed : int, default 0
        The same seed draws the same.

    Returns
    -------
    DataFrame
        One row a model and event. Columns model, then those of :func:`budgetkit.replay.forecast.first_over`.

    Examples
    --------
    >>> import budgetkit as bk
    >>> found = outlook(bk.load_trace("support-chat"), [bk.model("gpt-4o")], bk.presets.working_memory)
    >>> found["event"].tolist()
    ['first cut', 'window full']
    """
    frames = []
    for model in models:
        budget = preset(model)
        count = counter(model)
        sizes = turn_sizes(trace, count)
        start = int(trace.counts(count)[: trace.turns[0].start].sum())
        drawn = paths(sizes, turns, start, samples, seed)
        found = first_over(drawn, {"first cut": budget.usable, "window full": budget.window})
        if prices is not None and money is not None:
            cost = spent(drawn, prices(model.name))
            if cost is not None:
                found = pd.concat([found, first_over(cost, {"money spent": money})], ignore_index=True)
        found.insert(0, "model", model.name)
        frames.append(found)
    return pd.concat(frames, ignore_index=True)


def spent(drawn: Ints, prices: Prices) -> Floats | None:
    """Return what drawn conversations have cost up to each turn.

    Parameters
    ----------
    drawn : int64 array, shape (samples, turns)
        Size of the context at each turn, in tokens; rising from turn to turn.
    prices : Prices
        What the model costs.

    Returns
    -------
    float64 array, shape (samples, turns), or None
        In US dollars; None where a price is not known. Every request reads the last one from the cache and writes
        what is new; answers count as input only.

    Examples
    --------
    >>> from budgetkit.replay.cost import Price
    >>> spent(np.array([[1_000_000, 3_000_000]]), Prices("x", Price(2.0), cache_read=Price(0.5))).tolist()
    [[2.0, 6.5]]
    """
    write = prices.cache_write or prices.input
    if write is None or prices.cache_read is None:
        return None
    new = np.diff(drawn, axis=1, prepend=0)
    cost = new * write.of(drawn) + (drawn - new) * prices.cache_read.of(drawn)
    return np.asarray(np.cumsum(cost, axis=1) / MILLION)
