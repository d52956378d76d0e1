"""Kinds: which of a conversation's text is code, CJK or prose, message by message."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from budgetkit.lab.accuracy.corpora import Corpus, Document
from budgetkit.lab.accuracy.paragraphs import CJK, CODE, PROSE, by_kind
from budgetkit.message import Message
from budgetkit.trace import Trace

__all__ = ["CJK", "CLASSES", "CODE", "PROSE", "by_kind", "kinds_of"]

#: The corpus's classes that each kind takes in.
CLASSES: Final = MappingProxyType(
    {CODE: ("code", "data", "markup"), CJK: ("cjk prose", "cjk mixed"), PROSE: ("prose",)}
)
LARGEST: Final = (
    1_000_000  # characters of a conversation that are judged; of a longer one, every n-th message
)


def kinds_of(trace: Trace) -> Corpus:
    """Return a conversation's text as documents, one for each message and kind."""
    step = -(-sum(len(message.text) for message in trace.messages) // LARGEST) or 1
    numbered = list(enumerate(trace.messages, 1))[::step]
    return Corpus(
        tuple(
            document
            for number, message in numbered
            for document in _documents(message, trace.id, number)
        )
    )


def _documents(message: Message, name: str, number: int) -> Iterator[Document]:
    for kind, text in by_kind(message.text).items():
        yield Document(text, kind, message.role, name, f"message {number}")
    for call in message.tool_calls:
        if call.arguments:
            yield Document(
                call.arguments, CODE, message.role, name, f"message {number}, call of {call.name}"
            )
