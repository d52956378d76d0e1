"""trim(): a list of messages made to fit, in one line and once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.old_names import renamed
from budgetkit.conversation.conversation import Conversation
from budgetkit.conversation.newest import newest
from budgetkit.conversation.reading import read
from budgetkit.conversation.running_ledger import Count
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, AnyModel, setup_of
from budgetkit.inputs.policies import policy_of
from budgetkit.message import SYSTEM_ROLES, Message
from budgetkit.presets.translation import trimmed
from budgetkit.pruning.dropping import StartOn
from budgetkit.pruning.policies import Policy
from budgetkit.requests import Framing
from budgetkit.requests.forms import Form, form_of_all, forms_of
from budgetkit.requests.writing import written

_TRIES = 4


@renamed(count="counter")
def trim(
    messages: Sequence[Any],
    budget: int | AnyBudget,
    counter: AnyCounter | None = None,
    *,
    tools: Any = (),
    policy: Policy | str | None = None,
    framing: Framing | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    start_on: StartOn = "user",
    form: Form | None = None,
) -> list[dict[str, Any]]:
    """Return those messages that fit.

    System messages and the last question stay. The oldest of the rest go first, a tool call with its results; a tool
    result that is too large by itself is cut inside.

    Parameters
    ----------
    messages : sequence
        In any format that :func:`budgetkit.load_trace` reads, Messages, or an SDK's objects.
    budget : int, Budget, str, Path or callable
        Most tokens of the request; or a budget, a preset or its name, of which the usable window counts.
    counter : str, Model or callable, optional
        From text to tokens: a counter, or the name of one or of a model; that of `model`, else o200k_base, when left
        out.
    tools : list of Mapping, or the answer of an MCP server
        Tool schemas that go with the request, counted in; any form, see :mod:`budgetkit.requests.tools`.
    policy : Policy or str, optional
        What leaves, or its name, where it is not the oldest first.
    framing : Framing, optional
        What a message costs beyond its text; that of `model` or of the counter's model when left out.
    model : str or Model, optional
        The model that answers: its window for a preset, its counter and its framing.
    window : int, optional
        Another window, in tokens, of a budget.
    start_on : {"user", "any"}
        Whose message comes first, after the system messages. Some providers refuse a request that begins with the
        assistant's.
    form : {"chat", "responses", "anthropic", "converse", "gemini"}, optional
        The provider's form in which the messages go out; that in which they came when left out.

    Returns
    -------
    list of dict
        In the form in which they came, those that were not cut inside as they came; what has no form of a provider is
        in OpenAI's chat format, and so are system messages, which some providers take beside the others. With the
        schemas and the priming of the answer never more than the budget.

    Raises
    ------
    ValueError
        If system messages, question and schemas alone are too large.

    Examples
    --------
    >>> said = [{"role": "user", "content": "one two three"}, {"role": "assistant", "content": "four"}]
    >>> said.append({"role": "user", "content": "five"})
    >>> trim(said, 14, start_on="any")
    [{'role': 'assistant', 'content': 'four'}, {'role': 'user', 'content': 'five'}]
    >>> trim(said, 14)
    [{'role': 'user', 'content': 'five'}]
    """
    most = budget if type(budget) is int else None
    setup = setup_of(budget_of(budget), counter, framing, model, window)
    count = setup.counter
    framing = setup.framing
    policy = setup.policy if policy is None else policy_of(policy)
    said: Any = messages
    if policy is None and most is not None:
        more = most, count, tools, framing, start_on
        newer = newest(said, *more) if isinstance(said, list | tuple) else None
        if newer is None:
            said = read([said])
            # what is a part of a record leaves with it, which only the engine knows
            newer = None if forms_of(message.raw for message in said) else newest(said, *more)
        if newer is not None and newer[1]:
            return _written(newer[0], form)
        said = said if newer is None else [*map(Message, newer[0])]
    lines = replace(setup.budget, deficit="signed")
    said = read([said])
    found, over = _counted_again(said, lines, count, tools, policy, framing, start_on)
    if over:
        asked = max((i for i, message in enumerate(said) if message.role == "user"), default=len(said) - 1)
        kept = [message for i, message in enumerate(said) if i == asked or message.role in SYSTEM_ROLES]
        found, over = _counted_again(kept, lines, count, tools, policy, framing, start_on)
    if over:
        raise ValueError(
            f"system messages, the last question and tool schemas exceed what the window has for them by {over:,} "
            "tokens; shorten them, or allow more"
        )
    return _written(found, form or form_of_all(forms_of(message.raw for message in said)))


def _written(raws: list[dict[str, Any]], form: str | None) -> list[dict[str, Any]]:
    """Write messages in a form; system messages that stand beside the others in it are left in front of them."""
    if form is None:
        return raws
    messages = written(raws, form)
    return raws[: messages.head] + messages.messages


def budget_of(budget: int | AnyBudget) -> AnyBudget:
    """Return a budget; so many tokens are one in which system messages and the question are required."""
    return trimmed(budget) if isinstance(budget, int) else budget


def _counted_again(
    said: list[Message],
    budget: Budget,
    count: Count,
    tools: Any,
    policy: Policy | None,
    framing: Framing,
    start_on: StartOn,
) -> tuple[list[dict[str, Any]], int]:
    """Return what a conversation sends that begins and ends here, and by how much that is too large, counted again.

    A framing may bill calls and results together, so that they cost more side by side; then there is less for all.
    """
    less = budget
    for _ in range(_TRIES):
        more: dict[str, Any] = {"tools": tools, "framing": framing, "overrun": "tell", "start_on": start_on}
        talk = Conversation(less, policy, count, **more)
        talk.add(said)
        found = talk._request_in_chat()
        again = framing.request(found.messages, count, tools)
        excess = max(found.over, again - max(0, budget.usable))
        if excess <= 0 or found.over:
            break
        less = replace(less, window=max(0, less.window - excess))
    return found.messages, max(0, excess)
