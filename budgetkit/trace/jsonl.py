"""JSON values from a file, with their line numbers.

If the first line is not a complete JSON value, the file is read as documents that span several lines. Blank lines are
skipped. Overlong lines and endless blank lines are rejected before they fill the memory.

Kinds of files are recognised by their first bytes. :class:`Outflow` limits the data unpacked from a container, so that
a small file cannot fill the memory:

    bytes   64 MiB, or 32 times the container's own size if that is more
    values  a million, plus one for every two bytes of the container

Conversations compress by a factor of 4 to 10, and repetitive agent sessions by a factor of 30. A factor of 1,000
indicates an attack. A value is a spreadsheet cell, or text between separators such as brackets and commas; it becomes a
Python object. In a parquet or Arrow file, each row, each cell and the column name of each cell is a value. The XML
elements of a workbook have a limit of the same size, in which those that are slow to read count five times. All files
in a container and in nested containers share one :class:`Outflow`. A stream is read twice: first to measure it and
then, within the limit, to read its content.
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

from budgetkit.budget import brief, many, quoted
from budgetkit.files import read_toml

#: Maximum bytes of a line, or of a document that spans many lines.
LONGEST_LINE = 256 << 20
#: Maximum number of consecutive blank lines.
MOST_BLANK = 2_000_000

Numbered = tuple[int, Any]
Progress = Callable[[int, int], object]
_MEGABYTE = 1 << 20
_DEEPEST = 100
_SPACE = re.compile(r"[ \t\n\r]*")
_OPENERS = ("{", "[", "[{")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class BrokenLine:
    """A line that is not valid JSON, and its error.

    A session file is read without such lines, since several programs may write to the file at the same time. Any other
    file with such a line is rejected.
    """

    error: ValueError


def unbroken(numbered: Iterator[Numbered]) -> Iterator[Numbered]:
    """Yield values, or raise the error of the first unreadable line."""
    for line, value in numbered:
        if isinstance(value, BrokenLine):
            raise value.error
        yield line, value


def broken_lines(places: list[int]) -> str:
    """Return a warning about omitted, unreadable lines.

    >>> broken_lines([2, 7])
    'Left out 2 lines of invalid JSON: line 2, line 7.'
    """
    return f"Left out {many(len(places), 'line')} of invalid JSON: {quoted(places, 5, 'line {:,}'.format)}."


@dataclass(frozen=True)
class JsonFile:
    """A reader of JSON files, with errors that name file and line."""

    name: str

    def values(self, stream: BinaryIO, progress: Progress | None = None) -> Iterator[Numbered]:
        r"""Yield each JSON value of a file with its line number.

        An unreadable line after the first value becomes a :class:`BrokenLine`.

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
        """Read one or more documents that span several lines.

        An error names the line where the JSON is invalid.
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
        """Return the value at a position, and the position after it."""
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
            problem = f"longer than {LONGEST_LINE >> 20} MiB. Check the program that wrote it."
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
    """Yield lines, and report progress about once per megabyte."""
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
    """Reject deeply nested values, which would exceed Python's recursion limit."""
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
    """Return an object's fields, or reject a known field that is repeated.

    Unknown fields may be repeated, as in tool outputs.
    """
    # All lines have the same field names, so each name is stored once.
    fields = {intern(name): value for name, value in pairs}
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        for name in read_toml("formats.toml")["marks"]["once"]:
            if names.count(name) > 1:
                raise ValueError(f"{brief(name)} appears twice in one object")
    return fields


# NaN and Infinity are not valid JSON, and providers reject them; they are read as null, as JavaScript writes them.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda _: None)


#: Bytes that any container may unpack to.
FREE_BYTES = 64 << 20
#: Bytes that a container may unpack to for each of its own bytes.
MOST_TIMES = 32
#: Values that any container may hold; a larger container may hold one for every two of its bytes.
FREE_VALUES = 1_000_000
#: Maximum number of files opened in one archive.
MOST_MEMBERS = 10_000
#: Maximum memory for unpacking an xz file; the highest preset, -9, needs 65 MiB.
XZ_MEMORY = 128 << 20
_MARKS = b"{[,:;\t\n"
_BLOCK = 1 << 16


def marks(text: bytes) -> int:
    """Count the characters that begin or separate values.

    These characters are "{", "[", commas, colons, semicolons, tabs and line breaks, even inside strings.

    Examples
    --------
    >>> marks(b'{"role": "user", "content": []}')
    5
    """
    return len(text) - len(text.translate(None, _MARKS))


class OutflowError(ValueError):
    """The error for a container whose content exceeds the limit."""


class Outflow:
    """The amount of data unpacked from a container, and its limit.

    Parameters
    ----------
    name : str
        Name of the container, for error messages.
    packed : int
        Size of the container, in bytes.

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
        """Add unpacked bytes and values, raising an error above the limit."""
        self.bytes += size
        self.values += values
        if self.bytes > self.most_bytes:
            raise self.exceeded(f"{self.most_bytes >> 20:,} MiB")
        if self.values > self.most_values:
            raise self.exceeded(f"{self.most_values:,} values")

    def check(self, size: int = 0, values: int = 0) -> None:
        """Reject a stated size above the limit before unpacking."""
        Outflow.add(copy(self), size=size, values=values)

    def exceeded(self, amount: str) -> OutflowError:
        """Return the error for too much unpacked data."""
        return OutflowError(
            f"{self.name}: unpacks to more than {amount} from {self.packed:,} bytes, far more than conversations do. "
            "Unpack it and pass the files in it."
        )


def stream_size(stream: Any, outflow: Outflow) -> None:
    """Read an unpacked stream, and add its size to an `Outflow`.

    The stream is closed; open it again to read its content.
    """
    with closing(stream):
        while block := stream.read(_BLOCK):
            outflow.add(size=len(block), values=marks(block))


def buffered(stream: Any) -> io.BufferedReader:
    """Return a buffered reader of an unpacked stream."""
    return io.BufferedReader(_Raw(stream), _BLOCK)


class _Raw(io.RawIOBase):
    """An adapter from any readable object to a raw stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(min(len(buffer), _BLOCK))
        buffer[: len(data)] = data
        return len(data)


class XzStream:
    """An xz or lzma file, unpacked in bounded memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.decompressor = lzma.LZMADecompressor(memlimit=XZ_MEMORY)
        self.rest = b""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, or none at the end."""
        while True:
            # One xz file may contain several consecutive streams.
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
        """Do nothing, because the caller that opened the file closes it."""
