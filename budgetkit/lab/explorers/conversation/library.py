"""Library: conversations, and every replay that was made of one, kept by what it depends on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

import pandas as pd

from budgetkit.budget import Budget
from budgetkit.counters import Counter
from budgetkit.counters.memory import Memo
from budgetkit.lab import figures
from budgetkit.lab.explorers.conversation.replayed import Compared, Replayed
from budgetkit.lab.explorers.conversation.settings import ConversationSettings
from budgetkit.lab.explorers.library import Library, Report
from budgetkit.lab.replay import cost, replay, spent
from budgetkit.lab.replay.cost import Prices
from budgetkit.lab.replay.evidence import evidence
from budgetkit.lab.replay.forecast import Pace, first_over
from budgetkit.lab.replay.outlook import contexts, first_cut, pace_of
from budgetkit.lab.replay.prompt_cache import PromptCache
from budgetkit.lab.replay.requests import By
from budgetkit.lab.sessions import Session
from budgetkit.lab.sessions.comparing import Comparison, comparison
from budgetkit.plan.items import Ints
from budgetkit.pruning.policies import Policy
from budgetkit.requests import Framing
from budgetkit.state import to_json
from budgetkit.trace import Trace, usage_frame

MOST_REPLAYS = 64
SAMPLES = 500  # as many as `outlook` draws


@dataclass(frozen=True, slots=True)
class Run:
    """Say how a conversation is replayed, whatever the policy."""

    trace: Trace
    count: Counter
    framing: Framing
    budget: Budget
    roles: Mapping[str, str]
    by: By
    cache: PromptCache
    prices: Prices

    @property
    def options(self) -> dict[str, Any]:
        """The options of :func:`budgetkit.replay`."""
        names = ("framing", "roles", "by", "cache", "prices")
        return {"counter": self.count, **{name: getattr(self, name) for name in names}}

    @property
    def key(self) -> Hashable:
        """All that the outcome depends on; two runs with the same key have the same outcome."""
        counted = (id(self.trace), self.count.name, self.framing, tuple(self.roles.items()))
        return (*counted, to_json(self.budget), self.by, self.cache, self.prices)


class Replays(Library):
    """Conversations by name, their counts, and their replays."""

    #: The window that was chosen for a conversation, so that its policies differ.
    telling: int | None = None

    def __init__(self, report: Report, start: ConversationSettings | None = None) -> None:
        super().__init__(report, start)
        self._keep = Memo(MOST_REPLAYS).once
        self._counted_with: set[Hashable] = set()

    def replayed(self, run: Run, policies: Mapping[str, Policy]) -> dict[str, Replayed]:
        """Return one replay a policy; only those are made that were not made before."""
        self._announce(run)
        pairs = self._keep(("evidence", id(run.trace)), lambda: (run.trace, evidence(run.trace)))[1]
        shared = run.key
        return {
            name: self._keep((shared, policy), lambda policy=policy: self._replay(run, policy, pairs))  # type: ignore[misc]
            for name, policy in policies.items()
        }

    def compared(self, run: Run, policies: Mapping[str, Policy], replays: Mapping[str, Replayed]) -> Compared:
        """Return the replays side by side."""
        return self._keep((run.key, tuple(policies.items())), lambda: Compared(replays))

    def pace(self, run: Run, others: Sequence[Trace]) -> Pace | None:
        """Return the pace of this conversation beside others of its file; None where these are few."""
        key = ("pace", id(run.trace), tuple(map(id, others)), run.count.name, run.framing)
        return self._keep(key, lambda: (run.trace, others, pace_of(run.trace, run.count, others, run.framing)))[2]

    def drawn(self, run: Run, turns: int, pace: Pace | None) -> tuple[Ints, pd.DataFrame]:
        """Return this conversation and what is drawn to follow it, and how that spreads."""

        def draw() -> tuple[Trace, Ints, pd.DataFrame]:
            results = contexts(run.trace, run.count, turns, SAMPLES, framing=run.framing, pace=pace)
            return run.trace, results, figures.fan.table(results, known=len(run.trace.turns))

        return self._keep(("drawn", id(run.trace), run.count.name, run.framing, turns, pace), draw)[1:]

    def ahead(self, run: Run, drawn: Ints, money: float, pace: Pace | None) -> pd.DataFrame:
        """Return at which turn drawn conversations pass each limit."""

        def pass_them() -> tuple[Ints, pd.DataFrame]:
            turns = drawn.shape[1] - len(run.trace.turns)
            results = [first_cut(run.trace, run.budget, run.count, turns, SAMPLES, 0, run.roles, run.framing, pace)]
            results.append(first_over(drawn, {"window full": run.budget.window}))
            cost = spent(drawn, run.prices) if money else None
            if cost is not None:
                results.append(first_over(cost, {"money spent": money}))
            return drawn, pd.concat(results, ignore_index=True)

        return self._keep((id(drawn), to_json(run.budget), run.prices, money), pass_them)[1]

    def session(self, run: Run) -> Session | None:
        """Return the conversation with what its provider billed; None where it tells no usage."""

        def read() -> tuple[Trace, Session | None]:
            return run.trace, None if usage_frame(run.trace).empty else Session(run.trace)

        return self._keep(("session", id(run.trace)), read)[1]

    def systems(self, run: Run, window: int | None) -> Comparison:
        """Return the rules of the usual systems on the same messages; of a recorded session as its own growth says."""
        session = self.session(run)

        def compared() -> Comparison:
            if session is not None:
                return comparison(session, window=window)
            return comparison(run.trace, window=window, prices=run.prices, cache=run.cache, counter=run.count)

        return self._keep(("systems", id(run.trace), run.count.name, window, run.prices, run.cache), compared)

    def prices(self, model: str, on: date | None, hour: bool) -> Prices:
        """Return what a model costs."""
        return _prices(model, on or datetime.now(UTC).date(), hour)

    def _replay(self, run: Run, policy: Policy, pairs: pd.DataFrame) -> Replayed:
        return Replayed(replay(run.trace, run.budget, policy, **run.options), pairs)

    def _announce(self, run: Run) -> None:
        """Say so before a long conversation is counted for the first time."""
        key = (id(run.trace), run.count.name, run.framing)
        if key not in self._counted_with and len(run.trace.messages) > 200:
            self.report(f"Counting {run.trace.id}: {len(run.trace.messages):,} messages with {run.count.name}", 0)
        self._counted_with.add(key)


@lru_cache(32)
def _prices(model: str, on: date, hour: bool) -> Prices:
    return cost.prices(model, on, hour=hour)
