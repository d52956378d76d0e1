"""What tool schemas cost: a provider turns them into text of its own before the model reads them.

Three ways to count them:

declaration
    OpenAI's snapshots of 2023 are shown a TypeScript-like declaration of each function. Its tokens, 5 around it, and
    4 more where no system message is there to carry it: 8 of 9 recorded requests of gpt-4-0613 with tools come out
    exactly. What later models are shown is in :mod:`budgetkit.requests.billing.openai_tools`.
constants
    OpenAI's cookbook adds constants for a function, a property and an enumeration (:class:`ToolConstants`).
json
    The schema's JSON as it stands, which is what systems count that know nothing better.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from budgetkit.requests.billing.charges import Charge
from budgetkit.requests.reading.request import as_object
from budgetkit.requests.reading.tools import (
    Schema,
    function_name,
    parameters_of,
    properties_of,
    unwrapped,
)

_AROUND = 5
_OWN_MESSAGE = 4
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

    def charge(self, tools: Sequence[Schema]) -> Charge:
        """Charge the constants and texts of each function and each property, and the end."""
        texts: list[str] = []
        fixed = self.end
        for tool in tools:
            properties = properties_of(parameters_of(tool))
            texts.append(f"{function_name(tool)}:{_described(unwrapped(tool))}")
            fixed += self.per_function + (self.properties if properties else 0)
            for name, schema in properties.items():
                choices = schema.get("enum")
                if isinstance(choices, list | tuple):
                    choices = choices
                else:
                    choices = ()
                texts += [
                    f"{name}:{schema.get('type', 'any')}:{_described(schema)}",
                    *map(str, choices),
                ]
                fixed += self.per_property + (
                    self.enumeration + self.per_choice * len(choices) if choices else 0
                )
        return Charge("tools", "constants", tuple(texts), fixed)


def declaration_charge(tools: Sequence[Schema], with_system: bool = True) -> Charge:
    """Charge tool schemas as the declaration that OpenAI's older models are shown; a system message carries it."""
    return Charge(
        "tools",
        "declaration",
        (declaration(tools),),
        _AROUND + (0 if with_system else _OWN_MESSAGE),
    )


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
    functions = (line for tool in tools for line in _declared(tool))
    return "\n".join(["namespace functions {", "", *functions, "} // namespace functions"])


def json_charge(tools: Sequence[Schema]) -> Charge:
    """Charge tool schemas as JSON text."""
    return Charge("tools", "JSON", (json.dumps(list(tools), ensure_ascii=False, default=str),))


def _declared(tool: Schema) -> Iterator[str]:
    if description := unwrapped(tool).get("description"):
        yield f"// {description}"
    name = function_name(tool)
    parameters = parameters_of(tool)
    if properties_of(parameters):
        takes = "\n".join(["_: {", *_members(parameters, 0), "}"])
    else:
        takes = ""
    yield f"type {name} = ({takes}) => any;"
    yield ""


def _members(schema: Schema, depth: int) -> Iterator[str]:
    """Declare an object's properties; the model is not shown descriptions of nested ones."""
    required = schema.get("required") or ()
    for name, member in properties_of(schema).items():
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
            return " | ".join(_type(as_object(choice), depth + 1) for choice in schema[joined])
    kind = schema.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    return " | ".join(_named_type(str(kind), schema, depth) for kind in kinds)


def _named_type(kind: str, schema: Schema, depth: int) -> str:
    if kind == "array":
        brackets = 0
        while schema.get("type") == "array" and brackets < _DEEPEST:
            schema = as_object(schema.get("items"))
            brackets = brackets + 1
        return _type(schema, depth) + "[]" * max(1, brackets)
    if kind == "object" and properties_of(schema):
        return "\n".join(["{", *_members(schema, depth + 1), "}"])
    return "number" if kind == "integer" else kind


def _described(schema: Schema) -> str:
    return str(schema.get("description") or "").removesuffix(".")
