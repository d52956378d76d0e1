"""Replays of a trace under a budget and a policy.

In each request, the budget determines the limit of the history, and the policy decides which messages to drop. The
prefix that two successive requests share determines the tokens that the provider's prompt cache may hold. Texts are
counted once; a replay under another policy counts nothing again.

A tool call without a result comes from an interrupted answer. No request includes such a call: providers reject it, and
recorded sessions show that programs omit it (see :func:`budgetkit.trace.unpaired`). The output tokens of the call are
still billed.

All requests are sized at once, as columns; then one pass applies the policy. This example has a window of 20 tokens and
one token per letter. The messages are "sss" (system), "qqqqq" (user), "aaaaaaa", "rrrrrr" (user), "bbbb" and "ttttt"
(user):

    request    demand: system, history, current    others    limit    history after the policy    sent
    1                  3       0        5          8         12        0                           8
    2                  3      12        6          9         11        7    slot 1 is gone         16
    3                  3      22        5          8         12       10    slot 2 is gone         18
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import get_args

import numpy as np

from budgetkit.budget import Budget, check_choice
from budgetkit.conversation.engine import with_promise
from budgetkit.counters import Count
from budgetkit.inputs.budgets import (
    DEFAULT_COUNTER,
    AnyBudget,
    AnyCounter,
    AnyModel,
    filled_in,
    read_budget,
    setup_of,
)
from budgetkit.inputs.conversations import AnyTrace, trace_of
from budgetkit.lab.replay.cost import Prices, prices_of
from budgetkit.lab.replay.outcome import Columns, Replay
from budgetkit.lab.replay.prefix import (
    By,
    PrefixLayout,
    billed_outputs,
    new_blocks,
    pauses,
    place,
    requests_of,
)
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache
from budgetkit.message import Message
from budgetkit.models import resolve
from budgetkit.plan import Floats, Ints, Item, allocate, allocate_columns, with_undeclared
from budgetkit.pruning import Policy, Slots, StartOn, policy_of
from budgetkit.pruning.dropping import (
    Visit,
    floor_notices,
    least_tokens,
    pruning_context,
    retain,
    summary_role,
)
from budgetkit.pruning.policies import Chain
from budgetkit.requests import Framing
from budgetkit.trace import DEFAULT_ROLES, Roles, Tally, Trace, Turn, unpaired
from budgetkit.trace.tally import roles_key, unwritable


def replay(
    trace: AnyTrace,
    budget: AnyBudget,
    policy: Policy | str | None = None,
    *,
    counter: AnyCounter | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    roles: Roles | None = None,
    framing: Framing | None = None,
    section: str | None = None,
    by: By = "turn",
    cache: PromptCache | None = None,
    prices: Prices | str | None = None,
    start_on: StartOn = "any",
) -> Replay:
    """Replay a conversation under a budget and a pruning policy.

    Parameters
    ----------
    trace : Trace, str, Path or sequence of messages
        The conversation; a string is the name of a shipped trace or a path.
    budget : Budget, str, Path or callable
        The budget or configuration, the path of its file, a preset, or the name of a preset.
    policy : Policy or str, optional
        The pruning policy, or its name in :data:`budgetkit.pruning.policies.NAMED`, such as "oldest first" or
        "octopus"; default: the policy that a configuration names.
    counter : callable or str, optional
        Function that counts the tokens in a text, or a counter's name; default: the counter of `model`, or o200k_base.
    model : str or Model, optional
        The model that answers, which determines the window of a preset, the counter and the framing.
    window : int, optional
        Context window, in tokens, in place of the window of the budget or the model.
    roles : mapping or callable, optional
        Section of each role, or a function that returns a message's section; default: the roles of the budget.
    framing : Framing, optional
        Tokens that a message costs beyond its text; default: the framing of the trace's own model.
    section : str, optional
        Section that the policy prunes; default: the section of earlier user messages.
    by : {"turn", "request", "usage"}
        Requests to replay: one per turn, one per answer of the model, or one per request billed by the provider.
    cache : PromptCache, optional
        The provider's prompt cache, one of :data:`budgetkit.lab.replay.cost.CACHES` or your own; default: the ideal
        cache, "longest prefix". A price for cached tokens in `prices` takes precedence over the cache's own price.
    prices : Prices or str, optional
        Token prices, or the name of a model with these prices; see :func:`budgetkit.lab.replay.cost.prices`. For a
        name, the price of cache writes is that of the cache's lifetime.
    start_on : {"user", "any"}
        Role of the first message after the system messages; see :class:`budgetkit.Conversation`.

    Returns
    -------
    Replay
        The outcome. Its methods return frames of the requests, the sections and the messages.

    Raises
    ------
    LookupError
        If a message belongs to a section that the budget does not declare.
    ValueError
        If there is no policy, or if the policy's floor does not fit and the floor's `conflict` is "raise".

    Examples
    --------
    >>> import budgetkit as bk
    >>> trace = bk.load_trace("support-chat")
    >>> budget = bk.presets.working_memory(4_000, output=500, history_floor=0)
    >>> outcome = bk.replay(trace, budget, bk.policies.OldestFirst())
    >>> bool((outcome.frame()["sent"] <= 3_500).all())
    True
    """
    # 1. The arguments, converted from any supported form.
    check_choice("start_on", start_on, get_args(StartOn))
    trace = trace_of(trace)
    budget = read_budget(budget)
    model, counter, policy = filled_in(budget, model, counter, policy)
    if policy is None:
        raise ValueError(
            "Missing policy. Pass policy='oldest first', another policy, or a configuration that names one."
        )
    if model is None:
        counter = DEFAULT_COUNTER if counter is None else counter
        framing = trace.framing_of(counter, framing)
        model = None if trace.model is None else resolve(trace.model)
    setup = setup_of(budget, counter, framing, model, window)
    budget = setup.budget
    count = setup.counter
    framing = setup.framing
    policy = policy_of(policy)
    if roles is None:
        roles = budget.roles or DEFAULT_ROLES

    # 2. The demand of every request, counted once and cached with the trace.
    demand = demand_of(trace, count, roles, framing, section, by)
    placed = demand.placed
    section = placed.section

    # 3. The limit of the history, and the tokens of the other sections.
    budget = with_undeclared(replace(budget, deficit="signed"), demand.sections)
    columns, others, limits = limits_of(
        budget, demand.sections, section, lambda name: demand.uncut[name]
    )
    first_changes = placed.boundaries(columns)

    # 4. The policy prunes the history, request by request.
    contexts = map(
        pruning_context,
        (limits - demand.pinned).tolist(),
        (others + demand.pinned).tolist(),
        repeat(budget.usable),
        repeat(budget.window),
        [request.number for request in placed.requests],
        np.nan_to_num(demand.pauses).tolist(),
    )
    edges = np.maximum(first_changes, 0).tolist()
    visits = [*map(Visit, contexts, demand.entering, edges, demand.leaving)]
    summaries: dict[int, Message] = {}  # by the first message that each replaces

    def measure(slots: list[int]) -> int | None:
        text = policy.write([summaries.get(slot, trace.messages[slot]) for slot in slots])
        if text is None:
            return None
        summary = Message({"role": summary_role(start_on), "content": text})
        summaries[slots[0]] = summary
        return framing.message(summary, count)

    retained = retain(demand.slots(trace, policy), visits, policy, measure, start_on)

    # 5. The sent tokens: the pruned history, pinned messages, and the other sections.
    history = np.array(retained.tokens, "int64") + demand.pinned
    over = np.array(retained.over, "int64")
    demands = {**demand.sections, section: history}
    columns = allocate_columns(budget, demands, len(history))
    granted = {name: column["granted"].copy() for name, column in columns.items()}
    if policy.floor.conflict == "shrink":
        # The other sections shrink for the history's floor; only the tokens still missing are over.
        for row in np.flatnonzero(over).tolist():
            tokens = {name: int(column[row]) for name, column in demands.items()}
            plan = allocate(with_promise(budget, section, tokens[section]), tokens)
            for grant in plan.grants:
                granted[grant.section][row] = grant.granted
            over[row] = max(0, -plan.free)
    granted[section] = history
    sent = sum(granted.values(), np.zeros_like(history))

    # 6. The prefix shared with the previous request, and its cached part.
    slots, tokens_before = np.array(retained.equal_to), np.array(retained.equal)
    equal = placed.equal_prefix(first_changes, slots, tokens_before, sent)
    # The priming starts the answer, so it is not part of the prefix of the next request.
    prefix = np.maximum(sent - placed.tally.priming, 0)
    head = np.minimum(placed.head(), prefix)
    equal = np.minimum(equal, prefix)
    cache = cache or CACHES[IDEAL]
    cached, written = cache.split(prefix, head, equal, demand.pauses, demand.new_blocks)
    # The price of cached tokens differs among models of one provider.
    paid = prices_of(prices, cache.is_for_an_hour)
    doubts = []
    if paid is not None and paid.input and paid.input.base:
        if paid.cache_read:
            cache = replace(cache, read=paid.cache_read.base / paid.input.base)
        write = paid.cache_write if cache.is_for_an_hour else None
        if write and write.base < cache.write * paid.input.base:
            doubts.append(
                f"Cache writes for an hour cost {cache.write:g} times the input price, but cache_write is "
                f"${write.base:g} per million tokens. Look the prices up with hour=True."
            )
        elif write:
            cache = replace(cache, write=write.base / paid.input.base)

    # 7. A warning for the request with the history furthest below its floor.
    sizes = zip(limits.tolist(), demand.sections[section].tolist(), strict=True)
    notices = sorted(
        (left, notice)
        for left, wanted in sizes
        for notice in floor_notices(budget, section, wanted, left)
    )
    return Replay(
        trace=trace,
        budget=budget,
        policy=policy,
        cache=cache,
        placed=placed,
        kept=retained,
        columns=columns,
        granted=granted,
        over=over,
        equal=equal,
        cached=cached,
        written=written,
        output=demand.output,
        prices=paid,
        warnings=(*doubts, *(notice for _, notice in notices[:1])),
    )


@dataclass(frozen=True, eq=False)
class TraceDemand:
    """A conversation's demand in each request, independent of budget and policy.

    The demand is computed once for each conversation.
    """

    placed: PrefixLayout
    # for each request: tokens that each section asks for, those in the history's section that no policy may prune,
    # those of its answer, the seconds and blocks since the previous request, and the messages that enter and leave
    sections: Mapping[str, Ints]
    pinned: Ints
    output: Ints
    pauses: Floats
    new_blocks: Ints
    entering: list[list[int]]
    leaving: list[list[int]]
    # for each message: its turn, and whether it is a tool's result that may be cut
    turns: list[int]
    is_result: list[bool]

    @property
    def section(self) -> str:
        """The section of the history."""
        return self.placed.section

    def slots(self, trace: Trace, policy: Policy) -> Slots:
        """Return the messages in the form used by policies."""
        units = self.units[policy.unit == "turn"]
        importance = _importance(policy, trace.messages)
        arriving = [*map(policy.arriving, self.placed.tokens.tolist(), self.is_result)]
        return Slots(arriving, units, self.turns, self.is_result, importance, [*trace.roles])

    @cached_property
    def uncut(self) -> Mapping[str, Ints]:
        """The fewest tokens that cuts can leave in each section and request."""
        tally = self.placed.tally
        past, present = ([*map(_shortened, items)] for items in (tally.past, tally.present))
        shortened = replace(tally, past=past, present=present, retrieved={})
        frame = shortened.demand(self.placed.requests, list(self.sections))
        return {str(section): frame[section].to_numpy() for section in frame.columns}

    @cached_property
    def units(self) -> dict[bool, list[int]]:
        """The first message of each message's pruning unit.

        A pruning unit is a group of messages that are pruned together.

        The units under the key True are turns, and the units under False are tool calls with their results.
        """
        return {
            by_turn: _units(self.placed.tally, self.turns, by_turn) for by_turn in (False, True)
        }


def _shortened(item: Item) -> Item:
    """Return an item with the fewest tokens that cuts can leave."""
    least = least_tokens(item.payload, item.tokens)
    return item if least == item.tokens else replace(item, tokens=least)


def _importance(policy: Policy, messages: Sequence[Message]) -> list[int]:
    """Return the importance of each message under a policy."""
    if type(policy).importance is Policy.importance:
        return [0] * len(messages)
    if isinstance(policy, Chain) and type(policy).importance is Chain.importance:
        columns = [_importance(part, messages) for part in policy.policies]
        return [sum(row) for row in zip([0] * len(messages), *columns, strict=True)]
    return [*map(policy.importance, messages)]


def demand_of(
    trace: Trace, count: Count, roles: Roles, framing: Framing, section: str | None, by: By
) -> TraceDemand:
    """Return the demand of each request, and cache it with the trace."""

    def counted() -> TraceDemand:
        requests = requests_of(trace, by)
        tally = trace.tally(count, roles, framing)
        placed = place(tally, requests, section or trace.history_section(roles), unpaired(trace))
        history = placed.section
        names = [] if callable(roles) else list(roles.values())
        frame = placed.tally.demand(requests, [*names, history])
        sections = {
            str(s): frame[s].to_numpy() for s in frame.columns if frame[s].any() or s == history
        }

        # Pinned is the demand of the history section beyond the entered messages that were not removed.
        sizes = np.where(placed.prunable, placed.tokens, 0)
        entered, left = (
            np.bincount(at, sizes, len(requests) + 1) for at in (placed.entry, placed.leave)
        )
        return TraceDemand(
            placed=placed,
            sections=sections,
            pinned=sections[history] - np.cumsum((entered - left).astype("int64"))[:-1],
            # All replays share this array, so it must not change.
            output=unwritable(billed_outputs(trace.answers(count, framing), requests, by)),
            pauses=pauses(trace.messages, requests),
            new_blocks=new_blocks(trace.messages, requests),
            turns=trace.turn_numbers.tolist(),
            is_result=[message.is_cuttable for message in trace.messages],
            entering=_by_request(placed.entry, requests),
            leaving=_by_request(placed.leave, requests),
        )

    key = ("asked", count, framing, roles_key(roles), section, by)
    return trace.once(key, counted)


def limits_of(
    budget: Budget, sections: Mapping[str, Ints], history: str, uncut: Callable[[str], Ints]
) -> tuple[Columns, Ints, Ints]:
    """Return each request's plan, the other sections' tokens, and the history's limit.

    A section that is cut loses only passages and tool results, down to its `uncut` tokens. The history may take at most
    the tokens that the other sections leave, regardless of its floor. Replays and forecasts use the same limit.
    """
    columns = allocate_columns(budget, sections, len(sections[history]))
    others = np.zeros_like(sections[history])
    for section, column in columns.items():
        if section != history:
            granted = column["granted"]
            others += np.maximum(granted, uncut(section)) if column["cut"].any() else granted
    return columns, others, np.minimum(columns[history]["limit"], budget.usable - others)


def _by_request(places: Ints, requests: Sequence[Turn]) -> list[list[int]]:
    """Group messages by the request in which they enter or leave."""
    slots: list[list[int]] = [[] for _ in requests]
    for slot, request in enumerate(places.tolist()):
        if request < len(slots):
            slots[request].append(slot)
    return slots


def _units(tally: Tally, turns: list[int], by_turn: bool) -> list[int]:
    """Return the first message of each message's pruning unit.

    A tool call and its results are one unit. If `by_turn` is True, a turn is one unit too.
    """
    # Messages that share a call or a turn form groups, each led by its first message (union and find): of four
    # messages, where 1 calls and 2 answers it, the leaders are 0 1 1 3.
    first: dict[object, int] = {}
    leader = list(range(len(turns)))

    def lead(slot: int) -> int:
        while leader[slot] != slot:
            leader[slot] = slot = leader[leader[slot]]
        return slot

    for slot, item in enumerate(tally.past):
        of_turn = ("turn", turns[slot]) if by_turn and turns[slot] else None
        for key in filter(None, (item.group, of_turn)):
            of_slot = lead(slot)
            of_key = lead(first.setdefault(key, slot))
            leader[max(of_slot, of_key)] = min(of_slot, of_key)
    return [lead(slot) for slot in range(len(turns))]
