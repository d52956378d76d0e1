"""What has left and may come back: kept by a running conversation whose policy asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from budgetkit.message import Message
from budgetkit.pruning.dropping import StartOn
from budgetkit.pruning.history import NEVER, History
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
        left = [slot < start and gone != NEVER for slot, gone in enumerate(history.gone)]
        if not any(left):
            return ()
        score = self._index.scores(question(self.messages[start:]), start) * left[:start]
        room = min(policy.returns(limit), limit - history.tokens)
        back = chosen(score, left, history.slots, units_of(history.slots), room, policy.neighbours)
        if start_on != "any" and not history.members:
            return beginning_with(back, start_on, history.slots)
        return back


def question(turn: Sequence[Message]) -> str:
    """Return what a turn asks: what its user says, or how it begins."""
    return " ".join(message.text for message in turn if message.role == "user") or (turn[0].text if turn else "")


def spoken(message: Message) -> str:
    """Return the words of a message, those of its tool calls among them."""
    return " ".join([message.text, *(call.arguments for call in message.tool_calls)])
