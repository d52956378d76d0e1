"""Load conversations from files and values.

These are the basic formats:

    {"messages": [...], "tools": [...], "contexts": [...], "meta": {...}}   one conversation a line
    {"role": "user", "content": "..."}                                       one message a line

All other formats are in ``data/formats.toml``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain, count, islice
from pathlib import Path, PurePosixPath
from typing import Any

import budgetkit.frames as pd
from budgetkit.budget import brief, many, one_line, quoted, warn_caller
from budgetkit.budget.errors import missing_file, unknown_name
from budgetkit.files import data_files, data_path
from budgetkit.message import Raw
from budgetkit.plugins import load_plugin, plugin_names
from budgetkit.requests.reading.formats import (
    Format,
    format_label,
    holds,
    nearest_format,
    row_of,
    row_of_lines,
    value_at,
)
from budgetkit.requests.reading.pairing import LocatedMessage
from budgetkit.requests.reading.records import is_record
from budgetkit.trace.containers import MEMBERS, Opener, Part
from budgetkit.trace.conversation import Trace, title_in
from budgetkit.trace.importers import sessions, with_warnings
from budgetkit.trace.importers.agents import stored_session
from budgetkit.trace.importers.documents import as_plain, by_document, converted
from budgetkit.trace.jsonl import (
    BrokenLine,
    Numbered,
    OutflowError,
    Progress,
    broken_lines,
    unbroken,
)
from budgetkit.trace.opening import made_trace, place_name
from budgetkit.trace.tables import Columns, TableReader, UnknownColumnsError

_DEEPEST = 12
_LOOKED_AT = 200  # after so many records of unknown kinds, a file is not a session
_FRAME, _VALUE = "the frame", "the given value"
#: A path, a shipped trace's name, an open file, a frame, or messages and request bodies as values.
Source = Any
_SPAN = "attributes & context|span_id|spanId|trace_id|traceId|parent_id"
_WANTED = (
    "Pass an object with 'messages', a list of objects with 'role', or a file of a known format."
)


class NoConversationError(ValueError):
    """The error for a value without a conversation.

    It is created with a problem and the value. Its text adds a fix, which takes time to find, so a list of a million
    such values finds only the one that is shown.
    """

    def __str__(self) -> str:
        problem, value = self.args
        return f"{problem} {nearest_format(value) or _WANTED}"


class UnreadableFileError(UserWarning, ValueError):
    """The warning about a broken JSON file in a folder.

    ``budgetkit check`` and the fixture for pytest raise it as an error.
    """


@dataclass(frozen=True)
class Loader:
    """A loader of conversations from files and values."""

    progress: Progress | None = None
    columns: Columns = None

    def sources(self, source: Source) -> Iterator[tuple[str, Raw, str]]:
        """Yield each conversation with a default id and its location.

        In a folder or archive, files without a conversation are left out with a warning. If the source has no
        conversation at all, raise `ValueError`.
        """
        files = _files_in(source)
        places = count()
        refused: dict[str, str] = {}  # files of other kinds, in a folder or an archive
        failed_requests: list[str] = []
        problem = f"{_name(source)}: no messages. Pass at least one message with a role."
        if files:
            for path in files:
                try:
                    yield from self.sources(path)
                    next(places)
                except OutflowError:
                    raise
                except ValueError as error:
                    refused[path.name] = str(error)
                    is_data = ".json" in path.name or path.suffix in (".csv", ".tsv")
                    if is_data and not isinstance(error, NoConversationError | UnknownColumnsError):
                        warn_caller(f"Left out: {error}", UnreadableFileError)
            if next(places) == 0:
                raise ValueError(next(iter(refused.values())))
        else:
            stem = PurePosixPath(_name(source)).stem
            for name, numbered in self._parts(source):
                try:
                    for line, value in self.conversations(numbered, name):
                        where = f"{name}, line {line}"
                        if value.get("format") and value["messages"] == []:
                            label = format_label(str(value["format"]))
                            problem = f"{where}: no messages ({label}). Pass at least one message with a role."
                            # An export may have empty chats, but a request of a batch has failed.
                            if "batch" in label:
                                failed_requests.append(where)
                            continue
                        place = next(places)
                        yield stem if place == 0 else f"{stem}-{place + 1}", value, where
                except OutflowError:
                    raise
                except ValueError as error:
                    if name in (_name(source), _FRAME, _VALUE):
                        raise
                    refused[name] = str(error)
            if next(places) == 0:
                raise ValueError(next(iter(refused.values()), problem))
        for left_out, noun in ((refused, "file"), (failed_requests, "line")):
            if left_out:
                examples = quoted(left_out, 3, one_line)
                number = many(len(left_out), noun)
                warn_caller(
                    f"Left out {number} of {_name(source)} without a conversation: {examples}."
                )

    def _parts(self, source: Source) -> Iterator[Part]:
        """Yield the name and the values of each part of a source.

        A part is a file, a frame or a given value. The parts of a session file include the files of its sub-agents.
        """
        if not isinstance(source, str | os.PathLike):
            if hasattr(source, "read"):
                yield from Opener(self.columns, self.progress).parts(source, _name(source))
            elif hasattr(source, "to_dict") and hasattr(source, "columns"):
                yield _FRAME, TableReader(_FRAME, self.columns).frame(source)
            else:
                yield _VALUE, iter([(1, as_plain(source))])
            return
        stored = stored_session(source)
        if stored is not None:
            yield _name(source), iter([(1, stored)])
            return
        for path in (_found(source), *sub_agents_of(source)):
            with path.open("rb") as stream:
                yield from Opener(self.columns, self.progress).parts(stream, _name(path))

    def conversations(self, numbered: Iterator[Numbered], name: str) -> Iterator[Numbered]:
        """Yield each conversation of a file with its first line's number."""
        first = next(numbered, None)
        if first is None:
            return
        everything: Iterator[Numbered] = chain([first], numbered)
        table = TableReader(name, self.columns)
        if table.fits(first[1]):
            yield from table.conversations(unbroken(everything))
            return
        records, row = _line_format(everything)
        everything = chain(records, numbered)
        start, begins = first
        if row is not None and row.name in sessions.SESSIONS:
            yield from sessions.session_conversations(everything, row.name)
            return
        if row is not None:
            # Lines that form one document; unreadable lines are left out with a warning.
            entries = [*everything]
            broken = [line for line, value in entries if isinstance(value, BrokenLine)]
            lines = [value for _, value in entries if not isinstance(value, BrokenLine)]
            with place_name(f"{name}, line {start}"):
                documents = by_document({"lines": lines}, row)
            if broken:
                documents[0] = with_warnings(documents[0], broken_lines(broken))
            yield from ((start, document) for document in documents)
            return
        everything = unbroken(everything)
        is_message = is_record(begins) and "messages" not in begins and row_of(begins) is None
        if is_message:
            document = {"messages": [LocatedMessage(line, value) for line, value in everything]}
            for conversation in converted(document) or [document]:
                yield start, conversation
            return
        spans: list[Numbered] = []  # in a log of spans, only spans of models have conversations
        refused = []
        for line, value in everything:
            place = f"{name}, line {line}"
            if not holds(value, _SPAN):
                yield from ((line, entry) for entry in self._split(value, place))
                continue
            try:
                spans += [(line, entry) for entry in self._split(value, place)]
            except NoConversationError as error:
                refused.append(error)
        if refused and not spans:
            raise refused[0]
        if refused:
            line, entry = spans[0]
            note = f"Left out {many(len(refused), 'span')} without a conversation."
            spans[0] = (line, with_warnings(entry, note))
        yield from spans

    def _split(self, value: Any, where: str, depth: int = 0) -> list[Raw]:
        """Return the conversations in a JSON value.

        The value is an object, a list of messages, or a list of such objects and lists. If it has no conversation,
        raise `NoConversationError`.
        """
        table = TableReader(where, self.columns)
        if isinstance(value, list) and value and table.fits(value[0]):
            return [row for _, row in table.conversations(enumerate(value, start=1))]
        native: list[Any] | None
        with place_name(where):
            native = converted(value)
        if native is None:
            native = _by_plugin(value, where)
        if native is not None:
            return [*native]
        if isinstance(value, Mapping) and "messages" in value:
            return [value]
        if isinstance(value, list):
            is_flat = not any(
                isinstance(entry, list) or (isinstance(entry, Mapping) and "role" not in entry)
                for entry in value
            )
            if is_flat or depth >= _DEEPEST:
                return [{"messages": value}]
            return self._entries(value, where, depth)
        if isinstance(value, Mapping):
            # The conversations may be under a key, or under two keys if a log compares two answers.
            conversations: list[Raw] = []
            for key, inside in value.items():
                is_list = isinstance(inside, list) and all(
                    isinstance(entry, Mapping) for entry in inside
                )
                is_only = isinstance(inside, Mapping) and len(value) == 1
                if inside and depth < _DEEPEST and (is_list or is_only):
                    with suppress(NoConversationError):
                        place = f"{where}, field {brief(key)}"
                        conversations += self._split(inside, place, depth + 1)
            if conversations:
                return conversations
            has = f"the fields {quoted(value)}" if value else "an empty object"
        else:
            has = f"a value of type {type(value).__name__}"
        raise NoConversationError(f"{where}: no conversation in {has}.", value)

    def _entries(self, value: list[Any], where: str, depth: int) -> list[Raw]:
        """Return the conversations in a list, adding a warning about other entries.

        If no entry has a conversation, raise `NoConversationError`.
        """
        conversations: list[Raw] = []
        refused = []
        for number, entry in enumerate(value, start=1):
            try:
                conversations += self._split(entry, where, depth + 1)
            except NoConversationError as error:
                title = title_in(entry) if isinstance(entry, Mapping) else ""
                refused.append((f"{number:,} {brief(title)}" if title else f"{number:,}", error))
        if refused and not conversations:
            raise refused[0][1]
        if refused:
            entries = quoted((f"entry {entry}" for entry, _ in refused), 5, str)
            note = f"Left out {many(len(refused), 'entry', 'entries')} without a conversation: {entries}."
            conversations[0] = with_warnings(conversations[0], note)
        return conversations


def _by_plugin(value: Any, where: str) -> list[Raw] | None:
    """Convert a JSON value with the first plug-in format that accepts it.

    Return None if no plug-in accepts the value.
    """
    for name in plugin_names("formats"):
        try:
            conversations = load_plugin("formats", name)(value)
        except Exception as error:  # a plug-in may raise anything
            reason = f"{type(error).__name__}: {one_line(str(error))}"
            raise ValueError(
                f"{where}: plug-in format {brief(name)} failed ({reason}). Correct or uninstall the plug-in."
            ) from error
        if conversations is not None:
            return [{"format": name, **conversation} for conversation in conversations]
    return None


def _line_format(numbered: Iterator[Numbered]) -> tuple[list[Numbered], Format | None]:
    """Read records until one of them reveals the format of the lines.

    Return these records, and the format or None.

    A session may begin with records of unknown kinds, which have a type but no role.
    """
    records = []
    for line, value in islice(numbered, _LOOKED_AT):
        records.append((line, value))
        row = row_of_lines(value)
        if row is not None and (len(records) == 1 or row.name in sessions.SESSIONS):
            return records, row
        has_kind = isinstance(value_at(value, "type"), str) or len(records) > 1
        if not has_kind or value_at(value, "role") is not None:
            break
    return records, None


@cache
def shipped_traces() -> tuple[str, ...]:
    """List the traces shipped with budgetkit.

    Returns
    -------
    tuple of str
        The traces' names in alphabetical order, for :func:`load_trace`.

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
        The name of a shipped trace; the path of a folder or of a file in any known format; an open file; a list of
        messages as dictionaries or SDK objects; a request body; or a pandas frame.
    conversation : int or str
        The conversation to load, by index (counting from 0), id or title.
    progress : callable, optional
        Function called with the bytes read so far and the total bytes, about once per megabyte and at the end.
    columns : mapping, optional
        A mapping from "role", "content" and "conversation" to the column names of a table.

    Returns
    -------
    Trace
        The conversation, with the `format` of its file and `warnings` about omissions.

    Raises
    ------
    ValueError
        If there is no such shipped trace or conversation, or if the file is invalid.
    FileNotFoundError
        If the file does not exist.
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
        if conversation in (place, trace.id, title_in(trace.fields)):
            return trace
        trace_ids.append(trace.id)
    last = len(trace_ids) - 1
    numbers = f"an index from 0 to {last}, or an id" if last else "0 (the only one) or its id"
    choices = f"Choose {numbers}: {quoted(trace_ids)}."
    raise ValueError(f"No conversation {brief(conversation)} in {_name(source)}. {choices}")


def load_traces(
    source: Source, progress: Progress | None = None, columns: Columns = None
) -> list[Trace]:
    """Load all conversations in a file or folder.

    Parameters
    ----------
    source, progress, columns
        As in :func:`load_trace`.

    Returns
    -------
    list of Trace
        At least one conversation, in the order of the source.

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        As in :func:`load_trace`; an error in a file names the line.

    Examples
    --------
    >>> [(trace.id, len(trace.turns)) for trace in load_traces("mixed-language")]
    [('mixed-language', 35)]
    """
    return list(iter_traces(source, progress, columns))


def list_traces(source: Source, columns: Columns = None) -> pd.DataFrame:
    """List the conversations in a source with their titles and sizes.

    Parameters
    ----------
    source, columns
        As in :func:`load_trace`.

    Returns
    -------
    DataFrame
        One row per conversation, in the order of the source. The columns are id, title, format, messages (the number of
        messages) and characters (the number of characters in their texts).

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        As in :func:`load_trace`.

    Examples
    --------
    >>> list_traces("support-chat")[["id", "format"]].to_dict("records")
    [{'id': 'support-chat', 'format': 'OpenAI chat'}]
    """
    rows = [
        (
            trace.id,
            title_in(trace.fields),
            trace.format,
            len(trace.messages),
            sum(len(message.text) for message in trace.messages),
        )
        for trace in iter_traces(source, columns=columns)
    ]
    return pd.DataFrame(rows, columns=["id", "title", "format", "messages", "characters"])


def iter_traces(
    source: Source, progress: Progress | None = None, columns: Columns = None
) -> Iterator[Trace]:
    """Iterate over the conversations in a source, building one at a time.

    Parameters
    ----------
    source, progress, columns
        As in :func:`load_traces`, with the same errors.

    Yields
    ------
    Trace
        The next conversation; there is at least one.
    """
    for id, value, where in Loader(progress, columns).sources(source):
        yield made_trace(value, id, where)


def _files_in(source: Source) -> list[Path]:
    """List the conversation files of a folder, without the sub-agents' files.

    Hidden files and links are skipped, too. The list is empty if the source is not a folder.
    """
    if not isinstance(source, str | os.PathLike) or source in shipped_traces():
        return []
    # These functions of os.path accept an unknown user's folder, and names that are too long.
    folder = Path(os.path.expanduser(source))
    files = [
        path
        for path in sorted(folder.rglob("*") if os.path.isdir(folder) else ())
        if path.suffix in (*MEMBERS, ".zip", ".eval") and path.is_file() and not path.is_symlink()
    ]
    sub_agents = {agent for path in files for agent in sub_agents_of(path)}
    return [path for path in files if path not in sub_agents and not path.name.startswith(".")]


def sub_agents_of(source: Source) -> list[Path]:
    """List a session's sub-agent files, skipping links."""
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
    if hasattr(source, "read"):
        source = str(getattr(source, "name", "the uploaded file"))
    if isinstance(source, str | os.PathLike):
        return one_line(Path(source).name)
    return "conversation"


def _found(source: str | os.PathLike[str]) -> Any:
    """Return the file for a path or a shipped trace's name."""
    if isinstance(source, str) and source in shipped_traces():
        return data_path(f"traces/{source}.jsonl")
    path = Path(os.path.expanduser(source))
    if os.path.isfile(path):
        return path
    if len(path.parts) == 1 and not path.suffix:
        names = unknown_name("trace", str(source), shipped_traces())
        raise ValueError(f"{names.removesuffix('.')}, or pass the path of a file.")
    if os.path.exists(path):
        raise FileNotFoundError(
            f"Not a file: {one_line(str(path))}. Pass a file or a folder of files."
        )
    shipped = ", ".join(shipped_traces())
    raise FileNotFoundError(f"{missing_file(path)} Shipped traces: {shipped}.")
