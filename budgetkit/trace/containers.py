"""Containers: what a file is by its first bytes, and the JSON values, rows or texts in it.

gzip, bzip2, xz, zip and zstandard are opened, UTF-16 is read as UTF-8, and text that is no JSON is tried as a table, as
YAML and as a conversation written by speakers.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final, TypeVar

from budgetkit.files import extra
from budgetkit.trace import tables, transcripts
from budgetkit.trace.jsonl import LONGEST_LINE, Numbered, Progress, values

#: A name for errors, and the numbered values of one file in a container.
Part = tuple[str, Iterator[Numbered]]
_MEMBERS = (".json", ".jsonl", ".ndjson", ".chat", ".traj", ".md", ".txt", ".csv", ".tsv", ".yaml", ".yml", ".gz")
_JSON_STARTS = b'{["'
Made = TypeVar("Made")
_PEEK = 4096
_DEEPEST = 3


def opened(
    stream: BinaryIO, name: str, progress: Progress | None = None, columns: Any = None, depth: int = 0
) -> Iterator[Part]:
    """Open a stream and give each file in it: its name, and its JSON values with their line numbers."""
    head = _head(stream)
    unpack = next((unpack for magic, unpack in _PACKED.items() if head.startswith(magic)), None)
    if unpack is not None and depth < _DEEPEST:
        inner = io.BufferedReader(unpack(stream, name))
        yield from _unpacked(opened(inner, name.removesuffix(".gz"), None, columns, depth + 1), name)
    elif head.startswith(b"PK\x03\x04") and depth < _DEEPEST:
        yield from _members(stream, name, columns, depth)
    elif kind := tables.kind(head, name):
        yield name, tables.rows(_whole(stream, name), kind, name, columns)
    elif encoding := _wide(head):
        text = _whole(stream, name).decode(encoding, "replace")
        yield from opened(io.BytesIO(text.encode("utf-8", "replace")), name, None, columns, depth + 1)
    else:
        yield name, _text(stream, head, name, progress, columns)


def _text(stream: BinaryIO, head: bytes, name: str, progress: Progress | None, columns: Any) -> Iterator[Numbered]:
    """Read UTF-8 text as lines of JSON; other text is first tried as a table and as a transcript."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start and start not in _JSON_STARTS and not _is_json_word(head) and PurePosixPath(name).suffix != ".jsonl":
        written = _whole(stream, name)
        with suppress(UnicodeDecodeError):
            text = written.decode("utf-8-sig")
            found = tables.text_rows(text, name, columns) or transcripts.read(text, name)
            if found is not None:
                return iter(found)
        stream = io.BytesIO(written)
    return values(stream, name, progress)


def _is_json_word(head: bytes) -> bool:
    return head.lstrip()[:1].isdigit() or head.lstrip().startswith((b"null", b"true", b"false", b"-"))


def _head(stream: BinaryIO) -> bytes:
    """Look at the first bytes without taking them."""
    if isinstance(stream, io.BufferedReader):
        return stream.peek(_PEEK)[:_PEEK]
    here = stream.tell()
    head = stream.read(_PEEK)
    stream.seek(here)
    return head


def _whole(stream: BinaryIO, name: str) -> bytes:
    written = stream.read(LONGEST_LINE + 1)
    if len(written) > LONGEST_LINE:
        told = f"{name}: more than {LONGEST_LINE >> 20} MiB in one piece"
        raise ValueError(f"{told}; a conversation is less; give a part of it")
    return written


def _wide(head: bytes) -> str:
    """Name the encoding of UTF-16 text; "" for any other text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if len(head) >= 4 and head[1] == head[3] == 0 and head[0]:
        return "utf-16-le"
    return "utf-16-be" if len(head) >= 4 and head[0] == head[2] == 0 and head[1] else ""


def _members(stream: BinaryIO, name: str, columns: Any, depth: int) -> Iterator[Part]:
    """Give the files of a zip that can hold conversations; of a chat export only the files that are named so."""
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ValueError(f"{name}: no zip that can be read; {error}; pack it again") from None
    members = (each for each in archive.infolist() if not each.is_dir())
    listed = [each for each in members if not each.filename.startswith(("__MACOSX", "."))]
    if any(each.filename == "xl/workbook.xml" for each in listed):
        stream.seek(0)
        yield name, tables.rows(_whole(stream, name), "excel", name, columns)
        return
    named = [each for each in listed if PurePosixPath(each.filename).name.startswith("conversations")]
    for member in named or [each for each in listed if PurePosixPath(each.filename).suffix in _MEMBERS]:
        try:
            inside: Any = archive.open(member)
            path = f"{name}/{member.filename}"
            yield from _unpacked(opened(io.BufferedReader(inside), path, None, columns, depth + 1), name)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise ValueError(f"{name}/{member.filename}: cannot be unpacked; {error}; pack it again") from None


def _zstandard(stream: BinaryIO, name: str) -> Any:
    with extra("files", name):
        import zstandard
    return zstandard.ZstdDecompressor().stream_reader(stream)


def _unpacked(parts: Iterable[Part], name: str) -> Iterator[Part]:
    for part, numbered in _told(parts, name):
        yield part, _told(numbered, name)


def _told(parts: Iterable[Made], name: str) -> Iterator[Made]:
    """Pass on what is read from a packed stream; if unpacking fails, raise an error that says so."""
    broken = getattr(sys.modules.get("zstandard"), "ZstdError", zlib.error)
    try:
        yield from parts
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, broken) as error:
        raise ValueError(f"{name}: cannot be unpacked; {error}; pack it again") from None


_PACKED: Final[dict[bytes, Callable[[BinaryIO, str], Any]]] = {
    b"\x1f\x8b": lambda stream, _: gzip.GzipFile(fileobj=stream),
    b"BZh": lambda stream, _: bz2.BZ2File(stream),
    b"\xfd7zXZ\x00": lambda stream, _: lzma.LZMAFile(stream),  # noqa: SIM115
    b"\x28\xb5\x2f\xfd": _zstandard,
}
