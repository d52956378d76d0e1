"""Frames: billing rules for models with an exact or reconstructed vocabulary.

A frame is a row of ``data/frames.toml``: a model's constants, with the number of recorded calls that confirm these
constants. There are three kinds of frame:

claude
    Constants for the conversation and for changes of speaker, and one text with all tools. See `claude_charges` and
    `_claude_tool`.
gemini
    Each text is counted separately, and each content adds one token. See `_gemini_charges` and `_gemini_tools`.
template
    A chat template adds tokens to each message, depending on the message's role, and writes tools in its own way. See
    `_template_charges` and `_template_tools`.

Parts that a frame has no rule for (answer schemas and some tools of chat templates) are charged as in the estimate of
the model's family, but counted with the model's vocabulary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Literal

from budgetkit.files import read_toml
from budgetkit.message import RESULT_ROLES, Message, Raw, ToolCall, as_json, as_text, is_system
from budgetkit.models.names import dashed
from budgetkit.requests.billing.charges import EVERYWHERE, Charge, Charges
from budgetkit.requests.billing.estimates import (
    Estimate,
    estimate_for,
    estimated_schema,
    estimated_tools,
    leaves,
    schemas_of,
    text_or_json,
)
from budgetkit.requests.billing.images import image_charges
from budgetkit.requests.billing.openai import namespace
from budgetkit.requests.reading.formats import without_empty
from budgetkit.requests.reading.parts import as_list, objects_in
from budgetkit.requests.reading.request import ProviderRequest, as_object, parsed
from budgetkit.requests.reading.tools import (
    Schema,
    choices_of,
    inlined,
    parameters_of,
    properties_of,
    tool_name,
    unwrapped,
)

_MARK = "\0"  # placeholder for the token before and after a text; removed from texts
_ENDS = 2  # tokens at the start and end of a declaration
_DEEPEST = 40  # schemas nested deeper than this are left out


def gemini_declaration(tool: Schema) -> tuple[tuple[str, ...], int]:
    """Return a Gemini 3 declaration's texts, and its number of marker tokens.

    The second value is the number of tokens that mark where a quoted text or the declaration starts and ends.

    >>> gemini_declaration({"name": "ping", "description": "Ask"})
    (('declaration:ping{description:', 'Ask', '}'), 4)
    >>> schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    >>> gemini_declaration({"name": "go", "parameters": schema})[0][1:]
    (',parameters:{properties:{to:{type:', 'STRING', '}},type:', 'OBJECT', '}}')
    """
    described = _marked(unwrapped(tool).get("description") or "")
    parameters = inlined(parameters_of(tool))
    takes = f",parameters:{{{_schema(parameters)}}}" if parameters else ""
    pieces = f"declaration:{tool_name(tool)}{{description:{described}{takes}}}".split(_MARK)
    return tuple(piece for piece in pieces if piece), len(pieces) - 1 + _ENDS


def _schema(schema: Schema, depth: int = 0) -> str:
    """Write the fields of a schema, separated by commas."""
    return ",".join(_fields(schema, depth))


def _fields(schema: Schema, depth: int) -> Iterator[str]:
    """Yield the fields of a schema that are shown to the model.

    No fields are shown of a schema nested more than 40 levels deep.
    """
    if depth > _DEEPEST:
        return
    if schema.get("description"):
        yield f"description:{_marked(schema['description'])}"
    if choices := as_list(schema.get("enum")):
        yield f"enum:[{','.join(map(_marked, choices))}]"
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
    if required := as_list(schema.get("required")):
        yield f"required:[{','.join(map(_marked, required))}]"
    if schema.get("title"):
        yield f"title:{_marked(schema['title'])}"
    if schema.get("type"):
        yield f"type:{_marked(str(schema['type']).upper())}"


def _marked(value: object) -> str:
    """Put a text between two placeholders for tokens.

    A mapping is written as an empty text.
    """
    text = "" if isinstance(value, Mapping) else str(value)
    return f"{_MARK}{text.replace(_MARK, '')}{_MARK}"


# Claude Code's first system text states its version; the provider removes it and does not bill it, as in five recorded
# calls of one project to haiku-4-5 and sonnet-4-6 (August 2026).
_UNBILLED = "x-anthropic-billing-header:"


@dataclass(frozen=True)
class Frame:
    """The tokens of a model family's requests beyond their text."""

    name: str
    models: str  # pattern for the names of its models
    form: Literal["claude", "gemini", "template"]
    rows: str  # numbers of recorded calls that confirm it
    host: str = ""  # the only host that the row applies to, if any
    request: int = 0  # once per request
    turn: int = 0  # for a change of speaker
    same_speaker: int = 0  # for a further message of the same speaker
    answer_first: int = 0  # if the conversation starts with an answer
    joined: bool = False  # True if content before the messages costs one more token
    tools: int = 0  # once if there are tools
    required: int = 0  # replaces `tools` if a tool must be called
    forced: int = 0  # replaces `tools` if a named tool must be called; its name is added
    # Extra if parallel calls are disabled.
    sequential: Mapping[str, int] = field(default_factory=dict, hash=False)
    schema: int = 0  # for an answer schema, in addition to its JSON
    thinking: int = 0  # if thinking is enabled
    adaptive: int = 0  # if the model decides how much it thinks
    json_mode: int = 0  # if the answer must be JSON of any schema
    call: int = 0  # for a call with its result
    parameter: int = 0  # for each argument of a call
    several: int = 0  # for several parallel calls
    further: int = 0  # for each call of a message except the first
    call_after_result: int = 0  # for an answer that calls a tool directly after results
    text_after_result: int = 0  # for a user's text directly after results
    content: int = 0  # for each content, and for a system instruction
    tool: int = 0  # for each tool
    described: int = 0  # for each property with a description
    undescribed: int = 0  # for each property without a description
    choices: int = 0  # for each property with choices
    items: int = 0  # for each property that is a list
    system: int = 0  # for each message of this role, as in the next two fields
    user: int = 0
    assistant: int = 0
    user_last: int = 0  # unless the last message is an answer
    no_system: int = 0  # without a system message
    no_system_for_tools: int = 0  # for tools without a system message
    tool_form: Literal["", "function", "wrapped", "declarations", "braces"] = (
        ""  # how tools are written; "": estimated, or counted as words and constants
    )
    forgets_thinking: bool = False  # True if thinking before the newest question is removed
    obeys_choice: bool = False  # True if tools that may not be called are left out


@lru_cache(maxsize=256)
def frame_for(model: str, host: str = "") -> Frame | None:
    """Return the frame of a model, or None if it has none.

    Some frames apply only to one host.

    >>> [frame.name if (frame := frame_for(name)) else None for name in ("claude-haiku-4.5", "gemini-2.5-pro", "x")]
    ['claude-4.5', 'gemini-2.5', None]
    >>> frame_for("gemini-2.5-pro", "vertex").name
    'gemini-2.5 on vertex'
    """
    name = dashed(model)
    hosts = ("", host_name(host))
    for row in read_toml("frames.toml")["frame"]:
        if row.get("host", "") in hosts and re.search(row["models"], name):
            return Frame(**row)
    return None


def host_name(host: str) -> str:
    """Return the name of a host in ``data/frames.toml``.

    A host that is not listed keeps its name, in lower case.

    >>> host_name("vertex_ai"), host_name("azure")
    ('vertex', 'azure')
    """
    rows: Mapping[str, Raw] = read_toml("frames.toml")["host"]
    name = host.casefold()
    return next((listed for listed, row in rows.items() if name in row.get("also", ())), name)


def hidden_prompt(host: str) -> str:
    """Return the name of a host's hidden prompt, or "" for none.

    >>> hidden_prompt("venice"), hidden_prompt("")
    ("Venice's own prompt", '')
    """
    row = read_toml("frames.toml")["host"].get(host_name(host), {})
    return str(row.get("hidden", ""))


@dataclass(frozen=True)
class FrameRules:
    """Billing rules with the constants of a frame."""

    frame: Frame
    model: str = ""

    @property
    def name(self) -> str:
        """The name of the rules in ``data/exactness.csv``."""
        return self.frame.name

    @property
    def estimate(self) -> Estimate:
        """The model family's estimate, for parts that the frame does not cover."""
        return estimate_for(self.model)

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List the charges for a request."""
        request = replace(request, model=self.model or request.model)
        if self.frame.form == "claude":
            return [*claude_charges(request, self.frame)]
        if self.frame.form == "gemini":
            return [*_gemini_charges(request, self.frame)]
        if self.frame.tool_form:
            tools = _template_tools(request, self.frame)
        else:  # the frame charges thinking
            tools = estimated_tools(replace(request, thinking=False), self.estimate)
        return [
            *_template_charges(request, self.frame),
            *tools,
            *estimated_schema(request, self.estimate),
        ]

    def answer(self, message: Message) -> list[Charge]:
        """List the output charges for an answer: its text and each call.

        A call costs its name, its arguments and a constant.
        """
        calls = [_call(call, self.frame) for call in message.tool_calls]
        return [Charge("message", "answer", message.texts), *calls]

    @property
    def thinking_gaps(self) -> tuple[str, ...]:
        """The cases in which a bill may include uncharged thinking."""
        return () if self.frame.form == "template" else EVERYWHERE


def claude_charges(request: ProviderRequest, frame: Frame) -> Charges:
    """Yield the charges for a request to Claude."""
    yield Charge("framing", "request", fixed=frame.request)

    # before the messages: system, tools, schema and thinking
    system = "".join(
        text
        for message in request.messages
        if is_system(message)
        for text in message.texts
        if not text.startswith(_UNBILLED)
    )
    if system:
        first = next(index for index, message in enumerate(request.messages) if is_system(message))
        # The frame before the text ends in a line break, which merges with one at its start.
        free = int(system.startswith("\n"))
        yield Charge("message", "system", (system,), -free, message=first)
        if frame.joined:
            yield Charge("framing", "separator before messages", fixed=1, message=first)
    if (request.tools or request.schema is not None) and (system or frame.joined):
        yield Charge("framing", "separator before messages", fixed=1)

    if request.tools:
        texts = tuple(map(_claude_tool, request.tools))
        for tool, text in zip(request.tools, texts, strict=True):
            yield Charge("tools", tool_name(tool), (text,))
        # All tools are one text, so their tokens may differ where one tool meets the next.
        if len(texts) > 1:
            yield Charge("tools", "tokens merged between tools", ("".join(texts),), without=texts)
        # their hidden prompt, which depends on the tool choice and on whether parallel calls are disabled
        sequential = frame.sequential if request.sequential else {}
        if request.forced:
            fixed = frame.forced + sequential.get("forced", 0)
            yield Charge("hidden prompt", "forced tool", (request.forced,), fixed)
        elif request.required:
            yield Charge("hidden prompt", "required tool", fixed=frame.required)
        else:
            yield Charge("hidden prompt", "tools", fixed=frame.tools + sequential.get("auto", 0))
    if request.schema is not None:
        schema = request.schema.get("schema")
        if isinstance(schema, str):  # as Converse sends it
            schema = parsed(schema)
        written = json.dumps(schema, indent=2, ensure_ascii=True, default=str)
        yield Charge("answer schema", "", (written,), frame.schema)
    if request.thinking and frame.thinking:
        more = 1 if (system or request.tools) and not frame.joined else 0
        yield Charge("hidden prompt", "thinking", fixed=frame.thinking + more)
    if request.adaptive and frame.adaptive:
        yield Charge("hidden prompt", "adaptive thinking", fixed=frame.adaptive)

    dialogue = [index for index, message in enumerate(request.messages) if not is_system(message)]
    before: Message | None = None
    for index in dialogue:
        message = request.messages[index]
        yield from image_charges(message, index, request.model)
        fixed = _change(before, message, frame, is_last=index == dialogue[-1])
        text = "".join(message.texts)
        if message.role in RESULT_ROLES:
            text = f"\n{message.text}"
        yield Charge("message", message.role, (text,) if text else (), fixed, message=index)
        for call in message.tool_calls:
            yield replace(_call(call, frame, end="<"), message=index)
        if len(message.tool_calls) > 1:
            yield Charge(
                "message", f"{len(message.tool_calls)} calls", fixed=frame.several, message=index
            )
        before = message


def _change(before: Message | None, message: Message, frame: Frame, is_last: bool) -> int:
    """Return a message's fixed tokens, which depend on the previous message.

    The roles of both messages determine the number. An unfinished answer that the model continues adds none.
    """
    answers = message.role == "assistant"
    if before is None:
        return frame.answer_first if answers else 0
    after_result = before.role in RESULT_ROLES
    if (before.role == "assistant") != answers:
        if answers and is_last:
            return 0  # an unfinished answer for the model to continue
        if after_result and message.tool_calls:
            return frame.turn + frame.call_after_result
        return frame.turn
    if message.role in RESULT_ROLES:
        return 0
    if after_result:
        return frame.text_after_result
    return frame.same_speaker


def _call(call: ToolCall, frame: Frame, end: str = "") -> Charge:
    """Return the charge for a tool call.

    The tool's name and the name and value of each argument are counted separately. `end` is the text that follows each
    value, because the value's last token may include this text.
    """
    arguments = parsed(call.arguments)
    named: Raw = arguments if isinstance(arguments, Mapping) else {"": arguments}
    texts = [call.name]
    for name, value in named.items():
        texts += [str(name), f"{text_or_json(value)}{end}"]
    fixed = frame.call + frame.parameter * len(named)
    return Charge("message", f"call {call.name}", tuple(texts), fixed)


def _claude_tool(tool: Schema) -> str:
    """Write a tool as one JSON line with sorted keys, for Claude."""
    function = unwrapped(tool)
    shown = without_empty(description=function.get("description"))
    shown |= {"name": function.get("name"), "parameters": parameters_of(tool)}
    written = json.dumps(shown, sort_keys=True, ensure_ascii=False, default=str)
    return f"<function>{written}</function>\n"


def _gemini_charges(request: ProviderRequest, frame: Frame) -> Charges:
    """Yield the charges for a request to Gemini.

    An answer schema is charged only if the frame has a constant for it.
    """
    before: Message | None = None
    for index, message in enumerate(request.messages):
        yield from image_charges(message, index, request.model)
        fixed = frame.content
        words = message.texts
        if message.role in RESULT_ROLES:  # a result is JSON: all keys and values
            words = tuple(text for part in words for text in leaves(parsed(part)))
            if before is not None and before.role in RESULT_ROLES:
                fixed = 0  # adjacent results are one content
        yield Charge("message", message.role, words, fixed, message=index)
        for call in message.tool_calls:
            words = (call.name, *leaves(parsed(call.arguments)))
            yield Charge("message", f"call {call.name}", words, frame.call, message=index)
        before = message
    yield from _gemini_tools(request, frame)
    if request.schema is not None and frame.schema:
        written = text_or_json(request.schema.get("schema"))
        yield Charge("answer schema", "", (written,), frame.schema)


def _gemini_tools(request: ProviderRequest, frame: Frame) -> Charges:
    """Yield the charges for Gemini's tools: their texts and constants per property.

    If the frame's `tool_form` is "braces", each tool costs the text and the marker tokens of its declaration instead.
    """
    for tool in request.tools:
        if frame.tool_form == "braces":
            written, marks = gemini_declaration(tool)
            yield Charge("tools", tool_name(tool), written, marks)
            continue
        fixed = frame.tool
        texts = [tool_name(tool), str(unwrapped(tool).get("description") or "")]
        schemas = schemas_of(inlined(parameters_of(tool)))
        for name, schema in chain(*(properties_of(schema).items() for schema in schemas)):
            choices = choices_of(schema)
            texts += [name, str(schema.get("description") or ""), *choices]
            fixed += frame.described if schema.get("description") else frame.undescribed
            if choices:
                fixed += frame.choices
            if as_object(schema.get("items")):
                fixed += frame.items
        yield Charge("tools", tool_name(tool), tuple(filter(None, texts)), fixed)


def _template_charges(request: ProviderRequest, frame: Frame) -> Charges:
    """Yield the charges for a conversation in a chat template.

    JSON mode and thinking are charged if the frame has constants for them.
    """
    roles = [message.role for message in request.messages]
    fixed = frame.request
    if roles[-1:] != ["assistant"]:
        fixed += frame.user_last
    if not any(map(is_system, request.messages)):
        fixed += frame.no_system
    yield Charge("framing", "request", fixed=fixed)
    if request.json_mode and frame.json_mode:
        yield Charge("hidden prompt", "JSON mode", fixed=frame.json_mode)
    if request.thinking and frame.thinking:
        yield Charge("hidden prompt", "thinking", fixed=frame.thinking)

    last_question = -1
    if frame.forgets_thinking:
        last_question = max((at for at, role in enumerate(roles) if role == "user"), default=-1)
    before = ""
    for index, message in enumerate(request.messages):
        yield from image_charges(message, index, request.model)
        fixed = frame.assistant if message.role == "assistant" else frame.user
        if is_system(message):
            fixed = frame.system
        if message.role == before == "user":
            fixed += frame.same_speaker
        # Thinking before a call is sent again.
        texts = message.texts
        thought = message.raw.get("reasoning_content") or message.raw.get("reasoning")
        if not thought:
            details = objects_in(message.raw.get("reasoning_details"))
            thought = "".join(as_text(part.get("text")) for part in details)
        if message.tool_calls and index > last_question and isinstance(thought, str):
            texts = (*texts, thought)
        yield Charge("message", message.role, texts, fixed, message=index)
        for call in message.tool_calls:
            yield replace(_call(call, frame), message=index)
        if len(message.tool_calls) > 1 and frame.further:
            part = f"{len(message.tool_calls)} calls"
            several = frame.further * (len(message.tool_calls) - 1)
            yield Charge("message", part, fixed=several, message=index)
        before = message.role


def _template_tools(request: ProviderRequest, frame: Frame) -> Charges:
    """Yield the charges for tools as a chat template writes them.

    If the frame obeys the tool choice, tools that may not be called are free.
    """
    tools = request.tools
    if frame.obeys_choice and request.none:
        tools = ()
    if frame.obeys_choice and request.forced:
        tools = tuple(tool for tool in tools if tool_name(tool) == request.forced)
    if not tools:
        return

    fixed = frame.tools
    if frame.required and (request.forced or request.required):
        fixed = frame.required
    if not any(map(is_system, request.messages)):
        fixed += frame.no_system_for_tools
    yield Charge("hidden prompt", "tools", fixed=fixed)
    if frame.tool_form == "declarations":
        block = f"# Tools\n\n## functions\n\n{namespace(tools, plain=True)}"
        yield Charge("tools", "declarations", (block,))
        return
    for tool in tools:
        written = {name: value for name, value in unwrapped(tool).items() if name != "type"}
        if frame.tool_form == "wrapped":
            written = {"type": "function", "function": written}
        yield Charge("tools", tool_name(tool), (as_json(written),), frame.tool)
