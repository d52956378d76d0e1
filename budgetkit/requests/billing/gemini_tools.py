"""How Gemini 3 is shown tools: a declaration each, in braces, every text between two marks of one token.

The form is that of the chat template that Google publishes with Gemma 4; that Gemini 3 is billed for it, for the
schema's own description and for its titles was found in recorded calls of five public projects, read 2026-11-23.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from budgetkit.requests.reading.request import as_object
from budgetkit.requests.reading.tools import (
    Schema,
    function_name,
    parameters_of,
    properties_of,
    unwrapped,
)

_MARK: Final = "\0"  # stands for the token before and after a text; no text holds it
_ENDS: Final = 2  # tokens that begin and end a declaration
_DEEPEST: Final = 40  # schemas nested deeper are not shown from there on


def declaration(tool: Schema) -> tuple[tuple[str, ...], int]:
    """Write a tool as the texts that are counted each by itself, and say how many marks stand between them.

    >>> declaration({"name": "ping", "description": "Ask"})
    (('declaration:ping{description:', 'Ask', '}'), 4)
    >>> declaration({"name": "go", "parameters": {"type": "object", "properties": {"to": {"type": "string"}}}})[0][1:]
    (',parameters:{properties:{to:{type:', 'STRING', '}},type:', 'OBJECT', '}}')
    """
    described = _marked(unwrapped(tool).get("description") or "")
    parameters = parameters_of(tool)
    takes = f",parameters:{{{_schema(parameters)}}}" if parameters else ""
    pieces = f"declaration:{function_name(tool)}{{description:{described}{takes}}}".split(_MARK)
    return tuple(piece for piece in pieces if piece), len(pieces) - 1 + _ENDS


def _schema(schema: Schema, depth: int = 0) -> str:
    """Write what stands between a schema's braces."""
    if depth > _DEEPEST:
        return ""
    return ",".join(_fields(schema, depth))


def _fields(schema: Schema, depth: int) -> Iterator[str]:
    """Write the fields of a schema that the model is shown; its type comes last."""
    if schema.get("description"):
        yield f"description:{_marked(schema['description'])}"
    if _is_list(schema.get("enum")):
        yield f"enum:[{_listed(schema['enum'])}]"
    if schema.get("format"):
        yield f"format:{_marked(schema['format'])}"
    if schema.get("nullable"):
        yield "nullable:true"
    items = as_object(schema.get("items"))
    if items:
        yield f"items:{{{_schema(items, depth + 1)}}}"
    members = properties_of(schema)
    if members:
        inner = [f"{name}:{{{_schema(member, depth + 1)}}}" for name, member in members.items()]
        yield f"properties:{{{','.join(inner)}}}"
    if _is_list(schema.get("required")):
        yield f"required:[{_listed(schema['required'])}]"
    if schema.get("title"):
        yield f"title:{_marked(schema['title'])}"
    if schema.get("type"):
        yield f"type:{_marked(str(schema['type']).upper())}"


def _is_list(value: object) -> bool:
    """Whether a value is a list with something in it."""
    return isinstance(value, list | tuple) and bool(value)


def _listed(values: Any) -> str:
    return ",".join(_marked(value) for value in values)


def _marked(value: object) -> str:
    """Put a text between two marks."""
    text = "" if isinstance(value, Mapping) else str(value)
    return f"{_MARK}{text.replace(_MARK, '')}{_MARK}"
