"""Counting by asking the provider: exact, over the network, and only for those who ask for it by name.

The one door to the network. Nothing else in budgetkit imports this module, and `budgetkit.counter` never makes a
counter of it. Keys come from the environment and are never stored; answers are kept on disk, so that the same
request is asked about once. A text is counted as the only message of a request, less what the request costs
without it, which is what it costs with the one letter "a" less one token.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx

__all__ = ["ENDPOINTS", "Endpoint", "EndpointError", "ProviderCounter", "provider_counter"]

_AT_ONCE = 4
_ALONE = "a"


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


@dataclass(frozen=True, slots=True)
class ProviderCounter:
    """Count by asking a provider.

    Parameters
    ----------
    model : str
        The model's name as the provider writes it.
    endpoint : Endpoint
        Whom to ask.
    cache : Path
        File that keeps the answers.
    timeout : float
        Seconds to wait for one answer.
    """

    model: str
    endpoint: Endpoint
    cache: Path
    timeout: float = 30.0
    exact: bool = field(default=True, init=False)

    @property
    def name(self) -> str:
        """The model, and that its provider counts."""
        return f"{self.model} (counted by {self.endpoint.provider})"

    def __call__(self, text: str) -> int:
        """Count one text, in tokens."""
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count several texts, a few at once, each of them only if it was never asked about.

        Parameters
        ----------
        texts : sequence of str
            Any texts; an empty one is 0 tokens, and nobody is asked.

        Returns
        -------
        list of int
            In tokens each.

        Raises
        ------
        EndpointError
            If there is no key, or the provider refuses, limits, fails or does not answer in time.
        """
        different = list(dict.fromkeys(text for text in texts if text))
        if not different:
            return [0] * len(texts)
        bodies = [self.endpoint.body(self.model, text) for text in (_ALONE, *different)]
        alone, *sizes = self.requests(bodies)
        found = dict(zip(different, (size - alone + 1 for size in sizes), strict=True))
        return [found[text] if text else 0 for text in texts]

    def request(self, body: Mapping[str, Any]) -> int:
        """Count one whole request.

        Parameters
        ----------
        body : Mapping
            In the provider's own shape, tools and system text included.

        Returns
        -------
        int
            What the provider would bill, in tokens.

        Raises
        ------
        EndpointError
            As `many`.
        """
        return self.requests([body])[0]

    def requests(self, bodies: Sequence[Mapping[str, Any]]) -> list[int]:
        """Count several whole requests; see `request`.

        Parameters
        ----------
        bodies : sequence of Mapping
            In the provider's own shape.

        Returns
        -------
        list of int
            In tokens each.
        """
        names = [_name(self.endpoint, self.model, body) for body in bodies]
        with _open(self.cache) as kept:
            known = {name: tokens for name in names if (tokens := _look_up(kept, name)) is not None}
            asked = {name: body for name, body in zip(names, bodies, strict=True) if name not in known}
            for name, tokens in self._ask(asked):
                kept.execute("INSERT OR REPLACE INTO counts VALUES (?, ?)", (name, tokens))
                kept.commit()  # what was answered stays, even if the next one fails
                known[name] = tokens
        return [known[name] for name in names]

    def _ask(self, asked: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
        if not asked:
            return
        headers = self.endpoint.headers(self._key())
        url = self.endpoint.url.replace("{model}", self.model)
        with httpx.Client(headers=headers, timeout=self.timeout) as client, ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = pool.map(lambda body: self._one(client, url, body), asked.values())
            yield from zip(asked, answers, strict=True)

    def _one(self, client: httpx.Client, url: str, body: Mapping[str, Any]) -> int:
        try:
            response = client.post(url, json=dict(body))
        except httpx.TimeoutException:
            raise self._error(
                f"no answer within {self.timeout:g} seconds; try again, or give a longer timeout="
            ) from None
        except httpx.HTTPError as error:
            raise self._error(f"it cannot be reached ({error}); look at the network, or count without it") from None
        if response.status_code != httpx.codes.OK:
            raise self._error(_refusal(response, self.endpoint.key))
        try:
            return int(response.json()[self.endpoint.answer])
        except (ValueError, KeyError, TypeError):
            raise self._error(
                f"the answer holds no {self.endpoint.answer!r} ({response.text[:80]!r}); is the address right?"
            ) from None

    def _key(self) -> str:
        key = os.environ.get(self.endpoint.key, "")
        if not key:
            raise self._error(f"{self.endpoint.key} is not set; put your key into that environment variable")
        return key

    def _error(self, what: str) -> EndpointError:
        return EndpointError(f"{self.endpoint.provider} was asked to count for {self.model}; {what}")


def provider_counter(
    provider: str, model: str, *, cache: str | os.PathLike[str] | None = None, timeout: float = 30.0
) -> ProviderCounter:
    """Make a counter that asks a provider; every text and request that it counts is sent there.

    Parameters
    ----------
    provider : str
        "openai", "anthropic" or "gemini".
    model : str
        The model's name as the provider writes it.
    cache : path, optional
        File that keeps the answers, by a checksum of what was asked; in the user's cache folder when left out.
    timeout : float
        Seconds to wait for one answer.

    Returns
    -------
    ProviderCounter
        Nothing is sent before it is called.

    Raises
    ------
    ValueError
        If the provider is unknown.

    Examples
    --------
    >>> provider_counter("anthropic", "claude-sonnet-4-5").name
    'claude-sonnet-4-5 (counted by Anthropic)'
    """
    if provider not in ENDPOINTS:
        raise ValueError(f"no count endpoint of {provider!r}; known are {', '.join(ENDPOINTS)}; use one of these")
    return ProviderCounter(model, ENDPOINTS[provider], Path(cache) if cache else _cache_file(), timeout)


def _refusal(response: httpx.Response, key: str) -> str:
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


def _name(endpoint: Endpoint, model: str, body: Mapping[str, Any]) -> str:
    asked = json.dumps([endpoint.url, model, body], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()


def _cache_file() -> Path:
    folder = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "budgetkit" / "provider-counts.sqlite"


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as kept:
        kept.execute("CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, tokens INTEGER NOT NULL)")
        yield kept


def _look_up(kept: sqlite3.Connection, name: str) -> int | None:
    row = kept.execute("SELECT tokens FROM counts WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])
