"""Convert documents (request bodies, exports and logs) with the table of formats.

A conversation keeps the document's other fields under their names, and a converted message keeps its source under
``native``. Content that could not be converted is listed under ``warnings``.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from os import PathLike
from typing import Any

from budgetkit.message import Data, Message, Raw
from budgetkit.requests.reading.formats import (
    Format,
    format_names,
    format_table,
    holds,
    nested,
    row_of,
    row_of_lines,
    unpacked,
    value_at,
    without_empty,
)
from budgetkit.requests.reading.forms import BYTES
from budgetkit.requests.reading.pairing import Pairing, call_order, pair_results, raw_of
from budgetkit.requests.reading.parts import as_list, is_item, objects_in
from budgetkit.requests.reading.records import is_record, read_records, system_messages
from budgetkit.requests.reading.tools import read_tools
from budgetkit.requests.reading.usage import usage_of
from budgetkit.trace.importers import (
    ITEMS,
    agents,
    copilot,
    frameworks,
    in_call_order,
    notes_of,
    sessions,
    with_warnings,
    without_fields,
)
from budgetkit.trace.importers.frameworks import answered, model_of, searches_in

_BLOCKS = ("text", "thinking", "tool_use", "tool_result", "redacted_thinking")
_STRICT = ("anthropic", "openai-chat")
#: Formats with separate record readers, by the name of their row.
_READERS: Mapping[str, Callable[[Raw], Data]] = {
    "cline-ui": agents.cline_conversation,
    "opencode": agents.opencode_conversation,
}
#: Formats whose documents are first converted to the form described by their row.
_DOCUMENTS: Mapping[str, Callable[[Raw], list[Data]]] = {
    "copilot-chat": copilot.copilot_chats,
    "copilot-cli": copilot.copilot_sessions,
    "gemini-cli": agents.gemini_documents,
    "openai-agents": frameworks.agents_traces_documents,
    "pydantic-ai": frameworks.pydantic_ai_documents,
}
_DEEPEST = 12


_at = partial(value_at, unpack=True)


def converted(value: Any, depth: int = 0, pairing: Pairing | None = None) -> list[Data] | None:
    """Convert a JSON value of a known format to conversations.

    Return None if the format is unknown or needs no conversion.

    >>> body = {"contents": [{"role": "user", "parts": [{"text": "Hello world"}]}]}
    >>> converted(body)[0]["messages"][0]["content"]
    'Hello world'
    """
    lines = value_at(value, "loglines") or value
    if isinstance(lines, list) and lines:
        lines = [*map(raw_of, lines)]
        row = row_of_lines(lines[0])
        if row is not None and row.name in sessions.SESSIONS:
            return [
                read | {"messages": [*map(raw_of, read["messages"])]}
                for _, read in sessions.session_conversations(enumerate(lines, start=1), row.name)
            ]
        if row is not None:
            return by_document({"lines": lines}, row)
    value = _as_document(value)
    if not isinstance(value, Mapping) or (
        "messages" in value and str(value.get("format")) in format_names()
    ):
        return None
    row = row_of(value)
    if row is None:
        return _without_row(value, pairing)
    if row.name in _READERS:
        return [_READERS[row.name](value)]
    if row.refuse or row.name in _DOCUMENTS:
        return by_document(value, row)
    if not row.each:
        return _by_row(value, row, depth, pairing)

    # If a document contains other documents, those without messages are left out with a warning.
    inside = list(_flat(_at(value, row.each))) if depth < _DEEPEST else []
    conversations = [
        conversation
        for record in inside
        for conversation in converted(record, depth + 1) or []
        if conversation["messages"]
    ]
    if 0 < len(conversations) < len(inside):
        note = (
            f"Left out {len(inside) - len(conversations):,} of {len(inside):,} records without a conversation "
            f"({row.label})."
        )
        conversations[0] = with_warnings(conversations[0], note)
    return conversations or [{"messages": [], "format": row.name}]


def by_document(value: Raw, row: Format) -> list[Data]:
    """Convert a document to its row's format, and read its conversations.

    If the row says that such a file has no conversation, raise `ValueError`.
    """
    if row.refuse:
        raise ValueError(row.refuse)
    conversations = []
    documents = _DOCUMENTS[row.name](value) if row.name in _DOCUMENTS else [dict(value)]
    for document in documents:
        notes = document.pop("warnings", []) + [row.note] * bool(row.note)
        for conversation in _by_row(document, row, depth=0):
            conversations.append(
                conversation | without_empty(warnings=[*notes, *conversation.get("warnings", ())])
            )
    return conversations or [{"messages": [], "format": row.name}]


def _as_document(value: Any) -> Any:
    """Return a value as a document.

    A list of messages is wrapped, and the flat attributes of a span are nested.
    """
    if isinstance(value, list):
        raw = [*map(raw_of, value)]
        objects = objects_in(raw)
        is_blocks = all("role" not in e and e.get("type") in _BLOCKS for e in objects)
        if raw and is_blocks and len(objects) == len(raw):
            return {"messages": [{"role": "assistant", "content": raw}]}
        for first in objects[:1]:
            is_shown = first.get("type") in ("say", "ask") and "ts" in first  # in Cline's window
            if is_shown or is_record(first) or is_item(first):
                return {"messages": value}
        return value
    if not isinstance(value, Mapping):
        return value
    if any(isinstance(key, str) and key.startswith("attributes.") for key in value):
        value = nested(value)
    if isinstance(value.get("attributes"), list | Mapping):
        value = {**value, "attributes": nested(value["attributes"])}
    if isinstance(value.get("events"), list) and holds(value, "events.*.attributes"):
        value = {**value, "events": [_event(entry) for entry in value["events"]]}
    if isinstance(value.get("messages"), list):
        value = {**value, "messages": _one_prompt(value["messages"])}
    return value


def _one_prompt(messages: list[Any]) -> list[Any]:
    """Unwrap a list with a single prompt, as sent by LangChain."""
    if len(messages) == 1 and isinstance(messages[0], list):
        return messages[0]
    return messages


def _event(event: Any) -> Any:
    """Read the attributes of a span's event, parsing JSON text."""
    attributes = value_at(event, "attributes")
    if isinstance(attributes, list | Mapping):
        attributes = nested(attributes)
    if not isinstance(attributes, Mapping):  # numbered keys become a list
        return event
    names = {"message", "tool_calls"} & attributes.keys()
    whole = {name: unpacked(attributes[name]) for name in names}
    return {**event, "attributes": {**attributes, **whole}}


def _flat(value: Any, depth: int = 0) -> Iterator[Any]:
    for entry in as_list(value):
        if isinstance(entry, list) and depth < _DEEPEST:
            yield from _flat(entry, depth + 1)
        else:
            yield entry


def _without_row(value: Raw, pairing: Pairing | None) -> list[Data] | None:
    """Read the messages of a document in an unlisted format.

    Return None if the messages already have OpenAI's format.
    """
    if not isinstance(value.get("messages"), list):
        return None
    read = read_records(value["messages"], None, value.get("model"))
    counted: Any = None
    # A call that was logged as one object may have its answer and its usage beside the messages.
    if read.messages and value_at(raw_of(read.messages[-1]), "role") != "assistant":
        beside = _at(value, format_table("paths")["beside"])
        if beside is not None:
            if beside is value.get("choices"):
                beside = {"choices": beside}
            answer, counted = answered(beside, [], ITEMS, read.notes)
            read.messages += answer
    messages = objects_in([*map(raw_of, read.messages)])
    sums = value.get("usage") or counted or _sums(value)
    of_answer = usage_of(sums, len(messages) - 1, value.get("model"), value)
    usage = [*read.usage, of_answer] if of_answer else read.usage
    is_changed = len(messages) != len(value["messages"]) or any("native" in m for m in messages)
    if not (read.formats or read.notes or usage or is_changed):
        return None
    records = objects_in([*map(raw_of, value["messages"])])
    usual = "openai-responses" if any(map(is_item, records)) else "openai-chat"
    format = next(iter(read.formats), usual)
    conversation = {**value, "messages": read.messages, "format": format}
    return [_finished(conversation, usage, read.notes, pairing)]


def _by_row(value: Raw, row: Format, depth: int, pairing: Pairing | None = None) -> list[Data]:
    """Read a document's conversations with the paths in its row."""
    notes: list[str] = []
    model = _at(value, row.model)
    system = system_messages(value, row)
    body = _body(value, row, depth, notes)
    messages = [*system, *body["messages"]]
    usage = [
        {**usage_row, "message_index": at + len(system)}
        for usage_row in objects_in(body.get("usage"))
        if type(at := usage_row.get("message_index")) is int
    ]
    answers = [(path, answer) for path in row.answers if (answer := _at(value, path)) is not None]
    # Fields that become messages, tools or usage are not copied.
    read = {path for _, path in row.message_fields if isinstance(value.get(path), str)}
    for paths in (row.messages, row.system, row.tools):
        options = (path for path in paths.split("|") if _at(value, path) is not None)
        read.add(next(options, ""))
    rest = without_fields(value, "usage", "messages", *read)
    # A log may store tools as JSON text.
    tools = unpacked(_at(value, row.tools))
    if isinstance(tools, list):
        tools = [*map(unpacked, tools)]
    tools = list(read_tools(tools).listed)
    id = _at(value, format_table("paths")["id"])
    conversations = []
    for path, answer in answers or [("", None)]:
        if path in ("choices", "candidates"):
            answer = {path: answer}
        answer_messages, counted = answered(answer, messages, row, notes)
        usage_row = usage_of(
            _at(value, row.usage) or counted or _sums(value),
            len(messages) + len(answer_messages) - 1,
            model_of(answer, model),
            value,
        )
        if usage_row and (searches := searches_in(answer, usage_row["model"])):
            usage_row.setdefault("web_searches", searches)
        if usage_row and ("batch" in row.name or _at(value, "request.custom_id")):
            usage_row["tier"] = "batch"
        conversation = {**body, **rest, "format": row.name}
        if tools or "tools" not in conversation:
            conversation["tools"] = tools
        if len(answers) > 1:
            conversation["title"] = path
            if id is not None:
                conversation["id"] = f"{id} {path}"
        conversation["messages"] = [*messages, *answer_messages]
        usage_rows = [*usage, usage_row] if usage_row else usage
        conversations.append(_finished(conversation, usage_rows, notes, pairing))
    return conversations


def _sums(value: Raw) -> Data:
    """Return the token sums in the fields of a logged call."""
    return {name: value[name] for name in format_table("marks")["sums"] if value.get(name)}


def _finished(
    conversation: Data, usage: list[Data], notes: list[str], pairing: Pairing | None
) -> Data:
    """Complete a conversation with usage, warnings, an id and paired results."""
    conversation = in_call_order(conversation | without_empty(usage=usage))
    messages = conversation["messages"]
    is_strict = conversation["format"] in _STRICT or pairing is not None
    notes = [*notes, *pair_results(messages, is_strict, pairing)]
    for path in ("previous_response_id", "prompt.id|request.prompt.id", "conversation.id"):
        if isinstance(id := _at(conversation, path), str) and "_" in id:  # OpenAI's have a prefix
            notes.append(f"Not counted: {id:.60}, which the provider stores.")
    if conversation.get("id") is None:
        id = _at(conversation, format_table("paths")["id"])
        if isinstance(id, str | int):
            conversation["id"] = id
    if not isinstance(conversation.get("usage"), list):
        conversation.pop("usage", None)
    return conversation | without_empty(warnings=list(dict.fromkeys(notes)))


def _body(value: Raw, row: Format, depth: int, notes: list[str]) -> Data:
    """Read the messages at a row's path, with their usage.

    The value at the path may be a list, a tree, a text, or a body in another format.
    """
    if row.message_fields and not row.messages:
        return {"messages": read_records([value], row).messages}
    stored = _at(value, row.messages) if row.messages else None
    inside = unpacked(stored)
    if isinstance(stored, str) and not _is_logged(inside):
        inside = stored  # a user's question may itself be JSON
    if isinstance(inside, Mapping):
        inside = _branch(inside, _at(value, row.leaf) if row.leaf else None, notes)
    elif isinstance(inside, list):
        inside = _one_prompt(inside)
        above = "response.parent_response_id|ancestors.-1"
        tree = {
            str(_at(node, "id|response._id")): {**node, "parentId": _at(node, above)}
            for node in objects_in(inside)
        }
        if len(tree) == len(inside) and any(
            node["parentId"] or node.get("children") for node in tree.values()
        ):
            inside = _branch(tree, None, notes)
    if isinstance(inside, Mapping):
        return _nested_body(inside, depth, notes)
    if isinstance(inside, str):
        return {"messages": [{"role": "user", "content": inside}]}
    if not isinstance(inside, list):
        return {"messages": []}
    if row.order:

        def rank(entry: Any) -> float:
            value = _at(entry, row.order)
            return value if isinstance(value, int | float) and abs(value) < 1e15 else 0.0

        inside = sorted(inside, key=rank)
    read = read_records(inside, row, _at(value, row.model))
    notes += read.notes
    return {"messages": read.messages, **without_empty(usage=read.usage)}


def _is_logged(inside: Any) -> bool:
    """Return True if JSON is a logged conversation, not a user's text."""
    if isinstance(inside, Mapping):
        return any(isinstance(inside.get(name), list) for name in ("messages", "contents", "input"))
    return isinstance(inside, list) and bool(inside) and is_record(inside[0])


def _nested_body(inside: Raw, depth: int, notes: list[str]) -> Data:
    conversations = converted(inside, depth + 1) if depth < _DEEPEST else None
    if conversations:
        notes += conversations[0].pop("warnings", ())
        return conversations[0]
    if isinstance(inside.get("messages"), list):
        return {**inside, "messages": list(inside["messages"])}
    question = _at(inside, format_table("paths")["question"])
    if isinstance(question, list | Mapping) and depth < _DEEPEST:
        inside = {"messages": question} if isinstance(question, list) else question
        return _nested_body(inside, depth + 1, notes)
    texts = {key: text for key, text in inside.items() if isinstance(text, str)}
    question_text = question if isinstance(question, str) else next(iter(texts.values()), None)
    if aside := ", ".join(key for key, text in texts.items() if text is not question_text):
        notes.append(f"Not counted: inputs {aside:.200}.")
    return {
        "messages": [] if question_text is None else [{"role": "user", "content": question_text}]
    }


def _branch(nodes: Raw, leaf: Any, notes: list[str]) -> Any:
    """Return the current branch of a message tree as a list.

    An object that is not a tree is returned unchanged.
    """
    objects = objects_in([*nodes.values()])
    # Some programs write only the children of a message.
    parents = {
        str(child): id
        for id, node in nodes.items()
        for child in as_list(value_at(node, "children"))
    }
    is_tree = parents or any("parent" in node or "parentId" in node for node in objects)
    if not is_tree or len(objects) < len(nodes):
        return nodes
    if not isinstance(leaf, str) or leaf not in nodes:
        leaf = list(nodes)[-1]
    followed: dict[str, Raw] = {}
    while isinstance(leaf, str) and leaf in nodes and leaf not in followed:
        followed[leaf] = nodes[leaf]
        leaf = _at(nodes[leaf], "parent|parentId") or parents.get(leaf)
    aside = sum(_speaks(node) for id, node in nodes.items() if id not in followed)
    attached = sum(
        not str(value_at(file, "mimeType|mime_type")).startswith(
            "image/"
        )  # images are read as parts
        for node in followed.values()
        for file in objects_in(value_at(node, "message.metadata.attachments"))
    )
    notes += notes_of(
        {
            "Not counted: {} message{} on abandoned branches.": aside,
            "Not counted: {} attached file{}.": attached,
        }
    )
    # Open WebUI writes Ollama's usage as `info`.
    return [
        {"usage": node.get("info"), **node} for node in reversed(followed.values()) if _speaks(node)
    ]


def _speaks(node: Raw) -> bool:
    """Return True if a node of a tree has a non-empty message."""
    content = _at(node, "message.content|content|response.message")
    parts = content.get("parts", True) if isinstance(content, Mapping) else content
    return bool(parts) and parts != [""]


_WRITERS = ("model_dump", "to_dict", "dict", "_asdict")
_FIELDS = (
    "role",
    "type",
    "content",
    "parts",
    "name",
    "tool_calls",
    "tool_call_id",
    "additional_kwargs",
    "usage",
)
_DEEPEST_VALUE = 100
_LIST = "a list of messages; open files and tables with load_trace"


def messages_of(values: Iterable[Any], pairing: Pairing | None = None) -> tuple[Message, ...]:
    """Convert messages of any library to OpenAI's chat format.

    Parameters
    ----------
    values : iterable or Trace
        Dictionaries in any known format, :class:`budgetkit.trace.Message`, or objects of an SDK or LangChain; or a
        loaded conversation.
    pairing : Pairing, optional
        The calls read earlier, if messages are read in several steps. With a pairing, a result without its call remains
        a tool result.

    Returns
    -------
    tuple of Message
        The messages. One value may give several messages, if an SDK groups tool results.

    Raises
    ------
    TypeError
        If a value is not a message of any known kind.
    ValueError
        If a message has no role, or if its content is invalid.

    Examples
    --------
    >>> messages_of([{"type": "human", "content": "Hello world"}])
    (Message(raw={'role': 'user', 'content': 'Hello world', 'native': {'type': 'human', 'content': 'Hello world'}}),)
    """
    if (loaded := messages_in(values)) is not None:
        return loaded
    if isinstance(values, str | bytes | PathLike) or not isinstance(values, Iterable):
        raise TypeError(f"Invalid messages of type {type(values).__name__}. Expected {_LIST}.")
    if hasattr(values, "columns"):
        raise TypeError(f"Invalid messages of type DataFrame. Expected {_LIST}.")
    raw = [as_plain(value) for value in values]
    conversations = converted({"messages": raw}, pairing=pairing)
    if conversations:
        raw = conversations[0]["messages"]
    elif pairing is None:
        raw = [raw[place] for place in call_order(raw)]
    return tuple(map(Message, raw))


def messages_in(value: Any) -> tuple[Message, ...] | None:
    """Return a loaded conversation's messages, or None for any other value.

    Examples
    --------
    >>> messages_in([{"role": "user", "content": "Hello world"}]) is None
    True
    """
    messages = getattr(value, "messages", None)
    if isinstance(messages, tuple) and all(isinstance(message, Message) for message in messages):
        return messages
    return None


def as_plain(value: Any, depth: int = 0) -> Any:
    """Convert any library's value to plain data.

    Raise `TypeError` if the value cannot be converted, and `ValueError` if it is nested too deeply.

    >>> as_plain(Message({"role": "user", "content": ("Hello", "world")}))
    {'role': 'user', 'content': ['Hello', 'world']}
    """
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if depth == _DEEPEST_VALUE:
        raise ValueError(
            f"Value nested deeper than {_DEEPEST_VALUE} levels. Check the program that made it."
        )
    if isinstance(value, Message):
        value = value.raw
    if isinstance(value, Mapping):
        return {str(key): as_plain(member, depth + 1) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_plain(member, depth + 1) for member in value]
    if isinstance(value, bytes):
        return {"type": "file", BYTES: b64encode(value).decode("ascii")}
    return as_plain(_fields_of(value), depth + 1)


def _fields_of(value: Any) -> Any:
    """Return the fields of a library's object, or its plain value."""
    if isinstance(value, PathLike) or hasattr(value, "columns"):
        raise TypeError(f"Invalid message of type {type(value).__name__}. Expected {_LIST}.")
    for name in _WRITERS:
        if callable(write := getattr(value, name, None)) and not isinstance(value, type):
            fields = write()
            return _known(fields) if isinstance(fields, Mapping) else fields
    fields = _known({name: getattr(value, name, None) for name in _FIELDS})
    if "content" in fields or "parts" in fields:
        return fields
    for name in ("item", "isoformat", "hex"):  # numpy's numbers, dates, identifiers
        if callable(write := getattr(value, name, None)):
            return write()
    expected = "a dictionary, or an object with a role and content"
    raise TypeError(f"Invalid message of type {type(value).__name__}. Expected {expected}.")


def _known(fields: Raw) -> Data:
    """Drop the fields that are None."""
    return {name: field for name, field in fields.items() if field is not None}
