"""build(): a whole request in one call, from what each section is to hold to the messages that are sent.

What Octopus' manager does for every turn and anchor's pipeline for every query: size each part, prune the history to
what the others leave, keep the best passages, cut what may be cut, and put all of it in order.
"""

from __future__ import annotations

import inspect
from asyncio import gather
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from budgetkit.budget import Allocation, Budget
from budgetkit.budget.quoting import brief
from budgetkit.counters import count_of
from budgetkit.framing import DEFAULT_FRAMING, Framing
from budgetkit.live.assembly import messages
from budgetkit.live.conversation import Conversation
from budgetkit.live.running_ledger import Count
from budgetkit.message import Message
from budgetkit.models import Model
from budgetkit.plan import Item, Plan, fit
from budgetkit.pruning.policies import Policy
from budgetkit.trace import DEFAULT_ROLES
from budgetkit.truncation import cutter

#: Roles whose sections instruct the model: their texts are sent as system messages.
_INSTRUCT = ("system", "procedure")


@dataclass(frozen=True, slots=True)
class Built:
    """Hold one request, ready to send.

    Parameters
    ----------
    messages : list of dict
        In OpenAI's chat format, in the order of the sections.
    plan : Plan
        What each section was granted, what was cut or dropped, and why.
    """

    messages: list[dict[str, Any]]
    plan: Plan


def build(
    budget: Budget,
    count: str | Model | Count = "o200k_base",
    *,
    policy: Policy | None = None,
    context_role: str = "system",
    framing: Framing | None = None,
    **sections: Any,
) -> Built:
    """Build a request from what its sections are to hold.

    Parameters
    ----------
    budget : Budget
        The window and its lines.
    count : str, Model or callable
        From text to tokens: a counter, or the name of one or of a model.
    policy : Policy, optional
        What prunes the section of the history to what the others leave; its own `keep` when left out.
    context_role : str, default "system"
        Role under which retrieved texts are sent, where the chat format has one of its own for them.
    framing : Framing, optional
        What a message costs beyond its text; OpenAI's when left out.
    **sections
        By section: a text, a message, a pair of a text and its score, or a list of these; None for nothing. Texts of
        the sections of system and procedure are system messages, that of the current section the user's.

    Returns
    -------
    Built
        The messages and the plan. What is too large is cut inside where its section lets it.

    Raises
    ------
    LookupError
        If the budget has no such section and takes none.
    ValueError
        If a section is given what is no text, message or pair.

    Examples
    --------
    >>> import budgetkit as bk
    >>> built = build(
    ...     bk.presets.working_memory(2_000, output=200, history_floor=0),
    ...     "gpt-4o",
    ...     policy=bk.policies.SlidingWindow(1),
    ...     system="Be brief.",
    ...     procedure="Ask for the order's number.",
    ...     knowledge=[("Refunds take five days.", 0.9)],
    ...     history=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}],
    ...     current="Where is my refund?",
    ... )
    >>> [message["role"] for message in built.messages], built.messages[-1]["content"]
    (['system', 'system', 'system', 'user', 'assistant', 'user'], 'Where is my refund?')
    >>> built.plan.used
    51
    """
    count, framing, roles = count_of(count), framing or DEFAULT_FRAMING, dict(budget.roles or DEFAULT_ROLES)
    place = {section: number for number, section in enumerate(budget.sections)}
    order = sorted(sections, key=lambda section: place.get(section, len(place)))
    parts = {s: _items(s, _listed(sections[s]), roles, count, framing) for s in order}
    filled, last = [s for s in order if parts[s]], roles.get("current")
    if filled:
        last = last if last in filled else filled[-1]
        parts[last] = _primed(parts[last], framing)
    cut, history = cutter(count), roles.get("user")
    if policy is not None and history in parts:
        others = fit(budget, [item for s in order if s != history for item in parts[s]], cut)
        room = others[history].limit if history in place else others.free
        room -= framing.priming if last == history else 0
        kept = _pruned(parts[history], room, policy, count, framing)
        parts[history] = _primed(kept, framing) if last == history else kept
    items = [item for s in order for item in parts[s]]
    plan = fit(budget, items, cut)
    return Built(messages(plan, context_role), plan)


async def build_async(budget: Budget, count: str | Model | Count = "o200k_base", **given: Any) -> Built:
    """Build a request whose sections are fetched at the same time, as from stores.

    Parameters
    ----------
    budget : Budget
        The window and its lines.
    count : str, Model or callable
        From text to tokens: a counter, or the name of one or of a model.
    **given
        As for `build`; a section may be an awaitable of what it is to hold.

    Returns
    -------
    Built
        As `build` returns it.

    Examples
    --------
    >>> import asyncio
    >>> import budgetkit as bk
    >>> async def find(): return [("Refunds take five days.", 0.9)]
    >>> made = asyncio.run(build_async(bk.presets.rag(4_000), "gpt-4o", retrieval=find(), user="My refund?"))
    >>> [message["content"] for message in made.messages]
    ['Refunds take five days.', 'My refund?']
    """
    waiting = {name: value for name, value in given.items() if inspect.isawaitable(value)}
    found = dict(zip(waiting, await gather(*waiting.values()), strict=True))
    return build(budget, count, **{**given, **found})


def _listed(value: Any) -> list[Any]:
    """List what a section was given; a pair of a text and a number is one thing."""
    if value is None or (isinstance(value, str) and not value):
        return []
    pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Real)
    return (
        [value] if pair or isinstance(value, str | Mapping | Message) or not isinstance(value, Iterable) else [*value]
    )


def _items(section: str, values: list[Any], roles: Mapping[str, str], count: Count, framing: Framing) -> list[Item]:
    speaks = (
        "system" if section in map(roles.get, _INSTRUCT) else "user" if section == roles.get("current") else "context"
    )
    pairs = [_pair(section, value) for value in values if value is not None]
    read = [(_message(value, speaks), float(score)) for value, score in pairs]
    sizes = framing.messages([message for message, _ in read], count)
    groups = _groups([message for message, _ in read], section)
    return [
        Item(section, size, score=score, payload=message, group=group)
        for (message, score), size, group in zip(read, sizes, groups, strict=True)
    ]


def _pair(section: str, value: Any) -> tuple[Any, Any]:
    pair = value if isinstance(value, tuple) else (value, 0.0)
    if len(pair) != 2 or pair[0] is None or not isinstance(pair[1], Real):
        raise ValueError(
            f"section {brief(section)} was given {brief(value)}; known are a text, a message, and a pair of one of "
            "them and its score, a number; give one of these"
        )
    return pair


def _message(value: Any, speaks: str) -> Message:
    if isinstance(value, Message):
        return value
    return Message(dict(value) if isinstance(value, Mapping) else {"role": speaks, "content": str(value)})


def _groups(said: list[Message], section: str) -> list[Any]:
    """Keep a tool call and its results together."""
    owner = {call.id: (section, place) for place, message in enumerate(said) for call in message.tool_calls}
    return [owner.get(m.tool_calls[0].id if m.tool_calls else m.tool_call_id or "") for m in said]


def _primed(items: list[Item], framing: Framing) -> list[Item]:
    """Add to the last message what every request costs."""
    return [*items[:-1], *(replace(item, tokens=item.tokens + framing.priming) for item in items[-1:])]


def _pruned(items: list[Item], room: int, policy: Policy, count: Count, framing: Framing) -> list[Item]:
    """Prune a history to the room that the others leave, by the engine of a running conversation at its next turn."""
    if not items:
        return []
    section, turn = items[0].section, Message({"role": "user", "content": ""})
    window = max(0, room) + framing.priming + framing.message(turn, count)
    roles = dict.fromkeys((*DEFAULT_ROLES, "current", "step"), section)
    alone = Budget(window, (), [Allocation(section)], deficit="signed")
    talk = Conversation(alone, policy, count, roles=roles, framing=framing, section=section, overrun="tell")
    talk.add([*(item.payload for item in items), turn])
    return _items(section, list(talk.request().messages[:-1]), {}, count, framing)
