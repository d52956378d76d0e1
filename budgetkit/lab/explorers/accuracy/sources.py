"""Sources: texts by the path of a folder, a file or a glob, and the texts that are there without any."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Final

from budgetkit.budget.quoting import one_line
from budgetkit.lab.accuracy.corpora import Corpus, Document, folder, odd, rows, shipped, standard_library
from budgetkit.lab.accuracy.corpora.reading import rows_in
from budgetkit.lab.explorers.accuracy.settings import BOTH, LIBRARY, ODD, SHIPPED
from budgetkit.trace import load_traces

#: Texts that every installation has.
KNOWN: Final[dict[str, Callable[[], Corpus]]] = {
    SHIPPED: shipped,
    ODD: lambda: odd(documents=5),
    BOTH: lambda: shipped() + odd(documents=2),
    LIBRARY: standard_library,
}
SESSIONS: Final = (".json", ".ndjson", ".traj")
TABLES: Final = (".jsonl", ".csv", ".tsv")
HEAD: Final = 20  # lines of a table that are read to see what it holds
USUAL: Final = ("text", "content", "message", "body", "prompt", "document")
_GLOB = re.compile(r"[*?\[]")


def read(path: str) -> Corpus:
    r"""Read the texts at a path.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as mine:
    ...     _ = (Path(mine) / "notes.md").write_text("# Notes"), (Path(mine) / "talk.txt").write_text("Hello")
    ...     names = [document.name for document in read(f"{mine}/*.md")]
    >>> names
    ['notes.md']
    """
    place = Path(path).expanduser()
    if _GLOB.search(path) and not place.exists():
        corpus = _glob(place)
    elif place.suffix.lower() in TABLES and place.is_file():
        corpus = _checked(place)
    elif place.suffix.lower() in SESSIONS and place.is_file():
        corpus = _session(place)
    else:
        corpus = folder(place)
    with_text = corpus.where(lambda document: bool(document.text))
    if not with_text.documents:
        raise ValueError(
            f"{one_line(path)} was to be read; {_nothing(corpus)}; give a folder, a text file, a table or a glob"
        )
    return with_text


def _nothing(corpus: Corpus) -> str:
    if not corpus.problems:
        return "no text is there"
    first, many = corpus.problems[0], len(corpus.problems)
    name = one_line(Path(first.name).name)
    return f"none of its {many:,} files or rows is text, the first: {name}, {one_line(first.reason)}"


def _glob(place: Path) -> Corpus:
    """Split a path where its first wildcard is."""
    fixed = 0
    while not _GLOB.search(place.parts[fixed]):
        fixed += 1
    return folder(Path(*place.parts[:fixed]), str(Path(*place.parts[fixed:])))


def _checked(path: Path) -> Corpus:
    try:
        return _table(path)
    except csv.Error as problem:
        raise ValueError(
            f"{one_line(str(path))} was to be read; a table has {one_line(str(problem))}; save it as JSONL, "
            "one object a line"
        ) from None


def _table(path: Path) -> Corpus:
    # Lines that are no rows are left to the reader of the table.
    first = [row for row in rows_in(_beginning(path), path.suffix.lower()) if isinstance(row, dict)]
    if any("messages" in row for row in first):
        return _conversations(path)
    return rows(path, _column(first))


def _beginning(path: Path) -> str:
    """Return the first lines of a table as text; errors in them are left to the reader of the table."""
    try:
        with path.open("rb") as file:
            encoding = "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with path.open(encoding=encoding, errors="replace") as lines:
            return "".join(islice(filter(str.strip, lines), HEAD))
    except OSError:
        return ""


def _column(first: list[dict[str, object]]) -> str:
    lengths: dict[str, int] = {}
    for row in first:
        for name, value in row.items():
            if isinstance(value, str):
                lengths[name] = lengths.get(name, 0) + len(value)
    usual = [name for name in USUAL if name in lengths]
    return usual[0] if usual else max(lengths, key=lengths.__getitem__, default="text")


def _session(path: Path) -> Corpus:
    """Read a conversation message by message; a file that is none is a text like any other."""
    try:
        return _conversations(path)
    except ValueError:
        return folder(path)


def _conversations(path: Path) -> Corpus:
    traces = load_traces(str(path))
    results = [
        Document(message.text, message.role, "conversation", path.name, f"{trace.id}, message {number}")
        for trace in traces
        for number, message in enumerate(trace.messages, 1)
    ]
    return Corpus(tuple(results))
