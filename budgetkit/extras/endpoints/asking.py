"""ProviderCounter: counts of texts and requests from a provider's endpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from budgetkit.budget.errors import out_of_range, unknown_name
from budgetkit.budget.quoting import brief
from budgetkit.extras.endpoints.answers import MOST_TOKENS, cache_file, is_count, kept_counts
from budgetkit.extras.endpoints.exchange import Answer, Key, ask_all, key_from_environment
from budgetkit.files import Table, read_toml
from budgetkit.message import Data, Raw
from budgetkit.models import Model, model_name

_SHOWN = 400  # bytes of an answer without a count


class EndpointError(RuntimeError):
    """The error raised if a provider does not return a count."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider's count endpoint: address, key, and request and response formats.

    Parameters
    ----------
    provider : str
        Name of the provider, for error messages.
    url : str
        Address of the endpoint, with ``{model}`` in place of the model's name.
    key : str
        Name of the environment variable with the key.
    headers : dict
        Headers of a request, with ``{key}`` in place of the key.
    body : dict
        Template of a request body, with ``{model}`` in place of the model's name and ``{text}`` as the only message.
    answer : str
        Name of the response's field with the count.
    source : str
        Source of the format, with its date.
    """

    provider: str
    url: str
    key: str
    headers: dict[str, str] = field(repr=False)
    body: Data = field(repr=False)
    answer: str
    source: str


def _filled(shape: Any, **values: str) -> Any:
    """Return a request template with its placeholders filled in.

    >>> _filled({"messages": [{"role": "user", "content": "{text}"}]}, text="{model}?")
    {'messages': [{'role': 'user', 'content': '{model}?'}]}
    """
    if isinstance(shape, str):
        return shape.format(**values)
    if isinstance(shape, list):
        return [_filled(entry, **values) for entry in shape]
    return {name: _filled(entry, **values) for name, entry in shape.items()}


ENDPOINTS: Final[Mapping[str, Endpoint]] = Table(
    lambda: {name: Endpoint(**row) for name, row in read_toml("endpoints.toml").items()}
)


def tokens_in(answer: Answer, endpoint: Endpoint, key: Key) -> int | str:
    """Return the count from an answer, or the problem and its fix.

    The problem is a clause, which the caller completes to a sentence.
    """
    if answer.status == 200:
        return _count_in(answer, endpoint, key)
    error = answer.document.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    message = key.hidden_in(message if isinstance(message, str) else answer.reason)
    if answer.status in (401, 403):
        return f"the key was rejected ({message}). Set {key.variable} to a valid key."
    if answer.status == 429:
        is_number = answer.wait.isascii() and answer.wait.isdecimal() and len(answer.wait) < 7
        wait = f"{answer.wait} seconds" if is_number else "a while"
        return f"the rate limit is reached ({message}). Wait {wait} and try again."
    if answer.status == 404:
        return (
            f"unknown model ({message}). Use the name listed by {urlsplit(endpoint.url).hostname}."
        )
    return f"the status is {answer.status} ({message}). Correct the request, or try again later."


def _count_in(answer: Answer, endpoint: Endpoint, key: Key) -> int | str:
    count = answer.document.get(endpoint.answer)
    if isinstance(count, int) and is_count(count):
        return count
    if count is not None:
        answer_text = f"{brief(endpoint.answer)} is {key.hidden_in(json.dumps(count))}"
        return f"{answer_text}, not a whole number from 0 to {MOST_TOKENS:,}. Use another counter."
    answer_text = key.hidden_in(answer.body[:_SHOWN].decode("utf-8", "replace"))
    return f"the answer lacks {brief(endpoint.answer)} ({brief(answer_text)}). Check the address."


_ALONE = "a"


@dataclass(frozen=True, slots=True)
class ProviderCounter:
    """A counter that sends texts and requests to a provider's endpoint.

    Parameters
    ----------
    model : str or Model
        The model, or its name at the provider.
    endpoint : Endpoint
        The endpoint to use.
    cache : Path
        File that caches the answers.
    timeout : float
        Time limit for a complete answer, in seconds.
    """

    model: str
    endpoint: Endpoint
    cache: Path
    timeout: float = 30.0
    exact: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not 0 < self.timeout < inf:
            raise ValueError(
                out_of_range("timeout", self.timeout, "a number of seconds above 0, such as 30")
            )

    @property
    def name(self) -> str:
        """The counter's name: the model and its provider."""
        return f"{self.model} (counted by {self.endpoint.provider})"

    def __call__(self, text: str) -> int:
        """Count the tokens in one text."""
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of several texts concurrently, sending duplicates only once.

        Parameters
        ----------
        texts : sequence of str
            The texts. An empty text has 0 tokens and is not sent.

        Returns
        -------
        list of int
            Token count of each text.

        Raises
        ------
        EndpointError
            If there is no key, or if the provider rejects or limits the request, fails, times out, or returns no valid
            count.
        """
        different = list(dict.fromkeys(text for text in texts if text))
        if not different:
            return [0] * len(texts)
        alone, *sizes = self.requests(
            [_filled(self.endpoint.body, model=self.model, text=t) for t in (_ALONE, *different)]
        )
        tokens = dict(zip(different, (size - alone + 1 for size in sizes), strict=True))
        if min(tokens.values()) < 0:
            raise self._error(
                f"it counted fewer tokens for a text than for {brief(_ALONE)} ({alone}). Use another counter."
            )
        return [tokens[text] if text else 0 for text in texts]

    def request(self, body: Raw) -> int:
        """Count the tokens of one whole request.

        Parameters
        ----------
        body : Mapping
            The request body in the provider's format, with tools and system text.

        Returns
        -------
        int
            Tokens that the provider would bill.

        Raises
        ------
        EndpointError
            As in `many`.
        """
        return self.requests([body])[0]

    def requests(self, bodies: Sequence[Raw]) -> list[int]:
        """Count the tokens of several whole requests.

        Parameters
        ----------
        bodies : sequence of Mapping
            The request bodies in the provider's format.

        Returns
        -------
        list of int
            Token count of each request.
        """
        with kept_counts(self.cache) as store:
            names = [store.name(self.endpoint.url, self.model, body) for body in bodies]
            answers = store.known([*dict.fromkeys(names)])
            open_requests = {
                name: body for name, body in zip(names, bodies, strict=True) if name not in answers
            }
            answers |= self._ask(open_requests, store.keep)
        return [answers[name] for name in names]

    def _ask(
        self, requests: Mapping[bytes, Raw], keep: Callable[[bytes, int], None]
    ) -> dict[bytes, int]:
        """Request counts, and store each count as it arrives.

        Each request and its count have the same name, the checksum of the request.
        """
        counts = dict[bytes, int]()
        refused = list[str]()
        if not requests:
            return counts
        key = self._key()

        def answered(name: bytes, answer: Answer | str) -> bool:
            counted = answer if isinstance(answer, str) else tokens_in(answer, self.endpoint, key)
            if isinstance(counted, str):
                refused.append(counted)
                return False
            counts[name] = counted
            keep(name, counted)
            return True

        url = self.endpoint.url.replace("{model}", quote(self.model.encode("utf-8", "replace")))
        ask_all(url, key, self.timeout, requests, answered)
        if refused:  # raised here, without the errors of other requests
            raise self._error(refused[0])
        return counts

    def _key(self) -> Key:
        try:
            return key_from_environment(
                self.endpoint.key, lambda key: _filled(self.endpoint.headers, key=key)
            )
        except ValueError as error:
            message = str(error)
        raise self._error(message)

    def _error(self, what: str) -> EndpointError:
        return EndpointError(f"{self.endpoint.provider} did not count for {self.model:.80}: {what}")


def provider_counter(
    provider: str,
    model: str | Model,
    *,
    cache: str | os.PathLike[str] | None = None,
    timeout: float = 30.0,
) -> ProviderCounter:
    """Return a counter that sends texts and requests to a provider.

    Counts that are in the cache are not requested again.

    Parameters
    ----------
    provider : str
        Name of the provider: "openai", "anthropic" or "gemini".
    model : str or Model
        The model, or its name at the provider.
    cache : path, optional
        File that caches the answers by a checksum of the request; default: a file in the user's cache folder.
    timeout : float
        Time limit for a complete answer, in seconds.

    Returns
    -------
    ProviderCounter
        The counter. Requests are sent only when it is called.

    Raises
    ------
    ValueError
        If the provider is unknown, or the timeout is not above 0.

    Warns
    -----
    RuntimeWarning
        If the cache file is broken and replaced, or cannot be written. The warning appears when texts are counted.

    Examples
    --------
    >>> provider_counter("anthropic", "claude-sonnet-5").name
    'claude-sonnet-5 (counted by Anthropic)'
    """
    if provider not in ENDPOINTS:
        raise ValueError(unknown_name("provider", provider, ENDPOINTS))
    return ProviderCounter(
        model_name(model), ENDPOINTS[provider], Path(cache) if cache else cache_file(), timeout
    )
