"""LangChain and LangGraph: a runnable, a pre-model hook and an agent middleware.

Texts, tool calls and images are counted as such. Any other content block is counted by its JSON text, and so are the
invalid tool calls and additional fields of a model's messages, such as reasoning; encrypted reasoning is not counted. A
Python warning names files and other data that only the provider can count. The schemas of tools that the provider runs
are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from budgetkit.extras.adapters.keeper import NATIVE, Keeper, parts_of
from budgetkit.files import extra
from budgetkit.message import ORIGIN, Message, Raw
from budgetkit.requests.reading.parts import objects_in

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
#: Types of blocks with a call of the application's tools, or its result.
_PAIRS = ("tool_use", "function_call", "tool_result")


def kept(keeper: Keeper, messages: Sequence[Any], tools: Sequence[Any] = ()) -> list[Any]:
    """Return the LangChain messages that fit, shortening tool results if necessary."""
    return [_native(raw) for raw in keeper.fit([*map(_message, messages)], _schemas(tools))]


async def akept(keeper: Keeper, messages: Sequence[Any], tools: Sequence[Any] = ()) -> list[Any]:
    """Return the LangChain messages that fit, as :func:`kept` does.

    Summaries that the policy asks for are awaited.
    """
    return [_native(raw) for raw in await keeper.afit([*map(_message, messages)], _schemas(tools))]


def runnable(*budget: Any, **more: Any) -> Any:
    """Return a runnable that trims messages.

    Put it before a model: ``runnable(8_000) | model``.

    Parameters
    ----------
    *budget, **more
        As in :class:`budgetkit.extras.adapters.keeper.Keeper`.

    Returns
    -------
    langchain_core.runnables.RunnableLambda
        A runnable for synchronous and asynchronous use.
    """
    with extra("frameworks", "a runnable"):
        from langchain_core.runnables import RunnableLambda

    keeper = Keeper(*budget, **more)

    async def awaited(messages: Sequence[Any]) -> list[Any]:
        return await akept(keeper, messages)

    return RunnableLambda(lambda messages: kept(keeper, messages), awaited, "budget")


def pre_model_hook(*budget: Any, **more: Any) -> Any:
    """Return a LangGraph node that trims only the model's input.

    The state is not changed.

    Parameters
    ----------
    *budget, **more
        As in :class:`budgetkit.extras.adapters.keeper.Keeper`.

    Returns
    -------
    langchain_core.runnables.Runnable
        A runnable that returns the ``llm_input_messages`` for a state with ``messages``.
    """
    fitting = runnable(*budget, **more)
    return (
        (lambda state: state["messages"])
        | fitting
        | (lambda fitted: {"llm_input_messages": fitted})
    )


def middleware(*budget: Any, **more: Any) -> Any:
    """Return a middleware for ``create_agent`` that also counts tool schemas.

    Parameters
    ----------
    *budget, **more
        As in :class:`budgetkit.extras.adapters.keeper.Keeper`.

    Returns
    -------
    langchain.agents.middleware.AgentMiddleware
        A middleware for synchronous and asynchronous use.
    """
    with extra("frameworks", "a middleware"):
        from langchain.agents.middleware import AgentMiddleware

    keeper = Keeper(*budget, **more)

    def parts(request: Any) -> tuple[list[Any], Sequence[Any]]:
        system = [request.system_message] if request.system_message else []
        return [*system, *request.messages], request.tools

    def fitted_to(request: Any, fitted: list[Any]) -> Any:
        return request.override(
            messages=[message for message in fitted if message is not request.system_message]
        )

    class BudgetMiddleware(AgentMiddleware):  # type: ignore[misc, unused-ignore]  # not everywhere
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(fitted_to(request, kept(keeper, *parts(request))))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(fitted_to(request, await akept(keeper, *parts(request))))

    return BudgetMiddleware()


def _message(native: Any) -> Message:
    role = _ROLES.get(native.type)
    content = native.content
    beside = []
    if native.type == "ai":
        fields = native.additional_kwargs.items()
        more = {name: value for name, value in fields if value and name != "tool_calls"}
        beside = [native.invalid_tool_calls, more or ()]
    is_text = isinstance(content, str) and not any(beside)
    plain = is_text and not native.name and not getattr(native, "tool_calls", ())
    if plain and role in ("user", "assistant", "system"):
        return Message({"role": role, "content": content, NATIVE: native})
    from langchain_core.messages import convert_to_openai_messages

    # LangChain reads calls and results; it rejects some other blocks.
    pairs = [block for block in objects_in(content) if block.get("type") in _PAIRS]
    raw = convert_to_openai_messages(native.model_copy(update={"content": pairs}))
    ids = {call["id"] for call in raw.get("tool_calls", ())}
    blocks = [
        block
        for block in ([content] if isinstance(content, str) else content)
        if isinstance(block, str) or block.get("call_id", block.get("id")) not in ids
    ]
    parts = content if is_text else parts_of([*blocks, *beside])
    raw |= {"content": parts, NATIVE: native}
    if any("hash" in part for part in objects_in(parts)):
        raw[ORIGIN] = {"whole": True}
    return Message(raw)


def _native(raw: Raw) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage

    native = raw.get(NATIVE)
    if native is None:  # a summary, with the role that begins the request
        return (HumanMessage if raw["role"] == "user" else AIMessage)(raw["content"])
    if native.type == "tool" and raw["content"] != _message(native).raw["content"]:
        return native.model_copy(update={"content": raw["content"]})  # shortened
    return native


def _schemas(tools: Sequence[Any]) -> list[Raw]:
    """Return the schemas of all tools except those run by the provider."""
    functions = [
        tool
        for tool in tools
        if not isinstance(tool, Mapping) or tool.keys() & {"function", "parameters"}
    ]
    if not functions:
        return []
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return [*map(convert_to_openai_tool, functions)]
