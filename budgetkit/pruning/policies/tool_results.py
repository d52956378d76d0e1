"""DropToolResults: what tools have answered goes first, and its call stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from budgetkit.budget.allocation import check_choice
from budgetkit.budget.amounts import Amount, Share, check_tokens
from budgetkit.budget.quoting import brief
from budgetkit.pruning.policies.policy import Base, Cut, Policy, PruningContext
from budgetkit.pruning.policies.pruners import ratio


@dataclass(frozen=True, repr=False)
class DropToolResults(Policy):
    """Replace tool results by a placeholder, oldest first, before anything is dropped.

    Parameters
    ----------
    placeholder : int, default 12
        What is left of a result, in tokens; its call stays whole.
    intact : int, default 0
        How many of the newest results are left alone.
    calls_intact : bool, default False
        Whether `intact` counts calls, each with all its results.
    trigger : int or Share, default 1.0
        Replacing starts above it: tokens, or a share of the base.
    of : {"limit", "usable", "window"}
        The base.
    target : int or Share, optional
        Replacing stops at it; at the trigger when left out, so that every request replaces a little and the prompt
        cache is lost each time. 0 replaces all but those left alone, and is rarely needed again.
    unit, floor
        As in :class:`budgetkit.pruning.policies.Policy`.

    Raises
    ------
    ValueError
        If the target is above the trigger.

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
                f"results replaced down to {brief(self.target)} once above {brief(self.trigger)}; the target is at "
                "most the trigger; lower it"
            )
        check_tokens("placeholder", self.placeholder)
        check_tokens("intact", self.intact)

    def cuts(self, room: PruningContext) -> tuple[Cut, ...]:
        """Replace results, once above the trigger, until the base is used no more than the target allows."""
        if room.used(self.of) <= room.size(self.trigger, self.of):
            return ()
        mark = room.size(self.trigger if self.target is None else self.target, self.of)
        cut = Cut(
            room.history(mark, self.of),
            "results",
            placeholder=self.placeholder,
            intact=self.intact,
            calls_intact=self.calls_intact,
        )
        return (cut,)
