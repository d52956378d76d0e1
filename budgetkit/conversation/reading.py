"""Messages as they come: plain ones at once, all others by whoever reads their format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from budgetkit.message import ROLES, Message
from budgetkit.trace.objects import messages_of

_OWN = {"role", "content", "name", "tool_call_id", "tool_calls", "contexts"}


def read(values: Iterable[Any]) -> list[Message]:
    """Read messages, and lists of them, in whatever form.

    Examples
    --------
    >>> read([{"role": "user", "content": "Hello world"}, [{"type": "ai", "content": "Hello."}]])[1].role
    'assistant'
    """
    found: list[Message] = []
    for value in values:
        if isinstance(value, Message):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += read(value) if all(map(is_plain, value)) else map(_sent, messages_of(value))
        else:
            found += [Message(dict(value))] if is_plain(value) else map(_sent, messages_of([value]))
    return found


def is_plain(value: Any) -> bool:
    """Say whether a message is in OpenAI's own form, with nothing in it that another format could mean."""
    if not isinstance(value, Mapping) or not value.keys() <= _OWN or value.get("role") not in ROLES:
        return isinstance(value, Message)
    content, calls = value.get("content"), value.get("tool_calls") or ()
    return (content is None or isinstance(content, str)) and all(
        isinstance(call, Mapping) and "function" in call for call in calls
    )


def _sent(message: Message) -> Message:
    """Leave out what its own format said beside it, which no request takes."""
    return Message({name: value for name, value in message.raw.items() if name != "native"})
