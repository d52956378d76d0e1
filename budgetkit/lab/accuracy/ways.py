"""ways(): the ways of counting side by side on one's own texts: what each counts, how far off, how long, what it asks.

    off = tokens / tokens of the reference - 1

The reference is a provider's own count where there is one among them, else the first that is exact, else the first
that is reconstructed.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any, Final

import pandas as pd

from budgetkit.counters import basis_of, counter
from budgetkit.lab.accuracy.corpora.opening import AnyTexts, corpus_of

_KINDS: Final = {"ProviderCounter": "endpoint", "CharacterCounter": "characters"}
#: What each kind of counting costs, and when to use it: Octopus, guide "Token Budget" (document 000), in our words.
USES: Final = {
    "characters": ("next to nothing", "a first guess, with a reserve as a buffer"),
    "estimate": (
        "little, on this machine",
        "models whose vocabulary is not public, with a reserve as a buffer",
    ),
    "tokenizer": (
        "little, on this machine",
        "budgets that are tight, and every count that may be exact",
    ),
    "endpoint": (
        "a call over the network for each new text",
        "checks and fits, now and then; never in a loop",
    ),
}


def ways(texts: AnyTexts, *counters: Any) -> pd.DataFrame:
    """Put ways of counting into one table.

    Parameters
    ----------
    texts : Corpus, str, Path, DataFrame or iterable
        What is counted, one by one, as an application does.
    *counters : str or callable
        Names or counters; "chars/4" and "o200k_base" when left out. A provider's endpoint is one more:
        `budgetkit.provider_counter`, to which every text is sent.

    Returns
    -------
    DataFrame
        One row a counter: name, kind ("characters", "estimate", "tokenizer" or "endpoint"), exact, basis ("exact",
        "reconstructed" or "estimate"), tokens (int64, of all texts), off (float64, against the reference; missing
        without one, or where it counts 0), microseconds (float64, a text, measured here and now; an endpoint's kept
        answers are quick), network (bool, whether texts are sent away), costs and use (str, what it costs and when to
        use it).

    Raises
    ------
    ValueError
        If there is no text.

    Examples
    --------
    >>> found = ways(["Hello world", "Where is my order?"])
    >>> found[["name", "kind", "exact", "tokens", "off"]].round(2).values.tolist()
    [['chars/4', 'characters', False, 6, -0.14], ['o200k_base', 'tokenizer', True, 7, 0.0]]
    """
    documents = corpus_of(texts).texts
    if not documents:
        raise ValueError(
            "ways of counting no texts; known is a list of one text or more; give some of your own"
        )
    counted_by = [counter(way) for way in counters or ("chars/4", "o200k_base")]
    rows = [_row(way, documents) for way in counted_by]
    columns = [
        "name",
        "kind",
        "exact",
        "basis",
        "tokens",
        "off",
        "microseconds",
        "network",
        "costs",
        "use",
    ]
    table = pd.DataFrame(rows).reindex(columns=columns)
    references = [
        *table["tokens"][table["kind"] == "endpoint"],
        *table["tokens"][table["exact"]],
        *table["tokens"][table["basis"] == "reconstructed"],
    ]
    if references and references[0]:
        table["off"] = table["tokens"] / references[0] - 1
    return table


def kind_of(count: Any) -> str:
    """Return a counter's kind, which is a key of `USES`."""
    if basis_of(count) == "estimate":
        other = "estimate"
    else:
        other = "tokenizer"
    return _KINDS.get(type(count).__name__, other)


def _row(count: Any, texts: Sequence[str]) -> dict[str, object]:
    kind = kind_of(count)
    if kind != "endpoint":
        count(texts[0])  # the first call loads what it needs
    begun = perf_counter_ns()
    tokens = sum(count(text) for text in texts)
    taken = (perf_counter_ns() - begun) / 1_000 / len(texts)
    costs, use = USES[kind]
    return {
        "name": count.name,
        "kind": kind,
        "exact": count.exact,
        "basis": basis_of(count),
        "tokens": tokens,
        "microseconds": taken,
        "network": kind == "endpoint",
        "costs": costs,
        "use": use,
    }
