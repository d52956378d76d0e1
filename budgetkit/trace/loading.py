"""Conversations from files and values, as :func:`load_trace` takes them.

Each is named by its format.

    {"messages": [...], "tools": [...], "contexts": [...], "meta": {...}}   one conversation a line
    {"role": "user", "content": "..."}                                       one message a line

All other formats stand in data/formats.toml.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import cache
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from budgetkit.budget import brief, one_line, quoted, warn_caller
from budgetkit.budget.errors import missing_file, unknown_name
from budgetkit.files import data_files, data_path
from budgetkit.message import Data, Raw
from budgetkit.plugins import load_plugin, plugin_names
from budgetkit.requests.reading.formats import (
    Format,
    format_label,
    format_names,
    holds,
    nearest_format,
    row_of,
    row_of_lines,
    value_at,
)
from budgetkit.requests.reading.records import LocatedMessage, is_record, placed
from budgetkit.trace.containers import MEMBERS, Part, opened
from budgetkit.trace.conversation import Trace, plain
from budgetkit.trace.importers import sessions
from budgetkit.trace.importers.documents import converted, converted_lines
from budgetkit.trace.jsonl import (
    BrokenLine,
    Numbered,
    OutflowError,
    Progress,
    broken_lines,
    unbroken,
)
from budgetkit.trace.opening import made_trace
from budgetkit.trace.tables import Columns, frame_rows, is_row
from budgetkit.trace.tables import conversations as table_conversations

_DEEPEST = 12
_SPAN = "attributes & context|span_id|spanId|trace_id|traceId|parent_id"
_WANTED = (
    "Give an object with 'messages', a list of objects with 'role', or a file of a known format."
)


class NoConversationError(ValueError):
    """Say that a value holds no conversation."""


def conversations(
    numbered: Iterator[Numbered], name: str, columns: Columns = None
) -> Iterator[Numbered]:
    """Give each conversation of a file with the line it starts on, in any of the shapes."""
    first = next(numbered, None)
    if first is None:
        return
    everything: Iterator[Numbered] = chain([first], numbered)
    if is_row(first[1], columns):
        yield from table_conversations(unbroken(everything), name, columns)
        return
    # A whole conversation that `to_line` wrote, whatever else its own format has kept.
    is_list = isinstance(value_at(first[1], "messages"), list)
    if is_list and str(value_at(first[1], "format")) in format_names():
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
        return
    spans: list[Numbered] = []  # of a log of spans those of models hold conversations
    refused = []
    for line, value in everything:
        place = f"{name}, line {line}"
        if not holds(value, _SPAN):
            yield from ((line, entry) for entry in _split(value, place, columns))
            continue
        try:
            spans += [(line, entry) for entry in _split(value, place, columns)]
        except NoConversationError as error:
            refused.append(error)
    if refused and not spans:
        raise refused[0]
    if refused:
        note = f"Spans without a conversation are left out: {len(refused):,}."
        line, entry = spans[0]
        spans[0] = (line, {**entry, "warnings": [*(entry.get("warnings") or ()), note]})
    yield from spans


def _as_one(numbered: Iterator[Numbered], row: Format, where: str) -> list[Data]:
    """Read lines that form one document; warn of unreadable lines."""
    lines: list[Any] = []
    broken = []
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


def _split(value: Any, where: str, columns: Columns = None, depth: int = 0) -> list[Raw]:
    """Read one JSON value as conversations: an object, a list of messages, or a list of either."""
    if isinstance(value, list) and value and is_row(value[0], columns):
        return [row for _, row in table_conversations(enumerate(value, start=1), where, columns)]
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
        return _entries(value, where, columns, depth)
    if isinstance(value, list):
        return [{"messages": value}]
    if isinstance(value, Mapping):
        # A key around the list of conversations, or around a single one.
        for key, inside in value.items():
            is_list = isinstance(inside, list) and all(
                isinstance(entry, Mapping) for entry in inside
            )
            if (
                inside
                and depth < _DEEPEST
                and (is_list or (isinstance(inside, Mapping) and len(value) == 1))
            ):
                with suppress(NoConversationError):
                    return _split(inside, f"{where}, field {brief(key)}", columns, depth + 1)
        has = f"the fields {quoted(value)}" if value else "an empty object"
    else:
        has = f"a value of type {type(value).__name__}"
    raise NoConversationError(
        f"{where}: no conversation in {has}. {nearest_format(value) or _WANTED}"
    )


def _entries(value: list[Any], where: str, columns: Columns, depth: int) -> list[Raw]:
    """Read the entries of a list; those without a conversation are left out and named."""
    read: list[Raw] = []
    refused = []
    for number, entry in enumerate(value, start=1):
        try:
            read += _split(entry, where, columns, depth + 1)
        except NoConversationError as error:
            title = _title(entry) if isinstance(entry, Mapping) else ""
            refused.append((f"{number:,} {brief(title)}" if title else f"{number:,}", error))
    if refused and not read:
        raise refused[0][1]
    if refused:
        entries = ", ".join(entry for entry, _ in refused[:5])
        note = f"Entries without a conversation are left out: {len(refused):,}, entry {entries}."
        read[0] = {**read[0], "warnings": [*(read[0].get("warnings") or ()), note]}
    return read


def _by_plugin(value: Any, where: str) -> list[Raw] | None:
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


def _converted(value: Any) -> list[Data] | None:
    """Read one JSON value as conversations; return None for OpenAI's chat format and for unknown formats."""
    lines = value.get("loglines") if isinstance(value, Mapping) else value
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


#: A path, a shipped trace's name, an open file, a frame, or messages and bodies as values.
Source = Any


@cache
def shipped_traces() -> tuple[str, ...]:
    """Name the traces that come with budgetkit.

    Returns
    -------
    tuple of str
        Sorted names, each of which :func:`load_trace` takes.

    Examples
    --------
    >>> shipped_traces()
    ('coding-agent', 'made-up-chats', 'made-up-session', 'mixed-language', 'support-chat')
    """
    files = map(PurePosixPath, data_files("traces"))
    return tuple(sorted(file.stem for file in files if file.suffix == ".jsonl"))


def load_trace(
    source: Source,
    conversation: int | str = 0,
    progress: Progress | None = None,
    columns: Columns = None,
) -> Trace:
    """Load one conversation.

    Parameters
    ----------
    source : str, path, binary file, or values
        A shipped trace's name, the path of a file in any known format or of a folder, an open file; or messages
        as a list of dictionaries or of an SDK's objects, a request's body, a pandas frame.
    conversation : int or str
        Which one of several: its place from 0 on, its id or its title.
    progress : callable, optional
        Called with bytes read and bytes in all, about once a megabyte and at the end.
    columns : mapping, optional
        For a table: which column is the "role", the "content" and the "conversation".

    Returns
    -------
    Trace
        The conversation; its `format` says what the file was, its `warnings` what was left out.

    Raises
    ------
    ValueError
        If there is no such shipped trace or conversation, or the file is not what it should be.
    FileNotFoundError
        If there is no such file.
    ImportError
        If reading the file needs an extra that is not installed.

    Examples
    --------
    >>> len(load_trace("support-chat").turns) >= 60
    True
    >>> load_trace([{"type": "human", "content": "Hello world"}]).format
    'LangChain messages'
    """
    trace_ids = []
    for place, trace in enumerate(iter_traces(source, progress, columns)):
        if conversation in (place, trace.id, _title(trace.fields)):
            return trace
        trace_ids.append(trace.id)
    ids = ", ".join(map(one_line, trace_ids[:5]))
    if len(trace_ids) > 5:
        ids += ", ..."
    choices = (
        f"it has {len(trace_ids)}, 0 to {len(trace_ids) - 1}, with the ids {ids}; take one of these"
    )
    raise ValueError(
        f"conversation {brief(conversation)} of {_name(source)} was asked for; {choices}"
    )


def load_traces(
    source: Source, progress: Progress | None = None, columns: Columns = None
) -> list[Trace]:
    """Load every conversation of a file or a folder.

    Parameters
    ----------
    source, progress, columns
        As in :func:`load_trace`.

    Returns
    -------
    list of Trace
        In the file's order; at least one.

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        As :func:`load_trace`; an error about a file names the line.

    Examples
    --------
    >>> [(trace.id, len(trace.turns)) for trace in load_traces("mixed-language")]
    [('mixed-language', 35)]
    """
    return list(iter_traces(source, progress, columns))


def list_traces(source: Source, columns: Columns = None) -> pd.DataFrame:
    """List the conversations of a file with title and size, for choosing; nothing is counted or checked.

    Parameters
    ----------
    source, columns
        As in :func:`load_trace`.

    Returns
    -------
    DataFrame
        One row a conversation, in the file's order: id, title, format, messages, characters (of text).

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        As :func:`load_trace`.

    Examples
    --------
    >>> list_traces("support-chat")[["id", "format"]].to_dict("records")
    [{'id': 'support-chat', 'format': 'OpenAI chat'}]
    """
    rows = []
    for id, value, _ in _named(source, None, columns):
        messages = value["messages"] if isinstance(value["messages"], list) else []
        name = str(id if value.get("id") is None else value["id"])
        format_name = str(value.get("format") or "openai-chat")
        rows.append(
            (
                name,
                _title(value),
                format_label(format_name),
                len(messages),
                sum(map(_length, messages)),
            )
        )
    return pd.DataFrame(rows, columns=["id", "title", "format", "messages", "characters"])


def iter_traces(
    source: Source, progress: Progress | None = None, columns: Columns = None
) -> Iterator[Trace]:
    """Load a file's conversations one after the other, holding one at a time.

    Parameters
    ----------
    source, progress, columns
        As in :func:`load_traces`, which raises the same errors.

    Yields
    ------
    Trace
        At least one.
    """
    for id, value, where in _named(source, progress, columns):
        yield made_trace(value, id, where)


def _named(
    source: Source, progress: Progress | None, columns: Any
) -> Iterator[tuple[str, Raw, str]]:
    """Give each conversation with a default id and its place in the file."""
    stem = PurePosixPath(_name(source)).stem
    places = count()
    if files := _files_in(source):
        left_out = {}
        for path in files:
            try:
                yield from _named(path, progress, columns)
                next(places)
            except OutflowError:
                raise
            except ValueError as error:
                left_out[path.name] = str(error)
        if next(places) == 0:
            raise ValueError(next(iter(left_out.values())))
        _tell_left_out(source, left_out)
        return
    empty = []
    refused = {}  # of an archive, files of other kinds are left out
    for file in (source, *sub_agents_of(source)):
        with _opened(file) as stream:
            for name, numbered in _parts(stream, file, progress, columns):
                try:
                    for line, value in conversations(numbered, name, columns):
                        where = f"{name}, line {line}"
                        if value.get("format") and value["messages"] == []:
                            empty.append(
                                f"{where}: {format_label(str(value['format']))} without a message"
                            )
                            continue
                        place = next(places)
                        yield stem if place == 0 else f"{stem}-{place + 1}", value, where
                except OutflowError:
                    raise
                except ValueError as error:
                    if name == _name(source) or not hasattr(stream, "read"):
                        raise
                    refused[name] = str(error)
    if next(places) == 0:
        problem = next(iter([*empty, *refused.values()]), f"{_name(source)} is an empty trace")
        raise ValueError(
            f"{problem}; a trace has at least one message with a role; give a file that has one"
        )
    _tell_left_out(source, refused)


def _tell_left_out(source: Source, refused: Mapping[str, str]) -> None:
    if refused:
        left = ", ".join(map(one_line, list(refused)[:3]))
        problem = f"files of {_name(source)} that hold no conversation are left out"
        warn_caller(f"{problem}: {len(refused):,}, {left}")


def _files_in(source: Source) -> list[Path]:
    """List the files of a folder that can hold conversations; those of sub-agents come with their session."""
    if not isinstance(source, str | os.PathLike) or not Path(source).expanduser().is_dir():
        return []
    if isinstance(source, str) and source in shipped_traces():
        return []
    files = [
        path
        for path in sorted(Path(source).expanduser().rglob("*"))
        if path.suffix in (*MEMBERS, ".zip", ".eval") and path.is_file() and not path.is_symlink()
    ]
    sub_agents = {agent for path in files for agent in sub_agents_of(path)}
    return [path for path in files if path not in sub_agents and not path.name.startswith(".")]


def sub_agents_of(source: Source) -> list[Path]:
    """List the files of a session's sub-agents, which Claude Code keeps in a folder beside it; no link is followed."""
    if not isinstance(source, str | os.PathLike) or Path(source).suffix != ".jsonl":
        return []
    session = Path(source).expanduser().with_suffix("")
    beside = session.parent.resolve()
    return sorted(
        path
        for path in (session / "subagents").rglob("agent-*.jsonl")
        if path.is_file() and path.resolve() == beside / path.relative_to(session.parent)
    )


def _name(source: Source) -> str:
    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        return "conversation"
    if isinstance(source, str | os.PathLike):
        named = source
    else:
        named = str(getattr(source, "name", "the uploaded file"))
    return one_line(Path(named).name)


def _title(value: Raw) -> str:
    title = next(
        (value[name] for name in ("title", "name") if isinstance(value.get(name), str)), ""
    )
    return " ".join(title.split())


def _length(record: Any) -> int:
    """Count the characters of text in a message that has not been checked."""
    raw = placed(record)[1]
    content = value_at(raw, "content")
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return sum(len(text) for text in texts if isinstance(text, str))


def _opened(source: Source) -> Any:
    """Open a path or a shipped trace; a file that is already open is left to its owner to close."""
    if not isinstance(source, str | os.PathLike):
        return nullcontext(source)
    if isinstance(source, str) and source in shipped_traces():
        return data_path(f"traces/{source}.jsonl").open("rb")
    path = Path(source).expanduser()
    shipped = ", ".join(shipped_traces())
    if path.is_file():
        return path.open("rb")
    if len(path.parts) == 1 and not path.suffix:
        unknown = unknown_name("trace", str(source), shipped_traces())
        raise ValueError(f"{unknown} Or pass the path of a file.")
    problem = missing_file(path)
    if path.exists():
        problem = f"Not a file: {one_line(str(path))}. Pass the path of a file."
    raise FileNotFoundError(f"{problem} Or choose a shipped trace: {shipped}.")


def _parts(stream: Any, source: Source, progress: Progress | None, columns: Any) -> Iterator[Part]:
    """Yield the values of a file, a frame, or a given value."""
    if hasattr(stream, "read"):
        yield from opened(stream, _name(source), progress, columns)
    elif hasattr(stream, "to_dict") and hasattr(stream, "columns"):
        yield "the frame", frame_rows(stream, columns)
    else:
        yield "the given value", iter([(1, plain(stream))])
