"""The count endpoints: where each provider counts, in which shape it is asked and answers, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from budgetkit.budget.quoting import brief
from budgetkit.endpoints.answers import MOST_TOKENS, is_count
from budgetkit.endpoints.exchange import Answer
from budgetkit.endpoints.keys import Key

_SHOWN = 400  # bytes of an answer without a count


class EndpointError(RuntimeError):
    """A provider's count endpoint did not answer with a count."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Describe where a provider counts, and in which shape it is asked and answers.

    Parameters
    ----------
    provider : str
        Its name in errors.
    url : str
        Address; ``{model}`` stands for the model's name.
    key : str
        The environment variable that holds the key.
    headers : callable
        From the key to the headers that carry it.
    body : callable
        From model and text to the request that holds the text as its only message.
    answer : str
        The field of the response that holds the count.
    source : str
        Where the shape is documented, with the date.
    """

    provider: str
    url: str
    key: str
    headers: Callable[[str], dict[str, str]]
    body: Callable[[str, str], dict[str, Any]]
    answer: str
    source: str


ENDPOINTS: Final[Mapping[str, Endpoint]] = MappingProxyType(
    {
        "openai": Endpoint(
            "OpenAI",
            "https://api.openai.com/v1/responses/input_tokens",
            "OPENAI_API_KEY",
            lambda key: {"Authorization": f"Bearer {key}"},
            lambda model, text: {"model": model, "input": text},
            "input_tokens",
            "OpenAI, API reference, Get input token counts; read 2026-11-22",
        ),
        "anthropic": Endpoint(
            "Anthropic",
            "https://api.anthropic.com/v1/messages/count_tokens",
            "ANTHROPIC_API_KEY",
            lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
            lambda model, text: {"model": model, "messages": [{"role": "user", "content": text}]},
            "input_tokens",
            "Anthropic, API reference, Count tokens in a message; read 2026-11-21",
        ),
        "gemini": Endpoint(
            "Gemini",
            "https://generativelanguage.googleapis.com/v1beta/models/{model}:countTokens",
            "GEMINI_API_KEY",
            lambda key: {"x-goog-api-key": key},
            lambda model, text: {"contents": [{"role": "user", "parts": [{"text": text}]}]},
            "totalTokens",
            "Google, Gemini API reference, models.countTokens; read 2026-11-21",
        ),
    }
)


def tokens_in(answer: Answer, endpoint: Endpoint, key: Key) -> int | str:
    """Return the count that an answer holds, or half a sentence about why it holds none and what to do."""
    if answer.status == 200:
        return _count_in(answer, endpoint, key)
    said = key.hidden_in(_message(answer))
    if answer.status in (401, 403):
        return f"it refused the key ({said}); look whether {key.variable} holds a valid one"
    if answer.status == 429:
        return f"its rate limit is reached ({said}); wait {_seconds(answer.wait)} and try again"
    if answer.status == 404:
        return f"it knows no such model ({said}); write the name as {urlsplit(endpoint.url).hostname} does"
    return f"it answered {answer.status} ({said}); correct the request, or try again later"


def _count_in(answer: Answer, endpoint: Endpoint, key: Key) -> int | str:
    document = answer.document()
    found = document.get(endpoint.answer) if isinstance(document, dict) else None
    if isinstance(found, int) and is_count(found):
        return found
    if found is not None:
        said = f"{brief(endpoint.answer)} is {key.hidden_in(json.dumps(found))}"
        return f"its {said}; counts are whole numbers from 0 to {MOST_TOKENS:,}; count without it"
    said = key.hidden_in(answer.body[:_SHOWN].decode("utf-8", "replace"))
    return f"the answer holds no {brief(endpoint.answer)} ({brief(said)}); is the address right?"


def _seconds(wait: str) -> str:
    return f"{wait} seconds" if wait.isascii() and wait.isdecimal() and len(wait) < 7 else "a while"


def _message(answer: Answer) -> str:
    document = answer.document()
    error = document.get("error") if isinstance(document, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else answer.reason
