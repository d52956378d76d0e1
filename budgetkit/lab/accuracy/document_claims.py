"""The documents' claims about counting, compared with measurements.

Documents 000 and 001 state numbers for characters / 4 without naming the texts. Each claim is checked here on a corpus,
with an interval from resampling its sources.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
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
from budgetkit.plan import Floats, allocate

Numbers = Sequence[int] | Sequence[float] | Floats
_MOST = (
    400  # readings that all pairs are formed of; of more, as many spread evenly over their sizes
)
_MOST_LEFT_OUT = 40
_FAR = 8  # robust standard deviations


@dataclass(frozen=True)
class Bill:
    """A linear relation between counted and billed tokens.

    Parameters
    ----------
    constant : float
        Counted tokens of a request.
    slope : float
        Billed tokens for each counted one.
    low, high : float
        How far the middle 90 % of readings lie below and above their leave-one-out estimates.
    readings : int
        Number of readings.

    Examples
    --------
    >>> Bill(346.0, 1.3, -4.0, 6.0, 13).of(1_000), Bill(346.0, 1.3, -4.0, 6.0, 13).interval(1_000)
    (1646, (1642, 1652))
    """

    constant: float
    slope: float
    low: float
    high: float
    readings: int

    def of(self, counted: int) -> int:
        """Return the estimate.

        Parameters
        ----------
        counted : int
            Counted tokens of a request.

        Returns
        -------
        int
            Expected billed tokens.
        """
        return round(self.constant + self.slope * counted)

    def interval(self, counted: int) -> tuple[int, int]:
        """Return the interval that covers 90 % of the readings.

        Parameters
        ----------
        counted : int
            Counted tokens of a request.

        Returns
        -------
        tuple of int
            The lower and the upper end, in tokens.
        """
        estimate = self.constant + self.slope * counted
        return round(estimate + self.low), round(estimate + self.high)


def fit_bill(counted: Numbers, billed: Numbers, projects: Sequence[Hashable] | None = None) -> Bill:
    """Fit a constant and a slope to readings.

    Parameters
    ----------
    counted : sequence of float, shape (readings,)
        Count of each request, in tokens.
    billed : sequence of float, shape (readings,)
        Tokens that the provider billed for each request, including cached tokens.
    projects : sequence, shape (readings,), optional
        The source of each reading. If given, the interval is cross-validated over projects, so it holds for a new
        project; otherwise over single readings.

    Returns
    -------
    Bill
        A fit by least squares, without readings far from the median of pairwise slopes.

    Raises
    ------
    ValueError
        If there are fewer than three readings, all have one size, or the lengths differ.

    Examples
    --------
    >>> fit_bill([100, 200, 300], [230, 360, 490])
    Bill(constant=100.0, slope=1.3, low=0.0, high=0.0, readings=3)
    """
    x = np.asarray(counted, "float64")
    y = np.asarray(billed, "float64")
    if len(x) != len(y) or len(x) < 3 or np.ptp(x) == 0:
        readings = f"{len(x)} readings of {len(set(x.tolist()))} different sizes, {len(y)} bills"
        raise ValueError(f"Too few readings: {readings}. Pass three or more of different sizes.")
    constant, slope = _fitted(x, y)
    left_out = _left_out(x, y, list(range(len(x))) if projects is None else list(projects))
    low, high = (float(end) for end in np.quantile(left_out, [0.05, 0.95]))
    constant, slope, low, high = (round(number, 9) + 0.0 for number in (constant, slope, low, high))
    return Bill(constant, slope, low, high, len(x))


def theil_sen(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the intercept and slope of the median line of all pairs.

    >>> theil_sen(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([3.0, 5.0, 900.0, 9.0, 11.0]))
    (1.0, 2.0)
    """
    chosen = np.argsort(x, kind="stable")[
        np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST)).astype(int))
    ]
    first, second = np.triu_indices(len(chosen), 1)
    run = x[chosen][second] - x[chosen][first]
    rise = y[chosen][second] - y[chosen][first]
    slope = float(np.median(rise[run > 0] / run[run > 0])) if (run > 0).any() else 0.0
    return float(np.median(y - slope * x)), slope


def _fitted(x: Floats, y: Floats) -> tuple[float, float]:
    """Fit a line by least squares to the points near the median line."""
    constant, slope = theil_sen(x, y)
    off = np.abs(y - constant - slope * x)
    near = off <= max(_FAR * 1.4826 * float(np.median(off)), 1e-9 * float(np.abs(y).max()))
    if np.ptp(x[near]) == 0:
        return constant, slope
    middle = x[near] - x[near].mean()
    slope = float(middle @ (y[near] - y[near].mean()) / (middle @ middle))
    return float(y[near].mean() - slope * x[near].mean()), slope


def _left_out(x: Floats, y: Floats, groups: Sequence[Hashable]) -> Floats:
    """Return each reading's distance from a line fitted without its group."""
    order = {group: at for at, group in enumerate(dict.fromkeys(groups))}
    parts = min(len(order), _MOST_LEFT_OUT)
    part = np.array([order[group] % parts for group in groups])
    errors = np.zeros(len(x))
    for number in range(parts):
        out = part == number
        constant, slope = _fitted(x[~out], y[~out]) if np.ptp(x[~out]) > 0 else _fitted(x, y)
        errors[out] = y[out] - constant - slope * x[out]
    return errors


_RULE = "chars/4"
_WINDOW = 128_000
_REPEATS = 400
_COLUMNS = ["claim", "document", "said", "measured", "low", "high", "unit", "corpus"]


def claims(corpus: AnyTexts, exact: str = "o200k_base", seed: int = 0) -> pd.DataFrame:
    """Compare the numeric claims of documents 000 and 001 with measured values.

    Parameters
    ----------
    corpus : Corpus, str, Path, DataFrame or iterable
        The texts to measure on, in any form that :func:`budgetkit.corpora.corpus_of` takes; classes "code"
        and "cjk prose" are needed for the claims about them.
    exact : str
        The reference encoding.
    seed : int
        Seed of the resampling.

    Returns
    -------
    DataFrame
        One row per claim: the number claimed, the number measured, a 95 % interval (low to high) for other sources, the
        unit and the corpus. There is no interval for an extreme, a formula or fewer than six sources. Errors have their
        sign: below 0, too few are counted. Claims that cannot be measured on this corpus are left out.

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
        "95 % of texts are within",
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
        "too many by up to",
        "001",
        30,
        "% of the exact count",
        lambda errors: 100 * errors["error"].max(),
    ),
    (
        "too few by up to",
        "001",
        -30,
        "% of the exact count",
        lambda errors: 100 * errors["error"].min(),
    ),
    ("code", "001", 1.5, "characters a token", _characters_a_token),
    ("CJK text", "001", 0.5, "characters a token", _characters_a_token),
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
        if "by up to" not in name:  # of an extreme, resampling says nothing
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
    names = ("wasted in 128,000", "above 128,000", "windows of 128,000 that overflow")
    units = ("tokens, mean of all windows", "tokens, mean of all windows", "% of the windows")
    rows = zip(names, (38_400.0, 0.0, 0.0), measured, lows, highs, units, strict=True)
    return [(name, "001", *row, _name(errors)) for name, *row in rows]
