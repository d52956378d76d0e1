"""Messages as they come: plain ones at once, those of a provider with their origin, all others by their format.

A provider's message carries its origin (:mod:`budgetkit.requests.reading.forms`), so that it goes out as it came.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from budgetkit.budget.quoting import brief, one_line
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.message import ROLES, SYSTEM_ROLES, Message
from budgetkit.requests.reading.forms import Form, form_of, read_form
from budgetkit.requests.reading.pairing import Pairing
from budgetkit.trace.objects import messages_in, messages_of, plain

_OWN = {"role", "content", "name", "tool_call_id", "tool_calls", "contexts"}
#: Fields that are texts in most messages; where they are, there is nothing to look at.
_TEXTS = {"role", "content", "name", "tool_call_id"}
#: Fields of which a message, or the answer that holds one, has at least one.
_OF_A_MESSAGE = ("role", "type", "content", "parts", "output", "candidates")


def read(values: Iterable[Any], pairing: Pairing | None = None) -> list[Message]:
    """Read messages, and lists of them, in whatever form; `pairing` knows the calls that were read before.

    Examples
    --------
    >>> read([{"role": "user", "content": "Hello world"}, [{"type": "ai", "content": "Hello."}]])[1].role
    'assistant'
    """
    pairing = Pairing() if pairing is None else pairing
    entries = [entry for value in values for entry in _entries(value)]
    forms = {form for form, _ in entries}
    if "responses" in forms and not forms & {"anthropic", "converse", "gemini"}:
        # A plain message between items is an item, and a call joins the answer before it.
        entries = [
            ("responses" if form == "plain" and _is_item(value) else form, value)
            for form, value in entries
        ]

    messages: list[Message] = []
    for form, group in groupby(entries, key=lambda entry: entry[0]):
        records = [value for _, value in group]
        if form == "plain":
            messages += [
                value if isinstance(value, Message) else Message(dict(value)) for value in records
            ]
        elif form == "other":
            messages += map(_sent, messages_of(records, pairing))
        else:
            messages += read_form([_record(value) for value in records], form, pairing)
    pairing.forget_answered()
    return [
        message if (raw := whole(message.raw)) is message.raw else Message(raw)
        for message in messages
    ]


def whole(value: Any) -> Any:
    r"""Return a value as JSON and UTF-8 hold it, itself where it is so: what is sent is what is saved and loaded.

    Lone halves of characters, which have no bytes in UTF-8, are replaced as they are counted; a tuple becomes a list,
    and a key that is a number a text.

    >>> whole({"role": "user", "content": "cut off \ud83d"})["content"] == "cut off \ufffd"
    True
    >>> whole({"sizes": (1, 2), 3: None})
    {'sizes': [1, 2], '3': None}
    """
    if isinstance(value, str):
        return value if value.isascii() else replace_surrogates(value)
    if isinstance(value, Mapping):
        pairs = [(name, field, _whole_key(name), whole(field)) for name, field in value.items()]
        if all(name is new_name and field is new for name, field, new_name, new in pairs):
            return value
        return {new_name: new for _, _, new_name, new in pairs}
    if isinstance(value, list | tuple):
        members = [whole(member) for member in value]
        is_whole = all(member is new for member, new in zip(value, members, strict=True))
        return value if is_whole and isinstance(value, list) else members
    return value


def _whole_key(name: Any) -> Any:
    if name is None or isinstance(name, bool | int | float):
        return json.dumps(name)
    return whole(name) if isinstance(name, str) else name


def check_sendable(messages: Iterable[Message]) -> None:
    """Refuse messages that a later request, or a saved conversation, would fail on: what JSON cannot hold, NaN too."""
    for message in messages:
        raw = message.raw
        if raw.keys() <= _TEXTS and all(type(field) is str for field in raw.values()):
            continue
        try:
            _ = message.contexts, message.tool_calls, message.images
            json.dumps(raw, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"a message of {brief(message.role)} cannot be kept: {one_line(str(error))}; a message is texts, "
                "numbers, lists and objects, as JSON has them; write it so"
            ) from None


def is_plain(value: Any) -> bool:
    """Say whether a message is in OpenAI's own form, with nothing in it that another format could mean."""
    if not isinstance(value, Mapping) or not value.keys() <= _OWN or value.get("role") not in ROLES:
        return isinstance(value, Message)
    content = value.get("content")
    calls = value.get("tool_calls") or ()
    return (content is None or isinstance(content, str)) and all(
        isinstance(call, Mapping) and "function" in call for call in calls
    )


def _is_item(value: Any) -> bool:
    """Say whether a plain message is also one of OpenAI Responses."""
    is_spoken = isinstance(value, Mapping) and value.get("role") in (
        "user",
        "assistant",
        *SYSTEM_ROLES,
    )
    return is_spoken and value.keys() <= {"role", "content"}


def provider_form(value: Any) -> Form | None:
    """Return the form of a provider in which a message, or an object that holds one, is written; None for none."""
    return next((form for form, _ in _entries(value) if form not in ("plain", "other")), None)


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """List messages, each with its form: "plain", a provider's, or "other"."""
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _entries(entry)
        return
    loaded = messages_in(value)
    if loaded is not None:
        yield from _entries(loaded)
        return
    if is_plain(value):
        yield "plain", value
        return
    records = _provider_records(value)
    forms = [form_of(record) for record in records]
    if records and all(forms):
        yield from zip(forms, records, strict=True)
    else:
        yield "other", value


def _provider_records(value: Any) -> list[Any]:
    """Return the messages in a message, or in the answer of a provider, as plain data."""
    is_message = isinstance(value, Mapping) or any(hasattr(value, name) for name in _OF_A_MESSAGE)
    if not is_message:
        return []
    try:
        record = plain(_dumped(value))
    except (TypeError, ValueError):
        return []
    if not isinstance(record, dict):
        return []
    if "role" in record or "parts" in record:
        is_answer = "stop_reason" in record and record.get("type") == "message"
        fields = ("role", "content", "type", "stop_reason") if is_answer else record
        return [{name: record[name] for name in fields if name in record}]
    output = record.get("output")
    if isinstance(output, list) and "call_id" not in record:
        return output
    if isinstance(output, dict) and isinstance(output.get("message"), dict):
        return [output["message"]]
    candidates = record.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        return [candidates[0].get("content")]
    return [record]


def _dumped(value: Any) -> Any:
    """Ask an SDK's object for JSON, in which bytes, such as Gemini's signatures, are texts."""
    write = getattr(value, "model_dump", None)
    if isinstance(value, Mapping | type) or not callable(write):
        return value
    try:
        return write(mode="json", exclude_none=True)
    except TypeError:
        return value


def _record(value: Any) -> dict[str, Any]:
    """Return a record as a request takes it."""
    raw = dict(value.raw if isinstance(value, Message) else value)
    if raw.get("type") == "message" and "stop_reason" in raw:
        return {"role": raw["role"], "content": raw["content"]}
    return raw


def _sent(message: Message) -> Message:
    """Leave out what its own format said beside it, which no request takes."""
    return Message({name: value for name, value in message.raw.items() if name != "native"})
