"""A pruning policy as somebody passes it: itself, or its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from budgetkit.budget.quoting import brief
from budgetkit.pruning.policies import Policy
from budgetkit.pruning.policies.systems import NAMED, known_name, policy_of

AnyPolicies = Policy | str | Iterable[Policy | str] | Mapping[str, Policy | str]

__all__ = ["policies_of", "policy_of"]


def policies_of(
    policies: AnyPolicies | None = None,
) -> dict[str, Policy]:
    """Return policies by their names: those that are named or given, all that go by a name where none is.

    Examples
    --------
    >>> policies_of("octopus")
    {'octopus': System('octopus', 'document 000')}
    >>> list(policies_of(["last-turns", "oldest first"]))
    ['last turns', 'oldest first']
    """
    if policies is None:
        policies = list(NAMED)
    if isinstance(policies, Mapping):
        return {name: policy_of(policy) for name, policy in policies.items()}
    if isinstance(policies, Policy | str):
        entries = [policies]
    elif not isinstance(policies, Iterable):
        raise TypeError(
            f"policies {brief(policies)}; known are policies and their names; give one, or a list of them"
        )
    else:
        entries = list(policies)
    return {name_of(policy): policy_of(policy) for policy in entries}


def name_of(policy: Policy | str) -> str:
    """Return what a policy is called: its name as it is listed, or how it is written."""
    if isinstance(policy, str):
        return known_name(policy)
    return repr(policy)
