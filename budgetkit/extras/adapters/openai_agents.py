"""OpenAI's Agents SDK: a filter for ``RunConfig(call_model_input_filter=...)``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from budgetkit.extras.adapters.keeper import NATIVE, Keeper
from budgetkit.message import Data, Message, Raw

Filter = Callable[[Any], Coroutine[Any, Any, Any]]


def input_filter(*budget: Any, **more: Any) -> Filter:
    """Return a filter that trims the model's input to the budget.

    The instructions and the agent's tools are counted, too.

    Parameters
    ----------
    *budget, **more
        As in :class:`budgetkit.extras.adapters.keeper.Keeper`.

    Returns
    -------
    callable
        A filter for ``RunConfig(call_model_input_filter=...)``. The filter makes the request smaller but leaves the
        session unchanged. The items of a model output, including reasoning, stay together; encrypted reasoning is not
        counted.
    """
    keeper = Keeper(*budget, **more)

    async def fitted(data: Any) -> Any:
        model_data = data.model_data
        # Consecutive model outputs are joined, and every other item becomes a message of its own.
        messages = []
        for is_output, group in groupby(model_data.input, _is_model_output):
            run = tuple(group)
            if is_output:
                calls = []
                texts: list[str] = []
                for item in run:
                    if "call_id" in item:
                        name = item.get("name", item.get("type"))
                        function = {"name": name, "arguments": item.get("arguments")}
                        calls.append({"id": item["call_id"], "function": function})
                    parts = [item[field] for field in ("summary", "content") if item.get(field)]
                    texts += map(_text, parts)
                message = {"role": "assistant", "content": "\n".join(texts) or None, NATIVE: run}
                messages.append(Message({**message, "tool_calls": calls} if calls else message))
            else:
                messages += [Message({**_input_message(item), NATIVE: (item,)}) for item in run]
        if text := model_data.instructions:
            messages.insert(0, Message({"role": "system", "content": text, NATIVE: ()}))
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.params_json_schema,
                },
            }
            for tool in data.agent.tools
            if hasattr(tool, "params_json_schema")
        ]
        fitted_messages = await keeper.afit(messages, tools)
        return replace(model_data, input=[item for raw in fitted_messages for item in _items(raw)])

    return fitted


def _is_model_output(item: Raw) -> bool:
    return item.get("role", "assistant") == "assistant" and not str(item.get("type")).endswith(
        "_output"
    )


def _input_message(item: Raw) -> Data:
    if "role" in item:
        return {"role": item["role"], "content": _parts(item["content"])}
    return {
        "role": "tool",
        "tool_call_id": item.get("call_id"),
        "content": _parts(item.get("output")),
    }


def _parts(content: Any) -> str | list[Any]:
    """Return content as a text or a list of parts, including images."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return [content]
    return [*(content or ())]


def _text(content: Any) -> str:
    parts = [content] if isinstance(content, str) else content
    return "\n".join(
        part if isinstance(part, str) else str(part.get("text") or "") for part in parts
    )


def _items(raw: Raw) -> Sequence[Any]:
    if NATIVE not in raw:
        return [{"role": "assistant", "content": raw["content"]}]  # a summary
    natives: Sequence[Any] = raw[NATIVE]
    if raw["role"] == "tool" and raw["content"] != _parts(natives[0].get("output")):
        return [{**natives[0], "output": _output(raw["content"])}]
    return natives


def _output(content: Any) -> Any:
    """Convert a shortened output to the SDK's parts."""
    if isinstance(content, str):
        return content
    return [{**p, "type": "input_text"} if "text" in p else p for p in content]
