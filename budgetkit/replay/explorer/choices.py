"""Choices: the policies that can be ticked, and the numbers of each that have a slider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from budgetkit.budget.amounts import Share
from budgetkit.budget.quoting import brief, quoted
from budgetkit.pruning.policies import (
    POLICIES,
    BringBack,
    DropToolResults,
    Floor,
    OldestFirst,
    Policy,
    SlidingWindow,
    Step,
    Summarise,
    TriggerTarget,
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """Describe a number of a policy that has a slider."""

    label: str
    default: int
    low: int
    high: int
    step: int
    unit: str

    def amount(self, value: int) -> Any:
        """Return the number as the policy takes it."""
        return Share(Decimal(value) / 100) if self.unit == "percent" else value


@dataclass(frozen=True, slots=True)
class Choice:
    """Describe a policy that can be ticked."""

    make: Callable[..., Policy]
    parameters: Mapping[str, Parameter]
    own_floor: bool = False

    def policy(self, values: Mapping[str, int], floor: Floor) -> Policy:
        """Return the policy at its numbers."""
        numbers = {name: known.amount(values.get(name, known.default)) for name, known in self.parameters.items()}
        made = self.make(**numbers)
        return made if self.own_floor else replace(made, floor=floor)


def _percent(label: str, default: int, high: int = 100) -> Parameter:
    return Parameter(label, default, 5, high, 5, "percent")


_OWN = {
    "oldest first": Choice(OldestFirst, {}),
    "last turns": Choice(SlidingWindow, {"turns": Parameter("turns", 10, 1, 200, 1, "turns")}),
    "in blocks": Choice(Step, {"step": Parameter("block", 2_000, 100, 50_000, 100, "tokens")}),
    "down to a mark": Choice(TriggerTarget, {"trigger": _percent("above", 100), "target": _percent("down to", 50)}),
    "summarise": Choice(Summarise, {"share": _percent("oldest", 30), "size": _percent("length", 20, 95)}),
    "tool results first": Choice(DropToolResults, {"intact": Parameter("intact", 0, 0, 50, 1, "results")}),
    "bring back": Choice(
        BringBack, {"share": _percent("room", 50, 95), "neighbours": Parameter("beside", 1, 0, 10, 1, "messages")}
    ),
}
#: What can be ticked, by name: the policies of this package, then those of four systems.
CHOICES: Final[Mapping[str, Choice]] = MappingProxyType(
    {**_OWN, **{name: Choice(make, {}, own_floor=True) for name, make in POLICIES.items()}}
)
#: What each of them does, in plain words.
SAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "oldest first": "When it is full, the oldest messages go, one by one",
        "last turns": "Only the last turns stay",
        "in blocks": "When it is full, the oldest go in blocks, so that the cached beginning changes seldom",
        "down to a mark": "When it is full, the oldest go until it is filled to the mark again",
        "summarise": "When it is full, the oldest part becomes a short summary",
        "tool results first": "When it is full, old results of tools become placeholders before messages go",
        "bring back": "The oldest go, and for each question the messages that share its words come back",
        "octopus": "As the Octopus system does: whole turns go, the oldest first; 4,000 tokens always stay",
        "agent-framework": "As Microsoft's Agent Framework does: tool results go above 50 %, messages above 80 %",
        "haystack": "As Haystack does: above 70 % of the window the oldest go, down to 40 %",
        "prompt-poet": "As prompt-poet does: the oldest go in blocks of 1,000 tokens",
    }
)


def policy_of(
    name: str, given: Mapping[str, Policy], parameters: Mapping[str, Mapping[str, int]], floor: Floor
) -> Policy:
    """Return a policy by name.

    Examples
    --------
    >>> policy_of("last turns", {}, {"last turns": {"turns": 3}}, Floor())
    SlidingWindow(3)
    """
    if name in given:
        return given[name]
    if name not in CHOICES:
        raise LookupError(f"no policy {brief(name)}; known are {quoted([*CHOICES, *given])}; choose from these")
    return CHOICES[name].policy(parameters.get(name, {}), floor)


def number_of(policy: str, number: str, value: Any) -> int:
    """Return a number of a policy, if it can be.

    Examples
    --------
    >>> number_of("last turns", "turns", 3)
    3
    """
    known = CHOICES[policy].parameters if policy in CHOICES else {}
    if number not in known:
        has = f"its numbers are {quoted(known)}; set one of them" if known else "it has none; choose another policy"
        raise LookupError(f"no number {brief(number)} of {brief(policy)}; {has}")
    bounds = known[number]
    whole = isinstance(value, int | float) and value == value // 1
    if not (whole and bounds.low <= value <= bounds.high):
        raise ValueError(
            f"{bounds.label} {brief(value)} was asked for of {brief(policy)}; it goes from {bounds.low:,} to "
            f"{bounds.high:,} {bounds.unit}; give a whole number between them"
        )
    return int(value)
