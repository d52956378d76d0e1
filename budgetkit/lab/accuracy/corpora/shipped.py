"""The mini-corpus: texts written for this project, and odd text by recipe.

It is small and the same on every machine. A file of ``data/corpora/`` holds one class; a line ``=== language title``
begins a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from budgetkit.files import data_files, read_bytes
from budgetkit.lab.accuracy.corpora.document import Corpus, Document
from budgetkit.lab.accuracy.corpora.generated import RECIPES, generate

SOURCE: Final = "budgetkit mini-corpus"
_HEAD: Final = re.compile(r"^=== (?P<language>\S+) (?P<title>.+)\n", re.MULTILINE)


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
    return Corpus(
        tuple(document for name in data_files("corpora") for document in _documents(name))
    )


def _documents(name: str) -> Iterator[Document]:
    kind = name.rpartition("/")[2].removesuffix(".txt").replace("-", " ")
    text = read_bytes(name).decode()
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=True):
        yield Document(
            text[head.end() : end].rstrip("\n"), kind, head["language"], SOURCE, head["title"]
        )


def odd(documents: int = 20, characters: int = 1_000, seed: int = 0) -> Corpus:
    """Generate odd text: base64, identifiers, numbers, emoji, white space, runs.

    Parameters
    ----------
    documents : int
        How many of each recipe.
    characters : int
        Length of each, in characters.
    seed : int
        Same seed, same text; the estimator was trained on recipes with other seeds.

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
    return Corpus(
        tuple(
            Document(
                generate(recipe, number, characters),
                "odd",
                recipe,
                "budgetkit generators",
                f"seed {number}",
            )
            for recipe in RECIPES
            for number in numbers
        )
    )
