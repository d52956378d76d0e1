"""What comes back to a request: of what has left, what its question asks for, as far as there is room.

It stands just before the current turn, so the prompt cache ends there where it differs from the last request.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from budgetkit.lab.replay.prefix import PrefixLayout
from budgetkit.plan.items import Ints
from budgetkit.pruning.dropping import Retention, StartOn
from budgetkit.pruning.history import NEVER, Slots
from budgetkit.pruning.policies import BringBack, Policy
from budgetkit.pruning.search import Index, brought_back, spoken, units_of
from budgetkit.trace import Trace

Returned = tuple[tuple[int, ...], ...]


def returned(
    trace: Trace,
    placed: PrefixLayout,
    slots: Slots,
    retention: Retention,
    limits: Sequence[int],
    policy: Policy,
    start_on: StartOn = "any",
) -> Returned:
    """Return for each request the messages that come back to it; most policies bring none back."""
    if not isinstance(policy, BringBack) or all(gone == NEVER for gone in retention.gone):
        return ((),) * len(placed.requests)
    index = Index([spoken(message) for message in trace.messages])
    gone = np.array(retention.gone)
    beside = units_of(slots)
    return tuple(
        brought_back(
            policy,
            index,
            slots,
            beside,
            left=((gone != NEVER) & (gone <= number)).tolist(),
            turn=trace.messages[request.start : request.sent],
            start=request.start,
            limit=limit,
            history_tokens=retention.tokens[number],
            begins_with="any" if retention.units[number] else start_on,
        )
        for number, (request, limit) in enumerate(zip(placed.requests, limits, strict=True))
    )


def shared_at_most(found: Returned, slots: Slots, placed: PrefixLayout, sent: Ints) -> Ints:
    """Return how long a prefix a request can share with the last one: up to what came back to either."""
    back = sizes(found, slots)
    sums = np.concatenate(([0], np.cumsum(placed.tokens)))
    before = sent - placed.tally.priming - (sums[placed.sents] - sums[placed.starts]) - back
    most = np.array(sent)
    for number in range(1, len(found)):
        if (
            found[number] != found[number - 1]
            or placed.requests[number].start != placed.requests[number - 1].start
        ):
            for each in (number - 1, number):
                most[number] = min(most[number], before[each] if found[each] else most[number])
    return np.maximum(most, 0)


def sizes(found: Returned, slots: Slots) -> Ints:
    """Return the tokens that come back to each request."""
    return np.array([sum(slots.tokens[slot] for slot in each) for each in found], dtype=np.int64)
