"""What the documents claim about counting, beside what is measured.

Documents 000 and 001 give numbers for characters / 4 without saying on what text. Each claim is computed here on a
corpus, with an interval from resampling its sources, so that nobody has to believe either side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit import presets
from budgetkit.budget import Budget
from budgetkit.lab.accuracy import compare, consequences
from budgetkit.lab.accuracy.corpora.opening import AnyTexts
from budgetkit.lab.accuracy.errors import interval_of, places_by_source
from budgetkit.models import model
from budgetkit.plan.allocating import allocate

_RULE: Final = "chars/4"
_WINDOW: Final = 128_000
_REPEATS: Final = 400
_COLUMNS: Final = ["claim", "document", "said", "measured", "low", "high", "unit", "corpus"]


def claims(corpus: AnyTexts, exact: str = "o200k_base", seed: int = 0) -> pd.DataFrame:
    """Set each numeric claim of documents 000 and 001 beside its measured value.

    Parameters
    ----------
    corpus : Corpus, str, Path, DataFrame or iterable
        What to measure on, in any form that :func:`budgetkit.corpora.corpus_of` takes; classes "code"
        and "cjk prose" are needed for the claims about them.
    exact : str
        The encoding that is right.
    seed : int
        Of the resampling.

    Returns
    -------
    DataFrame
        One row a claim: what was said, measured, a 95 % interval low to high for other sources, the unit and the
        corpus. An extreme, a formula and fewer than six sources have no interval. Errors have their sign: below 0,
        too few are counted. What cannot be measured on this corpus is left out.

    Examples
    --------
    >>> from budgetkit.lab.accuracy.corpora import shipped
    >>> found = claims(shipped()).set_index("claim")
    >>> found.loc["memory budget of gpt-4o", ["said", "measured"]].tolist()
    [80000.0, 117501.0]
    """
    errors = compare([_RULE], corpus, exact)
    random = np.random.default_rng(seed)
    rows = [_measured(claim, random) for claim in _on_texts(errors) if len(claim[4])]
    rows += _filled(errors, random)
    rows += [_memory(name, value) for name, value in (("gpt-4o", 80_000), ("gpt-3.5-turbo", 8_000))]
    return pd.DataFrame(rows, columns=_COLUMNS)


Statistic = Callable[[pd.DataFrame], float]
Claim = tuple[str, str, float, str, pd.DataFrame, Statistic]


def _on_texts(errors: pd.DataFrame) -> list[Claim]:
    return [
        ("95 % of texts are within", "000", 15, "% of the exact count", errors, _p95),
        ("texts within 15 %", "000", 100, "% of the texts", errors, _within),
        ("too many by up to", "001", 30, "% of the exact count", errors, _most),
        ("too few by up to", "001", -30, "% of the exact count", errors, _least),
        (
            "code",
            "001",
            1.5,
            "characters a token",
            errors[errors["class"] == "code"],
            _characters_a_token,
        ),
        (
            "CJK text",
            "001",
            0.5,
            "characters a token",
            errors[errors["class"] == "cjk prose"],
            _characters_a_token,
        ),
    ]


def _p95(errors: pd.DataFrame) -> float:
    return float(100 * errors["error"].abs().quantile(0.95))


def _within(errors: pd.DataFrame) -> float:
    return float(100 * (errors["error"].abs() <= 0.15).mean())


def _most(errors: pd.DataFrame) -> float:
    return float(100 * errors["error"].max())


def _least(errors: pd.DataFrame) -> float:
    return float(100 * errors["error"].min())


def _characters_a_token(errors: pd.DataFrame) -> float:
    return float(errors["characters"].sum() / errors["exact"].sum())


def _measured(claim: Claim, random: np.random.Generator) -> dict[str, object]:
    name, document, value, unit, errors, statistic = claim
    low = float("nan")
    high = float("nan")
    if statistic not in (_most, _least):  # of an extreme, resampling says nothing
        sources = places_by_source(errors)
        repeated = np.array(
            [statistic(errors.iloc[_drawn(sources, random)]) for _ in range(_REPEATS)]
        )
        low, high = interval_of(repeated, statistic(errors), len(sources))
    row: dict[str, object] = {
        "claim": name,
        "document": document,
        "said": float(value),
        "measured": statistic(errors),
    }
    return row | {"low": low, "high": high, "unit": unit, "corpus": _name(errors)}


def _drawn(
    sources: Sequence[npt.NDArray[np.intp]], random: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Draw as many whole sources as there are, and return their rows."""
    return np.concatenate(
        [sources[place] for place in random.integers(0, len(sources), len(sources))]
    )


def _name(errors: pd.DataFrame) -> str:
    return f"{len(errors):,} documents of {errors['source'].nunique()} sources"


def _filled(errors: pd.DataFrame, random: np.random.Generator) -> list[dict[str, object]]:
    """Fill windows of 128,000 by the rule, each with documents of one language: what stays empty, what runs over."""
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
    names = ("wasted in 128,000", "above 128,000", "windows of 128,000 that overflow")
    units = ("tokens, mean of all windows", "tokens, mean of all windows", "% of the windows")
    rows = zip(names, (38_400.0, 0.0, 0.0), measured, lows, highs, units, strict=True)
    return [
        dict(zip(_COLUMNS, (name, "001", *row, _name(errors)), strict=True)) for name, *row in rows
    ]


def _memory(name: str, value: float) -> dict[str, object]:
    """Compute document 001's memory budget by its own formula: only the priming of the request is there."""
    budget = presets.memory_engine(model(name, ends=""))
    limit = allocate(budget, {"messages": 3})["memory"].limit
    row: dict[str, object] = {
        "claim": f"memory budget of {name}",
        "document": "001",
        "said": float(value),
    }
    return row | {
        "measured": float(limit),
        "unit": "tokens",
        "corpus": "document 001's own formula",
    }
