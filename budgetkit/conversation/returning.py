"""What has left and may come back: kept by a running conversation whose policy asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from budgetkit.message import Message
from budgetkit.pruning.dropping import StartOn
from budgetkit.pruning.history import NEVER, History, Slots
from budgetkit.pruning.policies import BringBack
from budgetkit.pruning.search import Index, beginning_with, chosen, units_of


class Archive:
    """Every message of a conversation, as it came, and where its words stand."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = []
        self._index = Index()
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Keep one message more."""
        self.messages.append(message)
        self._index.add(spoken(message))

    def returns(
        self, history: History, policy: BringBack, limit: int, start: int, start_on: StartOn = "any"
    ) -> tuple[int, ...]:
        """Name the messages that come back to a request whose turn starts here."""
        left = [gone != NEVER for gone in history.gone]
        if not any(left[:start]):
            return ()
        return brought_back(
            policy,
            self._index,
            history.slots,
            units_of(history.slots),
            left=left,
            turn=self.messages[start:],
            start=start,
            limit=limit,
            history_tokens=history.tokens,
            begins_with="any" if history.members else start_on,
        )


def brought_back(
    policy: BringBack,
    index: Index,
    slots: Slots,
    beside: dict[int, list[int]],
    *,
    left: list[bool],
    turn: Sequence[Message],
    start: int,
    limit: int,
    history_tokens: int,
    begins_with: StartOn,
) -> tuple[int, ...]:
    """Name the messages that come back to a request whose turn starts at a slot, of those that have left before it.

    It is the one step of a replay and of a running conversation. What comes back has the policy's part of the history's
    limit, and no more than what the history leaves of that.
    """
    left_before = [*left[:start], *[False] * (len(left) - start)]
    scores = index.scores(question(turn), start) * left_before[:start]
    room = min(policy.returns(limit), limit - history_tokens)
    back = chosen(scores, left_before, slots, beside, room, policy.neighbours)
    if begins_with == "any":
        return back
    return beginning_with(back, begins_with, slots)


def question(turn: Sequence[Message]) -> str:
    """Return what a turn asks: what its user says, or how it begins."""
    return " ".join(message.text for message in turn if message.role == "user") or (
        turn[0].text if turn else ""
    )


def spoken(message: Message) -> str:
    """Return the words of a message, those of its tool calls among them."""
    return " ".join([message.text, *(call.arguments for call in message.tool_calls)])
