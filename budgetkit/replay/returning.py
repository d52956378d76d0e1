"""What comes back to a request: of what has left, what its question asks for, as far as there is room.

It stands just before the current turn, so the prompt cache ends there where it differs from the last request.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from budgetkit.message import Message
from budgetkit.plan.items import Ints
from budgetkit.pruning.history import NEVER, Slots
from budgetkit.pruning.policies import BringBack, Policy
from budgetkit.pruning.retention import Kept
from budgetkit.pruning.search import Index
from budgetkit.replay.prefix import PrefixLayout
from budgetkit.trace import Trace, Turn

Returned = tuple[tuple[int, ...], ...]


def returned(trace: Trace, placed: PrefixLayout, slots: Slots, kept: Kept, limits: Ints, policy: Policy) -> Returned:
    """Return for each request the messages that come back to it; most policies bring none back."""
    if not isinstance(policy, BringBack) or all(gone == NEVER for gone in kept.gone):
        return ((),) * len(placed.requests)
    index = Index([_text(message) for message in trace.messages])
    gone = np.array(kept.gone)
    beside = _units(slots)
    found = []
    for number, (request, limit) in enumerate(zip(placed.requests, limits.tolist(), strict=True)):
        left = (gone != NEVER) & (gone <= number)
        left[request.start :] = False
        room = min(policy.returns(limit), limit - kept.tokens[number])
        score = index.scores(_question(trace.messages, request), request.start) * left[: request.start]
        found.append(_chosen(score, left.tolist(), slots, beside, room, policy.neighbours))
    return tuple(found)


def _chosen(
    score: np.ndarray, left: list[bool], slots: Slots, beside: dict[int, list[int]], room: int, neighbours: int
) -> tuple[int, ...]:
    """Take the best hits that fit, each with the messages beside it."""
    chosen = set[int]()
    for hit in np.argsort(-score, kind="stable")[: int((score > 0).sum())].tolist():
        near = [hit, *(hit + sign * step for step in range(1, neighbours + 1) for sign in (1, -1))]
        for place in near:
            if not 0 <= place < len(score) or not left[place] or place in chosen:
                continue
            whole = [slot for slot in beside[slots.unit[place]] if left[slot]]
            size = sum(slots.tokens[slot] for slot in whole)
            if size <= room:
                chosen.update(whole)
                room -= size
    return tuple(sorted(chosen))


def shared_at_most(found: Returned, slots: Slots, placed: PrefixLayout, sent: Ints) -> Ints:
    """Return how long a prefix a request can share with the last one: up to what came back to either."""
    back = sizes(found, slots)
    sums = np.concatenate(([0], np.cumsum(placed.tokens)))
    before = sent - placed.ledger.priming - (sums[placed.sents] - sums[placed.starts]) - back
    most = np.array(sent)
    for number in range(1, len(found)):
        if found[number] != found[number - 1] or placed.requests[number].start != placed.requests[number - 1].start:
            for each in (number - 1, number):
                most[number] = min(most[number], before[each] if found[each] else most[number])
    return np.maximum(most, 0)


def sizes(found: Returned, slots: Slots) -> Ints:
    """Return the tokens that come back to each request."""
    return np.array([sum(slots.tokens[slot] for slot in each) for each in found], dtype=np.int64)


def _units(slots: Slots) -> dict[int, list[int]]:
    beside: dict[int, list[int]] = {}
    for slot, unit in enumerate(slots.unit):
        beside.setdefault(unit, []).append(slot)
    return beside


def _question(messages: Sequence[Message], request: Turn) -> str:
    own = messages[request.start : request.sent]
    return " ".join(message.text for message in own if message.role == "user") or (own[0].text if own else "")


def _text(message: Message) -> str:
    return " ".join([message.text, *(call.arguments for call in message.tool_calls)])
