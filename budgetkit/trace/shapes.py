"""Shapes of a file: a conversation or a message a line, an event a line, one document, a list of any of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from budgetkit.budget.quoting import quoted
from budgetkit.trace.importers import sessions
from budgetkit.trace.importers.documents import converted
from budgetkit.trace.importers.formats import nearest, row_of
from budgetkit.trace.importers.records import is_record
from budgetkit.trace.jsonl import LocatedMessage, Numbered, placed

_DEEPEST = 12
_WANTED = "a conversation is an object with 'messages' or a list of messages, a message an object with 'role'"


def conversations(numbered: Iterator[Numbered], name: str) -> Iterator[Numbered]:
    """Give each conversation of a file with the line it starts on, in any of the shapes."""
    first = next(numbered, None)
    if first is None:
        return
    everything = chain([first], numbered)
    if isinstance(first[1], Mapping) and sessions.matches(first[1]):
        yield from sessions.conversations(everything)
    elif isinstance(first[1], Mapping) and row_of(first[1]) is None and is_record(first[1]):
        said = {"messages": [LocatedMessage(line, value) for line, value in everything]}
        yield from ((first[0], each) for each in _converted(said) or [said])
    else:
        for line, value in everything:
            yield from ((line, each) for each in _split(value, f"{name}, line {line}"))


def _split(value: Any, where: str, depth: int = 0) -> list[Mapping[str, Any]]:
    """Read one JSON value as conversations: an object, a list of messages, or a list of either."""
    try:
        native = _converted(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if native is not None:
        return [*native]
    if isinstance(value, Mapping) and "messages" in value:
        return [value]
    if (
        isinstance(value, list)
        and depth < _DEEPEST
        and any(isinstance(each, list) or (isinstance(each, Mapping) and "role" not in each) for each in value)
    ):
        return [conversation for each in value for conversation in _split(each, where, depth + 1)]
    if isinstance(value, list):
        return [{"messages": value}]
    has = quoted(value) if isinstance(value, Mapping) else type(value).__name__
    raise ValueError(f"{where}: no conversation; it has {has or 'nothing'}; {nearest(value) or _WANTED}")


def _converted(value: Any) -> list[dict[str, Any]] | None:
    """Read one JSON value as conversations; return None for OpenAI's chat format and for unknown formats."""
    lines = value.get("loglines") if isinstance(value, Mapping) else value
    if isinstance(lines, list) and lines and isinstance(lines[0], Mapping) and sessions.matches(lines[0]):
        read = [each for _, each in sessions.conversations(enumerate(lines, start=1))]
        return [{**each, "messages": [placed(said)[1] for said in each["messages"]]} for each in read] or None
    return converted(value)
