"""The pruning policies, one small dataclass each.

Some policies cut only the overflow; other policies cut more than the overflow in one step.

Large cuts help a prompt cache. While a history only grows, each request starts with the whole previous request, and the
provider reads that part from its cache. Everything after a cut is uncached. A few large cuts therefore leave more in
the cache than many small cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

from budgetkit.budget.allocation import check_all, check_choice
from budgetkit.budget.amounts import Amount, Share, check_tokens, tokens_of
from budgetkit.budget.quoting import brief
from budgetkit.pruning.policies.policy import (
    Base,
    Compaction,
    Cut,
    Policy,
    PruningContext,
    SummaryCall,
    SummaryRule,
)


@dataclass(frozen=True, kw_only=True, repr=False)
class OldestFirst(Policy):
    """A policy that drops the oldest messages until the history fits.

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

    # It needs no cuts of its own: `last_resort`, which ends every policy, drops the oldest messages.


@dataclass(frozen=True, repr=False)
class SlidingWindow(Policy):
    """A policy that keeps only the last turns.

    Parameters
    ----------
    turns : int, default 10
        Number of turns to keep before the current turn.
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
        check_tokens("turns of the sliding window", self.turns, 1)

    def cuts(self, context: PruningContext) -> tuple[Cut, ...]:
        """Return a cut that drops all turns outside the sliding window."""
        return (Cut(context.limit, before_turn=context.turn - self.turns),)


@dataclass(frozen=True, repr=False)
class Step(Policy):
    """A policy that drops the oldest messages in blocks and cuts rarely.

    removed = ceil(surplus / step) * step

    Parameters
    ----------
    step : int, default 1,000
        Size of a block, in tokens.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Notes
    -----
    This is the rule of prompt-poet 0.0.52 (`truncation_step`).

    Examples
    --------
    >>> context = PruningContext(tokens=6_001, limit=5_000)
    >>> context.tokens - Step(500).cuts(context)[0].down_to
    1500
    """

    step: int = 1_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tokens("step", self.step, 1)

    def cuts(self, context: PruningContext) -> tuple[Cut, ...]:
        """Return a cut of whole blocks if the history exceeds its limit."""
        surplus = context.tokens - context.limit
        if surplus > 0:
            return (Cut(max(0, context.tokens + -surplus // self.step * self.step)),)
        return ()


@dataclass(frozen=True, repr=False)
class TriggerTarget(Policy):
    """A policy that cuts to a target once a trigger is exceeded.

    Parameters
    ----------
    trigger : int or Share, default 1.0
        Size above which cutting starts, in tokens or as a share of the base.
    target : int or Share, default 0.7
        Size at which cutting stops, in tokens or as a share of the base.
    of : {"limit", "usable", "window"}
        The base: the history's limit, the usable window or the whole window. The windows also hold the other sections.
    whole_turns : bool, default False
        If true, drop earlier turns as a whole, then steps of the current turn except its question and newest step.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Raises
    ------
    ValueError
        If trigger and target are both in tokens or both shares, and the target is 0 or above the trigger.

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
                f"Invalid target {brief(self.target)} for trigger {brief(self.trigger)}. Use 0 < target <= trigger."
            )

    def cuts(self, context: PruningContext) -> tuple[Cut, ...]:
        """Return a cut to the target if the trigger is exceeded."""
        if context.used(self.of) <= context.size(self.trigger, self.of):
            return ()
        mark = context.history(context.size(self.target, self.of), self.of)
        return (Cut(mark, whole_turns=self.whole_turns),)


@dataclass(frozen=True, repr=False)
class Summarise(Policy):
    """A policy that repeatedly replaces the oldest messages with a summary.

    Parameters
    ----------
    share : int or Share, default 0.3
        Number of messages replaced by one summary, or their share of all messages.
    size : int or Share, default 0.2
        Length of a summary, in tokens or as a share of the messages it replaces.
    text : callable, optional
        Function that returns the summary of a list of messages. The text that it returns is counted instead of `size`.
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

    def cuts(self, context: PruningContext) -> tuple[Cut, ...]:
        """Return a cut that summarises messages until the history fits."""
        if context.tokens > context.limit:
            return (Cut(context.limit, rounds=SummaryRule(self.share, self.size)),)
        return ()

    def write(self, payloads: list[Any]) -> str | None:
        """Return the summary from the function `text`, or None if unset."""
        if self.text is None:
            return None
        return self.text(payloads)


@dataclass(frozen=True, repr=False)
class Importance(Policy):
    """A policy that drops the least important messages first.

    Among equally important messages, the oldest are dropped first.

    Parameters
    ----------
    rank : callable, optional
        Function that returns a message's importance. The most important messages are kept longest. Default: all
        messages are equally important.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> Importance(len).last_resort(PruningContext(tokens=1_100, limit=1_000)).order
    'importance'
    """

    rank: Callable[[Any], int] | None = None

    def last_resort(self, context: PruningContext) -> Cut:
        """Return a cut that drops the least important messages first."""
        return Cut(context.limit, "importance")

    def importance(self, payload: Any) -> int:
        """Return the importance from the function `rank`, or 0 if unset."""
        if self.rank is None:
            return 0
        return self.rank(payload)


@dataclass(frozen=True, repr=False)
class Chain(Policy):
    """Several policies, applied in order.

    Parameters
    ----------
    policies : sequence of Policy
        The policies. Each policy sees the history that the previous policy left. The chain's unit and floor replace the
        units and floors of its policies.
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
        object.__setattr__(self, "policies", check_all("policies", self.policies, Policy))

    @cached_property
    def stages(self) -> tuple[Policy, ...]:
        """The policies in order, including those of nested chains."""
        return tuple(stage for policy in self.policies for stage in policy.stages)

    def last_resort(self, context: PruningContext) -> Cut:
        """Return the last policy's cut to the limit."""
        if self.policies:
            return self.policies[-1].last_resort(context)
        return super().last_resort(context)

    @property
    def summary_call(self) -> SummaryCall | None:
        """The summary call of the first policy that has one."""
        calls = (policy.summary_call for policy in self.policies)
        return next((call for call in calls if call is not None), None)

    def arriving(self, tokens: int, is_result: bool) -> int:
        """Return a message's tokens after each policy has cut it on arrival."""
        for policy in self.policies:
            tokens = policy.arriving(tokens, is_result)
        return tokens

    def importance(self, payload: Any) -> int:
        """Return the sum of a message's importances in all policies."""
        return sum(policy.importance(payload) for policy in self.policies)

    def write(self, payloads: list[Any]) -> str | None:
        """Return the first policy's summary, or None if no policy writes one."""
        texts = (policy.write(payloads) for policy in self.policies)
        return next((text for text in texts if text is not None), None)


def ratio(amount: Any) -> float:
    """Return an amount as a number, to compare amounts of one kind."""
    return float(amount.ratio) if isinstance(amount, Share) else amount


TriggerKind = Literal["tokens", "share", "window_less", "messages", "idle", "always"]
Join = Literal["any", "all"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A condition that triggers a rule.

    Parameters
    ----------
    kind : {"tokens", "share", "window_less", "messages", "idle", "always"}
        The condition: the prompt reaches a number of tokens ("tokens"), a share of the window ("share"), or the window
        less a number of tokens ("window_less"); the history reaches a number of messages ("messages"); the pause before
        the request reaches a number of seconds ("idle"); or no condition ("always"). An unknown pause counts as 0, so
        "idle" never triggers in a running conversation.
    value : float
        Threshold in tokens, messages or seconds, or a share from 0 to 1.
    above : bool, default False
        If true, the threshold must be exceeded, not only reached.

    Examples
    --------
    >>> context = PruningContext(tokens=180_000, limit=200_000, window=200_000)
    >>> Trigger("share", 0.9).reached(context), Trigger("window_less", 16_384, above=True).reached(context)
    (True, False)
    """

    kind: TriggerKind
    value: float = 0
    above: bool = False

    def __post_init__(self) -> None:
        check_choice("kind of the trigger", self.kind, get_args(TriggerKind))

    def mark(self, window: int) -> int:
        """Return the threshold in tokens, messages or seconds."""
        return _mark(self.kind, self.value, window)

    def reached(self, context: PruningContext) -> bool:
        """Return True if the condition is met before a request."""
        if self.kind == "idle":
            return context.pause > self.value or (context.pause == self.value and not self.above)
        size = context.messages if self.kind == "messages" else context.used("window")
        mark = self.mark(context.window)
        return self.kind == "always" or size > mark or (size == mark and not self.above)


@dataclass(frozen=True, repr=False)
class _Triggered(Policy):
    """The base class of rules with triggers."""

    triggers: tuple[Trigger, ...] = ()
    join: Join = "any"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("join of the triggers", self.join, get_args(Join))
        for name, field in self.__dataclass_fields__.items():
            if field.type == "int":
                check_tokens(name, getattr(self, name))

    def acts(self, context: PruningContext) -> bool:
        """Return True if any or all triggers are reached, depending on `join`.

        The result is False if there are no triggers.
        """
        reached = [trigger.reached(context) for trigger in self.triggers]
        return bool(reached) and (all(reached) if self.join == "all" else any(reached))


@dataclass(frozen=True, repr=False)
class Compact(_Triggered):
    """A policy that replaces most of the history with one summary.

    It acts when its triggers are reached.

    Parameters
    ----------
    triggers : sequence of Trigger
        Conditions under which the policy acts.
    join : {"any", "all"}
        Triggers that must be reached: any one of them, or all.
    keep_tail : int or Share, default 0
        Size of the newest messages to keep, in tokens or as a share of the history.
    keep_messages : int, default 0
        Number of newest messages to keep regardless of their size.
    keep_head : int, default 0
        Number of first messages to keep.
    keep_role : str, optional
        Role of the messages to keep in the tail. The tail's messages of other roles are summarised. Default: all roles.
    size : int or Share, default 2,500
        Length of the summary, in tokens or as a share of the messages it replaces.
    reattached : int, default 0
        Tokens that the system adds again after the summary, such as the tokens of files that it had read.
    call : SummaryCall
        The call that writes the summary.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> rule = Compact((Trigger("share", 0.9),), keep_tail=20_000)
    >>> rule.cuts(PruningContext(tokens=190_000, limit=200_000, window=200_000))[0].compaction.keep_tail
    20000
    >>> rule.cuts(PruningContext(tokens=90_000, limit=200_000, window=200_000))
    ()
    """

    keep_tail: Amount = 0
    keep_messages: int = 0
    keep_head: int = 0
    keep_role: str | None = None
    size: Amount = 2_500
    reattached: int = 0
    call: SummaryCall = SummaryCall()

    def cuts(self, context: PruningContext) -> tuple[Cut, ...]:
        """Return a cut that compacts the history if the triggers are reached."""
        if not self.acts(context):
            return ()
        compaction = Compaction(
            keep_tail=tokens_of(self.keep_tail, context.tokens),
            keep_messages=self.keep_messages,
            keep_head=self.keep_head,
            important_only=self.keep_role is not None,
            size=self.size,
            reattached=self.reattached,
        )
        return (Cut(0, compaction=compaction),)

    @property
    def summary_call(self) -> SummaryCall:
        """The call that writes a summary."""
        return self.call

    def importance(self, payload: Any) -> int:
        """Return 1 for messages of the role to keep, otherwise 0."""
        return int(self.keep_role is not None and getattr(payload, "role", None) == self.keep_role)


@dataclass(frozen=True, repr=False)
class ClearResults(_Triggered):
    """A policy that replaces old tool results with placeholders when triggered.

    Parameters
    ----------
    triggers : sequence of Trigger
        Conditions under which the policy acts.
    join : {"any", "all"}
        Triggers that must be reached: any one of them, or all.
    keep_uses : int, default 0
        Number of newest results to keep whole.
    keep_tokens : int, default 0
        Size of the newest results to keep whole, in tokens.
    least_gain : int, default 0
        Minimum tokens to be freed; otherwise nothing is changed.
    placeholder : int, default 12
        Tokens of a placeholder.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> rule = ClearResults((Trigger("tokens", 100_000, above=True),), keep_uses=3)
    >>> rule.cuts(PruningContext(tokens=120_000, limit=200_000, window=200_000))[0].intact
    3
    """

    triggers: tuple[Trigger, ...] = (Trigger("always"),)
    keep_uses: int = 0
    keep_tokens: int = 0
    least_gain: int = 0
    placeholder: int = 12

    def cuts(self, context: PruningContext) -> tuple[Cut, ...]:
        """Return a cut that clears old results if the triggers are reached."""
        if not self.acts(context):
            return ()
        cut = Cut(
            0,
            "results",
            placeholder=self.placeholder,
            intact=self.keep_uses,
            intact_tokens=self.keep_tokens,
            least_gain=self.least_gain,
        )
        return (cut,)


@dataclass(frozen=True, repr=False)
class CapResults(Policy):
    """A policy that cuts tool results to a maximum size on arrival.

    Parameters
    ----------
    most : int, default 10,000
        Maximum size of a result, in tokens.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> CapResults(10_000).arriving(12_345, is_result=True), CapResults(10_000).arriving(12_345, is_result=False)
    (10000, 12345)
    """

    most: int = 10_000

    def arriving(self, tokens: int, is_result: bool) -> int:
        """Return a message's tokens on arrival, with long tool results cut."""
        if is_result:
            return min(tokens, self.most)
        return tokens


@lru_cache(maxsize=256)
def _mark(kind: TriggerKind, value: float, window: int) -> int:
    """Return the threshold of a trigger as a whole number."""
    if kind == "share":
        return Share(value).of(window)
    if kind == "window_less":
        return max(0, window - int(value))
    return int(value)


@dataclass(frozen=True, repr=False)
class DropToolResults(Policy):
    """A policy that replaces tool results with placeholders before anything is dropped.

    Parameters
    ----------
    placeholder : int, default 12
        Tokens of a placeholder; the call is kept whole.
    intact : int, default 0
        Number of newest results to leave unchanged.
    calls_intact : bool, default False
        If true, `intact` counts calls, each with all its results.
    trigger : int or Share, default 1.0
        Size above which replacing starts, in tokens or as a share of the base.
    of : {"limit", "usable", "window"}
        The base: the history's limit, the usable window or the whole window. The windows also hold the other sections.
    target : int or Share, optional
        Size at which replacing stops. The default is the trigger, with which a little is replaced in every request and
        the prompt cache is lost each time. A target of 0 replaces all but the intact results and so acts rarely.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Raises
    ------
    ValueError
        If target and trigger are both in tokens or both shares, and the target is above the trigger.

    Examples
    --------
    >>> DropToolResults().cuts(PruningContext(tokens=1_100, limit=1_000))[0].order
    'results'
    >>> DropToolResults(intact=3, trigger=900, target=0).cuts(PruningContext(tokens=950, limit=1_000))[0].down_to
    0
    """

    placeholder: int = 12
    intact: int = 0
    trigger: Amount = Share(1)
    of: Base = "limit"
    target: Amount | None = None
    calls_intact: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("of", self.of, get_args(Base))
        low = self.target
        high = self.trigger
        if type(low) is type(high) and ratio(low) > ratio(high):
            raise ValueError(
                f"Invalid target {brief(self.target)} for trigger {brief(self.trigger)}. Use target <= trigger."
            )
        check_tokens("placeholder", self.placeholder)
        check_tokens("intact", self.intact)

    def cuts(self, context: PruningContext) -> tuple[Cut, ...]:
        """Return a cut that replaces results if the trigger is exceeded."""
        if context.used(self.of) <= context.size(self.trigger, self.of):
            return ()
        mark = context.size(self.trigger if self.target is None else self.target, self.of)
        cut = Cut(
            context.history(mark, self.of),
            "results",
            placeholder=self.placeholder,
            intact=self.intact,
            calls_intact=self.calls_intact,
        )
        return (cut,)
