"""Forecasts of the turns of the first cut, a full window and spent money."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import Budget
from budgetkit.counters import Count, counter
from budgetkit.inputs.budgets import AnyModel, preset_of
from budgetkit.inputs.conversations import AnyTrace, trace_of
from budgetkit.lab.replay.cost import MILLION, Prices
from budgetkit.lab.replay.forecast import (
    Pace,
    draws,
    first_over,
    notice,
    own_pace,
    pace_beside,
    paths,
)
from budgetkit.lab.replay.replaying import demand_of, limits_of
from budgetkit.models import Model, models_of, resolve
from budgetkit.plan import Floats, Ints, with_undeclared
from budgetkit.requests import Framing
from budgetkit.trace import DEFAULT_ROLES, Roles, Trace
from budgetkit.trace.tally import running_sums

Preset = Callable[[Model], Budget]
MOST_OTHERS = 30  # other conversations that determine the pace; more add little
_AT_ONCE = 100  # continuations planned at once, to bound memory


def turn_sizes(trace: Trace, counter: Count, framing: Framing | None = None) -> Ints:
    """Return the tokens that each turn adds to the conversation.

    Parameters
    ----------
    trace : Trace
        The conversation.
    counter : callable
        Function that counts the tokens in a text.
    framing : Framing, optional
        Tokens that a message costs beyond its text; default: the framing of the trace's own model.

    Returns
    -------
    int64 array, shape (turns,)
        Tokens of each turn: the user message and everything after it.

    Examples
    --------
    >>> import budgetkit as bk
    >>> len(turn_sizes(bk.load_trace("support-chat"), len))
    75
    """
    sums = np.concatenate(([0], np.cumsum(trace.counts(counter, framing))))
    return np.array([sums[turn.end] - sums[turn.start] for turn in trace.turns], "int64")


def outlook(
    trace: AnyTrace,
    models: Iterable[AnyModel] | AnyModel,
    preset: Preset | str,
    prices: Callable[[str], Prices] | None = None,
    money: float | None = None,
    turns: int = 1_000,
    samples: int = 500,
    seed: int = 0,
    others: Sequence[Trace] = (),
) -> pd.DataFrame:
    """Forecast the turns of the first cut, a full window and spent money.

    For an event that has already happened, low, median and high are all the turn of the event.

    Parameters
    ----------
    trace : Trace, str, Path or sequence of messages
        The conversation so far. It continues from its current size, with turns drawn from its past turns. A string is
        the name of a shipped trace or a path.
    models : iterable of str or Model
        The models or their names.
    preset : str or callable
        A preset's name, or a function that returns the budget for a model. The budget determines the history's limit.
    prices : callable, optional
        Function that returns the prices for a model's name, such as :func:`budgetkit.lab.replay.cost.prices`.
    money : float, optional
        Maximum spending, in US dollars. Each request is assumed to read the previous request from the cache and to
        write only its new tokens.
    turns : int, default 1,000
        Number of turns to forecast.
    samples : int, default 500
        Number of continuations to draw.
    seed : int, default 0
        Seed for drawing the continuations.
    others : sequence of Trace, optional
        At least five other conversations of the same kind, of which the first 30 are used. Their later turns show how
        fast such conversations grow.

    Returns
    -------
    DataFrame
        One row for each model and event, with the column model, the columns of
        :func:`budgetkit.lab.replay.forecast.first_over`, and the column notice, which describes limitations of the
        forecast or is empty. The limit of the first cut is the history's limit at the last turn seen.

    Examples
    --------
    >>> import budgetkit as bk
    >>> forecast = outlook(bk.load_trace("support-chat"), [bk.model("gpt-5.4")], bk.presets.working_memory)
    >>> forecast["event"].tolist()
    ['first cut', 'window full']
    """
    trace = trace_of(trace)
    make = preset_of(preset)

    frames = []
    for name in models_of(models):
        model = resolve(name)
        budget = make(model)
        count = counter(model)
        own, *rest = (turn_sizes(each, count) for each in (trace, *others[:MOST_OTHERS]))
        pace = pace_beside(own, rest)
        forecast = Forecast(trace, count, turns, samples, seed, pace=pace)
        events = [
            forecast.first_cut(budget),
            first_over(forecast.contexts, {"window full": budget.window}),
        ]
        if prices is not None and money is not None:
            cost = spent(forecast.contexts, prices(model.name))
            if cost is not None:
                events.append(first_over(cost, {"money spent": money}))
        table = pd.concat(events, ignore_index=True)
        table.insert(0, "model", model.name)
        answers = trace.roles.count("assistant")
        table["notice"] = notice(own, rest, answers / len(trace.turns))
        frames.append(table)
    return pd.concat(frames, ignore_index=True)


def pace_of(
    trace: Trace, counter: Count, others: Sequence[Trace], framing: Framing | None = None
) -> Pace | None:
    """Estimate a conversation's pace from its own turns and similar conversations.

    The pace is None if there are too few similar conversations.
    """
    own, *rest = (turn_sizes(each, counter, framing) for each in (trace, *others[:MOST_OTHERS]))
    return pace_beside(own, rest)


@dataclass(frozen=True, eq=False)
class Forecast:
    """Continuations of a conversation, drawn from its own turns.

    Parameters
    ----------
    trace : Trace
        The conversation so far.
    counter : callable
        Function that counts the tokens in a text.
    turns, samples, seed : int
        Number of turns to draw, number of continuations, and seed of the draws.
    framing : Framing, optional
        Tokens that a message costs beyond its text; default: the framing of the trace's own model.
    pace : Pace, optional
        The factor by which later turns differ from past turns; default: estimated from the turns seen.
    """

    trace: Trace
    counter: Count
    turns: int
    samples: int = 500
    seed: int = 0
    framing: Framing | None = None
    pace: Pace | None = None

    @cached_property
    def sizes(self) -> Ints:
        """Tokens of each recorded turn."""
        return turn_sizes(self.trace, self.counter, self.framing)

    @cached_property
    def contexts(self) -> Ints:
        """The context size after each turn, one row per continuation.

        Each row starts with the past turns and goes on with the drawn turns.
        """
        counts = self.trace.counts(self.counter, self.framing)
        known = counts[: self.trace.turns[0].start].sum() + np.cumsum(self.sizes)
        ahead = paths(self.sizes, self.turns, int(known[-1]), self.samples, self.seed, self.pace)
        return with_known(known, ahead)

    def first_cut(self, budget: Budget, roles: Roles | None = None) -> pd.DataFrame:
        """Forecast the turn at which the history first exceeds its limit.

        A replay cuts at that turn. The result has the columns of `first_over`, with the history's limit at the last
        turn seen.
        """
        if roles is None:
            roles = budget.roles or DEFAULT_ROLES
        if not budget.roles and budget.undeclared == "error":
            budget = replace(budget, undeclared="pool")
        trace = self.trace
        framing = trace.framing_of(self.counter, self.framing)
        demand = demand_of(trace, self.counter, roles, framing, None, "turn")

        def excess(demands: Mapping[str, Ints], uncut: Callable[[str], Ints]) -> tuple[Ints, Ints]:
            """Return the excess of the history over its limit, and the limit."""
            history = demands[demand.section]
            flat = {name: np.maximum(column, 0).ravel() for name, column in demands.items()}
            lines = with_undeclared(replace(budget, deficit="signed"), flat)
            limit = limits_of(lines, flat, demand.section, uncut)[2].clip(0).reshape(history.shape)
            return history - limit, limit

        # The tokens of each section before each turn, and at the end.
        edges = [turn.start for turn in trace.turns] + [trace.turns[-1].end]
        tally = demand.placed.tally
        entered, none = running_sums(tally.past), np.zeros(len(tally.past) + 1, "int64")
        sums = {name: entered.get(name, none)[edges] for name in demand.sections}

        def drawn_excess(turns: Ints, pace: Floats) -> Ints:
            """Return the history's excess over its limit in each drawn turn.

            A section's demand is its tokens at the end of the conversation, plus its tokens in the drawn turns so far.
            """
            demands = {}
            for name, column in sums.items():
                left = np.diff(column)[turns]
                growth = np.rint((np.cumsum(left, axis=1) - left) * pace).astype("int64")
                lasting = demand.sections[name] - column[:-1]
                demands[name] = column[-1] + growth + lasting[turns]
            return excess(demands, lambda name: demand.uncut[name][turns].ravel())[0]

        known, limit = excess(demand.sections, lambda name: demand.uncut[name])
        pace = self.pace or own_pace(self.sizes)
        drawn, paces = draws(len(trace.turns), self.turns, self.samples, self.seed, pace)
        parts = [slice(start, start + _AT_ONCE) for start in range(0, self.samples, _AT_ONCE)]
        ahead = np.concatenate([drawn_excess(drawn[part], paces[part]) for part in parts])
        table = first_over(with_known(known, ahead), {"first cut": 0})
        return table.assign(limit=float(limit[-1]))


def with_known(known: Ints, drawn: Ints) -> Ints:
    """Prepend the known values to every drawn path.

    Examples
    --------
    >>> with_known(np.array([1, 2]), np.array([[3], [4]])).tolist()
    [[1, 2, 3], [1, 2, 4]]
    """
    return np.concatenate((np.broadcast_to(known, (len(drawn), len(known))), drawn), axis=1)


def spent(drawn: Ints, prices: Prices) -> Floats | None:
    """Return the cumulative cost of drawn conversations, turn by turn.

    Parameters
    ----------
    drawn : int64 array, shape (samples, turns)
        Size of the context in each turn, in tokens. The sizes in a row must increase.
    prices : Prices
        Prices of the model.

    Returns
    -------
    float64 array, shape (samples, turns), or None
        Cost in US dollars; None if a price is unknown. Each request is assumed to read the previous request from the
        cache and to write its new tokens. Answers are priced as input only.

    Examples
    --------
    >>> from budgetkit.lab.replay.cost import Price
    >>> spent(np.array([[1_000_000, 3_000_000]]), Prices("x", Price(2.0), cache_read=Price(0.5))).tolist()
    [[2.0, 6.5]]
    """
    write = prices.cache_write or prices.input
    if write is None or prices.cache_read is None:
        return None
    cost = np.empty(drawn.shape)
    for row, sizes in enumerate(drawn):  # a row at a time, to bound memory
        new = np.diff(sizes, prepend=0)
        paid = new * write.of(sizes) + (sizes - new) * prices.cache_read.of(sizes)
        cost[row] = np.cumsum(paid) / MILLION
    return cost
