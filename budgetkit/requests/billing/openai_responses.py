"""What OpenAI's Responses interface bills where it differs from chat, rule by rule.

The rules were derived from recorded calls of public projects (requests with the provider's usage; read 2026-11-21);
OpenAI documents none of them. The interface has billed one content by two numbers, so not every count can be exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from budgetkit.message import RESULT_ROLES, Message
from budgetkit.requests.billing.charges import Charge
from budgetkit.requests.billing.images import image_charges
from budgetkit.requests.billing.openai_chat import compact, forced_tool, no_tool, tool_charges
from budgetkit.requests.billing.openai_families import OpenAIFamily
from budgetkit.requests.billing.openai_tools import namespace, schema_block
from budgetkit.requests.reading.request import ProviderRequest, objects
from budgetkit.requests.reading.tools import function_name

_AS_ANSWERED = (
    3  # a call that stands alone and is sent back with the id and status it was answered with
)
_ONLY_TOOL = 6  # beside its name, where some tool must be called and there is only one
_SEQUENTIAL = 78  # gpt-5 is told that calls at once are forbidden


def responses_charges(request: ProviderRequest, family: OpenAIFamily) -> list[Charge]:
    """List what a request bills: the request itself, its messages, tools, answer schema and a forced tool."""
    return [
        Charge("framing", "request", fixed=family.request),
        *_messages(request, family),
        *_tools(request, family),
        *_schema(request, family),
        *forced_tool(request, family),
        *_choice(request, family),
        *no_tool(request, family),
    ]


def _messages(request: ProviderRequest, family: OpenAIFamily) -> Iterator[Charge]:
    """List what each message bills: 4 tokens and its joined texts; a result bills its text alone."""
    for index, message in enumerate(request.messages):
        yield from image_charges(message, index, request.model)
        text = "".join(message.texts)
        if message.role in RESULT_ROLES:
            yield Charge("message", message.role, (text,), message=index)
        elif text or not _is_beside_text(message):
            yield replace(_spoken(message, text, family), message=index)
        yield from _calls(message, index, family)


def _is_beside_text(message: Message) -> bool:
    """Say whether an answer holds something else than a message: calls, reasoning, or what the provider did itself."""
    holds_items = (
        bool(message.tool_calls or message.uncounted) or "reasoning_content" in message.raw
    )
    return message.role == "assistant" and holds_items


def _spoken(message: Message, text: str, family: OpenAIFamily) -> Charge:
    """Charge a message; an answer also costs what its family adds."""
    if message.role != "assistant":
        return Charge("message", message.role, (text,), 4)
    return Charge("message", "assistant", (text,), 4 + family.per_answer)


def _calls(message: Message, index: int, family: OpenAIFamily) -> Iterator[Charge]:
    """Charge each call: its family's constant, its name twice, and its arguments as compact JSON."""
    is_alone = len(message.tool_calls) == 1
    for call in message.tool_calls:
        fixed = family.responses_call + (0 if is_alone else family.responses_parallel)
        if is_alone and family.schema_answer and call.id in _as_answered(message):
            fixed += _AS_ANSWERED
        if family.schema_answer:
            second_name = call.name
        else:
            second_name = f"functions.{call.name}"
        texts = (f"functions.{call.name}", second_name, compact(call.arguments))
        yield Charge("message", f"call {call.name}", texts, fixed, message=index)


def _as_answered(message: Message) -> set[Any]:
    """Name the calls that are sent back just as they were answered, with the provider's own id and a status."""
    native = message.raw.get("native")
    items = objects(native if isinstance(native, list) else [native])
    return {
        item.get("call_id")
        for item in items
        if str(item.get("id") or "").startswith("fc_") and "status" in item
    }


def _tools(request: ProviderRequest, family: OpenAIFamily) -> Iterator[Charge]:
    """List the tools, which stand in a block of their own."""
    if request.tools:
        block = f"## functions\n\n{namespace(request.tools, family.plain_unions)}"
        yield from tool_charges(request.tools, family, block, family.responses_tools)


def _schema(request: ProviderRequest, family: OpenAIFamily) -> Iterator[Charge]:
    """Charge the answer schema: its block, and 1 token where its name begins the answer."""
    if request.schema:
        fixed = 1 if family.schema_answer else 0
        yield Charge(
            "answer schema",
            str(request.schema.get("name") or ""),
            (schema_block(request.schema),),
            fixed,
        )


def _choice(request: ProviderRequest, family: OpenAIFamily) -> Iterator[Charge]:
    """Charge the instruction that some tool must be called, or that only one call at a time is allowed."""
    if request.required and len(request.tools) == 1 and family.forced_tool:
        only = function_name(request.tools[0])
        yield Charge("tools", "required", (f"functions.{only}",), _ONLY_TOOL)
    if request.sequential and request.tools and family.plain_unions:
        yield Charge("tools", "one at a time", fixed=_SEQUENTIAL)
