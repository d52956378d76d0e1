"""OpenAI's Agents SDK: a filter for ``RunConfig(call_model_input_filter=...)``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from budgetkit.extras.adapters.keeper import NATIVE, Keeper, parts_of
from budgetkit.message import ORIGIN, Data, Message, Raw

Filter = Callable[[Any], Coroutine[Any, Any, Any]]


def input_filter(*budget: Any, **more: Any) -> Filter:
    """Return a filter that trims the model's input to the budget.

    The instructions and the agent's function tools are counted, too. Messages, readable reasoning, and the calls and
    outputs of functions are counted by their texts and images, and any other item by its JSON text. A Python warning
    names files and other data that only the provider can count. The filter does not receive the schemas of handoffs,
    MCP servers, hosted tools and the output type, so they are not counted.

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
                parts: list[Any] = []
                for item in run:
                    kind = item.get("type", "message")
                    if id := item.get("call_id"):
                        written = item.get("arguments", item)
                        function = {"name": item.get("name", kind), "arguments": written}
                        calls.append({"id": id, "function": function})
                    elif kind in ("message", "reasoning"):
                        parts += parts_of([item.get("summary"), item.get("content")])
                    else:
                        parts += parts_of(item)
                message = {"role": "assistant", "content": parts or None, NATIVE: run}
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
    is_result = str(item.get("type")).endswith("_output") and item.get("call_id")
    return item.get("role", "assistant") == "assistant" and not is_result


def _input_message(item: Raw) -> Data:
    if "role" in item:
        return {"role": item["role"], "content": parts_of(item["content"])}
    output = item.get("output", item)
    parts = parts_of(output)
    message = {"role": "tool", "tool_call_id": item["call_id"], "content": parts}
    # Only text, and a list of texts and images, can be shortened in its own format.
    return message if parts in (output, [output]) else {**message, ORIGIN: {"whole": True}}


def _items(raw: Raw) -> Sequence[Any]:
    if NATIVE not in raw:
        return [{"role": "assistant", "content": raw["content"]}]  # a summary
    natives: Sequence[Any] = raw[NATIVE]
    output = raw["content"]
    if raw["role"] == "tool" and output != _input_message(natives[0])["content"]:
        if not isinstance(output, str):  # the SDK's parts
            output = [{**p, "type": "input_text"} if "text" in p else p for p in output]
        return [{**natives[0], "output": output}]
    return natives
