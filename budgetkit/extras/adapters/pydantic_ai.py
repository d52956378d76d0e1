"""pydantic-ai: a history processor, for ``ProcessHistory`` or ``history_processors``."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from budgetkit.extras.adapters.keeper import NATIVE, Keeper, parts_of
from budgetkit.message import ORIGIN, Data, Message, Raw

Processor = Callable[[list[Any]], Coroutine[Any, Any, list[Any]]]


def history_processor(*budget: Any, **more: Any) -> Processor:
    """Return a processor that trims the history to the budget.

    The instructions of the last request are counted, too. Texts, tool calls, tool results and images are counted as
    such, and text files by their text. Any other part of an answer, such as thinking or a native tool's result, is
    counted by its JSON text; encrypted reasoning is not counted. A Python warning names files that only the provider
    can count.

    Parameters
    ----------
    *budget, **more
        As in :class:`budgetkit.extras.adapters.keeper.Keeper`. Pass tool schemas as ``tools``, because processors do
        not receive them.

    Returns
    -------
    callable
        Function that takes a list of ModelMessage and returns those that fit, some with fewer parts.
    """
    keeper = Keeper(*budget, **more)

    async def processed(messages: list[Any]) -> list[Any]:
        parts = [part for message in messages for part in _messages_of(message)]
        request_messages = await keeper.afit([*_instructions(messages), *parts])
        natives = [raw for raw in request_messages if raw.get(NATIVE) != ()]
        return [
            _native_message([*raws])
            for _, raws in groupby(natives, lambda raw: id(raw.get(NATIVE, (None,))[0]))
        ]

    return processed


def _instructions(messages: Sequence[Any]) -> Iterator[Message]:
    text = next(
        (m.instructions for m in reversed(messages) if getattr(m, "instructions", None)), None
    )
    if text:
        yield Message({"role": "system", "content": text, NATIVE: ()})


def _messages_of(native: Any) -> Iterator[Message]:
    """Convert an answer to one message, or a request to several."""
    if native.kind == "request":
        yield from (Message({**_part(part), NATIVE: (native, part)}) for part in native.parts)
        return
    calls = []
    parts: list[Any] = []
    for part in native.parts:
        if part.part_kind == "tool-call":
            function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
            calls.append({"id": part.tool_call_id, "function": function})
        elif part.part_kind in ("text", "file"):
            parts += _content_parts(part.content)
        else:
            parts += parts_of({"type": part.part_kind, **vars(part)})
    called = {"tool_calls": calls} if calls else {}
    yield Message({"role": "assistant", "content": parts or None, **called, NATIVE: (native, None)})


def _part(part: Any) -> Data:
    kind = part.part_kind
    if kind == "user-prompt":
        content = part.content
        if not isinstance(content, str):
            content = [shown for entry in content for shown in _content_parts(entry)]
        return {"role": "user", "content": content}
    is_retry = kind.startswith("retry")
    if kind == "tool-return" or (is_retry and getattr(part, "tool_name", None)):
        text = part.model_response() if is_retry else part.model_response_str()
        message = {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
        files = [shown for file in getattr(part, "files", ()) for shown in _content_parts(file)]
        if files:  # only a text can be shortened
            message |= {"content": [text, *files], ORIGIN: {"whole": True}}
        return message
    # A retry prompt without a tool is pruned like an answer, so its question is kept.
    if is_retry:
        return {"role": "assistant", "content": part.model_response()}
    content = getattr(part, "content", None) or {"type": kind, **vars(part)}
    return {"role": "system", "content": parts_of(content)}


def _content_parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [content]
    if content.kind == "binary" and re.search("^text/|(json|xml|yaml)$", content.media_type):
        return [content.data.decode(errors="replace")]
    return list(parts_of({**vars(content), "type": content.kind.replace("-", "_")}))


def _native_message(raws: Sequence[Raw]) -> Any:
    if NATIVE not in raws[0]:
        from pydantic_ai.messages import ModelResponse, TextPart

        return ModelResponse([TextPart(raw["content"]) for raw in raws])  # summaries
    native = raws[0][NATIVE][0]
    if native.kind == "response":
        return native
    parts = [_native_part(raw) for raw in raws]
    is_unchanged = [*map(id, parts)] == [*map(id, native.parts)]
    return native if is_unchanged else replace(native, parts=parts)


def _native_part(raw: Raw) -> Any:
    part = raw[NATIVE][1]
    if raw["role"] == "tool" and raw["content"] != _part(part)["content"]:
        return replace(part, content=raw["content"])
    return part
