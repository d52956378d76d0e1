"""Tokens of tool schemas, which providers convert to text for the model.

There are three ways to count tool schemas:

declaration
    OpenAI's model snapshots of 2023 receive a TypeScript-like declaration of each function. The declarations cost their
    tokens plus 5, and 4 more if the request has no system message. This rule counts 8 of 9 recorded requests of
    gpt-4-0613 with tools exactly. :mod:`budgetkit.requests.billing.openai` writes the text for later models.
constants
    OpenAI's cookbook adds constants for each function, property and enumeration; see :class:`ToolConstants`.
json
    Simpler systems count the schema's JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from budgetkit.message import as_json
from budgetkit.requests.billing.charges import Charge
from budgetkit.requests.reading.request import as_object
from budgetkit.requests.reading.tools import (
    Schema,
    choices_of,
    parameters_of,
    properties_of,
    tool_name,
    unwrapped,
)

_AROUND = 5
_OWN_MESSAGE = 4
_DEEPEST = 40  # objects nested deeper than this, which are rare, are declared as "any"


@dataclass(frozen=True, slots=True)
class ToolConstants:
    """The constants of OpenAI's cookbook for counting tool schemas.

    Parameters
    ----------
    per_function : int
        Tokens for each function: 7 with o200k_base, 10 with cl100k_base.
    properties : int
        Additional tokens for each function that has properties.
    per_property : int
        Tokens for each property.
    enumeration, per_choice : int
        Additional tokens for each property with choices, and tokens for each choice.
    end : int
        Tokens after the last function.
    """

    per_function: int = 7
    properties: int = 3
    per_property: int = 3
    enumeration: int = -3
    per_choice: int = 3
    end: int = 12

    def charge(self, tools: Sequence[Schema]) -> Charge:
        """Return the charge for tool schemas: constants plus texts."""
        texts: list[str] = []
        fixed = self.end
        for tool in tools:
            properties = properties_of(parameters_of(tool))
            texts.append(f"{tool_name(tool)}:{_description(unwrapped(tool))}")
            fixed += self.per_function + (self.properties if properties else 0)
            for name, schema in properties.items():
                choices = choices_of(schema)
                texts += [f"{name}:{schema.get('type', 'any')}:{_description(schema)}", *choices]
                fixed += self.per_property
                if choices:
                    fixed += self.enumeration + self.per_choice * len(choices)
        return Charge("tools", "constants", tuple(texts), fixed)


def declaration_charge(tools: Sequence[Schema], with_system: bool = True) -> Charge:
    """Return the charge for tool schemas written as a declaration.

    If `with_system` is false, the request has no system message, and the charge includes 4 more tokens.
    """
    fixed = _AROUND if with_system else _AROUND + _OWN_MESSAGE
    return Charge("tools", "declaration", (declaration(tools),), fixed)


def declaration(tools: Sequence[Schema]) -> str:
    r"""Write tool schemas as the declaration for OpenAI's models of 2023.

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
    lines = ["namespace functions {", ""]
    for tool in tools:
        if description := unwrapped(tool).get("description"):
            lines.append(f"// {description}")
        parameters = parameters_of(tool)
        takes = ""
        if properties_of(parameters):
            takes = "\n".join(["_: {", *_members(parameters, 0), "}"])
        lines += [f"type {tool_name(tool)} = ({takes}) => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def _members(schema: Schema, depth: int) -> Iterator[str]:
    """Yield the declarations of an object's properties.

    Descriptions of nested properties are omitted.
    """
    required = schema.get("required") or ()
    for name, member in properties_of(schema).items():
        if member.get("description") and depth == 0:
            yield f"// {member['description']}"
        yield f"{'  ' * depth}{name}{'' if name in required else '?'}: {_type(member, depth)},"


def _type(schema: Schema, depth: int) -> str:
    if depth > _DEEPEST:
        return "any"
    if isinstance(schema.get("enum"), list):
        return " | ".join(map(as_json, schema["enum"]))
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
            brackets += 1
        return _type(schema, depth) + "[]" * max(1, brackets)
    if kind == "object" and properties_of(schema):
        return "\n".join(["{", *_members(schema, depth + 1), "}"])
    return "number" if kind == "integer" else kind


def _description(schema: Schema) -> str:
    return str(schema.get("description") or "").removesuffix(".")
