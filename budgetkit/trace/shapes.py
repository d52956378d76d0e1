"""Shapes of a file: a conversation or a message a line, an event a line, one document, a list of any of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.plugins import load_plugin, plugin_names
from budgetkit.requests.reading.formats import Format, names, nearest, row_of, row_of_lines
from budgetkit.requests.reading.located import LocatedMessage, placed
from budgetkit.requests.reading.records import is_record
from budgetkit.trace.importers import sessions
from budgetkit.trace.importers.documents import converted, converted_lines
from budgetkit.trace.jsonl import BrokenLine, Numbered, broken_lines, unbroken

_DEEPEST = 12
_WANTED = "a conversation is an object with 'messages' or a list of messages, a message an object with 'role'"


def conversations(numbered: Iterator[Numbered], name: str) -> Iterator[Numbered]:
    """Give each conversation of a file with the line it starts on, in any of the shapes."""
    first = next(numbered, None)
    if first is None:
        return
    everything: Iterator[Numbered] = chain([first], numbered)
    if _is_saved_here(first[1]):
        for line, value in unbroken(everything):
            yield from ((line, entry) for entry in _split(value, f"{name}, line {line}"))
        return
    if sessions.may_begin(first[1]):
        records, is_session = sessions.looked_at(everything)
        everything = chain(records, numbered)
        if is_session:
            yield from sessions.conversations(everything)
            return
    row = row_of_lines(first[1])
    if row is not None:
        where = f"{name}, line {first[0]}"
        yield from ((first[0], conversation) for conversation in _as_one(everything, row, where))
        return
    everything = unbroken(everything)
    if isinstance(first[1], Mapping) and row_of(first[1]) is None and is_record(first[1]):
        document = {"messages": [LocatedMessage(line, value) for line, value in everything]}
        yield from ((first[0], entry) for entry in _converted(document) or [document])
    else:
        for line, value in everything:
            yield from ((line, entry) for entry in _split(value, f"{name}, line {line}"))


def _is_saved_here(value: Any) -> bool:
    """Say whether a line is a whole conversation that `to_line` wrote, whatever else its own format has kept."""
    if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
        return False
    return isinstance(value.get("format"), str) and value["format"] in names()


def _as_one(numbered: Iterator[Numbered], row: Format, where: str) -> list[dict[str, Any]]:
    """Read lines that are one document; lines that cannot be read are left out, and a warning says so."""
    lines: list[Any] = []
    broken: list[int] = []
    for line, value in numbered:
        if isinstance(value, BrokenLine):
            broken.append(line)
        else:
            lines.append(value)
    try:
        conversations = converted_lines(lines, row)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if broken:
        notes = [*conversations[0].get("warnings", ()), broken_lines(broken)]
        conversations[0]["warnings"] = notes
    return conversations


def _split(value: Any, where: str, depth: int = 0) -> list[Mapping[str, Any]]:
    """Read one JSON value as conversations: an object, a list of messages, or a list of either."""
    try:
        native = _converted(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if native is not None:
        return [*native]
    added = _by_plugin(value, where)
    if added is not None:
        return added
    if isinstance(value, Mapping) and "messages" in value:
        return [value]
    if (
        isinstance(value, list)
        and depth < _DEEPEST
        and any(
            isinstance(entry, list) or (isinstance(entry, Mapping) and "role" not in entry)
            for entry in value
        )
    ):
        return [conversation for entry in value for conversation in _split(entry, where, depth + 1)]
    if isinstance(value, list):
        return [{"messages": value}]
    if isinstance(value, Mapping):
        has = quoted(value)
    else:
        has = type(value).__name__
    raise ValueError(
        f"{where}: no conversation; it has {has or 'nothing'}; {nearest(value) or _WANTED}"
    )


def _by_plugin(value: Any, where: str) -> list[Mapping[str, Any]] | None:
    """Read one JSON value by the formats of other packages: the first that does not return None."""
    for name in plugin_names("formats"):
        try:
            conversations = load_plugin("formats", name)(value)
        except Exception as error:  # whatever the other package raises, its name has to be said
            reason = f"{type(error).__name__}: {one_line(str(error))}"
            problem = f"the format {brief(name)} of another package failed ({reason})"
            raise ValueError(f"{where}: {problem}; mend or remove it") from error
        if conversations is not None:
            return [{"format": name, **conversation} for conversation in conversations]
    return None


def _converted(value: Any) -> list[dict[str, Any]] | None:
    """Read one JSON value as conversations; return None for OpenAI's chat format and for unknown formats."""
    if isinstance(value, Mapping):
        lines = value.get("loglines")
    else:
        lines = value
    if isinstance(lines, list) and lines and sessions.matches(lines[0]):
        read = [
            conversation for _, conversation in sessions.conversations(enumerate(lines, start=1))
        ]
        return [
            {
                **conversation,
                "messages": [placed(message)[1] for message in conversation["messages"]],
            }
            for conversation in read
        ] or None
    return converted(value)
