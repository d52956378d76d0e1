"""Conversations in the formats of providers and programs, read into OpenAI's chat format.

Formats that are another spelling of role, text and calls are rows of one table (:mod:`.formats`); what a session of a
coding agent writes line by line has a module of its own. Each is recognised by its content, never by the name of the
file, and nothing is lost in silence: a message carries what it was made of under ``native``, a conversation its other
fields, and what was left out is said under ``warnings``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from budgetkit.trace.importers import sessions
from budgetkit.trace.importers.documents import converted as _converted
from budgetkit.trace.importers.formats import label, nearest, row_of
from budgetkit.trace.importers.records import is_record
from budgetkit.trace.importers.usage import usage_of
from budgetkit.trace.jsonl import Numbered, placed

__all__ = ["converted", "is_document", "is_record", "label", "nearest", "session", "usage_of"]
Conversation = dict[str, Any]


def converted(value: Any) -> list[Conversation] | None:
    """Read one JSON value as conversations; None for OpenAI's chat format, and for what no format knows."""
    lines = value.get("loglines") if isinstance(value, Mapping) else value
    if isinstance(lines, list) and lines and isinstance(lines[0], Mapping) and sessions.matches(lines[0]):
        read = [each for _, each in sessions.conversations(enumerate(lines, start=1))]
        return [{**each, "messages": [placed(said)[1] for said in each["messages"]]} for each in read] or None
    return _converted(value)


def is_document(value: Mapping[str, Any]) -> bool:
    """Say whether an object is a whole document of a known format, as against one message."""
    return row_of(value) is not None


def session(first: Any) -> Callable[[Iterable[Numbered]], Iterator[Numbered]] | None:
    """Say how to read a file of which every line is an event of one session; None for a file of another kind."""
    return sessions.conversations if isinstance(first, Mapping) and sessions.matches(first) else None
