"""Policies by name, and the rules of known agents.

Each agent is a row of data/systems.toml, *modelled on* the agent's documentation or code at a given date. The agent's
policy is built from the classes of :mod:`budgetkit.pruning.policies.pruners`. Values that are not published are listed
under `assumed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from budgetkit.budget.amounts import Share
from budgetkit.budget.errors import unknown_name, wrong_type
from budgetkit.budget.quoting import brief
from budgetkit.files import Table, read_rows, read_toml
from budgetkit.message import Data, Raw
from budgetkit.pruning.policies.policy import Floor, Policy, SummaryCall
from budgetkit.pruning.policies.pruners import (
    CapResults,
    Chain,
    ClearResults,
    Compact,
    DropToolResults,
    OldestFirst,
    SlidingWindow,
    Step,
    Summarise,
    Trigger,
    TriggerTarget,
)


@dataclass(frozen=True, repr=False)
class System(Chain):
    """The rules of one system, in the order in which they act.

    Parameters
    ----------
    policies : sequence of Policy
        The rules, as policies.
    name, label, version, date : str
        Key and common name of the system, and the modelled version with its date.
    assumed : tuple of str
        Numbers that the system's makers do not publish.
    sources : tuple of str
        Sources of the rules.
    summary_tokens : tuple of int
        Minimum and maximum length of a summary, in tokens.
    stops_after : int
        Number n of compactions in a row after which the system stops, if each of them comes at most n requests after
        the previous compaction. 0 means that the system never stops.

    Examples
    --------
    >>> codex = system("codex")
    >>> codex.label, codex.assumed
    ('Codex', ("the summary's length",))
    """

    name: str = ""
    label: str = ""
    version: str = ""
    date: str = ""
    assumed: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    summary_tokens: tuple[int, int] = (900, 4_400)
    stops_after: int = 0

    @property
    def summarises(self) -> bool:
        """True if one of the rules writes a summary."""
        return any(isinstance(policy, Compact) for policy in self.policies)

    def with_summaries(self, tokens: int) -> System:
        """Return the system with summaries of a given length.

        Parameters
        ----------
        tokens : int
            Length of each summary, in tokens.

        Returns
        -------
        System
            The system, whose summaries all have the given length.
        """
        rules = [
            replace(rule, size=tokens) if isinstance(rule, Compact) else rule
            for rule in self.policies
        ]
        return replace(self, policies=tuple(rules))

    def __repr__(self) -> str:
        return f"System({self.name!r}, {self.version!r})"


def system(name: str, summary_tokens: int | None = None) -> System:
    """Return a system's rules by name.

    Parameters
    ----------
    name : str
        Name of the system, a key of :data:`SYSTEMS`.
    summary_tokens : int, optional
        Length of each summary, in tokens. Default: the middle of the system's range.

    Returns
    -------
    System
        The system's rules, as a policy for replays.

    Raises
    ------
    LookupError
        If there is no such system.

    Examples
    --------
    >>> system("pi").policies[0].keep_tail
    20000
    """
    if name not in SYSTEMS:
        raise LookupError(unknown_name("system", name, SYSTEMS))
    row = SYSTEMS[name]
    least, most = row.get("summary_tokens", read_toml("systems.toml")["defaults"]["summary_tokens"])
    length = (least + most) // 2 if summary_tokens is None else summary_tokens
    return System(
        unit=row.get("unit", "message"),
        floor=Floor(**row["floor"]) if "floor" in row else Floor(),
        policies=tuple(_rule(rule, length) for rule in row["rules"]),
        name=name,
        label=row["label"],
        version=row["version"],
        date=row["date"],
        assumed=tuple(row["assumed"]),
        sources=tuple(row["sources"]),
        summary_tokens=(least, most),
        stops_after=row.get("stops_after", 0),
    )


#: Rules that are policies with numbers from the row.
_PLAIN: Final[Mapping[str, Callable[..., Policy]]] = {
    "cap_results": CapResults,
    "drop_oldest": OldestFirst,
    "drop_down": TriggerTarget,
    "drop_blocks": Step,
    "shrink_results": DropToolResults,
}


def _rule(row: Raw, summary_tokens: int) -> Policy:
    """Build a rule from a row of data/systems.toml."""
    fields = {name: value for name, value in row.items() if name != "act"}
    for name in ("trigger", "target", "keep_tail"):
        if f"{name}_share" in fields:
            fields[name] = Share(fields.pop(f"{name}_share"))
    if row["act"] in _PLAIN:
        return _PLAIN[row["act"]](**fields)
    fields["triggers"] = tuple(Trigger(**trigger) for trigger in row["triggers"])
    if row["act"] == "clear_results":
        return ClearResults(**fields)
    fields["call"] = SummaryCall(**row["call"])
    return Compact(**fields, size=summary_tokens)


#: The rows of data/systems.toml by name.
SYSTEMS: Final[Mapping[str, Data]] = Table(lambda: read_rows("systems.toml", "system"))


#: All named policies: budgetkit's own with usual numbers, and the rows of systems.toml.
NAMED: Final[Mapping[str, Callable[[], Policy]]] = Table(
    lambda: {
        "oldest first": OldestFirst,
        "last turns": SlidingWindow,
        "in blocks": partial(Step, 2_000),
        "down to a mark": partial(TriggerTarget, target=Share(0.5)),
        "summarise": Summarise,
        "tool results first": DropToolResults,
        **{name: partial(system, name) for name in SYSTEMS},
    }
)


def policy_of(policy: Policy | str) -> Policy:
    """Return the policy with a given name, or return a policy unchanged.

    Examples
    --------
    >>> policy_of("in blocks")
    Step(2000)
    """
    if isinstance(policy, Policy):
        return policy
    name = known_name(policy) if isinstance(policy, str) else ""
    if name not in NAMED:
        raise LookupError(
            f"{unknown_name('policy', policy, NAMED)} You can also pass an instance, such as SlidingWindow(5)."
        )
    return NAMED[name]()


def known_name(name: str) -> str:
    """Return a policy's listed name, even if it is written with hyphens.

    An unknown name is returned unchanged.

    Examples
    --------
    >>> known_name("last-turns"), known_name("prompt-poet")
    ('last turns', 'prompt-poet')
    """
    spaced = name.replace("-", " ")
    if name not in NAMED and spaced in NAMED:
        return spaced
    return name


AnyPolicies = Policy | str | Iterable[Policy | str] | Mapping[str, Policy | str]


def general_policy_of(policy: Policy | str) -> Policy:
    """Return a policy for a running conversation, rejecting a product's rules.

    Examples
    --------
    >>> general_policy_of("codex")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: 'codex' is a product's rule and works only in bk.replay. Choose ...
    """
    rules = policy_of(policy)
    for part in _nested_policies(rules):
        if isinstance(part, System | Compact | ClearResults):
            name = part.name if isinstance(part, System) else part
            raise ValueError(
                f"{brief(name)} is a product's rule and works only in bk.replay. "
                "Choose Summarise(text=...) or DropToolResults()."
            )
    return rules


def _nested_policies(policy: Policy) -> list[Policy]:
    """List a policy and the policies that it contains."""
    inner: Iterable[Policy] = ()
    if isinstance(policy, Chain):
        inner = policy.policies
    return [policy, *(part for rule in inner for part in _nested_policies(rule))]


def policies_of(
    policies: AnyPolicies | None = None,
) -> dict[str, Policy]:
    """Map names to the given policies, or to all named policies.

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
        raise TypeError(wrong_type("policies", policies, "policies or their names"))
    else:
        entries = list(policies)
    return {name_of(policy): policy_of(policy) for policy in entries}


def name_of(policy: Policy | str) -> str:
    """Return a policy's listed name, or the repr of a `Policy` object."""
    if isinstance(policy, str):
        return known_name(policy)
    return repr(policy)
