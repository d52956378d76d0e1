"""Which requests a conversation makes, when, and what each of them is answered.

Counted by *turn* there is one request for each message of the user: the last that the turn makes. Counted by
*request* there is one for each answer of the model, so that an agent that calls ten tools sends eleven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from budgetkit.budget.allocation import check_choice
from budgetkit.message import Message
from budgetkit.plan.items import Floats, Ints
from budgetkit.trace import Trace, Turn
from budgetkit.trace.provider_usage import seconds

By = Literal["turn", "request"]


def requests_of(trace: Trace, by: By = "turn") -> tuple[Turn, ...]:
    """List the requests of a conversation.

    Parameters
    ----------
    trace : Trace
        The conversation.
    by : {"turn", "request"}
        One request a turn, the turn's last, or one for each answer of the model.

    Returns
    -------
    tuple of Turn
        `start` is where the turn starts, `sent` where the request ends, `number` the turn's number.

    Examples
    --------
    >>> roles = ("user", "assistant", "tool", "assistant", "user")
    >>> raw = [{"role": role, "content": role} for role in roles]
    >>> raw[1]["tool_calls"], raw[2]["tool_call_id"] = [{"id": "1", "function": {"name": "f", "arguments": ""}}], "1"
    >>> trace = Trace("toy", tuple(map(Message, raw)))
    >>> [request.sent for request in requests_of(trace)], [r.sent for r in requests_of(trace, "request")]
    ([3, 5], [1, 3, 5])
    """
    check_choice("by", by, get_args(By))
    if by == "turn":
        return trace.turns
    return tuple(request for turn in trace.turns for request in _answered(trace.messages, turn))


def _answered(messages: Sequence[Message], turn: Turn) -> list[Turn]:
    """Return one request before each answer, and one at the end of a turn that was not answered."""
    answers = [i for i in range(turn.start, turn.end) if messages[i].role == "assistant"]
    answered = [i for i in answers if i > turn.start] or [turn.sent]
    if messages[turn.end - 1].role != "assistant" and answered[-1] < turn.end:
        answered.append(turn.end)
    return [Turn(turn.number, turn.start, sent, turn.end) for sent in answered]


def answers(billed: Ints, requests: Sequence[Turn], by: By) -> Ints:
    """Return what the model's answers to each request bill, of what every message bills as output."""
    sums = np.concatenate(([0], np.cumsum(billed)))
    if by == "turn":
        return np.array([sums[r.end] - sums[r.start] for r in requests], dtype=np.int64)
    ends = [min(r.sent + 1, len(billed)) for r in requests]
    return np.array([sums[end] - sums[min(r.sent, end)] for r, end in zip(requests, ends, strict=True)], dtype=np.int64)


def new_blocks(messages: Sequence[Message], requests: Sequence[Turn]) -> Ints:
    """Return how many blocks each request adds to the last: each text, picture and tool call is one.

    Examples
    --------
    >>> calls = [{"id": name, "function": {"name": "f", "arguments": ""}} for name in "ab"]
    >>> said = [Message({"role": "user", "content": "Go."}), Message({"role": "assistant", "tool_calls": calls})]
    >>> new_blocks(said, [Turn(1, 0, 1, 2), Turn(1, 0, 2, 2)]).tolist()
    [1, 2]
    """
    sizes = [max(1, len(m.parts if m.raw.get("content") else ()) + len(m.tool_calls)) for m in messages]
    sums = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    return np.diff(sums[[r.sent for r in requests]], prepend=0)


def pauses(messages: Sequence[Message], requests: Sequence[Turn]) -> Floats:
    """Return the seconds between requests, where the messages carry a time; none where a clock was set back."""
    times = np.array([seconds(messages[r.sent - 1].raw.get("timestamp")) for r in requests])
    known_places = np.flatnonzero(~np.isnan(times))
    pause = np.full(len(times), np.nan)
    pause[known_places[1:]] = np.maximum(np.diff(times[known_places]), 0)
    return pause
