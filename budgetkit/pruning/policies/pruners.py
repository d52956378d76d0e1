"""The pruning policies, one small dataclass each: some cut only what does not fit, others more at once.

To cut more at once helps a prompt cache. While a history only grows, each request begins with the whole request
before it, and the provider reads that part from its cache. After a cut, all that stands behind the cut is read anew.
So fewer and larger cuts leave more in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

from budgetkit.budget.allocation import check_choice
from budgetkit.budget.amounts import Amount, Share, check_tokens
from budgetkit.budget.quoting import brief
from budgetkit.pruning.policies.policy import (
    Base,
    Cut,
    Policy,
    PruningContext,
    SummaryCall,
    SummaryRule,
)


@dataclass(frozen=True, kw_only=True, repr=False)
class OldestFirst(Policy):
    """Drop the oldest until the rest fits.

    Parameters
    ----------
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> OldestFirst().cuts(PruningContext(tokens=1_200, limit=1_000))
    ()
    >>> OldestFirst().last_resort(PruningContext(tokens=1_200, limit=1_000)).down_to
    1000
    """

    # It asks for no cuts of its own: `last_resort`, with which every policy ends, is this policy.


@dataclass(frozen=True, repr=False)
class SlidingWindow(Policy):
    """Keep the last turns only.

    Parameters
    ----------
    turns : int, default 10
        How many earlier turns stay.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> SlidingWindow(3).cuts(PruningContext(tokens=10, limit=1_000, turn=8))[0].before_turn
    5
    """

    turns: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_tokens("turns of the sliding window", self.turns) < 1:
            raise ValueError("a sliding window of 0 turns would keep nothing; keep at least 1 turn")

    def cuts(self, room: PruningContext) -> tuple[Cut, ...]:
        """Drop every turn that has left the window."""
        return (Cut(room.limit, before_turn=room.turn - self.turns),)


@dataclass(frozen=True, repr=False)
class Step(Policy):
    """Drop the oldest in blocks of a fixed size, so that the cut moves rarely.

    removed = ceil(surplus / step) * step

    Parameters
    ----------
    step : int
        Size of a block, in tokens.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Notes
    -----
    The rule of prompt-poet 0.0.52 (`truncation_step`).

    Examples
    --------
    >>> room = PruningContext(tokens=6_001, limit=5_000)
    >>> room.tokens - Step(500).cuts(room)[0].down_to
    1500
    """

    step: int = 1_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_tokens("step", self.step) < 1:
            raise ValueError("a step of 0 tokens; blocks have a size; give at least 1")

    def cuts(self, room: PruningContext) -> tuple[Cut, ...]:
        """Drop whole blocks, once the history is over its limit."""
        surplus = room.tokens - room.limit
        if surplus > 0:
            return (Cut(max(0, room.tokens + -surplus // self.step * self.step)),)
        return ()


@dataclass(frozen=True, repr=False)
class TriggerTarget(Policy):
    """Wait for a high mark, then cut down to a low one.

    Parameters
    ----------
    trigger : int or Share, default 1.0
        Cutting starts above it: tokens, or a share of the base.
    target : int or Share, default 0.7
        Cutting stops at it.
    of : {"limit", "usable", "window"}
        The base: the history's limit, or the usable or whole window, in which the other sections count too.
    whole_turns : bool, default False
        Earlier turns go whole, and then steps of the turn that is being answered: its question and newest step stay.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Raises
    ------
    ValueError
        If the target is not above 0 and at most the trigger.

    Examples
    --------
    >>> TriggerTarget(Share(.8), Share(.5)).cuts(PruningContext(tokens=850, limit=1_000))[0].down_to
    500
    """

    trigger: Amount = Share(1)
    target: Amount = Share(0.7)
    of: Base = "limit"
    whole_turns: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("of", self.of, get_args(Base))
        low, high = (ratio(amount) for amount in (self.target, self.trigger))
        if type(self.trigger) is type(self.target) and not 0 < low <= high:
            raise ValueError(
                f"trigger {brief(self.trigger)} and target {brief(self.target)}; cutting goes from a high "
                "mark to a low one: 0 < target <= trigger; lower the target or raise the trigger"
            )

    def cuts(self, room: PruningContext) -> tuple[Cut, ...]:
        """Cut down to the low mark, once above the high one."""
        if room.used(self.of) <= room.size(self.trigger, self.of):
            return ()
        mark = room.history(room.size(self.target, self.of), self.of)
        return (Cut(mark, whole_turns=self.whole_turns),)


@dataclass(frozen=True, repr=False)
class Summarise(Policy):
    """Replace the oldest part of the history by a summary, and that by the next one.

    Parameters
    ----------
    share : int or Share, default 0.3
        How many messages, or which share of them, one summary replaces.
    size : int or Share, default 0.2
        Length of a summary: tokens, or a share of what it replaces.
    text : callable, optional
        From the list of replaced messages to the summary's text, whose length is then counted instead.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> Summarise().cuts(PruningContext(tokens=1_100, limit=1_000))[0].rounds
    SummaryRule(share=Share(0.3), size=Share(0.2))
    """

    share: Amount = Share(0.3)
    size: Amount = Share(0.2)
    text: Callable[[list[Any]], str] | None = None

    def cuts(self, room: PruningContext) -> tuple[Cut, ...]:
        """Summarise until the history fits."""
        if room.tokens > room.limit:
            return (Cut(room.limit, rounds=SummaryRule(self.share, self.size)),)
        return ()

    def write(self, payloads: list[Any]) -> str | None:
        """Return the summary's text, where a callable gives one."""
        if self.text is None:
            return None
        return self.text(payloads)


@dataclass(frozen=True, repr=False)
class Importance(Policy):
    """Drop the least important first, the oldest of equals first.

    Parameters
    ----------
    rank : callable, optional
        From a message to its importance; higher survives. Left out, all are equal.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> Importance(len).last_resort(PruningContext(tokens=1_100, limit=1_000)).order
    'importance'
    """

    rank: Callable[[Any], int] | None = None

    def last_resort(self, room: PruningContext) -> Cut:
        """Come down to the limit by importance."""
        return Cut(room.limit, "importance")

    def importance(self, payload: Any) -> int:
        """Return the importance that the caller's function gives."""
        if self.rank is None:
            return 0
        return self.rank(payload)


@dataclass(frozen=True, repr=False)
class Chain(Policy):
    """Let several policies cut, one after the other.

    Parameters
    ----------
    policies : sequence of Policy
        Each looks at what the one before has left. Their units and floors are ignored for the chain's own.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> Chain([Summarise(), Step(500)]).stages
    (Summarise(), Step(500))
    """

    policies: Sequence[Policy] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "policies", tuple(self.policies))

    @cached_property
    def stages(self) -> tuple[Policy, ...]:
        """The policies in order, those of chains within it among them."""
        return tuple(stage for policy in self.policies for stage in policy.stages)

    def last_resort(self, room: PruningContext) -> Cut:
        """Come down to the limit as the last of them would."""
        if self.policies:
            return self.policies[-1].last_resort(room)
        return super().last_resort(room)

    @property
    def summary_call(self) -> SummaryCall | None:
        """The call of the first of them that summarises."""
        calls = (policy.summary_call for policy in self.policies)
        return next((call for call in calls if call is not None), None)

    def arriving(self, tokens: int, is_result: bool) -> int:
        """Return the tokens of a message once each policy has cut it on its way in."""
        for policy in self.policies:
            tokens = policy.arriving(tokens, is_result)
        return tokens

    def importance(self, payload: Any) -> int:
        """Return the sum of what the policies give; most give 0."""
        return sum(policy.importance(payload) for policy in self.policies)

    def write(self, payloads: list[Any]) -> str | None:
        """Return the first summary that one of the policies writes; None where none does."""
        texts = (policy.write(payloads) for policy in self.policies)
        return next((text for text in texts if text is not None), None)


def ratio(amount: Any) -> float:
    """Return a share's part of its base, or the tokens, to compare amounts of one kind."""
    return float(amount.ratio) if isinstance(amount, Share) else amount
