"""Texts from files and folders, and the problems of unreadable files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pandas as pd

from budgetkit.budget import brief, one_line, quoted
from budgetkit.files import Table, read_toml
from budgetkit.message import replace_surrogates
from budgetkit.trace.tables import text_table


@dataclass(frozen=True)
class Document:
    """A text with its labels.

    Parameters
    ----------
    text : str
        The document's text.
    kind : str
        Class of the text: "prose", "cjk prose", "cjk mixed", "code", "data", "markup", "log", "odd", ...
    language : str
        Natural or programming language, format or recipe: "de", "python", "json", "base64".
    source : str
        Source of the text, such as a package and its version.
    name : str
        Name of the document within the source.

    Examples
    --------
    >>> Document("Guten Tag", "prose", "de", "mine").language
    'de'
    """

    text: str
    kind: str
    language: str
    source: str
    name: str = ""

    def __post_init__(self) -> None:
        # With pyarrow, frames store texts as UTF-8, which cannot encode half a surrogate pair.
        for name in ("kind", "language", "source", "name"):
            object.__setattr__(self, name, replace_surrogates(getattr(self, name)))


@dataclass(frozen=True)
class Problem:
    """A file or row that was not read.

    Parameters
    ----------
    name : str
        Name of the file or row.
    reason : str
        Reason why the file or row was omitted.

    Examples
    --------
    >>> Problem("logo.png", "binary").reason
    'binary'
    """

    name: str
    reason: str


@dataclass(frozen=True)
class Corpus:
    """Documents, and the problems of omitted files and rows.

    Parameters
    ----------
    documents : tuple of Document
        The texts with their labels.
    problems : tuple of Problem
        Files and rows that were omitted.

    Examples
    --------
    >>> corpus = Corpus((Document("Guten Tag", "prose", "de", "mine"),))
    >>> len(corpus), corpus.characters, (corpus + corpus).characters
    (1, 9, 18)
    """

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...] = ()

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __add__(self, other: Corpus) -> Corpus:
        return Corpus(self.documents + other.documents, self.problems + other.problems)

    @property
    def texts(self) -> list[str]:
        """The texts of the documents, in order."""
        return [document.text for document in self.documents]

    @property
    def characters(self) -> int:
        """Total length of the texts, in characters."""
        return sum(len(document.text) for document in self.documents)

    def where(self, keep: Callable[[Document], bool]) -> Corpus:
        """Select the documents to keep.

        Parameters
        ----------
        keep : callable
            Function that returns True for documents to keep.

        Returns
        -------
        Corpus
            A corpus of the selected documents, with the same problems.
        """
        return Corpus(tuple(filter(keep, self.documents)), self.problems)

    def pieces(
        self, shortest: int = 500, longest: int = 2_000, most: int = 20, seed: int = 0
    ) -> Corpus:
        """Cut documents into pieces of random lengths, like messages and passages.

        Parameters
        ----------
        shortest, longest : int
            Limits of a piece's length, in characters. Pieces shorter than `shortest` are dropped.
        most : int
            Maximum number of pieces per document. The pieces are spread over the document.
        seed : int
            Seed for drawing the lengths.

        Returns
        -------
        Corpus
            A corpus of pieces with the class, language and source of their documents.

        Examples
        --------
        >>> corpus = Corpus((Document("ab " * 1_000, "prose", "none", "mine", "all"),))
        >>> [(len(piece.text), piece.name) for piece in corpus.pieces(500, 500, most=2)]
        [(500, 'all [1]'), (500, 'all [2]')]
        """
        pieces = []
        for document in self:
            random = Random(f"{seed} {document.source} {document.name} {len(document.text)}")
            lengths: list[int] = []
            left = len(document.text)
            while left >= shortest and len(lengths) < most:
                lengths.append(min(random.randint(shortest, longest), left))
                left -= lengths[-1]
            gap = left // max(len(lengths), 1)
            start = 0
            for number, length in enumerate(lengths, 1):
                text = document.text[start : start + length]
                pieces.append(replace(document, text=text, name=f"{document.name} [{number}]"))
                start += length + gap
        return Corpus(tuple(pieces), self.problems)

    def frame(self) -> pd.DataFrame:
        """Return a frame with the labels and the length of each document."""
        rows = [(d.kind, d.language, d.source, d.name, len(d.text)) for d in self]
        return pd.DataFrame(rows, columns=["class", "language", "source", "document", "characters"])


#: Maximum size of a file to read, in bytes; larger files are reported.
MOST_BYTES = 5_000_000

#: Class and language of a file by its suffix; any other is ("text", its suffix).
LANGUAGES: Mapping[str, tuple[str, str]] = Table(
    lambda: {
        f".{suffix}": (kind, language)
        for kind, table in read_toml("kinds.toml")["suffixes"].items()
        for language, suffixes in table.items()
        for suffix in suffixes.split()
    }
)

#: Classes of files whose text may be Chinese, Japanese or Korean.
_OF_TEXT = ("prose", "markup", "log", "text")
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7af]")


def is_cjk(text: str) -> bool:
    """Return True if at least a fifth of a text is CJK.

    White space is not counted.

    >>> is_cjk("您的包裹已于星期一离开仓库。"), is_cjk("The parcel left on Monday.")
    (True, False)
    """
    if text.isascii():
        return False
    return 5 * len(_CJK.findall(text)) >= len("".join(text.split()))


def is_json(text: str) -> bool:
    r"""Return True if a text is JSON or consists of JSON lines.

    >>> is_json('{"a": 1}\n{"a": 2}\n'), is_json("[1] See the notes.")
    (True, False)
    """
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return all(isinstance(row, dict | list) for row in rows_in(text, ".jsonl"))
    return True


def folder(
    path: str | Path,
    pattern: str = "**/*",
    kind: str = "",
    language: str = "",
    most: int = MOST_BYTES,
) -> Corpus:
    r"""Read each file of a folder as a document.

    Empty files, hidden files, and files in hidden folders or in ``__pycache__`` are left out.

    Parameters
    ----------
    path : str or Path
        The folder to read, or a single file.
    pattern : str
        Glob pattern of the files.
    kind, language : str
        Class and language of all files; default: derived from each file's suffix, or from the text if it is JSON or
        CJK.
    most : int
        Maximum size of a file, in bytes. A larger file is listed as a problem.

    Returns
    -------
    Corpus
        A corpus in the order of the paths. Unreadable, binary, badly encoded and oversized files are listed as
        problems.

    Raises
    ------
    FileNotFoundError
        If the folder or file does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as mine:
    ...     _ = (Path(mine) / "notes.md").write_text("# Notes"), (Path(mine) / "logo.png").write_bytes(b"\0")
    ...     corpus = folder(mine)
    >>> corpus.documents[0].language, corpus.problems[0].reason
    ('markdown', 'binary')
    """
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(f"File not found: {one_line(str(path))}. Check the path.")
    if root.is_file():
        return files(
            [root], root.parent.name or str(root.parent), root.parent, kind, language, most
        )

    def is_read(file: Path) -> bool:
        parts = file.relative_to(root).parts
        hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
        return file.is_file() and not hidden

    paths = sorted(filter(is_read, root.glob(pattern)))
    return files(paths, root.name, root, kind, language, most)


def files(
    paths: Iterable[Path],
    source: str,
    root: Path,
    kind: str = "",
    language: str = "",
    most: int = MOST_BYTES,
) -> Corpus:
    """Read each file as a document.

    Empty files are left out.
    """
    read: list[Document | Problem] = []
    for path in paths:
        text = file_text(path, most)
        if isinstance(text, Problem):
            read.append(text)
            continue
        if not text:
            continue
        about = LANGUAGES.get(path.suffix.lower(), ("text", path.suffix.lstrip(".") or "none"))
        if about[0] in _OF_TEXT and is_json(text):
            about = LANGUAGES[".json"]
        elif about[0] in _OF_TEXT and is_cjk(text):
            about = ("cjk", "ko" if _HANGUL.search(text) else "zh hans")
            if _KANA.search(text):
                about = ("cjk", "ja")
        name = path.relative_to(root).as_posix()
        read.append(Document(text, kind or about[0], language or about[1], source, name))
    return _sorted_out(read)


def rows(
    path: str | Path,
    column: str = "text",
    kind: str = "text",
    language: str = "",
    most: int = 10**9,
) -> Corpus:
    r"""Read one document from each row of a JSONL or CSV file.

    Parameters
    ----------
    path : str or Path
        Path of a file that ends in ``.jsonl``, ``.csv`` or ``.tsv``.
    column : str
        Name of the key or column that contains the text.
    kind, language : str
        Class and language of the texts. If `language` is empty, a column "lang" or "language" gives the language of
        each text.
    most : int
        Maximum size of a file, in bytes. A larger file is listed as a problem.

    Returns
    -------
    Corpus
        A corpus. Rows without text in that column, lines that are not JSON, and an unreadable file are listed as
        problems.

    Raises
    ------
    ValueError
        If the file has a suffix other than ``.jsonl``, ``.csv`` or ``.tsv``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as mine:
    ...     _ = (Path(mine) / "talk.jsonl").write_text('{"text": "Hello"}\n{"other": 1}\n')
    ...     corpus = rows(Path(mine) / "talk.jsonl")
    >>> corpus.texts, corpus.problems[0].reason
    (['Hello'], "no text in 'text'; it has 'other'")
    """
    path = Path(path)
    if path.suffix not in (".jsonl", ".csv", ".tsv"):
        raise ValueError(
            f"Cannot read rows from {one_line(path.name)}. Pass a .jsonl, .csv or .tsv file, or use folder()."
        )
    text = file_text(path, most)
    if isinstance(text, Problem):
        return Corpus((), (text,))
    read: list[Document | Problem] = []
    for number, row in enumerate(rows_in(text, path.suffix), 1):
        name = f"{path.name}:{number}"
        if not isinstance(row, dict):
            read.append(Problem(name, "not JSON"))
        elif not isinstance(row.get(column), str):
            read.append(Problem(name, f"no text in {brief(column)}; it has {quoted(row)}"))
        else:
            spoken = language or row.get("lang") or row.get("language") or "text"
            read.append(Document(row[column], kind, spoken, path.stem, name))
    return _sorted_out(read)


def file_text(path: Path, most: int = MOST_BYTES) -> str | Problem:
    """Read one file as text, or return its problem."""
    try:
        size = path.stat().st_size
        if size > most:
            return Problem(str(path), f"{size:,} bytes, more than {most:,}")
        data = path.read_bytes()
    except OSError as error:
        return Problem(str(path), error.strerror or type(error).__name__)
    try:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16")
        if b"\0" in data[:8_192]:
            return Problem(str(path), "binary")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Problem(str(path), f"not UTF-8: byte {error.start:,} is {data[error.start]:#04x}")


def rows_in(text: str, suffix: str) -> Iterator[object]:
    """Yield the rows of a table, with None for invalid JSON."""
    if suffix != ".jsonl":
        yield from text_table(text, "\t" if suffix == ".tsv" else ",")
        return
    for line in text.splitlines():
        try:
            yield json.loads(line)
        # invalid JSON, a number with thousands of digits, or lists nested too deeply
        except (ValueError, RecursionError):
            yield None


def _sorted_out(read: list[Document | Problem]) -> Corpus:
    return Corpus(
        tuple(entry for entry in read if isinstance(entry, Document)),
        tuple(entry for entry in read if isinstance(entry, Problem)),
    )
