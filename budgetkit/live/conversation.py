"""Conversation: a running conversation, of which each next request is ready to send.

It is the engine of :func:`budgetkit.replay` (:func:`budgetkit.pruning.dropping.prune`), asked one request at a time:
what a policy did to a recorded conversation it does to the same one while it runs.
"""

from __future__ import annotations

import inspect
import threading
from asyncio import sleep
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, get_args

from budgetkit.budget import Budget
from budgetkit.budget.allocation import check_choice
from budgetkit.budget.quoting import brief
from budgetkit.counters import count_of
from budgetkit.framing import DEFAULT_FRAMING, Framing
from budgetkit.live.engine import Asks, Engine, Overrun
from budgetkit.live.reading import read
from budgetkit.live.request import Request
from budgetkit.live.returning import Archive
from budgetkit.live.running_ledger import Count, Rules, RunningLedger
from budgetkit.live.saving import refused, restored, saved
from budgetkit.live.shortening import placeholder
from budgetkit.message import ROLES, Message
from budgetkit.models import Model
from budgetkit.pruning.policies import BringBack, DropToolResults, OldestFirst, Policy, Summarise
from budgetkit.trace import DEFAULT_ROLES
from budgetkit.trace.sections import Roles, past_section

Write = Callable[[list[Any]], "str | Awaitable[str]"]


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
    takes no memory, unless the policy is :class:`budgetkit.policies.BringBack`, which may bring it back. Threads and
    tasks may share a conversation; requests wait for one another.

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
        self.budget, self.policy = budget, OldestFirst() if policy is None else policy
        table = (budget.roles or DEFAULT_ROLES) if roles is None else roles
        history = section or past_section(Message({"role": "user"}), table)
        rules = Rules(
            count_of(count),
            framing or DEFAULT_FRAMING,
            table,
            history,
            self.policy.unit == "turn",
            self.policy.importance,
        )
        self._write = self._writer(summarise)
        for stage in self._stages:
            if isinstance(stage, DropToolResults):  # an error now, not after a hundred turns
                placeholder(Message({"role": "tool", "content": ""}), stage.placeholder, rules)
        archive = Archive() if isinstance(self.policy, BringBack) else None
        ledger = RunningLedger(rules, [dict(each) for each in tools], archive=archive)
        self._engine = Engine(budget, self.policy, ledger, tell, shorten, overrun)
        self._inbox: list[Message] = []
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
        self._check_roles(said)
        with self._lock:
            self._inbox += said

    def _check_roles(self, said: Sequence[Message]) -> None:
        """Refuse a role that the budget has no room for, before the conversation holds it."""
        budget, roles = self.budget, self._engine.ledger.rules.roles
        for message in said if budget.undeclared == "error" else ():
            if message.role not in ROLES and past_section(message, roles) not in budget.sections:
                told = f"a message whose role is {brief(message.role)}, and this budget has no section for it"
                raise ValueError(f"{told}; known are {', '.join(ROLES)}; correct it, or name its section in roles=")

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
            engine = self._engine
            return saved(self.budget, engine.ledger, engine.standing, self._inbox, engine.sent, engine.requests)

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
        try:
            made = cls(budget, policy, count, **more)
        except LookupError as error:
            raise refused(error) from error
        engine = made._engine
        engine.standing, made._inbox, engine.sent, engine.requests = fill(engine.ledger)
        return made

    @property
    def _stages(self) -> tuple[Policy, ...]:
        return (self.policy.policy if isinstance(self.policy, BringBack) else self.policy).stages

    def _next(self) -> Asks:
        with self._lock:
            if self._inbox:
                self._engine.ledger.take(self._inbox)
                self._inbox = []
        return self._engine.next()

    def _writer(self, summarise: Write | None) -> Write:
        if summarise is not None:
            return summarise
        if any(isinstance(stage, Summarise) and stage.text is None for stage in self._stages):
            raise ValueError(
                f"{brief(self.policy)} writes summaries, and nobody says how; a replay models their length, "
                "a conversation sends them; pass summarise=, a function from messages to a text"
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
