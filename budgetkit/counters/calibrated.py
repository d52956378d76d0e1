"""Estimated counts for models without a public tokenizer.

    tokens = slope x tokens of a public encoding + mark x punctuation marks

The slope and `mark`, the extra tokens per punctuation mark, are fitted to billed tokens in public recordings
(``data/calibrations.csv``). For your own texts, `budgetkit.accuracy.calibrate` fits the slope alone. The count is an
estimate, and the counter's name states the source of the slope.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.errors import out_of_range
from budgetkit.budget.quoting import brief
from budgetkit.counters.exact import ExactCounter
from budgetkit.counters.protocol import Counter, CounterBase, check_texts
from budgetkit.counters.vocabularies import nearer
from budgetkit.files import read_table
from budgetkit.models.names import calibration_row
from budgetkit.promise import is_controlled, range_of

_MARKS = re.compile(r"[^\w\s]")
_BEYOND = 0.05  # share of new texts on either side of the interval


@dataclass(frozen=True, slots=True)
class CalibratedCounter(CounterBase):
    """A counter that multiplies another counter's counts by a slope.

    Parameters
    ----------
    model : str
        The model to count for.
    counter : Counter
        Counter of a public encoding.
    slope : float
        The model's tokens for each token that `counter` counts, above 0.
    source : str
        Source of the slope, with the date of a published slope.
    low, high : float, optional
        Lower and upper error of the estimate, as fractions of the estimate. `interval_words` describes the coverage of
        this interval.
    mark : float
        Extra tokens per punctuation mark, for tokenizers that never merge these marks.
    units : int
        Number of projects or texts that the interval is based on; 0 if unknown.
    units_are : str
        Plural noun for the units.

    Raises
    ------
    ValueError
        If the slope is not above 0.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> CalibratedCounter("mine", counter("cl100k_base"), 1.5, "measured 2026-11-21").name
    'mine (calibrated estimate: 1.5 x cl100k_base, measured 2026-11-21)'
    """

    model: str
    counter: Counter
    slope: float
    source: str
    low: float | None = None
    high: float | None = None
    mark: float = 0.0
    units: int = 0
    units_are: str = "texts"

    def __post_init__(self) -> None:
        if not self.slope > 0:
            raise ValueError(
                out_of_range("slope", self.slope, "a number above 0, such as 1.6 for Claude")
            )

    @property
    def product(self) -> str:
        """The formula without punctuation marks, such as "0.98 × o200k_base"."""
        return f"{self.slope:.4g} × {self.counter.name}"

    @property
    def name(self) -> str:
        """The counter's name: the model, the formula and the source."""
        marks = f" + {self.mark:.4g} a punctuation mark" if self.mark else ""
        return f"{self.model} (calibrated estimate: {self.slope:.4g} x {self.counter.name}{marks}, {self.source})"

    @property
    def nearer(self) -> str:
        """A hint on a more accurate count for the model, or ""."""
        return nearer(self.model)

    @property
    def interval_words(self) -> str:
        """A description of the interval's coverage, or "" if unknown.

        The interval covers 9 of 10 new texts, or is the range observed in the texts used.
        """
        if not self.units:
            return ""
        return range_of(self.units, _BEYOND, self.units_are)

    def many(self, texts: Sequence[str]) -> list[int]:
        """Estimate the tokens in each of several texts."""
        texts = check_texts(texts, self)
        counted = self.counter.many(texts)
        if not self.mark:
            return [round(self.slope * tokens) for tokens in counted]
        return [
            round(self.slope * tokens + self.mark * len(_MARKS.findall(text)))
            for tokens, text in zip(counted, texts, strict=True)
        ]

    def interval(self, text: str) -> tuple[int, int]:
        """Return the error interval of a text's estimate.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        tuple of int
            Lower and upper bound, in tokens; both bounds equal the estimate if the error is unknown.
        """
        tokens = self(text)
        return round(tokens * (1 + (self.low or 0))), round(tokens * (1 + (self.high or 0)))


def fitted(
    counter: Counter,
    texts: Sequence[str],
    counts: Sequence[int],
    model: str,
    projects: Sequence[Hashable] | None,
) -> CalibratedCounter:
    """Fit a slope to a provider's counts, as `budgetkit.accuracy.calibrate` does."""
    texts = check_texts(texts, counter)
    counts = [check_tokens(f"count of text {n}", size) for n, size in enumerate(counts, start=1)]
    if len(texts) != len(counts) or not texts:
        raise ValueError(
            f"Number of texts: {len(texts)}; number of counts: {len(counts)}. Pass at least one text, and "
            "the provider's count for each."
        )
    sizes = counter.many(texts)
    if not sum(sizes) or not sum(counts):
        raise ValueError(
            "The texts or the counts sum to 0 tokens. Pass texts that the provider has counted."
        )
    groups = list(range(len(texts))) if projects is None else list(projects)
    pairs = [
        (theirs / ours, ours, group)
        for ours, theirs, group in zip(sizes, counts, groups, strict=True)
        if ours
    ]
    low, high = _spread(pairs)
    return CalibratedCounter(
        model=model,
        counter=counter,
        slope=_weighted_median(pairs),
        source=f"fitted to {len(texts)} texts",
        low=low,
        high=high,
        units=len(set(groups)),
        units_are="texts" if projects is None else "projects",
    )


def _weighted_median(pairs: Sequence[tuple[float, int, Hashable]]) -> float:
    """Return the median slope, weighted by tokens."""
    ordered = sorted(pairs, key=lambda pair: pair[0])
    passed = [*accumulate(weight for _, weight, _ in ordered)]
    return ordered[bisect_left(passed, passed[-1] / 2)][0]


def _spread(pairs: Sequence[tuple[float, int, Hashable]]) -> tuple[float | None, float | None]:
    """Return the error range of texts left out of the fit.

    With 19 or more groups, on average at most 1 in 20 texts of a new group lies beyond each end of the range. With
    fewer groups, the result is the observed range. With a single group, or if too few texts have a count above 0, both
    ends are None.
    """
    groups = list(dict.fromkeys(group for _, _, group in pairs))
    if len(groups) < 2:
        return None, None
    off: list[list[float]] = []
    for left_out in groups:
        slope = _weighted_median([pair for pair in pairs if pair[2] != left_out])
        if not slope:
            return None, None
        off.append([size / slope - 1 for size, _, group in pairs if group == left_out])
    below = _end([[-error for error in of] for of in off])
    return -below, _end(off)


def _end(off: Sequence[Sequence[float]]) -> float:
    """Return the smallest bound for 95 % of new errors.

    With too few groups for such a bound, return the largest error.
    """
    bound, *lower = sorted({error for of in off for error in of}, reverse=True)
    for candidate in lower:
        beyond = [sum(error > candidate for error in of) / len(of) for of in off]
        if not is_controlled(beyond, _BEYOND):
            break
        bound = candidate
    return bound


def calibrated_models() -> tuple[str, ...]:
    """List the model families with a published slope.

    Examples
    --------
    >>> "claude-4.5" in calibrated_models(), "gemini" in calibrated_models()
    (True, True)
    """
    return tuple(sorted(row["family"] for row in read_table("calibrations.csv") if row["pattern"]))


def published(model: str) -> CalibratedCounter:
    """Return the counter with the published slope of a model's family.

    A family without a published slope raises ValueError.

    Examples
    --------
    >>> published("claude-haiku-4-5")("Hello world")
    2
    """
    row = calibration_row(model)
    if not row["pattern"]:
        available = ", ".join(calibrated_models())
        raise ValueError(
            f"No published slope for {brief(model)}. Choose one of: {available}, or fit your own: "
            "budgetkit.accuracy.calibrate(counter, texts, counts)."
        )
    recorded = f"{row['calls']} recorded calls from {row['projects']} public projects"
    source = f"{recorded if int(row['calls']) else row['source']}, read {row['date']}"
    return CalibratedCounter(
        model=model,
        counter=ExactCounter(row["counter"]),
        slope=float(row["slope"]),
        source=source,
        low=float(row["text_low"]),
        high=float(row["text_high"]),
        mark=float(row["mark"]),
        units=int(row["projects"]),
        units_are="projects",
    )
