"""Results: the replays of the chosen policies, and the forecast.

The library counts and replays once; stepping through requests uses its cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from budgetkit.budget import Budget
from budgetkit.counters import estimated_by
from budgetkit.lab.explorers import reading
from budgetkit.lab.explorers.budget.results import BudgetResults, known_model
from budgetkit.lab.explorers.budget.results import results as results_of_budget
from budgetkit.lab.explorers.budget.settings import WINDOWS, BudgetSettings
from budgetkit.lab.explorers.conversation.replay_run import (
    Compared,
    Replayed,
    ReplayRun,
    listed_prices,
)
from budgetkit.lab.explorers.conversation.settings import (
    LONGEST,
    ConversationSettings,
    chosen_policy,
    prompt_cache,
)
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.stage import Stage
from budgetkit.lab.replay.cost import Price, Prices
from budgetkit.lab.replay.forecast import Pace
from budgetkit.lab.replay.outlook import turn_sizes
from budgetkit.lab.replay.prefix import By, pauses
from budgetkit.message import Data, Message
from budgetkit.plan import Floats, Ints
from budgetkit.pruning import NEVER, Policy
from budgetkit.requests import framing_for
from budgetkit.trace import DEFAULT_ROLES, Trace

_TELLING = 0.6  # of a conversation
_MOST_CHARACTERS = 6  # of a token


@dataclass(frozen=True)
class ConversationResults:
    """Results of the conversation settings."""

    budget_results: BudgetResults
    run: ReplayRun
    rules: str
    policies: Mapping[str, Policy]
    replays: Mapping[str, Replayed]
    compared: Compared
    main: str
    request: int
    horizon: int
    money: float
    conversations: Sequence[Trace]
    notes: tuple[str, ...]

    @property
    def budget(self) -> Budget:
        """The budget to copy or save."""
        return self.budget_results.budget

    @property
    def trace(self) -> Trace:
        """The conversation."""
        return self.run.trace

    @property
    def shown(self) -> Replayed:
        """The replay that is shown in detail."""
        return self.replays[self.main]

    @property
    def section(self) -> str:
        """The section that is pruned."""
        return self.shown.outcome.section

    @property
    def requests(self) -> int:
        """Number of requests in the conversation."""
        return len(self.shown.outcome.placed.requests)

    def turn_of(self, request: int) -> int:
        """Return the turn of a request."""
        return self.shown.outcome.placed.requests[request - 1].number

    def named(self, request: int) -> str:
        """Return a request's name on the page, such as its turn."""
        if self.run.by == "turn":
            return f"turn {request:,}"
        return f"request {request:,} (turn {self.turn_of(request):,})"

    @cached_property
    def pauses(self) -> Floats:
        """Seconds before each request; NaN if unknown."""
        return pauses(self.trace.messages, self.shown.outcome.placed.requests)

    @cached_property
    def pace(self) -> Pace | None:
        """Growth of the file's other conversations, counted only for the forecast."""
        return self.run.pace([other for other in self.conversations if other is not self.trace])

    @cached_property
    def drawn(self) -> tuple[Ints, pd.DataFrame]:
        """The conversation with drawn continuations, and their spread."""
        return self.run.drawn(self.horizon, self.pace)

    @cached_property
    def ahead(self) -> pd.DataFrame:
        """Turns at which the simulated continuations pass each limit."""
        return self.run.ahead(self.drawn[0], self.money, self.pace)

    @property
    def timed(self) -> bool:
        """True if cache expiry can be computed: pauses are known, or have no effect."""
        return self.run.cache.lifetime is None or bool((self.pauses == self.pauses).any())


ConversationStage = Stage[ConversationSettings, ConversationResults]


def results(settings: ConversationSettings, library: Library) -> ConversationResults:
    """Compute the results of the settings."""
    bare = results_of_budget(replace(settings.budget_settings, trace=None), library)
    name = str(settings.budget_settings.trace)
    trace = library.conversations.one(name, settings.budget_settings.conversation)
    rules, cache, note = prompt_cache(settings, bare.model)
    if bare.plan.budget.roles:
        budget = bare.plan.budget
    else:
        budget = replace(bare.plan.budget, undeclared="pool")
    prices = _prices(settings, bare.model.name, rules)
    by: By = "request" if any(message.tool_calls for message in trace.messages) else "turn"
    # Where pruning works within a turn, there is no "step", so running calls are history.
    roles = dict(budget.roles or DEFAULT_ROLES)
    if settings.within:
        roles.pop("step", None)
    run = ReplayRun(
        library=library,
        trace=trace,
        counter=bare.counter,
        framing=framing_for(bare.model),
        budget=budget,
        roles=roles,
        by=settings.by or by,
        cache=cache,
        prices=prices,
    )
    policies = {
        name: chosen_policy(name, settings.given, settings.parameters, settings.floor)
        for name in settings.chosen
    }
    replays = run.replayed(policies)
    requests = len(replays[settings.main].outcome.over)
    # The forecast looks about twice as many turns ahead as fill the window.
    sizes = turn_sizes(trace, run.counter, run.framing)
    turns = 2 * budget.window / max(1.0, float(sizes.mean()))
    return ConversationResults(
        budget_results=bare,
        run=run,
        rules=rules,
        policies=policies,
        replays=replays,
        compared=run.compared(policies, replays),
        main=settings.main,
        request=min(settings.request or requests, requests),
        horizon=settings.horizon or int(min(LONGEST, max(20, -(-turns // 10) * 10))),
        money=settings.money,
        conversations=library.conversations(name),
        notes=tuple(filter(None, (bare.note, note))),
    )


def telling_window(base: BudgetSettings, library: Library) -> int | None:
    """Return the largest usual window that forces a loss.

    None if the model's own window is full anyway, or if nothing can be counted.
    """
    trace = library.conversations(str(base.trace))[0]
    model = known_model(base.model)[0]
    if (
        trace.is_silent
        or sum(len(message.text) for message in trace.messages) > _MOST_CHARACTERS * model.window
    ):
        return None  # the window is full anyway
    count = library.counter(base.counter or model)
    whole = int(turn_sizes(trace, count, framing_for(model)).sum())
    return max(
        (size for size in WINDOWS if size <= _TELLING * whole < _TELLING * model.window),
        default=None,
    )


def _prices(settings: ConversationSettings, model: str, rules: str) -> Prices:
    prices = settings.given_prices or listed_prices(model, settings.on, rules == "anthropic-1h")
    if not settings.prices:
        return prices
    typed: Data = {name: Price(price) for name, price in settings.prices.items()}
    return replace(prices, source=f"{prices.source}; {', '.join(sorted(typed))} typed in", **typed)


class BilledFold(reading.BilledFold):
    """Panel with the ledger of the chosen request, after pruning."""

    stage = "what the policy has kept"

    def sent(self, stage: ConversationStage) -> tuple[str, Sequence[Message], list[str]]:
        """Return the model, the whole messages, and the request's other parts.

        A message that was cut is not among the whole ones.
        """
        results = stage.results
        retention = results.shown.outcome.kept
        request = results.request
        there = results.shown.outcome.present(request)
        whole = [slot for slot in there if not NEVER < retention.shrunk[slot] < request]
        placeholders = len(there) - len(whole)
        left = [f"{placeholders:,} placeholders"] if placeholders else []
        left += ["summaries"] if any(at < request for at, *_ in retention.written) else []
        left += ["the passages"] if results.trace.contexts else []
        return (
            results.budget_results.model.name,
            [results.trace.messages[slot] for slot in whole],
            left,
        )


class CheckFold(reading.CheckFold):
    """Panel of findings on the budget and policy, for the shown conversation."""

    def case(self, stage: ConversationStage) -> Data:
        """Return the inputs of the checks other than the budget."""
        results = stage.results
        run = results.run
        return {
            "model": results.budget_results.model,
            "policy": results.policies[results.main],
            "demand": run.trace.demand(run.counter, run.roles, run.framing),
            "lost": results.shown.outcome.kept.dropped_messages,
            "tools": reading.schemas(run.trace, run.counter, results.budget_results.model),
            "estimated_by": estimated_by(run.counter, results.budget_results.model),
        }
