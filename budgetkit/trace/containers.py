"""Containers: files and archives, and the values, rows or texts in them.

gzip, bzip2, xz, zip and zstandard are unpacked, and UTF-16 and UTF-32 are supported. Text that is not JSON is tried as
a table, as YAML and as a transcript with speakers. Other files are rejected with an error that names their kind. The
unpacked size of a container is limited (:class:`budgetkit.trace.jsonl.Outflow`).

Transcripts have lines such as "User:" or headings such as "## User". A text is read in the style of its first speaker:
if this speaker is a heading, a line "User:" below the heading is part of a message.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import IO, Any, BinaryIO

from budgetkit.budget import many, quoted
from budgetkit.files import extra, read_toml
from budgetkit.requests.reading.formats import without_empty
from budgetkit.trace.jsonl import (
    LONGEST_LINE,
    MOST_MEMBERS,
    JsonFile,
    Numbered,
    Outflow,
    Progress,
    XzStream,
    buffered,
    stream_size,
)
from budgetkit.trace.tables import Columns, TableReader, kind_of_table

_AIDER = re.compile(r"^# aider chat started at (.*)$", re.MULTILINE)
_CURSOR = re.compile(r"^_Exported on .* from Cursor.*_\s*$", re.MULTILINE)
_CURSOR_TURN = re.compile(r"^(?:---\s*\n)?\*\*(User|Cursor)\*\*[ \t]*$", re.MULTILINE)

_USERS = "user|human|you|me|customer"
_NAMES = f"{_USERS}|assistant|ai|bot|agent|chatgpt|gpt|claude|gemini|codex|(?:github )?copilot|model|system"
_SPEAKER = re.compile(
    rf"^[ \t]*(?:#{{1,6}}[ \t]+|\*\*|__)?({_NAMES})(?:\*\*|__)?[ \t]*(?::(?:\*\*|__)?|(?<=\*\*)$|(?<=__)$)[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
# A whole line; text in brackets after the name is a model or a time.
_HEADING = re.compile(
    rf"^#{{1,6}}[ \t]++(?:\*\*|__)?({_NAMES}|prompt|response)(?:\*\*|__)?"
    r"[ \t]*+(?:[(\[][^\n]*[)\]][ \t]*+)?:?(?:\*\*|__)?[ \t]*+$",
    re.MULTILINE | re.IGNORECASE,
)
# In a chat copied from VS Code, messages begin with the user's name or Copilot's.
_COPILOT = re.compile(r"^GitHub Copilot: ", re.MULTILINE)
_FIRST_NAME = re.compile(r"\s*([^\s:][^:\n]{0,60}): ")
# All other speakers are assistants.
_ROLES = {"system": "system"} | dict.fromkeys((*_USERS.split("|"), "prompt"), "user")


def read_transcript(text: str) -> list[Numbered] | None:
    """Split a text with speakers into conversations.

    Return None for a text without speakers.
    """
    if (start := _AIDER.search(text)) and (not text[: start.start()].strip() or "\n#### " in text):
        return _aider(text)
    exported = _CURSOR.search(text, 0, 2_000)
    if exported is not None and _CURSOR_TURN.search(text, exported.end()) is not None:
        conversation = _split(text[exported.end() :], _CURSOR_TURN, "cursor")
        return [(1, {"title": text.splitlines()[0].strip("# "), **conversation})]
    user = _FIRST_NAME.match(text)
    if user and _COPILOT.search(text) and not _SPEAKER.match(text):
        # A chat copied from VS Code, with a user under any name.
        turn = re.compile(rf"^({re.escape(user[1])}|GitHub Copilot): ", re.MULTILINE)
        return [(1, _split(text, turn, user=user[1].lower()))]

    speaker = _SPEAKER.search(text)
    heading = _HEADING.search(text)
    if heading is not None and (speaker is None or heading.start() <= speaker.start()):
        conversation = _split(text, _HEADING)
        roles = {message["role"] for message in conversation["messages"]}
        # a page of documentation may have one such heading; a chat has at least two speakers
        if len(roles) > 1 or not text[: heading.start()].strip():
            return [(1, conversation)]
    if speaker is None or text[: speaker.start()].strip():
        return None
    return [(1, _split(text, _SPEAKER))]


def _split(
    text: str, turn: re.Pattern[str], format: str = "transcript", user: str = ""
) -> dict[str, Any]:
    """Split a text at its speakers, warning about any text before them."""
    turns = list(turn.finditer(text))
    ends = [following.start() for following in turns[1:]] + [len(text)]
    messages = []
    for speaker, end in zip(turns, ends, strict=True):
        name = speaker[1].lower()
        role = "user" if name == user else _ROLES.get(name, "assistant")
        content = text[speaker.end() : end].strip().removesuffix("\n---")
        messages.append({"role": role, "content": content.strip()})
    conversation = {"messages": messages, "format": format}
    before = text[: turns[0].start()].strip(" \n-") if turns else ""
    if before:
        conversation["warnings"] = [
            f"Left out {many(len(before), 'character')} before the first speaker."
        ]
    return conversation


def _aider(text: str) -> list[Numbered]:
    """Read the sessions of an Aider history, without Aider's own output."""
    # A truncated history begins in the middle of a session.
    pieces = ["", *_AIDER.split(text)]
    sessions = []
    number = 1  # the line that a session begins on
    for title, body in zip(pieces[::2], pieces[1::2], strict=True):
        # Each message's lines are joined at the end, since appending them to a string one by one is slow.
        turns: list[tuple[str, list[str]]] = []
        aside = 0
        for line in body.splitlines():
            if line.startswith(">"):
                aside += 1
                continue
            role = "user" if line.startswith("#### ") else "assistant"
            if turns and (turns[-1][0] == role or not line.strip()):
                turns[-1][1].append(line.removeprefix("#### "))
            elif line.strip():
                turns.append((role, [line.removeprefix("#### ")]))
        messages = [{"role": role, "content": "\n".join(texts).strip()} for role, texts in turns]
        warnings = [f"Left out {many(aside, 'line')} of Aider's own output."] if aside else []
        about = without_empty(id=title.strip(), warnings=warnings)
        sessions.append((number, {"messages": messages, "format": "aider", **about}))
        number += body.count("\n")
    return [numbered for numbered in sessions if numbered[1]["messages"]] or sessions


#: The name of a file in a container, for error messages, and its numbered values.
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
_JSON_NAMES = (".json", ".jsonl", ".ndjson")
_MARKDOWN = (".md", ".markdown")
_SPEAKERS = "Begin each message with User: or Assistant:, or a heading such as ## User, or export the chat as JSON."
# A Markdown link also begins with a bracket, and a CSV file may begin with a quotation mark.
_JSON_START = re.compile(
    rb"""\{|\[\s*[\[{"\]]|"[^"\n]*"\s*$|(null|true|false|-?[0-9.]+)\s*$""", re.MULTILINE
)
# Encodings by the byte order mark, or by the zeros in the first characters.
_WIDE = re.compile(
    rb"(?P<utf_32>\xff\xfe\0\0|\0\0\xfe\xff)|(?P<utf_16>\xff\xfe|\xfe\xff)"
    rb"|(?P<utf_32_le>(?:[^\0]\0{3}){2})|(?P<utf_32_be>(?:\0{3}[^\0]){2})"
    rb"|(?P<utf_16_le>[^\0]\0.\0)|(?P<utf_16_be>\0[^\0]\0.)",
    re.DOTALL,
)
#: Zip's number for the compression method Zstandard.
_ZSTANDARD = 93
#: Compression methods in zip files that may need gigabytes of memory for one block or dictionary.
_UNBOUNDED = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "LZMA"}
_PEEK = 4096
_BLOCK = 1 << 16
_DEEPEST = 3


@dataclass(frozen=True)
class Opener:
    """A reader of files and archives.

    Nested archives share one limit on their unpacked size.
    """

    columns: Columns = None
    progress: Progress | None = None
    outflow: Outflow | None = None
    depth: int = 0

    def parts(self, stream: BinaryIO, name: str) -> Iterator[Part]:
        """Yield the name and the values of each file in a stream.

        Each value comes with its line number.
        """
        if isinstance(stream, io.BufferedReader):
            head = stream.peek(_PEEK)[:_PEEK]
        else:
            here = stream.tell()
            head = stream.read(_PEEK)
            stream.seek(here)
        unpack = next((unpack for magic, unpack in _PACKED.items() if head.startswith(magic)), None)
        if unpack is not None or head.startswith(b"PK\x03\x04"):
            yield from self._unpacked(stream, name, unpack)
        elif kind := kind_of_table(head):
            content = _content(stream, name)
            outflow = self.outflow or Outflow(name, len(content))
            yield name, TableReader(name, self.columns).binary(content, kind, outflow)
        elif (wide := _WIDE.match(head)) and wide.lastgroup:
            text = _content(stream, name).decode(wide.lastgroup, "replace")
            utf8 = io.BytesIO(text.encode("utf-8", "replace"))
            yield from replace(self, progress=None).parts(utf8, name)
        elif foreign := foreign_kind(head):
            raise ValueError(f"{name} is {foreign}")
        else:
            yield name, self._text(stream, head, name)

    def _unpacked(
        self, stream: BinaryIO, name: str, unpack: Callable[[BinaryIO, str], Any] | None
    ) -> Iterator[Part]:
        """Yield the files in a compressed stream or zip file.

        `unpack` decompresses the stream. If it is None, the stream is a zip file.
        """
        if self.depth == _DEEPEST:
            raise ValueError(
                f"{name} contains archives nested more than {_DEEPEST} deep. Unpack it first."
            )
        if not stream.seekable():
            stream = io.BytesIO(_content(stream, name))
        start = stream.tell()
        size = stream.seek(0, io.SEEK_END)
        stream.seek(start)
        outflow = self.outflow or Outflow(name, size)
        inner = replace(self, progress=None, outflow=outflow, depth=self.depth + 1)
        if unpack is None:
            yield from inner.members(stream, name)
            return
        with _explained(name):
            stream_size(unpack(stream, name), outflow)
        stream.seek(start)
        yield from inner.parts(buffered(unpack(stream, name)), name.removesuffix(".gz"))

    def members(self, stream: BinaryIO, name: str) -> Iterator[Part]:
        """Yield those files in a zip file that may contain conversations.

        From a chat export, only the conversation files are read. An Excel workbook, which is a zip file too, is read as
        one table.
        """
        assert self.outflow is not None
        try:
            archive = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise ValueError(
                f"{name} is not a readable zip file ({error}). Zip it again."
            ) from None
        members = [m for m in archive.infolist() if m.filename and not m.is_dir()]
        if len(members) > MOST_MEMBERS:
            raise self.outflow.exceeded(f"{MOST_MEMBERS:,} files")
        for member in members:
            if packing := _UNBOUNDED.get(member.compress_type):
                raise ValueError(
                    f"{name} is compressed with {packing}, which is not supported. Compress it with deflate."
                )
        members = [
            m for m in members if not m.filename.removeprefix("./").startswith(("__MACOSX", "."))
        ]
        names = {member.filename for member in members}
        if "xl/workbook.xml" in names:
            stream.seek(0)
            table = TableReader(name, self.columns)
            yield name, table.binary(_content(stream, name), "excel", self.outflow)
            return
        if foreign := foreign_kind(members=names):
            raise ValueError(f"{name} is {foreign}")

        # The conversation files of an export have known names; its other files are settings and pictures.
        is_inspect = "header.json" in names
        chosen = [
            member
            for member in members
            if PurePosixPath(member.filename).name.startswith("conversations")
            or (is_inspect and member.filename.startswith("samples/"))
        ]
        chosen = chosen or [m for m in members if PurePosixPath(m.filename).suffix in MEMBERS]
        if names and not chosen:
            raise ValueError(
                f"{name} has no conversation file among {quoted(names, 3)}. Unpack it, and pass its files."
            )
        try:
            for member in chosen:
                with _explained(name):
                    stream_size(_open_member(archive, member, name), self.outflow)
            for member in chosen:
                unpacked = buffered(_open_member(archive, member, name))
                yield from self.parts(unpacked, f"{name}/{member.filename}")
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise ValueError(
                f"Cannot unpack {name}/{member.filename} ({error}). Compress it again."
            ) from None

    def _text(self, stream: BinaryIO, head: bytes, name: str) -> Iterator[Numbered]:
        """Read text as JSON, a table, YAML or a transcript."""
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        suffix = PurePosixPath(name).suffix.lower()
        if not start or suffix in _JSON_NAMES or _JSON_START.match(start):
            return JsonFile(name).values(stream, self.progress)

        content = _content(stream, name)
        note = ""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            try:
                text = content.decode("cp1252")
            except UnicodeDecodeError:
                byte = f"byte 0x{content[error.start]:02x}"
                raise ValueError(
                    f"{name}, line {line}: {byte} is neither UTF-8 nor Windows-1252. Save the file as UTF-8."
                ) from None
            note = f"Not UTF-8; read as Windows-1252, first on line {line:,}. If letters look wrong, save it as UTF-8."
        numbered = TableReader(name, self.columns).text(text) or read_transcript(text)
        if numbered is None:
            kind = "Markdown" if suffix in _MARKDOWN else "text"
            raise ValueError(f"{name} is {kind} without speakers. {_SPEAKERS}")
        if note:
            for _, value in numbered:
                if isinstance(value, dict) and "messages" in value:
                    value["warnings"] = [*value.get("warnings", ()), note]
        return iter(numbered)


def _content(stream: BinaryIO, name: str) -> bytes:
    """Read a stream to its end, in blocks to save memory.

    Raise `ValueError` if the stream is too large.
    """
    content = bytearray()
    while block := stream.read(_BLOCK):
        content += block
        if len(content) > LONGEST_LINE:
            raise ValueError(
                f"{name} is larger than {LONGEST_LINE >> 20} MiB. Pass only part of it."
            )
    return bytes(content)


def foreign_kind(head: bytes = b"", members: Collection[str] = ()) -> str:
    """Return the kind of an unsupported file, with advice.

    Return "" for any other file. Files are recognised by their first bytes, archives by their members.

    Examples
    --------
    >>> foreign_kind(b"%PDF-1.7"), foreign_kind(members={"word/document.xml"})
    ('a PDF. Export the chat as JSON, Markdown or text.', 'a Word document. Save it as plain text.')
    >>> foreign_kind(b"User: Hello")
    ''
    """
    # in the table, each byte is one character
    start = head[:512].decode("latin-1")
    for kind in read_toml("formats.toml")["kind"]:
        here = start[kind.get("at", 0) :]
        if kind.get("is_text"):
            here = here.lstrip("\xef\xbb\xbf \t\r\n").lower()
        if here.startswith(tuple(kind.get("starts", ()))) or {*kind.get("members", ())} & {
            *members
        }:
            return f"{kind['label']}. {kind['instead']}"
    # A file system may fill the end of a file with zeros after a crash; lines of JSON before it are read.
    if b"\x00" in head and head[:1] not in b"{[":
        return "a binary file of an unknown kind. Export the chat as JSON, Markdown or text."
    return ""


def _open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Any:
    """Open a zip member, even one that Inspect compressed with Zstandard."""
    if member.compress_type != _ZSTANDARD:
        return archive.open(member)
    # Python supports Zstandard only from 3.14 on, so open the member as if uncompressed, and unpack it here.
    plain: Any = copy(member)
    plain.compress_type, plain.file_size, plain.CRC = zipfile.ZIP_STORED, plain.compress_size, None
    return _zstandard(archive.open(plain), name)


def _zstandard(stream: IO[bytes], name: str) -> Any:
    with extra("lab", name):
        import zstandard
    return zstandard.ZstdDecompressor().stream_reader(
        stream, read_across_frames=True, closefd=False
    )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Replace an unpacking error with an error that names the file."""
    try:
        yield
    except (
        *(OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile),
        getattr(sys.modules.get("zstandard"), "ZstdError", zlib.error),
    ) as error:
        raise ValueError(f"Cannot unpack {name} ({error}). Compress it again.") from None


_PACKED: dict[bytes, Callable[[BinaryIO, str], Any]] = {
    b"\x1f\x8b": lambda stream, _: gzip.GzipFile(fileobj=stream),
    b"BZh": lambda stream, _: bz2.BZ2File(stream),
    b"\xfd7zXZ\x00": lambda stream, _: XzStream(stream),
    b"\x28\xb5\x2f\xfd": _zstandard,
}
