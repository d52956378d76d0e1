"""Paths into foreign JSON: how a table, of formats or of requests, says where something stands.

    "a.b.0"    the first element of b in a            "a|b.c"   the first of these that leads somewhere
    "a.*.b"    every b below an element of a          "a=x,y"   (in a condition) it is x or y; x may end with *

Logs keep whole bodies as text: what reads documents goes on inside text that is JSON, what reads messages never does,
since what somebody said may be JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

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
