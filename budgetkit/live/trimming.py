"""trim(): a list of messages made to fit, in one line and once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from budgetkit.budget import Budget
from budgetkit.counters import count_of
from budgetkit.framing import DEFAULT_FRAMING, Framing
from budgetkit.live.conversation import Conversation
from budgetkit.live.newest import newest
from budgetkit.live.reading import read
from budgetkit.live.running_ledger import Count
from budgetkit.message import SYSTEM_ROLES, Message
from budgetkit.models import Model
from budgetkit.presets.translation import trimmed
from budgetkit.pruning.policies import Policy

_TRIES = 4


def trim(
    messages: Sequence[Any],
    budget: int | Budget,
    count: str | Model | Count = "o200k_base",
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    policy: Policy | None = None,
    framing: Framing | None = None,
) -> list[dict[str, Any]]:
    """Return those messages that fit.

    System messages and the last question stay. The oldest of the rest go first, a tool call with its results; a tool
    result that is too large by itself is cut inside.

    Parameters
    ----------
    messages : sequence
        In any format that :func:`budgetkit.load_trace` reads, Messages, or an SDK's objects.
    budget : int or Budget
        Most tokens of the request, or a budget and its usable window.
    count : str, Model or callable
        From text to tokens: a counter, or the name of one or of a model.
    tools : sequence of Mapping
        Tool schemas that go with the request, counted in.
    policy : Policy, optional
        What leaves, where it is not the oldest first.
    framing : Framing, optional
        What a message costs beyond its text; OpenAI's when left out.

    Returns
    -------
    list of dict
        In OpenAI's chat format; with the schemas and the priming of the answer never more than the budget.

    Raises
    ------
    ValueError
        If system messages, question and schemas alone are too large.

    Examples
    --------
    >>> said = [{"role": "user", "content": "one two three"}, {"role": "assistant", "content": "four"}]
    >>> said.append({"role": "user", "content": "five"})
    >>> trim(said, 14)
    [{'role': 'assistant', 'content': 'four'}, {'role': 'user', 'content': 'five'}]
    """
    count = count_of(count)
    said: Any = messages
    if policy is None and type(budget) is int:
        more = budget, count, tools, framing or DEFAULT_FRAMING
        newer = newest(said, *more) if isinstance(said, list | tuple) else None
        if newer is None:
            newer = newest(said := read([said]), *more)
        if newer is not None and newer[1]:
            return newer[0]
        said = said if newer is None else [*map(Message, newer[0])]
    budget = replace(budget_of(budget), deficit="signed")
    said = read([said])
    found, over = _counted_again(said, budget, count, tools, policy, framing)
    if over:
        asked = max((i for i, message in enumerate(said) if message.role == "user"), default=len(said) - 1)
        kept = [message for i, message in enumerate(said) if i == asked or message.role in SYSTEM_ROLES]
        found, over = _counted_again(kept, budget, count, tools, policy, framing)
    if over:
        raise ValueError(
            f"system messages, the last question and tool schemas exceed what the window has for them by {over:,} "
            "tokens; shorten them, or allow more"
        )
    return found


def budget_of(given: int | Budget) -> Budget:
    """Return a budget; so many tokens are one in which system messages and the question are required."""
    return given if isinstance(given, Budget) else trimmed(given)


def _counted_again(
    said: list[Message],
    budget: Budget,
    count: Count,
    tools: Sequence[Mapping[str, Any]],
    policy: Policy | None,
    framing: Framing | None,
) -> tuple[list[dict[str, Any]], int]:
    """Return what a conversation sends that begins and ends here, and by how much that is too large, counted again.

    A framing may bill calls and results together, so that they cost more side by side; then there is less for all.
    """
    less = budget
    for _ in range(_TRIES):
        talk = Conversation(less, policy, count, tools=tools, framing=framing, overrun="tell")
        talk.add(said)
        found = talk.request()
        again = (framing or DEFAULT_FRAMING).request(found.messages, count, tools)
        excess = max(found.over, again - max(0, budget.usable))
        if excess <= 0 or found.over:
            break
        less = replace(less, window=max(0, less.window - excess))
    return found.messages, max(0, excess)
