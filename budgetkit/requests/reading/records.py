"""Records: messages in any format, converted to OpenAI's chat format.

`read_records` reads one record after another:

1. `_row_of_record` finds the record's row in the table of formats. A message in OpenAI's own format has no row.
2. `_messages` uses that row to convert each field to a message (`_messages_by_field`), or the parts to texts, thoughts,
   calls and results, which become messages (`_messages_by_part`).
3. `_join_to_answer` adds a piece of an answer, such as a call in a separate record, to the previous message.
4. `_usage_of_record` reads the provider's usage of the request that the record answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from budgetkit.budget import many
from budgetkit.message import RESULT_ROLES, ROLES, Data, Raw
from budgetkit.requests.reading.formats import (
    Format,
    format_table,
    holds,
    record_rows,
    role_names,
    unpacked,
    value_at,
    without_empty,
)
from budgetkit.requests.reading.pairing import behind_calls, message_at_line, placed, raw_of
from budgetkit.requests.reading.parts import (
    Sorted,
    content_of,
    is_item,
    joined_text,
    objects_in,
    result_message,
    sorted_part,
)
from budgetkit.requests.reading.usage import usage_of

_GENERIC = Format(name="", label="", besides=("tool_plan", "refusal", "tool_calls"))
_ITEMS = Format(name="", label="", items=True)
# Tags around a call in the text of a message, as in some data sets.
_OPENING = re.compile(r"<(?:tool_?call|function_?call)>\s*(?=[\[{])")
_CLOSING = re.compile(r"[}\]]\s*(?:</(?:tool_?call|function_?call)>|\Z)")
# An item of an unknown type.
_NEW_ITEM = Format(name="", label="", role="=assistant", text="")


@dataclass(slots=True)
class Records:
    """The result of reading records: messages, usage, formats and notes."""

    messages: list[Any] = field(default_factory=list)
    usage: list[Data] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_records(
    records: Iterable[Any],
    row: Format | None = None,
    model: Any = None,
    read: Records | None = None,
) -> Records:
    """Convert records to messages in OpenAI's chat format.

    Records that are already in this format are left unchanged. If `read` is given, the messages, usage, formats and
    notes are added to it.
    """
    read = Records() if read is None else read
    skipped = 0
    last = row
    response: Any = None  # id of an answer in several records, which repeat its usage
    for record in records:
        line, raw = placed(record)
        record_row = _row_of_record(raw, last)
        is_item_of_a_kind = (
            isinstance(raw, Mapping) and "role" not in raw and isinstance(raw.get("type"), str)
        )
        if record_row is None and row is not None and row.items and is_item_of_a_kind:
            record_row = _NEW_ITEM
        messages = [raw] if record_row is None else _messages(raw, record_row)
        for message in messages:
            if not _join_to_answer(
                read.messages, message, is_piece=record_row is not None and is_item(raw)
            ):
                read.messages.append(message_at_line(line, message))
        if record_row is not None:
            last = record_row
            skipped += not messages
            read.formats += [record_row.name] if record_row.name else []
        # A record that is not a message may hold the usage of an answer.
        may_have_usage = record_row is not None
        if messages:
            may_have_usage = value_at(messages[-1], "role") == "assistant"
        if may_have_usage:
            usage = _usage_of_record(raw, read.messages, model)
            before, response = response, value_at(raw, format_table("paths")["response"])
            read.usage += [usage] if usage and (response is None or response != before) else []
    read.notes += unsent_notes(skipped)
    return read


def unsent_notes(number: int) -> list[str]:
    """Return a warning about records that the model does not receive.

    Without such records, the list is empty.

    >>> unsent_notes(2)
    ['Left out 2 records that the model does not receive.']
    """
    if not number:
        return []
    return [f"Left out {many(number, 'record')} that the model does not receive."]


def system_messages(body: Raw, row: Format) -> list[Data]:
    """Convert the instructions in a request body to system messages.

    >>> [m["content"] for m in system_messages({"system": "Be brief."}, Format(name="", label="", system="system"))]
    ['Be brief.']
    """
    system = unpacked(value_at(body, row.system, unpack=True)) if row.system else None
    if not system or not isinstance(system, str | list | Mapping):
        return []
    if isinstance(system, list) and all(is_record(part) and "role" in part for part in system):
        return read_records(system).messages
    (message,) = read_records([{"role": "system", "content": system}]).messages
    return [{**message, "native": system}]


def is_record(value: Any) -> bool:
    """Return True if a value is a message in any format."""
    return isinstance(value, Mapping) and (
        "role" in value or _row_of_record(value, None) is not None
    )


def is_generic(value: Raw) -> bool:
    """Return True for a message in the format of OpenAI or Anthropic.

    Similar messages of other programs, with a role and content, are included.
    """
    row = _row_of_record(value, None)
    return row is None or row.name in ("", "anthropic")


def _row_of_record(raw: Any, last: Format | None) -> Format | None:
    """Return the row of a record's format, or None for OpenAI's format.

    `last` is the row of the previous record, which takes precedence if it fits.
    """
    if not isinstance(raw, Mapping):
        return None
    is_odd = _is_odd(raw)
    foreign = format_table("marks")["foreign"]
    if raw.get("role") in ROLES and "content" in raw and not (is_odd or any(map(raw.get, foreign))):
        return None  # OpenAI's own format, as most are
    if last is not None and last.message_fields and not last.of:
        return last
    rows = record_rows(frozenset(raw))
    if last is not None and last.of:
        rows = (last, *rows)
    row = next((row for row in rows if holds(raw, row.of)), None)
    return row or (_GENERIC if is_odd or is_item(raw) else None)


def _is_odd(raw: Raw) -> bool:
    """Return True if a message departs from OpenAI's chat format."""
    role = raw.get("role")
    content = raw.get("content")
    calls = raw.get("tool_calls")
    if not isinstance(role, str):
        return False
    part_types = format_table("marks")["part"]
    has_odd_part = any(
        part.get("type") not in part_types
        or (part["type"] == "text" and not isinstance(part.get("text"), str))
        for part in (objects_in(content) if isinstance(content, list) else ())
    )
    return (
        (role not in ROLES and role.lower() in role_names())
        or isinstance(content, Mapping)
        or has_odd_part
        or (
            isinstance(calls, list)
            and any({"args", "arguments"} & call.keys() for call in objects_in(calls))
        )
        or (role == "tool" and "tool_call_id" not in raw)
        or (
            role == "assistant"
            and isinstance(content, str)
            and next(_embedded_calls(content), None) is not None
        )
    )


def _messages(raw: Raw, row: Format) -> list[Data]:
    """Convert one record to messages, using the row of its format.

    The list is empty for a record that is not a message.
    """
    if row.role == "=":
        return []
    if row.each:
        messages = [
            {**raw_of(item)} for item in read_records(value_at(raw, row.each), _ITEMS).messages
        ]
    elif row.message_fields:
        messages = _messages_by_field(raw, row)
    else:
        messages = _messages_by_part(raw, row)
    time = value_at(raw, format_table("paths")["time"])
    for message in messages:
        if isinstance(time, str | int | float) and not isinstance(time, bool):
            message["timestamp"] = time
    if messages:
        messages[-1]["native"] = raw.get("native", raw)
    return messages


def _messages_by_field(raw: Raw, row: Format) -> list[Data]:
    """Read a record in which each field is a message.

    Adjacent messages of the same role are merged.
    """
    messages: list[Data] = []
    for role, path in row.message_fields:
        if not isinstance(text := value_at(raw, path), str) or not text:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += "\n" + text
        else:
            messages.append({"role": role, "content": text})
    return messages


def _messages_by_part(raw: Raw, row: Format) -> list[Data]:
    """Convert a record's parts, including those outside its content, to messages."""
    role = _role(raw, row)
    content: Any = raw
    if row.text and not (row is _GENERIC and is_item(raw)):
        content = value_at(raw, row.text)
    contents = [content, *(unpacked(value_at(raw, path)) for path in row.besides)]
    parts = [
        sort for body in contents for part in _content_parts(body) for sort in sorted_part(part)
    ]
    if row.call:
        id, name, arguments = (value_at(raw, path, unpack=True) for path in row.call)
        arguments = unpacked(arguments)
        # Thinking in the arguments has already been read as text.
        if isinstance(arguments, Mapping):
            arguments = {key: value for key, value in arguments.items() if key != "thought"}
        parts.append(("call", _call(str(id or ""), str(name or ""), arguments)))
    if row.to and role == "assistant" and (tool := value_at(raw, row.to)) not in (None, "all"):
        id = str(value_at(raw, "id|message.id") or "")
        text = joined_text([value for kind, value in parts if kind == "text"])
        parts = [("call", _call(id, str(tool), text))]
    if role == "assistant":
        is_call = value_at(raw, row.role) == "function_call"
        parts = [piece for part in parts for piece in _split_embedded_calls(part, is_call)]
    if role in RESULT_ROLES and not any(kind in ("result", "call") for kind, _ in parts):
        id = value_at(raw, row.result)
        name = value_at(raw, "name|tool_name|message.author.name|tool_call_metadata.function_name")
        texts = [value for kind, value in parts if kind == "text"]
        return [result_message(role, None if id is None else str(id), name, texts)]
    return _messages_of_parts(role, parts)


def _split_embedded_calls(part: Sorted, is_call: bool) -> list[Sorted]:
    """Split a text part into tagged calls and the text around them.

    If `is_call` is true, the whole text is a call. A part without calls is returned unchanged.
    """
    kind, value = part
    text = joined_text(value) if kind == "text" and value.keys() == {"type", "text"} else ""
    if is_call and text:
        text = f"<tool_call>{text}</tool_call>"
    pieces: list[Sorted] = []
    end = 0
    for start, call_text, call_end in _embedded_calls(text):
        parsed = unpacked(call_text)
        calls = parsed if isinstance(parsed, list) else [parsed]
        if not all(isinstance(call, Mapping) and "name" in call for call in calls):
            continue
        before = text[end:start].strip()
        pieces += [("text", {"type": "text", "text": before})] if before else []
        pieces += [
            ("call", _call("", str(c["name"]), value_at(c, "arguments|parameters"))) for c in calls
        ]
        end = call_end
    if not pieces:
        return [part]
    after = text[end:].strip()
    return [*pieces, ("text", {"type": "text", "text": after})] if after else pieces


def _embedded_calls(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the start, JSON text and end of each tagged call."""
    end = 0
    while (opening := _OPENING.search(text, end)) and (
        closing := _CLOSING.search(text, opening.end())
    ):
        end = closing.end()
        yield opening.start(), text[opening.end() : closing.start() + 1], end


def _messages_of_parts(role: Any, parts: list[Sorted]) -> list[Data]:
    """Convert the classified parts of a record to messages.

    Results of earlier calls come first, then the answers. Each answer is followed by the results of its calls.
    """
    early: list[Data] = []
    steps: list[list[Sorted]] = [[]]
    has_call = False  # in any step
    has_result = False  # in the last step
    order = behind_calls(
        [[value["id"]] if kind == "call" else [] for kind, value in parts],
        [value["tool_call_id"] if kind == "result" else None for kind, value in parts],
    )
    for kind, value in (parts[place] for place in order):
        if kind == "result" and not has_call:
            early.append(value)
            continue
        if kind != "result" and kind != "call" and has_result:
            steps.append([])
            has_result = False
        steps[-1].append((kind, value))
        has_call = has_call or kind == "call"
        has_result = has_result or kind == "result"
    messages = early + [
        message for step in steps if step for message in _answer_with_results(role, step)
    ]
    return messages or [{"role": role, "content": None}]


def _answer_with_results(role: Any, step: list[Sorted]) -> list[Data]:
    """Return an answer's message, followed by the results of its calls.

    `step` has the classified parts of the answer. If these are only results, return only the results.
    """
    texts, thoughts, calls, results = (
        [value for kind, value in step if kind == wanted]
        for wanted in ("text", "thought", "call", "result")
    )
    if not (texts or thoughts or calls):
        return results
    # A call may occur both among the parts and outside them.
    calls = [
        c for n, c in enumerate(calls) if not c["id"] or c["id"] not in {b["id"] for b in calls[:n]}
    ]
    thought = {"reasoning_content": "\n".join(thoughts)} if thoughts else {}
    more = thought | without_empty(tool_calls=calls)
    return [{"role": role, "content": content_of(texts), **more}, *results]


def _call(id: str, name: str, arguments: Any) -> Data:
    call: Data = sorted_part({"type": "tool_call", "id": id, "name": name, "args": arguments})[0][1]
    return call


def _role(raw: Raw, row: Format) -> Any:
    """Return OpenAI's name for a record's role.

    An unknown role is returned unchanged. A missing role is "user" in Gemini's format, and "assistant" for an item of
    OpenAI Responses, unless the row of the format states another.
    """
    if row.role.startswith("="):
        return row.role[1:]
    foreign_role = value_at(raw, row.role)
    if foreign_role is None and (is_item(raw) or row.roles):
        # An item of Responses has no role: it is the assistant's, unless the format defines a role for "".
        foreign_role = "" if row.roles else "assistant"
    if foreign_role is None and row.name == "gemini":
        return "user"
    if not isinstance(foreign_role, str):
        return foreign_role
    for pattern, name in row.roles.items():
        if fnmatchcase(foreign_role, pattern):
            return name
    return role_names().get(foreign_role.lower(), foreign_role)


def _content_parts(content: Any) -> list[Any]:
    """Return the content of a message as a list of parts."""
    if content is None:
        return []
    if isinstance(content, Mapping) and isinstance(content.get("parts"), list):
        content = content["parts"]
    if isinstance(content, list):
        return [part for part in content if part is not None]
    return [content]


def _join_to_answer(messages: list[Any], message: Any, is_piece: bool) -> bool:
    """Add a piece of an answer to the previous message, if possible.

    Return True if the piece was added.
    """
    line, last = placed(messages[-1]) if messages and isinstance(message, dict) else (None, None)
    if not (isinstance(last, dict) and last.get("role") == message.get("role") == "assistant"):
        return False
    if message.get("delta") is True and isinstance(last.get("content"), str):
        joined = last["content"] + str(message.get("content") or "")
        messages[-1] = message_at_line(line, {**last, "content": joined})
        return True
    if not is_piece and (
        "native" not in last or last.get("content") is not None or last.get("tool_calls")
    ):
        return False  # a full message is joined only to thoughts without text or calls
    if "native" not in last:
        last = {**last, "native": last}
        messages[-1] = message_at_line(line, last)
    if last.get("content") is not None and message.get("content") is not None:
        return False
    for name in ("content", "reasoning_content"):
        if (text := message.get(name)) is not None:
            last[name] = text if last.get(name) is None else f"{last[name]}\n{text}"
    if calls := message.get("tool_calls"):
        last["tool_calls"] = [*(last.get("tool_calls") or []), *calls]
    natives = last["native"] if isinstance(last["native"], list) else [last["native"]]
    last["native"] = [*natives, message.get("native", message)]
    return True


def _usage_of_record(raw: Any, messages: list[Any], model: Any) -> Data | None:
    """Return the usage in a record, or None if there is none.

    The usage is assigned to the last answer among the messages.
    """
    if not isinstance(raw, Mapping):
        return None
    place = next(
        (
            at
            for at in reversed(range(len(messages)))
            if value_at(raw_of(messages[at]), "role") == "assistant"
        ),
        None,
    )
    paths = format_table("paths")
    named = value_at(raw, paths["model"])
    if isinstance(named, str):
        model = named
    counted = usage_of(value_at(raw, paths["usage"]), place, model, raw)
    return counted if counted and (counted["context_tokens"] or "unknown" in counted) else None
