"""What compacts a long session: rules of triggers, what stays, and what a summary's own call costs.

The rules of today's agents are made of a few parts: a *trigger* (tokens, a share of the window, the window less n),
what *stays* (the newest n tokens or messages, the first ones, those of some roles), and what *goes*: older messages
become a summary, or older tool results become placeholders. data/systems.toml puts systems together from these parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from budgetkit.budget.allocation import check_choice
from budgetkit.budget.amounts import Amount, Share, check_tokens, tokens_of
from budgetkit.pruning.policies.policy import Compaction, Cut, Policy, PruningContext, SummaryCall

TriggerKind = Literal["tokens", "share", "window_less", "messages", "idle", "always"]
Join = Literal["any", "all"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a rule acts.

    Parameters
    ----------
    kind : {"tokens", "share", "window_less", "messages", "idle", "always"}
        What is compared: the prompt with so many tokens, with a share of the window, with the window less so many
        tokens, the number of messages, the pause before the request; or nothing at all. A pause that nobody knows is
        none, so that in a running conversation a rule that waits for one does not act.
    value : float
        In tokens, messages or seconds, or a share from 0 to 1.
    above : bool, default False
        Whether the mark itself is not enough yet.

    Examples
    --------
    >>> room = PruningContext(tokens=180_000, limit=200_000, window=200_000)
    >>> Trigger("share", 0.9).reached(room), Trigger("window_less", 16_384, above=True).reached(room)
    (True, False)
    """

    kind: TriggerKind
    value: float = 0
    above: bool = False

    def __post_init__(self) -> None:
        check_choice("kind of the trigger", self.kind, get_args(TriggerKind))

    def mark(self, window: int) -> int:
        """Return the size at which it is reached, in tokens; of messages or seconds their number."""
        return _mark(self.kind, self.value, window)

    def reached(self, room: PruningContext) -> bool:
        """Say whether a rule acts as things stand."""
        if self.kind == "idle":
            return room.pause > self.value or (room.pause == self.value and not self.above)
        if self.kind == "messages":
            size = room.messages
        else:
            size = room.used("window")
        mark = self.mark(room.window)
        return self.kind == "always" or size > mark or (size == mark and not self.above)


@dataclass(frozen=True, repr=False)
class Compact(Policy):
    """Replace all but what stays by one summary, once a trigger is reached.

    Parameters
    ----------
    triggers : sequence of Trigger
        When it acts.
    join : {"any", "all"}
        Whether one of them is enough.
    keep_tail : int or Share, default 0
        The newest tokens that stay, or a share of the history.
    keep_messages : int, default 0
        The newest messages that stay in any case.
    keep_head : int, default 0
        The first messages that stay.
    keep_role : str, optional
        Of the tail only messages of this role stay; what tools answered and the model said goes.
    size : int or Share, default 2,500
        Length of the summary, in tokens, or as a share of what it replaces.
    reattached : int, default 0
        What the system puts back behind the summary, such as files it had read, in tokens.
    call : SummaryCall
        What writing the summary costs.
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

    triggers: tuple[Trigger, ...] = ()
    join: Join = "any"
    keep_tail: Amount = 0
    keep_messages: int = 0
    keep_head: int = 0
    keep_role: str | None = None
    size: Amount = 2_500
    reattached: int = 0
    call: SummaryCall = SummaryCall()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("join of the triggers", self.join, get_args(Join))
        for name in ("keep_messages", "keep_head", "reattached"):
            check_tokens(name, getattr(self, name))

    def cuts(self, room: PruningContext) -> tuple[Cut, ...]:
        """Compact, once the triggers are reached."""
        if not _acts(self.triggers, self.join, room):
            return ()
        compaction = Compaction(
            keep_tail=tokens_of(self.keep_tail, room.tokens),
            keep_messages=self.keep_messages,
            keep_head=self.keep_head,
            important_only=self.keep_role is not None,
            size=self.size,
            reattached=self.reattached,
        )
        return (Cut(0, compaction=compaction),)

    @property
    def summary_call(self) -> SummaryCall:
        """What writing a summary costs."""
        return self.call

    def importance(self, payload: Any) -> int:
        """Return 1 for messages of the role that stays."""
        return int(self.keep_role is not None and getattr(payload, "role", None) == self.keep_role)


@dataclass(frozen=True, repr=False)
class ClearResults(Policy):
    """Replace older tool results by placeholders, once a trigger is reached and enough is gained.

    Parameters
    ----------
    triggers : sequence of Trigger
        When it acts.
    join : {"any", "all"}
        Whether one of them is enough.
    keep_uses : int, default 0
        How many of the newest results stay whole.
    keep_tokens : int, default 0
        How many tokens of the newest results stay whole.
    least_gain : int, default 0
        Nothing happens unless so many tokens are freed.
    placeholder : int, default 12
        What is left of a result, in tokens.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> rule = ClearResults((Trigger("tokens", 100_000, above=True),), keep_uses=3)
    >>> rule.cuts(PruningContext(tokens=120_000, limit=200_000, window=200_000))[0].intact
    3
    """

    triggers: tuple[Trigger, ...] = (Trigger("always"),)
    join: Join = "any"
    keep_uses: int = 0
    keep_tokens: int = 0
    least_gain: int = 0
    placeholder: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("join of the triggers", self.join, get_args(Join))
        for name in ("keep_uses", "keep_tokens", "least_gain", "placeholder"):
            check_tokens(name, getattr(self, name))

    def cuts(self, room: PruningContext) -> tuple[Cut, ...]:
        """Clear the older results, once the triggers are reached."""
        if not _acts(self.triggers, self.join, room):
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
    """Cut each tool result to a size when it arrives.

    Parameters
    ----------
    most : int
        The most that a result holds, in tokens.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> CapResults(10_000).arriving(12_345, is_result=True), CapResults(10_000).arriving(12_345, is_result=False)
    (10000, 12345)
    """

    most: int = 10_000

    def arriving(self, tokens: int, is_result: bool) -> int:
        """Return the tokens of a message on its way in: a long tool result is cut."""
        if is_result:
            return min(tokens, self.most)
        return tokens


@lru_cache(maxsize=256)
def _mark(kind: TriggerKind, value: float, window: int) -> int:
    """Return the size of a mark; asked at every request, so each is worked out once."""
    if kind == "share":
        return Share(value).of(window)
    if kind == "window_less":
        return max(0, window - int(value))
    return int(value)


def _acts(triggers: Iterable[Trigger], join: Join, room: PruningContext) -> bool:
    reached = [trigger.reached(room) for trigger in triggers]
    return bool(reached) and (all(reached) if join == "all" else any(reached))
