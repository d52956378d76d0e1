"""Containers: a file's kind, and the JSON values, rows or texts in it.

gzip, bzip2, xz, zip and zstandard are opened, UTF-16 is read as UTF-8, and text that is no JSON is tried as a table, as
YAML and as a conversation written by speakers. What holds no conversation is called by its name and refused. What comes
out of a container is counted and bounded (`outflow.py`).
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from pathlib import PurePosixPath
from typing import IO, Any, BinaryIO, TypeVar

from budgetkit.files import extra
from budgetkit.trace import tables, transcripts
from budgetkit.trace.jsonl import (
    LONGEST_LINE,
    MOST_MEMBERS,
    Numbered,
    Outflow,
    Progress,
    XzStream,
    buffered,
    kind_of,
    kind_of_archive,
    kind_of_text,
    measure,
    values,
)

#: A name for errors, and the numbered values of one file in a container.
Part = tuple[str, Iterator[Numbered]]
MEMBERS = (
    ".json",
    ".jsonl",
    ".ndjson",
    ".chat",
    ".traj",
    ".md",
    ".txt",
    ".csv",
    ".tsv",
    ".yaml",
    ".yml",
    ".gz",
)
#: The number of the packing in a zip.
_ZSTANDARD = 93
_JSON_NAMES = (".json", ".jsonl", ".ndjson")
# A link of Markdown begins with a bracket too, and a CSV file with a quotation mark.
_JSON_START = re.compile(
    rb"""\{|\[\s*[\[{"\]]|"[^"\n]*"\s*$|(null|true|false|-?[0-9.]+)\s*$""", re.MULTILINE
)
Made = TypeVar("Made")
_PEEK = 4096
_BLOCK = 1 << 16
_DEEPEST = 3


def opened(
    stream: BinaryIO,
    name: str,
    progress: Progress | None = None,
    columns: Any = None,
    depth: int = 0,
    outflow: Outflow | None = None,
) -> Iterator[Part]:
    """Open a stream and give each file in it: its name, and its JSON values with their line numbers."""
    head = _head(stream)
    unpack = next((unpack for magic, unpack in _PACKED.items() if head.startswith(magic)), None)
    is_zip = head.startswith(b"PK\x03\x04")
    if depth == _DEEPEST and (unpack is not None or is_zip):
        raise ValueError(
            f"{name}: a container within {_DEEPEST} others; a conversation needs one; unpack it"
        )

    if unpack is not None or is_zip:
        if not stream.seekable():
            stream = io.BytesIO(_whole(stream, name))
        outflow = outflow or Outflow(name, _size(stream))
        if unpack is None:
            yield from _members(stream, name, columns, depth, outflow)
            return
        start = stream.tell()
        yield from _told(_measured(unpack(stream, name), outflow), name)
        stream.seek(start)
        inner = buffered(unpack(stream, name))
        yield from _unpacked(
            opened(inner, name.removesuffix(".gz"), None, columns, depth + 1, outflow), name
        )
    elif kind := tables.kind(head, name):
        written = _whole(stream, name)
        yield (
            name,
            tables.rows(written, kind, name, columns, outflow or Outflow(name, len(written))),
        )
    elif encoding := _wide(head):
        text = _whole(stream, name).decode(encoding, "replace")
        yield from opened(
            io.BytesIO(text.encode("utf-8", "replace")), name, None, columns, depth, outflow
        )
    elif foreign := kind_of(head):
        raise ValueError(f"{name} is {foreign}")
    else:
        yield name, _text(stream, head, name, progress, columns)


def _measured(stream: Any, outflow: Outflow) -> Iterator[Any]:
    """Count a stream's unpacked size, and refuse too much.

    The iterator yields no values.
    """
    measure(stream, outflow)
    yield from ()


def _size(stream: BinaryIO) -> int:
    """Return how many bytes a container has."""
    here = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(here)
    return size


def _text(
    stream: BinaryIO, head: bytes, name: str, progress: Progress | None, columns: Any
) -> Iterator[Numbered]:
    """Read text as lines of JSON where it begins like JSON, else as a table or as a transcript."""
    if _is_json(head, PurePosixPath(name).suffix.lower()):
        return values(stream, name, progress)
    text, note = _decoded(_whole(stream, name), name)
    numbered = tables.text_rows(text, name, columns) or transcripts.read(text, name)
    if numbered is None:
        raise ValueError(f"{name} is {kind_of_text(name)}")
    return iter([(line, _noted(value, note)) for line, value in numbered])


def _is_json(head: bytes, suffix: str) -> bool:
    """Tell whether a text is JSON, by its name or its beginning."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return not start or suffix in _JSON_NAMES or _JSON_START.match(start) is not None


def _decoded(written: bytes, name: str) -> tuple[str, str]:
    """Decode text as UTF-8, else Windows-1252, and return it with a note."""
    try:
        return written.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        line = written.count(b"\n", 0, error.start) + 1
        byte = written[error.start]
    try:
        text = written.decode("cp1252")
    except UnicodeDecodeError:
        problem = f"{name}, line {line}: neither UTF-8 nor Windows-1252; byte 0x{byte:02x} cannot stand there"
        raise ValueError(f"{problem}; save the file as UTF-8") from None
    note = f"the text is not UTF-8 and was read as Windows-1252, first on line {line:,}; if letters look wrong"
    return text, f"{note}, save it as UTF-8"


def _noted(value: Any, note: str) -> Any:
    """Add a note to the warnings of a conversation."""
    if not note or not isinstance(value, dict) or "messages" not in value:
        return value
    return {**value, "warnings": [*value.get("warnings", ()), note]}


def _head(stream: BinaryIO) -> bytes:
    """Return the first bytes of a stream, which stay in it."""
    if isinstance(stream, io.BufferedReader):
        return stream.peek(_PEEK)[:_PEEK]
    here = stream.tell()
    head = stream.read(_PEEK)
    stream.seek(here)
    return head


def _whole(stream: BinaryIO, name: str) -> bytes:
    """Read a stream to its end, in blocks: one read of the bound's size would reserve that much for a small file."""
    written = bytearray()
    while block := stream.read(_BLOCK):
        written += block
        if len(written) > LONGEST_LINE:
            excess = f"{name}: more than {LONGEST_LINE >> 20} MiB in one piece"
            raise ValueError(f"{excess}; a conversation is less; give a part of it")
    return bytes(written)


def _wide(head: bytes) -> str:
    """Name the encoding of UTF-16 text; "" for any other text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if len(head) >= 4 and head[1] == head[3] == 0 and head[0]:
        return "utf-16-le"
    if len(head) >= 4 and head[0] == head[2] == 0 and head[1]:
        return "utf-16-be"
    return ""


def _members(
    stream: BinaryIO, name: str, columns: Any, depth: int, outflow: Outflow
) -> Iterator[Part]:
    """Yield the files of a zip that may hold conversations.

    Of a chat export only the files named so are taken.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ValueError(f"{name}: no zip that can be read; {error}; pack it again") from None
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) > MOST_MEMBERS:
        raise outflow.exceeded(f"{MOST_MEMBERS:,} files come")
    # Its reader takes as much memory as the file names, up to 4 GB.
    if any(member.compress_type == zipfile.ZIP_LZMA for member in members):
        raise ValueError(f"{name}: a zip packed with LZMA is not read; pack it with deflate")
    visible = [member for member in members if not member.filename.startswith(("__MACOSX", "."))]
    if any(member.filename == "xl/workbook.xml" for member in visible):
        stream.seek(0)
        yield name, tables.rows(_whole(stream, name), "excel", name, columns, outflow)
        return
    if foreign := kind_of_archive(member.filename for member in visible):
        raise ValueError(f"{name} is {foreign}")

    # An export names its conversations; its other files are settings and pictures.
    is_inspect = any(member.filename == "header.json" for member in visible)
    chosen = [
        member
        for member in visible
        if PurePosixPath(member.filename).name.startswith("conversations")
        or (is_inspect and member.filename.startswith("samples/"))
    ]
    chosen = chosen or [
        member for member in visible if PurePosixPath(member.filename).suffix in MEMBERS
    ]
    try:
        for member in chosen:
            yield from _told(_measured(_opened(archive, member, name), outflow), name)
        for member in chosen:
            inside = opened(
                buffered(_opened(archive, member, name)),
                f"{name}/{member.filename}",
                None,
                columns,
                depth + 1,
                outflow,
            )
            yield from _unpacked(inside, name)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise ValueError(
            f"{name}/{member.filename}: cannot be unpacked; {error}; pack it again"
        ) from None


def _opened(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Any:
    """Open a member of a zip, packed with Zstandard too, as Inspect does."""
    if member.compress_type != _ZSTANDARD:
        return archive.open(member)
    # Python's own reader knows it from 3.14 on; read the packed bytes as if they were plain, and unpack them here.
    plain: Any = copy(member)
    plain.compress_type, plain.file_size, plain.CRC = zipfile.ZIP_STORED, plain.compress_size, None
    return _zstandard(archive.open(plain), name)


def _zstandard(stream: IO[bytes], name: str) -> Any:
    with extra("lab", name):
        import zstandard
    return zstandard.ZstdDecompressor().stream_reader(
        stream, read_across_frames=True, closefd=False
    )


def _unpacked(parts: Iterable[Part], name: str) -> Iterator[Part]:
    for part, numbered in _told(parts, name):
        yield part, _told(numbered, name)


def _told(parts: Iterable[Made], name: str) -> Iterator[Made]:
    """Yield a packed stream's values, and explain an error in unpacking."""
    broken = getattr(sys.modules.get("zstandard"), "ZstdError", zlib.error)
    try:
        yield from parts
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, broken) as error:
        raise ValueError(f"{name}: cannot be unpacked; {error}; pack it again") from None


_PACKED: dict[bytes, Callable[[BinaryIO, str], Any]] = {
    b"\x1f\x8b": lambda stream, _: gzip.GzipFile(fileobj=stream),
    b"BZh": lambda stream, _: bz2.BZ2File(stream),
    b"\xfd7zXZ\x00": lambda stream, _: XzStream(stream),
    b"\x28\xb5\x2f\xfd": _zstandard,
}
