"""Estimated bills for providers without a public tokenizer.

Each model family is a row of ``data/calibrations.csv``: a slope relative to a public encoding, and constants in tokens
for the parts of a request beyond its text. The slopes and constants were fitted to recorded calls of public projects.
Each row has a source and a date.

- A request costs one constant, and each change of speaker another. A message itself costs only its text.
- Tools add a hidden prompt, whose length depends on whether a tool must be called and on whether parallel calls are
  disabled. Each tool costs its JSON. For Gemini, a tool costs its names and descriptions, and constants for the tool
  and each property.
- A call costs its name, its arguments as JSON and a constant that includes the framing of its result.
- An answer schema costs a constant and, except for Gemini and Mistral, its JSON. Enabled thinking costs a constant of
  its own.
- With Claude, each document costs a constant, and a request for citations adds a hidden prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from budgetkit.message import Data, Message, as_json, is_system
from budgetkit.models.names import calibration_row
from budgetkit.requests.billing.charges import EVERYWHERE, Charge, Charges, blocks_of, thoughts_sent
from budgetkit.requests.billing.images import image_charges
from budgetkit.requests.reading.formats import format_table, value_at
from budgetkit.requests.reading.request import ProviderRequest, as_object, parsed
from budgetkit.requests.reading.tools import (
    Schema,
    choices_of,
    inlined,
    inner_schemas,
    parameters_of,
    tool_name,
    unwrapped,
)

#: Names of a family's constants, which are columns of the table; data/README.md explains them.
CONSTANTS = (
    "request",
    "turn",
    "tools",
    "forced",
    "sequential",
    "tool",
    "property",
    "call",
    "schema",
    "thinking",
    "document",
    "citations",
)
# The constants for hidden prompts, with their labels in a ledger.
_HIDDEN = {
    "tools": "tools",
    "forced": "required tool",
    "sequential": "no parallel calls",
    "thinking": "thinking",
    "document": "documents",
    "citations": "citations",
}


@dataclass(frozen=True)
class Estimate:
    """The slope and constants that estimate a model family's bills."""

    family: str
    pattern: str  # pattern for the names of its models
    counter: str  # public encoding used to count
    slope: float  # the family's tokens per token of that encoding
    constants: Mapping[str, int] = field(hash=False)  # tokens for each of CONSTANTS
    mark: float = 0.0  # extra tokens for each punctuation mark
    tool_form: str = "json"  # how tools are counted: as "json" or "words"
    schema_shown: bool = True  # True if an answer schema's JSON is billed
    tool_times: float = 1.0  # factor for the text of tools
    source: str = ""  # calls that the row was fitted to
    date: str = ""  # date on which they were read


def estimate_for(model: str) -> Estimate:
    """Return the estimate for a model's family.

    A model of no known family gets the general estimate.

    >>> [estimate_for(name).family for name in ("us.anthropic.claude-haiku-4-5", "anthropic/claude-4.5-haiku", "x")]
    ['claude-4.5', 'claude-4.5', 'any other']
    """
    row = calibration_row(model)
    fields: Data = {
        name: row[name] for name in ("family", "pattern", "counter", "tool_form", "source", "date")
    }
    fields |= {name: float(row[name]) for name in ("slope", "mark", "tool_times")}
    fields["constants"] = {name: int(row[name]) for name in CONSTANTS}
    return Estimate(schema_shown=row["schema_shown"] == "yes", **fields)


def constant_counts(request: ProviderRequest) -> dict[str, int]:
    """Return the number of times that each constant applies to a request."""
    forced = bool(request.forced or request.required)
    armed = bool(request.tools)
    blocks = [block for message in request.messages for block in blocks_of(message)]
    return {
        "request": 1,
        "turn": len(_turns(request)),
        "tools": int(armed and not forced),
        "forced": int(armed and forced),
        "sequential": int(armed and request.sequential),
        "tool": len(request.tools),
        "property": sum(
            len(schemas_of(inlined(parameters_of(tool)))) - 1 for tool in request.tools
        ),
        "call": sum(len(message.tool_calls) for message in request.messages),
        "schema": int(request.schema is not None),
        "thinking": int(request.thinking),
        "document": sum("document" in (block.get("type"), *block) for block in blocks),
        "citations": int(any(value_at(block, format_table("paths")["cites"]) for block in blocks)),
    }


@dataclass(frozen=True)
class EstimatedRules:
    """The estimated billing rules of a model family."""

    estimate: Estimate
    model: str = ""
    forgets_thinking: bool = False  # True if thinking without a call is known to be removed

    @property
    def name(self) -> str:
        """The name of the rules in ``data/exactness.csv``."""
        return f"estimate-{self.estimate.family}"

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List the charges for a request."""
        return [
            Charge("framing", "request", fixed=self.estimate.constants["request"]),
            *self._messages(request),
            *estimated_tools(request, self.estimate),
            *estimated_schema(request, self.estimate),
        ]

    def answer(self, message: Message) -> list[Charge]:
        """List the output charges for an answer: its text and each call.

        A call costs its name, its arguments and a constant.
        """
        return [Charge("message", "answer", message.texts), *self._calls(message)]

    @property
    def thinking_gaps(self) -> tuple[str, ...]:
        """The cases in which a bill may include uncharged thinking."""
        return ("chat call", "responses call") if self.forgets_thinking else EVERYWHERE

    def _messages(self, request: ProviderRequest) -> Charges:
        turns = _turns(request)
        for index, message in enumerate(request.messages):
            yield from image_charges(message, index, self.model or request.model)
            fixed = self.estimate.constants["turn"] if index in turns else 0
            texts = message.texts
            if message.role == "tool":
                texts = tuple(map(self._data, texts))
            texts = (*texts, *thoughts_sent(message, request.shape))
            yield Charge("message", message.role, texts, fixed, message=index)
            yield from (replace(call, message=index) for call in self._calls(message))

    def _calls(self, message: Message) -> Charges:
        cost = self.estimate.constants["call"]
        for call in message.tool_calls:
            texts = (call.name, self._data(call.arguments))
            yield Charge("message", f"call {call.name}", texts, cost)

    def _data(self, text: str) -> str:
        """Return the counted text of a call's arguments or a tool result.

        With the ``tool_form`` "json", this is the whole text. With "words", it is only the keys and values of the JSON.
        """
        if self.estimate.tool_form == "json":
            return text
        return " ".join(leaves(parsed(text)))


def estimated_tools(request: ProviderRequest, estimate: Estimate) -> Charges:
    """Yield the charges for tools and all hidden prompts."""
    cost = estimate.constants
    times = constant_counts(request)
    for tool in request.tools:
        # JSON of name, description and parameters, or only the words in it.
        function = unwrapped(tool)
        text = function.get("description") or ""
        described = {"name": function.get("name"), "description": text}
        parameters = parameters_of(tool)
        if estimate.tool_form == "json":
            text = as_json({**described, "input_schema": parameters})
        else:
            words = [word for schema in schemas_of(inlined(parameters)) for word in _words(schema)]
            text = " ".join(map(str, [*described.values(), *words]))
        yield Charge("tools", tool_name(tool), (text,), times=estimate.tool_times)
    frame = cost["property"] * times["property"] + cost["tool"] * times["tool"]
    if frame:
        yield Charge("tools", "constants", fixed=frame)
    for name, label in _HIDDEN.items():
        if times[name]:
            yield Charge("hidden prompt", label, fixed=cost[name] * times[name])


def estimated_schema(request: ProviderRequest, estimate: Estimate) -> Charges:
    """Yield the charge for a request's answer schema, if it has one."""
    if request.schema is not None:
        written = (text_or_json(request.schema.get("schema")),) if estimate.schema_shown else ()
        yield Charge("answer schema", "", written, estimate.constants["schema"])


def _turns(request: ProviderRequest) -> set[int]:
    """Return the indices of messages at which the speaker changes.

    Only two speakers are distinguished: the assistant and everyone else. System messages are skipped.
    """
    speakers = [
        (index, message.role == "assistant")
        for index, message in enumerate(request.messages)
        if not is_system(message)
    ]
    return {index for (_, one), (index, other) in pairwise(speakers) if one != other}


def schemas_of(schema: object) -> list[Schema]:
    """List a schema and all schemas nested in it.

    Empty nested schemas are omitted.
    """
    schemas: list[Schema] = []
    waiting = [schema]
    while waiting:
        inner = as_object(waiting.pop())
        schemas += [inner] if inner or not schemas else []
        waiting += [*as_object(inner.get("properties")).values(), *inner_schemas(inner)]
    return schemas


def _words(schema: Schema) -> Iterator[str]:
    """Yield the texts in a schema: its description, choices and property names."""
    yield str(schema.get("description") or "")
    yield from choices_of(schema)
    yield from as_object(schema.get("properties"))


def leaves(value: object) -> list[str]:
    """List all keys and simple values in a JSON value."""
    texts: list[str] = []
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Mapping):
            texts += map(str, inner)
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
        else:
            texts.append(str(inner))
    return texts


def text_or_json(value: object) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else as_json(value)
