"""Keeper: what all adapters share: messages of a framework in, those that fit out, each with the object it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from itertools import count as counting
from threading import Lock
from typing import Any

from budgetkit.budget import Budget
from budgetkit.live.conversation import Conversation
from budgetkit.live.request import Request
from budgetkit.live.running_ledger import Count
from budgetkit.live.trimming import budget_of, trim
from budgetkit.message import Message
from budgetkit.models import Model
from budgetkit.pruning.policies import BringBack, Policy

#: The field of a message that holds the framework's own object.
NATIVE = "native"
Raw = dict[str, Any]
Numbers = list[int | None]
Owned = dict[int | None, Raw]


class Keeper:
    """Keep the conversations of a framework within a budget.

    Parameters
    ----------
    budget : int or Budget
        Most tokens of a request, or a budget.
    policy : Policy, optional
        What leaves, and when. Without one each request is trimmed by itself, as by :func:`budgetkit.trim`. With one
        a conversation goes on where its last request left it, known by everything that was said in it. What a
        framework no longer gives is never sent, not even by :class:`budgetkit.policies.BringBack`, unless it
        `goes_on`.
    count : str, Model or callable
        From text to tokens: a counter, or the name of one or of a model.
    tools : sequence of Mapping
        Tool schemas that the framework sends, counted in, where it does not tell them itself.
    conversations : int, default 256
        How many are remembered; one that is forgotten is pruned again from all its messages.
    goes_on : bool, default False
        Whether the framework goes on with what it was given, and so gives no more what has left.
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
        goes_on: bool = False,
        **more: Any,
    ) -> None:
        self.returns = goes_on and isinstance(policy, BringBack)
        self.budget, self.policy, self.count, self.tools, self.more = budget, policy, count, tuple(tools), more
        self.conversations = conversations
        self._talks: dict[int | None, tuple[Conversation, set[int], Numbers, Owned]] = {}
        self._numbers = counting()
        self._lock = Lock()

    def fit(self, said: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> list[Raw]:
        """Return the messages of the next request."""
        if self.policy is None:
            return trim(said, self.budget, self.count, tools=tools or self.tools, **self.more)
        talk, numbers, own = self._talk(said, tools)
        return self._remembered(talk, said, numbers, own, talk.request())

    async def afit(self, said: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> list[Raw]:
        """Return the messages of the next request, whose summaries an ``async`` function may write."""
        if self.policy is None:
            return self.fit(said, tools)
        talk, numbers, own = self._talk(said, tools)
        return self._remembered(talk, said, numbers, own, await talk.arequest())

    def _talk(self, said: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> tuple[Conversation, Numbers, Owned]:
        """Go on with the conversation that said this before, or begin one; with its number for each message."""
        keys = _keys(said)
        with self._lock:
            known = next((n for n in range(len(said), 0, -1) if keys[n] in self._talks), 0)
            talk, others, numbers, owned = self._talks.get(keys[known] if known else None, (None, (), (), {}))
            for key in others:  # what was said up to here is found no more: said again, it begins a new conversation
                self._talks.pop(key, None)
        if talk is None:
            talk = Conversation(budget_of(self.budget), self.policy, self.count, **self.more)
        talk._engine.ledger.count_schemas(tools or self.tools)
        new = [Message({**m.raw, NATIVE: next(self._numbers)}) for m in said[known:]]
        talk.add(new)
        return talk, [*numbers, *(m.raw[NATIVE] for m in new)], owned

    def _remembered(
        self, talk: Conversation, said: Sequence[Message], numbers: Numbers, owned: Owned, to: Request
    ) -> list[Raw]:
        """Remember it by what it was given and by what it gave, which some frameworks go on with."""
        own = [{NATIVE: m.raw[NATIVE]} if NATIVE in m.raw else {} for m in said]
        now: Owned = owned | dict(zip(numbers, own, strict=True)) | {None: {}}  # None: summaries
        kept = [raw for raw in to.messages if raw.get(NATIVE) in now]
        found = [{name: each for name, each in raw.items() if name != NATIVE} | now[raw.get(NATIVE)] for raw in kept]
        given = {_keys(said)[-1]: numbers, _keys([*map(Message, found)])[-1]: [raw.get(NATIVE) for raw in kept]}
        with self._lock:
            owned = now if self.returns else {}
            self._talks |= {key: (talk, {*given}, each, owned) for key, each in given.items()}
            while len(self._talks) > 2 * self.conversations:
                del self._talks[next(iter(self._talks))]
        return found


def _keys(said: Sequence[Message]) -> list[int]:
    """Give each beginning of a conversation a number, by all that its messages hold."""
    held = (repr(sorted((name, each) for name, each in m.raw.items() if name != NATIVE)) for m in said)
    return [*accumulate(held, lambda before, this: hash((before, this)), initial=0)]
