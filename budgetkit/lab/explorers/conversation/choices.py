"""Choices: the policies that can be ticked, and the numbers of each that have a slider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final

from budgetkit.budget.amounts import Share
from budgetkit.budget.quoting import brief, quoted
from budgetkit.files import Table, read_rows
from budgetkit.pruning.policies import NAMED, SYSTEMS, Floor, Policy


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
        """Return a number as the policy's argument: tokens, or a share."""
        if self.unit != "percent":
            return value
        return Share(Decimal(value) / 100)


@dataclass(frozen=True, slots=True)
class Choice:
    """Describe a policy that can be ticked."""

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


#: What can be ticked, by name: the policies of this package, then those of systems.
CHOICES: Final[Mapping[str, Choice]] = Table(
    lambda: {name: _choice(name, row.get("numbers", {})) for name, row in _rows().items()}
)
#: What each of them does, in plain words.
SAYS: Final[Mapping[str, str]] = Table(lambda: {name: row["says"] for name, row in _rows().items()})


def chosen_policy(
    name: str,
    own_policies: Mapping[str, Policy],
    parameters: Mapping[str, Mapping[str, int]],
    floor: Floor,
) -> Policy:
    """Return a policy that was ticked, at the numbers of its sliders, or one of the caller's own.

    Examples
    --------
    >>> chosen_policy("last turns", {}, {"last turns": {"turns": 3}}, Floor())
    SlidingWindow(3)
    """
    if name in own_policies:
        return own_policies[name]
    if name not in CHOICES:
        raise LookupError(
            f"no policy {brief(name)}; known are {quoted([*CHOICES, *own_policies])}; choose from these"
        )
    return CHOICES[name].policy(parameters.get(name, {}), floor)


def number_of(policy: str, number: str, value: Any) -> int:
    """Return a number of a policy, if it can be.

    Examples
    --------
    >>> number_of("last turns", "turns", 3)
    3
    """
    if policy in CHOICES:
        parameters = CHOICES[policy].parameters
    else:
        parameters = {}
    if number not in parameters:
        if parameters:
            has = f"its numbers are {quoted(parameters)}; set one of them"
        else:
            has = "it has none; choose another policy"
        raise LookupError(f"no number {brief(number)} of {brief(policy)}; {has}")
    bounds = parameters[number]
    whole = isinstance(value, int | float) and value == value // 1
    if not (whole and bounds.low <= value <= bounds.high):
        raise ValueError(
            f"{bounds.label} {brief(value)} was asked for of {brief(policy)}; it goes from {bounds.low:,} to "
            f"{bounds.high:,} {bounds.unit}; give a whole number between them"
        )
    return int(value)
