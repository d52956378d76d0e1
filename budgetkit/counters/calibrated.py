"""Counts for a model whose tokenizer is not public: another encoding's count times a measured slope.

    tokens = slope x tokens of the public encoding

The slope comes from a published measurement (``data/calibrations.csv``) or from what the provider billed for texts
of your own (`calibrate`). It is an estimate, dated, and its name says so wherever a number of it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from budgetkit.budget.quoting import brief
from budgetkit.counters.protocol import Counter
from budgetkit.files import read_table

__all__ = ["CalibratedCounter", "calibrate", "calibrated_models", "published"]


@dataclass(frozen=True, slots=True)
class CalibratedCounter:
    """Estimate a model's count as another counter's times a slope.

    Parameters
    ----------
    model : str
        The model that is counted for.
    counter : Counter
        Counts with a public encoding.
    slope : float
        The model's tokens for one of that counter's, above 0.
    source : str
        Where the slope comes from, with its date.
    spread : float, optional
        Standard deviation of the measured texts' own slopes around it, as a share of it.

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
    spread: float | None = None

    def __post_init__(self) -> None:
        if not self.slope > 0:
            raise ValueError(
                f"a slope of {brief(self.slope)}; slopes are above 0, Claude's is about 1.6; give the measured one"
            )

    @property
    def exact(self) -> bool:
        """False: it is an estimate."""
        return False

    @property
    def name(self) -> str:
        """The model, and how its count is estimated."""
        return f"{self.model} (calibrated estimate: {self.slope:.4g} x {self.counter.name}, {self.source})"

    def __call__(self, text: str) -> int:
        """Estimate one text, in tokens."""
        return round(self.slope * self.counter(text))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Estimate several texts, in tokens each."""
        return [round(self.slope * tokens) for tokens in self.counter.many(texts)]


def calibrate(
    counter: Counter, texts: Sequence[str], counts: Sequence[int], model: str = "calibrated"
) -> CalibratedCounter:
    """Fit a slope to what a provider counted.

    The slope is the ratio of the sums, so that a window full of such texts comes out right.

    Parameters
    ----------
    counter : Counter
        Counts with a public encoding.
    texts : sequence of str
        What was sent, one text a request.
    counts : sequence of int
        What the provider counted for each, in tokens, without what a request costs beyond its text.
    model : str
        The model that counted.

    Returns
    -------
    CalibratedCounter
        Its source says on how many texts it rests, its spread how much their slopes differ.

    Raises
    ------
    ValueError
        If there are no texts, not as many counts, or nothing was counted.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> mine = calibrate(counter("cl100k_base"), ["Hello world", "Hello"], [3, 2])
    >>> round(mine.slope, 2), mine.source
    (1.67, 'fitted to 2 texts')
    """
    if len(texts) != len(counts) or not texts:
        raise ValueError(
            f"{len(texts)} texts and {len(counts)} counts; each text needs the provider's count; "
            "give as many, at least one"
        )
    own = counter.many(texts)
    if not sum(own) or sum(counts) <= 0:
        raise ValueError("the texts or the counts sum to 0; a slope is a ratio of tokens; give texts that were counted")
    slope = sum(counts) / sum(own)
    each = [(theirs / ours / slope - 1) ** 2 for ours, theirs in zip(own, counts, strict=True) if ours]
    spread = (sum(each) / (len(each) - 1)) ** 0.5 if len(each) > 1 else None
    return CalibratedCounter(model, counter, slope, f"fitted to {len(texts)} texts", spread)


def calibrated_models() -> tuple[str, ...]:
    """Name the models that there is a published slope for.

    Examples
    --------
    >>> calibrated_models()
    ('claude-opus-4-7', 'gemini-2.5-pro')
    """
    return tuple(sorted(_published()))


def published(model: str) -> dict[str, str]:
    """Look up the published slope of a model.

    Examples
    --------
    >>> published("claude-opus-4-7")["slope"]
    '1.611'
    """
    if model not in _published():
        known = ", ".join(calibrated_models())
        raise ValueError(
            f"no published slope for {brief(model)}; there are {known}; use one of them, or fit your own: "
            "budgetkit.calibrate(counter, texts, counts)"
        )
    return _published()[model]


@cache
def _published() -> dict[str, dict[str, str]]:
    return {row["model"]: row for row in read_table("calibrations.csv")}
