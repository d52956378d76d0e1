"""Claims about counting in documents 000 and 001, compared with measurements.

The documents are listed in ``docs/differences.md``. They state numbers for counting four characters as a token, without
naming the texts. Each claim is checked here on a corpus, with an interval from resampling the sources of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit import presets
from budgetkit.budget import Budget
from budgetkit.lab.accuracy.buffers import consequences
from budgetkit.lab.accuracy.corpora.opening import AnyTexts
from budgetkit.lab.accuracy.errors import compare, interval_of, places_by_source
from budgetkit.models import model
from budgetkit.plan import allocate

_RULE = "chars/4"
_WINDOW = 128_000
_REPEATS = 400
_COLUMNS = ["claim", "document", "said", "measured", "low", "high", "unit", "corpus"]


def claims(corpus: AnyTexts, exact: str = "o200k_base", seed: int = 0) -> pd.DataFrame:
    """Compare the numeric claims of documents 000 and 001 with measured values.

    Parameters
    ----------
    corpus : Corpus, str, Path, DataFrame or iterable
        The texts to measure, in any form that :func:`budgetkit.corpora.corpus_of` takes. The claims about code and
        CJK text need texts of the classes "code" and "cjk prose".
    exact : str
        The reference encoding.
    seed : int
        Seed of the resampling.

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
    errors = compare([_RULE], corpus, exact)
    random = np.random.default_rng(seed)
    rows = _on_texts(errors, random) + _filled(errors, random)
    # Document 001's memory budgets by its own formula.
    nan = float("nan")
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


def _on_texts(every: pd.DataFrame, random: np.random.Generator) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for name, document, value, unit, statistic in _ON_TEXTS:
        errors = every[every["class"] == _CLASSES[name]] if name in _CLASSES else every
        if errors.empty:
            continue
        measured = float(statistic(errors))
        low = high = float("nan")
        if "largest" not in name:  # resampling says nothing about an extreme
            sources = places_by_source(errors)
            samples = [errors.iloc[_drawn(sources, random)] for _ in range(_REPEATS)]
            repeated = np.array([float(statistic(sample)) for sample in samples])
            low, high = interval_of(repeated, measured, len(sources))
        numbers = (float(value), measured, low, high)
        rows.append((name, document, *numbers, unit, _name(errors)))
    return rows


def _drawn(
    sources: Sequence[npt.NDArray[np.intp]], random: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Resample whole sources, and return their rows."""
    return np.concatenate(
        [sources[place] for place in random.integers(0, len(sources), len(sources))]
    )


def _name(errors: pd.DataFrame) -> str:
    return f"{len(errors):,} documents of {errors['source'].nunique()} sources"


def _filled(errors: pd.DataFrame, random: np.random.Generator) -> list[tuple[object, ...]]:
    """Measure the waste and the overflow of windows of one language."""
    if errors.empty:
        return []

    def outcome(part: pd.DataFrame) -> list[float]:
        row = consequences(Budget(_WINDOW), part, "language").iloc[0]
        return [
            float(row["wasted"]),
            float(row["overflow"] * row["over"]),
            float(100 * row["overflow"]),
        ]

    sources = places_by_source(errors)
    measured = outcome(errors)
    repeated = np.array([outcome(errors.iloc[_drawn(sources, random)]) for _ in range(20)])
    ends = [
        interval_of(column, now, len(sources))
        for column, now in zip(repeated.T, measured, strict=True)
    ]
    lows, highs = zip(*ends, strict=True)
    names = ("wasted of 128,000", "excess over 128,000", "overflowing windows of 128,000")
    units = ("tokens, mean of all windows", "tokens, mean of all windows", "% of the windows")
    rows = zip(names, (38_400.0, 0.0, 0.0), measured, lows, highs, units, strict=True)
    return [(name, "001", *row, _name(errors)) for name, *row in rows]
