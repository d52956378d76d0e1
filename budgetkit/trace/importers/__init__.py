"""Conversations in the formats of providers and agents, read into OpenAI's chat format.

One module a format. Each recognises its own by the content, never by the name of the file, and keeps what it
does not understand: a message carries what it was made of under ``native``, a conversation its other fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from budgetkit.trace.importers import anthropic, gemini, recordings, responses, sessions, trajectories
from budgetkit.trace.importers.usage import usage_of
from budgetkit.trace.jsonl import Numbered

__all__ = ["converted", "session", "usage_of"]

_BODIES = (recordings, trajectories, responses, gemini, anthropic)
_READ = ("openai-chat", "openai-responses", "anthropic", "gemini", "session", "swe-agent", "tau-bench")
Conversation = dict[str, Any]


def converted(value: Any) -> Conversation | None:
    """Read one JSON value as a conversation of a format known here.

    Examples
    --------
    >>> body = {"contents": [{"role": "user", "parts": [{"text": "Hello world"}]}]}
    >>> converted(body)["messages"][0]["content"]
    'Hello world'
    """
    if not isinstance(value, Mapping) or ("messages" in value and value.get("format") in _READ):
        return None
    return next((module.conversation(value) for module in _BODIES if module.matches(value)), None)


def session(first: Any) -> Callable[[Iterable[Numbered]], Iterator[Numbered]] | None:
    """Say how to read a file of which every line is an event of one session."""
    return sessions.conversations if isinstance(first, Mapping) and sessions.matches(first) else None
