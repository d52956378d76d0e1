"""Conversion of texts in any form to a corpus."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from budgetkit.budget import brief, one_line, quoted
from budgetkit.inputs.conversations import piece_of
from budgetkit.lab.accuracy.corpora.reading import (
    Corpus,
    Document,
    file_text,
    folder,
    is_json,
    rows,
    rows_in,
)
from budgetkit.lab.accuracy.corpora.shipped import odd, shipped
from budgetkit.trace import load_traces

#: A corpus, a path (a string names known texts or a path), a frame with a text column, or texts.
AnyTexts = Corpus | str | Path | pd.DataFrame | Iterable[Any]

SHIPPED = "mini-corpus"
ODD = "odd text"
BOTH = "mini-corpus and odd text"

#: Texts included in every installation.
KNOWN: dict[str, Callable[[], Corpus]] = {
    SHIPPED: shipped,
    ODD: lambda: odd(documents=5),
    BOTH: lambda: shipped() + odd(documents=2),
}
SESSIONS = (".json", ".ndjson", ".traj")
TABLES = (".jsonl", ".csv", ".tsv")
HEAD = 20  # lines of a table read to find its columns
USUAL = ("text", "content", "message", "body", "prompt", "document")
_GLOB = re.compile(r"[*?\[]")
OWN_TEXTS = "my texts"
_FORMS = (
    "a Corpus, a list of texts, a frame with a column of texts, a Path, or the name "
    "of shipped texts"
)


def corpus_of(texts: AnyTexts) -> Corpus:
    """Convert texts in any form to a corpus.

    Parameters
    ----------
    texts : Corpus, str, Path, DataFrame or iterable
        A corpus, the name of shipped texts, the path of a folder or file, a glob, a frame, or several texts, documents,
        messages or passages. The texts of a frame are in its column "text" ("content", "message", ..., or else the
        column with the most text); the columns "class", "language", "source" and "document" are optional.

    Returns
    -------
    Corpus
        A corpus with one document for each text. An unknown class or language becomes "text". A document without a
        known source counts as a separate source.

    Raises
    ------
    TypeError, ValueError, LookupError, OSError
        If the value has no supported form or cannot be read.

    Examples
    --------
    >>> corpus = corpus_of(["Hello world", "Guten Tag"])
    >>> corpus.texts, corpus.documents[1].name
    (['Hello world', 'Guten Tag'], 'my texts 2')
    >>> corpus_of(pd.DataFrame({"text": ["Guten Tag"], "language": ["de"]})).documents[0].language
    'de'
    """
    if isinstance(texts, Corpus):
        return texts
    if isinstance(texts, str) and texts in KNOWN:
        return KNOWN[texts]()
    if isinstance(texts, str | Path):
        return read_texts(str(texts))
    if isinstance(texts, pd.DataFrame):
        return _of_frame(texts)
    if isinstance(texts, bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"Invalid texts of type {type(texts).__name__}. Pass {_FORMS}.")
    return Corpus(tuple(document_of(text, number) for number, text in enumerate(texts, 1)))


def document_of(text: Any, number: int) -> Document:
    """Convert a text, a message or a passage to a numbered document.

    A document is returned unchanged.
    """
    if isinstance(text, Document):
        return text
    if not isinstance(text, str):
        text = piece_of(text, "context", f"text {number:,}").message.text
    return Document(text, "text", "text", "", f"{OWN_TEXTS} {number:,}")


def _of_frame(frame: pd.DataFrame) -> Corpus:
    """Convert each row of a frame to a document."""
    is_text = frame.map(lambda value: isinstance(value, str))
    if not is_text.to_numpy().any():
        raise ValueError(
            f"No text column among [{quoted(map(str, frame.columns))}]. Pass a table with at least one."
        )
    records: list[Any] = frame.rename(columns=str).to_dict("records")
    column = _column(records)
    documents = []
    for number, row in enumerate(records, 1):
        if not isinstance(row[column], str):
            raise ValueError(
                f"Invalid text in row {number:,}, column {brief(column)}: {brief(row[column])}. Pass strings only."
            )
        labels = {"class": "text", "language": "text", "source": ""}
        labels["document"] = f"{OWN_TEXTS} {number:,}"
        labels |= {name: row[name] for name in labels if isinstance(row.get(name), str)}
        documents.append(Document(row[column], *labels.values()))
    return Corpus(tuple(documents))


def read_texts(path: str) -> Corpus:
    r"""Read texts from a file, a folder or a glob.

    Each row of a table file and each message of a conversation file becomes a document. Any other file is one document.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as mine:
    ...     _ = (Path(mine) / "notes.md").write_text("# Notes"), (Path(mine) / "talk.txt").write_text("Hello")
    ...     names = [document.name for document in read_texts(f"{mine}/*.md")]
    >>> names
    ['notes.md']
    """
    place = Path(path).expanduser()
    if _GLOB.search(path) and not place.exists():
        # Split where the first wildcard is.
        fixed = next(number for number, part in enumerate(place.parts) if _GLOB.search(part))
        corpus = folder(Path(*place.parts[:fixed]), str(Path(*place.parts[fixed:])))
    elif place.suffix.lower() in TABLES and place.is_file():
        try:
            corpus = _table(place)
        except csv.Error as problem:
            raise ValueError(
                f"Invalid table {one_line(str(place))}: {one_line(str(problem))}. Save it as JSON Lines."
            ) from None
    elif place.is_file() and (place.suffix.lower() in SESSIONS or _is_json(place)):
        try:
            corpus = _conversations(place)
        except ValueError:
            corpus = folder(place)
    else:
        corpus = folder(place)
    with_text = corpus.where(lambda document: bool(document.text))
    if with_text.documents:
        return with_text
    reason = "no file has any text"
    if corpus.problems:
        first = corpus.problems[0]
        named = f"{one_line(Path(first.name).name)}, {one_line(first.reason)}"
        reason = f"nothing could be read (problems: {len(corpus.problems):,}, first: {named})"
    raise ValueError(
        f"No text in {one_line(path)}: {reason}. Pass a folder, a text file, a table or a glob."
    )


def _table(path: Path) -> Corpus:
    # Invalid lines are left to the reader of the whole table.
    first = [row for row in rows_in(_beginning(path), path.suffix.lower()) if isinstance(row, dict)]
    if any("messages" in row for row in first):
        return _conversations(path)
    return rows(path, _column(first))


def _is_json(path: Path) -> bool:
    """Return True if a text file contains JSON.

    Text files have no suffix, or a suffix such as ".txt" or ".md".
    """
    text = file_text(path) if path.suffix.lower() in ("", ".txt", ".text", ".md", ".log") else ""
    return isinstance(text, str) and is_json(text)


def _beginning(path: Path) -> str:
    """Return a table's first 20 non-blank lines, or "" if unreadable."""
    try:
        with path.open("rb") as file:
            encoding = "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with path.open(encoding=encoding, errors="replace") as lines:
            return "".join(islice(filter(str.strip, lines), HEAD))
    except OSError:
        return ""


def _column(first: list[dict[str, object]]) -> str:
    lengths = Counter[str]()
    for row in first:
        lengths.update({name: len(value) for name, value in row.items() if isinstance(value, str)})
    for name in USUAL:
        if name in lengths:
            return name
    return max(lengths, key=lengths.__getitem__, default="text")


def _conversations(path: Path) -> Corpus:
    with path.open("rb") as file:  # without the files of sub-agents next to it
        traces = load_traces(file)
    documents = [
        Document(m.text, m.role, "conversation", path.name, f"{trace.id}, message {number}")
        for trace in traces
        for number, m in enumerate(trace.messages, 1)
    ]
    return Corpus(tuple(documents))
