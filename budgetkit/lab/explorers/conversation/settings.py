"""Settings of the conversation explorer, and the policies to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import ClassVar, Self

from budgetkit.budget import Share
from budgetkit.budget.errors import unknown_name
from budgetkit.files import Table, read_rows
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.replay.cost import Prices
from budgetkit.lab.replay.prefix import By
from budgetkit.lab.replay.prompt_cache import PromptCache
from budgetkit.message import Data, Raw
from budgetkit.models import Model
from budgetkit.pruning.policies import NAMED, SYSTEMS, Floor, Policy

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
OWN = "given in code"
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
class ConversationSettings(BudgetSettings):
    """Settings of the conversation explorer."""

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
    given_prices: Prices | str | Model | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    request: int | None = None
    horizon: int | None = None
    money: float = 1.0

    kept: ClassVar[Sequence[str]] = (*BudgetSettings.kept, "request")
    afresh: ClassVar[Raw] = {"given_prices": None, "prices": {}}

    def policy(self, name: str) -> Policy:
        """Return a policy with its sliders' parameters, or the caller's own policy.

        Examples
        --------
        >>> ConversationSettings(parameters={"last turns": {"turns": 3}}).policy("last turns")
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

    def showing(self, name: str | None, path: str = "", number: int = 0) -> Self:
        """Return the settings for a conversation in a file.

        A window that the explorer itself chose is dropped.

        `number` is the index of the conversation, counting from 0.
        """
        window = None if self.window == self.chosen_window else self.window
        return replace(super().showing(name, path, number), window=window, request=None)
