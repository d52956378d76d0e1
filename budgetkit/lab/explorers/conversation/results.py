"""Results of the conversation explorer: replays and a forecast.

The library counts and replays once; stepping through requests uses the cache of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd

from budgetkit.budget.errors import unknown_name
from budgetkit.lab import figures
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import WINDOWS
from budgetkit.lab.explorers.conversation.settings import (
    LIFETIMES,
    LONGEST,
    OWN,
    ConversationSettings,
)
from budgetkit.lab.replay import cost
from budgetkit.lab.replay.cost import Price, Prices, prices_of
from budgetkit.lab.replay.forecast import Pace, first_over
from budgetkit.lab.replay.losses import evidence, needed_there
from budgetkit.lab.replay.outcome import Replay, rank_policies
from budgetkit.lab.replay.outlook import Forecast, pace_of, spent, turn_sizes
from budgetkit.lab.replay.prefix import By, pauses
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache, provider_rules
from budgetkit.lab.replay.replaying import replay
from budgetkit.lab.sessions.comparing import USUAL, Comparison, by_price_and_window, comparison
from budgetkit.lab.sessions.session import Session
from budgetkit.lab.sessions.setup import replay_setup
from budgetkit.message import Data, Message
from budgetkit.models import today
from budgetkit.plan import Floats, Ints
from budgetkit.pruning import NEVER, Policy
from budgetkit.pruning.policies import system
from budgetkit.state import to_json
from budgetkit.trace import DEFAULT_ROLES, Trace, usage_columns

T = TypeVar("T")
Figure = tuple[pd.DataFrame, Data]  # its table and its specification
listed_prices = lru_cache(32)(cost.prices)
SAMPLES = 500  # as many as `outlook` draws
_TELLING = 0.6  # share of a conversation that fits the chosen window
_MOST_CHARACTERS = 6  # of a token
_STRETCHES = 120  # parts of a conversation in a small chart


class Replayed:
    """One replay, with its tables and figures."""

    def __init__(self, outcome: Replay, pairs: pd.DataFrame) -> None:
        self.outcome = outcome
        self.pairs = pairs
        self._figures: dict[str, Figure] = {}

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

    @property
    def evidence_share(self) -> float:
        """The share of needed messages that are present; NaN if none is needed."""
        needed, present = self.evidence
        return present / needed if needed else np.nan

    @cached_property
    def sections(self) -> pd.DataFrame:
        """A table with one row per request and section."""
        return self.outcome.sections()

    @cached_property
    def demand(self) -> pd.DataFrame:
        """A table of each section's demand in each request, without pruning."""
        return self.sections.pivot(index="request", columns="section", values="demand")

    @cached_property
    def first_loss(self) -> int | None:
        """Number of the first request with a loss, or None.

        Requests are counted from 1. A loss is a message that the policy drops, summarises or shortens, or a cut in
        another section. A message that the session's own compaction removed is no loss.
        """
        retention = self.outcome.kept
        gone = [at for slot, at in enumerate(retention.gone) if slot not in self.taken_out]
        left = [at + 1 for at in (*gone, *retention.shrunk) if at != NEVER]
        # The history's own column also misses the messages that the session took out.
        sections = self.sections
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

    def figure(self, name: str) -> Figure:
        """Return one of the replay's figures, with its table."""
        if name not in self._figures:
            self._figures[name] = _figure(name, self.outcome)
        return self._figures[name]


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
        shares = {name: replayed.evidence_share for name, replayed in self._replays.items()}
        table["evidence"] = table["policy"].map(shares).astype("float64")
        return table

    @cached_property
    def spending(self) -> Figure:
        """The spending so far, as a table and a figure."""
        return _figure("spending", self._outcomes)


def _figure(name: str, replays: Any) -> Figure:
    table = getattr(figures, name).table(replays)
    return table, getattr(figures, name).draw(table)


@dataclass(frozen=True)
class ConversationStage(BudgetStage):
    """The settings and results of the conversation explorer."""

    settings: ConversationSettings

    subject: ClassVar[str] = "the messages that the policy has kept"
    plans_turns: ClassVar[bool] = False

    @cached_property
    def traces(self) -> Sequence[Trace]:
        """The conversations in the file."""
        return self.library.conversations(str(self.settings.trace))

    @cached_property
    def trace(self) -> Trace:
        """The conversation."""
        name = str(self.settings.trace)
        return self.library.conversations.one(name, self.settings.conversation)

    @cached_property
    def rules(self) -> str:
        """The name of the prompt cache."""
        rules = self.settings.rules
        if rules is None:
            return provider_rules(self.model)
        return rules if isinstance(rules, str) else OWN

    @cached_property
    def cache(self) -> PromptCache:
        """The prompt cache, with the chosen lifetime."""
        cache = self.settings.rules
        if not isinstance(cache, PromptCache):
            if self.rules not in CACHES:
                raise LookupError(unknown_name("prompt cache", self.rules, CACHES))
            cache = CACHES[self.rules]
        lifetime = self.settings.lifetime
        if lifetime is None:
            return cache
        if lifetime not in LIFETIMES:
            raise LookupError(unknown_name("lifetime", lifetime, LIFETIMES))
        return replace(cache, lifetime=LIFETIMES[lifetime])

    @cached_property
    def notes(self) -> list[str]:
        """The notices about the model and its prompt cache."""
        notes = [self.model.notice]
        if self.settings.rules is None and self.rules == IDEAL:
            whose = self.model.provider or self.model.name
            notes.append(
                f"No prompt cache is known for {whose}, so an ideal cache that finds any prefix is assumed."
            )
        return [*filter(None, notes)]

    @cached_property
    def roles(self) -> dict[str, str]:
        """The section of each role.

        If calls of the current turn can be pruned, they belong to the history.
        """
        roles = dict(self.settings.planned_budget.roles or DEFAULT_ROLES)
        if self.settings.within:
            roles.pop("step", None)
        return roles

    @cached_property
    def by(self) -> By:
        """The kind of replayed requests: one per turn, or one per answer."""
        if self.settings.by is not None:
            return self.settings.by
        return "request" if any(m.tool_calls for m in self.trace.messages) else "turn"

    @cached_property
    def prices(self) -> Prices:
        """The prices of tokens: those given or listed, and those typed in."""
        settings = self.settings
        hour = self.cache.is_for_an_hour
        prices = prices_of(settings.given_prices, hour)
        if prices is None:
            prices = listed_prices(self.model.name, settings.on or today(), hour=hour)
        if not settings.prices:
            return prices
        typed: Data = {name: Price(price) for name, price in settings.prices.items()}
        source = f"{prices.source}; {', '.join(sorted(typed))} typed in"
        return replace(prices, source=source, **typed)

    @cached_property
    def options(self) -> Data:
        """The options of :func:`budgetkit.replay`."""
        names = ("counter", "framing", "roles", "by", "cache", "prices")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def policies(self) -> dict[str, Policy]:
        """The policies to compare, with their names as keys."""
        return {name: self.settings.policy(name) for name in self.settings.chosen}

    @cached_property
    def replays(self) -> dict[str, Replayed]:
        """The replay of each policy, computed once."""
        budget = self.settings.planned_budget

        def announce() -> Trace:
            self.library.announce(self.trace, self.counter)
            return self.trace

        def replayed(policy: Policy) -> Replayed:
            pairs = self._once("evidence", (), lambda: evidence(self.trace))
            return Replayed(replay(self.trace, budget, policy, **self.options), pairs)

        self.library.once(("announced", *self._counted), announce)
        return {
            name: self.library.once_large((self.key, policy), partial(replayed, policy))
            for name, policy in self.policies.items()
        }

    @cached_property
    def compared(self) -> Compared:
        """The comparison of the replays."""
        key = self.key, tuple(self.policies.items())
        return self.library.once_large(key, lambda: Compared(self.replays))

    @cached_property
    def key(self) -> Hashable:
        """The key of a replay: all it depends on, except the policy."""
        roles = tuple(self.roles.items())
        budget = to_json(self.settings.planned_budget)
        return (*self._counted, roles, budget, self.by, self.cache, self.prices)

    @cached_property
    def shown(self) -> Replayed:
        """The replay that is shown in detail."""
        return self.replays[self.settings.main]

    @cached_property
    def outcome(self) -> Replay:
        """The replay itself, without its tables and figures."""
        return self.shown.outcome

    @cached_property
    def section(self) -> str:
        """The section that is pruned."""
        return self.outcome.section

    @cached_property
    def request_count(self) -> int:
        """The number of requests in the conversation."""
        return len(self.outcome.placed.requests)

    @cached_property
    def request(self) -> int:
        """The chosen request, counting from 1."""
        return min(self.settings.request or self.request_count, self.request_count)

    @cached_property
    def horizon(self) -> int:
        """The number of turns to forecast.

        By default, it is about twice the number of turns that fill the window.
        """
        sizes = turn_sizes(self.trace, self.counter, self.framing)
        turns = 2 * self.signed_budget.window / max(1.0, float(sizes.mean()))
        return self.settings.horizon or int(min(LONGEST, max(20, -(-turns // 10) * 10)))

    @cached_property
    def sent(self) -> tuple[Sequence[Message], list[str]]:
        """The uncut messages of the shown request; names of other parts.

        Messages that were cut to placeholders are among the other parts.
        """
        retention = self.outcome.kept
        there = self.outcome.present(self.request)
        whole = [slot for slot in there if not NEVER < retention.shrunk[slot] < self.request]
        placeholders = len(there) - len(whole)
        left = [f"{placeholders:,} placeholders"] if placeholders else []
        left += ["summaries"] if any(at < self.request for at, *_ in retention.written) else []
        left += ["the passages"] if self.trace.contexts else []
        return [self.trace.messages[slot] for slot in whole], left

    @cached_property
    def demand(self) -> pd.DataFrame:
        """The demand of each turn and section."""
        return self.trace.demand(self.counter, self.roles, self.framing)

    @cached_property
    def facts(self) -> Data:
        """The pruning policy and the messages it dropped at each request, for the budget checks."""
        lost = self.outcome.kept.dropped_messages
        return {"policy": self.policies[self.settings.main], "lost": lost}

    @cached_property
    def telling_window(self) -> int | None:
        """The largest usual window that forces a loss.

        It is None if the model's own window is full anyway, or if nothing can be counted.
        """
        characters = sum(len(message.text) for message in self.trace.messages)
        if self.trace.is_silent or characters > _MOST_CHARACTERS * self.model.window:
            return None  # the window is full anyway
        whole = int(turn_sizes(self.trace, self.counter, self.framing).sum())
        if whole >= self.model.window:
            return None
        return max((size for size in WINDOWS if size <= _TELLING * whole), default=None)

    def turn_of(self, request: int) -> int:
        """Return the turn of a request."""
        return self.outcome.placed.requests[request - 1].number

    def request_name(self, request: int) -> str:
        """Return a request's name on the page, such as "turn 3"."""
        if self.by == "turn":
            return f"turn {request:,}"
        return f"request {request:,} (turn {self.turn_of(request):,})"

    @cached_property
    def pauses(self) -> Floats:
        """Seconds before each request, or NaN if unknown."""
        return pauses(self.trace.messages, self.outcome.placed.requests)

    @cached_property
    def pace(self) -> Pace | None:
        """The conversation's pace, estimated from other conversations in the file.

        The pace is None if the other conversations are too few or do not resemble this one.
        """
        # The file holds the others, so that no other trace gets their ids.
        others = [other for other in self.traces if other is not self.trace]
        return self._once(
            "pace",
            (*self._counted, tuple(map(id, others))),
            lambda: pace_of(self.trace, self.counter, others, self.framing),
        )

    @cached_property
    def forecast(self) -> Forecast:
        """The continuations of the conversation."""
        options: Data = {"framing": self.framing, "pace": self.pace}
        return self._once(
            "forecast",
            self._ahead,
            lambda: Forecast(self.trace, self.counter, self.horizon, SAMPLES, **options),
        )

    @cached_property
    def continuations(self) -> tuple[Ints, pd.DataFrame]:
        """The sizes of simulated continuations, and a table of their spread."""

        def draw() -> tuple[Ints, pd.DataFrame]:
            sizes = self.forecast.contexts
            return sizes, figures.fan.table(sizes, known=len(self.trace.turns))

        return self._once("continuations", self._ahead, draw)

    @cached_property
    def ahead(self) -> pd.DataFrame:
        """The turns in which simulated continuations pass each limit."""
        budget = self.settings.planned_budget
        money = self.settings.money

        def pass_them() -> pd.DataFrame:
            sizes = self.forecast.contexts
            limits = [
                self.forecast.first_cut(budget, self.roles),
                first_over(sizes, {"window full": budget.window}),
            ]
            dollars = spent(sizes, self.prices) if money else None
            if dollars is not None:
                limits.append(first_over(dollars, {"money spent": money}))
            return pd.concat(limits, ignore_index=True)

        return self._once("ahead", (*self._ahead, self.key, money), pass_them)

    @cached_property
    def session(self) -> Session | None:
        """The session with its provider's bill, or None if none was recorded."""

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
        """Return each rule's cost for each cached-token price and window."""
        systems = {system(name).label: name for name in USUAL}
        source = self.session or self.trace
        counter = None if self.session else self.counter
        return self._once(
            "turning",
            (*self._counted, *windows),
            lambda: by_price_and_window(source, systems, windows=windows, counter=counter),
        )

    @cached_property
    def timed(self) -> bool:
        """True if any pause is known, or no pause affects the cache."""
        return self.cache.lifetime is None or bool((self.pauses == self.pauses).any())

    @cached_property
    def _counted(self) -> tuple[Hashable, ...]:
        """The key of the counts: trace, counter and framing."""
        return id(self.trace), self.counter.name, self.framing

    @cached_property
    def _ahead(self) -> tuple[Hashable, ...]:
        """The key of the forecast."""
        return (*self._counted, self.horizon, self.pace)

    def _once(self, what: str, key: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        """Return a value of the conversation, computed once.

        The entry in the library holds the trace, so that no other trace gets the same id.
        """
        once = self.library.once_large
        return once((what, id(self.trace), *key), lambda: (self.trace, make()))[1]
