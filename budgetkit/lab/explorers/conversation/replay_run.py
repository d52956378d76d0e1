"""ReplayRun: the options for replaying a conversation, with cached outcomes.

run = ReplayRun(library=library, trace=trace, counter=counter, ..., cache=cache, prices=prices)
run.replayed({"oldest first": OldestFirst()})    replays the conversation
run.replayed({"oldest first": OldestFirst()})    returns the same replay from the library
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.counters import Counter
from budgetkit.lab import figures
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.replay import cost
from budgetkit.lab.replay.cost import Prices
from budgetkit.lab.replay.forecast import Pace, first_over
from budgetkit.lab.replay.losses import evidence, needed_there
from budgetkit.lab.replay.outcome import Replay, rank_policies
from budgetkit.lab.replay.outlook import Forecast, pace_of, spent
from budgetkit.lab.replay.prefix import By
from budgetkit.lab.replay.prompt_cache import PromptCache
from budgetkit.lab.replay.replaying import replay
from budgetkit.lab.sessions.comparing import (
    USUAL,
    Comparison,
    by_price_and_window,
    comparison,
)
from budgetkit.lab.sessions.session import Session
from budgetkit.lab.sessions.setup import replay_setup
from budgetkit.message import Data
from budgetkit.plan import Ints
from budgetkit.pruning import NEVER, Policy
from budgetkit.pruning.policies import system
from budgetkit.requests import Framing
from budgetkit.state import to_json
from budgetkit.trace import Trace, usage_columns

T = TypeVar("T")
Drawn = tuple[pd.DataFrame, Data]
_STRETCHES = 120  # parts of a conversation in a small chart


class Replayed:
    """One replay, with its tables and figures."""

    def __init__(self, outcome: Replay, pairs: pd.DataFrame) -> None:
        self.outcome = outcome
        self.pairs = pairs
        self._drawn: dict[str, Drawn] = {}

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A table with one row per request."""
        return self.outcome.frame()

    @cached_property
    def outline(self) -> list[int]:
        """The largest request of each part of the conversation, in tokens."""
        stretches = np.array_split(self.outcome.sent, min(_STRETCHES, len(self.outcome.sent)))
        return [int(stretch.max()) for stretch in stretches]

    @cached_property
    def totals(self) -> dict[str, float]:
        """The totals over all requests."""
        return self.outcome.totals()

    @cached_property
    def evidence(self) -> tuple[int, int]:
        """The number of needed messages, and the number present.

        A message that the session's own compaction removed no longer counts as needed.
        """
        _, needs, there = needed_there(self.outcome, self.pairs)
        counted = there | ~np.isin(needs, [*self.taken_out])
        return int(counted.sum()), int(there.sum())

    @cached_property
    def demand(self) -> pd.DataFrame:
        """A table of each section's demand without pruning, by request."""
        sections = self.outcome.sections()
        return sections.pivot(index="request", columns="section", values="demand")

    @cached_property
    def first_loss(self) -> int | None:
        """The first request with a loss, or None without losses."""
        retention = self.outcome.kept
        gone = [at for slot, at in enumerate(retention.gone) if slot not in self.taken_out]
        left = [at + 1 for at in (*gone, *retention.shrunk) if at != NEVER]
        # The history's own column also misses the messages that the session took out.
        sections = self.outcome.sections()
        is_cut = (sections["cut"] > 0) & (sections["section"] != self.outcome.section)
        cut = sections.loc[is_cut, "request"].tolist()
        return min((*left, *cut), default=None)

    @cached_property
    def fates(self) -> list[str]:
        """The fate of each message at the end of the replay."""
        return [
            "compacted" if slot in self.taken_out else str(fate)
            for slot, fate in enumerate(self.messages["fate"])
        ]

    @cached_property
    def taken_out(self) -> frozenset[int]:
        """The messages that the session's own compactions removed from the window."""
        leave = self.outcome.placed.leave.tolist()
        gone = self.outcome.kept.gone
        return frozenset(slot for slot, at in enumerate(gone) if at != NEVER and at == leave[slot])

    @cached_property
    def messages(self) -> pd.DataFrame:
        """A table with one row per message."""
        return self.outcome.messages()

    @cached_property
    def over(self) -> tuple[int, int]:
        """The number of requests above the history's limit, and the largest excess."""
        return int(np.count_nonzero(self.outcome.over)), int(self.outcome.over.max(initial=0))

    @cached_property
    def too_large(self) -> tuple[int, int]:
        """The number of requests above the usable window, and the largest excess."""
        excess = self.outcome.sent - self.outcome.budget.usable
        return int(np.count_nonzero(excess > 0)), int(excess.max(initial=0))

    def drawn(self, name: str) -> Drawn:
        """Return a figure of this replay, by name."""
        if name not in self._drawn:
            self._drawn[name] = _drawn(name, self.outcome)
        return self._drawn[name]


class Compared:
    """A comparison of several replays."""

    def __init__(self, replays: Mapping[str, Replayed]) -> None:
        self._replays = replays
        self._outcomes = {name: replayed.outcome for name, replayed in replays.items()}

    @cached_property
    def ranking(self) -> pd.DataFrame:
        """A table of the policies and their totals, cheapest first.

        The column evidence has the share of needed messages that are present.
        """
        table = rank_policies(self._outcomes)
        shares = {
            name: np.divide(*replayed.evidence[::-1]) if replayed.evidence[0] else np.nan
            for name, replayed in self._replays.items()
        }
        table["evidence"] = table["policy"].map(shares).astype("float64")
        return table

    @cached_property
    def spending(self) -> Drawn:
        """The spending so far, as a table and a figure."""
        return _drawn("spending", self._outcomes)


def _drawn(name: str, replays: Any) -> Drawn:
    table = getattr(figures, name).table(replays)
    return table, getattr(figures, name).draw(table)


SAMPLES = 500  # as many as `outlook` draws


@dataclass(frozen=True, kw_only=True)
class ReplayRun:
    """The options for replaying a conversation under any policy.

    The outcomes are cached in the library.
    """

    library: Library
    trace: Trace
    counter: Counter
    framing: Framing
    budget: Budget
    roles: Mapping[str, str]
    by: By
    cache: PromptCache
    prices: Prices

    @property
    def options(self) -> Data:
        """The options of :func:`budgetkit.replay`."""
        names = ("counter", "framing", "roles", "by", "cache", "prices")
        return {name: getattr(self, name) for name in names}

    @property
    def key(self) -> Hashable:
        """The key of an outcome: everything that the outcome depends on."""
        roles = tuple(self.roles.items())
        return (*self._counted, roles, to_json(self.budget), self.by, self.cache, self.prices)

    @property
    def _counted(self) -> tuple[Hashable, ...]:
        """The key of the counts: trace, counter and framing."""
        return id(self.trace), self.counter.name, self.framing

    def replayed(self, policies: Mapping[str, Policy]) -> dict[str, Replayed]:
        """Return one replay per policy, cached in the library."""

        def announce() -> Trace:
            """Report that a long conversation is being counted."""
            self.library.announce(self.trace, self.counter)
            return self.trace

        self.library.once(("announced", *self._counted), announce)
        key = self.key

        def replayed(policy: Policy) -> Replayed:
            needs = self._once("evidence", (), lambda: evidence(self.trace))
            return Replayed(replay(self.trace, self.budget, policy, **self.options), needs)

        return {
            name: self.library.once_large((key, policy), partial(replayed, policy))
            for name, policy in policies.items()
        }

    def compared(self, policies: Mapping[str, Policy], replays: Mapping[str, Replayed]) -> Compared:
        """Return the comparison of several replays."""
        return self.library.once_large(
            (self.key, tuple(policies.items())), lambda: Compared(replays)
        )

    def pace(self, others: Sequence[Trace]) -> Pace | None:
        """Estimate this conversation's pace from other conversations in the file.

        If the other conversations are too few or do not resemble this one, return None.
        """
        # The file holds the others, so that no other trace gets their ids.
        return self._once(
            "pace",
            (*self._counted, tuple(map(id, others))),
            lambda: pace_of(self.trace, self.counter, others, self.framing),
        )

    def forecast(self, turns: int, pace: Pace | None) -> Forecast:
        """Return the continuations of this conversation."""
        return self._once(
            "forecast",
            (*self._counted, turns, pace),
            lambda: Forecast(
                self.trace, self.counter, turns, SAMPLES, framing=self.framing, pace=pace
            ),
        )

    def drawn(self, turns: int, pace: Pace | None) -> tuple[Ints, pd.DataFrame]:
        """Return the sizes of simulated continuations, and a table of their spread."""

        def draw() -> tuple[Ints, pd.DataFrame]:
            sizes = self.forecast(turns, pace).contexts
            return sizes, figures.fan.table(sizes, known=len(self.trace.turns))

        return self._once("drawn", (*self._counted, turns, pace), draw)

    def ahead(self, turns: int, money: float, pace: Pace | None) -> pd.DataFrame:
        """Return the turns in which simulated continuations pass each limit."""

        def pass_them() -> pd.DataFrame:
            forecast = self.forecast(turns, pace)
            limits = [
                forecast.first_cut(self.budget, self.roles),
                first_over(forecast.contexts, {"window full": self.budget.window}),
            ]
            dollars = spent(forecast.contexts, self.prices) if money else None
            if dollars is not None:
                limits.append(first_over(dollars, {"money spent": money}))
            return pd.concat(limits, ignore_index=True)

        roles = tuple(self.roles.items())
        key = (*self._counted, roles, to_json(self.budget), self.prices, turns, pace, money)
        return self._once("ahead", key, pass_them)

    @property
    def session(self) -> Session | None:
        """The conversation with its provider's bill, or None without recorded usage."""

        def read() -> Session | None:
            return Session(self.trace) if len(usage_columns(self.trace)["model"]) else None

        return self._once("session", (), read)

    def systems(self, window: int | None) -> Comparison:
        """Replay the usual systems' rules on the same messages."""
        options = self.prices, self.cache, self.counter

        def compare() -> Comparison:
            if self.session is not None:
                return comparison(replay_setup(self.session, window))
            return comparison(replay_setup(self.trace, window, *options))

        return self._once("systems", (*self._counted, window, *options[:2]), compare)

    def turning(self, windows: Sequence[int]) -> pd.DataFrame:
        """Return the cheapest rule, by cached-token price and window."""
        systems = {system(name).label: name for name in USUAL}
        source = self.session or self.trace
        counter = None if self.session else self.counter
        return self._once(
            "turning",
            (*self._counted, *windows),
            lambda: by_price_and_window(source, systems, windows=windows, counter=counter),
        )

    def _once(self, what: str, key: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        """Return a value of the conversation, computed once.

        The entry in the library holds the trace, so that no other trace gets the same id.
        """
        once = self.library.once_large
        return once((what, id(self.trace), *key), lambda: (self.trace, make()))[1]


def listed_prices(model: str, on: date | None, hour: bool) -> Prices:
    """Return the listed prices of a model on a day.

    If `on` is None, the day is today. If `hour` is True, cache writes have the price of a cache that is kept for an
    hour.
    """
    return _prices(model, on or datetime.now(UTC).date(), hour=hour)


_prices = lru_cache(32)(cost.prices)
