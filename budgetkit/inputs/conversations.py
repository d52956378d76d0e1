"""Conversations in any form: traces, names, paths or messages.

A string is the name of a shipped trace or, if there is no such trace, a path that `load_trace` reads. Functions that
take an application's messages (`trim`, `Conversation.add`, `count_request`) do not accept such strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from typing import Any

from budgetkit.budget.errors import wrong_kind
from budgetkit.budget.quoting import quoted
from budgetkit.message import Passage, Raw
from budgetkit.models import DEFAULT_MODEL, Model, resolve
from budgetkit.plan import Item
from budgetkit.trace import Message, Trace, load_trace, load_traces, messages_of

#: Any value that `trace_of` accepts as a conversation.
AnyTrace = Any


def trace_of(trace: AnyTrace) -> Trace:
    """Convert a conversation in any form to a trace.

    If the input has several conversations, the first conversation is used.

    Parameters
    ----------
    trace : Trace, str, Path, file, frame or messages
        A trace, the name of a shipped trace, a file, or messages as a list of dictionaries or of an SDK's objects.

    Returns
    -------
    Trace
        The conversation.

    Raises
    ------
    ValueError, TypeError, OSError
        If the value is not in a supported form or cannot be read.

    Examples
    --------
    >>> trace_of("support-chat").id, len(trace_of([{"role": "user", "content": "Hello world"}]).messages)
    ('support-chat', 1)
    """
    if isinstance(trace, Trace):
        return trace
    if _is_messages(trace):
        return Trace("messages", tuple(trace))
    return load_trace(_source(trace))


def traces_of(traces: AnyTrace) -> list[Trace]:
    """Convert conversations in any form to a list of traces.

    Parameters
    ----------
    traces : sequence, Trace, str, Path, file or frame
        A list of values that :func:`trace_of` accepts, or a name or file with several conversations.

    Returns
    -------
    list of Trace
        The conversations, in order.

    Examples
    --------
    >>> len(traces_of("made-up-chats")), len(traces_of([trace_of("support-chat")]))
    (48, 1)
    """
    if isinstance(traces, Trace):
        return [traces]
    # a name, a file, a frame or a request body is one source
    is_one = isinstance(traces, str | bytes | PathLike | Mapping) or hasattr(traces, "read")
    if is_one or hasattr(traces, "columns") or not isinstance(traces, Iterable):
        return load_traces(_source(traces))
    entries = list(traces)
    if entries and all(map(_is_conversation, entries)):
        return [trace for conversation in entries for trace in traces_of(conversation)]
    return [trace_of(entries)]


def own_model(trace: Trace) -> Model | None:
    """Return a conversation's model, or None if it is unknown or retired.

    The result is also None if the conversation names no model.

    Examples
    --------
    >>> own_model(trace_of("support-chat")) is None
    True
    """
    if trace.model is None:
        return None
    model = resolve(trace.model)
    return None if model.notice else model


def opening_model(model: str | Model | None, trace: Trace | None = None) -> Model:
    """Return the model that an explorer or report starts with.

    Parameters
    ----------
    model : str or Model, optional
        The caller's model.
    trace : Trace, optional
        The conversation; its model is used if `model` is None.

    Returns
    -------
    Model
        The given model, or else the model of the conversation, or else `DEFAULT_MODEL`.

    Examples
    --------
    >>> opening_model(None, trace_of("support-chat")).window, opening_model("gpt-4").window
    (1050000, 8192)
    """
    if model is not None:
        return resolve(model)
    return (None if trace is None else own_model(trace)) or resolve(DEFAULT_MODEL)


def _is_messages(value: Any) -> bool:
    """Return True for a non-empty list of message dictionaries or objects."""
    is_list = isinstance(value, list | tuple) and len(value) > 0
    return is_list and all(
        isinstance(message, Message) or (isinstance(message, Mapping) and "role" in message)
        for message in value
    )


def _is_conversation(value: Any) -> bool:
    """Return True if a list's entry is a conversation, not a message."""
    is_one = isinstance(value, Trace | str | PathLike | list | tuple) or hasattr(value, "columns")
    return is_one or (isinstance(value, Mapping) and "messages" in value)


def _source(value: Any) -> Any:
    if value is None or isinstance(value, int | float | bytes):
        forms = "a Trace, a shipped trace's name, a path, a file, a frame, or a list of messages"
        raise TypeError(wrong_kind("conversation", value, forms))
    return value


_EXPECTED = (
    "a string, a message, a passage (a dictionary with its text, a LangChain Document, an Item), or a pair of one "
    "of these and a numeric score"
)
_SCORES = ("score", "relevance_score", "similarity")


@dataclass(frozen=True, slots=True)
class Piece:
    """A message for a section, with a relevance score."""

    message: Message
    score: float = 0.0


def piece_of(value: Any, role: str, where: str = "a section") -> Piece:
    """Convert a section's value to a message with a score.

    Parameters
    ----------
    value : str, Message, Mapping, Passage, Item, object or tuple
        A text, a message in any form, or a passage (a dictionary, a LangChain or LlamaIndex object, or an Item). The
        value may also be a pair of any of these and a score.
    role : str
        Role for a text or a passage, such as "context".
    where : str
        Name of the section, for error messages.

    Returns
    -------
    Piece
        The message, with a score of 0 if none is given.

    Raises
    ------
    ValueError
        If the value is not in a supported form.

    Examples
    --------
    >>> piece_of({"text": "Refunds take five days.", "score": 0.9}, "context")
    Piece(message=Message(raw={'role': 'context', 'content': 'Refunds take five days.'}), score=0.9)
    """
    if isinstance(value, tuple) and len(value) == 2 and _is_number(value[1]):
        return Piece(piece_of(value[0], role, where).message, float(value[1]))
    if isinstance(value, Message):
        return Piece(value)
    if isinstance(value, str):
        return Piece(Message({"role": role, "content": value}))
    if isinstance(value, Item):
        return Piece(piece_of(value.payload, role, where).message, value.score)
    if isinstance(value, Passage):
        return _of_fields(value.raw, role, where)
    if isinstance(value, Mapping):
        # a message has a role, a passage does not
        if "role" in value or (isinstance(value.get("type"), str) and "content" in value):
            return Piece(messages_of([value])[0])
        return _of_fields(value, role, where)
    return _of_object(value, role, where)


def _of_fields(fields: Raw, role: str, where: str) -> Piece:
    """Read a passage from a dictionary, or from its "document" or "node"."""
    inside = next(
        (fields[name] for name in ("document", "node") if isinstance(fields.get(name), Mapping)),
        fields,
    )
    try:
        passage = Passage.of(inside)
    except ValueError:
        raise _invalid_piece(fields, where) from None
    return Piece(Message({"role": role, "content": passage.text}), _score(fields))


def _of_object(value: Any, role: str, where: str) -> Piece:
    """Read a passage or a message from another library's object."""
    inner = getattr(value, "node", value)  # LlamaIndex stores the score next to the node
    text = getattr(inner, "page_content", None)
    if text is None and not hasattr(inner, "role") and not hasattr(inner, "content"):
        text = getattr(inner, "text", None)
    if isinstance(text, str):
        about = getattr(inner, "metadata", None)
        score = getattr(value, "score", None)
        score_fields = {"score": score} if score is not None else about
        return Piece(
            Message({"role": role, "content": text}),
            _score(score_fields if isinstance(score_fields, Mapping) else {}),
        )
    try:
        (message,) = messages_of([value])
    except (TypeError, ValueError):
        raise _invalid_piece(value, where) from None
    return Piece(message)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _score(fields: Raw) -> float:
    for name in _SCORES:
        if _is_number(fields.get(name)):
            return float(fields[name])
    return 0.0


def _invalid_piece(value: Any, where: str) -> ValueError:
    if isinstance(value, Mapping):
        shown = f"an object with {quoted(value) or 'no keys'}"
    else:
        shown = f"a value of type {type(value).__name__}"
    return ValueError(f"Invalid value for {where}: {shown}. Expected {_EXPECTED}.")
