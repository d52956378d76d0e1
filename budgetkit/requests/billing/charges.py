"""Charges: the parts of a bill, and content that no charge covers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from budgetkit.counters import count_of
from budgetkit.counters.protocol import as_counter
from budgetkit.message import Message, Raw, as_json
from budgetkit.requests.reading.formats import value_at
from budgetkit.requests.reading.forms import origin_of
from budgetkit.requests.reading.parts import as_list, objects_in, sorted_part
from budgetkit.requests.reading.request import ProviderRequest, as_object
from budgetkit.requests.reading.tools import Schema, inlined, parameters_of, tool_name

Count = Callable[[str], int] | str


@dataclass(frozen=True, slots=True)
class Charge:
    """One part of a request's bill: texts and fixed tokens.

    Parameters
    ----------
    kind : str
        Kind of charge: ``"framing"``, ``"message"``, ``"image"``, ``"media"``, ``"tools"``, ``"answer schema"`` or
        ``"hidden prompt"``.
    part : str
        Name of the charged part, such as a message's role or a tool's name.
    texts : tuple of str
        Texts whose tokens are charged.
    fixed : int
        Fixed tokens in addition to the texts.
    without : tuple of str
        Texts whose tokens are subtracted, because other charges include them.
    message : int or None
        Index of the message that the charge belongs to, or None for a charge for the whole request.
    times : float
        Number of billed tokens for each counted token of the texts.
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
    """Return the tokens of each charge, counting all texts in one call.

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


# Fields with a model's thinking in OpenAI's chat format: those in recorded calls, and others.
THINKING = ("reasoning_content", "reasoning", "reasoning_details")
_OTHER_THINKING = (
    "thinking_blocks",
    "thinking",
    "reasoning_text",
    "reasoning_opaque",
    "provider_specific_fields.reasoning_content",
    "provider_specific_fields.reasoning",
    "provider_specific_fields.reasoning_details",
    "provider_specific_fields.thinking_blocks",
    "provider_specific_fields.thought_signatures",
)
_THINKING_KEYS = {path.partition(".")[0] for path in (*THINKING, *_OTHER_THINKING)}


class Rules(Protocol):
    """The interface of a provider's billing rules."""

    @property
    def model(self) -> str:
        """The model that determines the tokens of images."""
        ...

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List the charges for a request."""
        ...

    def answer(self, message: Message) -> list[Charge]:
        """List the output charges for an answer."""
        ...

    @property
    def thinking_gaps(self) -> tuple[str, ...]:
        """The cases in `EVERYWHERE` in which a bill may include uncharged thinking."""
        ...


#: All cases for `thinking_gaps`: the API, and the kind of answer that follows the thinking.
EVERYWHERE = ("chat call", "chat text", "responses call", "responses text")


def thoughts_sent(message: Message, shape: str = "chat") -> tuple[str, ...]:
    """Return the text of a message's thinking if it is billed again.

    Gemini bills the thinking of every message again. Anthropic and Converse bill only the thinking of messages with
    tool calls. The tuple is empty for other formats, and for a message without thinking. If the message does not state
    the format it was read from, `shape` is the format.

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
    """Yield charges for thinking that is sent again but not charged yet."""
    charged = {(charge.message, text) for charge in charges for text in charge.texts}
    for index, message in enumerate(request.messages):
        for text in thoughts_sent(message, request.shape):
            if (index, text) not in charged:
                yield Charge("message", "thinking", (text,), message=index)


def carries_thinking(message: Message) -> bool:
    """Return True if a message contains thinking.

    Thinking that the provider sent without readable text counts too.

    >>> carries_thinking(Message({"role": "assistant", "content": "Hello.", "reasoning": "Hm."}))
    True
    """
    raw = message.raw
    if _THINKING_KEYS.isdisjoint(raw):  # the usual case
        return False
    # The original record has thinking without readable text.
    is_sealed = "native" in raw and raw.get("reasoning_content") == ""
    return is_sealed or any(value_at(raw, path) for path in (*THINKING, *_OTHER_THINKING))


def uncharged_thinking(messages: Sequence[Message], shape: str, rules: Rules | None) -> list[str]:
    """Return a note if the billing rules miss a message's thinking.

    The rules cover the assistant's thinking in chat and Responses requests, if it is in a field that was found in
    recorded calls. They do not cover other fields, thinking blocks in a message's content, or the cases in
    `thinking_gaps`. If `rules` is None, no thinking is covered.
    """
    for message in messages:
        if carries_thinking(message) and (
            rules is None
            or shape not in ("chat", "responses")
            or message.role != "assistant"
            or any(value_at(message.raw, path) for path in _OTHER_THINKING)
            or any(
                kind == "thought" for block in blocks_of(message) for kind, _ in sorted_part(block)
            )
            # Recorded OpenAI requests have summaries of reasoning, and never its text.
            or (
                rules.thinking_gaps
                and any(
                    record.get("type") == "reasoning" and record.get("content")
                    for record in originals_of(message)
                )
            )
            or f"{shape} {'call' if message.tool_calls else 'text'}" in rules.thinking_gaps
        ):
            return ["thinking in the history"]
    return []


def originals_of(message: Message) -> list[Raw]:
    """List the provider's records that a message was read from."""
    origin = origin_of(message.raw)
    if origin is not None:
        return objects_in(origin["records"])
    native = message.raw.get("native", message.raw)
    return objects_in(native if isinstance(native, list) else [native])


def blocks_of(message: Message) -> list[Raw]:
    """List the original blocks of a message and of its tool results."""
    blocks = [b for record in originals_of(message) for b in objects_in(record.get("content"))]
    inside = (value_at(block, "content|toolResult.content") for block in blocks)
    return [*blocks, *(block for content in inside for block in objects_in(content))]


# Keys of a schema; some providers' tool formats leave out the texts under these keys.
_APART = frozenset(
    {
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "prefixItems",
        "contains",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
        "additionalItems",
    }
)
_CHOICES = frozenset({"anyOf", "any_of", "oneOf"})
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas"})


def unwritten_tools(tools: Sequence[Schema], charges: Callable[[], list[Charge]]) -> list[str]:
    """Return a note for each tool with uncharged schema text.

    A tool whose schema has a reference that cannot be resolved gets a note too.

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
        # No format includes choices between whole sets of parameters; all include a property's choices.
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
    """Yield a schema's texts under keys that some formats leave out."""
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
