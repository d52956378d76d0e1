"""Settings: all that a hand can change in the conversation explorer, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import ClassVar, Final

from budgetkit.budget.quoting import one_line
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.replay.cost import Prices
from budgetkit.lab.replay.prompt_cache import PromptCache
from budgetkit.lab.replay.requests import By
from budgetkit.pruning.policies import Floor, Policy

#: How long a prompt cache is kept after its last use, in seconds; None for longer than any pause.
LIFETIMES: Final[Mapping[str, float | None]] = MappingProxyType(
    {
        "5 minutes": 300.0,
        "10 minutes": 600.0,
        "1 hour": 3_600.0,
        "24 hours": 86_400.0,
        "for ever": None,
    }
)
LONGEST: Final = 1_000  # turns that a forecast looks ahead by itself
AT_FIRST: Final = ("oldest first", "down to a mark", "tool results first")


@dataclass(frozen=True, slots=True)
class ConversationSettings:
    """What is set in the explorer."""

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

    #: The shelf of the library on which stands what is shown.
    shelf: ClassVar[str] = "conversations"

    def with_budget(self, budget_settings: BudgetSettings) -> ConversationSettings:
        """Return the settings with another part about the budget; prices typed in for another model go."""
        if budget_settings.model == self.budget_settings.model:
            return replace(self, budget_settings=budget_settings)
        return replace(self, budget_settings=budget_settings, given_prices=None, prices={})

    def showing(self, name: str | None, path: str = "") -> ConversationSettings:
        """Return the settings that show another file, from its first conversation, at its last request."""
        return replace(
            self, budget_settings=self._without_chosen_window.showing(name, path), request=None
        )

    def showing_conversation(self, number: int) -> ConversationSettings:
        """Return the settings that show another conversation of the file, from 0, at its last request."""
        return replace(
            self,
            budget_settings=self._without_chosen_window.showing_conversation(number),
            request=None,
        )

    @property
    def _without_chosen_window(self) -> BudgetSettings:
        """The budget's settings, with the model's window where the present one was chosen for this conversation."""
        if self.budget_settings.window == self.chosen_window:
            return replace(self.budget_settings, window=None)
        return self.budget_settings

    def choose(self, name: str, on: bool) -> ConversationSettings:
        """Return the settings with one policy more, or less."""
        chosen_names = tuple(other for other in self.chosen if other != name) + (
            (name,) if on else ()
        )
        if not chosen_names:
            raise ValueError(
                f"{one_line(name)} was to go, the last policy that is chosen; choose another one first"
            )
        return replace(
            self,
            chosen=chosen_names,
            main=self.main if self.main in chosen_names else chosen_names[0],
        )

    def with_number(self, policy: str, name: str, value: int) -> ConversationSettings:
        """Return the settings with another number of a policy."""
        numbers = {**self.parameters.get(policy, {}), name: value}
        return replace(self, parameters={**self.parameters, policy: numbers})

    def as_at(self, start: ConversationSettings) -> ConversationSettings:
        """Return how it all began, of the conversation that is shown now."""
        present = self.budget_settings
        shown = replace(
            start.budget_settings, trace=present.trace, conversation=present.conversation
        )
        return replace(start, budget_settings=shown, request=self.request)
