"""Kinds of the texts that are looked at: a class and a language each, by their own labels or by any usual name."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from budgetkit.budget.quoting import brief, quoted
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.lab.accuracy.kinds import meaning
from budgetkit.trace import DEFAULT_ROLES

_ENGLISH_PROSE = ("prose", "en")
# What stands for the language where none is told; so does a role.
_NO_LANGUAGE = (
    "text",
    "conversation",
)


def kinds_in(every: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the kinds of text that documents are of, a class and a language each, in their order.

    Examples
    --------
    >>> kinds_in(pd.DataFrame({"class": ["prose", "code", "prose"], "language": ["en", "go", "en"]}))
    [('prose', 'en'), ('code', 'go')]
    """
    rows = every[["class", "language"]].astype(str).drop_duplicates()
    return [*rows.itertuples(index=False, name=None)]


def named_kind(labels: Sequence[str], every: pd.DataFrame) -> tuple[str, ...]:
    """Return the documents' own labels of a kind that is named in any usual way; () of no labels.

    Examples
    --------
    >>> named_kind(["text", "German"], pd.DataFrame({"class": ["code", "prose"], "language": ["go", "de"]}))
    ('prose', 'de')
    """
    if not labels:
        return ()
    kinds = kinds_in(every)
    wanted = [meaning(label) for label in labels]
    for kind in kinds:
        if kind == tuple(labels) or [*map(meaning, kind)] == wanted:
            return kind
    name = brief(", ".join(labels))
    known = quoted(map(kind_name, kinds))
    raise LookupError(
        f"no texts of the kind {name}; these are of {known}; give a class and a language of these"
    )


def kind_name(kind: tuple[str, ...]) -> str:
    """Return a kind in words.

    Examples
    --------
    >>> kind_name(("prose", "en")), kind_name(("text", "text"))
    ('prose, en', 'text')
    """
    return replace_surrogates(", ".join(dict.fromkeys(kind)))


def kind_at_hand(every: pd.DataFrame) -> tuple[str, ...]:
    """Return the kind that most documents are of; of a collection of many kinds English prose, where it has some.

    Texts of a single kind need no name: they are that kind. Nor do those whose language is not known, such as the
    messages of a conversation: they are looked at as a whole.

    Examples
    --------
    >>> kind_at_hand(pd.DataFrame({"class": ["prose", "code", "code"], "language": ["en", "go", "go"]}))
    ('code', 'go')
    >>> kind_at_hand(pd.DataFrame({"class": ["code", "prose", "code"], "language": ["go", "en", "c"]}))
    ('prose', 'en')
    """
    kinds = kinds_in(every)
    many = every.groupby(["class", "language"], sort=False).size().to_numpy()
    most = kinds[int(many.argmax())]
    if len(kinds) < 2 or most[1] in (*_NO_LANGUAGE, *DEFAULT_ROLES):
        return ()
    if many.max() > len(every) / 2:
        return most
    english = [kind for kind in kinds if tuple(map(meaning, kind)) == _ENGLISH_PROSE]
    return english[0] if english else most
