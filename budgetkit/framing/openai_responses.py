"""What OpenAI's Responses interface bills where it differs from chat, rule by rule.

The rules were derived from recorded calls of public projects (requests with the provider's usage; read 2026-11-21);
OpenAI documents none of them. The interface has billed one content by two numbers, so not every count can be exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from budgetkit.framing.charges import Charge
from budgetkit.framing.images import image_charges
from budgetkit.framing.openai_chat import compact, forced_tool, tool_charges
from budgetkit.framing.openai_families import OpenAIFamily
from budgetkit.framing.openai_tools import namespace, schema_block
from budgetkit.framing.request import Request
from budgetkit.message import Message

_AS_ANSWERED = 3  # a call that stands alone and is sent back with the id and status it was answered with
_SOME_TOOL = 9  # tool_choice: required
_SEQUENTIAL = 78  # gpt-5 is told that calls at once are forbidden


def responses_charges(request: Request, family: OpenAIFamily) -> list[Charge]:
    """List what a request bills: the request itself, its messages, tools, answer schema and a forced tool."""
    return [
        Charge("framing", "request", fixed=family.request),
        *_messages(request, family),
        *_tools(request, family),
        *_schema(request, family),
        *forced_tool(request, family),
        *_choice(request, family),
    ]


def _messages(request: Request, family: OpenAIFamily) -> Iterator[Charge]:
    """List what each message bills: 4 tokens and its joined texts; a result bills its text alone."""
    for index, message in enumerate(request.messages):
        yield from image_charges(message, index, request.model)
        text = "".join(message.texts)
        if message.tool_calls:
            yield _call(request.messages, index, family)
        elif message.role == "tool":
            yield Charge("message", "tool", (text,), message=index)
        else:
            yield replace(_spoken(message, text, request, family), message=index)


def _spoken(message: Message, text: str, request: Request, family: OpenAIFamily) -> Charge:
    """Charge a message; an answer also costs what its family adds, and on gpt-4o the name of the answer schema."""
    if message.role != "assistant":
        return Charge("message", message.role, (text,), 4)
    if request.schema and family.schema_answer:
        return Charge("message", "assistant", (text, str(request.schema.get("name") or "")), 6)
    return Charge("message", "assistant", (text,), 4 + family.per_answer)


def _call(messages: Sequence[Message], index: int, family: OpenAIFamily) -> Charge:
    """Charge a call: its family's constant, its name twice, and its arguments as compact JSON."""
    call = messages[index].tool_calls[0]
    beside = [messages[at] for at in (index - 1, index + 1) if 0 <= at < len(messages)]
    alone = not any(message.tool_calls for message in beside)
    fixed = family.responses_call + (0 if alone else family.responses_parallel)
    if alone and family.schema_answer and messages[index].raw["tool_calls"][0].get("as_answered"):
        fixed += _AS_ANSWERED
    second = call.name if family.schema_answer else f"functions.{call.name}"
    texts = (f"functions.{call.name}", second, compact(call.arguments))
    return Charge("message", f"call {call.name}", texts, fixed, message=index)


def _tools(request: Request, family: OpenAIFamily) -> Iterator[Charge]:
    """List the tools, which stand in a block of their own."""
    if request.tools:
        block = f"## functions\n\n{namespace(request.tools, family.plain_unions)}"
        yield from tool_charges(request.tools, family, block, family.responses_tools)


def _schema(request: Request, family: OpenAIFamily) -> Iterator[Charge]:
    """Charge the answer schema: its block, and 1 token where its name begins the answer."""
    if request.schema:
        fixed = 1 if family.schema_answer else 0
        yield Charge("answer schema", str(request.schema.get("name") or ""), (schema_block(request.schema),), fixed)


def _choice(request: Request, family: OpenAIFamily) -> Iterator[Charge]:
    """Charge the instruction that some tool must be called, or that only one call at a time is allowed."""
    if request.required and family.forced_tool:
        yield Charge("tools", "required", fixed=_SOME_TOOL)
    if request.sequential and request.tools and family.plain_unions:
        yield Charge("tools", "one at a time", fixed=_SEQUENTIAL)
