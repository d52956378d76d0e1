"""Statistical guarantees about the next conversation, source or project.

Observed numbers describe the observed data; a guarantee covers the next number. A *unit* is one independent
observation, such as a conversation. If the next number comes from the same distribution as the n numbers before it, the
next number falls into each of the n + 1 gaps between those n numbers with equal probability.

    next <= k-th smallest of n      with a chance of k / (n + 1); a given risk needs  n + 1 >= 1 / risk,
                                    which is 19 units for 5 % and 99 units for 1 %
    mean of the next loss <= risk   where  (sum of n losses + 1) / (n + 1) <= risk, each loss between 0 and 1
                                    (A. N. Angelopoulos and others, "Conformal risk control", 2022)
    true ratio of two sums          lies below the ratios of all subsets of the units with a chance of 1 / 2^n; a
                                    95 % interval needs 6 units
                                    (J. A. Hartigan, "Using subsample values as typical values", 1969)

Units must be independent of each other, so use conversations instead of messages, and sources instead of texts. If n is
too small for a guarantee, :func:`lacking` returns an explanation to show instead of the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Final

from budgetkit.budget.amounts import exact_number
from budgetkit.budget.quoting import brief

__all__ = [
    "FEWEST_FOR_A_GAIN",
    "allowed_misses",
    "is_controlled",
    "lacking",
    "needed",
    "range_of",
    "typical",
    "upper",
]

#: Conversations needed for a 95 % interval of a gain: two of their 2^6 subsets are less than 5 %.
FEWEST_FOR_A_GAIN: Final = 6


def needed(risk: float) -> int:
    """Return the smallest number of units that supports a guarantee.

    Parameters
    ----------
    risk : float
        Probability that the next unit misses the bound, between 0 and 1.

    Returns
    -------
    int
        The smallest sufficient number of units.

    Raises
    ------
    ValueError
        If the risk is not between 0 and 1.

    Examples
    --------
    >>> needed(0.05), needed(0.01), needed(0.1)
    (19, 99, 9)
    """
    return ceil(1 / _checked(risk)) - 1


def lacking(units: int, risk: float, kind: str = "conversations") -> str:
    """Explain that there are too few units for a guarantee.

    Parameters
    ----------
    units : int
        Number of units.
    risk : float
        Accepted probability that the next unit misses the bound.
    kind : str
        Plural noun for the units, such as "conversations".

    Returns
    -------
    str
        A clause without a full stop, or "" if there are enough units.

    Examples
    --------
    >>> lacking(8, 0.05)
    'a promise at 5 % risk needs 19 conversations, but there are 8'
    >>> lacking(19, 0.05)
    ''
    """
    fewest = needed(risk)
    if units >= fewest:
        return ""
    verb = "is" if units == 1 else "are"
    return f"a promise at {100 * risk:g} % risk needs {fewest:,} {kind}, but there {verb} {units:,}"


def range_of(units: int, risk: float, kind: str) -> str:
    """Describe an interval as a guarantee or as an observed range.

    The interval is an observed range if there are too few units for a guarantee.

    Parameters
    ----------
    units : int
        Number of units.
    risk : float
        Probability that the next unit lies beyond one end of the interval.
    kind : str
        Plural noun for the units, such as "conversations".

    Returns
    -------
    str
        A phrase without a full stop.

    Examples
    --------
    >>> range_of(17, 0.05, "projects"), range_of(40, 0.05, "projects")
    ('range observed in 17 projects', 'for 90 % of the next projects, based on 40')
    """
    if lacking(units, risk, kind):
        one = kind.removesuffix("s") if units == 1 else kind
        return f"range observed in {units:,} {one}"
    return f"for {100 - 200 * risk:g} % of the next {kind}, based on {units:,}"


def allowed_misses(units: int, risk: float) -> int:
    """Return the number of observed units that may miss a bound.

    Parameters
    ----------
    units : int
        Number of units.
    risk : float
        Accepted probability that the next unit misses the bound.

    Returns
    -------
    int
        Maximum number of misses, or -1 if there are too few units for any bound.

    Examples
    --------
    >>> allowed_misses(19, 0.05), allowed_misses(39, 0.05), allowed_misses(8, 0.05)
    (0, 1, -1)
    """
    return floor((units + 1) * _checked(risk)) - 1


def upper(numbers: Sequence[float], risk: float) -> float | None:
    """Return an upper bound for the next number, at a given risk.

    Parameters
    ----------
    numbers : sequence of float
        One number per unit.
    risk : float
        Probability that the next number exceeds the bound.

    Returns
    -------
    float or None
        One of the numbers, or None if there are too few numbers for a bound.

    Examples
    --------
    >>> upper(range(1, 20), 0.05), upper(range(1, 19), 0.05)
    (19, None)
    """
    above = allowed_misses(len(numbers), risk)
    if above < 0:
        return None
    return sorted(numbers)[-1 - above]


def is_controlled(losses: Sequence[float], risk: float) -> bool:
    """Return True if the expected next loss is at most the risk.

    Parameters
    ----------
    losses : sequence of float
        One loss per unit, between 0 and 1, such as the share of a conversation's answers that are cut short.
    risk : float
        Maximum expected loss of the next unit.

    Returns
    -------
    bool
        True if the mean of the losses and one extra loss of 1 is at most the risk.

    Examples
    --------
    >>> is_controlled([0.0] * 19, 0.05), is_controlled([0.0] * 18, 0.05), is_controlled([0.0] * 38 + [1.0], 0.05)
    (True, False, True)
    """
    mean = Fraction(sum(losses) + 1) / (len(losses) + 1)
    return float(mean) <= float(_checked(risk)) + 1e-12


def typical(ratios: Sequence[float], risk: float = 0.05) -> tuple[float, float] | None:
    """Return a ratio's confidence interval, computed from the ratios of subsets.

    Parameters
    ----------
    ratios : sequence of float
        One ratio per random subset of the units (each included with probability 1/2), or one per non-empty subset.
    risk : float
        Probability that the true ratio lies outside the interval.

    Returns
    -------
    tuple of float, or None
        Lower and upper bound, or None if there are too few subsets.

    Examples
    --------
    >>> typical(range(1, 64)), typical(range(1, 32))
    ((1, 63), None)
    """
    outside = floor((len(ratios) + 1) * _checked(risk) / 2)
    if outside < 1:
        return None
    ordered = sorted(ratios)
    return ordered[outside - 1], ordered[-outside]


def _checked(risk: object) -> Fraction:
    exact = exact_number(risk)
    if isinstance(risk, str) or exact is None or not 0 < exact < 1:
        raise ValueError(
            f"Invalid risk {brief(risk)}. Pass a probability between 0 and 1, such as 0.05."
        )
    return exact
