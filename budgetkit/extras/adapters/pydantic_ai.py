"""pydantic-ai: a history processor, for ``ProcessHistory`` or ``history_processors``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from budgetkit.extras.adapters.keeper import NATIVE, Keeper
from budgetkit.message import Data, Message, Raw

Processor = Callable[[list[Any]], Coroutine[Any, Any, list[Any]]]


def history_processor(*budget: Any, **more: Any) -> Processor:
    """Return a processor that trims the history to the budget.

    The instructions of the last request are counted, too.

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
    texts = []
    for part in native.parts:
        if part.part_kind == "tool-call":
            function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
            calls.append({"id": part.tool_call_id, "function": function})
        if part.part_kind == "text":
            texts.append(part.content)
    called = {"tool_calls": calls} if calls else {}
    text = "\n".join(texts) or None
    yield Message({"role": "assistant", "content": text, **called, NATIVE: (native, None)})


def _part(part: Any) -> Data:
    if part.part_kind == "user-prompt":
        content = (
            part.content if isinstance(part.content, str) else [*map(_content_part, part.content)]
        )
        return {"role": "user", "content": content}
    if (result := _result(part)) is not None:
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": result}
    # A retry prompt without a tool is pruned like an answer, so its question is kept.
    if part.part_kind.startswith("retry"):
        return {"role": "assistant", "content": part.model_response()}
    return {"role": "system", "content": str(getattr(part, "content", ""))}


def _result(part: Any) -> str | None:
    """Return the text of a tool's result or retry prompt, or None."""
    if part.part_kind == "tool-return":
        return str(part.model_response_str())
    if part.part_kind == "retry-prompt" and part.tool_name:
        return str(part.model_response())
    return None


def _content_part(content: Any) -> str | Data:
    if isinstance(content, str):
        return content
    is_image = "image" in f"{content.kind} {getattr(content, 'media_type', '')}"
    shown = {"type": "image_url", "image_url": {}} if is_image else {"type": content.kind}
    return {**shown, "hash": hash(repr(content))}  # distinguishes pictures


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
    if raw["role"] == "tool" and raw["content"] != _result(part):
        return replace(part, content=raw["content"])
    return part
