"""Conversation: a running conversation that is kept within its budget.

`Conversation` prunes with the function that :func:`budgetkit.replay` uses (:func:`budgetkit.pruning.dropping.prune`),
one request at a time, so a policy has the same effect on a running conversation as on its recording.

    add(messages)   -> inbox             read and checked; nothing is counted yet
    request()       -> tally.take       the inbox is counted, each message is placed in its section
                       Engine.next       the budget limits the history, the policy cuts it, and the request is planned
                    -> Request           messages, plan, and the messages removed for this request

In this example the window has 20 tokens, each letter is one token, and the system message "sss" is always sent:

    turn    messages so far                    history may hold    request
    1       qqqqq                              12                  sss qqqqq                  8 tokens
    2       qqqqq aaaaaaa rrrrrr               11                  sss aaaaaaa rrrrrr        16 tokens; qqqqq dropped
    3       ... aaaaaaa rrrrrr bbbb ttttt      12                  sss rrrrrr bbbb ttttt     18 tokens; aaaaaaa dropped

The example uses ``start_on="any"``. With "user", "aaaaaaa" is already dropped in turn 2, since requests then start with
a user message.
"""

from __future__ import annotations

import inspect
import json
import time
from asyncio import sleep
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from copy import deepcopy
from functools import cached_property
from threading import get_ident
from typing import Any

from budgetkit.budget import brief, many, one_line
from budgetkit.conversation.engine import Engine, RequestSteps, answered
from budgetkit.conversation.reading import read_values
from budgetkit.conversation.rules import Overrun, RequestRules, Write
from budgetkit.conversation.running_tally import (
    RunningTally,
    unchanged_on_error,
)
from budgetkit.conversation.saved_settings import (
    SavedSettings,
    code_name,
    refusing,
    warn_of_changes,
)
from budgetkit.conversation.saving import restored, saved
from budgetkit.conversation.sent import Request
from budgetkit.counters.encodings import ForkSafeLock
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, AnyModel, setup_of
from budgetkit.message import Data, Message
from budgetkit.pruning import Policy, StartOn
from budgetkit.pruning.policies import Summarise
from budgetkit.pruning.policies.systems import general_policy_of
from budgetkit.requests import Framing
from budgetkit.requests.reading.forms import Form, forms_of
from budgetkit.requests.reading.pairing import Pairing
from budgetkit.trace import Roles

#: The error for a request that would wait for itself.
UNDER_WAY = (
    "Cannot make a request while another request of this conversation waits for a summary. Write the summary "
    "without a request, or await arequest() in a separate task."
)
#: Conversations whose summary is written by this task or by a thread that it waits for.
_SUMMARISED: ContextVar[frozenset[int]] = ContextVar("summarised", default=frozenset())


class Conversation:
    """A running conversation, kept within its budget.

    Parameters
    ----------
    budget : Budget, str, Path or callable
        The budget, or a preset or its name.
    policy : Policy or str, optional
        The pruning policy or its name; default: drop the oldest messages first. The rules of a product, such as
        "codex", are only for :func:`budgetkit.replay`.
    counter : str, Model or callable, optional
        Function that counts the tokens in a text, or the name of a counter or model; default: the counter of `model`,
        or o200k_base.
    model : str or Model, optional
        The model that answers; it determines the window of a preset, the counter and the framing.
    window : int, optional
        Context window, in tokens, in place of the window of the budget or the model.
    tools : list of Mapping, or the answer of an MCP server
        Tool schemas in any format (:mod:`budgetkit.requests.reading.tools`); they are counted and returned with every
        request. They are converted to the format of the request once `form` or the messages set it.
    summarise : callable, optional
        Function, optionally ``async``, that takes a list of messages and returns the text of their summary. Default:
        the policy's function.
    tell : bool, default False
        If true, the last message of a request tells the model how its window is used; see
        :func:`budgetkit.conversation.assembly.describe`.
    shorten : bool, default True
        If true, shorten tool results and drop passages that do not fit in their section or in the window.
    roles, framing, section
        As in :func:`budgetkit.replay`.
    overrun : {"warn", "raise", "tell"}
        Action when nothing more may be dropped and the window still overflows: warn, raise an error, or only record the
        overflow in the request. With "warn", a budget with ``deficit="raise"`` raises an error.

    start_on : {"user", "any"}, default "user"
        Role of the first message after the system messages. A summary in that position has the role "user" or, with
        "any", "assistant". In the formats of Anthropic, Converse and Gemini, requests always start with a user message,
        as the providers require.
    form : {"chat", "responses", "anthropic", "converse", "gemini"}, optional
        The provider's format for requests. Default: the format of the messages, or OpenAI's chat format if the messages
        have no provider's format, or several formats. Set the format if you make the first request before the first
        answer.

    Notes
    -----
    Sent messages stay unchanged until the policy cuts, so that a prompt cache can hold them. Removed messages are
    discarded and take no memory. Threads and tasks may share a conversation; its requests wait for one another.

    Examples
    --------
    >>> import budgetkit as bk
    >>> talk = Conversation(bk.presets.working_memory(4_000, output=500), bk.policies.SlidingWindow(2), "gpt-5.4")
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
        budget: AnyBudget,
        policy: Policy | str | None = None,
        counter: AnyCounter | None = None,
        *,
        model: AnyModel | None = None,
        window: int | None = None,
        tools: Any = (),
        summarise: Write | None = None,
        tell: bool = False,
        shorten: bool = True,
        roles: Roles | None = None,
        framing: Framing | None = None,
        section: str | None = None,
        overrun: Overrun = "warn",
        start_on: StartOn = "user",
        form: Form | None = None,
    ) -> None:
        setup = setup_of(budget, counter, framing, model, window)
        rules = RequestRules.of(
            setup,
            policy,
            roles,
            section,
            overrun=overrun,
            start_on=start_on,
            form=form,
            tell=tell,
            shorten=shorten,
        )
        self.budget = rules.budget
        self.policy = rules.policy
        self._write = rules.writer(summarise)
        self._engine = Engine(RunningTally(rules, tools))
        self._model = model
        self._roles = roles
        self._section = section
        self._inbox: list[Message] = []
        self._pairing = Pairing()
        self._lock = ForkSafeLock()
        self._busy = ForkSafeLock()
        self._busy_thread: int | None = None
        #: The conversation before the request in progress, if that request may wait for a summary.
        self._before: Data | None = None

    def add(self, *messages: Any) -> None:
        """Add messages to the conversation.

        Parameters
        ----------
        *messages
            Dictionaries in any format that :func:`budgetkit.load_trace` reads, Messages, an SDK's objects, or lists of
            such values.

        Raises
        ------
        TypeError, ValueError
            If an argument is not a message, or contains a value that cannot be sent or saved. In that case, no message
            is added.
        """
        while True:
            before = self._pairing
            pairing = deepcopy(before)
            new_messages = read_values(messages, pairing, self._engine.rules.form)
            self._engine.rules.check(new_messages)
            with self._lock:
                if self._pairing is before:  # no other thread has added messages meanwhile
                    self._pairing = pairing
                    self._inbox += new_messages
                    return

    def request(self) -> Request:
        """Return the next request.

        Returns
        -------
        Request
            Messages, tool schemas, plan and tokens of the request, and the removed messages with reasons.

        Raises
        ------
        ValueError
            If the window overflows and `overrun` is "raise", or "warn" with a budget whose deficit is "raise"; or if
            the policy's floor does not fit and the floor's conflict is "raise". A repeated call raises the same error.
        TypeError
            If an ``async`` function writes the summaries; await :meth:`arequest` instead.
        RuntimeError
            If a request of this conversation is in progress in the same thread, or if the function that writes the
            conversation's summary calls this method, even through ``asyncio.to_thread``.
        """
        if self._busy_thread == get_ident() or id(self) in _SUMMARISED.get():
            raise RuntimeError(UNDER_WAY)
        with self._busy, self._asking():
            return self._engine.in_form(answered(self._next(), self._write))

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Mark a request as in progress while the block runs."""
        mark = _SUMMARISED.set(_SUMMARISED.get() | {id(self)})
        self._busy_thread = get_ident()
        try:
            yield
        finally:
            _SUMMARISED.reset(mark)
            with self._lock:
                self._busy_thread = None
                self._before = None

    async def arequest(self) -> Request:
        """Return the next request, awaiting its summaries.

        Returns
        -------
        Request
            As in :meth:`request`.

        Raises
        ------
        ValueError
            As in :meth:`request`.
        RuntimeError
            If the function that writes this conversation's summary awaits this method.
        """
        if id(self) in _SUMMARISED.get():
            raise RuntimeError(UNDER_WAY)
        while not self._busy.acquire(blocking=False):  # another task or thread is making a request
            await sleep(0.001)
        try:
            with self._asking(), closing(self._next()) as asks:
                try:
                    replaced = next(asks)
                    while True:
                        text = self._write(replaced)
                        replaced = asks.send(await text if inspect.isawaitable(text) else text)
                except StopIteration as stop:
                    return self._engine.in_form(stop.value)
        finally:
            self._busy.release()

    def to_json(self) -> str:
        """Return the conversation as JSON, as it is between two requests.

        This method never waits for a summary. While a request waits for a summary, the conversation before that request
        is returned, with all messages added since.

        Returns
        -------
        str
            JSON with the budget, the settings and the remaining messages. Functions are saved by name only; when
            loading, pass the functions again.
        """
        while True:
            with self._lock:
                if self._before is not None:
                    return json.dumps(
                        {**self._before, "inbox": [message.raw for message in self._inbox]}
                    )
                if self._busy.acquire(blocking=False):
                    try:
                        return json.dumps(self._saved())
                    finally:
                        self._busy.release()
            time.sleep(0.0005)  # another thread is making a request that needs no summary

    @cached_property
    def _settings(self) -> SavedSettings:
        return SavedSettings.of(self._engine.rules, self._model, self._roles, self._section)

    def __repr__(self) -> str:
        """Show the model, the number of messages and the tokens."""
        tally = self._engine.tally
        lines = [*tally.entries.values()]
        waiting = len(self._inbox)
        if self._model is None:
            name = str(getattr(tally.rules.count, "name", None) or code_name(tally.rules.count))
        else:
            name = self._model if isinstance(self._model, str) else self._model.name
        messages = many(len(lines) + waiting, "message")
        uncounted = f", {waiting:,} of them not counted yet" if waiting else ""
        tokens = f"{sum(line.tokens for line in lines):,} of {self.budget.window:,} tokens"
        return f"Conversation({one_line(name)}, {messages}{uncounted}, {tokens})"

    def _saved(self) -> Data:
        return saved(self.budget, self._settings, self._engine.tally, self._inbox)

    @classmethod
    def from_json(
        cls,
        text: str,
        policy: Policy | str | None = None,
        counter: AnyCounter | None = None,
        **more: Any,
    ) -> Conversation:
        """Load a saved conversation.

        Parameters
        ----------
        text : str
            JSON from :meth:`to_json`.
        policy, counter, **more
            The arguments of a new conversation. The saved values are the defaults. Functions that count, rank or write
            summaries must be passed again.

        Returns
        -------
        Conversation
            The conversation. Its next request equals that of the saved conversation.

        Raises
        ------
        ValueError
            If the text is not a saved conversation, if a function is missing, or if a given counter, framing, section
            or table of roles differs from the saved one.

        Warns
        -----
        UserWarning
            If a given policy, budget or other setting differs from the saved value. The given value is used.

        Examples
        --------
        >>> from budgetkit import Budget, Allocation, policies
        >>> talk = Conversation(Budget(100, (), [Allocation("history"), Allocation("current")]), "last turns")
        >>> talk.add({"role": "user", "content": "Hello world"})
        >>> again = Conversation.from_json(talk.to_json())
        >>> again.policy, again.request().tokens == talk.request().tokens
        (SlidingWindow(), True)
        """
        budget, file = restored(text)
        overrides = {"policy": policy, "counter": counter, **more}
        overrides = {name: value for name, value in overrides.items() if value is not None}
        keywords = {"budget": budget} | file.settings.keywords(overrides) | overrides
        keywords["policy"] = general_policy_of(keywords["policy"])
        with refusing():
            conversation = cls(**keywords)
        if conversation.budget != budget:
            warn_of_changes([("budget", brief(budget), brief(conversation.budget))])
        file.settings.compare(conversation._settings, overrides.keys())

        tally = conversation._engine.tally
        conversation._inbox = file.fill(tally, budget)
        messages = [line.message for line in tally.entries.values()] + conversation._inbox
        read_values(messages, conversation._pairing)  # to match later results with these calls
        conversation._pairing.forms |= forms_of(message.raw for message in messages)
        return conversation

    def _next(self) -> RequestSteps:
        with self._lock:
            if self._inbox:
                tally = self._engine.tally
                with unchanged_on_error(tally, tally.history, tally.history.slots):
                    tally.take(self._inbox)
                self._inbox = []
            if any(isinstance(stage, Summarise) for stage in self.policy.stages):
                self._before = self._saved()
        return self._engine.next()
