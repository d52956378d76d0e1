"""Conversation: a running conversation, of which each next request is ready to send.

It is the engine of :func:`budgetkit.replay` (:func:`budgetkit.pruning.retention.prune`), asked one request at a time:
what a policy did to a recorded conversation it does to the same one while it runs.
"""

from __future__ import annotations

import inspect
import threading
import warnings
from asyncio import sleep
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args
from zlib import crc32

from budgetkit.budget import Budget
from budgetkit.budget.allocation import check_choice
from budgetkit.budget.amounts import check_tokens
from budgetkit.counters import counter
from budgetkit.framing import DEFAULT_FRAMING, Framing
from budgetkit.live.assembly import describe
from budgetkit.live.reading import read
from budgetkit.live.request import Left, Request
from budgetkit.live.running_ledger import Count, Line, Rules, RunningLedger
from budgetkit.live.saving import packed, restored, saved, unpack
from budgetkit.live.shortening import fewer_passages, placeholder, shorten_results
from budgetkit.message import Message
from budgetkit.models import Model
from budgetkit.plan import Plan, allocate
from budgetkit.plan.item import Item
from budgetkit.plan.walk import with_undeclared
from budgetkit.pruning.history import SHRUNK, SUMMARISED
from budgetkit.pruning.policies import OldestFirst, Policy, PruningContext, Summarise
from budgetkit.pruning.retention import Steps, prune
from budgetkit.trace import DEFAULT_ROLES
from budgetkit.trace.sections import Roles, past_section

__all__ = ["Conversation"]

Overrun = Literal["warn", "raise", "tell"]
Write = Callable[[list[Any]], "str | Awaitable[str]"]
_ROOM = 256  # slots that what has left may take up
Asks = Generator[list[Message], str, Request]


class Conversation:
    """Keep a running conversation within its budget, and give the messages of its next request.

    Parameters
    ----------
    budget : Budget
        The window and its lines.
    policy : Policy, optional
        What leaves the history, and when; the oldest first when left out.
    count : str, Model or callable
        From text to tokens: a counter, or the name of one or of a model.
    tools : sequence of Mapping
        Tool schemas, counted in and given back with every request.
    summarise : callable, optional
        From the list of messages that a summary replaces to its text; may be an ``async`` function. The policy's own
        when left out.
    tell : bool, default False
        Whether the last message of a request tells the model how its window is used, see
        :func:`budgetkit.assembly.describe`.
    shorten : bool, default True
        Whether tool results too large for the window are cut inside.
    roles, framing, section
        As for :func:`budgetkit.replay`.
    overrun : {"warn", "raise", "tell"}
        What is done where nothing more may leave and the window is overrun all the same: a warning, an error, or the
        request alone tells it. A budget whose deficit is "raise" raises in place of a warning.

    Notes
    -----
    What was sent stays as it was until the policy cuts, so that a prompt cache holds it. What has left is forgotten: it
    takes no memory. Threads and tasks may share a conversation; requests wait for one another.

    Examples
    --------
    >>> import budgetkit as bk
    >>> talk = Conversation(bk.presets.working_memory(4_000, output=500), bk.policies.SlidingWindow(2), "gpt-4o")
    >>> for turn in range(4):
    ...     talk.add({"role": "user", "content": f"Question {turn}"})
    ...     request = talk.request()
    ...     talk.add({"role": "assistant", "content": f"Answer {turn}"})
    >>> [message["content"] for message in request.messages]
    ['Question 1', 'Answer 1', 'Question 2', 'Answer 2', 'Question 3']
    >>> [(left.message["content"], left.why) for left in request.left]
    [('Question 0', 'dropped'), ('Answer 0', 'dropped')]
    """

    def __init__(
        self,
        budget: Budget,
        policy: Policy | None = None,
        count: str | Model | Count = "o200k_base",
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        summarise: Write | None = None,
        tell: bool = False,
        shorten: bool = True,
        roles: Roles | None = None,
        framing: Framing | None = None,
        section: str | None = None,
        overrun: Overrun = "warn",
    ) -> None:
        check_choice("overrun", overrun, get_args(Overrun))
        self.overrun = overrun
        self.budget, self.policy = budget, OldestFirst() if policy is None else policy
        self.tell, self.shorten = tell, shorten
        counting: Count = counter(count) if isinstance(count, str | Model) else count
        table = (budget.roles or DEFAULT_ROLES) if roles is None else roles
        history = section or past_section(Message({"role": "user"}), table)
        rules = Rules(
            counting, framing or DEFAULT_FRAMING, table, history, self.policy.unit == "turn", self.policy.importance
        )
        self._write = self._writer(summarise)
        self._open = with_undeclared(replace(budget, deficit="signed"), [history])
        self._ledger = RunningLedger(rules, [dict(each) for each in tools])
        self._standing: dict[int, Line] = {}
        self._inbox: list[Message] = []
        self._sent: list[int] = []
        self._requests = 0
        self._lock, self._busy = threading.Lock(), threading.Lock()

    def add(self, *messages: Any) -> None:
        """Add what was said.

        Parameters
        ----------
        *messages
            Dictionaries in any format that :func:`budgetkit.load_trace` reads, Messages, or an SDK's objects; or lists
            of them.

        Raises
        ------
        TypeError, ValueError
            If one is no message; then none is added.
        """
        said = read(messages)
        with self._lock:
            self._inbox += said

    def request(self) -> Request:
        """Return the next request.

        Returns
        -------
        Request
            Its messages, tool schemas, plan and tokens, and what left and why.

        Raises
        ------
        ValueError
            If the window is overrun and the budget's deficit is "raise", or the policy's floor does not fit and its
            conflict is "raise"; asked again, it tells the same.
        TypeError
            If the summaries are written by an ``async`` function; await :meth:`arequest`.
        """
        with self._busy:
            return _answered(self._next(), self._write_now)

    async def arequest(self) -> Request:
        """Return the next request, summaries written by an ``async`` function.

        Returns
        -------
        Request
            As :meth:`request` gives it.
        """
        while not self._busy.acquire(blocking=False):  # held over an await: by this loop, another, or a thread
            await sleep(0.001)
        try:
            asks = self._next()
            try:
                replaced = next(asks)
                while True:
                    text = self._write(replaced)
                    replaced = asks.send(await text if inspect.isawaitable(text) else text)
            except StopIteration as stop:
                request: Request = stop.value
                return request
            finally:
                asks.close()
        finally:
            self._busy.release()

    def to_json(self) -> str:
        """Save the conversation between two requests.

        Returns
        -------
        str
            JSON: its budget, its messages and what has become of them. Policy, counter and summariser are code and
            are given again.
        """
        with self._busy, self._lock:
            return saved(self.budget, self._ledger, self._standing, self._inbox, self._sent, self._requests)

    @classmethod
    def from_json(
        cls, text: str, policy: Policy | None = None, count: str | Model | Count = "o200k_base", **more: Any
    ) -> Conversation:
        """Take up a saved conversation.

        Parameters
        ----------
        text : str
            As :meth:`to_json` made it.
        policy, count, **more
            As for the conversation that was saved; budget and tools are in the text.

        Returns
        -------
        Conversation
            Whose next request is that of the one that was saved.

        Raises
        ------
        ValueError
            If the text is no saved conversation.

        Examples
        --------
        >>> from budgetkit import Budget, Allocation
        >>> talk = Conversation(Budget(100, (), [Allocation("history"), Allocation("current")]))
        >>> talk.add({"role": "user", "content": "Hello world"})
        >>> Conversation.from_json(talk.to_json()).request().tokens == talk.request().tokens
        True
        """
        budget, fill = restored(text)
        made = cls(budget, policy, count, **more)
        made._standing, made._inbox, made._sent, made._requests = fill(made._ledger)
        return made

    def _next(self) -> Asks:
        """Bring everything up to date; asks for the texts of summaries on the way."""
        ledger, history, section = self._ledger, self._ledger.history, self._ledger.rules.section
        with self._lock:
            if self._inbox:
                ledger.take(self._inbox)
                self._inbox = []
        demand = ledger.demand()
        self._open = with_undeclared(self._open, demand)
        plan = allocate(self._open, demand)
        entering = ledger.entering()
        entered = ledger.entered + sum(history.slots.tokens[slot] for slot in entering)
        pinned = demand[section] - entered
        others = sum(g.granted for g in plan.grants if g.section != section) + pinned
        limit = plan[section].limit - pinned
        room = PruningContext(0, limit, others, self._open.usable, self._open.window, ledger.turn)
        before, standing = history.saved(), dict(self._standing)
        history.begin(self._requests)
        try:
            texts = yield from self._summarised(prune(history, self.policy, room, entering))
        except BaseException:
            history.go_back(before)
            self._standing = standing
            raise
        self._requests += 1
        ledger.enter(entering)
        left = [*self._settled()]
        return self._fitted(demand, pinned, left, texts)

    def _summarised(self, steps: Steps) -> Generator[list[Message], str, list[str]]:
        """Put a summary wherever one is asked for; returns those that are shorter than what they replace."""
        rules, lines = self._ledger.rules, self._ledger.lines
        asked: list[tuple[int, int, str]] = []
        try:
            replaced = next(steps)
            while True:
                text = yield [(self._standing.get(slot) or lines[slot]).message for slot in replaced]
                message = Message({"role": "assistant", "content": text})
                tokens = rules.framing.message(message, rules.count)
                self._ledger.stamps += 1
                self._standing[replaced[0]] = Line(message, tokens, rules.section, rules.section, self._ledger.stamps)
                asked.append((replaced[0], tokens, text))
                replaced = steps.send(tokens)
        except StopIteration as stop:
            placed = [(place, tokens) for place, tokens, _ in stop.value.written]
            return [text for place, tokens, text in asked if (place, tokens) in placed]

    def _settled(self) -> Generator[Left, None, None]:
        """Forget what left, and write placeholders."""
        ledger, history = self._ledger, self._ledger.history
        self._standing = {place: line for place, line in self._standing.items() if place in history.summaries}
        for slot in sorted({*history.changed}):
            was = ledger.lines[slot].message.raw
            if history.gone[slot] >= 0:
                del ledger.lines[slot]
                yield Left(was, "summarised" if history.state[slot] == SUMMARISED else "dropped")
            elif history.state[slot] == SHRUNK:
                message = placeholder(ledger.lines[slot].message, history.size[slot], ledger.rules)
                ledger.restamp(slot, message, history.size[slot])
                yield Left(was, "shrunk")

    def _fitted(self, demand: Counter[str], pinned: int, left: list[Left], texts: list[str]) -> Request:
        """Plan what is left, and cut inside what the window still has no room for."""
        ledger, section = self._ledger, self._ledger.rules.section
        plan = self._planned(demand, pinned)
        if self.shorten and (_missing(plan) > 0 or any(g.cut for g in plan.grants if g.section != section)):
            for grant in plan.grants:
                if grant.section != section and grant.cut:
                    kept = fewer_passages(ledger, self.budget, grant)
                    left += [Left(each.payload.raw, "dropped") for each in ledger.passages if each not in kept]
                    ledger.passages = kept
                    shortage = ledger.demand()[grant.section] - grant.granted
                    left += shorten_results(ledger, shortage, grant.section)
            before = demand[section]
            demand = ledger.demand()
            pinned += demand[section] - before
            plan = self._planned(demand, pinned)
            if (missing := _missing(plan)) > 0:
                left += shorten_results(ledger, missing)
                pinned += ledger.demand()[section] - demand[section]
                plan = self._planned(ledger.demand(), pinned)
        return self._made(plan, left, texts)

    def _planned(self, demand: Counter[str], pinned: int) -> Plan:
        section, history = self._ledger.rules.section, self._ledger.history
        asked = dict(demand) | {section: max(0, history.tokens + pinned)}
        if self.policy.floor.conflict == "shrink" and allocate(self._open, asked)[section].cut:
            return allocate(promised(self._open, section, asked[section]), asked)
        return allocate(self._open, asked)

    def _made(self, plan: Plan, left: list[Left], texts: list[str]) -> Request:
        ledger = self._ledger
        tokens, missing = sum(grant.demand for grant in plan.grants), _missing(plan)
        told = list(plan.warnings) + [
            f"section {g.section!r} holds {g.demand:,} tokens, {g.cut:,} above its limit of {g.limit:,}; it is sent "
            "whole; raise the limit, or shorten the texts"
            for g in plan.grants
            if g.cut
        ]
        if missing > 0:
            over = (
                f"a request of {tokens:,} tokens exceeds what the window has for it by {missing:,}; nothing more may "
                "leave: shorten the question or the system message, lower the floor, or take a larger window"
            )
            if self.overrun == "raise" or (self.overrun == "warn" and self.budget.deficit == "raise"):
                raise ValueError(over)
            if self.overrun == "warn":
                warnings.warn(over, stacklevel=4)
            told.insert(0, over)
        lines = self._lines()
        stamps = [line.stamp for line in lines]
        same = (i for i, (old, new) in enumerate(zip(self._sent, stamps, strict=False)) if old != new)
        stable = next(same, min(len(self._sent), len(stamps)))
        self._sent = stamps
        messages: list[dict[str, Any]] = [line.message.raw for line in lines]  # type: ignore[misc]  # read as dicts
        if self.tell and (text := describe(plan, ledger.rules.count, framing=ledger.rules.framing)):
            messages.append({"role": "system", "content": text})
            tokens += ledger.rules.framing.message(messages[-1], ledger.rules.count)
        waits = [Left(line.message.raw, "unanswered") for line in ledger.lines.values() if not line.sent]
        tools = [dict(each) for each in ledger.tools]
        if len(ledger.history.slots) > _ROOM + 2 * len(ledger.lines):
            self._standing = unpack(ledger, packed(ledger, self._standing))
        return Request(
            messages, tools, plan, tokens, max(0, missing), (*left, *waits), tuple(texts), stable, tuple(told)
        )

    def _lines(self) -> list[Line]:
        """List what is sent in order: earlier turns and their summaries, passages, this turn."""
        ledger = self._ledger
        lines = ledger.lines if not self._standing else ledger.lines | self._standing
        slots = [slot for slot in sorted(lines) if lines[slot].sent]
        found = [lines[slot] for slot in slots]
        if ledger.passages:
            edge = sum(slot < ledger.start for slot in slots)
            found[edge:edge] = [_passage(item, ledger.turn) for item in ledger.passages]
        return found

    def _writer(self, summarise: Write | None) -> Write:
        if summarise is not None:
            return summarise
        if any(isinstance(stage, Summarise) and stage.text is None for stage in self.policy.stages):
            raise ValueError(
                f"{self.policy!r} writes summaries, and nobody says how; a replay models their length, a conversation "
                "sends them; pass summarise=, a function from messages to a text"
            )
        return lambda messages: str(self.policy.write(messages))

    def _write_now(self, messages: list[Message]) -> str:
        text = self._write(messages)
        if isinstance(text, str):
            return text
        if inspect.iscoroutine(text):
            text.close()
        raise TypeError(
            f"a summary of type {type(text).__name__}; request() takes texts; await arequest(), or return a text"
        )


def _answered(asks: Asks, write: Callable[[list[Message]], str]) -> Request:
    try:
        replaced = next(asks)
        while True:
            replaced = asks.send(write(replaced))
    except StopIteration as stop:
        request: Request = stop.value
        return request
    finally:
        asks.close()


def promised(budget: Budget, section: str, floor: int) -> Budget:
    """Return the budget in which one section gives up nothing, and the others shrink for it."""
    cap = budget.caps[section]
    floor = check_tokens("floor", floor)
    return budget.assign(
        **{section: {"floor": floor, "importance": 5, "cap": None if cap is None else max(cap, floor)}}
    )


def _passage(item: Item, turn: int) -> Line:
    """Write a passage as a message; in another turn it is another one."""
    message = Message({"role": "system", "content": item.payload.text})
    return Line(message, item.tokens, "", "", ~crc32(f"{turn} {message.text}".encode("utf-8", "replace")))


def _missing(plan: Plan) -> int:
    """Return how far what is sent exceeds the window; what a section asks for is sent whole."""
    return sum(grant.cut for grant in plan.grants) - plan.free
