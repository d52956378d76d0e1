"""Concurrent requests to a provider, limited in size and time.

An answer contains little more than a number, so at most 64 KiB are read, and nothing is decompressed. The time limit
covers the whole answer, even if the provider sends a byte now and then.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import anyio
import anyio.from_thread
import httpx

from budgetkit.message import Data, Raw, replace_surrogates
from budgetkit.requests.reading.request import parsed

_LONGEST = 8_192  # characters of a key
_SHOWN = 200  # maximum characters of an error text
_RUN = 4  # characters in a row that a word may not share with the key: some providers quote the last four
_HIDDEN = "[hidden]"
_ESCAPE = re.compile(r"\\(?:u00|x)([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Key(httpx.Auth):
    """A key that authenticates requests and never appears in a traceback."""

    variable: str
    headers: Callable[[str], dict[str, str]] = field(repr=False)
    value: str = field(repr=False)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the key's headers to a request."""
        request.headers.update(self.headers(self.value))
        yield request

    def hidden_in(self, words: str) -> str:
        """Return an error text without the key, in at most 200 characters.

        The text is on one line. If it contains the start or end of the key with separators in it, the whole text is
        hidden.

        >>> Key("ACME_KEY", dict, "sk-1234567890abcdef").hidden_in("Wrong key: sk-****cdef" + chr(10) + "Bye")
        'Wrong key: [hidden] Bye'
        """
        line = "".join(
            sign for sign in " ".join(words[: 50 * _SHOWN].split()) if sign.isprintable()
        )
        line = " ".join(_HIDDEN if self._shows(word) else word for word in line.split(" "))
        if self._spelled_out(line):
            return _HIDDEN
        if len(line) <= _SHOWN:
            return line
        return f"{line[:_SHOWN]}…"

    def _shows(self, word: str) -> bool:
        """Return True if a word contains part of the key, even encoded."""
        written = (word, unquote(word), _ESCAPE.sub(lambda code: chr(int(code[1], 16)), word))
        return any(run in form.casefold() for form in written for run in self._runs())

    def _runs(self) -> set[str]:
        # Base64 writes three bytes as four characters, so a key inside a text has one of three forms.
        coded = [
            b64encode(self.value.encode()[skipped:]).decode().rstrip("=")[:-1]
            for skipped in range(3)
        ]
        return {
            form[at : at + _RUN].casefold()
            for form in (self.value, *coded)
            for at in range(len(form) - _RUN + 1)
        }

    def _spelled_out(self, line: str) -> bool:
        """Return True if a line spells the key's start or end.

        Separators between the letters are ignored.
        """
        letters, line_letters = (
            re.sub(r"[\W_]", "", text).casefold() for text in (self.value, line)
        )
        return letters[: 2 * _RUN] in line_letters or letters[-2 * _RUN :] in line_letters


def key_from_environment(variable: str, headers: Callable[[str], dict[str, str]]) -> Key:
    """Read a key from an environment variable.

    >>> key_from_environment("NO_SUCH_KEY", dict)
    Traceback (most recent call last):
    ValueError: No API key: the environment variable NO_SUCH_KEY is not set. Set it to your key.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ValueError(
            f"No API key: the environment variable {variable} is not set. Set it to your key."
        )
    strange = sum(not "!" <= sign <= "~" for sign in value)
    if strange or not 2 * _RUN <= len(value) <= _LONGEST:
        raise ValueError(
            f"Invalid key in {variable} (characters: {len(value):,}, blank or not ASCII: {strange}). A key has "
            f"{2 * _RUN} to {_LONGEST:,} letters, digits and punctuation marks; copy it again."
        )
    return Key(variable, headers, value)


#: Maximum bytes read from an answer.
MOST_BYTES: Final = 1 << 16
#: Maximum number of concurrent requests.
AT_ONCE: Final = 4
_HEADERS: Final = {"content-type": "application/json", "accept-encoding": "identity"}

Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Answer:
    """A provider's response: status, reason phrase, Retry-After header and body."""

    status: int
    reason: str
    wait: str
    body: bytes

    @property
    def document(self) -> Data:
        """The body as a JSON object, or {} for anything else."""
        value = parsed(self.body)
        return value if isinstance(value, dict) else {}


def ask_all(
    url: str,
    key: Key,
    timeout: float,
    requests: Mapping[Name, Raw],
    answered: Callable[[Name, Answer | str], bool],
) -> None:
    """Send all requests, a few at a time, until one fails.

    The timeout is in seconds. The event loop runs in a separate thread, because the caller's thread may already have
    one, as in Jupyter.
    """

    async def answer(client: httpx.AsyncClient, body: Raw) -> Answer | str:
        """Send one request and return its answer, or describe the problem."""
        try:
            with anyio.fail_after(timeout):
                return await _exchange(client, url, body)
        except (TimeoutError, httpx.TimeoutException):
            return f"no answer within {timeout:g} seconds. Try again, or pass a longer timeout=."
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            problem = key.hidden_in(str(error) or type(error).__name__)
            return f"the connection failed ({problem}). Check the network, or use another counter."

    async def ask() -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with (
            httpx.AsyncClient(auth=key, timeout=timeout, verify=_trusted()) as client,
            anyio.create_task_group() as group,
        ):

            async def one(name: Name, body: Raw) -> None:
                async with limiter:
                    if not answered(name, await answer(client, body)):
                        group.cancel_scope.cancel()

            for name, body in requests.items():
                group.start_soon(one, name, body)

    loop = {"loop_factory": _Loop}
    with anyio.from_thread.start_blocking_portal(backend_options=loop) as portal:
        portal.call(ask)


async def _exchange(client: httpx.AsyncClient, url: str, body: Raw) -> Answer | str:
    """Send one request, and read the answer up to a limit."""
    written = json.dumps(dict(body), ensure_ascii=False, separators=(",", ":"))
    content = replace_surrogates(written).encode()
    async with client.stream("POST", url, content=content, headers=_HEADERS) as response:
        read = b""
        async for chunk in response.aiter_raw():
            read += chunk
            if len(read) > MOST_BYTES:
                return f"the answer is longer than {MOST_BYTES >> 10} KiB. Check the address."
        wait = response.headers.get("retry-after", "")
        return Answer(response.status_code, response.reason_phrase, wait, read)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that can stop during a host lookup.

    The system sets no time limit for host lookups.
    """

    async def getaddrinfo(self, *query: Any, **more: Any) -> Any:
        """Look up a host on a daemon thread."""
        addresses: Future[Any] = Future()
        addresses.set_running_or_notify_cancel()

        def look_up() -> None:
            try:
                addresses.set_result(socket.getaddrinfo(*query, **more))
            except Exception as error:
                addresses.set_exception(error)

        threading.Thread(target=look_up, daemon=True).start()
        return await asyncio.wrap_future(addresses, loop=self)


@cache
def _trusted() -> ssl.SSLContext:
    # Cached, because reading the certificates takes longer than a request.
    return httpx.create_ssl_context()
