"""Carry out the cuts of a pruning policy, request by request.

Messages are dropped, shrunk or summarised here. A *slot* is a message's position in the conversation, and a *unit* is a
group of messages that are dropped together; see `history.py`.

In each request, new messages enter the history, the policy asks for cuts, and the cuts are carried out. If the history
then still exceeds its limit, more messages are dropped until it fits. Two numbers are stored for each message: the
request in which it entered and the request in which it was dropped. A dropped message never comes back, since a running
system no longer has it and a summary cannot be undone. Pruning n messages therefore takes about n log n steps.

The table shows the state of a history with a limit of 12 tokens and three messages of 5, 7 and 6 tokens, oldest first:

    request    state                        tokens    gone
    0          WHOLE    WAITING  WAITING         5    -1 -1 -1
    1          WHOLE    WHOLE    WAITING        12    -1 -1 -1
    2          DROPPED  DROPPED  WHOLE           6     2  2 -1     18 tokens are too many, and so are 13
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from budgetkit.budget import Budget
from budgetkit.budget.amounts import tokens_of
from budgetkit.message import Message
from budgetkit.pruning.history import DROPPED, SUMMARISED, History, Slots
from budgetkit.pruning.policies.policy import (
    Compaction,
    Cut,
    Floor,
    Policy,
    PruningContext,
    SummaryRule,
)

#: Role of the first message after the system messages; some providers accept only "user".
StartOn = Literal["user", "any"]


def summary_role(start_on: StartOn) -> str:
    """Return the role under which a summary is sent.

    The role is "user" if requests must start with a user message, otherwise "assistant".
    """
    if start_on == "any":
        return "assistant"
    return start_on


#: Minimum tokens of a shortened tool result: the marker and one line.
LEAST_RESULT = 32


def least_tokens(message: Message, tokens: int) -> int:
    """Return the number of tokens to which a message can be shortened.

    Only tool results may be shortened.

    Examples
    --------
    >>> result, question = Message({"role": "tool", "content": ""}), Message({"role": "user"})
    >>> least_tokens(result, 900), least_tokens(result, 8), least_tokens(question, 900)
    (32, 8, 900)
    """
    if not message.is_cuttable:
        return tokens
    return min(tokens, LEAST_RESULT)


def cuttable_tokens(history: History) -> int:
    """Return the tokens saved by shortening all uncut tool results."""
    return sum(max(0, history.size[slot] - LEAST_RESULT) for slot in history.whole_results)


Measure = Callable[[list[int]], int | None]
#: A requested summary: its slot, and the slots that it replaces.
SummaryRequest = tuple[int, list[int]]
#: A cut that requests summaries and is sent the tokens of each.
SummarisingCut = Generator[SummaryRequest, int | None, None]


class Visit(NamedTuple):
    """The facts about one request that pruning needs."""

    context: PruningContext
    entering: Sequence[int]  # the messages that are new in this request
    boundary: int  # the slot where its current turn begins
    leaving: Sequence[int] = ()  # the messages that the recorded session itself removed


@dataclass(frozen=True, slots=True)
class Retention:
    """The effects of a policy on each request and each message."""

    # for each request: the tokens of its history, those above its limit, and the removed messages
    tokens: list[int] = field(default_factory=list)
    over: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    dropped_messages: list[int] = field(default_factory=list)
    shrunk_messages: list[int] = field(default_factory=list)
    # its summaries: how many, and the tokens that they read and wrote
    summaries: list[int] = field(default_factory=list)
    summary_input: list[int] = field(default_factory=list)
    summary_output: list[int] = field(default_factory=list)
    # the first slot that differs from the last request, the tokens before that slot, and its units
    equal_to: list[int] = field(default_factory=list)
    equal: list[int] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    # for each message: its state, and the requests in which it shrank and was dropped
    state: list[int] = field(default_factory=list)
    shrunk: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    # for each summary: the request, its slot, its tokens, and the slots that it replaces
    written: list[tuple[int, int, int, tuple[int, ...]]] = field(default_factory=list)
    dropped_summaries: list[tuple[int, int]] = field(default_factory=list)

    def note(self, history: History, visit: Visit, summaries: list[WrittenSummary]) -> None:
        """Record the tokens, cuts and summaries of a request after pruning."""
        equal_to = min(visit.boundary, history.first_change)
        self.tokens.append(history.tokens)
        self.over.append(max(0, history.tokens - max(0, visit.context.limit)))
        self.dropped.append(history.dropped_tokens)
        self.dropped_messages.append(history.dropped_messages)
        self.shrunk_messages.append(history.shrunk_messages)
        self.summaries.append(len(summaries))
        self.summary_input.append(sum([summary.read for summary in summaries]))
        self.summary_output.append(sum([summary.tokens for summary in summaries]))
        self.equal_to.append(equal_to)
        self.equal.append(history.before(equal_to))
        self.units.append(len(history.members))


def retain(
    slots: Slots,
    visits: Sequence[Visit],
    policy: Policy,
    measure: Measure | None = None,
    start_on: StartOn = "any",
) -> Retention:
    """Apply a policy to all requests of a conversation.

    Examples
    --------
    >>> from budgetkit.pruning.policies import OldestFirst
    >>> slots = Slots([5, 7, 6], [0, 1, 2], [1, 2, 3], [False] * 3, [0] * 3)
    >>> visits = [Visit(PruningContext(0, limit=12, turn=turn), [turn - 2], turn - 1) for turn in (2, 3, 4)]
    >>> retention = retain(slots, visits, OldestFirst())
    >>> retention.tokens, retention.gone
    ([5, 12, 6], [2, 2, -1])
    """
    history = History(slots)
    retention = Retention(
        state=history.state,
        shrunk=history.shrunk,
        gone=history.gone,
        dropped_summaries=history.dropped_summaries,
    )
    for request, visit in enumerate(visits):
        history.begin(request)
        steps = prune(history, policy, visit.context, visit.entering, visit.leaving, start_on)
        # Each summary has its measured size, or the size that its rule sets.
        try:
            _, to_replace = next(steps)
            while True:
                _, to_replace = steps.send(None if measure is None else measure(to_replace))
        except StopIteration as stop:
            summaries: list[WrittenSummary] = stop.value
        retention.note(history, visit, summaries)
        retention.written.extend((request, *summary[:3]) for summary in summaries)
    return retention


class WrittenSummary(NamedTuple):
    """A summary written for one request, and the slots that it replaces."""

    slot: int
    tokens: int
    replaced: tuple[int, ...]
    read: int  # tokens of the replaced messages


Steps = Generator[SummaryRequest, int | None, list[WrittenSummary]]


def pruning_context(
    limit: int, others: int, usable: int, window: int, turn: int, pause: float = 0.0
) -> PruningContext:
    """Return the state of the history that a policy receives.

    Sizes are in tokens, and the pause is in seconds. The limit is at most the number of tokens that the other sections
    leave, even if the budget guarantees the history more than that, because the provider rejects a request that exceeds
    the window.

    Examples
    --------
    >>> pruning_context(limit=4_000, others=500, usable=3_500, window=4_000, turn=7).limit
    3000
    """
    return PruningContext(
        tokens=0,
        limit=min(limit, usable - others),
        others=others,
        usable=usable,
        window=window,
        turn=turn,
        pause=pause,
    )


def floor_notices(budget: Budget, section: str, demand: int, left: int) -> Iterator[str]:
    """Yield a warning if a section gets less than its floor guarantees."""
    floor = budget.floors.get(section, 0)
    if max(0, left) < min(floor, demand):
        yield (
            f"The floor of {section!r} ({floor:,} tokens) is not met, because only {max(0, left):,} are left. Lower "
            "the floor, shorten the other sections, or choose a larger window."
        )


def prune(
    history: History,
    policy: Policy,
    context: PruningContext,
    entering: Sequence[int],
    leaving: Sequence[int] = (),
    start_on: StartOn = "any",
    cuttable: Callable[[History], int] | None = cuttable_tokens,
) -> Steps:
    """Prune a history before one request.

    This generator yields a request for each summary. It is sent the tokens of the summary, or None if the policy's rule
    sets the length. It returns the summaries written before the request.

    The default floor of one message is ignored if the request would exceed the window even after shortening its tool
    results, which saves `cuttable(history)` tokens. A floor set by the user is kept. With `start_on="user"` the history
    starts with a user message or a summary regardless of the floor, because some providers reject any other request.

    Examples
    --------
    >>> from budgetkit.pruning.policies import OldestFirst
    >>> history = History(Slots([5, 7], [0, 1], [1, 2], [False] * 2, [0] * 2))
    >>> [*prune(history, OldestFirst(), PruningContext(0, limit=7), [0, 1])], history.tokens
    ([], 7)
    """
    summaries: list[WrittenSummary] = []

    # 1. New messages enter; messages removed by a recorded session leave.
    for slot in entering:
        history.enter(slot)
    for slot in leaving:
        history.take_out(slot)

    # 2. The policy's stages cut the history, each after the previous stage; then its last resort cuts to the limit.
    context = context._replace(tokens=history.tokens, messages=history.messages)
    for stage in policy.stages:
        for cut in stage.cuts(context):
            yield from _carry_out(cut, history, policy, summaries, context.turn)
        if context.tokens != history.tokens:
            context = context._replace(tokens=history.tokens, messages=history.messages)
    yield from _carry_out(policy.last_resort(context), history, policy, summaries, context.turn)

    # 3. The window takes precedence over the policy's default floor of one message.
    window_left = context.usable - context.others
    is_over = context.window > 0 and history.tokens > window_left
    if is_over and cuttable is not None:
        is_over = history.tokens - cuttable(history) > window_left
    if is_over and policy.floor == Floor():
        while history.tokens > window_left and (unit := history.next_unit()) is not None:
            history.drop(unit, DROPPED)

    # 4. The request begins with the role that its provider requires.
    if start_on != "any":
        history.begin_with(start_on, context.turn)

    # 5. The floor may require an error if the history exceeds its limit.
    over = history.tokens - max(0, context.limit)
    if over > 0 and policy.floor.conflict == "raise":
        floor = policy.floor
        raise ValueError(
            f"The history budget of turn {context.turn} is {max(0, context.limit):,} tokens, but its floor "
            f"({floor.unit}: {floor.least:,}) "
            f"needs {history.tokens:,} ({over:,} too many). Lower the floor, raise the history budget, or set "
            "conflict='exceed' "
            "or conflict='shrink'."
        )
    return summaries


def _carry_out(
    cut: Cut, history: History, policy: Policy, summaries: list[WrittenSummary], turn: int
) -> SummarisingCut | tuple[()]:
    """Make one cut, returning a generator if it needs summaries."""
    if cut.compaction is not None:
        return _compact(cut.compaction, history, summaries)
    if cut.order == "results" and (cut.intact_tokens or cut.least_gain):
        _clear_results(cut, history)
    elif cut.order == "results":
        _shrink_results(cut, history)
    elif cut.whole_turns:
        _drop_turns(cut, history, turn)
    elif cut.rounds is None:
        _drop(cut, history, policy)
    else:
        return _summarise(cut, cut.rounds, history, policy, summaries)
    return ()


def _drop(cut: Cut, history: History, policy: Policy) -> None:
    """Drop units until a size, a turn or the floor is reached."""
    while cut.before_turn is not None or history.tokens > cut.down_to:
        unit = history.next_unit(cut.order == "importance")
        if unit is None or (
            cut.before_turn is not None and history.last_turn(unit) >= cut.before_turn
        ):
            return
        if not history.may_leave(unit, policy.floor):
            return
        history.drop(unit, DROPPED)


def _drop_turns(cut: Cut, history: History, current: int) -> None:
    """Drop whole turns, then steps of the current turn, to a size.

    The question and the newest step of the current turn are kept. In this example the limit is 10 tokens, and the
    messages q1 a1 q2 s2 s3 have 4 tokens each; s2 and s3 are steps of the turn that q2 starts:

        after turn 1    q2 s2 s3    12
        after a step    q2 s3        8
    """
    units = sorted(history.members)
    turns = [history.last_turn(unit) for unit in units]
    first = next((place for place, turn in enumerate(turns) if turn >= current), len(units))

    place = 0
    while place < first:
        # A partly dropped turn is dropped completely.
        if history.tokens <= cut.down_to and (place == 0 or turns[place] != turns[place - 1]):
            return
        history.drop(units[place], DROPPED)
        place += 1
    roles = history.slots.role
    steps = [unit for unit in units[first:] if not roles or roles[unit] != "user"]
    for unit in steps[:-1]:
        if history.tokens <= cut.down_to:
            return
        history.drop(unit, DROPPED)


def _shrink_results(cut: Cut, history: History) -> None:
    """Replace the oldest tool results with placeholders, down to the target size.

    The newest tool results that the cut leaves intact are not replaced.
    """
    intact = cut.intact
    if cut.calls_intact:
        # The results of one call are one unit: the results of the newest calls stay whole.
        calls = sorted({history.slots.unit[slot] for slot in history.whole_results})
        newest = set(calls[max(0, len(calls) - cut.intact) :])
        intact = sum(history.slots.unit[slot] in newest for slot in history.whole_results)
    while history.tokens > cut.down_to and (slot := history.next_result(intact)) is not None:
        if history.size[slot] > cut.placeholder:
            history.shrink(slot, cut.placeholder)


def _clear_results(cut: Cut, history: History) -> None:
    """Shrink all but the newest tool results if that saves enough tokens."""
    if history.whole_tokens - cut.intact_tokens < max(1, cut.least_gain):
        return
    leaving: list[int] = []
    gain = newest = 0  # tokens saved, and tokens of the newest results
    for place, slot in enumerate(sorted(history.whole_results, reverse=True)):
        size = history.size[slot]
        newest += size
        if place < cut.intact or newest <= cut.intact_tokens:
            continue
        if size <= cut.placeholder:
            history.leave_whole(slot)
            continue
        leaving.append(slot)
        gain += size - cut.placeholder
    if gain >= cut.least_gain:
        for slot in reversed(leaving):
            history.leave_whole(slot)
            history.shrink(slot, cut.placeholder)


def _compact(
    compaction: Compaction, history: History, summaries: list[WrittenSummary]
) -> SummarisingCut:
    """Replace most of the history with one summary, if that saves tokens."""
    # The summary of a part saves no more than that of the whole history, which is tested first since it is fast.
    whole = history.tokens
    if tokens_of(compaction.size, whole) + compaction.reattached >= whole:
        return
    leaving = _units_to_compact(compaction, history)
    if not any(unit not in history.summaries for unit in leaving):
        return
    read = sum(history.size[slot] for unit in leaving for slot in history.members[unit])
    size = tokens_of(compaction.size, read)
    if size + compaction.reattached >= read:
        return

    replaced = [slot for unit in leaving for slot in sorted(history.members[unit])]
    last_turn = max(history.last_turn(unit) for unit in leaving)
    for unit in leaving:
        history.drop(unit, SUMMARISED)
    # If only some of the newest messages are kept, the summary follows them; otherwise it precedes the kept ones.
    place = replaced[-1] if compaction.important_only else replaced[0]
    counted = yield place, replaced
    wrote = size if counted is None else counted
    # Tokens are reattached only after a modelled summary, not after one that was really written.
    reattached = compaction.reattached if counted is None else 0
    history.place_summary(place, wrote + reattached, last_turn)
    summaries.append(WrittenSummary(place, wrote, tuple(replaced), read))


def _units_to_compact(compaction: Compaction, history: History) -> list[int]:
    """List the units that a compaction replaces, oldest first.

    An earlier summary is always included, so that a session never has two summaries.
    """
    units = sorted(history.members)

    first = head = 0
    while first < len(units) and units[first] not in history.summaries:
        head += len(history.members[units[first]])
        if head > compaction.keep_head:
            break
        first += 1

    # Go from the newest message to the oldest; the newest message is always kept.
    stays: set[int] = set()
    number = tokens = 0
    for unit in reversed(units[first:]):
        if unit in history.summaries:
            continue
        if compaction.important_only and stays and not history.rank.get(unit):
            continue
        size = sum(history.size[slot] for slot in history.members[unit])
        if number >= max(1, compaction.keep_messages) and tokens + size > compaction.keep_tail:
            break
        stays.add(unit)
        number += len(history.members[unit])
        tokens += size
    return [unit for unit in units[first:] if unit not in stays]


def _summarise(
    cut: Cut, rounds: SummaryRule, history: History, policy: Policy, summaries: list[WrittenSummary]
) -> SummarisingCut:
    while history.tokens > cut.down_to:
        oldest, besides = history.oldest_message()
        if oldest is None or not history.may_leave(oldest, policy.floor, besides):
            return
        before = history.tokens
        wanted = max(1, tokens_of(rounds.share, history.messages))
        replaced: list[int] = []
        last_turn = 0
        while wanted > 0 and (unit := history.next_unit()) is not None:
            is_summary = unit in history.summaries
            if not is_summary and replaced and not history.may_leave(unit, policy.floor):
                break
            members = sorted(history.members[unit])
            replaced += members
            last_turn = max(last_turn, history.last_turn(members[-1]))
            if not is_summary:
                wanted -= len(members)
            history.drop(unit, SUMMARISED)
        read = before - history.tokens
        counted = yield replaced[0], replaced
        wrote = tokens_of(rounds.size, read) if counted is None else counted
        # A summary that saves nothing is not written; the messages it would replace are dropped.
        if wrote >= read:
            history.dropped_tokens += read
            continue
        history.place_summary(replaced[0], wrote, last_turn)
        summaries.append(WrittenSummary(replaced[0], wrote, tuple(replaced), read))
