"""Settings: all that a hand can change in the conversation explorer, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import Final

from budgetkit.explorer.budget.settings import Settings as BudgetSettings
from budgetkit.pruning.policies import Floor, Policy
from budgetkit.replay.cost import Prices
from budgetkit.replay.prompt_cache import PromptCache
from budgetkit.replay.requests import By

#: How long a prompt cache is kept after its last use, in seconds; None for longer than any pause.
LIFETIMES: Final[Mapping[str, float | None]] = MappingProxyType(
    {"5 minutes": 300.0, "10 minutes": 600.0, "1 hour": 3_600.0, "24 hours": 86_400.0, "for ever": None}
)
LONGEST: Final = 1_000  # turns that a forecast looks ahead by itself
AT_FIRST: Final = ("oldest first", "down to a mark", "tool results first")


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set in the explorer.

    Parameters
    ----------
    base : budget settings
        Model, window, budget, counter and which conversation; as in the budget explorer.
    chosen : tuple of str
        Policies side by side, by name.
    main : str
        The one that is shown in detail.
    parameters : mapping of str to mapping
        Numbers of policies that differ from the defaults.
    given : mapping of str to Policy
        Policies that were given in code.
    floor : Floor
        What stays of the history whatever happens.
    by : {"turn", "request"}, optional
        One request a turn, or one an answer; without it, the latter for a conversation that calls tools.
    within : bool
        Whether the running turn's own calls and results can be pruned.
    rules : str or PromptCache, optional
        The prompt cache; without it that of the model's provider.
    lifetime : str, optional
        One of `LIFETIMES`; without it what the rules say.
    on : date, optional
        The day whose prices hold; without it today.
    given_prices : Prices, optional
        Prices that were given in code.
    prices : mapping of str to float
        Prices that were typed in, in dollars for a million tokens.
    request : int, optional
        Which request is read, from 1; without it the last.
    horizon : int, optional
        How many turns the forecast draws; without it so many that the window is full.
    money : float
        What may be spent, in US dollars; 0 for no limit.
    """

    base: BudgetSettings
    chosen: tuple[str, ...] = AT_FIRST
    main: str = AT_FIRST[0]
    parameters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    given: Mapping[str, Policy] = field(default_factory=dict)
    floor: Floor = field(default_factory=Floor)
    by: By | None = None
    within: bool = True
    rules: str | PromptCache | None = None
    lifetime: str | None = None
    on: date | None = None
    given_prices: Prices | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    request: int | None = None
    horizon: int | None = None
    money: float = 1.0

    def choose(self, name: str, on: bool) -> Settings:
        """Return the settings with one policy more, or less.

        Parameters
        ----------
        name : str
            The policy.
        on : bool
            Whether it is among those side by side.

        Returns
        -------
        Settings
            Where the one shown in detail goes, the first of the others takes its place.

        Raises
        ------
        ValueError
            If none would be left.
        """
        kept = tuple(each for each in self.chosen if each != name) + ((name,) if on else ())
        if not kept:
            raise ValueError(f"{name} was to go, the last policy that is chosen; choose another one first")
        return replace(self, chosen=kept, main=self.main if self.main in kept else kept[0])

    def with_number(self, policy: str, name: str, value: int) -> Settings:
        """Return the settings with another number of a policy.

        Parameters
        ----------
        policy : str
            The policy.
        name : str
            Which of its numbers.
        value : int
            In the number's unit.

        Returns
        -------
        Settings
            The next value.
        """
        numbers = {**self.parameters.get(policy, {}), name: value}
        return replace(self, parameters={**self.parameters, policy: numbers})

    def as_at(self, start: Settings) -> Settings:
        """Return how it all began, of the conversation that is shown now.

        Parameters
        ----------
        start : Settings
            What was set at first.

        Returns
        -------
        Settings
            With the conversation and the request of now.
        """
        shown = replace(start.base, trace=self.base.trace, conversation=self.base.conversation)
        return replace(start, base=shown, request=self.request)
