"""What a pruning policy keeps of a conversation, request by request, in n log n steps.

Each request is one visit. New messages enter the history, the policy asks for cuts, and the cuts are carried out. If
the history is then still over its limit, more messages leave until it fits. For each message two numbers are stored:
the request at which it entered, and the one at which it was gone. Two numbers are enough, because a message that has
left does not come back: a running system no longer has it, and a summary cannot be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from budgetkit.budget.amounts import Share
from budgetkit.pruning.history import DROPPED, SUMMARISED, History, Slots
from budgetkit.pruning.policies import Cut, Policy, PruningContext, SummaryRule

Measure = Callable[[list[int]], int | None]


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
    history, kept = History(slots), Kept()
    for request, visit in enumerate(visits):
        history.begin(request)
        for slot in visit.entering:
            history.enter(slot)
        for slot in visit.leaving:
            history.take_out(slot)
        calls = _Calls(request, kept, measure)
        for stage in policy.stages:
            for cut in stage.cuts(_now(visit.room, history)):
                _carry_out(cut, history, policy, calls)
        _carry_out(policy.last_resort(_now(visit.room, history)), history, policy, calls)
        _refuse(history, visit.room, policy)
        _record(kept, history, visit, calls)
    kept.state[:], kept.shrunk[:], kept.gone[:] = history.state, history.shrunk, history.gone
    return kept


@dataclass(slots=True)
class _Calls:
    """The summaries of one request."""

    request: int
    kept: Kept
    measure: Measure | None
    made: int = 0
    read: int = 0
    wrote: int = 0


def _now(room: PruningContext, history: History) -> PruningContext:
    return PruningContext(history.tokens, room.limit, room.others, room.usable, room.window, room.turn)


def _carry_out(cut: Cut, history: History, policy: Policy, calls: _Calls) -> None:
    if cut.order == "results":
        _shrink_results(cut, history)
    elif cut.rounds is not None:
        _summarise(cut, cut.rounds, history, policy, calls)
    else:
        _drop(cut, history, policy)


def _drop(cut: Cut, history: History, policy: Policy) -> None:
    """Drop units until the size is reached, nothing older is left, or the floor stands in the way."""
    while cut.before_turn is not None or history.tokens > cut.down_to:
        unit = history.next_unit(cut.order == "importance")
        if unit is None or not history.may_leave(unit, policy.floor):
            return
        if cut.before_turn is not None and history.last_turn(unit) >= cut.before_turn:
            return
        history.drop(unit, DROPPED)


def _shrink_results(cut: Cut, history: History) -> None:
    while history.tokens > cut.down_to:
        slot = history.next_result(cut.intact)
        if slot is None:
            return
        if history.size[slot] > cut.placeholder:
            history.shrink(slot, cut.placeholder)


def _summarise(cut: Cut, rounds: SummaryRule, history: History, policy: Policy, calls: _Calls) -> None:
    while history.tokens > cut.down_to:
        oldest, besides = history.oldest_message()
        if oldest is None or not history.may_leave(oldest, policy.floor, besides):
            return
        before = history.tokens
        replaced, last_turn = _taken(rounds, history, policy)
        read = before - history.tokens
        wrote = _length(rounds, read, replaced, calls)
        if wrote >= read:  # a summary that saves nothing is not written: what it would replace is gone
            history.dropped_tokens += read
            continue
        history.place_summary(replaced[0], wrote, last_turn)
        calls.made, calls.read, calls.wrote = calls.made + 1, calls.read + read, calls.wrote + wrote
        calls.kept.written.append((calls.request, replaced[0], wrote, tuple(replaced)))


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
        last_turn = max(last_turn, history.last_turn(unit), 0 if is_summary else history.slots.turn[members[-1]])
        wanted -= 0 if is_summary else len(members)
        history.drop(unit, SUMMARISED)
    return slots, last_turn


def _length(rounds: SummaryRule, read: int, replaced: list[int], calls: _Calls) -> int:
    counted = calls.measure(replaced) if calls.measure is not None else None
    if counted is not None:
        return counted
    return rounds.size.of(read) if isinstance(rounds.size, Share) else rounds.size


def _refuse(history: History, room: PruningContext, policy: Policy) -> None:
    over = history.tokens - max(0, room.limit)
    if over > 0 and policy.floor.conflict == "raise":
        floor = policy.floor
        raise ValueError(
            f"turn {room.turn}: the history may hold {max(0, room.limit):,} tokens, and its floor of {floor.least:,} "
            f"{floor.unit} holds {history.tokens:,}, {over:,} too many; lower the floor, raise the history budget, "
            "or let it exceed (conflict='exceed') or shrink the others (conflict='shrink')"
        )


def _record(kept: Kept, history: History, visit: Visit, calls: _Calls) -> None:
    equal_to = min(visit.boundary, history.first_change)
    kept.tokens.append(history.tokens)
    kept.over.append(max(0, history.tokens - max(0, visit.room.limit)))
    kept.dropped.append(history.dropped_tokens)
    kept.dropped_messages.append(history.dropped_messages)
    kept.shrunk_messages.append(history.shrunk_messages)
    kept.summaries.append(calls.made)
    kept.summary_input.append(calls.read)
    kept.summary_output.append(calls.wrote)
    kept.equal_to.append(equal_to)
    kept.equal.append(history.before(equal_to))
