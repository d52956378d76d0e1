"""Costs of tool schemas, which providers convert to text for the model.

There are three ways to count them:

declaration
    OpenAI's snapshots of 2023 get a TypeScript-like declaration of each function. It costs its tokens, 5 around it, and
    4 more without a system message. This counts 8 of 9 recorded requests of gpt-4-0613 with tools exactly. The text for
    later models is in :mod:`budgetkit.requests.billing.openai`.
constants
    OpenAI's cookbook adds constants for a function, a property and an enumeration (:class:`ToolConstants`).
json
    The schema's JSON, which simpler systems count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from budgetkit.counters import count_of
from budgetkit.counters.protocol import as_counter
from budgetkit.message import Message
from budgetkit.requests.reading.forms import origin_of
from budgetkit.requests.reading.parts import as_json, as_list
from budgetkit.requests.reading.request import ProviderRequest, as_object
from budgetkit.requests.reading.tools import (
    Schema,
    choices_of,
    inlined,
    parameters_of,
    properties_of,
    tool_name,
    unwrapped,
)

Count = Callable[[str], int] | str


@dataclass(frozen=True, slots=True)
class Charge:
    """One charge of a request.

    Parameters
    ----------
    kind : str
        ``"framing"``, ``"message"``, ``"image"``, ``"media"``, ``"tools"``, ``"answer schema"`` or ``"hidden prompt"``.
    part : str
        Name of the charged part, such as a message's role or a tool's name.
    texts : tuple of str
        Texts to count.
    fixed : int
        Fixed tokens in addition to the texts.
    without : tuple of str
        Texts to count and subtract, because other charges include them.
    message : int or None
        Index of its message, if any.
    times : float
        The provider's tokens per counted token for this kind of text.
    """

    kind: str
    part: str
    texts: tuple[str, ...] = ()
    fixed: int = 0
    without: tuple[str, ...] = ()
    message: int | None = None
    times: float = 1.0


Charges = Iterator[Charge]


def count_charges(charges: Sequence[Charge], count: Count) -> list[int]:
    """Count all texts in one call and return the tokens of each charge.

    >>> count_charges([Charge("message", "user", ("Hello world",), 4), Charge("framing", "request", fixed=3)], len)
    [15, 3]
    """
    texts = [text for charge in charges for text in (*charge.texts, *charge.without)]
    counted = iter(as_counter(count_of(count)).many(texts))
    totals = []
    for charge in charges:
        tokens = sum(next(counted) for _ in charge.texts)
        tokens -= sum(next(counted) for _ in charge.without)
        if charge.times != 1:
            tokens = round(charge.times * tokens)
        totals.append(charge.fixed + tokens)
    return totals


_AROUND = 5
_OWN_MESSAGE = 4
_DEEPEST = 40  # objects nested deeper than this are declared as "any"; nobody writes them, somebody may send them


@dataclass(frozen=True, slots=True)
class ToolConstants:
    """Count tool schemas by the constants of OpenAI's cookbook.

    Parameters
    ----------
    per_function : int
        Tokens for each function: 7 with o200k_base, 10 with cl100k_base.
    properties : int
        Tokens for a function with properties, once per function.
    per_property : int
        Tokens for each property.
    enumeration, per_choice : int
        Tokens for a property with choices, and for each choice.
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
        """Charge the constants and texts of functions and properties, and the end."""
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
    """Charge tool schemas as a declaration, as for OpenAI's older models."""
    fixed = _AROUND if with_system else _AROUND + _OWN_MESSAGE
    return Charge("tools", "declaration", (declaration(tools),), fixed)


def declaration(tools: Sequence[Schema]) -> str:
    r"""Write tool schemas as the declaration for OpenAI's models.

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
    functions = (line for tool in tools for line in _declaration_lines(tool))
    return "\n".join(["namespace functions {", "", *functions, "} // namespace functions"])


def _declaration_lines(tool: Schema) -> Iterator[str]:
    if description := unwrapped(tool).get("description"):
        yield f"// {description}"
    name = tool_name(tool)
    parameters = parameters_of(tool)
    takes = ""
    if properties_of(parameters):
        takes = "\n".join(["_: {", *_members(parameters, 0), "}"])
    yield f"type {name} = ({takes}) => any;"
    yield ""


def _members(schema: Schema, depth: int) -> Iterator[str]:
    """Declare an object's properties, omitting descriptions of nested properties."""
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


# Where programs that speak OpenAI's chat format put what a model thought.
_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")


class Rules(Protocol):
    """A provider's billing rules for requests and answers."""

    @property
    def model(self) -> str:
        """The model whose image prices apply."""
        ...

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List the charges of a request."""
        ...

    def answer(self, message: Message) -> list[Charge]:
        """List the output charges of an answer."""
        ...

    def leaves_thinking(self, message: Message, shape: str) -> bool:
        """Return True if a message's thinking may be billed without a charge here."""
        ...


def thoughts_sent(message: Message, shape: str = "chat") -> tuple[str, ...]:
    """List the thinking in a message that is billed again as text.

    Whether thinking is sent depends on the message's format or, without one, on that of the request.

    >>> call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    >>> message = Message({"role": "assistant", "reasoning_content": "Hm.", "tool_calls": [call]})
    >>> thoughts_sent(message), thoughts_sent(message, "anthropic")
    ((), ('Hm.',))
    """
    thought = message.raw.get("reasoning_content")
    if not isinstance(thought, str):
        return ()
    origin = origin_of(message.raw)
    form = shape if origin is None else origin["form"]
    if form == "gemini" or (form in ("anthropic", "converse") and message.tool_calls):
        return (thought,)
    return ()


def thinking_charges(request: ProviderRequest, charges: Sequence[Charge]) -> Charges:
    """Charge thinking that is sent unchanged and has not been charged yet."""
    thoughts = [
        (index, text)
        for index, message in enumerate(request.messages)
        if "reasoning_content" in message.raw
        for text in thoughts_sent(message, request.shape)
    ]
    charged = {(charge.message, text) for charge in charges for text in charge.texts}
    for index, text in thoughts:
        if (index, text) not in charged:
            yield Charge("message", "thinking", (text,), message=index)


def unruled_thinking(messages: Sequence[Message], shape: str, rules: Rules | None) -> list[str]:
    """Describe thinking that neither the format nor the model's rules cover."""
    if shape not in ("chat", "responses"):
        return []
    for message in messages:
        if carries_thinking(message) and (rules is None or rules.leaves_thinking(message, shape)):
            return ["thinking in the history"]
    return []


# Keys of a schema whose texts some providers' forms of a tool leave out.
_APART = frozenset({"allOf", "not", "if", "then", "else", "prefixItems", "contains"})
_APART |= {"patternProperties", "additionalProperties", "propertyNames", "dependentSchemas"}
_APART |= {"unevaluatedItems", "unevaluatedProperties", "additionalItems"}
_CHOICES = frozenset({"anyOf", "any_of", "oneOf"})
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas"})


def unwritten_tools(tools: Sequence[Schema], charges: Callable[[], list[Charge]]) -> list[str]:
    """List the tools whose schemas contain text without a charge.

    >>> word = {"type": "string", "description": "A word"}
    >>> tool = {"name": "look", "parameters": {"type": "object", "additionalProperties": word}}
    >>> unwritten_tools([tool], lambda: [Charge("tools", "", ("type look = () => any;",))])
    ['a part of the schema of tool look']
    """
    counted = cache(lambda: "\n".join(text for charge in charges() for text in charge.texts))
    names = []
    for tool in tools:
        parameters = inlined(parameters_of(tool))
        texts = [*_texts_apart(parameters, False)]
        # Choices between whole sets of parameters are in no form; choices of a property are.
        for key in _CHOICES & parameters.keys():
            texts += _texts_apart(parameters[key], True)
        lines = (text.strip().partition("\n")[0].strip() for text in texts)
        has_references = '"$ref": "' in as_json(parameters)
        if has_references or any(
            line not in counted() and as_json(line)[1:-1] not in counted() for line in lines
        ):
            names.append(f"a part of the schema of tool {tool_name(tool)}")
    return names


def _texts_apart(schema: Any, is_apart: bool) -> Iterator[str]:
    """Yield the texts in a schema outside its properties."""
    for choice in as_list(schema):
        yield from _texts_apart(choice, is_apart)
    if not isinstance(schema, Mapping):
        return
    if is_apart:
        texts = [schema.get("description"), *as_object(schema.get("properties"))]
        texts += as_list(schema.get("enum"))
        yield from (text for text in texts if isinstance(text, str))
    for key, inner in schema.items():
        is_inner = is_apart or key in _APART or (key == "items" and not isinstance(inner, Mapping))
        if key in _BY_NAME:
            inner = [*as_object(inner).values()]
        if key in _BY_NAME or key in _APART or key in _CHOICES or key == "items":
            yield from _texts_apart(inner, is_inner)


def carries_thinking(message: Message) -> bool:
    """Return True if an answer contains the preceding thinking.

    >>> carries_thinking(Message({"role": "assistant", "content": "Hello.", "reasoning": "Hm."}))
    True
    """
    raw = message.raw
    # As it came it has thinking, without a text.
    is_sealed = "native" in raw and raw.get("reasoning_content") == ""
    return message.role == "assistant" and (is_sealed or any(raw.get(field) for field in _FIELDS))
