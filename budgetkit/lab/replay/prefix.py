"""The prefix that a request shares with the previous request.

A request has this order: opening system messages, tool schemas, earlier turns, passages, this turn. So each request
starts like the previous request, up to the first change: a dropped message, a tool result that became a placeholder, a
passage retrieved for one turn only, or a section cut to another length.

In this example, the messages have 3, 5, 7, 6, 4 and 5 tokens. The first is the system message; the others come from the
user and the assistant in turn:

    slot        0    1    2    3    4    5
    prunable    no   yes  yes  yes  yes  yes
    entry       3    1    1    2    2    3      the request where it enters the history, counting from 0; 3 means never
    earlier     0    3    3    3    3    3      tokens before it that no policy prunes: the system message
    starts      1, 3, 5        sents 2, 4, 6    where the turn of each request starts, and where the request ends

A slot is the position of a message. If slot 1 is dropped in request 1, that request equals request 0 only up to slot 1:
the two requests share 3 tokens, although request 0 has 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from budgetkit.budget import brief, check_choice
from budgetkit.message import RESULT_ROLES, Message
from budgetkit.plan import Flags, Floats, Ints, Item
from budgetkit.requests.reading.usage import seconds
from budgetkit.trace import (
    UNSENT,
    Tally,
    Trace,
    Turn,
    enters_at_once,
    in_line,
    section_beside_call,
    usage_columns,
)

By = Literal["turn", "request", "usage"]


def requests_of(trace: Trace, by: By = "turn") -> tuple[Turn, ...]:
    """List the requests of a conversation.

    Parameters
    ----------
    trace : Trace
        The conversation.
    by : {"turn", "request", "usage"}
        Requests to list: the last request of each turn, one per answer of the model, or one per billed request.

    Returns
    -------
    tuple of Turn
        One `Turn` for each request: `start` is the index of the turn's first message, `sent` is the number of messages
        up to the request, and `number` is the number of the turn.

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
        # One request before each billed answer.
        usage = usage_columns(trace)
        places = usage["message_index"][in_line(usage)]
        if not len(places):
            raise ValueError(f"No usage in trace {brief(trace.id)}. Pass by='request'.")
        starts = np.array([turn.start for turn in trace.turns])
        turns = np.maximum(np.searchsorted(starts, places - 1, "right") - 1, 0)
        billed = zip(map(trace.turns.__getitem__, turns.tolist()), places.tolist(), strict=True)
        return tuple(Turn(turn.number, turn.start, place, turn.end) for turn, place in billed)
    return tuple(request for turn in trace.turns for request in _answered(trace.messages, turn))


def _answered(messages: Sequence[Message], turn: Turn) -> list[Turn]:
    """Return one request for each answer, and one for unanswered last messages."""
    places = range(turn.start + 1, turn.end)
    answered = [i for i in places if messages[i].role == "assistant"] or [turn.sent]
    if messages[turn.end - 1].role != "assistant" and answered[-1] < turn.end:
        answered.append(turn.end)
    return [Turn(turn.number, turn.start, sent, turn.end) for sent in answered]


def billed_outputs(billed: Ints, requests: Sequence[Turn], by: By) -> Ints:
    """Add up the billed output of each request.

    If `by` is "turn", all answers of the turn count; otherwise, only the answer to the request counts.
    """
    if by == "turn":
        outputs = [billed[r.start : r.end].sum() for r in requests]
    else:
        outputs = [billed[r.sent : r.sent + 1].sum() for r in requests]
    return np.array(outputs, "int64")


def new_blocks(messages: Sequence[Message], requests: Sequence[Turn]) -> Ints:
    """Return the number of cache lookback positions that each request adds.

    Examples
    --------
    >>> calls = [{"id": name, "function": {"name": "f", "arguments": ""}} for name in "ab"]
    >>> dialogue = [Message({"role": "user", "content": "Go."}), Message({"role": "assistant", "tool_calls": calls})]
    >>> new_blocks(dialogue, [Turn(1, 0, 1, 2), Turn(1, 0, 2, 2)]).tolist()
    [1, 1]
    """
    return np.diff(block_positions(messages)[[request.sent for request in requests]], prepend=0)


def block_positions(messages: Sequence[Message]) -> Ints:
    """Return the cache lookback position of each message and of the end.

    Each text and each image is one position. Consecutive tool calls count as one position, and so do consecutive tool
    results (Anthropic, Prompt caching, as quoted by others; read 2026-11-23).

    Examples
    --------
    >>> calls = [{"id": name, "function": {"name": "f", "arguments": ""}} for name in "ab"]
    >>> asks = Message({"role": "assistant", "content": "I look.", "tool_calls": calls})
    >>> results = [Message({"role": "tool", "tool_call_id": name, "content": "1"}) for name in "ab"]
    >>> block_positions([Message({"role": "user", "content": "Go."}), asks, *results]).tolist()
    [0, 1, 3, 4, 4]
    """
    sizes = [0]
    after_result = False
    for message in messages:
        texts = len(message.parts) if message.raw.get("content") else 0
        size = max(1, texts + bool(message.tool_calls))
        is_result = message.role in RESULT_ROLES
        sizes.append(int(not after_result) if is_result else size)
        after_result = is_result
    return np.cumsum(sizes, dtype="int64")


def pauses(messages: Sequence[Message], requests: Sequence[Turn]) -> Floats:
    """Return the seconds since the previous request with a time, or NaN.

    The pause is NaN for requests without a time, and for the first request with a time. The pause is 0 if the clock was
    set back.
    """
    times = np.array([seconds(messages[r.sent - 1].raw.get("timestamp")) for r in requests])
    known = np.flatnonzero(~np.isnan(times))
    pause = np.full(len(times), np.nan)
    pause[known[1:]] = np.maximum(np.diff(times[known]), 0)
    return pause


@dataclass(frozen=True, eq=False)
class PrefixLayout:
    """The positions and sizes of a conversation's messages, for pruning one section.

    Derived values are computed once.
    """

    section: str  # the pruned section: the history
    tally: Tally
    requests: Sequence[Turn]
    # for each request: the first message of its turn, and the number of messages up to it
    starts: Ints
    sents: Ints
    # for each message: its tokens, whether it is in no request, whether it can be pruned, the request where it enters
    # the history, and the request where the recorded session itself removes it; the number of requests if that never
    # happens
    tokens: Ints
    unsent: Flags
    prunable: Flags
    entry: Ints
    leave: Ints
    # before each message: the tokens that are never pruned, and those that are not pruned in their own turn
    earlier: Ints
    running: Ints

    @cached_property
    def schemas(self) -> int:
        """Tokens of the tool schemas."""
        return sum(item.tokens for item in self.tally.schemas)

    @cached_property
    def passages(self) -> Ints:
        """Tokens of the passages retrieved for each request."""
        sizes = np.zeros(len(self.tokens), "int64")
        for index, passages in self.tally.retrieved.items():
            sizes[index] = sum(item.tokens for item in passages)
        sums = _sums(sizes)
        return np.asarray(sums[self.sents] - sums[self.starts])

    def head(self) -> int:
        """Return the tokens of the tool schemas and unprunable opening messages."""
        opening = self.tokens[: self.tally.opening][~self.prunable[: self.tally.opening]]
        return int(opening.sum()) + self.schemas

    @cached_property
    def edges(self) -> Ints:
        """Index of the first message that may have changed, for each request.

        The index is -1 for the first request.
        """
        starts = self.starts
        sents = self.sents
        passages = self.passages
        edges = np.full(len(starts), -1, dtype="int64")
        # A request continues at the end of the previous one, unless passages before its turn are gone.
        same_turn = starts[1:] == starts[:-1]
        passages_gone = np.where(same_turn, passages[1:] != passages[:-1], passages[:-1] > 0)
        edges[1:] = np.where(passages_gone, starts[:-1], sents[:-1])

        # A recorded compaction breaks the prefix at the first message that it removed.
        taken_out = self.tally.gone
        for at in np.unique(taken_out[taken_out < len(taken_out)]).tolist():
            request = np.searchsorted(sents, at, "right")
            edges[request:][:1] = np.flatnonzero(taken_out == at)[0]
        return edges

    def boundaries(self, columns: Mapping[str, Mapping[str, Ints]]) -> Ints:
        """Return the index of each request's first possibly changed message.

        In addition to the changes in the layout, a message may change because the budget cuts its section.
        """
        limits = self.edges.copy()
        for section, column in columns.items():
            if section != self.section and column["cut"].any():
                cut = column["cut"] > 0
                differs = (np.diff(column["granted"]) != 0) | (np.diff(column["demand"]) != 0)
                changed = (cut[1:] | cut[:-1]) & differs
                limits[1:][changed] = np.minimum(limits[1:], self._starting(section))[changed]
        return limits

    def equal_prefix(self, limits: Ints, equal_to: Ints, pruned: Ints, sent: Ints) -> Ints:
        """Return the longest prefix shared with the previous request, in tokens.

        For each request, `limits` has the first message that may have changed under any policy, `equal_to` has the
        position up to which the pruned history is unchanged, `pruned` has the tokens of the history before that
        position, and `sent` has the size of the request.
        """
        starts = self.starts
        running = self.running
        passages = self.passages
        # The history up to the slot, and before it the unpruned messages of earlier turns and of this turn.
        earlier = self.earlier[np.minimum(equal_to, starts)]
        of_this_turn = running[np.maximum(equal_to, starts)] - running[starts]
        equal = pruned + earlier + of_this_turn

        # Schemas follow the opening messages; passages lie between the earlier turns and this one.
        equal += np.where(equal_to >= self.tally.opening, self.schemas, 0)
        if passages.any():
            same_passages = (starts == np.roll(starts, 1)) & (passages == np.roll(passages, 1))
            equal += np.where(same_passages & (equal_to >= starts), passages, 0)

        # The prefix is at most as long as the shorter of the two requests.
        before = np.concatenate((sent[:1], sent[:-1]))
        common: Ints = np.minimum(np.where(limits >= 0, equal, 0), np.minimum(sent, before))
        return common

    def _starting(self, section: str) -> Ints:
        """Return the index of a section's first message in each request.

        The last request is left out. The index is -1 if an opening message or a tool schema belongs to the section.
        """
        tally = self.tally
        in_head = [item.section for item in (*tally.past[: tally.opening], *tally.schemas)]
        if section in in_head:
            return np.full(len(self.requests) - 1, -1, dtype="int64")
        sections = [item.section for item in tally.past]
        first = sections.index(section) if section in sections else len(sections)
        starts = self.starts[:-1]
        now = _sums(_in(tally.present, section).astype("int64"))
        # It may start in the turn itself, with a message that goes to another section later.
        of_this_turn = now[self.sents[:-1]] > now[starts]
        return np.where(of_this_turn, np.minimum(first, starts), first)


def place(
    tally: Tally, requests: Sequence[Turn], section: str, unsent: Sequence[int] = ()
) -> PrefixLayout:
    """Lay out a conversation's messages for pruning one section.

    The layout has the first request that can prune each message. The messages in `unsent` count 0 tokens.
    """
    # A result belongs to the section of its call, whatever its role.
    if unsent:
        # Unsent messages count 0 tokens, so that all positions stay valid.
        past, present = list(tally.past), list(tally.present)
        for slot in unsent:
            past[slot] = present[slot] = Item(UNSENT, 0, payload=past[slot].payload)
        tally = replace(tally, past=past, present=present)
    past = _with_calls(tally.past, section)
    # A late result, which follows another user message, is pruned with its call.
    present = _with_calls(tally.present, section)
    turn_starts = {r.start for r in requests}
    callers: dict[object, int] = {}
    start = 0
    for slot, item in enumerate(present):
        if slot in turn_starts:
            start = slot
        caller = callers.setdefault(item.group, slot) if item.group is not None else slot
        if caller < start and past[caller].section == section:
            present[slot] = replace(item, section=section)
    tokens = np.array([item.tokens for item in past], "int64")
    prunable = _in(past, section)
    at_once = np.array(
        [enters_at_once(item.payload.role, item.section, section) for item in present], "bool"
    )

    # A message enters with the request that sends it, or with the first one of a later turn.
    starts = np.array([r.start for r in requests], "int64")
    sents = np.array([r.sent for r in requests], "int64")
    slots = np.arange(len(prunable))
    with_its_request = np.searchsorted(sents, slots, "right")
    after_its_turn = np.searchsorted(starts, slots, "right")
    entry = np.where(at_once, with_its_request, after_its_turn)

    # A message never enters if the recorded session removes it before.
    never = len(requests)
    leave = np.searchsorted(sents, tally.gone, "right")
    entry = np.where(prunable & (entry < leave), entry, never)
    return PrefixLayout(
        section=section,
        tally=replace(tally, past=past, present=present),
        requests=requests,
        starts=starts,
        sents=sents,
        tokens=tokens,
        unsent=_in(past, UNSENT),
        prunable=prunable,
        entry=entry,
        leave=np.where(entry < never, leave, never),
        earlier=_sums(np.where(prunable, 0, tokens)),
        running=_sums(np.where(prunable & at_once, 0, tokens)),
    )


def _with_calls(items: Sequence[Item], section: str) -> list[Item]:
    """Assign the results of calls in the pruned section to that section."""
    sections_of_calls: dict[object, str] = {}
    placed_items = []
    for item in items:
        if item.group is not None:
            of_call = sections_of_calls.setdefault(item.group, item.section)
            beside_call = section_beside_call(item.section, of_call, section)
            if beside_call != item.section:
                item = replace(item, section=beside_call)
        placed_items.append(item)
    return placed_items


def _in(items: Sequence[Item], section: str) -> Flags:
    return np.array([item.section == section for item in items], "bool")


def _sums(tokens: Ints) -> Ints:
    """Return the running sums of tokens, starting at 0."""
    return np.concatenate(([0], np.cumsum(tokens)))
