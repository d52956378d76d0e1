"""Texts by class and language: shipped, generated and your own.

Every document has a class, a language and a source. Nothing is downloaded. An unreadable file is reported and causes no
error.
"""

from __future__ import annotations

from budgetkit.lab.accuracy.corpora.opening import corpus_of
from budgetkit.lab.accuracy.corpora.reading import Corpus, Document, Problem, folder, rows
from budgetkit.lab.accuracy.corpora.shipped import RECIPES, generate, odd, shipped

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
]


__dir__ = __all__.copy  # completion shows no other names
