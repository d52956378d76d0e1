"""Errors of counters: one row a document and counter, and what they come to by group.

error = estimate / exact - 1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.accuracy.corpora.document import Corpus
from budgetkit.accuracy.progress import progress_bar
from budgetkit.budget.quoting import quoted
from budgetkit.counters import Count, Counter, counter

Given = Counter | Count | str
Floats = npt.NDArray[np.float64]


def listed(counters: Given | Sequence[Given]) -> list[Given]:
    """Return one counter or several as a list."""
    return [counters] if isinstance(counters, str) or callable(counters) else list(counters)


def compare(
    counters: Given | Sequence[Given], corpus: Corpus, exact: Given = "o200k_base", progress: bool = False
) -> pd.DataFrame:
    """Count every document with every counter.

    Parameters
    ----------
    counters : Counter, callable or str, or a sequence of these
        Counters, functions from text to tokens, or names; one, or several.
    corpus : Corpus
        The documents; those that are empty are left out.
    exact : Counter or str
        The counter that is right.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    DataFrame
        One row a document and counter: class, language, source, document, characters, counter, exact and
        estimate in tokens, error as a share of exact (below 0: counted too few).

    Examples
    --------
    >>> from budgetkit.accuracy.corpora import Corpus, Document
    >>> corpus = Corpus((Document("Hello world", "prose", "en", "mine", "first"),))
    >>> compare(["chars/4", "words/0.75"], corpus)[["counter", "exact", "estimate", "error"]].to_dict("list")
    {'counter': ['chars/4', 'words/0.75'], 'exact': [2, 2], 'estimate': [2, 2], 'error': [0.0, 0.0]}
    """
    made = [counter(each) for each in (exact, *listed(counters))]
    names = [each.name for each in made[1:]]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"counters {quoted(dict.fromkeys(twice))} stand twice; rows go by the name; leave one out")
    kept = corpus.where(lambda document: bool(document.text))
    columns = []
    with progress_bar(progress, total=len(made), desc="counters") as advance:
        for each in made:
            columns.append(each.many(kept.texts))
            advance(1)
    about = kept.frame()
    tables = [
        about.assign(counter=c.name, exact=columns[0], estimate=n) for c, n in zip(made[1:], columns[1:], strict=True)
    ]
    found = pd.concat(tables, ignore_index=True) if tables else about.assign(counter="", exact=0, estimate=0)
    return found.assign(error=found["estimate"] / found["exact"] - 1)


def summary(errors: pd.DataFrame, by: Sequence[str] = ("counter", "class"), seed: int = 0) -> pd.DataFrame:
    """Summarise errors by group, each mean with a bootstrap interval.

    Parameters
    ----------
    errors : DataFrame
        What :func:`compare` returns.
    by : sequence of str
        Columns that make a group.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row a group: n, bias (mean signed error), mape (mean absolute error) and its 95 % interval
        mape_low, mape_high, the quantiles p5, p50, p95 of the signed error, and the worst error.

    Examples
    --------
    >>> errors = pd.DataFrame({"counter": ["a"] * 3, "error": [-0.1, 0.0, 0.4]})
    >>> summary(errors, ["counter"])[["n", "bias", "worst"]].round(2).to_dict("list")
    {'n': [3], 'bias': [0.1], 'worst': [0.4]}
    """
    random = np.random.default_rng(seed)
    groups = errors.groupby(list(by), sort=True, observed=True)["error"]
    rows = [dict(zip(by, key, strict=True)) | _described(e.to_numpy(float), random) for key, e in groups]
    return pd.DataFrame(rows)


def _described(error: Floats, random: np.random.Generator) -> dict[str, float]:
    size = np.abs(error)
    repeated = size[random.integers(0, len(size), (1_000, len(size)))].mean(axis=1)
    low, high = np.quantile(repeated, (0.025, 0.975))
    p5, p50, p95 = np.quantile(error, (0.05, 0.5, 0.95))
    shares = {"bias": error.mean(), "mape": size.mean(), "mape_low": low, "mape_high": high}
    return {"n": len(error)} | shares | {"p5": p5, "p50": p50, "p95": p95, "worst": error[size.argmax()]}
