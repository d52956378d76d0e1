"""Importers of conversations from the formats of providers and programs.

Formats that differ only in the spelling of role, text and calls are rows of one table
(:mod:`budgetkit.requests.reading.formats`); the line-by-line sessions of coding agents have modules of their own.
Formats are recognised by content, never by file name. Nothing is lost silently: a message keeps its source under
``native``, a conversation its other fields, and omissions are listed under ``warnings``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from budgetkit.budget import brief
from budgetkit.message import Data, Raw
from budgetkit.requests.reading.formats import Format, usage_of, without_empty
from budgetkit.requests.reading.parts import as_text

#: A row for records that are items of OpenAI Responses.
ITEMS = Format(name="", label="", items=True)
COPIED = "Not counted: requests of the session that this one continues"


def tool_call(id: Any, name: Any, arguments: Any) -> Data:
    """Return a tool call in OpenAI's format."""
    function = {"name": str(name or ""), "arguments": as_text(arguments)}
    return {"id": str(id or ""), "type": "function", "function": function}


def tool_result(id: Any, content: Any, **more: Any) -> Data:
    """Return a tool result as a message."""
    return {
        "role": "tool",
        "tool_call_id": str(id or ""),
        "content": as_text(content),
    } | without_empty(**more)


def answer(content: Any, thoughts: list[str], calls: list[Data], **more: Any) -> Data:
    """Return an answer as an assistant message."""
    thought = "\n".join(thoughts)
    return {"role": "assistant", "content": content} | without_empty(
        tool_calls=calls, reasoning_content=thought, **more
    )


def billed(numbers: Any, place: int | None, model: Any, **more: Any) -> Data | None:
    """Return the usage of a request, or None if it billed nothing."""
    counted = usage_of(numbers, place, model)
    if counted is None or not counted["context_tokens"]:
        if unread := (counted or {}).get("unknown"):
            warnings.warn(
                f"Left out: a request whose usage is unreadable ({brief(unread[0])}).",
                stacklevel=2,
            )
        return None
    return counted | without_empty(**more)


def notes_of(numbers: Mapping[str, int]) -> list[str]:
    """Return the warnings whose counts are above 0."""
    return [f"{words} ({number:,})." for words, number in numbers.items() if number]


def unknown_kinds(kinds: Mapping[str, int]) -> list[str]:
    """Return a warning about omitted records, with the first five kinds."""
    examples = ", ".join(f"{kind:.40} ({number:,})" for kind, number in list(kinds.items())[:5])
    return [f"Left out: records of unknown kinds ({sum(kinds.values()):,}): {examples}."] * bool(
        kinds
    )


def with_warnings(conversation: Raw, *notes: str) -> Data:
    """Return a conversation with more warnings."""
    return {**conversation, "warnings": [*(conversation.get("warnings") or ()), *notes]}


def one_text(parts: list[Any]) -> Any:
    """Return a single text as a string, several parts as a list, or None."""
    if len(parts) == 1 and parts[0].get("type") == "text":
        return parts[0]["text"]
    return parts or None
