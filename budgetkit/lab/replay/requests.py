"""Which requests a conversation makes, when, and what each of them is answered.

Counted by *turn* there is one request for each message of the user: the last that the turn makes. Counted by
*request* there is one for each answer of the model, so that an agent that calls ten tools sends eleven. Counted by
*usage* there is one for each that the provider billed, as a recorded session tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from budgetkit.budget.allocation import check_choice
from budgetkit.budget.quoting import brief
from budgetkit.message import RESULT_ROLES, Message
from budgetkit.plan.items import Floats, Ints
from budgetkit.trace import Trace, Turn
from budgetkit.trace.provider_usage import in_line, seconds, usage_frame

By = Literal["turn", "request", "usage"]


def requests_of(trace: Trace, by: By = "turn") -> tuple[Turn, ...]:
    """List the requests of a conversation.

    Parameters
    ----------
    trace : Trace
        The conversation.
    by : {"turn", "request", "usage"}
        One request a turn, the turn's last, one for each answer of the model, or one for each that was billed.

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
    if by == "usage":
        return _billed(trace)
    return tuple(request for turn in trace.turns for request in _answered(trace.messages, turn))


def _billed(trace: Trace) -> tuple[Turn, ...]:
    """Return one request before each answer whose usage is told."""
    usage = usage_frame(trace)
    places = usage["message_index"].iloc[in_line(usage)].to_numpy(dtype=np.int64)
    if not len(places):
        raise ValueError(
            f"{brief(trace.id)} tells no usage, so there are no requests by it; give by='request'"
        )
    starts = np.array([turn.start for turn in trace.turns])
    turns = np.searchsorted(starts, places - 1, "right") - 1
    listed = [trace.turns[max(0, turn)] for turn in turns.tolist()]
    return tuple(
        Turn(turn.number, turn.start, place, turn.end)
        for turn, place in zip(listed, places.tolist(), strict=True)
    )


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
    return np.array(
        [sums[end] - sums[min(r.sent, end)] for r, end in zip(requests, ends, strict=True)],
        dtype=np.int64,
    )


def new_blocks(messages: Sequence[Message], requests: Sequence[Turn]) -> Ints:
    """Return how many positions of a cache's look-back each request adds to the last.

    Examples
    --------
    >>> calls = [{"id": name, "function": {"name": "f", "arguments": ""}} for name in "ab"]
    >>> dialogue = [Message({"role": "user", "content": "Go."}), Message({"role": "assistant", "tool_calls": calls})]
    >>> new_blocks(dialogue, [Turn(1, 0, 1, 2), Turn(1, 0, 2, 2)]).tolist()
    [1, 1]
    """
    return np.diff(block_positions(messages)[[request.sent for request in requests]], prepend=0)


def block_positions(messages: Sequence[Message]) -> Ints:
    """Return how many positions stand before each message, and at last before the end, as a cache looks back over them.

    Each text and picture is one position. A run of calls is one, and so is a run of results, however many there are
    (Anthropic, Prompt caching, as others quote it; read 2026-11-23).

    Examples
    --------
    >>> calls = [{"id": name, "function": {"name": "f", "arguments": ""}} for name in "ab"]
    >>> asks = Message({"role": "assistant", "content": "I look.", "tool_calls": calls})
    >>> results = [Message({"role": "tool", "tool_call_id": name, "content": "1"}) for name in "ab"]
    >>> block_positions([Message({"role": "user", "content": "Go."}), asks, *results]).tolist()
    [0, 1, 3, 4, 4]
    """
    sizes = []
    before = ""
    for message in messages:
        if message.role in RESULT_ROLES:
            sizes.append(int(before not in RESULT_ROLES))
        else:
            texts = len(message.parts) if message.raw.get("content") else 0
            sizes.append(max(1, texts + bool(message.tool_calls)))
        before = message.role
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)


def pauses(messages: Sequence[Message], requests: Sequence[Turn]) -> Floats:
    """Return the seconds between requests, where the messages carry a time; none where a clock was set back."""
    times = np.array([seconds(messages[r.sent - 1].raw.get("timestamp")) for r in requests])
    known_places = np.flatnonzero(~np.isnan(times))
    pause = np.full(len(times), np.nan)
    pause[known_places[1:]] = np.maximum(np.diff(times[known_places]), 0)
    return pause
