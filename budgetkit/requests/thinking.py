"""Thinking that goes out again with the messages it came in, and is billed again.

A request that is counted and a conversation that runs charge it by the same function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from budgetkit.message import Message
from budgetkit.requests.charges import Charge
from budgetkit.requests.forms import origin_of
from budgetkit.requests.request import Request


def thoughts_sent(message: Message, shape: str = "chat") -> tuple[str, ...]:
    """List what was thought before a call, which is billed again by those who take it back as it came.

    The form in which a message came says whether it is in what is sent, else the shape of its request. Thinking that
    led to no call is left out.

    >>> call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    >>> message = Message({"role": "assistant", "reasoning_content": "Hm.", "tool_calls": [call]})
    >>> thoughts_sent(message), thoughts_sent(message, "anthropic")
    ((), ('Hm.',))
    """
    thought = message.raw.get("reasoning_content")
    if not isinstance(thought, str) or not message.tool_calls:
        return ()
    origin = origin_of(message.raw)
    form = shape if origin is None else origin["form"]
    return (thought,) if form in ("anthropic", "converse") else ()


def thinking_charges(request: Request, charges: Sequence[Charge]) -> Iterator[Charge]:
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
