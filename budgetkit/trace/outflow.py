"""Kinds of files by their first bytes, and Outflow: how much may come out of a container that is unpacked.

A small file cannot fill the memory:

    bytes   64 MiB, or 32 times what the container has, whichever is more
    values  a million, and one for every other byte that the container has

Text of conversations packs to a fourth or a tenth, of agents that repeat themselves to a thirtieth; what packs to a
thousandth was made to do so. Values are what becomes an object of its own: cells of a table, and in text every mark
that parts values, as brackets and commas do. All files of a container, and all containers in it, share one outflow. A
stream is read twice: once to count it, and then, if that is not too much, to read what is in it.
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterable
from contextlib import closing
from copy import copy
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final

from budgetkit.files import read_toml

_SPEAKERS: Final = (
    "who speaks is marked by lines that begin with User: and Assistant:, or by headings such as ## User; "
    "mark them so, or give an export as JSON"
)
_MARKDOWN: Final = (".md", ".markdown")


def kind_of(head: bytes) -> str:
    """Say what a file is by its first bytes and what to give instead; "" where that is not known.

    Examples
    --------
    >>> kind_of(b"%PDF-1.7")
    'a PDF; give the chat as JSON, Markdown or text'
    >>> kind_of(b"User: Hello")
    ''
    """
    # the bytes stand in the table as characters, one each
    start = head[:512].decode("latin-1")
    for kind in read_toml("formats.toml")["kind"]:
        at = kind.get("at", 0)
        beginnings = tuple(kind.get("starts", ()))
        here = start[at:]
        if kind.get("is_text"):
            here = here.lstrip("\xef\xbb\xbf \t\r\n").lower()
        if beginnings and here.startswith(beginnings):
            return _sentence(kind)
    if b"\x00" in head:
        return "a binary file of a kind that is not known; give the chat as JSON, Markdown or text"
    return ""


def kind_of_archive(members: Iterable[str]) -> str:
    """Say what an archive is by the files in it; "" where that is not known.

    Examples
    --------
    >>> kind_of_archive(["word/document.xml"])
    'a Word document; save it as plain text'
    """
    names = {*members}
    for kind in read_toml("formats.toml")["kind"]:
        if names & {*kind.get("members", ())}:
            return _sentence(kind)
    return ""


def kind_of_text(name: str) -> str:
    """Say what a text is that is neither JSON nor a table and names no speaker.

    Examples
    --------
    >>> kind_of_text("notes.md").partition(";")[0]
    'Markdown without speakers'
    """
    kind = "Markdown" if PurePosixPath(name).suffix.lower() in _MARKDOWN else "text"
    return f"{kind} without speakers; {_SPEAKERS}"


def _sentence(kind: dict[str, Any]) -> str:
    return f"{kind['label']}; {kind['instead']}"


#: Bytes that may come out of any container.
FREE_BYTES: Final = 64 << 20
#: Bytes that may come out for each byte that is in it.
MOST_TIMES: Final = 32
#: Values that may come out of any container; beyond these, one for every other byte that is in it.
FREE_VALUES: Final = 1_000_000
#: Files that are opened of one archive.
MOST_MEMBERS: Final = 10_000
#: Memory that an xz file may ask for to be unpacked; its highest preset, -9, needs 65 MiB.
XZ_MEMORY: Final = 128 << 20
_MARKS: Final = b"{[,:;\t\n"
_BLOCK: Final = 1 << 16


def marks(text: bytes) -> int:
    """Count the marks in a text that part values.

    Examples
    --------
    >>> marks(b'{"role": "user", "content": []}')
    5
    """
    return len(text) - len(text.translate(None, _MARKS))


class OutflowError(ValueError):
    """More comes out of a container than may; no part of it is read."""


class Outflow:
    """What has come out of one container, and how much may.

    Parameters
    ----------
    name : str
        The container, for the error.
    packed : int
        Its own size, in bytes.

    Examples
    --------
    >>> outflow = Outflow("chats.zip", packed=1_000)
    >>> outflow.add(size=64 << 20)
    >>> outflow.add(size=1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    budgetkit.trace.outflow.OutflowError: chats.zip: more than 64 MiB comes out of its 1,000 bytes; ...
    """

    def __init__(self, name: str, packed: int) -> None:
        self.name = name
        self.packed = packed
        self.most_bytes = max(FREE_BYTES, MOST_TIMES * packed)
        self.most_values = FREE_VALUES + packed // 2
        self.bytes = 0
        self.values = 0

    def add(self, size: int = 0, values: int = 0) -> None:
        """Add bytes and values that were unpacked; OutflowError where they are too many."""
        self.bytes += size
        self.values += values
        if self.bytes > self.most_bytes:
            raise self.exceeded(f"{self.most_bytes >> 20:,} MiB comes")
        if self.values > self.most_values:
            raise self.exceeded(f"{self.most_values:,} values come")

    def add_text(self, text: bytes) -> None:
        """Add a piece of text: its bytes, and the signs in it that separate values, such as commas."""
        self.add(size=len(text), values=marks(text))

    def check(self, size: int = 0, values: int = 0) -> None:
        """Refuse what says of itself that it would be too much, before any of it comes out."""
        Outflow.add(copy(self), size=size, values=values)

    def exceeded(self, amount: str) -> OutflowError:
        """Return the error that too much was unpacked."""
        return OutflowError(
            f"{self.name}: more than {amount} out of its {self.packed:,} bytes; that is far more than conversations "
            "pack to; unpack it and give the files in it, or a part of them"
        )


def measure(stream: Any, outflow: Outflow) -> None:
    """Read what comes out of a container to its end, and count it; then it is opened anew."""
    with closing(stream):
        while block := stream.read(_BLOCK):
            outflow.add_text(block)


def buffered(stream: Any) -> io.BufferedReader:
    """Return what comes out of a container as a stream that can be looked into."""
    return io.BufferedReader(_Raw(stream), _BLOCK)


class _Raw(io.RawIOBase):
    """Whatever can be read, as a stream that can be buffered."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(min(len(buffer), _BLOCK))
        buffer[: len(data)] = data
        return len(data)


class XzStream:
    """An xz or lzma file, unpacked in bounded memory: such a file names itself how much its unpacking takes."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.decompressor = lzma.LZMADecompressor(memlimit=XZ_MEMORY)
        self.rest = b""

    def read(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        while True:
            # One xz file may hold several streams, one after the other.
            if self.decompressor.eof:
                self.rest = self.decompressor.unused_data or self.stream.read(_BLOCK)
                if not self.rest.strip(b"\0"):
                    return b""
                self.decompressor = lzma.LZMADecompressor(memlimit=XZ_MEMORY)

            if not self.rest and self.decompressor.needs_input:
                self.rest = self.stream.read(_BLOCK)
                if not self.rest:
                    raise EOFError("it ends in the middle")
            data = self.decompressor.decompress(self.rest, size)
            self.rest = b""
            if data:
                return data

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""
