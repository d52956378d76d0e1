"""Settings of the conversation explorer, and the results of these settings.

The results are the replays of the chosen policies, and the forecast. The library counts and replays once; stepping
through requests uses the cache of the library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import pandas as pd

from budgetkit.budget import Budget, Share
from budgetkit.budget.errors import unknown_name
from budgetkit.files import Table, read_rows
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.explorers.budget.results import results as results_of_budget
from budgetkit.lab.explorers.budget.settings import WINDOWS, BudgetSettings
from budgetkit.lab.explorers.conversation.replay_run import (
    Compared,
    Replayed,
    ReplayRun,
    listed_prices,
)
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.stage import Stage
from budgetkit.lab.replay.cost import Price, Prices
from budgetkit.lab.replay.forecast import Pace
from budgetkit.lab.replay.outlook import turn_sizes
from budgetkit.lab.replay.prefix import By, pauses
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache, provider_rules
from budgetkit.message import Data
from budgetkit.models import Model, resolve
from budgetkit.plan import Floats, Ints
from budgetkit.pruning.policies import NAMED, SYSTEMS, Floor, Policy
from budgetkit.requests import framing_for
from budgetkit.trace import DEFAULT_ROLES, Trace

#: Lifetime of a prompt cache after its last use, in seconds; None if longer than any pause.
LIFETIMES: Mapping[str, float | None] = MappingProxyType(
    {
        "5 minutes": 300.0,
        "10 minutes": 600.0,
        "1 hour": 3_600.0,
        "24 hours": 86_400.0,
        "for ever": None,
    }
)
LONGEST = 1_000  # turns that a forecast looks ahead by default
AT_FIRST = ("oldest first", "down to a mark", "tool results first")


@dataclass(frozen=True)
class Parameter:
    """A policy's parameter that has a slider."""

    label: str
    default: int
    low: int
    high: int
    step: int
    unit: str


@dataclass(frozen=True)
class Choice:
    """A selectable policy: its name, description and parameters."""

    label: str
    says: str
    parameters: Mapping[str, Parameter]


def _choices() -> dict[str, Choice]:
    choices = {}
    for name, row in read_rows("policies.toml", "policy").items():
        numbers = row.get("numbers", {}).items()
        parameters = {number: Parameter(**fields) for number, fields in numbers}
        choices[name] = Choice(name, row["says"], parameters)
    systems = {name: Choice(row["label"], row["says"], {}) for name, row in SYSTEMS.items()}
    return choices | systems


#: Selectable policies by name: those of this package, then those of other systems.
CHOICES: Mapping[str, Choice] = Table(_choices)


def label_of(name: str) -> str:
    """Return the display name of a policy."""
    return CHOICES[name].label if name in CHOICES else name


@dataclass(frozen=True)
class ConversationSettings:
    """Settings of the conversation explorer."""

    budget_settings: BudgetSettings
    #: The window that the explorer chose so that the policies differ.
    chosen_window: int | None = None
    chosen: tuple[str, ...] = AT_FIRST
    main: str = AT_FIRST[0]
    parameters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    given: Mapping[str, Policy] = field(default_factory=dict)
    floor: Floor = field(default_factory=Floor)
    by: By | None = None
    within: bool = True
    rules: str | PromptCache | None = None
    #: The prompt cache passed in code, which can be chosen again.
    own_cache: PromptCache | None = None
    lifetime: str | None = None
    on: date | None = None
    given_prices: Prices | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    request: int | None = None
    horizon: int | None = None
    money: float = 1.0

    #: The shelf of the library with the shown contents.
    shelf: ClassVar[str] = "conversations"

    def policy(self, name: str) -> Policy:
        """Return a policy with its sliders' parameters, or the caller's own policy.

        Examples
        --------
        >>> ConversationSettings(BudgetSettings(), parameters={"last turns": {"turns": 3}}).policy("last turns")
        SlidingWindow(3)
        """
        if name in self.given:
            return self.given[name]
        if name not in CHOICES:
            raise LookupError(unknown_name("policy", name, [*CHOICES, *self.given]))
        policy = NAMED[name]()
        if name in SYSTEMS:
            return policy
        values = self.parameters.get(name, {})
        numbers: Data = {}
        for number, parameter in CHOICES[name].parameters.items():
            numbers[number] = value = values.get(number, parameter.default)
            if parameter.unit == "percent":
                numbers[number] = Share(Decimal(value) / 100)
        return replace(policy, floor=self.floor, **numbers)

    def with_budget(self, budget_settings: BudgetSettings) -> ConversationSettings:
        """Return the settings with another budget.

        Another model resets the entered prices.
        """
        if budget_settings.model == self.budget_settings.model:
            return replace(self, budget_settings=budget_settings)
        return replace(self, budget_settings=budget_settings, given_prices=None, prices={})

    def showing(self, name: str | None, path: str = "") -> ConversationSettings:
        """Return the settings for another file, showing its first conversation."""
        return replace(
            self, budget_settings=self._without_chosen_window.showing(name, path), request=None
        )

    def showing_conversation(self, number: int) -> ConversationSettings:
        """Return the settings for another conversation in the file.

        `number` is the index of the conversation, counting from 0.
        """
        return replace(
            self,
            budget_settings=self._without_chosen_window.showing_conversation(number),
            request=None,
        )

    @property
    def _without_chosen_window(self) -> BudgetSettings:
        """The budget's settings, without the window that the explorer chose."""
        if self.budget_settings.window == self.chosen_window:
            return replace(self.budget_settings, window=None)
        return self.budget_settings

    def as_at(self, start: ConversationSettings) -> ConversationSettings:
        """Return the initial settings with the current conversation."""
        present = self.budget_settings
        shown = replace(
            start.budget_settings, trace=present.trace, conversation=present.conversation
        )
        return replace(start, budget_settings=shown, request=self.request)


OWN = "given in code"


def prompt_cache(settings: ConversationSettings, model: Model) -> tuple[str, PromptCache, str]:
    """Return the name of the prompt cache, the cache, and a note.

    The note is empty unless no cache is known for the model.
    """
    rules = provider_rules(model) if settings.rules is None else settings.rules
    note = ""
    if settings.rules is None and rules == IDEAL:
        whose = model.provider or model.name
        note = f"No prompt cache is known for {whose}, so an ideal cache that finds any prefix is assumed."
    if isinstance(rules, str) and rules not in CACHES:
        raise LookupError(unknown_name("prompt cache", rules, CACHES))
    cache = CACHES[rules] if isinstance(rules, str) else rules
    if settings.lifetime is not None:
        if settings.lifetime not in LIFETIMES:
            raise LookupError(unknown_name("lifetime", settings.lifetime, LIFETIMES))
        cache = replace(cache, lifetime=LIFETIMES[settings.lifetime])
    return rules if isinstance(rules, str) else OWN, cache, note


_TELLING = 0.6  # share of a conversation that fits the chosen window
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
        """Return a request's name on the page, such as "turn 3"."""
        if self.run.by == "turn":
            return f"turn {request:,}"
        return f"request {request:,} (turn {self.turn_of(request):,})"

    @cached_property
    def pauses(self) -> Floats:
        """Seconds before each request, or NaN if unknown."""
        return pauses(self.trace.messages, self.shown.outcome.placed.requests)

    @cached_property
    def pace(self) -> Pace | None:
        """The conversation's pace, estimated from other conversations in the file.

        The pace is None if the other conversations are too few or do not resemble this one.
        """
        return self.run.pace([other for other in self.conversations if other is not self.trace])

    @cached_property
    def drawn(self) -> tuple[Ints, pd.DataFrame]:
        """The sizes of simulated continuations, and a table of their spread."""
        return self.run.drawn(self.horizon, self.pace)

    @cached_property
    def ahead(self) -> pd.DataFrame:
        """The turns in which simulated continuations pass each limit."""
        return self.run.ahead(self.horizon, self.money, self.pace)

    @property
    def timed(self) -> bool:
        """True if any pause is known, or no pause affects the cache."""
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
    hour = rules == "anthropic-1h"
    prices = settings.given_prices or listed_prices(bare.model.name, settings.on, hour)
    if settings.prices:
        typed: Data = {name: Price(price) for name, price in settings.prices.items()}
        source = f"{prices.source}; {', '.join(sorted(typed))} typed in"
        prices = replace(prices, source=source, **typed)
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
    policies = {name: settings.policy(name) for name in settings.chosen}
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
    """Return the largest usual window that is too small for a conversation.

    The window has at most 60 % of the conversation's tokens. If the model's own window is full anyway, if no usual
    window is so small, or if nothing can be counted, return None.
    """
    trace = library.conversations(str(base.trace))[0]
    model = resolve(base.model)
    characters = sum(len(message.text) for message in trace.messages)
    if trace.is_silent or characters > _MOST_CHARACTERS * model.window:
        return None  # the window is full anyway
    count = library.counter(base.counter or model)
    whole = int(turn_sizes(trace, count, framing_for(model)).sum())
    sizes = [size for size in WINDOWS if size <= _TELLING * whole and whole < model.window]
    return max(sizes, default=None)
