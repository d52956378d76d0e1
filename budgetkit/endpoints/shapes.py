"""The count endpoints: where each provider counts, in which shape it is asked and answers, and how it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import httpx


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


def refusal(response: httpx.Response, key: str) -> str:
    """Say what a refusal means and what to do about it."""
    said = _message(response)
    if response.status_code in (401, 403):
        return f"it refused the key ({said}); look whether {key} holds a valid one"
    if response.status_code == 429:
        wait = response.headers.get("retry-after")
        return f"its rate limit is reached ({said}); wait {f'{wait} seconds' if wait else 'a while'} and try again"
    if response.status_code == 404:
        return f"it knows no such model ({said}); write the name as {response.url.host} does"
    return f"it answered {response.status_code} ({said}); correct the request, or try again later"


def _message(response: httpx.Response) -> str:
    try:
        error = response.json()["error"]
        return str(error["message"] if isinstance(error, Mapping) else error)
    except (ValueError, KeyError, TypeError):
        return response.reason_phrase
