"""Read conversations in the formats of providers and programs.

Formats that differ only in how they write roles, texts and calls are rows of one table
(:mod:`budgetkit.requests.reading.formats`). Separate modules read the sessions of coding agents, which have one record
per line. Formats are recognised by content, never by file name. Nothing is lost silently: a message keeps its source
under ``native``, a conversation keeps its other fields, and omissions are listed under ``warnings``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from budgetkit.budget import many, quoted
from budgetkit.message import Data, Raw
from budgetkit.requests.reading.formats import (
    Format,
    format_table,
    holds,
    value_at,
    without_empty,
)
from budgetkit.requests.reading.pairing import call_order, raw_of
from budgetkit.requests.reading.usage import usage_of

#: A row for records that are items of OpenAI Responses.
ITEMS = Format(name="", label="", items=True)
COPIED = "Not counted: {} request{} copied from an earlier session."
#: A warning about damaged records, to which :func:`notes_of` adds their number.
UNREADABLE = "{} record{} could not be read."


def text_or_none(value: Any) -> str | None:
    """Return a text, or None if it is empty or the value is not a text."""
    return value or None if isinstance(value, str) else None


def without_fields(value: Raw, *names: str) -> Data:
    """Return the fields of an object that do not have one of the names."""
    return {name: field for name, field in value.items() if name not in names}


def billed(numbers: Any, place: int | None, model: Any, **more: Any) -> Data | None:
    """Return the usage of a request, or None if it is empty.

    Usage is empty if it has neither prompt tokens nor unknown fields.
    """
    counted = usage_of(numbers, place, model)
    if counted is None or not (counted["context_tokens"] or "unknown" in counted):
        return None
    return counted | without_empty(**more)


def notes_of(numbers: Mapping[str, int]) -> list[str]:
    """Return a warning for each count above 0.

    The keys are the texts of the warnings, in which the number and the plural's "s" are filled in.

    >>> notes_of({"Left out {} line{} of comments.": 2})
    ['Left out 2 lines of comments.']
    """
    return [
        words.format(f"{number:,}", "" if number == 1 else "s")
        for words, number in numbers.items()
        if number
    ]


def is_damaged(record: Any, program: str) -> bool:
    """Return True if a record of a program cannot be read.

    A record cannot be read if it is not an object, if its content is a number, or if it meets a condition under
    ``[damaged]`` in data/formats.toml.

    >>> is_damaged({"type": "message", "message": None}, "session")
    True
    """
    if not isinstance(record, Mapping):
        return True
    if isinstance(value_at(record, "message.content|payload.content|content"), int | float):
        return True
    by_kind = format_table("damaged")[program]
    kinds = ("*", str(record.get("type")))
    return any(holds(record, condition) for kind in kinds for condition in by_kind.get(kind, ()))


def count_damaged(records: Iterable[Any], program: str) -> int:
    """Count the records of a program that cannot be read."""
    return sum(is_damaged(record, program) for record in records)


def unknown_kinds(kinds: Mapping[str, int]) -> list[str]:
    """Return a warning about omitted records, with the first five kinds."""
    if not kinds:
        return []
    examples = quoted((f"{kind:.40} ({number:,})" for kind, number in kinds.items()), 5, str)
    return [f"Left out {many(sum(kinds.values()), 'record')} of unknown kinds: {examples}."]


def with_warnings(conversation: Raw, *notes: str) -> Data:
    """Return a conversation with added warnings."""
    return {**conversation, "warnings": [*(conversation.get("warnings") or ()), *notes]}


def in_call_order(conversation: Raw) -> Data:
    """Return a conversation with each tool result after its call.

    The indices of messages in the usage and metadata are updated.
    """
    messages = conversation["messages"]
    order = call_order([*map(raw_of, messages)])
    places = {before: after for after, before in enumerate(order)}

    def moved(row: Any, name: str) -> Any:
        place = row.get(name) if isinstance(row, Mapping) else None
        return {**row, name: places.get(place, place)} if type(place) is int else row

    ordered = {**conversation, "messages": [messages[place] for place in order]}
    if isinstance(conversation.get("usage"), list):
        ordered["usage"] = [moved(row, "message_index") for row in conversation["usage"]]
    meta = moved(conversation.get("meta"), "contexts_apply_to_message")
    return ordered | without_empty(meta=meta)
