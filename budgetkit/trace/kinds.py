"""Kinds: what a file is that holds no conversation, so that an error can call it by its name.

The kinds stand in data/formats.toml: by the bytes that a file begins with, or by what lies inside an archive.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, Final

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
    if PurePosixPath(name).suffix.lower() in _MARKDOWN:
        kind = "Markdown"
    else:
        kind = "text"
    return f"{kind} without speakers; {_SPEAKERS}"


def _sentence(kind: dict[str, Any]) -> str:
    return f"{kind['label']}; {kind['instead']}"
