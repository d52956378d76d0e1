"""Conversations in the formats of providers and programs, read into OpenAI's chat format.

Formats that are another spelling of role, text and calls are rows of one table (:mod:`.formats`); what a session of a
coding agent writes line by line has a module of its own. Each is recognised by its content, never by the name of the
file, and nothing is lost in silence: a message carries what it was made of under ``native``, a conversation its other
fields, and what was left out is said under ``warnings``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.trace.importers import sessions
from budgetkit.trace.importers.documents import converted as _converted
from budgetkit.trace.jsonl import placed

__all__ = ["converted"]
Conversation = dict[str, Any]


def converted(value: Any) -> list[Conversation] | None:
    """Read one JSON value as conversations; return None for OpenAI's chat format and for unknown formats."""
    lines = value.get("loglines") if isinstance(value, Mapping) else value
    if isinstance(lines, list) and lines and isinstance(lines[0], Mapping) and sessions.matches(lines[0]):
        read = [each for _, each in sessions.conversations(enumerate(lines, start=1))]
        return [{**each, "messages": [placed(said)[1] for said in each["messages"]]} for each in read] or None
    return _converted(value)
