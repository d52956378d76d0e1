"""Thinking that goes out again with the messages it came in: what of it is counted, and what only has a name.

    form         before a call                         that led to no call
    chat         by the model's rules, else named      by the model's rules, else named
    responses    named, until the user speaks again    costs nothing with OpenAI's models, else named
    anthropic    counted, and named for its seal       named
    converse     counted, and named for its seal       named
    gemini       counted, and named for its seal       counted, and named for its seal

The seal is a signature or encrypted text that only the provider can read; newer models of Anthropic's keep earlier
thinking, older ones drop it. A request that is counted and a conversation that runs go by the same functions. Source:
recorded calls of public projects with the provider's usage, read 2026-11-23.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from budgetkit.message import Message
from budgetkit.requests.billing.charges import Charge
from budgetkit.requests.reading.forms import origin_of
from budgetkit.requests.reading.request import ProviderRequest, sealed_thinking

# Where programs that speak OpenAI's chat format put what a model thought.
_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")


class ThinkingRules(Protocol):
    """What a provider's rules say of thinking."""

    def leaves_thinking(self, message: Message, shape: str) -> bool:
        """Say whether thinking that a message of chat or Responses carries may be billed and is not charged."""
        ...


def thoughts_sent(message: Message, shape: str = "chat") -> tuple[str, ...]:
    """List the thinking of a message that is billed again as text.

    The form in which a message came says whether it is in what is sent, else the shape of its request.

    >>> call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    >>> message = Message({"role": "assistant", "reasoning_content": "Hm.", "tool_calls": [call]})
    >>> thoughts_sent(message), thoughts_sent(message, "anthropic")
    ((), ('Hm.',))
    """
    thought = message.raw.get("reasoning_content")
    if not isinstance(thought, str):
        return ()
    origin = origin_of(message.raw)
    form = shape if origin is None else origin["form"]
    led_to_a_call = bool(message.tool_calls)
    is_billed = form == "gemini" or (form in ("anthropic", "converse") and led_to_a_call)
    return (thought,) if is_billed else ()


def thinking_charges(request: ProviderRequest, charges: Sequence[Charge]) -> Iterator[Charge]:
    """Charge the thinking that goes out as it came, where no charge holds it yet."""
    thoughts = [
        (index, text)
        for index, message in enumerate(request.messages)
        if "reasoning_content" in message.raw
        for text in thoughts_sent(message, request.shape)
    ]
    if not thoughts:
        return
    charged = {(charge.message, text) for charge in charges for text in charge.texts}
    for index, text in thoughts:
        if (index, text) not in charged:
            yield Charge("message", "thinking", (text,), message=index)


def uncounted_thinking(
    records: Sequence[Any], shape: str, messages: Sequence[Message], rules: ThinkingRules | None
) -> tuple[str, ...]:
    """Name the thinking that goes out and may be billed, and of which nobody can say how much.

    `records` are as the shape has them, `messages` the same in OpenAI's chat format.

    >>> thought = {"role": "assistant", "content": "Hello.", "reasoning_content": "Hm."}
    >>> uncounted_thinking([thought], "chat", [Message(thought)], None)
    ('thinking in the history',)
    """
    names = sealed_thinking(records, shape, messages)
    return tuple(dict.fromkeys([*names, *unruled_thinking(messages, shape, rules)]))


def unruled_thinking(
    messages: Sequence[Message], shape: str, rules: ThinkingRules | None
) -> list[str]:
    """Name the thinking of which the form says nothing, where the model's rules say nothing either."""
    if shape not in ("chat", "responses"):
        return []
    for message in messages:
        if carries_thinking(message) and (rules is None or rules.leaves_thinking(message, shape)):
            return ["thinking in the history"]
    return []


def carries_thinking(message: Message) -> bool:
    """Say whether an answer carries what was thought before it.

    >>> carries_thinking(Message({"role": "assistant", "content": "Hello.", "reasoning": "Hm."}))
    True
    """
    raw = message.raw
    # As it came it has thinking, without a text.
    is_sealed = "native" in raw and raw.get("reasoning_content") == ""
    return message.role == "assistant" and (is_sealed or any(raw.get(field) for field in _FIELDS))
