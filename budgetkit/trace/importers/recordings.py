"""Recorded calls: a request's body with the response to it, of whichever provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.trace.importers import anthropic, gemini, responses
from budgetkit.trace.importers.usage import usage_of

Raw = Mapping[str, Any]


def matches(value: Raw) -> bool:
    """Say whether a value is a recorded call."""
    request = value.get("request")
    if not isinstance(request, Mapping) or value.get("messages"):
        return False
    return any(isinstance(request.get(name), str | list) for name in ("messages", "input", "contents"))


def conversation(value: Raw) -> dict[str, Any]:
    """Read a request with its response.

    Examples
    --------
    >>> answer = {"content": [{"type": "text", "text": "Hi."}], "usage": {"input_tokens": 8, "output_tokens": 4}}
    >>> call = {"request": {"system": "", "messages": [{"role": "user", "content": "Hello"}]}, "response": answer}
    >>> conversation(call)["usage"][0]["context_tokens"], conversation(call)["messages"][-1]["content"]
    (8, 'Hi.')
    """
    request, response = value["request"], value.get("response")
    shape = _shape(request, str(value.get("api", "")))
    read = shape.conversation(request) if shape else {**request, "format": "openai-chat"}
    answer = _answer(response, shape)
    messages = [*read["messages"], *answer]
    body = response if isinstance(response, Mapping) else {}
    model = body.get("model") or value.get("model") or request.get("model")
    counted = usage_of(body.get("usage") or body.get("usageMetadata") or value.get("usage"), len(messages) - 1, model)
    rest = {name: field for name, field in value.items() if name not in ("request", "response", "messages", "usage")}
    return {**read, **rest, "messages": messages, "usage": [counted] if counted else [], "response": response}


def _shape(request: Raw, api: str) -> Any:
    if api.startswith("anthropic"):
        return anthropic
    return next((module for module in (responses, gemini, anthropic) if module.matches(request)), None)


def _answer(response: Any, shape: Any) -> list[dict[str, Any]]:
    body = response if isinstance(response, Mapping) else {}
    if isinstance(body.get("choices"), list):
        return [dict(choice["message"]) for choice in body["choices"][:1] if isinstance(choice.get("message"), Mapping)]
    if shape is gemini:
        return gemini.answered(body.get("candidates"))
    listed = response if isinstance(response, list) else body.get("output") or body.get("content") or []
    if shape is responses:
        return responses.chat_messages(listed)
    if shape is anthropic and all(isinstance(each, Mapping) and "role" not in each for each in listed):
        return anthropic.answered(listed)
    return [dict(each) for each in listed if isinstance(each, Mapping) and "role" in each]
