"""Formats: the table of formats, paths in records, and providers' usage.

The table is data/formats.toml. A row describes a document, a message, or both. :mod:`budgetkit.requests.reading.parts`
reads the parts of messages in all formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import translate
from functools import cache, lru_cache
from typing import Any, Literal

from budgetkit.budget import check_tokens
from budgetkit.files import read_toml
from budgetkit.message import Data, Raw

_DEEPEST_KEY = 12


def value_at(value: Any, path: str, unpack: bool = False) -> Any:
    """Return the value at the first existing path, or None.

    >>> value_at({"a": '{"b": [7, 8]}'}, "x|a.b.1", unpack=True), value_at({"a": [{"b": 1}, {}]}, "a.*.b")
    (8, [1])
    """
    if type(value) is dict and path.isidentifier():  # one key, as mostly
        return value.get(path)
    for steps in _steps(path):
        at = _walk(value, steps, unpack)
        if at is not None:
            return at
    return None


def without_empty(**fields: Any) -> Data:
    """Remove empty fields."""
    return {name: value for name, value in fields.items() if value}


def holds(value: Any, condition: str) -> bool:
    """Return True if a value meets a condition.

    A condition consists of paths that exist, "path=choices" and "!path", joined by " & ".

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
        (path, _one_of(choices.split(",")) if is_one else None, wanted)
        for path, is_one, choices, wanted in parted
    )


def _one_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile shell patterns into one."""
    return re.compile("|".join(map(translate, patterns)))


@lru_cache(maxsize=1024)
def _first_keys(condition: str) -> frozenset[str]:
    """Return the keys required by a condition, so that most conditions are ruled out quickly."""
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
        if type(value) is dict and step != "*":  # as nearly always
            value = value.get(step)
            if value is None:
                return None
            continue
        value = unpacked(value) if unpack else value
        if step == "*":
            members = value if isinstance(value, list) else []
            if isinstance(value, dict):
                members = [*value.values()]
            inner = [_walk(member, steps[place + 1 :], unpack) for member in members]
            return [at for at in inner if at is not None] or None
        if isinstance(value, dict) or (not isinstance(value, list) and isinstance(value, Mapping)):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def unpacked(value: Any) -> Any:
    """Parse text that is a JSON object or list; return other values unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def nested(attributes: Any) -> Any:
    """Convert a span's attributes, flat or as a list of pairs, to nested objects.

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
    """Read a value in OTLP's format, such as {"stringValue": "x"}."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    (kind, inner), *_ = value.items()
    if kind == "intValue" and isinstance(inner, str) and inner.isdigit() and len(inner) < 20:
        return int(inner)
    if kind == "arrayValue":
        values = value_at(inner, "values") or []
        return [_otlp_value(entry) for entry in values if not isinstance(entry, list)]
    if str(kind).endswith("Value"):
        return inner
    return value


def _numbered_to_lists(value: Any) -> Any:
    """Convert objects with only numeric keys to lists."""
    if not isinstance(value, dict):
        return value
    fields = {key: _numbered_to_lists(member) for key, member in value.items()}
    if fields and all(key.isdecimal() and key.isascii() and len(key) < 9 for key in fields):
        return [fields[key] for key in sorted(fields, key=int)]
    return fields


@dataclass(frozen=True, kw_only=True)
class Format:
    """A row of the table of formats: paths and conditions."""

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
    refuse: str = ""  # why the file contains no conversation, and what to pass instead
    note: str = ""  # what is said of each document


def format_table(part: str) -> Any:
    """Return one part of the table of formats."""
    return read_toml("formats.toml")[part]


@cache
def formats() -> tuple[Format, ...]:
    """Read the rows of the table and cache them."""
    return tuple(
        Format(**{name: _as_tuple(value) for name, value in row.items()})
        for row in format_table("format")
    )


@cache
def role_names() -> Mapping[str, str]:
    """Return OpenAI's role for each other name of a role."""
    return {name: role for role, others in format_table("roles").items() for name in others}


@lru_cache(maxsize=1024)
def record_rows(keys: frozenset[str]) -> tuple[Format, ...]:
    """List rows that may describe a message with these keys."""
    return tuple(row for row in formats() if row.of and _first_keys(row.of) <= keys)


def row_of(value: Raw) -> Format | None:
    """Return the first row that describes a document."""
    return _first_row(value, "needs")


def row_of_lines(first: Any) -> Format | None:
    """Return the line-by-line format that a file's first line matches, or None."""
    return _first_row(first, "lines") if isinstance(first, Mapping) else None


def _first_row(value: Raw, conditions: Literal["needs", "lines"]) -> Format | None:
    for row in formats():
        if any(holds(value, condition) for condition in getattr(row, conditions)):
            return row
    return None


@cache
def format_names() -> frozenset[str]:
    """Return the allowed values of a conversation's ``format`` field."""
    return frozenset(row.name for row in formats())


@cache
def format_named(name: str) -> Format:
    """Return the row that locates a format's messages.

    >>> format_named("gemini").messages
    'contents'
    """
    return next(row for row in formats() if row.name == name and row.messages)


def format_label(name: str) -> str:
    """Return a format's name for use in a sentence.

    >>> format_label("chatgpt")
    'ChatGPT export'
    """
    return next((row.label for row in formats() if row.name == name), name)


def nearest_format(value: Any) -> str:
    """Return a hint if a value lacks only one field of a format, otherwise ""."""
    for row in formats():
        for needed in () if row.refuse else row.needs:
            clauses = [clause for clause in needed.split(" & ") if not clause.startswith("!")]
            lacking = [clause for clause in clauses if not holds(value, clause)]
            if len(lacking) == 1 and len(clauses) > 2:
                return f"It is most like {row.label}, but lacks the field {lacking[0]!r}."
    return ""


def _as_tuple(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(_as_tuple(entry) for entry in value)


_DEEPEST = 6
_LATEST = 1e15  # in the year 33,658, in milliseconds; a number beyond it is no time
_ABOUT_ROW = ("by", "source", "example", "right")
_USUAL = ("standard", "standard_only", "default", "auto", "on_demand", "not_available", "global")


def usage_of(
    raw: Any, message_index: int | None, model: Any = None, around: Any = None
) -> Data | None:
    """Read a usage record of any provider, or return None without input tokens.

    A tier, speed or region missing from the usage is read from the surrounding record: that of the answer or, failing
    that, the requested one.

    >>> usage_of({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 5}, 1)["context_tokens"]
    903
    >>> usage_of({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, 1)["context_tokens"]
    900
    """
    if not isinstance(raw, Mapping):
        return None
    named = {"message_index": message_index, "model": model if isinstance(model, str) else None}
    unread = [path for path in _filled_fields(raw, ()) if not _is_known(path)]
    paths = _paths_in(frozenset(map(str, raw)))
    texts = ("named", *format_table("served"))
    count = {name: _count(raw, where, unread) for name, where in paths.items() if name not in texts}
    unknown = without_empty(unknown=unread)
    sent = count["input"]
    if sent is None and count["output"] is None:
        sent = count["input_alone"]
    if sent is None:
        return named | {"context_tokens": None} | unknown if unknown else None
    sent += count["input_beside"] or 0
    answered = (count["output"] or 0) + (count["thoughts_beside"] or 0)

    # What a cache read and wrote stands beside the input or inside it.
    apart = {f"cache_write_{life}_tokens": count[f"written_for_{life}"] for life in ("5m", "1h")}
    read = count["read_beside"] or count["read_inside"] or 0
    written = (
        count["written_beside"]
        or count["written_inside"]
        or sum(map(int, without_empty(**apart).values()))
    )
    total = count["total"]
    # LiteLLM adds what Anthropic counts beside the prompt to prompt_tokens, and leaves the fields standing.
    # For some providers OpenCode leaves them in the input, which its total shows.
    cached = read + written
    is_inside = "prompt_tokens" in raw or ("cache" in raw and total == sent + answered)
    is_beside = (count["read_beside"] or count["written_beside"]) and not is_inside
    context = sent
    if is_beside or cached > sent or (cached and total == sent + cached + answered):
        context += cached

    # The total says whether thoughts are a part of the answer, as their row does where it is not told.
    if (thoughts := count["thoughts_beside"]) and total == context + answered - thoughts:
        answered -= thoughts
    elif (thoughts := count["thoughts_inside"]) and total == context + answered + thoughts:
        answered += thoughts

    if total and total > context + answered:
        unknown = {"unknown": [*unknown.get("unknown", ()), "total (more than its parts)"]}

    usage = named | {
        "input_tokens": sent,
        "output_tokens": answered,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "context_tokens": context,
    }
    apart |= {f"billed_{side}_tokens": count[f"billed_{side}"] for side in ("input", "output")}
    usage |= {name: tokens for name, tokens in apart.items() if tokens is not None}
    served = {}
    for name, places in format_table("served").items():
        words = [value_at(raw, path) for path in paths[name]]
        if not any(isinstance(word, str) for word in words):
            words = [value_at(around, places, unpack=True)]
        served[name] = next(filter(None, map(_priced_apart, words)), "")
    usage |= without_empty(
        tier=served["speed"] or served["tier"],
        region=served["region"],
        web_searches=count["searches"],
    )
    # Bedrock names the lifetime of each part that it wrote; the longer one costs more.
    for written_part in value_at(raw, "cacheDetails.*") or ():
        if value_at(written_part, "ttl") == "1h":
            usage["cache_write_1h_tokens"] = _count(written_part, ["inputTokens"]) or 0
    # A compaction by the provider is a request of its own; its tokens are in none of the sums. Nor are those of an
    # advisor, another model with prices of its own, which is named as a tool that costs money.
    paid_tools = sum(_counts(raw, paths["paid"]))
    for request in value_at(raw, "|".join(f"{path}.*" for path in paths["requests"])) or ():
        kind = request.get("type") if isinstance(request, Mapping) else None
        paid_tools += kind == "advisor_message"
        if kind == "compaction":
            for name, tokens in (usage_of(request, None) or {}).items():
                if name.endswith("_tokens") and tokens:
                    usage[name] = usage.get(name, 0) + tokens
    # Sound, and pictures that a model drew, have prices of their own; Gemini counts each kind in a list.
    media = sum(_counts(raw, paths["media"]))
    for side in format_table("media_lists"):
        for part in value_at(raw, side["list"]) or ():
            if value_at(part, "modality") in side["kinds"]:
                media += _count(part, ["tokenCount", "token_count"]) or 0
    return usage | without_empty(paid_tools=paid_tools, media_tokens=media) | unknown


def seconds(stamp: Any) -> float:
    """Convert a logged time to seconds since 1970; NaN if invalid.

    >>> seconds("2026-01-01T00:00:00Z") == seconds(1767225600000)
    True
    """
    if isinstance(stamp, int | float) and not isinstance(stamp, bool) and abs(stamp) < _LATEST:
        return stamp / 1000 if stamp > 1e11 else float(stamp)
    try:
        return datetime.fromisoformat(str(stamp)).timestamp()
    except ValueError:
        return float("nan")


@cache
def _paths() -> Mapping[str, tuple[str, ...]]:
    """Return the paths for each meaning, from all rows of the table."""
    rows = format_table("usage")
    meanings = dict.fromkeys(name for row in rows for name in row if name not in _ABOUT_ROW)
    return {
        meaning: tuple("|".join(row[meaning].strip() for row in rows if meaning in row).split("|"))
        for meaning in meanings
    }


@lru_cache(maxsize=256)
def _paths_in(names: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Select the paths for each meaning that begin with a field of the record."""
    return {
        meaning: tuple(path for path in where if path.partition(".")[0] in names)
        for meaning, where in _paths().items()
    }


@cache
def _known_fields() -> re.Pattern[str]:
    """Return a pattern for the path of any field in the table."""
    return _one_of(path for paths in _paths().values() for path in paths)


@lru_cache(maxsize=1024)
def _is_known(path: str) -> bool:
    return _known_fields().match(path) is not None


def _filled_fields(value: Any, steps: tuple[str, ...]) -> Iterator[str]:
    """Yield the path of each non-empty number and text, with * for list elements."""
    if isinstance(value, Mapping) and len(steps) < _DEEPEST:
        for name, field in value.items():
            yield from _filled_fields(field, (*steps, str(name)))
    elif isinstance(value, list) and len(steps) < _DEEPEST:
        for field in value:
            yield from _filled_fields(field, (*steps, "*"))
    elif isinstance(value, int | float | str) and not isinstance(value, bool) and value:
        yield ".".join(filter(None, steps))


def _priced_apart(word: Any) -> str:
    """Return a tier, speed or region that affects the price, or ""."""
    word = word.lower().removeprefix("on_demand_") if isinstance(word, str) else ""
    return "" if word in _USUAL else word


def _counts(raw: Raw, paths: Iterable[str]) -> Iterator[int]:
    """Yield the whole numbers at or below some paths."""
    for path in paths:
        values = value_at(raw, path)
        for value in values if isinstance(values, list) else [values]:
            if type(value) is int:
                yield check_tokens(f"{path} of a provider's usage", value)


def _count(raw: Raw, paths: Iterable[str], unread: list[str] | None = None) -> int | None:
    """Return the first whole number at one of several paths, and note others that are filled."""
    for path in paths:
        value = value_at(raw, path)
        if isinstance(value, Mapping):  # a number with parts below it, as in Sentry's spans
            value = value.get("")
        is_digits = isinstance(value, str) and value.isdecimal() and len(value) < 20
        if is_digits or (isinstance(value, float) and value.is_integer()):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return check_tokens(f"{path} of a provider's usage", value)
        if unread is not None and value != "" and isinstance(value, str | float | bool):
            unread.append(path)
    return None
