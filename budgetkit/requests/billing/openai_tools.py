"""How OpenAI's models since gpt-3.5-turbo-0125 are shown tools (a TypeScript-like namespace) and an answer's schema.

A rule a function below. They were derived from recorded calls of public projects (requests with the provider's
usage; read 2026-11-21), and none is documented by OpenAI.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgetkit.requests.reading.request import as_object
from budgetkit.requests.reading.tools import (
    Schema,
    function_name,
    inlined,
    parameters_of,
    properties_of,
    unwrapped,
)

_DEEPEST = 40  # schemas nested deeper, or that refer to themselves, are "any" from there on


# Keys of a choice that keep a union from standing on one line.
_MORE_THAN_A_TYPE = frozenset(
    {"title", "description", "default", "format", "properties", "items", "enum", "anyOf"}
)


def namespace(tools: Sequence[Schema], plain: bool = False) -> str:
    r"""Write tools as the namespace that the model is shown; with `plain`, unions stand on one line.

    >>> place = {"type": "string", "description": "Town and country"}
    >>> parameters = {"properties": {"place": place, "days": {"type": "integer", "default": 3}}, "required": ["place"]}
    >>> tool = {"name": "forecast", "description": "Look up the weather", "parameters": parameters}
    >>> print(namespace([tool, {"name": "ping"}]))
    namespace functions {
    <BLANKLINE>
    // Look up the weather
    type forecast = (_: {
    // Town and country
    place: string,
    days?: number, // default: 3
    }) => any;
    <BLANKLINE>
    type ping = () => any;
    <BLANKLINE>
    } // namespace functions
    """
    functions = (written_function(tool, plain) for tool in tools)
    return "\n".join(["namespace functions {", "", *functions, "} // namespace functions"])


def written_function(tool: Schema, plain: bool = False) -> str:
    """Write one function: its description as comment lines, its type, a blank line."""
    function = unwrapped(tool)
    schema = inlined(parameters_of(tool))
    writer = _Writer(plain)
    takes = "_: " + "\n".join([*_comments(schema), writer.object(schema, 0)])
    called = f"type {function_name(tool)} = ({takes if properties_of(schema) else ''}) => any;"
    return "\n".join([*_lines(function.get("description")), called, ""])


@dataclass(frozen=True, slots=True)
class _Writer:
    """Write the schema of one function's parameters as types."""

    plain: bool

    def object(self, schema: Schema, depth: int) -> str:
        """Write an object, on one line if no property has a comment, a default or an object inside."""
        members = properties_of(schema)
        required = schema.get("required")
        if not isinstance(required, list | tuple):
            required = ()
        written = [
            self.member(name, member, name in required, depth) for name, member in members.items()
        ]
        if not any("\n" in line or "//" in line for line in written):
            return f"{{ {' '.join(written).removesuffix(',')} }}"
        return "\n".join(["{", *written, "}"])

    def member(self, name: str, schema: Schema, required: bool, depth: int) -> str:
        """Write one property: comments above, then name and type, then its default."""
        typed = self.type(schema, depth)
        described = isinstance(schema.get("type"), list | tuple) and schema.get("description")
        if typed.startswith("\n") and not described:
            colon = ":"
        else:
            colon = ": "
        line = f"{name}{'' if required else '?'}{colon}{typed},{_trailing(schema)}"
        return "\n".join([*_comments(schema), line])

    def type(self, schema: Schema, depth: int) -> str:
        """Write a type; a union stands on lines of its own."""
        if depth > _DEEPEST:
            return "any"
        for joined in ("anyOf", "oneOf"):
            if isinstance(schema.get(joined), list | tuple):
                choices = [as_object(choice) for choice in schema[joined]]
                return self.union(choices, depth, is_bare=_is_bare(schema))
        kind = schema.get("type", "any")
        if isinstance(kind, list | tuple):
            return self.union(
                [{**schema, "type": name} for name in kind], depth, is_bare=_is_bare(schema)
            )
        if isinstance(schema.get("enum"), list | tuple):
            return " | ".join(_json(choice) for choice in schema["enum"])
        if "const" in schema:
            return _json(schema["const"])
        return self.named(str(kind), schema, depth)

    def union(self, choices: Sequence[Schema], depth: int, is_bare: bool) -> str:
        """Write each choice on a line with its description behind it.

        gpt-5 is shown all choices on one line, and so is every model where no choice has anything written beside it.
        """
        if self.plain or (
            is_bare and not any(_MORE_THAN_A_TYPE.intersection(choice) for choice in choices)
        ):
            return " | ".join(self.type(choice, depth + 1) for choice in choices)
        lines = []
        for choice in choices:
            typed = self.type(choice, depth + 1)
            if "\n" in typed or not choice.get("description"):
                comment = ""
            else:
                comment = f" // {choice['description']}"
            lines.append(f" | {typed}{comment}{_trailing(choice, is_choice=True)}")
        return "\n" + "\n".join(lines) + "\n"

    def named(self, kind: str, schema: Schema, depth: int) -> str:
        """Write an array, an object, a number, or the type's own name."""
        if kind == "array":
            return self.array(schema, depth)
        if kind == "object" or (kind == "any" and properties_of(schema)):
            if not properties_of(schema):
                return "object"
            return self.object(schema, depth + 1)
        return "number" if kind == "integer" else kind

    def array(self, schema: Schema, depth: int) -> str:
        """Write an array as ``T[]``; items with comments stand on lines of their own."""
        items = as_object(schema.get("items"))
        typed = self.type(items, depth + 1)
        comments = [*_comments(items)]
        if comments or "\n" in typed:
            return "\n".join(["Array<", *comments, typed, ">"])
        return f"{typed}[]"


def _is_bare(schema: Schema) -> bool:
    """Whether a schema is a union of types and nothing else."""
    return not {"title", "description", "default", "format"} & schema.keys()


def _comments(schema: Schema) -> Iterator[str]:
    """Write title and description as comment lines."""
    if schema.get("title"):
        yield f"// {schema['title']}"
        if schema.get("description"):
            yield "//"
    yield from _lines(schema.get("description"))


def _lines(text: object) -> list[str]:
    """Write a description as comment lines; blanks and empty lines around it are not shown."""
    shown = str(text).strip() if text else ""
    return [f"// {line.strip()}".rstrip() for line in shown.splitlines()]


def _trailing(schema: Schema, is_choice: bool = False) -> str:
    """Write format and default behind a property; a default text has no quotes where there are choices.

    A format is shown of a text, and of each choice of a union.
    """
    comments = []
    if "format" in schema and (is_choice or schema.get("type") == "string"):
        comments.append(f"format: {schema['format']}")
    if "default" in schema:
        default = schema["default"]
        comments.append(
            f"default: {default if 'enum' in schema and isinstance(default, str) else _json(default)}"
        )
    if not comments:
        return ""
    return f" // {', '.join(comments)}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# Keys that the model is not shown. Names of properties stay, whatever they are.
_UNSEEN = {"required", "additionalProperties", "default", "$schema", "multipleOf"}
_UNSEEN |= {
    f"{end}{of}" for end in ("min", "max") for of in ("Items", "Length", "imum", "Properties")
}
_UNSEEN |= {"exclusiveMinimum", "exclusiveMaximum"}
_NAMES = ("properties", "$defs", "definitions")
_DEEPEST_SHOWN = 200


def schema_block(schema: Schema) -> str:
    r"""Write the block: a heading, the name, the description as a comment, the schema as compact ASCII JSON.

    >>> shape = {"type": "object", "properties": {"default": {"type": "string", "default": ""}}, "required": []}
    >>> schema_block({"name": "Reply", "schema": shape})
    '# Response Formats\n\n## Reply\n\n{"type":"object","properties":{"default":{"type":"string"}}}'
    """
    if schema.get("description"):
        described = f"// {schema['description']}\n"
    else:
        described = ""
    shown = json.dumps(_shown(schema.get("schema") or {}), separators=(",", ":"), default=str)
    return f"# Response Formats\n\n## {schema.get('name') or ''}\n\n{described}{shown}"


def _is_unseen(key: str, schema: Schema) -> bool:
    """Tell whether a schema key is hidden from the model.

    A format is shown only for a text.
    """
    return key in _UNSEEN or (key == "format" and schema.get("type") != "string")


def _shown(value: Any, names: bool = False, depth: int = 0) -> Any:
    """Leave out the keys that the model is not shown; names of properties always stay."""
    if depth > _DEEPEST_SHOWN:
        return None
    if isinstance(value, Mapping):
        fields = {key: inner for key, inner in value.items() if names or not _is_unseen(key, value)}
        return {
            key: _shown(inner, not names and key in _NAMES, depth + 1)
            for key, inner in fields.items()
        }
    if not isinstance(value, list | tuple):
        return value
    return [_shown(inner, depth=depth + 1) for inner in value]
