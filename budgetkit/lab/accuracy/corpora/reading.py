"""Texts from files and folders: what can be read becomes a document, what cannot is reported."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.lab.accuracy.corpora.document import Corpus, Document, Problem
from budgetkit.trace.tables import text_table

#: Longest file that is read; a longer one is reported.
MOST_BYTES: Final = 5_000_000

_CODE = {
    "python": "py pyi pyx", "javascript": "js mjs cjs jsx", "typescript": "ts tsx", "c": "c h", "rust": "rs",
    "cpp": "cc cpp cxx hh hpp hxx", "java": "java", "go": "go", "ruby": "rb", "php": "php", "perl": "pl pm",
    "shell": "sh bash zsh fish", "sql": "sql", "kotlin": "kt", "swift": "swift", "csharp": "cs", "scala": "scala",
    "haskell": "hs", "lua": "lua", "r": "r", "julia": "jl", "css": "css scss", "fortran": "f f90", "tcl": "tcl",
    "powershell": "ps1", "cmake": "cmake", "vim": "vim",
}  # fmt: skip
_DATA = {
    "json": "json", "yaml": "yaml yml", "toml": "toml", "csv": "csv tsv", "xml": "xml", "ini": "ini cfg",
    "svg": "svg", "ipynb": "ipynb", "po": "po",
}  # fmt: skip
_MARKUP = {"markdown": "md", "html": "html htm", "latex": "tex", "rst": "rst", "roff": "1 3 8"}

#: Class and language of a file by its suffix; any other is ("text", its suffix).
LANGUAGES: Final[dict[str, tuple[str, str]]] = {
    f".{suffix}": (kind, language)
    for kind, table in {"code": _CODE, "data": _DATA, "markup": _MARKUP}.items()
    for language, suffixes in table.items()
    for suffix in suffixes.split()
} | {
    ".log": ("log", "log"),
    ".txt": ("prose", "text"),
    ".map": ("odd", "source-map"),
    ".pem": ("odd", "base64"),
}


def folder(
    path: str | Path,
    pattern: str = "**/*",
    kind: str = "",
    language: str = "",
    most: int = MOST_BYTES,
) -> Corpus:
    r"""Read the files of a folder, each a document.

    A folder with a ``MANIFEST.csv`` (columns path, class, language, source) is read as that says.

    Parameters
    ----------
    path : str or Path
        The folder, or one file.
    pattern : str
        Which of its files, as a glob.
    kind, language : str
        What they all are; by default each file's suffix says it.
    most : int
        Longest file that is read, in bytes.

    Returns
    -------
    Corpus
        In the order of the names; binaries, bad encodings and huge files are its problems.

    Raises
    ------
    FileNotFoundError
        If there is no such folder or file.

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
        raise FileNotFoundError(
            f"asked to read {brief(str(path))}; nothing is there; give a folder, a file or a glob in it"
        )
    if root.is_file():
        return files(
            [root], root.parent.name or str(root.parent), root.parent, kind, language, most
        )
    if pattern == "**/*" and _is_listed(root / "MANIFEST.csv"):
        return _listed(root, most)
    paths = sorted(
        file
        for file in root.glob(pattern)
        if file.is_file() and not _hidden(file.relative_to(root))
    )
    return files(paths, root.name, root, kind, language, most)


def files(
    paths: Iterable[Path],
    source: str,
    root: Path,
    kind: str = "",
    language: str = "",
    most: int = MOST_BYTES,
) -> Corpus:
    """Read files, each a document."""
    read: list[Document | Problem] = []
    for path in paths:
        by_suffix = LANGUAGES.get(path.suffix.lower(), ("text", path.suffix.lstrip(".") or "none"))
        name = path.relative_to(root).as_posix()
        text_file = _document(
            path, most, kind or by_suffix[0], language or by_suffix[1], source, name
        )
        if isinstance(text_file, Problem) or text_file.text:
            read.append(text_file)
    return _sorted_out(read)


def rows(
    path: str | Path,
    column: str = "text",
    kind: str = "text",
    language: str = "",
    most: int = 10**9,
) -> Corpus:
    r"""Read one column of a JSONL or CSV file, each row a document.

    Parameters
    ----------
    path : str or Path
        A file that ends in ``.jsonl``, ``.csv`` or ``.tsv``.
    column : str
        The key or the column that holds the text.
    kind, language : str
        What the texts are; a column "lang" or "language" says it for each, where there is one.
    most : int
        Longest file that is read, in bytes.

    Returns
    -------
    Corpus
        Rows without that column, and lines that are no JSON, are its problems.

    Raises
    ------
    ValueError
        If the file ends otherwise.

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
            f"asked for rows of {one_line(path.name)}; rows are read from .jsonl, .csv and .tsv; "
            "use folder() for others"
        )
    text = text_of(path, most)
    if isinstance(text, Problem):
        return Corpus((), (text,))
    return _sorted_out(
        _row(row, f"{path.name}:{number}", column, kind, language, path.stem)
        for number, row in enumerate(rows_in(text, path.suffix), 1)
    )


def text_of(path: Path, most: int = MOST_BYTES) -> str | Problem:
    """Read one file as text, or say why not."""
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


def _document(path: Path, most: int, *about: str) -> Document | Problem:
    """Read one file as a document of a class, a language, a source and a name."""
    text = text_of(path, most)
    if isinstance(text, Problem):
        return text
    return Document(text, *about)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _is_listed(manifest: Path) -> bool:
    """Say whether a manifest lists texts: others, such as of conversations, have other columns."""
    if not manifest.is_file():
        return False
    with manifest.open(encoding="utf-8", errors="replace", newline="") as lines:
        return {"path", "class", "language", "source"} <= set(next(csv.reader(lines), []))


def _listed(root: Path, most: int) -> Corpus:
    """Read a folder by its manifest; a file of JSON lines gives a document a line."""
    read: list[Document | Problem] = []
    with (root / "MANIFEST.csv").open(encoding="utf-8", newline="") as manifest:
        for row in csv.DictReader(manifest):
            path = root / row["path"]
            source = f"{row['source']} {row.get('version', '')}".strip()
            if not path.resolve().is_relative_to(root.resolve()):
                read.append(Problem(row["path"], "outside the folder"))
            elif path.suffix == ".jsonl":
                inside = rows(path, kind=row["class"], language=row["language"])
                read += [
                    *inside.problems,
                    *(Document(d.text, d.kind, row["language"], source, d.name) for d in inside),
                ]
            else:
                read.append(
                    _document(path, most, row["class"], row["language"], source, row["path"])
                )
    return _sorted_out(read)


def rows_in(text: str, suffix: str) -> Iterator[object]:
    """Give the rows of a table; None for a line that is no JSON."""
    if suffix != ".jsonl":
        yield from text_table(text, "\t" if suffix == ".tsv" else ",")
        return
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except (
            ValueError,
            RecursionError,
        ):  # no JSON, a number of thousands of digits, lists in lists without end
            yield None


def _row(
    row: object, name: str, column: str, kind: str, language: str, source: str
) -> Document | Problem:
    if not isinstance(row, dict):
        return Problem(name, "not JSON")
    if not isinstance(row.get(column), str):
        return Problem(name, f"no text in {brief(column)}; it has {quoted(row)}")
    return Document(
        row[column],
        kind,
        language or row.get("lang") or row.get("language") or "text",
        source,
        name,
    )


def _sorted_out(read: Iterable[Document | Problem]) -> Corpus:
    everything = list(read)
    return Corpus(
        tuple(entry for entry in everything if isinstance(entry, Document)),
        tuple(entry for entry in everything if isinstance(entry, Problem)),
    )
