"""Claims about counting in documents 000 and 001, compared with measurements.

The documents are listed in ``docs/differences.md``. They state numbers for counting four characters as a token, without
naming the texts. Each claim is checked here on a corpus, with an interval from resampling the sources of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from budgetkit import presets
from budgetkit.budget import Budget
from budgetkit.lab.accuracy.buffers import consequences
from budgetkit.lab.accuracy.corpora.opening import AnyTexts
from budgetkit.lab.accuracy.errors import compare, resampled
from budgetkit.models import model
from budgetkit.plan import allocate

_RULE = "chars/4"
_WINDOW = 128_000
_REPEATS = 400
_REFILLS = 20  # fewer, as each fills all windows
_COLUMNS = ["claim", "document", "said", "measured", "low", "high", "unit", "corpus"]


def claims(corpus: AnyTexts, exact: str = "o200k_base", seed: int = 0) -> pd.DataFrame:
    """Compare the numeric claims of documents 000 and 001 with measured values.

    Parameters
    ----------
    corpus : Corpus, str, Path, DataFrame or iterable
        The texts to measure, in any form that :func:`budgetkit.corpora.corpus_of` takes. The claims about code and
        CJK text need texts of the classes "code" and "cjk prose".
    exact : str
        Name of the encoding whose counts are the reference.
    seed : int
        Seed for resampling the sources.

    Returns
    -------
    DataFrame
        One row for each claim, with the columns claim, document, said (the number claimed), measured, low and high (95
        % interval for other sources), unit and corpus. The interval is missing for extremes and formulas, and if there
        are fewer than six sources. A negative error means that too few tokens are counted. Claims that cannot be
        measured on this corpus are omitted.

    Examples
    --------
    >>> from budgetkit.lab.accuracy.corpora import shipped
    >>> found = claims(shipped()).set_index("claim")
    >>> found.loc["memory budget of gpt-4o", ["said", "measured"]].tolist()
    [80000.0, 117501.0]
    """
    every = compare([_RULE], corpus, exact)
    random = np.random.default_rng(seed)
    nan = float("nan")
    rows: list[tuple[object, ...]] = []
    for name, document, value, unit, statistic in _ON_TEXTS:
        errors = every[every["class"] == _CLASSES[name]] if name in _CLASSES else every
        if errors.empty:
            continue
        if "largest" in name:  # resampling says nothing about an extreme
            numbers: Any = (statistic(errors), nan, nan)
        else:
            numbers = resampled(errors, statistic, _REPEATS, random)
        rows.append((name, document, float(value), *map(float, numbers), unit, _name(errors)))
    # The waste and the overflow of windows of one language.
    if len(every):
        columns = resampled(every, _outcome, _REFILLS, random)
        for (name, value, unit), *numbers in zip(_ON_WINDOWS, *columns, strict=True):
            rows.append((name, "001", value, *map(float, numbers), unit, _name(every)))
    # Document 001's memory budgets by its own formula.
    for name, value in (("gpt-4o", 80_000.0), ("gpt-3.5-turbo", 8_000.0)):
        budget = presets.memory_engine(model(name, ends=""))
        limit = float(allocate(budget, {"messages": 3})["memory"].limit)
        about = ("tokens", "document 001's own formula")
        rows.append((f"memory budget of {name}", "001", value, limit, nan, nan, *about))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _characters_a_token(errors: pd.DataFrame) -> float:
    return float(errors["characters"].sum() / errors["exact"].sum())


#: Claims about texts: claim, document, number, unit, and the statistic that measures it.
_ON_TEXTS: tuple[tuple[str, str, float, str, Callable[[pd.DataFrame], Any]], ...] = (
    (
        "error of 95 % of texts",
        "000",
        15,
        "% of the exact count",
        lambda errors: 100 * errors["error"].abs().quantile(0.95),
    ),
    (
        "texts within 15 %",
        "000",
        100,
        "% of the texts",
        lambda errors: 100 * (errors["error"].abs() <= 0.15).mean(),
    ),
    (
        "largest overcount",
        "001",
        30,
        "% of the exact count",
        lambda errors: 100 * errors["error"].max(),
    ),
    (
        "largest undercount",
        "001",
        -30,
        "% of the exact count",
        lambda errors: 100 * errors["error"].min(),
    ),
    ("code", "001", 1.5, "characters per token", _characters_a_token),
    ("CJK text", "001", 0.5, "characters per token", _characters_a_token),
)
_CLASSES = {"code": "code", "CJK text": "cjk prose"}  # claims about one class


#: Claims about windows of 128,000 tokens, all of document 001: claim, number, and unit.
_ON_WINDOWS = (
    ("wasted of 128,000", 38_400.0, "tokens, mean of all windows"),
    ("excess over 128,000", 0.0, "tokens, mean of all windows"),
    ("overflowing windows of 128,000", 0.0, "% of the windows"),
)


def _outcome(errors: pd.DataFrame) -> list[float]:
    """Return the waste, the excess and the share of overflowing windows."""
    row = consequences(Budget(_WINDOW), errors, "language").iloc[0]
    return [row["wasted"], row["overflow"] * row["over"], 100 * row["overflow"]]


def _name(errors: pd.DataFrame) -> str:
    return f"{len(errors):,} documents of {errors['source'].nunique()} sources"
