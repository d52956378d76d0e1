"""Keys of providers: read from the environment, checked before they are sent, and never shown.

A key gets out by accident: in an error that quotes a header, in an answer that quotes the request, in a traceback that
prints local variables. So a `Key` prints as the name of its variable, and words that are not budgetkit's own pass
through `Key.hidden_in` before they stand in an error.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from urllib.parse import unquote

import httpx

_LONGEST = 8_192  # characters of a key
_SHOWN = 200  # characters of what others say
_RUN = 4  # characters in a row that a word may not share with the key: some providers quote the last four
_HIDDEN = "[hidden]"
_ESCAPE = re.compile(r"\\(?:u00|x)([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Key(httpx.Auth):
    """A key that signs requests and is not seen: neither its repr nor a traceback with local variables shows it."""

    variable: str
    headers: Callable[[str], dict[str, str]] = field(repr=False)
    value: str = field(repr=False)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Put the headers that carry the key into a request."""
        request.headers.update(self.headers(self.value))
        yield request

    def hidden_in(self, words: str) -> str:
        """Return what somebody else said as one line of at most 200 characters, without anything of the key.

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
        """Tell whether a word holds a part of the key, plainly, as a URL or as JSON write it, or in base64."""
        written = (word, unquote(word), _ESCAPE.sub(lambda code: chr(int(code[1], 16)), word))
        return any(run in form.casefold() for form in written for run in self._runs())

    def _runs(self) -> set[str]:
        # Base64 writes three bytes as four characters, so a key that stands in other text has one of three forms.
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
        """Tell whether the key stands in a line with something between its characters."""
        letters, line_letters = (
            re.sub(r"[\W_]", "", text).casefold() for text in (self.value, line)
        )
        return letters[: 2 * _RUN] in line_letters or letters[-2 * _RUN :] in line_letters


def key_from_environment(variable: str, headers: Callable[[str], dict[str, str]]) -> Key:
    """Read a key, without the blanks and line ends around it; raise ValueError where there is none or it is none.

    >>> key_from_environment("NO_SUCH_KEY", dict)
    Traceback (most recent call last):
    ValueError: NO_SUCH_KEY is not set; put your key into that environment variable
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ValueError(f"{variable} is not set; put your key into that environment variable")
    strange = sum(not "!" <= sign <= "~" for sign in value)
    if strange or not 2 * _RUN <= len(value) <= _LONGEST:
        raise ValueError(
            f"{variable} holds {len(value):,} characters, of which {strange} are blanks, line ends or no ASCII; "
            f"keys have {2 * _RUN} to {_LONGEST:,} letters, digits and marks; copy your key again"
        )
    return Key(variable, headers, value)
