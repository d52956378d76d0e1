"""memory_tokens(): the memory engine's record, from a model and messages to what is left for memory, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from budgetkit.conversation.reading import read
from budgetkit.counters import counter
from budgetkit.inputs.budgets import AnyModel
from budgetkit.models import DEFAULT_ENCODING
from budgetkit.models.resolved import facts_of
from budgetkit.plan import allocate
from budgetkit.presets import memory_engine
from budgetkit.requests import FRAMINGS


@dataclass(frozen=True, slots=True)
class MemoryTokens:
    """Hold what the memory engine says of one request; all sizes are in tokens.

    Parameters
    ----------
    model : str
        The model's name.
    context_window : int
        Its window.
    messages_tokens, directive_tokens : int
        What the conversation and the directive count.
    response_reserve, safety_buffer : int
        What is held back for the answer, and against a wrong count.
    memory_tokens : int
        What is left for memory, at least 0.
    is_constrained : bool
        Whether that is below 1,000.

    Examples
    --------
    >>> memory_tokens("gpt-4o").memory_tokens
    117501
    """

    model: str
    context_window: int
    messages_tokens: int
    directive_tokens: int
    response_reserve: int
    safety_buffer: int
    memory_tokens: int
    is_constrained: bool


def memory_tokens(
    model: AnyModel, messages: Sequence[Any] = (), directive: str = ""
) -> MemoryTokens:
    """Say how many tokens a model's window leaves for memory.

    Parameters
    ----------
    model : str or Model
        An unknown name gets 8,192 tokens and cl100k_base, with a warning.
    messages : sequence
        The conversation, in any format that :func:`budgetkit.load_trace` reads.
    directive : str
        What is always sent whole.

    Returns
    -------
    MemoryTokens
        The model, its window, what messages and directive count, both reserves, and what is left for memory.

    Notes
    -----
    Formula, framing and fields: memory engine, milestone 3.5.2 (document 001).

    Examples
    --------
    >>> found = memory_tokens("gpt-4o", [{"role": "user", "content": "Hello world"}], "Be brief.")
    >>> found.messages_tokens, found.directive_tokens, found.memory_tokens, found.is_constrained
    (10, 3, 117491, False)
    """
    facts = facts_of(model)
    count = counter(facts, unknown=DEFAULT_ENCODING)
    budget = memory_engine(facts)
    messages_tokens = FRAMINGS["memory-engine"].request(read([messages]), count)
    directive_tokens = count(directive)
    plan = allocate(budget, {"messages": messages_tokens, "directive": directive_tokens})
    return MemoryTokens(
        model=facts.name,
        context_window=facts.window,
        messages_tokens=messages_tokens,
        directive_tokens=directive_tokens,
        response_reserve=budget.sizes["output"],
        safety_buffer=budget.sizes["safety"],
        memory_tokens=plan["memory"].limit,
        is_constrained=plan.is_constrained,
    )
