"""Messages as other libraries hold them: dictionaries, and objects of OpenAI's SDK and of LangChain.

Nothing of theirs is imported: an object that can write itself as a dictionary is asked to, and one that has a role or
a type and a content is read by these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from budgetkit.budget.quoting import brief
from budgetkit.message import Message

__all__ = ["messages_of"]

#: LangChain's types of messages, by the roles of the chat format.
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
_FIELDS = ("role", "type", "content", "name", "tool_calls", "tool_call_id")


def messages_of(values: Iterable[Any]) -> tuple[Message, ...]:
    """Read messages, whichever library made them.

    Examples
    --------
    >>> messages_of([{"type": "human", "content": "Hello world"}])
    (Message(raw={'role': 'user', 'content': 'Hello world'}),)
    """
    if isinstance(values, str | bytes | Mapping):
        raise TypeError(f"messages are {brief(values)}; a conversation is a list of them; put one message into a list")
    return tuple(value if isinstance(value, Message) else Message(_in_chat_format(_written(value))) for value in values)


def _written(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if callable(write := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return {name: field for name, field in write().items() if field is not None}
    held = {name: field for name in _FIELDS if (field := getattr(value, name, None)) is not None}
    if "content" in held and ("role" in held or "type" in held):
        return held
    raise TypeError(
        f"a message of type {type(value).__name__}; messages are dictionaries, or objects with a role and a content; "
        "write it as one of these"
    )


def _in_chat_format(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    role = raw.get("type") if "role" not in raw else None
    if role not in _ROLES:
        return raw
    calls = [_call(call) for call in raw.get("tool_calls") or () if isinstance(call, Mapping)]
    kept = {name: raw[name] for name in ("content", "name", "tool_call_id") if raw.get(name) is not None}
    return {"role": _ROLES[role], **kept, **({"tool_calls": calls} if calls else {})}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call.get("args", {}), ensure_ascii=False, default=str)
    called = {"name": call.get("name", ""), "arguments": arguments}
    return {"id": call.get("id") or "", "type": "function", "function": called}
