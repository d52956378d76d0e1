"""Formats: the table of formats, and the paths and conditions in it.

The table is ``data/formats.toml``. A row describes a document, a message or both.
:mod:`budgetkit.requests.reading.parts` reads the parts of messages in all formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache, lru_cache
from typing import Any

from budgetkit.files import read_toml
from budgetkit.message import Data, Raw

_DEEPEST_KEY = 12


def value_at(value: Any, path: str, unpack: bool = False) -> Any:
    """Return the first value found at alternative paths, or None.

    `path` has one or more alternatives separated by "|". An alternative is a series of keys or list positions separated
    by "."; "*" stands for all members, whose values are returned as a list. If `unpack` is true, JSON text on the path
    is parsed.

    >>> value_at({"a": '{"b": [7, 8]}'}, "x|a.b.1", unpack=True), value_at({"a": [{"b": 1}, {}]}, "a.*.b")
    (8, [1])
    """
    if type(value) is dict and path.isidentifier():  # one key, the usual case
        return value.get(path)
    for steps in _steps(path):
        at = value
        for place, step in enumerate(steps):
            if type(at) is dict and step != "*":  # the usual case
                at = at.get(step)
                continue
            if at is not None:
                at = _walk(at, steps[place:], unpack)
            break
        if at is not None:
            return at
    return None


def without_empty(**fields: Any) -> Data:
    """Return the fields that are not empty."""
    return {name: value for name, value in fields.items() if value}


def fill_template(template: Raw, values: Raw) -> Data:
    """Return a template with its names in braces replaced by values.

    Fields without a value are left out.

    >>> fill_template({"type": "file", "file": {"name": "{name}", "data": "{data}"}}, {"name": "a.pdf"})
    {'type': 'file', 'file': {'name': 'a.pdf'}}
    """
    fields: Data = {}
    for name, inner in template.items():
        value = fill_template(inner, values) if isinstance(inner, Mapping) else inner
        if isinstance(inner, str) and inner.startswith("{"):
            value = values.get(inner[1:-1])
        if value is not None:
            fields[name] = value
    return fields


def holds(value: Any, condition: str) -> bool:
    """Return True if a value meets a condition.

    A condition has one or more clauses joined by " & ". The clause "path" requires a value at the path, and
    "path=choices" requires a value that matches one of the choices. "!" negates a clause.

    >>> holds({"model": "claude-4", "messages": []}, "messages & model=claude* & !input")
    True
    """
    if type(value) is dict and not _first_keys(condition) <= value.keys():
        return False
    for path, choices, wanted in _clauses(condition):
        at = value_at(value, path, unpack=True)
        if (at is not None if choices is None else _is_one_of(at, choices)) is not wanted:
            return False
    return True


def _is_one_of(at: Any, choices: re.Pattern[str]) -> bool:
    for candidate in at if isinstance(at, list) else [at]:
        if isinstance(candidate, bool):
            candidate = json.dumps(candidate)
        if isinstance(candidate, str) and choices.match(candidate):
            return True
    return False


@lru_cache(maxsize=1024)
def _clauses(condition: str) -> tuple[tuple[str, re.Pattern[str] | None, bool], ...]:
    clauses = condition.split(" & ")
    parted = [
        (*clause.removeprefix("!").partition("="), not clause.startswith("!")) for clause in clauses
    ]
    return tuple(
        (path, one_of(choices.split(",")) if is_one else None, wanted)
        for path, is_one, choices, wanted in parted
    )


def one_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile shell patterns into one regular expression."""
    return re.compile("|".join(map(translate, patterns)))


@lru_cache(maxsize=1024)
def _first_keys(condition: str) -> frozenset[str]:
    """Return the top-level keys that a condition requires.

    An object that lacks one of these keys cannot meet the condition. Paths with alternatives are left out.
    """
    return frozenset(
        path.split(".")[0]
        for path, _, is_wanted in _clauses(condition)
        if is_wanted and "|" not in path
    ) - {"*"}


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(step for step in option.split(".") if step) for option in path.split("|"))


def _walk(value: Any, steps: Sequence[str], unpack: bool) -> Any:
    for place, step in enumerate(steps):
        value = unpacked(value) if unpack else value
        if step == "*":
            if isinstance(value, dict):
                value = [*value.values()]
            members = value if isinstance(value, list) else ()
            inner = [_walk(member, steps[place + 1 :], unpack) for member in members]
            return [at for at in inner if at is not None] or None
        if isinstance(value, dict) or (not isinstance(value, list) and isinstance(value, Mapping)):
            value = value.get(step)
        elif (
            isinstance(value, list)
            and step.lstrip("-").isdigit()
            and -len(value) <= int(step) < len(value)
        ):
            value = value[int(step)]
        else:
            return None
    return value


def unpacked(value: Any) -> Any:
    """Parse a JSON object or list, and return any other value unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def nested(attributes: Any) -> Any:
    """Convert a span's flat attributes to nested objects and lists.

    The attributes are a mapping, or a list of keys and values as in OTLP.

    >>> nested({"llm.input.0.role": "user", "llm.input.0.content": "Hello world"})
    {'llm': {'input': [{'role': 'user', 'content': 'Hello world'}]}}
    >>> nested({"user.id": 7, "user": "Ada"})
    {'user': {'id': 7, '': 'Ada'}}
    """
    root: Data = {}
    for key, value in _pairs(attributes):
        at = root
        steps = key.split(".", _DEEPEST_KEY)
        for step in steps[:-1]:
            below = at.setdefault(step, {})
            if not isinstance(below, dict):
                below = at[step] = {"": below}
            at = below
        below = at.get(steps[-1])
        if isinstance(below, dict):
            value = {**below, **(value if isinstance(value, dict) else {"": value})}
        at[steps[-1]] = value
    return _numbered_to_lists(root)


def _pairs(attributes: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(attributes, Mapping):
        return attributes.items()
    return [
        (entry["key"], _otlp_value(entry.get("value")))
        for entry in (attributes if isinstance(attributes, list) else [])
        if isinstance(entry, Mapping) and isinstance(entry.get("key"), str)
    ]


def _otlp_value(value: Any) -> Any:
    """Return the value in an OTLP object such as {"stringValue": "x"}.

    Any other value is returned unchanged.
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    (kind, inner), *_ = value.items()
    if kind == "arrayValue":
        values = value_at(inner, "values") or []
        return [_otlp_value(entry) for entry in values if not isinstance(entry, list)]
    return inner if str(kind).endswith("Value") else value


def _numbered_to_lists(value: Any) -> Any:
    """Convert objects with numeric keys to lists.

    Fields beside numbered objects are dropped, such as Azure's filter results beside the messages of a prompt.
    """
    if not isinstance(value, dict):
        return value
    fields = {key: _numbered_to_lists(member) for key, member in value.items()}
    numbers = [key for key in fields if key.isdecimal() and key.isascii() and len(key) < 99]
    if numbers and (numbers == [*fields] or all(isinstance(fields[key], dict) for key in numbers)):
        return [fields[key] for key in sorted(numbers, key=int)]
    return fields


@dataclass(frozen=True, kw_only=True)
class Format:
    """The paths and conditions of one format: a row of ``data/formats.toml``."""

    name: str
    label: str
    needs: tuple[str, ...] = ()  # conditions on a document, which must meet one of them
    each: str = ""  # path of the documents inside this one
    messages: str = ""  # path of the messages, of a body with messages, or of a text
    leaf: str = ""  # path of the last message of a tree
    order: str = ""  # field to sort the messages by
    items: bool = False  # True if a record with a type but no role is an item of an answer
    system: str = ""
    tools: str = "tools"
    answers: tuple[str, ...] = ()  # paths of alternative answers, each its own conversation
    usage: str = "usage|usageMetadata"
    model: str = "model"
    message_fields: tuple[
        tuple[str, str], ...
    ] = ()  # role and path of each field that is a message
    lines: tuple[str, ...] = ()  # conditions on the first line of a file of records
    of: str = ""  # condition on a message
    role: str = "role"  # path, or "=role"; "=" for a record that is not a message
    text: str = "content"  # path of the parts; "" if the record itself is a part
    besides: tuple[str, ...] = ()  # paths of further parts, such as calls and attachments
    call: tuple[str, ...] = ()  # paths of id, name and arguments, for a record that is a call
    result: str = "tool_call_id|tool_call_ids.0"
    to: str = ""  # path of the recipient; a message to a tool is a call
    roles: Mapping[str, str] = field(default_factory=dict)  # roles by the format's names for them
    refuse: str = ""  # error for a file without a conversation: the reason and a fix
    note: str = ""  # note about each document


def format_table(part: str) -> Any:
    """Return one section of ``data/formats.toml``."""
    return read_toml("formats.toml")[part]


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats in ``data/formats.toml``."""
    return tuple(
        Format(**{name: _as_tuple(value) for name, value in row.items()})
        for row in format_table("format")
    )


@cache
def role_names() -> Mapping[str, str]:
    """Return OpenAI's role for each role name of other formats."""
    return {name: role for role, others in format_table("roles").items() for name in others}


@lru_cache(maxsize=1024)
def record_rows(keys: frozenset[str]) -> tuple[Format, ...]:
    """Return the formats that may describe a message with the given keys."""
    return tuple(row for row in formats() if row.of and _first_keys(row.of) <= keys)


def row_of(value: Raw) -> Format | None:
    """Return the first format that describes a document, or None.

    The document must meet one of the conditions in the format's `needs`.
    """
    return _first_row(value, "needs")


def row_of_lines(first: Any) -> Format | None:
    """Return the format of a file of records, or None.

    The format is recognised by `first`, the record on the file's first line.
    """
    return _first_row(first, "lines") if isinstance(first, Mapping) else None


def _first_row(value: Raw, field: str) -> Format | None:
    pairs = _pairs_with(frozenset(value), field)
    return next((row for row, condition in pairs if holds(value, condition)), None)


@lru_cache(maxsize=1024)
def _pairs_with(keys: frozenset[str], field: str) -> tuple[tuple[Format, str], ...]:
    """List the conditions to test on a document, with their formats.

    `keys` are the document's keys, and `field` is the field of `Format` with the conditions. A condition that requires
    a key outside `keys` is left out.
    """
    return tuple(
        (row, condition)
        for row in formats()
        for condition in getattr(row, field)
        if _first_keys(condition) <= keys
    )


@cache
def format_names() -> frozenset[str]:
    """Return the allowed values of a conversation's ``format`` field."""
    return frozenset(row.name for row in formats())


@cache
def format_named(name: str) -> Format:
    """Return the first row of a named format with a messages path.

    A format can have several rows.

    >>> format_named("gemini").messages
    'contents'
    """
    return next(row for row in formats() if row.name == name and row.messages)


def format_label(name: str) -> str:
    """Return a format's label for use in a sentence.

    For an unknown format, return the name.

    >>> format_label("chatgpt")
    'ChatGPT export'
    """
    return next((row.label for row in formats() if row.name == name), name)


def nearest_format(value: Any) -> str:
    """Return a hint if a document lacks just one required field.

    Only formats that require at least three fields are considered. Return "" if there is no such format.
    """
    for row in formats():
        for needed in () if row.refuse else row.needs:
            clauses = [clause for clause in needed.split(" & ") if not clause.startswith("!")]
            lacking = [clause for clause in clauses if not holds(value, clause)]
            if len(lacking) == 1 and len(clauses) > 2:
                return f"It is closest to {row.label}, but the field {lacking[0]!r} is missing."
    return ""


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
