"""Document and Corpus: texts that know their class, language and source, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random

import pandas as pd

from budgetkit.counters.encodings import replace_surrogates


@dataclass(frozen=True, slots=True)
class Document:
    """One text.

    Parameters
    ----------
    text : str
        The text.
    kind : str
        Its class: "prose", "cjk prose", "cjk mixed", "code", "data", "markup", "log", "odd", ...
    language : str
        Natural or programming language, format or recipe: "de", "python", "json", "base64".
    source : str
        Where it comes from; installed text names package and version.
    name : str
        Which of the source's documents it is.

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
        # Frames keep texts as UTF-8 where pyarrow is installed, which half a surrogate pair is not.
        for name in ("kind", "language", "source", "name"):
            object.__setattr__(self, name, replace_surrogates(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was not read, and why.

    Parameters
    ----------
    name : str
        The file, or the row of it.
    reason : str
        Why it was left out.

    Examples
    --------
    >>> Problem("logo.png", "binary").reason
    'binary'
    """

    name: str
    reason: str


@dataclass(frozen=True)
class Corpus:
    """Documents, and what could not be read.

    Parameters
    ----------
    documents : tuple of Document
        The texts.
    problems : tuple of Problem
        What was left out.

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
        """Length of all texts together, in characters."""
        return sum(len(document.text) for document in self.documents)

    def where(self, keep: Callable[[Document], bool]) -> Corpus:
        """Keep some of the documents.

        Parameters
        ----------
        keep : callable
            From a document to whether it stays.

        Returns
        -------
        Corpus
            With the same problems.
        """
        return Corpus(tuple(filter(keep, self.documents)), self.problems)

    def pieces(
        self, shortest: int = 500, longest: int = 2_000, most: int = 20, seed: int = 0
    ) -> Corpus:
        """Cut documents into pieces of random lengths, as messages and passages have.

        Parameters
        ----------
        shortest, longest : int
            Length of a piece, in characters; what is shorter than `shortest` is left out.
        most : int
            Most pieces of one document, spread over it.
        seed : int
            Same seed, same pieces.

        Returns
        -------
        Corpus
            Pieces that know their document's class, language and source.

        Examples
        --------
        >>> corpus = Corpus((Document("ab " * 1_000, "prose", "none", "mine", "all"),))
        >>> [(len(piece.text), piece.name) for piece in corpus.pieces(500, 500, most=2)]
        [(500, 'all [1]'), (500, 'all [2]')]
        """
        return Corpus(
            tuple(
                piece
                for document in self
                for piece in _pieces(document, shortest, longest, most, seed)
            ),
            self.problems,
        )

    def frame(self) -> pd.DataFrame:
        """Return one row a document: class, language, source, name and characters."""
        rows = [(d.kind, d.language, d.source, d.name, len(d.text)) for d in self]
        return pd.DataFrame(rows, columns=["class", "language", "source", "document", "characters"])


def _pieces(
    document: Document, shortest: int, longest: int, most: int, seed: int
) -> Iterable[Document]:
    random = Random(f"{seed} {document.source} {document.name} {len(document.text)}")
    lengths: list[int] = []
    room = len(document.text)
    while room >= shortest and len(lengths) < most:
        lengths.append(min(random.randint(shortest, longest), room))
        room -= lengths[-1]
    gap = room // max(len(lengths), 1)
    start = 0
    for number, length in enumerate(lengths, 1):
        yield replace(
            document, text=document.text[start : start + length], name=f"{document.name} [{number}]"
        )
        start += length + gap
