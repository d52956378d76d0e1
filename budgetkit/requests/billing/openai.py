"""Billing rules for OpenAI's Chat Completions and Responses APIs.

The rules for text come from OpenAI's cookbook; all other rules were derived from recorded calls of public projects
(requests with the provider's usage; read 2026-11-21). All rules apply to gpt-3.5-turbo-0125 and later models; for older
models, see :mod:`budgetkit.requests.billing.declarations`. Each rule is a function below. The first functions write the
text shown to the model: the TypeScript-like namespace of the tools, and the answer schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from budgetkit.files import Table, read_rows, read_toml
from budgetkit.message import RESULT_ROLES, Message, as_json, is_system
from budgetkit.models.names import FAMILY_ENCODING, bare
from budgetkit.requests.billing.charges import Charge, Charges, originals_of
from budgetkit.requests.billing.declarations import declaration_charge
from budgetkit.requests.billing.images import image_charges
from budgetkit.requests.reading.parts import as_list
from budgetkit.requests.reading.request import ProviderRequest, as_object, parsed
from budgetkit.requests.reading.tools import (
    Schema,
    inlined,
    parameters_of,
    properties_of,
    tool_name,
    unwrapped,
)

_DEEPEST = 40  # schemas nested deeper than this, such as recursive ones, are written as "any"


# If a choice has one of these keys, its union is written on several lines.
_MORE_THAN_A_TYPE = frozenset(
    {"title", "description", "default", "format", "properties", "items", "enum", "anyOf"}
)


def namespace(tools: Sequence[Schema], plain: bool = False) -> str:
    r"""Write tools as the TypeScript-like namespace shown to the model.

    If `plain` is true, a union of types is written on one line.

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
    """Write one function as its description, its type and a blank line."""
    function = unwrapped(tool)
    schema = inlined(parameters_of(tool))
    writer = _Writer(plain)
    takes = "_: " + "\n".join([*_comments(schema), writer.object(schema, 0)])
    called = f"type {tool_name(tool)} = ({takes if properties_of(schema) else ''}) => any;"
    return "\n".join([*_lines(function.get("description")), called, ""])


@dataclass(frozen=True)
class _Writer:
    """A converter of parameter schemas to TypeScript-like types."""

    plain: bool

    def object(self, schema: Schema, depth: int) -> str:
        """Write an object's type, on one line if its properties are simple."""
        members = properties_of(schema)
        required = as_list(schema.get("required"))
        written = [
            self.member(name, member, name in required, depth) for name, member in members.items()
        ]
        if not any("\n" in line or "//" in line for line in written):
            return f"{{ {' '.join(written).removesuffix(',')} }}"
        return "\n".join(["{", *written, "}"])

    def member(self, name: str, schema: Schema, required: bool, depth: int) -> str:
        """Write one property with its comments, name, type and default."""
        typed = self.type(schema, depth)
        described = isinstance(schema.get("type"), list | tuple) and schema.get("description")
        colon = ":" if typed.startswith("\n") and not described else ": "
        line = f"{name}{'' if required else '?'}{colon}{typed},{_trailing(schema)}"
        return "\n".join([*_comments(schema), line])

    def type(self, schema: Schema, depth: int) -> str:
        """Write the type of any schema.

        A schema nested more than 40 levels deep is written as "any".
        """
        if depth > _DEEPEST:
            return "any"
        for joined in ("anyOf", "oneOf"):
            if isinstance(schema.get(joined), list | tuple):
                return self.union(schema, [as_object(choice) for choice in schema[joined]], depth)
        kind = schema.get("type", "any")
        if isinstance(kind, list | tuple):
            return self.union(schema, [{**schema, "type": name} for name in kind], depth)
        if isinstance(schema.get("enum"), list | tuple):
            return " | ".join(map(as_json, schema["enum"]))
        if "const" in schema:
            return as_json(schema["const"])
        return self.named(str(kind), schema, depth)

    def union(self, schema: Schema, choices: Sequence[Schema], depth: int) -> str:
        """Write the choices of a union on separate lines with their descriptions.

        If `plain` is true, as for gpt-5, or if the union and its choices are plain types, the choices are written on
        one line without descriptions.
        """
        is_bare = not {"title", "description", "default", "format"} & schema.keys()
        if self.plain or (is_bare and all(map(_MORE_THAN_A_TYPE.isdisjoint, choices))):
            return " | ".join(self.type(choice, depth + 1) for choice in choices)
        lines = []
        for choice in choices:
            typed = self.type(choice, depth + 1)
            comment = ""
            if "\n" not in typed and choice.get("description"):
                comment = f" // {choice['description']}"
            lines.append(f" | {typed}{comment}{_trailing(choice, is_choice=True)}")
        return "\n" + "\n".join(lines) + "\n"

    def named(self, kind: str, schema: Schema, depth: int) -> str:
        """Write the type of an array, an object or a simple value."""
        if kind == "array":  # items with comments are written on separate lines
            items = as_object(schema.get("items"))
            typed = self.type(items, depth + 1)
            comments = [*_comments(items)]
            if comments or "\n" in typed:
                return "\n".join(["Array<", *comments, typed, ">"])
            return f"{typed}[]"
        if kind == "object" or (kind == "any" and properties_of(schema)):
            if not properties_of(schema):
                return "object"
            return self.object(schema, depth + 1)
        return "number" if kind == "integer" else kind


def _comments(schema: Schema) -> Iterator[str]:
    """Yield a schema's title and description as comment lines."""
    if schema.get("title"):
        yield f"// {schema['title']}"
        if schema.get("description"):
            yield "//"
    yield from _lines(schema.get("description"))


def _lines(text: object) -> list[str]:
    """Write a description, without surrounding blank lines, as comment lines."""
    shown = str(text).strip() if text else ""
    return [f"// {line.strip()}".rstrip() for line in shown.splitlines()]


def _trailing(schema: Schema, is_choice: bool = False) -> str:
    """Return the comment with a property's format and default, or "".

    A format is written only for strings and for choices of a union. A text that is the default of an enumeration has no
    quotes.
    """
    comments = []
    if "format" in schema and (is_choice or schema.get("type") == "string"):
        comments.append(f"format: {schema['format']}")
    if "default" in schema:
        default = schema["default"]
        is_choice = "enum" in schema and isinstance(default, str)
        comments.append(f"default: {default if is_choice else as_json(default)}")
    if not comments:
        return ""
    return f" // {', '.join(comments)}"


# Keys not shown to the model, except as names of properties.
_UNSEEN = {
    "required",
    "additionalProperties",
    "default",
    "$schema",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
}
_NAMES = ("properties", "$defs", "definitions")
_DEEPEST_SHOWN = 200


def schema_block(schema: Schema) -> str:
    r"""Write an answer schema as the prompt block that the model sees.

    >>> shape = {"type": "object", "properties": {"default": {"type": "string", "default": ""}}, "required": []}
    >>> schema_block({"name": "Reply", "schema": shape})
    '# Response Formats\n\n## Reply\n\n{"type":"object","properties":{"default":{"type":"string"}}}'
    """
    described = f"// {schema['description']}\n" if schema.get("description") else ""
    shown = json.dumps(
        _visible_schema(schema.get("schema") or {}), separators=(",", ":"), default=str
    )
    return f"# Response Formats\n\n## {schema.get('name') or ''}\n\n{described}{shown}"


def _visible_schema(value: Any, names: bool = False, depth: int = 0) -> Any:
    """Remove the schema keys that are not shown to the model.

    A property is kept even if its name equals such a key.
    """
    if depth > _DEEPEST_SHOWN:
        return None
    if isinstance(value, Mapping):
        # a format is shown only for a string
        unseen = _UNSEEN if value.get("type") == "string" else {*_UNSEEN, "format"}
        fields = {key: inner for key, inner in value.items() if names or key not in unseen}
        return {
            key: _visible_schema(inner, not names and key in _NAMES, depth + 1)
            for key, inner in fields.items()
        }
    if not isinstance(value, list | tuple):
        return value
    return [_visible_schema(inner, depth=depth + 1) for inner in value]


@dataclass(frozen=True)
class OpenAIFamily:
    """The token costs of requests to an OpenAI model family."""

    name: str
    encoding: str = FAMILY_ENCODING  # encoding of its texts
    request: int = 3  # once per request
    per_message: int = 4
    per_name: int = 1  # for a speaker's name
    tools: int = -1  # once per request with tools, in addition to their block
    heading: str = ""  # text before the system text if tools follow it
    per_answer: int = 0  # for an earlier answer in text
    per_calling: int = 0  # for an earlier answer that calls tools
    schema_answer: bool = True  # True if the answer starts with the name of the answer schema
    forced_tool: bool = True  # True if the answer starts with the name of the forced tool
    no_tool: int = 1  # if no tool may be called
    first_undescribed: int = 0  # extra if the first tool has no description
    older_tools: bool = False  # True if tools and calls are written as before 2024
    plain_unions: bool = False  # True if a union of types is written on one line
    responses_call: int = 10  # in the Responses API: for a call with its result
    responses_parallel: int = 0  # in the Responses API: extra for each of several parallel calls
    responses_tools: int = 0  # in the Responses API: once for tools


FAMILIES: Mapping[str, OpenAIFamily] = Table(
    lambda: {
        name: OpenAIFamily(name, **row)
        for name, row in read_rows("framings.toml", "family").items()
    }
)


def chat_charges(request: ProviderRequest, family: OpenAIFamily) -> Charges:
    """Yield the charges for a chat request."""
    yield Charge("framing", "request", fixed=family.request)

    # each message, and its images, calls and results
    parallel = [m.tool_calls for m in request.messages if len(m.tool_calls) > 1]
    several = {call.id for calls in parallel for call in calls}
    escaped = family.name != "gpt-4o" or "mini" in request.model
    for index, message in enumerate(request.messages):
        yield from image_charges(message, index, request.model)
        texts = ["".join(message.texts)] if message.texts else []
        if message.role in RESULT_ROLES:
            fixed = 5  # the name of the tool is charged with the call
            if family.older_tools:
                fixed = 3
            elif message.tool_call_id in several:
                fixed = 0
                texts = [_results_json([message], escaped)]
        else:
            fixed = family.per_message
            if message.name and message.name != message.role:
                texts.append(message.name)
            if message.name is not None and not message.tool_calls:  # 1 token if equal to the role
                fixed += family.per_name
            if message.role == "assistant" and message.tool_calls:
                fixed += family.per_calling
            elif message.role == "assistant":
                fixed += family.per_answer
                if request.schema and message.text:
                    fixed += 2
                    texts.append(str(request.schema.get("name") or ""))
        yield Charge("message", message.role, tuple(texts), fixed, message=index)
        calls = message.tool_calls
        if len(calls) == 1 or family.older_tools:
            # the name with and without "functions.", and the arguments as compact JSON
            for call in calls:
                called = (f"functions.{call.name}", call.name, compact(call.arguments))
                if family.older_tools:
                    called = (call.name, call.name, call.arguments)
                yield Charge("message", f"call {call.name}", called, 3, message=index)
        elif calls:  # the calls are one JSON object, and all their results one JSON list
            ids = {call.id for call in calls}
            results = [m for m in request.messages[index:] if m.tool_call_id in ids]
            yield Charge(
                "message",
                f"{len(calls)} calls",
                (_uses(message), _results_json(results, escaped)),
                16,
                without=tuple(_results_json([result], escaped) for result in results),
                message=index,
            )

    # the blocks for tools and the answer schema, after the first system message
    if family.older_tools and request.tools:
        yield declaration_charge(request.tools, any(map(is_system, request.messages)))
    tools = () if family.older_tools else request.tools
    system = next(
        ("".join(message.texts) for message in request.messages if is_system(message)), None
    )
    before = ""
    fixed = 4
    without: tuple[str, ...] = ()
    if system is not None:
        before = f"{family.heading if tools else ''}{system}\n\n"
        fixed = 0
        without = (system,)
    if tools:
        block = f"{before}# Tools\n\n## functions\n\n{namespace(tools, family.plain_unions)}"
        yield from tool_charges(tools, family, block, fixed + family.tools, without)
        before = f"{block}\n\n"
        fixed = 0
        without = (block,)
    if request.schema:
        name = str(request.schema.get("name") or "")
        yield Charge(
            "answer schema", name, (before + schema_block(request.schema),), fixed, without
        )
        if family.schema_answer and not tools:
            yield Charge("answer schema", "start of the answer", (name,), 2)
    yield from tool_choice(request, family)


def _uses(message: Message) -> str:
    """Write all calls of a message as one JSON object."""
    uses = [
        {"recipient_name": f"functions.{call.name}", "parameters": parsed(call.arguments)}
        for call in message.tool_calls
    ]
    return compact({"tool_uses": uses})


def _results_json(results: Sequence[Message], escaped: bool) -> str:
    """Write results as one JSON list, parsing results that are JSON."""
    return json.dumps(
        [parsed(result.text) for result in results], ensure_ascii=escaped, default=str
    )


def tool_charges(
    tools: Sequence[Schema],
    family: OpenAIFamily,
    block: str,
    fixed: int,
    without: tuple[str, ...] = (),
) -> Charges:
    """Yield the charges for each tool and the block's remaining text."""
    parts = tuple(written_function(tool, family.plain_unions) for tool in tools)
    yield from (
        Charge("tools", tool_name(tool), (part,)) for tool, part in zip(tools, parts, strict=True)
    )
    if family.first_undescribed and not unwrapped(tools[0]).get("description"):
        fixed += family.first_undescribed
    yield Charge("tools", "rest of the block", (block,), fixed, (*without, *parts))


def tool_choice(request: ProviderRequest, family: OpenAIFamily) -> Charges:
    """Yield the charge for the request's tool choice, if there is one."""
    if request.forced and family.forced_tool:
        yield Charge("tools", "forced", (f"functions.{request.forced}",), 6)
    if request.none and request.tools and family.no_tool:
        yield Charge("tools", "no tool allowed", fixed=family.no_tool)


def compact(value: Any) -> str:
    """Convert a value or JSON text to compact JSON, keeping other text."""
    read = parsed(value) if isinstance(value, str) else value
    if isinstance(read, str) and read == value:
        return read
    return json.dumps(read, ensure_ascii=False, separators=(",", ":"), default=str)


# Extra for a single call that is sent back with the provider's id and status.
_AS_ANSWERED = 3
_ONLY_TOOL = 6  # in addition to its name, if a tool must be called and there is only one
_SEQUENTIAL = 78  # the instruction to gpt-5 that parallel calls are forbidden


def responses_charges(request: ProviderRequest, family: OpenAIFamily) -> Charges:
    """Yield the charges for a Responses request.

    A message costs 4 tokens plus its text, and an answer the family's `per_answer` in addition. A tool result costs
    only its text, and an answer without text that has calls, reasoning or other items costs nothing itself.

    A call costs the family's constant plus its name twice and its arguments as compact JSON. In some families, each of
    several parallel calls costs more than a single call, or a single call costs more if it is sent back with the
    provider's id and status.
    """
    yield Charge("framing", "request", fixed=family.request)

    # each message, and its images and calls
    for index, message in enumerate(request.messages):
        yield from image_charges(message, index, request.model)
        text = "".join(message.texts)
        calls = message.tool_calls
        answers = message.role == "assistant"
        # an answer may consist only of calls, reasoning or items of built-in tools, without a message
        holds_items = bool(calls or message.uncounted) or "reasoning_content" in message.raw
        fixed = 4 + (family.per_answer if answers else 0)
        if message.role in RESULT_ROLES:
            fixed = 0
        if text or not (answers and holds_items):
            yield Charge("message", message.role, (text,), fixed, message=index)

        is_alone = len(calls) == 1
        for call in calls:
            fixed = family.responses_call + (0 if is_alone else family.responses_parallel)
            second_name = f"functions.{call.name}"
            if family.schema_answer:
                second_name = call.name
                # sent back unchanged, with the provider's own id and a status
                if is_alone and any(
                    item.get("call_id") == call.id
                    and str(item.get("id") or "").startswith("fc_")
                    and "status" in item
                    for item in originals_of(message)
                ):
                    fixed += _AS_ANSWERED
            texts = (f"functions.{call.name}", second_name, compact(call.arguments))
            yield Charge("message", f"call {call.name}", texts, fixed, message=index)

    if request.tools:  # in a separate block
        block = f"## functions\n\n{namespace(request.tools, family.plain_unions)}"
        yield from tool_charges(request.tools, family, block, family.responses_tools)
    if request.schema:  # its block, and a token if the answer starts with its name
        name = str(request.schema.get("name") or "")
        block = schema_block(request.schema)
        yield Charge("answer schema", name, (block,), int(family.schema_answer))
    yield from tool_choice(request, family)
    if request.required and len(request.tools) == 1 and family.forced_tool:
        only = tool_name(request.tools[0])
        yield Charge("tools", "required", (f"functions.{only}",), _ONLY_TOOL)
    if request.sequential and request.tools and family.plain_unions:
        yield Charge("tools", "no parallel calls", fixed=_SEQUENTIAL)


@dataclass(frozen=True)
class OpenAIRules:
    """The billing rules of an OpenAI family.

    The model's name determines the tokens of images, and the API that a router chooses.
    """

    family: OpenAIFamily
    model: str = ""
    is_routed: bool = False  # True if a router forwards the requests and bills by its own rules

    @property
    def name(self) -> str:
        """The name of the rules in ``data/exactness.csv``."""
        return self.family.name + (" by a router" if self.is_routed else "")

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List the charges for a chat or Responses request.

        The request's format selects the rules, except that a router selects them by the model.
        """
        named = replace(request, model=self.model or request.model)
        is_responses = request.shape == "responses"
        if self.is_routed:  # a router chooses the API by the model alone
            pattern = read_toml("framings.toml")["models"]["routed_to_responses"]
            is_responses = re.search(pattern, bare(named.model)) is not None
        charges = responses_charges if is_responses else chat_charges
        return [*charges(named, self.family)]

    def answer(self, message: Message) -> list[Charge]:
        """List the output charges for an answer: its text and its calls.

        A single call costs 6 tokens plus its name and arguments; several calls cost 10 tokens plus their JSON.
        """
        calls = message.tool_calls
        charges = [Charge("message", "answer", message.texts)] if message.text else []
        if len(calls) == 1:
            texts = (f"functions.{calls[0].name}", calls[0].arguments)
            charges.append(Charge("message", "call", texts, 6))
        elif calls:
            charges.append(Charge("message", f"{len(calls)} calls", (_uses(message),), 10))
        return charges

    @property
    def thinking_gaps(self) -> tuple[str, ...]:
        """The cases in which a bill may include uncharged thinking.

        In a chat request, thinking may be billed if the answer calls a tool, but is free if the answer is a text. In a
        Responses request, thinking is a separate item, which is billed until the next user message.
        """
        return ("chat call",)
