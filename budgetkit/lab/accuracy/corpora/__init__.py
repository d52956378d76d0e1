"""Texts by class and language: shipped, generated, found on the machine, and the user's own.

Every document knows its class, its language and its source. Nothing is downloaded; what cannot be read is reported
and never fatal.
"""

from __future__ import annotations

from budgetkit.lab.accuracy.corpora.document import Corpus, Document, Problem
from budgetkit.lab.accuracy.corpora.generated import RECIPES, generate
from budgetkit.lab.accuracy.corpora.installed import chatterbot, packages, standard_library
from budgetkit.lab.accuracy.corpora.opening import corpus_of
from budgetkit.lab.accuracy.corpora.reading import folder, rows
from budgetkit.lab.accuracy.corpora.shipped import odd, shipped

__all__ = [
    "RECIPES",
    "Corpus",
    "Document",
    "Problem",
    "chatterbot",
    "corpus_of",
    "folder",
    "generate",
    "odd",
    "packages",
    "rows",
    "shipped",
    "standard_library",
]


def __dir__() -> list[str]:
    return __all__
