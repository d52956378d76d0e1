"""Keeper: what all adapters share: messages of a framework in, those that fit out, each with the object it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

from budgetkit.budget import Budget
from budgetkit.live.conversation import Conversation
from budgetkit.live.request import Request
from budgetkit.live.running_ledger import Count
from budgetkit.live.trimming import budget_of, trim
from budgetkit.message import Message
from budgetkit.models import Model
from budgetkit.pruning.policies import Policy

#: The field of a message that holds the framework's own object.
NATIVE = "native"
Raw = dict[str, Any]


class Keeper:
    """Keep the conversations of a framework within a budget.

    Parameters
    ----------
    budget : int or Budget
        Most tokens of a request, or a budget.
    policy : Policy, optional
        What leaves, and when. Without one each request is trimmed by itself, as by :func:`budgetkit.trim`. With one
        a conversation goes on where its last request left it, known by what was said.
    count : str, Model or callable
        From text to tokens: a counter, or the name of one or of a model.
    tools : sequence of Mapping
        Tool schemas that the framework sends, counted in, where it does not tell them itself.
    conversations : int, default 256
        How many are remembered; one that is forgotten begins anew with all its messages.
    **more
        As for :class:`budgetkit.Conversation`, with a policy; ``framing`` without one too.

    Examples
    --------
    >>> said = [Message({"role": role, "content": "four"}) for role in ("user", "assistant", "user")]
    >>> [each["role"] for each in Keeper(16).fit(said)]
    ['assistant', 'user']
    """

    def __init__(
        self,
        budget: int | Budget,
        policy: Policy | None = None,
        count: str | Model | Count = "o200k_base",
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        conversations: int = 256,
        **more: Any,
    ) -> None:
        self.budget, self.policy, self.count, self.tools, self.more = budget, policy, count, tuple(tools), more
        self.conversations = conversations
        self._talks: dict[int, tuple[Conversation, set[int]]] = {}
        self._lock = Lock()

    def fit(self, said: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> list[Raw]:
        """Return the messages of the next request."""
        tools = tools or self.tools
        if self.policy is None:
            return trim(said, self.budget, self.count, tools=tools, **self.more)
        talk = self._talk(said, tools)
        return self._remembered(talk, said, talk.request())

    async def afit(self, said: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> list[Raw]:
        """Return the messages of the next request, whose summaries an ``async`` function may write."""
        if self.policy is None:
            return self.fit(said, tools)
        talk = self._talk(said, tools or self.tools)
        return self._remembered(talk, said, await talk.arequest())

    def _talk(self, said: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> Conversation:
        """Go on with the conversation that said this before, or begin one."""
        keys = _keys(said)
        with self._lock:
            known = next((n for n in range(len(said), 0, -1) if keys[n] in self._talks), 0)
            talk, others = self._talks.get(keys[known], (None, ()))
            for key in others:  # it goes on: whoever comes back to where it was begins anew
                self._talks.pop(key, None)
        if talk is None:
            known, talk = 0, Conversation(budget_of(self.budget), self.policy, self.count, tools=tools, **self.more)
        talk.add(said[known:])
        return talk

    def _remembered(self, talk: Conversation, said: Sequence[Message], request: Request) -> list[Raw]:
        """Remember it by what it was given and by what it gave, which some frameworks go on with."""
        keys = {_keys(messages)[-1] for messages in (said, [*map(Message, request.messages)])}
        with self._lock:
            self._talks |= dict.fromkeys(keys, (talk, keys))
            while len(self._talks) > 2 * self.conversations:
                del self._talks[next(iter(self._talks))]
        return request.messages


def _keys(said: Sequence[Message]) -> list[int]:
    """Give each beginning of a conversation a number, by what was said in it."""
    spoken = ((m.role, m.texts, m.tool_call_id, tuple((c.id, c.name, c.arguments) for c in m.tool_calls)) for m in said)
    return [*accumulate(spoken, lambda before, this: hash((before, this)), initial=0)]
