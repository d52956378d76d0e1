"""Settings of the conversation explorer, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from budgetkit.budget import Share, brief, quoted
from budgetkit.budget.errors import out_of_range, unknown_name
from budgetkit.files import Table, read_rows
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.replay.cost import Prices
from budgetkit.lab.replay.prefix import By
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache, provider_rules
from budgetkit.models import Model
from budgetkit.pruning.policies import NAMED, SYSTEMS, Floor, Policy

#: How long a prompt cache is kept after its last use, in seconds; None for longer than any pause.
LIFETIMES: Mapping[str, float | None] = MappingProxyType(
    {
        "5 minutes": 300.0,
        "10 minutes": 600.0,
        "1 hour": 3_600.0,
        "24 hours": 86_400.0,
        "for ever": None,
    }
)
LONGEST = 1_000  # turns that a forecast looks ahead by itself
AT_FIRST = ("oldest first", "down to a mark", "tool results first")


@dataclass(frozen=True)
class ConversationSettings:
    """Settings of the conversation explorer."""

    budget_settings: BudgetSettings
    #: The window that the explorer chose for the conversation, so that its policies differ.
    chosen_window: int | None = None
    chosen: tuple[str, ...] = AT_FIRST
    main: str = AT_FIRST[0]
    parameters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    given: Mapping[str, Policy] = field(default_factory=dict)
    floor: Floor = field(default_factory=Floor)
    by: By | None = None
    within: bool = True
    rules: str | PromptCache | None = None
    #: The prompt cache that was given in code, which can be chosen again.
    own_cache: PromptCache | None = None
    lifetime: str | None = None
    on: date | None = None
    given_prices: Prices | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    request: int | None = None
    horizon: int | None = None
    money: float = 1.0

    #: The shelf of the library that holds the contents shown.
    shelf: ClassVar[str] = "conversations"

    def with_budget(self, budget_settings: BudgetSettings) -> ConversationSettings:
        """Return the settings with other budget settings; another model's typed prices are removed."""
        if budget_settings.model == self.budget_settings.model:
            return replace(self, budget_settings=budget_settings)
        return replace(self, budget_settings=budget_settings, given_prices=None, prices={})

    def showing(self, name: str | None, path: str = "") -> ConversationSettings:
        """Return the settings for another file, showing its first conversation."""
        return replace(
            self, budget_settings=self._without_chosen_window.showing(name, path), request=None
        )

    def showing_conversation(self, number: int) -> ConversationSettings:
        """Return the settings for another conversation of the file, by position from 0."""
        return replace(
            self,
            budget_settings=self._without_chosen_window.showing_conversation(number),
            request=None,
        )

    @property
    def _without_chosen_window(self) -> BudgetSettings:
        """The budget's settings, with the model's window instead of a chosen one."""
        if self.budget_settings.window == self.chosen_window:
            return replace(self.budget_settings, window=None)
        return self.budget_settings

    def choose(self, names: Sequence[str]) -> ConversationSettings:
        """Return the settings with these policies to compare."""
        chosen = tuple(dict.fromkeys(names))
        if not chosen:
            raise ValueError("No policy is chosen. Choose at least one.")
        return replace(self, chosen=chosen, main=self.main if self.main in chosen else chosen[0])

    def as_at(self, start: ConversationSettings) -> ConversationSettings:
        """Return the initial settings with the current conversation."""
        present = self.budget_settings
        shown = replace(
            start.budget_settings, trace=present.trace, conversation=present.conversation
        )
        return replace(start, budget_settings=shown, request=self.request)


OWN = "given in code"


def prompt_cache(settings: ConversationSettings, model: Model) -> tuple[str, PromptCache, str]:
    """Return the cache's name, the cache, and a note if it is unknown."""
    rules = provider_rules(model) if settings.rules is None else settings.rules
    note = ""
    if settings.rules is None and rules == IDEAL:
        whose = model.provider or model.name
        note = f"No prompt cache is known for {whose}, so an ideal one that finds any prefix is assumed."
    if isinstance(rules, str) and rules not in CACHES:
        raise LookupError(unknown_name("prompt cache", rules, CACHES))
    cache = CACHES[rules] if isinstance(rules, str) else rules
    if settings.lifetime is not None:
        if settings.lifetime not in LIFETIMES:
            raise LookupError(unknown_name("lifetime", settings.lifetime, LIFETIMES))
        cache = replace(cache, lifetime=LIFETIMES[settings.lifetime])
    return rules if isinstance(rules, str) else OWN, cache, note


@dataclass(frozen=True)
class Parameter:
    """A number of a policy with a slider."""

    label: str
    default: int
    low: int
    high: int
    step: int
    unit: str

    def amount(self, value: int) -> Any:
        """Return a number as the policy's argument: tokens, or a share."""
        if self.unit != "percent":
            return value
        return Share(Decimal(value) / 100)


@dataclass(frozen=True)
class Choice:
    """A selectable policy."""

    make: Callable[..., Policy]
    parameters: Mapping[str, Parameter]
    own_floor: bool = False

    def policy(self, values: Mapping[str, int], floor: Floor) -> Policy:
        """Return the policy at its numbers."""
        numbers = {
            name: parameter.amount(values.get(name, parameter.default))
            for name, parameter in self.parameters.items()
        }
        policy = self.make(**numbers)
        if self.own_floor:
            return policy
        return replace(policy, floor=floor)


def _choice(name: str, numbers: Mapping[str, Mapping[str, Any]]) -> Choice:
    make = NAMED[name]
    parameters = {number: Parameter(**fields) for number, fields in numbers.items()}
    if name in SYSTEMS:
        return Choice(make, parameters, own_floor=True)
    return Choice(make.func if isinstance(make, partial) else make, parameters)


def _rows() -> Mapping[str, dict[str, Any]]:
    systems = {name: {"says": row["says"]} for name, row in SYSTEMS.items()}
    return read_rows("policies.toml", "policy") | systems


#: Choices to tick, by name: the policies of this package, then the policies of systems.
CHOICES: Mapping[str, Choice] = Table(
    lambda: {name: _choice(name, row.get("numbers", {})) for name, row in _rows().items()}
)


def label_of(name: str) -> str:
    """Return the display name of a rule."""
    return str(SYSTEMS[name]["label"]) if name in SYSTEMS else name


#: What each of them does, in plain words.
SAYS: Mapping[str, str] = Table(lambda: {name: row["says"] for name, row in _rows().items()})


def chosen_policy(
    name: str,
    own_policies: Mapping[str, Policy],
    parameters: Mapping[str, Mapping[str, int]],
    floor: Floor,
) -> Policy:
    """Return a chosen policy with the numbers of its sliders, or the caller's own policy.

    Examples
    --------
    >>> chosen_policy("last turns", {}, {"last turns": {"turns": 3}}, Floor())
    SlidingWindow(3)
    """
    if name in own_policies:
        return own_policies[name]
    if name not in CHOICES:
        raise LookupError(unknown_name("policy", name, [*CHOICES, *own_policies]))
    return CHOICES[name].policy(parameters.get(name, {}), floor)


def number_of(policy: str, number: str, value: Any) -> int:
    """Return a number of a policy, if valid.

    Examples
    --------
    >>> number_of("last turns", "turns", 3)
    3
    """
    parameters = CHOICES[policy].parameters if policy in CHOICES else {}
    if number not in parameters:
        fix = f"Choose one of: {quoted(parameters)}." if parameters else "Choose another policy."
        raise LookupError(f"Policy {brief(policy)} has no number {brief(number)}. {fix}")
    bounds = parameters[number]
    whole = isinstance(value, int | float) and value == value // 1
    if not (whole and bounds.low <= value <= bounds.high):
        limits = f"a whole number of {bounds.unit} from {bounds.low:,} to {bounds.high:,}"
        raise ValueError(out_of_range(f"{bounds.label} of {brief(policy)}", value, limits))
    return int(value)
