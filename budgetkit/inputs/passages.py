"""A text, a message or a retrieved passage as somebody passes it for a section of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from budgetkit.budget.quoting import brief
from budgetkit.message import Message, Passage
from budgetkit.plan import Item
from budgetkit.trace.objects import messages_of

_KNOWN = (
    "a text, a message, a passage (a dictionary with its text, a LangChain Document, an Item), and a pair of one of "
    "them and its score, a number"
)
_SCORES = ("score", "relevance_score", "similarity")


@dataclass(frozen=True, slots=True)
class Piece:
    """Hold one thing that a section is to hold: as a message, with its score."""

    message: Message
    score: float = 0.0


def piece_of(value: Any, role: str, where: str = "a section") -> Piece:
    """Return what a section was given as a message; a text speaks with the section's role.

    Parameters
    ----------
    value : str, Message, Mapping, Passage, Item, object or tuple
        A text; a message in any form; a passage as a dictionary with its text, a LangChain or LlamaIndex object, or
        an Item; or a pair of one of these and its score.
    role : str
        Role of a text, such as "context".
    where : str
        What an error calls the place.

    Returns
    -------
    Piece
        The message and its score, 0 where there is none.

    Raises
    ------
    ValueError
        If it is none of these.

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
        inner = piece_of(value.payload, role, where)
        return Piece(inner.message, value.score)
    if isinstance(value, Passage):
        return _of_fields(value.raw, role, where)
    if isinstance(value, Mapping):
        if _is_message(value):
            return Piece(messages_of([value])[0])
        return _of_fields(value, role, where)
    return _of_object(value, role, where)


def _is_message(value: Mapping[str, Any]) -> bool:
    """Tell a message from a passage: it says who speaks."""
    return "role" in value or (isinstance(value.get("type"), str) and "content" in value)


def _of_fields(fields: Mapping[str, Any], role: str, where: str) -> Piece:
    """Read a passage from its fields; they may stand under "document" or "node", beside the score."""
    inside = next(
        (fields[name] for name in ("document", "node") if isinstance(fields.get(name), Mapping)),
        None,
    )
    try:
        passage = Passage.of(fields if inside is None else inside)
    except ValueError:
        raise _refused(fields, where) from None
    return Piece(Message({"role": role, "content": passage.text}), _score(fields))


def _of_object(value: Any, role: str, where: str) -> Piece:
    """Read a passage, or a message, of another library."""
    inner = getattr(value, "node", value)  # LlamaIndex keeps the score beside the node
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
        raise _refused(value, where) from None
    return Piece(message)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Real) and not isinstance(value, bool)


def _score(fields: Mapping[str, Any]) -> float:
    for name in _SCORES:
        if _is_number(fields.get(name)):
            return float(fields[name])
    return 0.0


def _refused(value: Any, where: str) -> ValueError:
    if isinstance(value, Mapping):
        shown = brief(dict(value))
    else:
        shown = f"a value of type {type(value).__name__}"
    return ValueError(f"{where} was given {shown}; known are {_KNOWN}; give one of these")
