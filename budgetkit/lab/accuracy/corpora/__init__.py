"""Texts by class and language: shipped, generated, installed and your own.

Every document has a class, a language and a source. Nothing is downloaded; unreadable files are reported and never
fatal.

The mini-corpus was written for this project; it is small and the same on every machine. A file of ``data/corpora/``
holds one class; a line ``=== language title`` begins a document.
"""

from __future__ import annotations

import base64
import csv
import platform
import re
import sysconfig
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from budgetkit.budget import brief, one_line, quoted
from budgetkit.budget.errors import unknown_name
from budgetkit.files import data_files, read_bytes
from budgetkit.inputs.conversations import piece_of
from budgetkit.lab.accuracy.corpora.reading import (
    Corpus,
    Document,
    Problem,
    file_text,
    files,
    folder,
    is_json,
    rows,
    rows_in,
)
from budgetkit.trace import load_traces

__all__ = [
    "RECIPES",
    "Corpus",
    "Document",
    "Problem",
    "corpus_of",
    "folder",
    "generate",
    "odd",
    "rows",
    "shipped",
    "standard_library",
]
__dir__ = __all__.copy  # completion shows no other names


_EMOJI = (
    *range(0x1F300, 0x1F650),
    *range(0x1F680, 0x1F6C6),
    *range(0x1F900, 0x1F9FF),
    *range(0x2600, 0x2780),
)
_RUNS = (
    " "
    "\n\t-=*_#.~+/\\|<>^:;,!?0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ的一あアㅋ가…—═█яéñ"
)
_SYLLABLES = (
    "ba",
    "do",
    "ke",
    "li",
    "mu",
    "ra",
    "so",
    "ti",
    "ve",
    "zo",
    "an",
    "er",
    "in",
    "on",
)


def generate(recipe: str, seed: int, characters: int = 1_000) -> str:
    """Generate one document.

    Parameters
    ----------
    recipe : str
        One of :data:`RECIPES`.
    seed : int
        Seed; the same recipe, seed and length give the same text.
    characters : int
        Length, in characters.

    Returns
    -------
    str
        A text of exactly this length.

    Raises
    ------
    ValueError
        If the recipe is unknown.

    Examples
    --------
    >>> generate("hex", seed=1, characters=16)
    'e84b355657a25ccd'
    """
    if recipe not in RECIPES:
        raise ValueError(unknown_name("recipe", recipe, RECIPES))
    random = Random(f"{recipe} {seed}")
    text = ""
    for part in RECIPES[recipe](random, characters):
        text += part
        if len(text) >= characters:
            break
    return text[:characters]


def _base64(random: Random, characters: int) -> Iterator[str]:
    data = random.randbytes(characters)
    if random.random() < 0.3:  # as in a binary file: stretches of zeros
        data = b"".join(
            data[i : i + 24] + bytes(random.choice((0, 0, 3, 9))) for i in range(0, len(data), 24)
        )
    yield random.choice((base64.b64encode, base64.encodebytes, base64.urlsafe_b64encode))(
        data
    ).decode()


def _hexadecimal(random: Random, characters: int) -> Iterator[str]:
    digits = random.randbytes(characters).hex()
    width = random.choice((characters, 40, 64, 8, 2))
    between = random.choice(("\n", " ", "  ", "\n"))
    upper = random.random() < 0.25
    lines = between.join(digits[i : i + width] for i in range(0, len(digits), width))
    yield lines.upper() if upper else lines


def _uuid(random: Random, characters: int) -> Iterator[str]:
    between = random.choice(("\n", ", ", '", "', " ", "\t"))
    while True:
        yield str(uuid.UUID(bytes=random.randbytes(16))) + between


def _numbers(random: Random, characters: int) -> Iterator[str]:
    between = random.choice((" ", ", ", "\n", "\t", ",", ";"))
    digits = random.randint(1, 9)
    decimals = random.randint(0, 6)
    while True:
        yield f"{random.uniform(-(10**digits) / 3, 10**digits):.{decimals}f}{between}"


def _digits(random: Random, characters: int) -> Iterator[str]:
    yield "".join(random.choices("0123456789", k=characters))


def _emoji(random: Random, characters: int) -> Iterator[str]:
    few = random.choices(_EMOJI, k=random.choice((3, 20, 200)))
    between = random.choice(("", "", " ", "\n"))
    while True:
        yield chr(random.choice(few)) + random.choice(("", "", "\ufe0f", "\u200d")) + between


def _whitespace(random: Random, characters: int) -> Iterator[str]:
    blanks = random.choice((" \n", " \t", " \n\t", "\n\t", "\r\n ", " \u3000\xa0"))
    longest = random.choice((2, 8, 40))
    while True:
        yield random.choice(blanks) * random.randint(1, longest)


def _run(random: Random, characters: int) -> Iterator[str]:
    yield random.choice(_RUNS) * characters


def _runs(random: Random, characters: int) -> Iterator[str]:
    while True:
        yield random.choice(_RUNS) * random.choice(
            (3, 4, 5, 8, 10, 16, 20, 32, 40, 60, 79, 80, 100, 200)
        )


def _minified(random: Random, characters: int) -> Iterator[str]:
    names = [
        "".join(random.choices("abcdefghijklmnopqrstuvwxyzABCDE$_", k=random.choice((1, 1, 1, 2))))
        for _ in range(60)
    ]
    words = ["".join(random.choices(_SYLLABLES, k=random.randint(2, 4))) for _ in range(40)]
    forms: tuple[str, ...] = (
        "{a}={b}.{w}({c}),",
        "function {a}({b},{c}){{return {b}.{w}&&{c}}}",
        "if(!{a})return;",
        "{a}[{b}]={n};",
    )
    forms += (
        "var {a}={n},{b}=!0;",
        "{a}.{w}=function({b}){{{c}({b},'{w}')}};",
        "for(;{a}<{n};){b}+={c}[{a}++];",
    )
    while True:
        a, b, c = random.choices(names, k=3)
        yield random.choice(forms).format(
            a=a, b=b, c=c, w=random.choice(words), n=random.randint(0, 300)
        )


def _words(random: Random, characters: int) -> Iterator[str]:
    """Yield random words, like those in identifiers and unknown names."""
    while True:
        word = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 10)))
        yield random.choice((word, word.title(), word.upper(), word)) + random.choice(
            (" ", " ", "_", "\n")
        )


Recipe = Callable[[Random, int], Iterator[str]]
#: The recipes, by name.
RECIPES: dict[str, Recipe] = {
    "base64": _base64,
    "hex": _hexadecimal,
    "uuid": _uuid,
    "numbers": _numbers,
    "digits": _digits,
    "emoji": _emoji,
    "whitespace": _whitespace,
    "run": _run,
    "runs": _runs,
    "minified": _minified,
    "words": _words,
}


_ROOM = 300_000  # bytes; what is longer is generated code or data


def standard_library(most: int = 100) -> Corpus:
    """Read modules of Python's standard library, and its documentation as prose.

    Parameters
    ----------
    most : int
        Maximum number of modules, spread over the alphabet.

    Returns
    -------
    Corpus
        Class "code", language "python", and "prose", "en".

    Examples
    --------
    >>> sorted(set(standard_library(most=3).frame()["language"]))
    ['en', 'python']
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    source = f"CPython {platform.python_version()}"
    modules = sorted(root.glob("*.py"))
    # At most so many, evenly over the list.
    step = max(len(modules) / max(most, 1), 1)
    chosen = [modules[int(number * step)] for number in range(min(most, len(modules)))]
    code = files(chosen, source, root, most=_ROOM)
    prose = file_text(root / "pydoc_data" / "topics.py")
    if not isinstance(prose, str):
        return code
    from pydoc_data.topics import topics

    prose_documents = (
        Document(text, "prose", "en", source, f"topic {name}")
        for name, text in sorted(topics.items())
    )
    return code + Corpus(tuple(prose_documents))


SOURCE = "budgetkit mini-corpus"
_HEAD = re.compile(r"^=== (?P<language>\S+) (?P<title>.+)\n", re.MULTILINE)


def shipped() -> Corpus:
    """Read the mini-corpus.

    Returns
    -------
    Corpus
        Natural languages by script, programming languages, markup and data, each document with its class.

    Examples
    --------
    >>> sorted(set(shipped().frame()["class"]))
    ['cjk mixed', 'cjk prose', 'code', 'data', 'markup', 'prose']
    """
    documents = []
    for name in data_files("corpora"):
        kind = name.rpartition("/")[2].removesuffix(".txt").replace("-", " ")
        text = read_bytes(name).decode()
        heads = list(_HEAD.finditer(text))
        ends = [head.start() for head in heads[1:]] + [len(text)]
        for head, end in zip(heads, ends, strict=True):
            body = text[head.end() : end].rstrip("\n")
            documents.append(Document(body, kind, head["language"], SOURCE, head["title"]))
    return Corpus(tuple(documents))


def odd(documents: int = 20, characters: int = 1_000, seed: int = 0) -> Corpus:
    """Generate odd text: base64, identifiers, numbers, emoji, white space, runs.

    Parameters
    ----------
    documents : int
        Number of documents per recipe.
    characters : int
        Length of each, in characters.
    seed : int
        Seed; the estimator was trained on texts with other seeds.

    Returns
    -------
    Corpus
        Class "odd", the recipe as language.

    Examples
    --------
    >>> len(odd(documents=2)) == 2 * len(RECIPES)
    True
    """
    numbers = range(2 * seed * documents + 1, 2 * (seed + 1) * documents + 1, 2)
    generated = []
    for recipe in RECIPES:
        for number in numbers:
            text = generate(recipe, number, characters)
            about = (recipe, "budgetkit generators", f"seed {number}")
            generated.append(Document(text, "odd", *about))
    return Corpus(tuple(generated))


#: A corpus, a path (a string names known texts or a path), a frame with a text column, or texts.
AnyTexts = Corpus | str | Path | pd.DataFrame | Iterable[Any]

SHIPPED = "mini-corpus"
ODD = "odd text"
BOTH = "mini-corpus and odd text"
STANDARD_LIBRARY = "Python's standard library"

#: Texts included in every installation.
KNOWN: dict[str, Callable[[], Corpus]] = {
    SHIPPED: shipped,
    ODD: lambda: odd(documents=5),
    BOTH: lambda: shipped() + odd(documents=2),
    STANDARD_LIBRARY: standard_library,
}
SESSIONS = (".json", ".ndjson", ".traj")
TABLES = (".jsonl", ".csv", ".tsv")
HEAD = 20  # lines of a table that are read to see what it holds
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
        A corpus; the name of shipped texts; the path of a folder, a file or a glob; a frame with a column "text" (or
        "content", "message", ..., else the longest texts) and optional columns "class", "language", "source" and
        "document"; or texts, documents, messages and passages.

    Returns
    -------
    Corpus
        A corpus with one document per text. An unknown class or language is "text"; a document without a known source
        counts as a separate source.

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
    """Return one of several texts as a document."""
    if isinstance(text, Document):
        return text
    if isinstance(text, str):
        plain = text
    else:
        plain = piece_of(text, "context", f"text {number:,}").message.text
    return Document(
        text=plain, kind="text", language="text", source="", name=f"{OWN_TEXTS} {number:,}"
    )


def _of_frame(frame: pd.DataFrame) -> Corpus:
    """Convert each row of a frame to a document."""
    is_text = frame.map(lambda value: isinstance(value, str))
    if not is_text.to_numpy().any():
        raise ValueError(
            f"No text column among {quoted(map(str, frame.columns))}. Pass a table with at least one."
        )
    records: list[dict[str, Any]] = [
        {str(name): value for name, value in row.items()} for row in frame.to_dict("records")
    ]
    column = _column(records)
    documents = []
    for number, row in enumerate(records, 1):
        if not isinstance(row[column], str):
            raise ValueError(
                f"Row {number:,} has {brief(row[column])} in column {brief(column)}. Pass strings."
            )
        about = {name: value for name, value in row.items() if isinstance(value, str)}
        documents.append(
            Document(
                text=row[column],
                kind=about.get("class", "text"),
                language=about.get("language", "text"),
                source=about.get("source", ""),
                name=about.get("document", f"{OWN_TEXTS} {number:,}"),
            )
        )
    return Corpus(tuple(documents))


def read_texts(path: str) -> Corpus:
    r"""Read the texts at a path.

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
        fixed = 0
        while not _GLOB.search(place.parts[fixed]):
            fixed += 1
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
    reason = "there is no text"
    if corpus.problems:
        first = corpus.problems[0]
        named = f"{one_line(Path(first.name).name)}, {one_line(first.reason)}"
        reason = f"none of its {len(corpus.problems):,} files or rows is text, the first: {named}"
    raise ValueError(
        f"No text in {one_line(path)}: {reason}. Pass a folder, a text file, a table or a glob."
    )


def _table(path: Path) -> Corpus:
    # Lines that are no rows are left to the reader of the table.
    first = [row for row in rows_in(_beginning(path), path.suffix.lower()) if isinstance(row, dict)]
    if any("messages" in row for row in first):
        return _conversations(path)
    return rows(path, _column(first))


def _is_json(path: Path) -> bool:
    """Return True if a file with a text suffix contains JSON."""
    text = file_text(path) if path.suffix.lower() in ("", ".txt", ".text", ".md", ".log") else ""
    return isinstance(text, str) and is_json(text)


def _beginning(path: Path) -> str:
    """Return the first lines of a table as text."""
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
    if usual:
        return usual[0]
    return max(lengths, key=lengths.__getitem__, default="text")


def _conversations(path: Path) -> Corpus:
    with path.open("rb") as file:  # alone, without the files of sub-agents beside it
        traces = load_traces(file)
    results = [
        Document(
            message.text, message.role, "conversation", path.name, f"{trace.id}, message {number}"
        )
        for trace in traces
        for number, message in enumerate(trace.messages, 1)
    ]
    return Corpus(tuple(results))
