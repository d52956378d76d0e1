"""Configuration files: a whole budget, loaded, checked and used without code.

    model: gpt-4o-mini                 whose window, counter and framing hold; may be left out
    window: 16384                      in tokens, where it is not the model's
    counter: o200k_base                where it is not the model's
    policy: oldest first               or {class: SlidingWindow, turns: 6}
    budget: chat                       a preset's name, or a budget as `to_yaml` writes it under "budget"

In place of ``budget`` there may be ``context_budget``, as Plan #195 writes it (document 003). It stands alone: sections
that it does not name are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final, NamedTuple

from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.quoting import brief, nearest_name, quoted
from budgetkit.pruning import policies
from budgetkit.pruning.policies import Policy, System
from budgetkit.pruning.policies.systems import policy_of
from budgetkit.state.saved import check_version

SETTINGS: Final = ("model", "window", "counter", "policy")
_BUDGETS: Final = ("budget", "context_budget")
_KNOWN: Final = (*SETTINGS, *_BUDGETS, "budgetkit")
#: What a file has that holds a saved budget or plan and nothing else.
_SAVED: Final = {"budgetkit", "budget", "plan"}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The fields of a configuration file, as they were read.

    They are not combined yet, since the model may be chosen elsewhere.

    Parameters
    ----------
    budget : str or Mapping
        A preset's name, or the fields of a budget or of a ``context_budget``.
    is_plan_195 : bool
        Whether it is a ``context_budget``.
    model, counter : str, optional
        Their names.
    policy : Policy, optional
        What prunes the history.
    window : int, optional
        In tokens.
    """

    budget: str | Mapping[str, Any]
    is_plan_195: bool = False
    model: str | None = None
    counter: str | None = None
    policy: Policy | None = None
    window: int | None = None


class Named(NamedTuple):
    """The model, counter and policy of a call, completed from a configuration."""

    model: Any
    counter: Any
    policy: Any


def filled_in(budget: Any, model: Any = None, counter: Any = None, policy: Any = None) -> Named:
    """Return model, counter and policy, completed from a configuration.

    Examples
    --------
    >>> settings = Configuration("chat", model="gpt-4o", counter="chars/4")
    >>> filled_in(settings, model="gpt-5")
    Named(model='gpt-5', counter='chars/4', policy=None)
    """
    if not isinstance(budget, Configuration):
        return Named(model, counter, policy)
    return Named(
        model=budget.model if model is None else model,
        counter=budget.counter if counter is None else counter,
        policy=budget.policy if policy is None else policy,
    )


def is_configuration(data: object) -> bool:
    """Tell a configuration from a saved state.

    Examples
    --------
    >>> is_configuration({"budget": "chat"}), is_configuration({"budgetkit": 1, "budget": {"window": 8_192}})
    (True, False)
    """
    if not isinstance(data, Mapping):
        return False
    has_more = bool(data.keys() & {*_KNOWN, "agent"} - _SAVED)
    return has_more or isinstance(data.get("budget"), str)


def configuration_of(data: Mapping[str, Any]) -> Configuration:
    """Read a configuration.

    Raises
    ------
    ValueError
        If a key is unknown, a value is none of its kind, or there is not one budget.

    Examples
    --------
    >>> sliding = {"class": "SlidingWindow", "turns": 6}
    >>> settings = configuration_of({"model": "gpt-4o", "policy": sliding, "budget": "rag"})
    >>> settings.budget, settings.model, settings.policy
    ('rag', 'gpt-4o', SlidingWindow(6))
    """
    fields = dict(data)
    agent = fields.get("agent")
    if isinstance(agent, Mapping) and "context_budget" in agent and "context_budget" not in fields:
        del fields["agent"]
        fields["context_budget"] = agent["context_budget"]
    unknown = [name for name in fields if name not in _KNOWN]
    if unknown:
        raise ValueError(
            f"a configuration has {quoted(unknown)}; known are {', '.join(_KNOWN)}; remove or rename it"
        )
    if "budgetkit" in fields:
        check_version(fields["budgetkit"], "a configuration")
    named = [name for name in _BUDGETS if fields.get(name) is not None]
    if len(named) != 1:
        raise ValueError(
            f"a configuration has {quoted(named) or 'no budget'}; one of {' and '.join(_BUDGETS)} is known; write one"
        )
    budget = fields[named[0]]
    if not isinstance(budget, str | Mapping) or (
        named[0] == "context_budget" and isinstance(budget, str)
    ):
        raise ValueError(
            f"{named[0]} of a configuration is {brief(budget)}; write its lines, or a preset's name"
        )
    return Configuration(
        budget=budget,
        is_plan_195=named[0] == "context_budget",
        model=_name("model", fields.get("model")),
        counter=_name("counter", fields.get("counter")),
        policy=_policy(fields.get("policy")),
        window=None if fields.get("window") is None else check_tokens("window", fields["window"]),
    )


def _name(what: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(
            f"{what} of a configuration is {brief(value)}; known is a name; write one, or leave it out"
        )
    return value or None


def _policy(value: object) -> Policy | None:
    """Return a policy by its name, or by its class and numbers."""
    if value is None:
        return None
    if isinstance(value, str):
        return policy_of(value)
    settings = dict(value) if isinstance(value, Mapping) else {}
    name = settings.pop("class", None)
    is_plain = all(
        isinstance(entry, int | float | str | bool | None) for entry in settings.values()
    )
    if not isinstance(name, str) or not is_plain:
        raise ValueError(
            f"policy of a configuration is {brief(value)}; known are a name, such as 'oldest first', and a class with "
            "plain values, such as {class: SlidingWindow, turns: 6}; write one of these"
        )
    classes = _classes()
    if name not in classes:
        raise ValueError(
            f"policy of a configuration has the class {brief(name)}{_meant(name, classes)}; known are "
            f"{quoted(classes)}; name one of them"
        )
    kind = classes[name]
    known = list(signature(kind).parameters)
    unknown = [field for field in settings if field not in known]
    if unknown:
        raise ValueError(
            f"policy of a configuration has {quoted(unknown)}{_meant(str(unknown[0]), known)}; {name} has "
            f"{quoted(known) or 'no fields'}; write these"
        )
    try:
        return kind(**settings)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"policy of a configuration, {name}: {problem}") from None


def _classes() -> dict[str, type[Policy]]:
    """List the policies that a class and its fields write: neither the base class, nor a system without its rules."""
    kinds = ((name, getattr(policies, name)) for name in policies.__all__)
    return {
        name: kind
        for name, kind in kinds
        if isinstance(kind, type) and issubclass(kind, Policy) and kind not in (Policy, System)
    }


def _meant(name: str, names: Iterable[str]) -> str:
    """Ask whether the nearest name is meant; nothing where none is near."""
    near = nearest_name(name, names)
    return f", which is nearly {near!r}" if near else ""
