"""What OpenAI's chat interface bills, rule by rule.

The rules were derived from recorded calls of public projects (requests with the provider's usage; read 2026-11-21),
beyond those for text, which are OpenAI's cookbook's. They hold for models since gpt-3.5-turbo-0125; older snapshots
keep the form that :mod:`budgetkit.requests.reading.tools` has. Each rule is a function below.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from budgetkit.message import RESULT_ROLES, Message, ToolCall, is_system
from budgetkit.requests.billing.charges import Charge
from budgetkit.requests.billing.declarations import declaration_charge
from budgetkit.requests.billing.images import image_charges
from budgetkit.requests.billing.openai_families import OpenAIFamily
from budgetkit.requests.billing.openai_tools import namespace, schema_block, written_function
from budgetkit.requests.reading.request import ProviderRequest, parsed
from budgetkit.requests.reading.tools import Schema, function_name, unwrapped


def chat_charges(request: ProviderRequest, family: OpenAIFamily) -> list[Charge]:
    """List what a request bills: the request itself, its messages, tools, answer schema and a forced tool."""
    return [
        Charge("framing", "request", fixed=family.request),
        *_messages(request, family),
        *_blocks(request, family),
        *forced_tool(request, family),
        *no_tool(request, family),
    ]


def answer_charges(message: Message) -> list[Charge]:
    """List what an answer bills: its text; for one call 6 tokens, name and arguments; for several 10 and their JSON."""
    calls = message.tool_calls
    if message.text:
        charges = [Charge("message", "answer", message.texts)]
    else:
        charges = []
    if len(calls) == 1:
        charges.append(
            Charge("message", "call", (f"functions.{calls[0].name}", calls[0].arguments), 6)
        )
    elif calls:
        charges.append(Charge("message", f"{len(calls)} calls", (_uses(message),), 10))
    return charges


def _messages(request: ProviderRequest, family: OpenAIFamily) -> Iterator[Charge]:
    """List what each message bills: 4 tokens, a name and 1 token for it, its texts, images, calls and results."""
    several = {
        call.id
        for message in request.messages
        if len(message.tool_calls) > 1
        for call in message.tool_calls
    }
    escaped = family.name != "gpt-4o" or "mini" in request.model
    for index, message in enumerate(request.messages):
        yield from image_charges(message, index, request.model)
        if message.role in RESULT_ROLES and family.older_tools:
            yield Charge("message", message.role, message.texts, 3, message=index)
        elif message.role in RESULT_ROLES and message.tool_call_id in several:
            yield Charge("message", message.role, (_listed([message], escaped),), message=index)
        elif message.role in RESULT_ROLES:
            # Its name went with the call.
            yield Charge("message", message.role, message.texts, 5, message=index)
        else:
            yield _spoken(message, index, request, family)
        if len(message.tool_calls) == 1 or (message.tool_calls and family.older_tools):
            yield from (_call(call, index, family) for call in message.tool_calls)
        elif message.tool_calls:
            ids = {call.id for call in message.tool_calls}
            yield _calls(
                message,
                index,
                [m for m in request.messages[index:] if m.tool_call_id in ids],
                escaped,
            )


def _spoken(message: Message, index: int, request: ProviderRequest, family: OpenAIFamily) -> Charge:
    """Charge a message's text and name; a name equal to the role costs 1 token, an answer what its family adds."""
    named = message.name is not None
    fixed = family.per_message
    if named:
        fixed += family.per_name
    texts = [
        *message.texts,
        *([message.name] if message.name and message.name != message.role else []),
    ]
    if message.role == "assistant" and message.tool_calls:
        fixed += family.per_calling
    elif message.role == "assistant":
        fixed += family.per_answer
        if request.schema and message.text:
            fixed = fixed + 2
            texts = [*texts, str(request.schema.get("name") or "")]
    return Charge("message", message.role, tuple(texts), fixed, message=index)


def _call(call: ToolCall, index: int, family: OpenAIFamily) -> Charge:
    """Charge one call: its name with and without "functions.", its arguments as compact JSON, and 3 tokens."""
    if family.older_tools:
        return Charge(
            "message", f"call {call.name}", (call.name, call.name, call.arguments), 3, message=index
        )
    texts = (f"functions.{call.name}", call.name, compact(call.arguments))
    return Charge("message", f"call {call.name}", texts, 3, message=index)


def _calls(message: Message, index: int, results: Sequence[Message], escaped: bool) -> Charge:
    """Charge several calls of one message as one JSON object, and all their results as one JSON list."""
    by_itself = tuple(_listed([result], escaped) for result in results)
    texts = (_uses(message), _listed(results, escaped))
    return Charge(
        "message", f"{len(message.tool_calls)} calls", texts, 16, by_itself, message=index
    )


def _uses(message: Message) -> str:
    """Write all calls of a message as one JSON object."""
    uses = [
        {"recipient_name": f"functions.{call.name}", "parameters": parsed(call.arguments)}
        for call in message.tool_calls
    ]
    return compact({"tool_uses": uses})


def _listed(results: Sequence[Message], escaped: bool) -> str:
    """Write results as one JSON list; a result that is JSON is parsed first."""
    return json.dumps(
        [parsed(result.text) for result in results], ensure_ascii=escaped, default=str
    )


def _blocks(request: ProviderRequest, family: OpenAIFamily) -> Iterator[Charge]:
    """List tools and answer schema, which stand as blocks of text after the first system message."""
    if family.older_tools and request.tools:
        yield declaration_charge(
            request.tools, any(is_system(message) for message in request.messages)
        )
    tools = () if family.older_tools else request.tools
    system = next(
        ("".join(message.texts) for message in request.messages if is_system(message)), None
    )
    if system is None:
        before = ""
    else:
        before = f"{family.heading if tools else ''}{system}\n\n"
    fixed, without = (4, ()) if system is None else (0, (system,))
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
            yield Charge("answer schema", "begins the answer", (name,), 2)


def tool_charges(
    tools: Sequence[Schema],
    family: OpenAIFamily,
    block: str,
    fixed: int,
    without: tuple[str, ...] = (),
) -> Iterator[Charge]:
    """Charge each tool by itself, then their block without what it holds of them."""
    parts = tuple(written_function(tool, family.plain_unions) for tool in tools)
    yield from (
        Charge("tools", function_name(tool), (part,))
        for tool, part in zip(tools, parts, strict=True)
    )
    if family.first_undescribed and not unwrapped(tools[0]).get("description"):
        fixed += family.first_undescribed
    yield Charge("tools", "heading and seams", (block,), fixed, (*without, *parts))


def forced_tool(request: ProviderRequest, family: OpenAIFamily) -> Iterator[Charge]:
    """Charge a tool that must be called: its name after "functions.", and 6 tokens."""
    if request.forced and family.forced_tool:
        yield Charge("tools", "forced", (f"functions.{request.forced}",), 6)


def no_tool(request: ProviderRequest, family: OpenAIFamily) -> Iterator[Charge]:
    """Charge the instruction that no tool may be called; newer models are not told."""
    if request.none and request.tools and family.no_tool:
        yield Charge("tools", "none may be called", fixed=family.no_tool)


def compact(value: Any) -> str:
    """Write JSON without blanks, also JSON that is given as text; other text stays as it is."""
    read = parsed(value) if isinstance(value, str) else value
    if isinstance(read, str):
        if read == value:
            return read
        return json.dumps(read, ensure_ascii=False)
    return json.dumps(read, ensure_ascii=False, separators=(",", ":"), default=str)
