"""Turn: where a user's message and all that follows it lie in a conversation.

The request at a turn is the last one that the turn makes: it holds every earlier message, the user's message and
the turn's own tool calls and results, but not the answer that ends the turn, for which the request is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from budgetkit.message import RESULT_ROLES, SYSTEM_ROLES, Message


@dataclass(frozen=True, slots=True)
class Turn:
    """Hold where one turn lies in its conversation.

    Parameters
    ----------
    number : int
        From 1 on.
    start : int
        Index of the turn's first message, the user's.
    sent : int
        Index after the last message that is part of the turn's last request.
    end : int
        Index after the turn's last message.
    """

    number: int
    start: int
    sent: int
    end: int


def turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """Divide a conversation into turns.

    Examples
    --------
    >>> turns([Message({"role": role}) for role in ("system", "user", "assistant", "user")])
    (Turn(number=1, start=1, sent=2, end=3), Turn(number=2, start=3, sent=4, end=4))
    """
    starts = [index for index, message in enumerate(messages) if message.role == "user"] or [
        opening(messages)
    ]
    bounds = pairwise([*starts, len(messages)])
    return tuple(
        Turn(number, start, _sent(messages, start, end), end)
        for number, (start, end) in enumerate(bounds, start=1)
    )


def opening(messages: Sequence[Message]) -> int:
    """Count the system messages that open a conversation.

    Examples
    --------
    >>> opening([Message({"role": role}) for role in ("system", "developer", "user", "system")])
    2
    """
    others = (index for index, message in enumerate(messages) if message.role not in SYSTEM_ROLES)
    return next(others, len(messages))


def last_user(messages: Sequence[Message]) -> int:
    """Find the user's last message; without any, the last message."""
    users = (index for index in reversed(range(len(messages))) if messages[index].role == "user")
    return next(users, len(messages) - 1)


def _sent(messages: Sequence[Message], start: int, end: int) -> int:
    """Find where a turn's last request ends: before its last answer, or at its end if a tool result came later."""
    for index in reversed(range(start, end)):
        if messages[index].role in RESULT_ROLES:
            return end
        if messages[index].role == "assistant":
            return index
    return end
