"""JSON values from a file, one per line, with the line they stand on.

A file whose first line is no JSON by itself is tried as one document over many lines. Blank lines are skipped. A
line longer than a conversation can be, and blank lines without end, are refused when they are met, not when the
memory is full.

Kinds of files are recognised by their first bytes, and :class:`Outflow` limits what may come out of a container. A
small file cannot fill the memory:

    bytes   64 MiB, or 32 times what the container has, whichever is more
    values  a million, and one for every other byte that the container has

Text of conversations packs to a fourth or a tenth, of agents that repeat themselves to a thirtieth; what packs to a
thousandth was made to do so. Values are what becomes an object of its own: cells of a table, and in text every mark
that parts values, as brackets and commas do. All files of a container, and all containers in it, share one outflow. A
stream is read twice: once to count it, and then, if that is not too much, to read what is in it.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from sys import intern
from typing import Any, BinaryIO

from budgetkit.budget import brief

#: Bytes of the longest line, or of a document over many lines, that is read.
LONGEST_LINE = 256 << 20
#: Most blank lines in a row.
MOST_BLANK = 2_000_000

Numbered = tuple[int, Any]
Progress = Callable[[int, int], object]
_MEGABYTE = 1 << 20
_DEEPEST = 100
_READ = [
    "role",
    "content",
    "messages",
    "tool_calls",
    "tool_call_id",
    "tools",
    "functions",
    "contexts",
    "meta",
]
_READ += ["system", "instructions", "contents", "parts", "request", "response", "mapping", "usage"]
_SPACE = re.compile(r"[ \t\n\r]*")
_OPENERS = ("{", "[", "[{")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class BrokenLine:
    """A line that is not valid JSON, and its error.

    A file of sessions is read without it, as several programs may write at once; any other file is refused.
    """

    def __init__(self, error: ValueError) -> None:
        self.error = error


def unbroken(numbered: Iterator[Numbered]) -> Iterator[Numbered]:
    """Pass values on, and raise the error of the first line that cannot be read."""
    for line, value in numbered:
        if isinstance(value, BrokenLine):
            raise value.error
        yield line, value


def broken_lines(places: list[int]) -> str:
    """Return the warning that unreadable lines of a file were left out.

    >>> broken_lines([2, 7])
    'Left out: lines that are not valid JSON (2: line 2, 7).'
    """
    examples = ", ".join(f"{line:,}" for line in places[:5])
    return f"Left out: lines that are not valid JSON ({len(places):,}: line {examples})."


@dataclass(frozen=True)
class JsonFile:
    """Read a file of JSON; each error names the file and the line."""

    name: str

    def values(self, stream: BinaryIO, progress: Progress | None = None) -> Iterator[Numbered]:
        r"""Yield a file's JSON values; a later line that cannot be read is a :class:`BrokenLine`.

        Examples
        --------
        >>> from io import BytesIO
        >>> list(JsonFile("toy.jsonl").values(BytesIO(b'{"role": "user"}\n\n[1]\n')))
        [(1, {'role': 'user'}), (3, [1])]
        """
        first = True
        blank = 0
        lines = iter(lambda: stream.readline(LONGEST_LINE + 1), b"")
        for number, line in enumerate(_reported(lines, stream, progress), start=1):
            self._refuse_long(line, number)
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if line.isspace() or not line:
                blank += 1
                if blank > MOST_BLANK:
                    raise self._error(number, f"{blank:,} blank lines in a row. Remove them.")
                continue
            blank = 0
            try:
                text = self._decoded(line, number)
                alone = text.rstrip("\r\n")
                value, end = self._parsed(alone, number, _skip_space(alone, 0))
                if end < len(alone):
                    raise json.JSONDecodeError("Extra data", alone, end)
            except json.JSONDecodeError as error:
                if not first:
                    yield number, BrokenLine(self._broken(number, error))
                    continue
                rest = stream.read(LONGEST_LINE + 1)
                self._refuse_long(rest, number)
                text += self._decoded(rest, number + 1)
                yield from self._documents(text, number, error)
                return
            except ValueError as error:
                if first:
                    raise
                yield number, BrokenLine(error)
                continue
            yield number, value
            first = False

    def _documents(self, text: str, number: int, alone: json.JSONDecodeError) -> Iterator[Numbered]:
        """Read a document over many lines, or several in a row.

        An error names the line where the JSON breaks.
        """
        first_line = text.partition("\n")[0]
        start = 0
        end = _skip_space(text, 0)
        at = number
        try:
            while start == 0 or end < len(text):
                at += text.count("\n", start, end)
                start = end
                value, end = self._parsed(text, number, start)
                if end < len(text) and text[end] != "{":
                    raise json.JSONDecodeError("Extra data", text, end)
                yield at, value
                start = start or 1
        except json.JSONDecodeError as error:
            is_document = first_line.strip() in _OPENERS or start > len(first_line)
            cause = error if is_document else alone
            raise self._broken(number + cause.lineno - 1, cause) from None

    def _parsed(self, text: str, number: int, start: int) -> tuple[Any, int]:
        """Return the value at a place of a text, and the next value's place."""
        try:
            value, end = _DECODER.raw_decode(text, start)
            _refuse_deep(value, text, start, end)
            return value, _skip_space(text, end)
        except json.JSONDecodeError:
            raise
        except RecursionError:
            problem = "nested too deeply. Check the program that wrote it; conversations need about ten levels."
            raise self._error(number, problem) from None
        except ValueError as error:  # a number of more digits than Python reads
            problem = (
                f"not readable as JSON: {str(error).removesuffix('.')}. Correct it or leave it out."
            )
            raise self._error(number, problem) from None

    def _decoded(self, line: bytes, number: int) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            at = number + line.count(b"\n", 0, error.start)
            problem = f"byte 0x{line[error.start]:02x} is not UTF-8. Save the file as UTF-8."
            raise self._error(at, problem) from None

    def _refuse_long(self, line: bytes, number: int) -> None:
        if len(line) > LONGEST_LINE:
            problem = f"more than {LONGEST_LINE >> 20} MiB without an end. Check the program that wrote it."
            raise self._error(number, problem)

    def _broken(self, number: int, error: json.JSONDecodeError) -> ValueError:
        problem = (
            f"broken JSON: {error.msg} at column {error.colno}. Correct the line or leave it out."
        )
        return self._error(number, problem)

    def _error(self, number: int, problem: str) -> ValueError:
        return ValueError(f"{self.name}, line {number}: {problem}")


def _reported(
    lines: Iterator[bytes], stream: BinaryIO, progress: Progress | None
) -> Iterator[bytes]:
    """Pass lines on, and report about once a megabyte how far reading has come."""
    if progress is None:
        yield from lines
        return
    here = stream.tell()
    total = stream.seek(0, os.SEEK_END)
    read = 0
    reported = 0
    stream.seek(here)
    for line in lines:
        yield line
        read += len(line)
        if read - reported >= _MEGABYTE:
            progress(read, total)
            reported = read
    progress(read, total)


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _refuse_deep(value: Any, text: str, start: int, end: int) -> None:
    """Refuse deeply nested values, since walking through them would exceed Python's recursion limit."""
    if text.count("[", start, end) + text.count("{", start, end) <= _DEEPEST:
        return
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST):
        inside = (
            container.values() if isinstance(container, dict) else container for container in level
        )
        level = [
            inner for container in inside for inner in container if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise RecursionError


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields; refuse a known field that stands twice.

    A tool's output may repeat other fields.
    """
    # The names of fields are the same in every line: each is kept once.
    fields = {intern(name): value for name, value in pairs}
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        for name in _READ:
            if names.count(name) > 1:
                raise ValueError(f"{brief(name)} appears twice in one object")
    return fields


# NaN and Infinity are no JSON, and no request takes them: they are read as null, as JavaScript writes them.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda name: None)


#: Bytes that may come out of any container.
FREE_BYTES = 64 << 20
#: Bytes that may come out for each byte that is in it.
MOST_TIMES = 32
#: Values that may come out of any container; beyond these, one for every other byte that is in it.
FREE_VALUES = 1_000_000
#: Files that are opened of one archive.
MOST_MEMBERS = 10_000
#: Memory that an xz file may ask for to be unpacked; its highest preset, -9, needs 65 MiB.
XZ_MEMORY = 128 << 20
_MARKS = b"{[,:;\t\n"
_BLOCK = 1 << 16


def marks(text: bytes) -> int:
    """Count the characters that separate JSON values.

    Examples
    --------
    >>> marks(b'{"role": "user", "content": []}')
    5
    """
    return len(text) - len(text.translate(None, _MARKS))


class OutflowError(ValueError):
    """More comes out of a container than may; no part of it is read."""


class Outflow:
    """The amount unpacked from one container, and its limit.

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
    budgetkit.trace.jsonl.OutflowError: chats.zip: unpacks to more than 64 MiB from 1,000 bytes, far more ...
    """

    def __init__(self, name: str, packed: int) -> None:
        self.name = name
        self.packed = packed
        self.most_bytes = max(FREE_BYTES, MOST_TIMES * packed)
        self.most_values = FREE_VALUES + packed // 2
        self.bytes = 0
        self.values = 0

    def add(self, size: int = 0, values: int = 0) -> None:
        """Add unpacked bytes and values; raise an OutflowError above the limit."""
        self.bytes += size
        self.values += values
        if self.bytes > self.most_bytes:
            raise self.exceeded(f"{self.most_bytes >> 20:,} MiB")
        if self.values > self.most_values:
            raise self.exceeded(f"{self.most_values:,} values")

    def check(self, size: int = 0, values: int = 0) -> None:
        """Refuse a stated size above the limit, before any of it is unpacked."""
        Outflow.add(copy(self), size=size, values=values)

    def exceeded(self, amount: str) -> OutflowError:
        """Return the error for too much unpacked data."""
        return OutflowError(
            f"{self.name}: unpacks to more than {amount} from {self.packed:,} bytes, far more than conversations do. "
            "Unpack it and pass the files in it."
        )


def stream_size(stream: Any, outflow: Outflow) -> None:
    """Read an unpacked stream to its end, and count it.

    Afterwards it is opened again.
    """
    with closing(stream):
        while block := stream.read(_BLOCK):
            outflow.add(size=len(block), values=marks(block))


def buffered(stream: Any) -> io.BufferedReader:
    """Return an unpacked stream as a reader that can look ahead."""
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
    """An xz or lzma file that is unpacked in bounded memory."""

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
                    raise EOFError("it ends too early")
            data = self.decompressor.decompress(self.rest, size)
            self.rest = b""
            if data:
                return data

    def close(self) -> None:
        """Do nothing: the caller that opened the file closes it."""
