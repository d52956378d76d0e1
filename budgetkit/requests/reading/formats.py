"""Format: one row of the table of formats, and the functions that find and name rows.

The table itself is data/formats.toml. A row describes a document, a message, or both; parts of a message are read
alike in all formats, by :mod:`budgetkit.requests.reading.parts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

from budgetkit.budget.amounts import check_tokens
from budgetkit.files import read_toml

_DEEPEST_KEY = 12


def found(value: Any, path: str, unpack: bool = False) -> Any:
    """Return the value at the first of several paths that exists, or None.

    >>> found({"a": '{"b": [7, 8]}'}, "x|a.b.1", unpack=True), found({"a": [{"b": 1}, {}]}, "a.*.b")
    (8, [1])
    """
    return next(
        (at for steps in _steps(path) if (at := _walk(value, steps, unpack)) is not None), None
    )


def filled(**fields: Any) -> dict[str, Any]:
    """Leave out the fields that are empty."""
    return {name: value for name, value in fields.items() if value}


def holds(value: Any, condition: str) -> bool:
    """Say whether a value meets a condition: paths that exist, "path=choices" and "!path", joined by " & ".

    >>> holds({"model": "claude-4", "messages": []}, "messages & model=claude* & !input")
    True
    """
    for path, choices, wanted in _clauses(condition):
        at = found(value, path, unpack=True)
        if (at is not None if choices is None else _is_one_of(at, choices)) is not wanted:
            return False
    return True


def _is_one_of(at: Any, choices: tuple[str, ...]) -> bool:
    candidates = at if isinstance(at, list) else [at]
    texts = [
        json.dumps(candidate) if isinstance(candidate, bool) else candidate
        for candidate in candidates
        if isinstance(candidate, str | bool)
    ]
    return any(fnmatchcase(text, choice) for text in texts for choice in choices)


@lru_cache(maxsize=1024)
def _clauses(condition: str) -> tuple[tuple[str, tuple[str, ...] | None, bool], ...]:
    clauses = condition.split(" & ")
    parted = [
        (*clause.removeprefix("!").partition("="), not clause.startswith("!")) for clause in clauses
    ]
    return tuple(
        (path, tuple(choices.split(",")) if is_one else None, wanted)
        for path, is_one, choices, wanted in parted
    )


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(step for step in option.split(".") if step) for option in path.split("|"))


def _walk(value: Any, steps: Sequence[str], unpack: bool) -> Any:
    for place, step in enumerate(steps):
        value = unpacked(value) if unpack else value
        if step == "*":
            members: Iterable[Any] = ()
            if isinstance(value, dict):
                members = value.values()
            elif isinstance(value, list):
                members = value
            return [
                at for one in members if (at := _walk(one, steps[place + 1 :], unpack)) is not None
            ] or None
        if isinstance(value, dict) or (not isinstance(value, list) and isinstance(value, Mapping)):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def unpacked(value: Any) -> Any:
    """Read text that is a JSON object or list; return all else as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def nested(attributes: Any) -> Any:
    """Turn the flat attributes of a span, or its list of keys and values, into nested objects.

    >>> nested({"llm.input.0.role": "user", "llm.input.0.content": "Hello world"})
    {'llm': {'input': [{'role': 'user', 'content': 'Hello world'}]}}
    """
    root: dict[str, Any] = {}
    for key, value in _pairs(attributes):
        at = root
        steps = key.split(".", _DEEPEST_KEY)
        for step in steps[:-1]:
            below = at.setdefault(step, {})
            if not isinstance(below, dict):
                below = at[step] = {"": below}
            at = below
        at[steps[-1]] = value
    return _listed(root)


def _pairs(attributes: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(attributes, Mapping):
        return attributes.items()
    if isinstance(attributes, list):
        entries = [one for one in attributes if isinstance(one, Mapping)]
    else:
        entries = []
    return [
        (one["key"], _typed(one.get("value"))) for one in entries if isinstance(one.get("key"), str)
    ]


def _typed(value: Any) -> Any:
    """Read OTLP's way to write a value: {"stringValue": "x"}, {"intValue": "7"}, {"arrayValue": {"values": [...]}}."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    (kind, inner), *_ = value.items()
    if kind == "intValue" and isinstance(inner, str) and inner.isdigit() and len(inner) < 20:
        return int(inner)
    if kind == "arrayValue":
        return [
            _typed(entry) for entry in found(inner, "values") or [] if not isinstance(entry, list)
        ]
    if str(kind).endswith("Value"):
        return inner
    return value


def _listed(value: Any) -> Any:
    """Turn objects whose keys are all numbers into lists."""
    if not isinstance(value, dict):
        return value
    fields = {key: _listed(member) for key, member in value.items()}
    if fields and all(key.isdecimal() and key.isascii() and len(key) < 9 for key in fields):
        return [fields[key] for key in sorted(fields, key=int)]
    return fields


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One spelling of a conversation; see :mod:`budgetkit.requests.reading.formats` for paths and conditions."""

    name: str
    label: str
    needs: tuple[str, ...] = ()  # what a document of it holds, one of these
    each: str = ""  # the documents in this one
    messages: str = ""  # the messages, a body that holds them, or a text
    leaf: str = ""  # where messages are a tree: the last one
    order: str = ""  # what messages are sorted by
    items: bool = False  # whether what has a type and no role is an item of an answer
    system: str = ""
    tools: str = "tools"
    answers: tuple[str, ...] = ()  # a conversation for each
    usage: str = "usage|usageMetadata"
    model: str = "model"
    said: tuple[tuple[str, str], ...] = ()  # the fields that are a message each: role and path
    lines: tuple[
        str, ...
    ] = ()  # what the first line holds where each line is a record of one document, one of these
    of: str = ""  # what a message of it holds
    role: str = "role"  # a path, or "=role"; "=" for a record that is no message
    text: str = "content"  # where the parts are; "" where the record itself is one
    besides: tuple[str, ...] = ()  # further parts: calls, attachments
    call: tuple[str, ...] = ()  # where a record that is a call has its id, name and arguments
    result: str = "tool_call_id|tool_call_ids.0"
    to: str = ""  # whom a message goes to: one that goes to a tool is a call
    roles: Mapping[str, str] = field(default_factory=dict)  # its own names; * stands for any ending
    refuse: str = ""  # why it holds no conversation, and what to give instead


def table(part: str) -> Any:
    """Return one part of the table of formats: its rows, calls, results, thoughts, endings, roles, usage, streams."""
    return read_toml("formats.toml")[part]


@cache
def formats() -> tuple[Format, ...]:
    """Read the rows, once."""
    return tuple(
        Format(**{name: _frozen(value) for name, value in row.items()}) for row in table("format")
    )


@cache
def role_names() -> Mapping[str, str]:
    """Map each foreign name of a role to OpenAI's."""
    return {name: role for role, others in table("roles").items() for name in others}


@cache
def record_rows() -> tuple[Format, ...]:
    """List the rows that describe a message."""
    return tuple(row for row in formats() if row.of)


def row_of(value: Mapping[str, Any]) -> Format | None:
    """Return the first row that describes a document."""
    return next(
        (row for row in formats() if any(holds(value, needed) for needed in row.needs)), None
    )


def row_of_lines(first: Any) -> Format | None:
    """Return the row that describes a file by its first line, where every line is a record of one document."""
    if not isinstance(first, Mapping):
        return None
    return next(
        (row for row in formats() if any(holds(first, needed) for needed in row.lines)), None
    )


@cache
def names() -> frozenset[str]:
    """List what the field ``format`` of a conversation may say."""
    return frozenset(row.name for row in formats())


@cache
def format_named(name: str) -> Format:
    """Return the row that says where a format has its messages.

    >>> format_named("gemini").messages
    'contents'
    """
    return next(row for row in formats() if row.name == name and row.messages)


def label(name: str) -> str:
    """Return what a format is called in a sentence.

    >>> label("chatgpt")
    'ChatGPT export'
    """
    return next((row.label for row in formats() if row.name == name), name)


def nearest(value: Any) -> str:
    """Name the format that is most like a value of an unknown format, and what the value lacks; "" if there is none."""
    if isinstance(value, Mapping):
        keys = {key for key in value if isinstance(key, str)}
    else:
        keys = set[str]()
    lacking = [
        (row, _words(needed)) for row in formats() for needed in row.needs if _words(needed) - keys
    ]
    row, words = max(lacking, key=lambda candidate: len(keys & candidate[1]) / len(candidate[1]))
    if not keys & words:
        return ""
    missing = " and ".join(repr(word) for word in sorted(words - keys))
    return f"nearest is {row.label}, which would hold {missing} too; export it with these"


@cache
def _words(needed: str) -> frozenset[str]:
    """Name the top-level fields that a condition asks for."""
    clauses = (clause for clause in needed.split(" & ") if not clause.startswith("!"))
    return frozenset(clause.partition("=")[0].partition(".")[0] for clause in clauses)


def _frozen(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(_frozen(entry) for entry in value)


def usage_of(raw: Any, message_index: int | None, model: Any = None) -> dict[str, Any] | None:
    """Read one usage record of any provider; None where it counts no input.

    >>> usage_of({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 5}, 1)["context_tokens"]
    903
    >>> usage_of({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, 1)["context_tokens"]
    900
    """
    if not isinstance(raw, Mapping):
        return None
    names = table("usage")
    sent = _count(raw, names["input"])
    if sent is None and found(raw, names["output"]) is None:
        sent = _count(raw, "totalTokens")  # what Gemini says when it is asked to count
    if sent is None:
        return None
    # litellm adds what Anthropic counts beside the prompt to prompt_tokens, and leaves the fields standing
    inside = "prompt_tokens" in raw
    read, written = (_count(raw, names[f"{what}_beside"]) or 0 for what in ("read", "written"))
    counted = {
        "message_index": message_index,
        "model": model if isinstance(model, str) else None,
        "input_tokens": sent,
        "output_tokens": (_count(raw, names["output"]) or 0)
        + (_count(raw, names["thoughts"]) or 0),
        "cache_read_tokens": read or _count(raw, names["read_inside"]) or 0,
        "cache_write_tokens": written or _count(raw, names["written_inside"]) or 0,
        "context_tokens": sent + (0 if inside else read + written),
    }
    for life in ("5m", "1h"):
        tokens = _count(raw, names[f"written_for_{life}"])
        if tokens is not None:
            counted[f"cache_write_{life}_tokens"] = tokens
    return counted


def _count(raw: Mapping[str, Any], paths: str) -> int | None:
    """Return the first whole number that stands at one of several paths."""
    for path in paths.split("|"):
        value = found(raw, path)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return check_tokens(f"{path} of a provider's usage", value)
    return None
