"""BringBack: another policy with a part of the history's room set aside for messages that have left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from budgetkit.budget.amounts import Amount, Share, check_tokens, tokens_of
from budgetkit.pruning.policies.policy import Cut, Policy, PruningContext
from budgetkit.pruning.policies.pruners import OldestFirst


@dataclass(frozen=True, repr=False)
class BringBack(Policy):
    """Let a policy prune, and bring back, for each request, what of that the current question asks for.

    What has left is searched with the words of the turn's own user message (BM25); the best hits come back, with the
    messages beside them and a tool call with its results, and stand just before the current turn. At the next turn
    they are gone again.

    Parameters
    ----------
    policy : Policy, default OldestFirst()
        What prunes; it has the rest of the history's limit.
    share : int or Share, default 0.5
        What may come back: tokens, or a share of the history's limit.
    neighbours : int, default 1
        How many messages on each side of a hit come with it, where there is room.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Examples
    --------
    >>> BringBack(share=Share(0.25)).last_resort(PruningContext(tokens=1_200, limit=1_000)).down_to
    750
    """

    policy: Policy = field(default_factory=OldestFirst)
    share: Amount = Share(0.5)
    neighbours: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tokens("neighbours", self.neighbours)

    @property
    def stages(self) -> tuple[Policy, ...]:
        """The stages of the policy that prunes, each with the room that is left for it."""
        return tuple(_Within(self, stage) for stage in self.policy.stages)

    def returns(self, limit: int) -> int:
        """Return how many tokens of a history's limit are for what comes back."""
        limit = max(0, limit)
        return min(limit, tokens_of(self.share, limit))

    def inner(self, room: PruningContext) -> PruningContext:
        """Return the room with the history's limit less what may come back."""
        return replace(room, limit=room.limit - self.returns(room.limit))

    def last_resort(self, room: PruningContext) -> Cut:
        """Come down to what is left of the limit, as the policy that prunes would."""
        return self.policy.last_resort(self.inner(room))

    def arriving(self, tokens: int, is_result: bool) -> int:
        """Ask the policy that prunes."""
        return self.policy.arriving(tokens, is_result)

    def importance(self, payload: Any) -> int:
        """Ask the policy that prunes."""
        return self.policy.importance(payload)

    def write(self, payloads: list[Any]) -> str | None:
        """Ask the policy that prunes."""
        return self.policy.write(payloads)


@dataclass(frozen=True, repr=False)
class _Within(Policy):
    """One stage of a policy, in less room."""

    whole: BringBack
    stage: Policy

    def cuts(self, room: PruningContext) -> tuple[Cut, ...]:
        return self.stage.cuts(self.whole.inner(room))
