"""Objects of other libraries as plain values: messages of the SDKs of OpenAI, Anthropic and Google, of LangChain.

Nothing of theirs is imported: a value that can write itself as a dictionary is asked to, one that has a role or a type
and a content is read by these, and what is plain already stays.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from budgetkit.budget.quoting import brief
from budgetkit.message import Message
from budgetkit.requests.reading.forms import BYTES
from budgetkit.requests.reading.pairing import Pairing
from budgetkit.trace.importers.documents import converted

_WRITERS = ("model_dump", "to_dict", "dict", "_asdict")
_FIELDS = (
    "role",
    "type",
    "content",
    "parts",
    "name",
    "tool_calls",
    "tool_call_id",
    "additional_kwargs",
    "usage",
)
_ROOM = 100
#: Where messages are meant, no file is opened.
_ADVICE = "put one message into a list, or open a file or a table by load_trace"


def messages_of(values: Iterable[Any], pairing: Pairing | None = None) -> tuple[Message, ...]:
    """Read messages, whichever library made them.

    Parameters
    ----------
    values : iterable or Trace
        Dictionaries in any known form, :class:`budgetkit.trace.Message`, or objects of an SDK or of LangChain; or a
        conversation that was loaded, whose messages they are.
    pairing : Pairing, optional
        The calls that were read before these, where messages come one after the other; then a result whose call is not
        known stays a result.

    Returns
    -------
    tuple of Message
        In OpenAI's chat format. One value can be several messages, where an SDK keeps tool results in one.

    Raises
    ------
    TypeError
        If a value is no message of any kind.
    ValueError
        If a message has no role or a content that cannot be.

    Examples
    --------
    >>> messages_of([{"type": "human", "content": "Hello world"}])
    (Message(raw={'role': 'user', 'content': 'Hello world', 'native': {'type': 'human', 'content': 'Hello world'}}),)
    """
    loaded = messages_in(values)
    if loaded is not None:
        return loaded
    if isinstance(values, str | bytes | PathLike) or not isinstance(values, Iterable):
        raise TypeError(f"messages are {brief(values)}; known is a list of them; {_ADVICE}")
    if hasattr(values, "columns"):
        raise TypeError(f"messages are a table; known is a list of them; {_ADVICE}")
    raw = [plain(value) for value in values]
    conversations = converted({"messages": raw}, pairing=pairing)
    return tuple(map(Message, conversations[0]["messages"] if conversations else raw))


def messages_in(value: Any) -> tuple[Message, ...] | None:
    """Return the messages of a conversation that was loaded; None of anything else.

    Examples
    --------
    >>> messages_in([{"role": "user", "content": "Hello world"}]) is None
    True
    """
    messages = getattr(value, "messages", None)
    if isinstance(messages, tuple) and all(isinstance(message, Message) for message in messages):
        return messages
    return None


def plain(value: Any, room: int = _ROOM) -> Any:
    """Turn a value of any library into dictionaries, lists, texts and numbers; TypeError where that is impossible.

    >>> plain(Message({"role": "user", "content": ("Hello", "world")}))
    {'role': 'user', 'content': ['Hello', 'world']}
    """
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if room == 0:
        problem = f"a value nested deeper than {_ROOM} levels; a conversation needs about ten"
        raise ValueError(f"{problem}; look what made it")
    if isinstance(value, Message):
        value = value.raw
    if isinstance(value, Mapping):
        return {str(key): plain(member, room - 1) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(member, room - 1) for member in value]
    if isinstance(value, bytes):
        return {"type": "file", BYTES: b64encode(value).decode("ascii")}
    return plain(_written(value), room - 1)


def _written(value: Any) -> Any:
    """Ask an object what it holds; fields without a value are left out."""
    if isinstance(value, PathLike) or hasattr(value, "columns"):
        problem = f"a value of type {type(value).__name__}, which is no message"
        raise TypeError(f"{problem}; known are dictionaries and objects; {_ADVICE}")
    for name in _WRITERS:
        if callable(write := getattr(value, name, None)) and not isinstance(value, type):
            fields = write()
            if not isinstance(fields, Mapping):
                return fields
            return {key: field for key, field in fields.items() if field is not None}
    fields = {name: field for name in _FIELDS if (field := getattr(value, name, None)) is not None}
    if "content" in fields or "parts" in fields:
        return fields
    for name in ("item", "isoformat", "hex"):  # numpy's numbers, dates, identifiers
        if callable(write := getattr(value, name, None)):
            return write()
    advice = (
        "messages are dictionaries, or objects with a role and a content; write it as one of these"
    )
    raise TypeError(f"a value of type {type(value).__name__}; {advice}")
