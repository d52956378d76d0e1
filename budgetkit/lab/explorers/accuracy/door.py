"""The door: on top of the accuracy explorer, how to give it texts, and what was read of those that it shows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from budgetkit.lab.accuracy.corpora.opening import KNOWN
from budgetkit.lab.explorers.accuracy.settings import AccuracySettings
from budgetkit.lab.explorers.library import Library

Data = dict[str, Any]
WELCOME = {
    "text": "Your own texts: drop a file here, paste a text, or",
    "short": "Drop a file, paste, or",
}
MOST_NAMED = 3  # files that are named among those left out


def door(library: Library, settings: AccuracySettings) -> Data:
    """Return what the page shows of the texts: that they are shipped ones, or what was read.

    Parameters
    ----------
    library : Library
        The texts by name.
    settings : AccuracySettings
        Which of them are looked at.
    """
    if settings.corpus in KNOWN:
        return {**WELCOME}
    corpus = library.texts(settings.corpus)
    classes = Counter(document.kind for document in corpus.documents)
    many = len(corpus.documents)
    by_class = ", ".join(f"{number:,} {name}" for name, number in classes.most_common())
    documents = f"{many:,} document{'s' * (many != 1)}: {by_class}"
    notes = [
        f"Left out: {Path(problem.name).name}, {problem.reason}."
        for problem in corpus.problems[:MOST_NAMED]
    ]
    if len(corpus.problems) > MOST_NAMED:
        notes.append(f"{len(corpus.problems) - MOST_NAMED:,} more were left out.")
    return {
        "text": "",
        "short": "",
        "facts": {
            "file": settings.corpus,
            "sentences": [f"{settings.corpus}, {documents}", *notes],
            "format": settings.corpus,
            "messages": documents,
            "many": "",
            "conversations": [],
            "conversation": 0,
            "notes": notes,
            "model": None,
        },
    }
