"""Engine: prune, plan and write the requests of a conversation.

:class:`Conversation` controls access by threads and tasks. A request takes five steps: compute the demand of every
section, compute the limit of the history, apply the policy's cuts, shorten new messages, and plan, cutting texts that
do not fit. The whole request is then counted as its provider bills it. If the request is too large, the steps are
repeated.

In this example the window has 40 tokens, 10 of which are reserved, each letter is one token, and the policy writes the
summary "S". After "sss" (system), "qqqqq", "aaaaaaa", "rrrrrr" and "bbbbbbbbb" (user and assistant in turn), the user
asks "tttt":

    demand          system 3, history 27, current 4             34 tokens, of which 30 fit
    limit           23 for the history: 30 minus system and current
    summaries       {1: "S"}                                    sent in place of slot 1, "qqqqq"
    the request     sss S aaaaaaa rrrrrr bbbbbbbbb tttt         30 tokens
    removed         qqqqq, summarised
    last_stamps     before [1, 2, 3, 4], now [1, 7, 3, 4, 5, 6] only the first message is unchanged: `stable` is 1
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import takewhile
from operator import eq
from typing import Any
from zlib import crc32

from budgetkit.budget import Budget, brief, warn_caller
from budgetkit.conversation.assembly import describe
from budgetkit.conversation.rules import RequestRules
from budgetkit.conversation.running_tally import (
    RunningTally,
    TallyEntry,
    TallyPassage,
    drop_passages,
    sent_at_least,
    shorten_results,
    unchanged_on_error,
)
from budgetkit.conversation.sent import Removal, Request, SentRequest, Why, is_sum
from budgetkit.message import RESULT_ROLES, SYSTEM_ROLES, Message, empty_notices
from budgetkit.plan import Plan, allocate, with_undeclared
from budgetkit.plan.advice import missing_answer_notices
from budgetkit.pruning import SHRUNK, WHOLE, StartOn
from budgetkit.pruning.dropping import Steps, floor_notices, prune, pruning_context, summary_role
from budgetkit.pruning.policies import DropToolResults
from budgetkit.requests.reading.tools import write_tools
from budgetkit.requests.reading.writing import as_they_came, system_text
from budgetkit.trace import json_value

RequestSteps = Generator[list[Message], object, Request]
_MOST_ROUNDS = 4  # rounds of cutting until the whole request fits
_MOST_DEAD_SLOTS = 256  # slots that removed messages may take up


@dataclass
class Engine:
    """The state from which a conversation's next request is made.

    Slots are positions of messages in the conversation; see :mod:`budgetkit.conversation.running_tally`.
    """

    tally: RunningTally
    # warnings of the next request, and the summaries written for it
    notes: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    # the messages removed at the next request, and those that each of its summaries replaces
    removals: dict[int, Removal] = field(default_factory=dict)
    replaced: dict[int, set[int]] = field(default_factory=dict)
    # the last request in its provider's format, or None for a chat of plain texts
    sent: SentRequest | None = None
    bare_demand: int = 0  # total demand, with each message counted alone

    def __post_init__(self) -> None:
        self.rules = self.tally.rules
        self.budget = self.rules.budget
        self.policy = self.rules.policy
        self.planning_budget = with_undeclared(
            replace(self.budget, deficit="signed"), [self.rules.section]
        )

    @property
    def first_speaker(self) -> StartOn:
        """The role of the first message after the system messages, or "any"."""
        return self.rules.first_speaker(self.tally.form)

    def next(self) -> RequestSteps:
        """Yield the messages to summarise, and return the next request."""
        history = self.tally.history
        with unchanged_on_error(self, self.tally, history, history.slots):
            return (yield from self._steps())

    def _steps(self) -> RequestSteps:
        """Cut the conversation until the whole request fits, and build the request."""
        tally = self.tally
        self.notes = missing_answer_notices(self.budget)
        self.texts = []
        self.removals = {}
        self.replaced = {}
        left: list[Removal] = []
        for _ in range(_MOST_ROUNDS):
            plan = yield from self._cut(left)
            # The order of a request: earlier turns and summaries, passages, this turn.
            by_slot = tally.entries | tally.summaries
            order = sorted(
                (tally.sent_after(slot, by_slot[slot].message), slot)
                for slot in by_slot.keys() - tally.unsent
            )
            entries = [by_slot[slot] for _, slot in order]
            if tally.passages:
                turn_start = sum(place < tally.start for place, _ in order)
                entries[turn_start:turn_start] = [
                    _passage(passage, tally.turn) for passage in tally.passages
                ]
            tokens = self._count(entries)
            if tokens - self.bare_demand == tally.surplus:
                break
            tally.surplus = tokens - self.bare_demand
            plan = self._plan()
            if _missing(plan) <= 0:
                break
        tally.sizes.end_request()
        tally.requests += 1
        summarised = self._summarised()
        removals = [
            Removal(gone.message, "summarised") if slot in summarised else gone
            for slot, gone in sorted(self.removals.items())
        ]

        # The warnings; a request that is too large causes a warning or an error.
        missing = _missing(plan)
        above = [
            f"Section {brief(g.section)} is sent whole with {g.demand:,} tokens, {g.cut:,} above its limit of "
            f"{g.limit:,}. Raise the limit, or shorten the texts."
            for g in plan.grants
            if g.cut
        ]
        notices = [*dict.fromkeys(self.notes), *above]
        if missing > 0:
            over = (
                f"The request of {tokens:,} tokens exceeds the usable window by {missing:,}, and nothing more can be "
                "dropped. Shorten the question or the system message, lower the floor, or use a larger window."
            )
            is_strict = self.rules.overrun == "warn" and self.budget.deficit == "raise"
            if self.rules.overrun == "raise" or is_strict:
                raise ValueError(over)
            if self.rules.overrun == "warn":
                warn_caller(over)
            notices.insert(0, over)
        if self.sent is None:
            notices += empty_notices(entry.message for entry in entries)

        # Tools are sent in the format of the messages. Before any message has a format, tools keep their own, except
        # for those of an MCP server.
        has_form = self.rules.form or tally.forms
        tools, foreign = write_tools(tally.tools, tally.form if has_form else "any")
        if foreign:
            notices.append(
                f"The provider may reject tools of another format: {', '.join(foreign)}. Leave them out."
            )

        # The number of leading messages that are unchanged since the last request.
        stamps = [entry.stamp for entry in entries]
        stable = len([*takewhile(bool, map(eq, tally.last_stamps, stamps))])
        tally.last_stamps = stamps
        messages: list[dict[str, Any]] = [entry.message.raw for entry in entries]  # type: ignore[misc]  # read as dicts

        # The text about the budget comes last, so that it changes nothing before it.
        if self.rules.tell and (
            text := describe(plan, self.rules.count, framing=self.rules.framing)
        ):
            state = Message({"role": "system", "content": text})
            last = TallyEntry(message=state, tokens=0, past="", present="", stamp=-1)
            sent = self.sent
            total = self._count([*entries, last])
            if total <= self.budget.usable:
                tokens = total
                messages.append(dict(state.raw))
            else:
                self.sent = sent

        # Calls without a result, and results without a call, are listed, too. Slots of removed messages are discarded.
        waiting = [
            Removal(tally.entries[slot].message.raw, "unanswered") for slot in sorted(tally.unsent)
        ]
        if len(tally.history.slots) > _MOST_DEAD_SLOTS + 2 * len(tally.entries):
            tally.compact()
        return Request(
            messages=messages,
            tools=tools,
            plan=plan,
            tokens=tokens,
            over=max(0, missing),
            left=(*removals, *left, *waiting),
            summaries=tuple(self.texts),
            stable=stable,
            warnings=tuple(notices),
        )

    def _cut(self, left: list[Removal]) -> Generator[list[Message], str, Plan]:
        """Prune the history, shorten large messages, and return the plan.

        Each removal is added to `left`.
        """
        tally = self.tally
        history = tally.history
        section = self.rules.section

        # 1. The demand of every section, as if nothing had to be dropped from the history.
        demand = tally.with_surplus(tally.demand())
        self.planning_budget = with_undeclared(self.planning_budget, demand)
        plan = allocate(self.planning_budget, demand)

        # 2. The limit of the history, and the tokens of the other sections. `pinned` are the tokens of the history's
        # section that no policy may change, such as those of this turn.
        entering = tally.entering()
        arrived = sum(tally.entries[slot].tokens for slot in entering)
        pinned = demand[section] - tally.entered - arrived
        beside_history = pinned + sum(
            sent_at_least(tally, grant) if grant.cut else grant.granted
            for grant in plan.grants
            if grant.section != section
        )
        context = pruning_context(
            limit=plan[section].limit - pinned,
            others=beside_history,
            usable=self.planning_budget.usable,
            window=self.planning_budget.window,
            turn=tally.turn,
        )

        # 3. The policy's cuts, which ask for texts of summaries.
        self.notes += floor_notices(
            self.planning_budget, section, demand[section], context.limit + pinned
        )
        # A tool result that the policy cannot cut causes a warning.
        clears = any(isinstance(stage, DropToolResults) for stage in self.policy.stages)
        for slot in entering:
            entry = tally.entries[slot]
            is_fixed = entry.message.role in RESULT_ROLES and not entry.message.is_cuttable
            shortens = clears or self.policy.arriving(entry.tokens, True) < entry.tokens
            if is_fixed and shortens:
                self.notes.append(
                    f"A tool result of {entry.tokens:,} tokens contains an image or a file, which cannot be cut to the "
                    "policy's size. Send a smaller one."
                )
        history.begin(tally.requests)
        steps = prune(
            history,
            self.policy,
            context,
            entering,
            start_on=self.first_speaker,
            cuttable=tally.cuttable if self.rules.shorten else None,
        )
        yield from self._summarise(steps, left)

        # 4. The new messages that the policy shortens on arrival.
        tally.enter(entering, arrived)
        left += self._apply_removals()
        sizes = history.slots.tokens
        for slot in entering:
            arrived_as = tally.entries.get(slot)
            is_whole = history.state[slot] == WHOLE
            if arrived_as is not None and is_whole and sizes[slot] < arrived_as.tokens:
                message = self.rules.shortened(arrived_as.message, sizes[slot])
                tally.restamp(slot, message, sizes[slot])
                self._record_removal(slot, arrived_as.message, "shortened")

        # 5. Each section over its limit drops passages and shortens tool results; then all sections do.
        plan = self._plan()
        cut_grants = [grant for grant in plan.grants if grant.cut and grant.section != section]
        if self.rules.shorten and (cut_grants or _missing(plan) > 0):
            for grant in cut_grants:
                left += drop_passages(tally, self.budget, grant.section, grant.granted)
                self._shorten(tally.demand()[grant.section] - grant.granted, grant.section)
            self._shorten(_missing(self._plan()))
            plan = self._plan()
            # A section sent in full above its cap leaves fewer tokens than planned, so more passages are dropped.
            required = {line.section for line in self.budget.allocations if line.required}
            for grant in plan.grants:
                if (missing := _missing(plan)) > 0 and grant.section not in required:
                    left += drop_passages(tally, self.budget, grant.section, grant.demand - missing)
                    plan = self._plan()
        return plan

    def _shorten(self, excess: int, section: str | None = None) -> None:
        """Shorten tool results until enough tokens are saved."""
        for slot, message in shorten_results(self.tally, excess, section):
            self._record_removal(slot, message, "shortened")

    def _plan(self) -> Plan:
        """Allocate the budget to all demands, with the current history."""
        tally = self.tally
        section = self.rules.section
        demand = tally.demand()
        demand[section] += tally.history.tokens - tally.entered
        self.bare_demand = demand.total()
        demand = tally.with_surplus(demand)
        plan = allocate(self.planning_budget, demand)
        if self.policy.floor.conflict == "shrink" and plan[section].cut:
            return allocate(with_promise(self.planning_budget, section, demand[section]), demand)
        return plan

    def _count(self, entries: list[TallyEntry]) -> int:
        """Count the tokens of a request that consists of the given messages.

        In a chat of plain texts without a text about the budget, the result is the sum of the sections' demands.
        """
        tally = self.tally
        framing = self.rules.framing
        self.sent = None
        is_text = tally.is_text and not (tally.toolset.uncounted or self.rules.tell)
        if is_text and tally.form == "chat" and is_sum(framing):
            return self.bare_demand
        # A passage is sent as a system message, has a stamp below 0, and stays where it is.
        is_system = [entry.message.role in SYSTEM_ROLES and entry.stamp >= 0 for entry in entries]
        head = [*is_system, False].index(False)
        raws = [entry.message.raw for entry in entries]
        self.sent = SentRequest.of(raws, tally.form, framing, tally.toolset, head)
        return self.sent.tokens(tally.sizes)

    def in_form(self, request: Request) -> Request:
        """Return a request with its messages in the provider's format."""
        if self.sent is None:
            return request
        messages = self.sent.written
        return replace(
            request,
            messages=messages.messages,
            system=system_text(request.messages[: messages.head], messages.form),
            left=tuple(
                replace(left, message=record)
                for left in request.left
                for record in as_they_came(left.message)
            ),
            stable=messages.unchanged(request.stable),
            warnings=(*request.warnings, *self.sent.warnings),
        )

    def _summarise(
        self, steps: Steps, left: list[Removal]
    ) -> Generator[list[Message], object, None]:
        """Insert the summaries that the policy requests."""
        rules = self.rules
        entries = self.tally.entries
        summaries = self.tally.summaries
        texts = []
        try:
            place, replaced = next(steps)
            while True:
                text = yield [(summaries.get(slot) or entries[slot]).message for slot in replaced]
                if not isinstance(text, str):
                    if inspect.iscoroutine(text):
                        text.close()
                    raise TypeError(
                        f"Invalid summary: a value of type {type(text).__name__}. Return a string, or await arequest()."
                    )
                if not text.strip():
                    raise ValueError("The summary is empty. Return a text from the function.")
                for slot in self.replaced.keys() & {*replaced}:  # written for this request
                    left.append(Removal(summaries[slot].message.raw, "summarised"))
                    self.notes.append(
                        "A summary was summarised again before it was sent, because the history was still too long. "
                        "Write shorter summaries, or let each one replace more messages."
                    )
                message = Message(
                    {"role": summary_role(self.first_speaker), "content": json_value(text)}
                )
                tokens = rules.framing.message(message, rules.count)
                self.tally.stamps += 1
                summaries[place] = TallyEntry(
                    message=message,
                    tokens=tokens,
                    past=rules.section,
                    present=rules.section,
                    stamp=self.tally.stamps,
                )
                self.replaced[place] = {*replaced}.union(
                    *(self.replaced.pop(slot, ()) for slot in replaced)
                )
                texts.append((place, tokens, message.text))
                place, replaced = steps.send(tokens)
        except StopIteration as stop:
            placed = {(place, tokens) for place, tokens, *_ in stop.value}
            self.texts += [text for place, tokens, text in texts if (place, tokens) in placed]

    def _apply_removals(self) -> Iterator[Removal]:
        """Remove dropped messages, write placeholders, and yield lost summaries."""
        tally = self.tally
        history = self.tally.history
        for slot in sorted({*history.changed}):
            before = tally.entries[slot].message
            if history.gone[slot] >= 0:
                del tally.entries[slot]
                self._record_removal(slot, before, "dropped")
            elif history.state[slot] == SHRUNK:
                message = self.rules.shortened(before, history.size[slot], "placeholder")
                tally.restamp(slot, message, history.size[slot])
                self._record_removal(slot, before, "shrunk")

        # A summary that was dropped, and is not part of another summary, is lost.
        for place, entry in [*tally.summaries.items()]:
            if place in history.summaries:
                continue
            del tally.summaries[place]
            if place not in self._summarised():
                self.notes.append(
                    f"A summary of {entry.tokens:,} tokens was not sent, because it is longer than the history budget "
                    "or the messages it replaces. Write shorter summaries, or raise the history budget."
                )
                yield Removal(entry.message.raw, "dropped")

    def _record_removal(self, slot: int, message: Message, why: Why) -> None:
        """Record a removal, with the message as it was before this request."""
        first = self.removals.get(slot)
        self.removals[slot] = Removal(first.message if first else message.raw, why)

    def _summarised(self) -> set[int]:
        """Return the slots replaced by the summaries of this request."""
        standing = self.tally.history.summaries
        return {slot for place in standing for slot in self.replaced.get(place, ())}


def with_promise(budget: Budget, section: str, floor: int) -> Budget:
    """Return the budget with a guaranteed floor for one section.

    The section gets the default importance, and a cap below the floor is raised.
    """
    cap = budget.caps[section]
    return budget.assign(
        **{
            section: {
                "floor": floor,
                "importance": 5,
                "cap": None if cap is None else max(cap, floor),
            }
        }
    )


def _passage(passage: TallyPassage, turn: int) -> TallyEntry:
    """Convert a passage to a message that counts as changed every turn."""
    message = Message({"role": "system", "content": passage.message.text})
    stamp = ~crc32(f"{turn} {message.text}".encode("utf-8", "replace"))
    return TallyEntry(message=message, tokens=passage.tokens, past="", present="", stamp=stamp)


def _missing(plan: Plan) -> int:
    """Return the tokens by which a request exceeds the window.

    A section is sent whole even if the plan cuts its demand, so the cut tokens count as well. The number is 0 or
    negative if the request fits.
    """
    return sum(grant.cut for grant in plan.grants) - plan.free


def answered(steps: RequestSteps, write: Callable[[list[Any]], object]) -> Request:
    """Complete a request with the summaries that a function writes."""
    with closing(steps):
        try:
            replaced = next(steps)
            while True:
                replaced = steps.send(write(replaced))
        except StopIteration as stop:
            request: Request = stop.value
            return request


def first_request(
    rules: RequestRules, messages: Sequence[Message], tools: Any = ()
) -> tuple[Request, Engine]:
    """Return the first request of a conversation, and its engine.

    The request is in OpenAI's chat format.
    """
    rules.check(messages)
    tally = RunningTally(rules, tools)
    tally.take(messages)
    engine = Engine(tally)
    return answered(engine.next(), rules.writer()), engine
