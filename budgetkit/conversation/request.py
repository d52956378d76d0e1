"""Request: what a running conversation sends next, and what it no longer does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from budgetkit.plan import Plan

Why = Literal["dropped", "summarised", "shrunk", "shortened", "unanswered"]


@dataclass(frozen=True, slots=True)
class Left:
    """Say of one message that it is not sent as it came, and why.

    Parameters
    ----------
    message : Mapping
        As it stood before.
    why : {"dropped", "summarised", "shrunk", "shortened", "unanswered"}
        The policy dropped it, put it into a summary, or left a placeholder of a tool result; a text too large for the
        window was cut inside; a tool call waits for its result (or a result for its call), and is sent when it has it.

    Examples
    --------
    >>> Left({"role": "user", "content": "Hello world"}, "dropped").why
    'dropped'
    """

    message: Mapping[str, Any]
    why: Why


@dataclass(frozen=True, slots=True)
class Request:
    """Hold the next request of a conversation.

    Parameters
    ----------
    messages : list of dict
        In the form of their provider and in order: that in which they came, or OpenAI's chat format. They are those
        that the conversation holds: copy one to change it.
    tools : list of dict
        Tool schemas, those of Gemini and Bedrock Converse in their wrapping.
    plan : Plan
        What each section holds, against its limit.
    tokens : int
        Size of the request: messages, schemas, the priming of the answer and the budget's text.
    over : int
        How many of them the window has no room for; 0 unless the budget or the policy lets it be overrun.
    left : tuple of Left
        What left at this request, and why.
    summaries : tuple of str
        The summaries that were written for it.
    stable : int
        How many messages at the beginning are those of the last request, so that a prompt cache holds them.
    warnings : tuple of str
        What does not fit, and which thinking is sent that nobody can count, in words.
    system : str, list, dict or None
        The system text, where the provider takes it beside the messages: ``system`` of Anthropic and Converse,
        ``systemInstruction`` of Gemini. None where it stands among the messages, or there is none.

    Examples
    --------
    >>> import budgetkit as bk
    >>> talk = bk.Conversation(bk.presets.working_memory(4_000, output=500))
    >>> talk.add({"role": "user", "content": "Hello world"})
    >>> request = talk.request()
    >>> request.messages, request.tokens
    ([{'role': 'user', 'content': 'Hello world'}], 9)
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    plan: Plan
    tokens: int
    over: int = 0
    left: tuple[Left, ...] = ()
    summaries: tuple[str, ...] = ()
    stable: int = 0
    warnings: tuple[str, ...] = ()
    system: Any = None
