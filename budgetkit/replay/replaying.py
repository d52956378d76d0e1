"""replay(): a trace through a budget and a pruning policy, request by request.

At each request the budget says how much history there may be, by the one walk that plans every window; the
policy says what leaves; what is kept of the last request says what the provider's prompt cache can hold. Texts
are counted once, when the trace is first asked; replaying again under another policy counts nothing.

A tool call whose result never comes, because the answer was broken off, is in no request: providers refuse it, and
recorded sessions show that programs leave it out (see :func:`budgetkit.trace.unpaired`). It has cost its output all
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from budgetkit.budget import Budget
from budgetkit.counters import count_of
from budgetkit.framing import DEFAULT_FRAMING, Framing
from budgetkit.live.engine import with_promise
from budgetkit.message import Message
from budgetkit.plan.items import Ints
from budgetkit.plan.walk import allocate, allocate_columns, with_undeclared
from budgetkit.pruning.history import Slots
from budgetkit.pruning.policies import Policy, PruningContext
from budgetkit.pruning.policies.systems import policy_of
from budgetkit.pruning.retention import Kept, Measure, Visit, retain
from budgetkit.replay.cost import Prices
from budgetkit.replay.prefix import PrefixLayout, boundaries, equal_prefix, place
from budgetkit.replay.prompt_cache import CACHES, PromptCache
from budgetkit.replay.requests import By, answers, pauses, requests_of
from budgetkit.replay.results import Replay
from budgetkit.replay.returning import Returned, returned, shared_at_most
from budgetkit.replay.returning import sizes as sizes_of
from budgetkit.trace import DEFAULT_ROLES, Ledger, Trace, Turn, unpaired
from budgetkit.trace.sections import Roles, past_section

Columns = dict[str, dict[str, Ints]]
Count = Callable[[str], int]
_RESULTS = ("tool", "function")


def replay(
    trace: Trace | Sequence[Any],
    budget: Budget,
    policy: Policy | str,
    *,
    count: Count | str | None = None,
    roles: Roles | None = None,
    framing: Framing | None = None,
    section: str | None = None,
    by: By = "turn",
    cache: PromptCache = CACHES["longest prefix"],
    prices: Prices | None = None,
) -> Replay:
    """Send a conversation through a budget, turn by turn, and let a policy prune what does not fit.

    Parameters
    ----------
    trace : Trace, or sequence of messages
        The conversation.
    budget : Budget
        The window and its lines.
    policy : Policy or str
        What leaves the history, and when; see :mod:`budgetkit.pruning.policies`, whose `NAMED` go by a name, such as
        "oldest first" or "octopus".
    count : callable or str, optional
        From text to tokens, or the name of a counter; o200k_base when left out.
    roles : mapping or callable, optional
        Which section each message belongs to; the budget's own table when left out.
    framing : Framing, optional
        What a message costs beyond its text; OpenAI's when left out.
    section : str, optional
        The section that the policy prunes; that of earlier user messages when left out.
    by : {"turn", "request"}
        One request a turn, or one for each answer of the model.
    cache : PromptCache
        The provider's prompt cache, one of :data:`budgetkit.replay.prompt_cache.CACHES` or your own. Where
        the prices say what reading from it costs, that counts.
    prices : Prices, optional
        What tokens cost; see :func:`budgetkit.replay.cost.prices`.

    Returns
    -------
    Replay
        With a frame of the requests, and one of the messages with the requests at which they came and went.

    Raises
    ------
    LookupError
        If a message belongs to a section that the budget does not declare.
    ValueError
        If the policy's floor does not fit and its conflict is "raise".

    Examples
    --------
    >>> import budgetkit as bk
    >>> trace = bk.load_trace("support-chat")
    >>> budget = bk.presets.working_memory(4_000, output=500, history_floor=0)
    >>> outcome = bk.replay(trace, budget, bk.policies.OldestFirst())
    >>> bool((outcome.frame()["sent"] <= 3_500).all())
    True
    """
    trace = trace if isinstance(trace, Trace) else Trace("messages", tuple(trace))
    count, policy = count_of("o200k_base" if count is None else count), policy_of(policy)
    roles = (budget.roles or DEFAULT_ROLES) if roles is None else roles
    framing = DEFAULT_FRAMING if framing is None else framing
    requests = requests_of(trace, by)
    ledger = trace.ledger(count, roles, framing)
    placed = place(ledger, requests, section or past_section(_user(trace), roles), unpaired(trace))
    sizes = _sizes(placed, budget, roles)
    slots = _slots(trace, placed, policy)
    kept = retain(slots, sizes.visits(placed), policy, _measure(trace, policy, count, framing))
    output = answers(trace.answers(count, framing), requests, by)
    limits = sizes.columns[placed.section]["limit"] - sizes.pinned
    back = returned(trace, placed, slots, kept, limits, policy)
    return _outcome(trace, (placed, sizes, kept, slots, back), policy, output, cache, prices)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What every section asks for and may take, at each request."""

    budget: Budget
    columns: Columns
    demands: dict[str, Ints]
    pinned: Ints
    limits: Ints

    def others(self, columns: Columns, section: str) -> Ints:
        return sum((c["granted"] for s, c in columns.items() if s != section), np.zeros_like(self.pinned))

    def visits(self, placed: PrefixLayout) -> list[Visit]:
        column = self.columns[placed.section]
        limits = (column["limit"] - self.pinned).tolist()
        others = (self.others(self.columns, placed.section) + self.pinned).tolist()
        entering, leaving = _by_request(placed.entry, placed.requests), _by_request(placed.leave, placed.requests)
        usable, window = self.budget.usable, self.budget.window
        edges = (max(0, edge) for edge in self.limits.tolist())
        rows = zip(limits, others, placed.requests, entering, edges, leaving, strict=True)
        return [
            Visit(PruningContext(0, limit, other, usable, window, request.number), *rest)
            for limit, other, request, *rest in rows
        ]


_Pruned = tuple[PrefixLayout, _Sizes, Kept, Slots, Returned]


def _user(trace: Trace) -> Message:
    return next((m for m in trace.messages if m.role == "user"), Message({"role": "user"}))


def _sizes(placed: PrefixLayout, budget: Budget, roles: Roles) -> _Sizes:
    """Ask the budget for every request at once."""
    names = [] if callable(roles) else list(roles.values())
    frame = placed.ledger.demand(placed.requests, [*names, placed.section])
    asked = [name for name in frame.columns if frame[name].any() or name == placed.section]
    demands = {str(name): frame[name].to_numpy() for name in asked}
    budget = with_undeclared(replace(budget, deficit="signed"), demands)
    columns = allocate_columns(budget, demands, len(placed.requests))
    sizes = np.where(placed.prunable, placed.tokens, 0)
    entered, left = (np.bincount(at, sizes, len(placed.requests) + 1) for at in (placed.entry, placed.leave))
    pinned = demands[placed.section] - np.cumsum((entered - left).astype(np.int64))[:-1]
    return _Sizes(budget, columns, demands, pinned, boundaries(placed, columns))


def _by_request(places: Ints, requests: Sequence[Turn]) -> list[list[int]]:
    """List the messages by the request at which something becomes of them."""
    slots: list[list[int]] = [[] for _ in requests]
    for slot, request in enumerate(places.tolist()):
        if request < len(slots):
            slots[request].append(slot)
    return slots


def _slots(trace: Trace, placed: PrefixLayout, policy: Policy) -> Slots:
    messages = trace.messages
    turns = np.searchsorted([t.start for t in trace.turns], np.arange(len(messages)), "right").tolist()
    units = _units(placed.ledger, turns, policy.unit == "turn")
    importance = [policy.importance(message) for message in messages]
    is_result = [message.role in _RESULTS for message in messages]
    return Slots(placed.tokens.tolist(), units, turns, is_result, importance)


def _units(ledger: Ledger, turns: list[int], by_turn: bool) -> list[int]:
    """Name for each message the first of those that go with it: a call's results, or all of its turn."""
    first: dict[object, int] = {}
    leader = list(range(len(turns)))

    def lead(slot: int) -> int:
        while leader[slot] != slot:
            leader[slot] = slot = leader[leader[slot]]
        return slot

    for slot, item in enumerate(ledger.past):
        of_turn = ("turn", turns[slot]) if by_turn and turns[slot] else None
        for key in filter(None, (item.group, of_turn)):
            one, other = lead(slot), lead(first.setdefault(key, slot))
            leader[max(one, other)] = min(one, other)
    return [lead(slot) for slot in range(len(turns))]


def _measure(trace: Trace, policy: Policy, count: Count, framing: Framing) -> Measure:
    """Count the texts of summaries, each of which is read again by the next one."""
    standing: dict[int, Message] = {}

    def measure(slots: list[int]) -> int | None:
        text = policy.write([standing.get(slot, trace.messages[slot]) for slot in slots])
        if text is None:
            return None
        standing[slots[0]] = Message({"role": "assistant", "content": text})
        return framing.message(standing[slots[0]], count)

    return measure


def _outcome(
    trace: Trace, pruned: _Pruned, policy: Policy, output: Ints, cache: PromptCache, prices: Prices | None
) -> Replay:
    placed, sizes, kept, slots, back = pruned
    history = np.array(kept.tokens, dtype=np.int64) + sizes.pinned + sizes_of(back, slots)
    over = np.array(kept.over, dtype=np.int64)
    columns = allocate_columns(sizes.budget, {**sizes.demands, placed.section: history}, len(history))
    granted = {s: c["granted"].copy() for s, c in columns.items()}
    if policy.floor.conflict == "shrink":
        over = _shrink_others(sizes, placed.section, history, over, granted)
    granted[placed.section] = history
    sent = sum(granted.values(), np.zeros_like(history))
    equal = equal_prefix(placed, sizes.limits, np.array(kept.equal_to), np.array(kept.equal), sent)
    if any(back):
        equal = np.minimum(equal, shared_at_most(back, slots, placed, sent))
    # The priming begins the answer: it is no part of what is kept, and the next request goes on before it.
    kept_at_most = np.maximum(sent - placed.ledger.priming, 0)
    head, equal = np.minimum(placed.head(), kept_at_most), np.minimum(equal, kept_at_most)
    new = np.diff(placed.sents, prepend=0)
    cached, written = cache.split(kept_at_most, head, equal, pauses(trace.messages, placed.requests), new)
    cache = _at_prices(cache, prices)
    found = placed, kept, columns, granted, over, equal, cached, written, output
    return Replay(trace, sizes.budget, policy, cache, *found, prices, back)


def _at_prices(cache: PromptCache, prices: Prices | None) -> PromptCache:
    """Take from a model's prices what reading from its cache costs; models of one provider differ in that."""
    if prices is None or prices.input is None or prices.cache_read is None or not prices.input.base:
        return cache
    return replace(cache, read=prices.cache_read.base / prices.input.base)


def _shrink_others(sizes: _Sizes, section: str, history: Ints, over: Ints, granted: dict[str, Ints]) -> Ints:
    """Take from the other sections what the floor of the history needs; return the tokens that are still missing."""
    missing = over.copy()
    for row in np.flatnonzero(over).tolist():
        floor = int(history[row])
        promised = with_promise(sizes.budget, section, floor)
        demand = {s: int(column[row]) for s, column in sizes.demands.items()} | {section: floor}
        plan = allocate(promised, demand)
        for grant in plan.grants:
            granted[grant.section][row] = grant.granted
        missing[row] = max(0, -plan.free)
    return missing
