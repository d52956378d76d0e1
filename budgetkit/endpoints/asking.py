"""ProviderCounter: texts and requests counted by asking a provider, a few at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from budgetkit.budget.quoting import brief
from budgetkit.endpoints.answers import asked_name, cache_file, kept_answers, known_answer
from budgetkit.endpoints.shapes import ENDPOINTS, Endpoint, EndpointError, refusal

_AT_ONCE = 4
_ALONE = "a"


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
        names = [asked_name(self.endpoint.url, self.model, body) for body in bodies]
        with kept_answers(self.cache) as kept:
            known = {name: tokens for name in names if (tokens := known_answer(kept, name)) is not None}
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
            raise self._error(refusal(response, self.endpoint.key))
        try:
            return int(response.json()[self.endpoint.answer])
        except (ValueError, KeyError, TypeError):
            raise self._error(
                f"the answer holds no {brief(self.endpoint.answer)} ({brief(response.text[:80])}); is the "
                "address right?"
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
        raise ValueError(f"no count endpoint of {brief(provider)}; known are {', '.join(ENDPOINTS)}; use one of these")
    return ProviderCounter(model, ENDPOINTS[provider], Path(cache) if cache else cache_file(), timeout)
