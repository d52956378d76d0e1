"""The count endpoints: where each provider counts, in which shape it is asked and answers, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from budgetkit.budget.quoting import brief
from budgetkit.extras.endpoints.answers import MOST_TOKENS, is_count
from budgetkit.extras.endpoints.exchange import Answer
from budgetkit.extras.endpoints.keys import Key, key_from_environment
from budgetkit.files import Table, read_toml

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
    headers: Callable[[str], dict[str, str]] = field(repr=False)
    body: Callable[[str, str], dict[str, Any]] = field(repr=False)
    answer: str
    source: str

    def read_key(self) -> Key:
        """Return the key in the environment; raise ValueError where there is none, or none that can be sent."""
        return key_from_environment(self.key, self.headers)


def _filled(shape: Any, **values: str) -> Any:
    """Return a shape of the table with what was given in place of its names.

    >>> _filled({"messages": [{"role": "user", "content": "{text}"}]}, text="{model}?")
    {'messages': [{'role': 'user', 'content': '{model}?'}]}
    """
    if isinstance(shape, str):
        return shape.format(**values)
    if isinstance(shape, list):
        return [_filled(entry, **values) for entry in shape]
    return {name: _filled(entry, **values) for name, entry in shape.items()}


def _endpoint(headers: Any, body: Any, **named: str) -> Endpoint:
    signed, asked = (
        (lambda key: _filled(headers, key=key)),
        (lambda model, text: _filled(body, model=model, text=text)),
    )
    return Endpoint(headers=signed, body=asked, **named)


ENDPOINTS: Final[Mapping[str, Endpoint]] = Table(
    lambda: {name: _endpoint(**row) for name, row in read_toml("endpoints.toml").items()}
)


def tokens_in(answer: Answer, endpoint: Endpoint, key: Key) -> int | str:
    """Return the count that an answer holds, or half a sentence about why it holds none and what to do."""
    if answer.status == 200:
        return _count_in(answer, endpoint, key)
    message = key.hidden_in(_message(answer))
    if answer.status in (401, 403):
        return f"it refused the key ({message}); look whether {key.variable} holds a valid one"
    if answer.status == 429:
        return f"its rate limit is reached ({message}); wait {_seconds(answer.wait)} and try again"
    if answer.status == 404:
        return f"it knows no such model ({message}); write the name as {urlsplit(endpoint.url).hostname} does"
    return f"it answered {answer.status} ({message}); correct the request, or try again later"


def _count_in(answer: Answer, endpoint: Endpoint, key: Key) -> int | str:
    document = answer.document()
    if isinstance(document, dict):
        count = document.get(endpoint.answer)
    else:
        count = None
    if isinstance(count, int) and is_count(count):
        return count
    if count is not None:
        answer_text = f"{brief(endpoint.answer)} is {key.hidden_in(json.dumps(count))}"
        return f"its {answer_text}; counts are whole numbers from 0 to {MOST_TOKENS:,}; count without it"
    answer_text = key.hidden_in(answer.body[:_SHOWN].decode("utf-8", "replace"))
    return f"the answer holds no {brief(endpoint.answer)} ({brief(answer_text)}); is the address right?"


def _seconds(wait: str) -> str:
    if wait.isascii() and wait.isdecimal() and len(wait) < 7:
        return f"{wait} seconds"
    return "a while"


def _message(answer: Answer) -> str:
    document = answer.document()
    if isinstance(document, dict):
        error = document.get("error")
    else:
        error = None
    if isinstance(error, dict):
        message = error.get("message")
    else:
        message = error
    if isinstance(message, str):
        return message
    return answer.reason
