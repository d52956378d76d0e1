"""Conversations from files: OpenAI's chat format as JSONL or JSON, read line by line.

    {"messages": [...], "tools": [...], "contexts": [...], "meta": {...}}   one conversation a line
    [{"role": "user", "content": "..."}, ...]                                the same without the rest
    {"role": "user", "content": "..."}                                       one message a line

Passages stand under ``contexts``, on the message they were retrieved for or on the conversation; there they
belong to the message whose index is ``meta.contexts_apply_to_message``, else to the last one of the user.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.files import data_files, data_path
from budgetkit.message import Message, Passage
from budgetkit.trace.conversation import Trace
from budgetkit.trace.importers import converted, session
from budgetkit.trace.jsonl import LocatedMessage, Numbered, Progress, values

__all__ = ["iter_traces", "load_trace", "load_traces", "shipped_traces"]

Source = str | os.PathLike[str] | BinaryIO
_BESIDE = ("id", "messages", "tools", "functions", "contexts", "meta")


def shipped_traces() -> tuple[str, ...]:
    """Name the traces that come with budgetkit.

    Returns
    -------
    tuple of str
        Sorted names, each of which :func:`load_trace` takes.

    Examples
    --------
    >>> shipped_traces()
    ('coding-agent', 'mixed-language', 'support-chat')
    """
    files = map(PurePosixPath, data_files("traces"))
    return tuple(sorted(file.stem for file in files if file.suffix == ".jsonl"))


def load_trace(source: Source, conversation: int | str = 0, progress: Progress | None = None) -> Trace:
    """Load one conversation.

    Parameters
    ----------
    source : str, path or binary file
        Name of a shipped trace, path of a JSONL or JSON file, or an open file.
    conversation : int or str
        Which one of a file with several: its place from 0 on, or its id.
    progress : callable, optional
        Called with bytes read and bytes in all, about once a megabyte and at the end.

    Returns
    -------
    Trace
        The conversation.

    Raises
    ------
    ValueError
        If there is no such shipped trace or conversation, or the file is not what it should be.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> len(load_trace("support-chat").turns) >= 60
    True
    """
    known: list[str] = []
    for place, trace in enumerate(iter_traces(source, progress)):
        if conversation in (place, trace.id):
            return trace
        known.append(trace.id)
    ids = ", ".join(map(one_line, known[:5])) + (", ..." if len(known) > 5 else "")
    raise ValueError(
        f"conversation {brief(conversation)} of {_name(source)} was asked for; "
        f"it has {len(known)}, 0 to {len(known) - 1}, with the ids {ids}; take one of these"
    )


def load_traces(source: Source, progress: Progress | None = None) -> list[Trace]:
    """Load every conversation of a file.

    Parameters
    ----------
    source : str, path or binary file
        Name of a shipped trace, path of a JSONL or JSON file, or an open file.
    progress : callable, optional
        Called with bytes read and bytes in all, about once a megabyte and at the end.

    Returns
    -------
    list of Trace
        In the file's order; at least one.

    Raises
    ------
    ValueError
        If the file is not what it should be; the error names the line.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> [(trace.id, len(trace.turns)) for trace in load_traces("mixed-language")]
    [('mixed-language', 35)]
    """
    return list(iter_traces(source, progress))


def iter_traces(source: Source, progress: Progress | None = None) -> Iterator[Trace]:
    """Load a file's conversations one after the other, holding one at a time.

    Parameters
    ----------
    source : str, path or binary file
        Name of a shipped trace, path of a JSONL or JSON file, or an open file.
    progress : callable, optional
        Called with bytes read and bytes in all, about once a megabyte and at the end.

    Yields
    ------
    Trace
        At least one.

    Raises
    ------
    ValueError
        If the file is not what it should be; the error names the line.
    FileNotFoundError
        If there is no such file.
    """
    name, stem = _name(source), PurePosixPath(_name(source)).stem
    with _opened(source) as stream:
        places = count()
        for line, value in _conversations(values(stream, name, progress), name):
            place = next(places)
            yield _trace(value, stem if place == 0 else f"{stem}-{place + 1}", f"{name}, line {line}")
        if next(places) == 0:
            raise ValueError(
                f"{name} is an empty trace; a trace has at least one message with a role; give a file that has one"
            )


def _name(source: Source) -> str:
    if isinstance(source, str | os.PathLike):
        return one_line(Path(source).name)
    return one_line(Path(str(getattr(source, "name", "the uploaded file"))).name)


def _opened(source: Source) -> Any:
    """Open a path or a shipped trace; a file that is open already stays its owner's to close."""
    if not isinstance(source, str | os.PathLike):
        return nullcontext(source)
    if isinstance(source, str) and source in shipped_traces():
        return data_path(f"traces/{source}.jsonl").open("rb")
    path, shipped = Path(source).expanduser(), ", ".join(shipped_traces())
    if path.is_file():
        return path.open("rb")
    if len(path.parts) == 1 and not path.suffix:
        raise ValueError(
            f"no trace {brief(str(source))}; shipped are {shipped}; use one of these, or the path of a file"
        )
    found = "that is a folder" if path.is_dir() else "there is none"
    raise FileNotFoundError(
        f"a trace file {one_line(str(path))} was asked for; {found}; correct the path, or use one of {shipped}"
    )


def _conversations(numbered: Iterator[Numbered], name: str) -> Iterator[Numbered]:
    """Give each conversation with the line it starts on, whichever of the shapes the file has."""
    first = next(numbered, None)
    if first is None:
        return
    everything = chain([first], numbered)
    if isinstance(first[1], Mapping) and "role" in first[1]:
        yield first[0], {"messages": [LocatedMessage(line, value) for line, value in everything]}
        return
    if (read := session(first[1])) is not None:
        yield from read(everything)
        return
    for line, value in everything:
        yield from ((line, each) for each in _split(value, f"{name}, line {line}"))


def _split(value: Any, where: str) -> list[Mapping[str, Any]]:
    """Take one JSON value as conversations: an object, a list of messages, or a list of either."""
    native = converted(value)
    if native is not None:
        return [native]
    if isinstance(value, Mapping) and "messages" in value:
        return [value]
    if isinstance(value, list) and any(
        isinstance(each, list) or (isinstance(each, Mapping) and "role" not in each) for each in value
    ):
        return [conversation for each in value for conversation in _split(each, where)]
    if isinstance(value, list):
        return [{"messages": value}]
    has = quoted(value) if isinstance(value, Mapping) else type(value).__name__
    raise ValueError(
        f"{where}: no conversation; it has {has or 'nothing'}; "
        "a conversation is an object with 'messages' or a list of messages, a message an object with 'role'"
    )


def _trace(value: Mapping[str, Any], default_id: str, where: str) -> Trace:
    """Read one conversation; every error says where it is."""
    written = value["messages"]
    if not isinstance(written, list) or not written:
        raise ValueError(
            f"{where}: an empty trace; 'messages' is {'an empty list' if written == [] else type(written).__name__}; "
            "give it a list of at least one message with a role"
        )
    places = [_place(each, number, where) for number, each in enumerate(written, start=1)]
    messages = tuple(_message(each, place) for each, place in zip(written, places, strict=True))
    _refuse_orphans(messages, places)
    meta = value.get("meta") if isinstance(value.get("meta"), Mapping) else None
    return Trace(
        id=str(value["id"]) if value.get("id") is not None else default_id,
        messages=messages,
        tools=_tools(value, where),
        contexts=_contexts(messages, value.get("contexts"), meta or {}, where),
        meta=meta or {},
        source=where,
        fields={key: field for key, field in value.items() if key not in _BESIDE},
    )


def _place(value: Any, number: int, where: str) -> str:
    if isinstance(value, LocatedMessage):
        return f"{where.rpartition(', line ')[0]}, line {value.line}"
    return f"{where}, message {number}"


def _message(value: Any, where: str) -> Message:
    try:
        message = Message(value.value if isinstance(value, LocatedMessage) else value)
        message.contexts  # noqa: B018 - passages are read here, so that a broken one is refused with its place
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return message


def _refuse_orphans(messages: tuple[Message, ...], places: list[str]) -> None:
    """Refuse a tool result that answers no earlier call: no provider takes it, and no group would hold it."""
    called: set[str] = set()
    for place, message in zip(places, messages, strict=True):
        called.update(call.id for call in message.tool_calls)
        if message.role == "tool" and (message.tool_call_id is None or message.tool_call_id not in called):
            known = ", ".join(map(one_line, sorted(called)[:5])) or "none"
            raise ValueError(
                f"{place}: a tool result for call {brief(message.raw.get('tool_call_id'))}; "
                f"the calls before it are {known}; put the assistant message with that call before it, or leave it out"
            )


def _tools(value: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any], ...]:
    tools = value.get("tools") or value.get("functions") or []
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        raise ValueError(
            f"{where}: tools of type {type(tools).__name__}; tools are a list of schemas, each an object; write them so"
        )
    return tuple(tools)


def _contexts(
    messages: tuple[Message, ...], given: Any, meta: Mapping[str, Any], where: str
) -> dict[int, tuple[Passage, ...]]:
    """Collect the passages by message, the conversation's own at the message they apply to."""
    found = {index: message.contexts for index, message in enumerate(messages) if message.raw.get("contexts")}
    if given:
        users = (index for index in reversed(range(len(messages))) if messages[index].role == "user")
        index = meta.get("contexts_apply_to_message", next(users, len(messages) - 1))
        if not isinstance(index, int) or not 0 <= index < len(messages):
            raise ValueError(
                f"{where}: contexts for message {brief(index)}; the conversation has messages 0 to "
                f"{len(messages) - 1}; correct meta.contexts_apply_to_message"
            )
        try:
            found[index] = (*found.get(index, ()), *map(Passage.of, given))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from None
    return found
