"""What tool schemas cost: a provider turns them into text of its own before the model reads them.

Three ways to count them:

declaration
    OpenAI's snapshots of 2023 are shown a TypeScript-like declaration of each function. Its tokens, 5 around it, and
    4 more where no system message is there to carry it: 8 of 9 recorded requests of gpt-4-0613 with tools come out
    exactly. What later models are shown is in :mod:`budgetkit.framing.openai_tools`.
constants
    OpenAI's cookbook adds constants for a function, a property and an enumeration (:class:`ToolConstants`).
json
    The schema's JSON as it stands, which is what systems count that know nothing better.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgetkit.framing.charges import Charge, Count, sizes

__all__ = ["ToolConstants", "declaration_charge", "json_charge"]

Schema = Mapping[str, Any]
_AROUND, _OWN_MESSAGE = 5, 4
_DEEPEST = 40  # objects nested deeper than this are declared as "any"; nobody writes them, somebody may send them


@dataclass(frozen=True, slots=True)
class ToolConstants:
    """Count tool schemas by the constants of OpenAI's cookbook.

    Parameters
    ----------
    per_function : int
        For each function: 7 with o200k_base, 10 with cl100k_base. All of them in tokens.
    properties : int
        Once for a function that has properties.
    per_property : int
        For each property.
    enumeration, per_choice : int
        For a property with choices, and for each of them.
    end : int
        Once after all functions.
    """

    per_function: int = 7
    properties: int = 3
    per_property: int = 3
    enumeration: int = -3
    per_choice: int = 3
    end: int = 12

    def tokens(self, tools: Sequence[Schema], count: Count) -> int:
        """Count tool schemas.

        Parameters
        ----------
        tools : sequence of Mapping
            Schemas as a request carries them.
        count : callable
            From text to tokens.

        Returns
        -------
        int
            In tokens; 0 without tools.
        """
        return sizes([self.charge(tools)], count)[0] if tools else 0

    def charge(self, tools: Sequence[Schema]) -> Charge:
        """Charge tool schemas: each function's line and its properties', and what ends them all."""
        texts: list[str] = []
        fixed = self.end
        for function in map(_function, tools):
            properties = _properties(function)
            texts.append(f"{_name(function)}:{_described(function)}")
            fixed += self.per_function + (self.properties if properties else 0)
            for name, schema in properties.items():
                choices = schema.get("enum")
                choices = choices if isinstance(choices, list | tuple) else ()
                texts += [f"{name}:{schema.get('type', 'any')}:{_described(schema)}", *map(str, choices)]
                fixed += self.per_property + (self.enumeration + self.per_choice * len(choices) if choices else 0)
        return Charge("tools", "constants", tuple(texts), fixed)


def declaration_charge(tools: Sequence[Schema], with_system: bool = True) -> Charge:
    """Charge tool schemas as the declaration that OpenAI's older models are shown; a system message carries it."""
    return Charge("tools", "declaration", (declaration(tools),), _AROUND + (0 if with_system else _OWN_MESSAGE))


def declaration(tools: Sequence[Schema]) -> str:
    r"""Write tool schemas as the declaration that OpenAI's models are shown.

    Examples
    --------
    >>> place = {"type": "string", "description": "Town and country"}
    >>> parameters = {"properties": {"place": place, "days": {"type": "integer"}}, "required": ["place"]}
    >>> tool = {"name": "forecast", "description": "Look up the weather", "parameters": parameters}
    >>> print(declaration([tool]))
    namespace functions {
    <BLANKLINE>
    // Look up the weather
    type forecast = (_: {
    // Town and country
    place: string,
    days?: number,
    }) => any;
    <BLANKLINE>
    } // namespace functions
    """
    functions = (line for tool in tools for line in _declared(_function(tool)))
    return "\n".join(["namespace functions {", "", *functions, "} // namespace functions"])


def json_charge(tools: Sequence[Schema]) -> Charge:
    """Charge tool schemas as JSON text."""
    return Charge("tools", "JSON", (json.dumps(list(tools), ensure_ascii=False, default=str),))


def _declared(function: Schema) -> Iterator[str]:
    if function.get("description"):
        yield f"// {function['description']}"
    if not _properties(function):
        yield f"type {_name(function)} = () => any;"
    else:
        yield f"type {_name(function)} = (_: {{"
        yield from _members(_parameters(function), 0)
        yield "}) => any;"
    yield ""


def _members(schema: Schema, depth: int) -> Iterator[str]:
    """Declare an object's properties. Descriptions of nested ones are not shown to the model."""
    required = schema.get("required") or ()
    for name, member in _mapping(schema.get("properties")).items():
        member = _mapping(member)
        if member.get("description") and depth == 0:
            yield f"// {member['description']}"
        yield f"{'  ' * depth}{name}{'' if name in required else '?'}: {_type(member, depth)},"


def _type(schema: Schema, depth: int) -> str:
    if depth > _DEEPEST:
        return "any"
    if isinstance(schema.get("enum"), list):
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in schema["enum"])
    for joined in ("anyOf", "oneOf"):
        if isinstance(schema.get(joined), list):
            return " | ".join(_type(_mapping(choice), depth + 1) for choice in schema[joined])
    kind = schema.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    return " | ".join(_named_type(str(kind), schema, depth) for kind in kinds)


def _named_type(kind: str, schema: Schema, depth: int) -> str:
    if kind == "array":
        brackets = 0
        while schema.get("type") == "array" and brackets < _DEEPEST:
            schema, brackets = _mapping(schema.get("items")), brackets + 1
        return _type(schema, depth) + "[]" * max(1, brackets)
    if kind == "object" and _mapping(schema.get("properties")):
        return "\n".join(["{", *_members(schema, depth + 1), "}"])
    return "number" if kind == "integer" else kind


def _function(tool: Schema) -> Schema:
    """Unwrap ``{"type": "function", "function": {...}}``; newer requests leave the wrapping out."""
    return _mapping(tool.get("function")) or tool


def _name(function: Schema) -> str:
    return str(function.get("name") or function.get("type") or "")


def _parameters(function: Schema) -> Schema:
    return _mapping(function.get("parameters")) or _mapping(function.get("input_schema"))


def _properties(function: Schema) -> Mapping[str, Schema]:
    properties = _mapping(_parameters(function).get("properties"))
    return {name: _mapping(schema) for name, schema in properties.items()}


def _described(schema: Schema) -> str:
    return str(schema.get("description") or "").removesuffix(".")


def _mapping(value: object) -> Schema:
    """Take what should be an object as one: schemas come from outside, and a count never raises on them."""
    return value if isinstance(value, Mapping) else {}
