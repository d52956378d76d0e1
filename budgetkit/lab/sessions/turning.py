"""Where the order of rules turns: the cheaper a cached token is read, the dearer is each break of the prefix.

    cost = fresh + cached * read + written * write + summary calls      (in tokens at the input price)

A rule that shortens every prompt wins where nothing is cached, and loses where reading costs a tenth; a rule that acts
once in a large window hardly matters. Which is cheapest therefore depends on two numbers that differ from model to
model: what a cached token costs, and how large the window is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from budgetkit.counters import Count
from budgetkit.inputs import policies_of
from budgetkit.lab.replay import Prices, Replay
from budgetkit.lab.replay.cost import Price
from budgetkit.lab.sessions.comparing import (
    AS_IT_WAS,
    UNLIMITED,
    USUAL,
    ReplaySetup,
    Systems,
    setup_of,
)
from budgetkit.lab.sessions.session import Session
from budgetkit.pruning import OldestFirst
from budgetkit.trace import Trace

#: What a cached token costs, as multiples of the input price; 1 is no cache.
READS = (1.0, 0.5, 0.25, 0.1, 0.05)
#: Windows of today's models, in tokens.
WINDOWS = (128_000, 200_000, 272_000, 400_000, 1_000_000)
_ANSWER = (
    5.0  # what a written token costs, as a multiple of the input price, where no price is known
)


def by_price_and_window(
    source: Trace | Session,
    systems: Systems = USUAL,
    reads: Iterable[float] = READS,
    windows: Iterable[int] = WINDOWS,
    *,
    counter: Count | str | None = None,
) -> pd.DataFrame:
    """Return the cheapest rule by cached-token price and by window.

    It also marks the prices at which another rule becomes the cheapest.

    Parameters
    ----------
    source : Trace or Session
        A conversation.
    systems : names, policies, or a mapping to them
        As in :func:`budgetkit.compare`.
    reads : iterable of float
        Prices of a token that is read from the cache, as multiples of the input price; 1 is no cache.
    windows : iterable of int
        In tokens.
    counter : callable or str, optional
        As in :func:`budgetkit.compare`.

    Returns
    -------
    DataFrame
        One row a window, price and rule: window, read, system, acts (whether it did anything), change (against nothing
        leaving, as a share; a prompt over the window is counted as if it fitted), cheapest (whether no other rule that
        acts, nor leaving all alone, costs less) and turns (whether another is cheapest here than at the price before).

    Examples
    --------
    >>> import budgetkit as bk
    >>> rules = {"mask": bk.policies.ClearResults(keep_uses=3)}
    >>> table = by_price_and_window(bk.load_trace("coding-agent"), rules, [1.0, 0.02], [32_000])
    >>> table.loc[table["cheapest"], ["read", "system"]].values.tolist()
    [[1.0, 'mask'], [0.02, 'nothing leaves']]
    """
    setup = setup_of(source, count=counter)
    base = setup.replayed(OldestFirst(), UNLIMITED)
    rows = []
    for window in windows:
        outcomes = {
            name: setup.replayed(rule, window) for name, rule in policies_of(systems).items()
        }
        before = ""
        for read in reads:
            whole = input_cost(base, setup, read)
            changes = {AS_IT_WAS: 0.0}
            changes |= {
                name: input_cost(outcome, setup, read) / whole - 1
                for name, outcome in outcomes.items()
            }
            acting = [name for name in changes if name == AS_IT_WAS or outcomes[name].acts.any()]
            cheapest = min(acting, key=lambda name: changes[name])
            turns = before not in ("", cheapest)
            before = cheapest
            for name, change in changes.items():
                row = {"window": window, "read": read, "system": name, "acts": name in acting[1:]}
                row |= {"change": change, "cheapest": name == cheapest}
                rows.append(row | {"turns": name == cheapest and turns})
    return pd.DataFrame(rows)


def input_cost(outcome: Replay, setup: ReplaySetup, read: float) -> float:
    """Return what all prompts and summaries cost, in tokens at the input price, where reading costs a share of it."""
    # Where reading costs what input costs there is no cache, and nothing is written to one.
    write = 1.0 if read >= 1 else setup.cache.write
    answer = _ANSWER
    known = setup.prices
    if known is not None and known.input and known.output and known.input.base:
        answer = known.output.base / known.input.base
    # A price is for a million tokens; the answers themselves are no input.
    fresh, output, cached, written = (Price(1e6 * factor) for factor in (1.0, answer, read, write))
    prices = Prices("", fresh, output, cached, written)
    return float(replace(outcome, prices=prices, output=0 * outcome.output).cost.sum())
