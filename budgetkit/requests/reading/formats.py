"""Format: one row of the table of formats, and the functions that find and name rows.

The table itself is data/formats.toml. A row describes a document, a message, or both; parts of a message are read
alike in all formats, by :mod:`budgetkit.requests.reading.parts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from budgetkit.files import read_toml
from budgetkit.requests.reading.paths import holds


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One spelling of a conversation; see :mod:`budgetkit.requests.reading.paths` for paths and conditions."""

    name: str
    label: str
    needs: tuple[str, ...] = ()  # what a document of it holds, one of these
    each: str = ""  # the documents in this one
    messages: str = ""  # the messages, a body that holds them, or a text
    leaf: str = ""  # where messages are a tree: the last one
    order: str = ""  # what messages are sorted by
    items: bool = False  # whether what has a type and no role is an item of an answer
    system: str = ""
    tools: str = "tools"
    answers: tuple[str, ...] = ()  # a conversation for each
    usage: str = "usage|usageMetadata"
    model: str = "model"
    said: tuple[tuple[str, str], ...] = ()  # the fields that are a message each: role and path
    lines: tuple[
        str, ...
    ] = ()  # what the first line holds where each line is a record of one document, one of these
    of: str = ""  # what a message of it holds
    role: str = "role"  # a path, or "=role"; "=" for a record that is no message
    text: str = "content"  # where the parts are; "" where the record itself is one
    besides: tuple[str, ...] = ()  # further parts: calls, attachments
    call: tuple[str, ...] = ()  # where a record that is a call has its id, name and arguments
    result: str = "tool_call_id|tool_call_ids.0"
    to: str = ""  # whom a message goes to: one that goes to a tool is a call
    roles: Mapping[str, str] = field(default_factory=dict)  # its own names; * stands for any ending
    refuse: str = ""  # why it holds no conversation, and what to give instead


def table(part: str) -> Any:
    """Return one part of the table of formats: its rows, calls, results, thoughts, endings, roles, usage, streams."""
    return read_toml("formats.toml")[part]


@cache
def formats() -> tuple[Format, ...]:
    """Read the rows, once."""
    return tuple(
        Format(**{name: _frozen(value) for name, value in row.items()}) for row in table("format")
    )


@cache
def role_names() -> Mapping[str, str]:
    """Map each foreign name of a role to OpenAI's."""
    return {name: role for role, others in table("roles").items() for name in others}


@cache
def record_rows() -> tuple[Format, ...]:
    """List the rows that describe a message."""
    return tuple(row for row in formats() if row.of)


def row_of(value: Mapping[str, Any]) -> Format | None:
    """Return the first row that describes a document."""
    return next(
        (row for row in formats() if any(holds(value, needed) for needed in row.needs)), None
    )


def row_of_lines(first: Any) -> Format | None:
    """Return the row that describes a file by its first line, where every line is a record of one document."""
    if not isinstance(first, Mapping):
        return None
    return next(
        (row for row in formats() if any(holds(first, needed) for needed in row.lines)), None
    )


@cache
def names() -> frozenset[str]:
    """List what the field ``format`` of a conversation may say."""
    return frozenset(row.name for row in formats())


@cache
def format_named(name: str) -> Format:
    """Return the row that says where a format has its messages.

    >>> format_named("gemini").messages
    'contents'
    """
    return next(row for row in formats() if row.name == name and row.messages)


def label(name: str) -> str:
    """Return what a format is called in a sentence.

    >>> label("chatgpt")
    'ChatGPT export'
    """
    return next((row.label for row in formats() if row.name == name), name)


def nearest(value: Any) -> str:
    """Name the format that is most like a value of an unknown format, and what the value lacks; "" if there is none."""
    if isinstance(value, Mapping):
        keys = {key for key in value if isinstance(key, str)}
    else:
        keys = set[str]()
    lacking = [
        (row, _words(needed)) for row in formats() for needed in row.needs if _words(needed) - keys
    ]
    row, words = max(lacking, key=lambda candidate: len(keys & candidate[1]) / len(candidate[1]))
    if not keys & words:
        return ""
    missing = " and ".join(repr(word) for word in sorted(words - keys))
    return f"nearest is {row.label}, which would hold {missing} too; export it with these"


@cache
def _words(needed: str) -> frozenset[str]:
    """Name the top-level fields that a condition asks for."""
    clauses = (clause for clause in needed.split(" & ") if not clause.startswith("!"))
    return frozenset(clause.partition("=")[0].partition(".")[0] for clause in clauses)


def _frozen(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(_frozen(entry) for entry in value)
