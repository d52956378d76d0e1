"""What a pruning policy asks for, carried out request by request: messages are dropped, shrunk or summarised here.

Each request is one visit. New messages enter the history, the policy asks for cuts, and the cuts are carried out. If
the history is then still over its limit, more messages leave until it fits. For each message two numbers are stored:
the request at which it entered, and the one at which it was gone. Two numbers are enough, because a message that has
left does not come back: a running system no longer has it, and a summary cannot be undone. So n messages take about
n log n steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from budgetkit.budget.amounts import Share
from budgetkit.pruning.history import DROPPED, SUMMARISED, History, Slots
from budgetkit.pruning.policies import Cut, Policy, PruningContext, SummaryRule

Measure = Callable[[list[int]], int | None]
Asked = Generator[list[int], int | None, None]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request, as the history sees it."""

    room: PruningContext
    entering: Sequence[int]
    boundary: int
    leaving: Sequence[int] = ()  # what the recorded session itself took out


@dataclass(frozen=True, slots=True)
class Kept:
    """What a policy did: a number for each request, and an interval for each message."""

    tokens: list[int] = field(default_factory=list)
    over: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    dropped_messages: list[int] = field(default_factory=list)
    shrunk_messages: list[int] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)
    summary_input: list[int] = field(default_factory=list)
    summary_output: list[int] = field(default_factory=list)
    equal_to: list[int] = field(default_factory=list)
    equal: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    shrunk: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    written: list[tuple[int, int, int, tuple[int, ...]]] = field(default_factory=list)


def retain(slots: Slots, visits: Sequence[Visit], policy: Policy, measure: Measure | None = None) -> Kept:
    """Carry a policy out over a conversation.

    Examples
    --------
    >>> from budgetkit.pruning.policies import OldestFirst
    >>> slots = Slots([5, 7, 6], [0, 1, 2], [1, 2, 3], [False] * 3, [0] * 3)
    >>> visits = [Visit(PruningContext(0, limit=12, turn=turn), [turn - 2], turn - 1) for turn in (2, 3, 4)]
    >>> kept = retain(slots, visits, OldestFirst())
    >>> kept.tokens, kept.gone
    ([5, 12, 6], [2, 2, -1])
    """
    history, rows = History(slots), []
    written: list[tuple[int, int, int, tuple[int, ...]]] = []
    for request, visit in enumerate(visits):
        history.begin(request)
        calls = _finished(prune(history, policy, visit.room, visit.entering, visit.leaving), measure)
        written += [(request, *each) for each in calls.written]
        rows.append(_row(history, visit, calls))
    kept = Kept(*map(list, zip(*rows, strict=True)))
    kept.state[:], kept.shrunk[:], kept.gone[:], kept.written[:] = history.state, history.shrunk, history.gone, written
    return kept


@dataclass(slots=True)
class Summaries:
    """The summaries of one request: how many, what they read and wrote, and (place, tokens, replaced) of each."""

    made: int = 0
    read: int = 0
    wrote: int = 0
    written: list[tuple[int, int, tuple[int, ...]]] = field(default_factory=list)


Steps = Generator[list[int], int | None, Summaries]


def prune(
    history: History, policy: Policy, room: PruningContext, entering: Sequence[int], leaving: Sequence[int] = ()
) -> Steps:
    """Visit a history at one request: the one walk of a replay and of a running conversation.

    A generator: it gives the messages to be summarised, and is sent the tokens of their summary, or None where its
    length goes by the rule. What it returns is the request's summaries.

    Examples
    --------
    >>> from budgetkit.pruning.policies import OldestFirst
    >>> history = History(Slots([5, 7], [0, 1], [1, 2], [False] * 2, [0] * 2))
    >>> [*prune(history, OldestFirst(), PruningContext(0, limit=7), [0, 1])], history.tokens
    ([], 7)
    """
    summaries = Summaries()
    for slot in entering:
        history.enter(slot)
    for slot in leaving:
        history.take_out(slot)
    room = _now(room, history)
    for stage in policy.stages:
        for cut in stage.cuts(room):
            yield from _carry_out(cut, history, policy, summaries)
        if room.tokens != history.tokens:
            room = _now(room, history)
    yield from _carry_out(policy.last_resort(room), history, policy, summaries)
    _refuse(history, room, policy)
    return summaries


def _finished(steps: Steps, measure: Measure | None) -> Summaries:
    try:
        replaced = next(steps)
        while True:
            replaced = steps.send(None if measure is None else measure(replaced))
    except StopIteration as stop:
        summaries: Summaries = stop.value
        return summaries


def _now(room: PruningContext, history: History) -> PruningContext:
    return PruningContext(history.tokens, room.limit, room.others, room.usable, room.window, room.turn)


def _carry_out(cut: Cut, history: History, policy: Policy, summaries: Summaries) -> Asked | tuple[()]:
    """Make a cut; only one that summarises asks for something on the way."""
    if cut.order == "results":
        _shrink_results(cut, history)
    elif cut.rounds is None:
        _drop(cut, history, policy)
    else:
        return _summarise(cut, cut.rounds, history, policy, summaries)
    return ()


def _drop(cut: Cut, history: History, policy: Policy) -> None:
    """Drop units until the size is reached, nothing older is left, or the floor stands in the way."""
    while cut.before_turn is not None or history.tokens > cut.down_to:
        unit = history.next_unit(cut.order == "importance")
        if unit is None or (cut.before_turn is not None and history.last_turn(unit) >= cut.before_turn):
            return
        if not history.may_leave(unit, policy.floor):
            return
        history.drop(unit, DROPPED)


def _shrink_results(cut: Cut, history: History) -> None:
    while history.tokens > cut.down_to and (slot := history.next_result(cut.intact)) is not None:
        if history.size[slot] > cut.placeholder:
            history.shrink(slot, cut.placeholder)


def _summarise(cut: Cut, rounds: SummaryRule, history: History, policy: Policy, summaries: Summaries) -> Asked:
    while history.tokens > cut.down_to:
        oldest, besides = history.oldest_message()
        if oldest is None or not history.may_leave(oldest, policy.floor, besides):
            return
        before = history.tokens
        replaced, last_turn = _taken(rounds, history, policy)
        read = before - history.tokens
        counted = yield replaced
        by_rule = rounds.size.of(read) if isinstance(rounds.size, Share) else rounds.size
        wrote = by_rule if counted is None else counted
        if wrote >= read:  # a summary that saves nothing is not written: what it would replace is gone
            history.dropped_tokens += read
            continue
        history.place_summary(replaced[0], wrote, last_turn)
        summaries.made += 1
        summaries.read += read
        summaries.wrote += wrote
        summaries.written.append((replaced[0], wrote, tuple(replaced)))


def _taken(rounds: SummaryRule, history: History, policy: Policy) -> tuple[list[int], int]:
    """Take the oldest out: summaries, and as many messages as one round replaces and the floor allows."""
    share = rounds.share
    wanted = max(1, share.of(history.messages) if isinstance(share, Share) else share)
    slots: list[int] = []
    last_turn = 0
    while wanted > 0 and (unit := history.next_unit()) is not None:
        is_summary = unit in history.summaries
        if not is_summary and slots and not history.may_leave(unit, policy.floor):
            break
        members = sorted(history.members[unit])
        slots += members
        last_turn = max(last_turn, history.last_turn(members[-1]))
        wanted -= 0 if is_summary else len(members)
        history.drop(unit, SUMMARISED)
    return slots, last_turn


def _refuse(history: History, room: PruningContext, policy: Policy) -> None:
    over = history.tokens - max(0, room.limit)
    if over > 0 and policy.floor.conflict == "raise":
        floor = policy.floor
        raise ValueError(
            f"turn {room.turn}: the history may hold {max(0, room.limit):,} tokens, and its floor of {floor.least:,} "
            f"{floor.unit} holds {history.tokens:,}, {over:,} too many; lower the floor, raise the history budget, "
            "or let it exceed (conflict='exceed') or shrink the others (conflict='shrink')"
        )


def _row(history: History, visit: Visit, calls: Summaries) -> tuple[int, ...]:
    """Return one request's numbers, in the order of `Kept`."""
    equal_to = min(visit.boundary, history.first_change)
    over = max(0, history.tokens - max(0, visit.room.limit))
    dropped = history.dropped_tokens, history.dropped_messages, history.shrunk_messages
    return history.tokens, over, *dropped, calls.made, calls.read, calls.wrote, equal_to, history.before(equal_to)
