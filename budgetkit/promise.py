"""Promises: the arithmetic from n conversations, sources or projects to the next one.

Observed numbers hold for the observed data. A promise is about the next one, so its arithmetic has n + 1 in it: if the
next number comes as the n before it came, each of the n + 1 gaps between them is as likely as any other.

    next <= k-th smallest of n      with a chance of k / (n + 1), so that a risk needs  n + 1 >= 1 / risk:
                                    19 units for 5 %, 99 for 1 %
    mean of the next loss <= risk   where  (sum of n losses + 1) / (n + 1) <= risk, each loss between 0 and 1
                                    (A. N. Angelopoulos and others, "Conformal risk control", 2022)
    true ratio of two sums          lies below all ratios of sums over random parts with a chance of 1 / 2^n, each unit
                                    in a part or not by a coin: 95 % on both sides need 6 units
                                    (J. A. Hartigan, "Using subsample values as typical values", 1969)

The unit is what comes as a whole: a conversation, not its messages; a source, not its texts. Where n cannot carry a
promise, :func:`lacking` is the sentence that stands in place of the number.
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
    "is_controlled",
    "lacking",
    "allowed_misses",
    "needed",
    "range_of",
    "typical",
    "upper",
]

#: Conversations needed for an interval of a gain at 95 %: two of 2^6 parts are less than 5 in 100.
FEWEST_FOR_A_GAIN: Final = 6


def needed(risk: float) -> int:
    """Return how many units a promise of a risk needs.

    Parameters
    ----------
    risk : float
        Chance that the next one misses it, between 0 and 1.

    Returns
    -------
    int
        The fewest.

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
    """Name the units that a promise lacks.

    Parameters
    ----------
    units : int
        How many there are.
    risk : float
        Accepted chance that the next conversation breaks the promise.
    kind : str
        Their noun, in the plural.

    Returns
    -------
    str
        A sentence without its full stop; empty if there are enough.

    Examples
    --------
    >>> lacking(8, 0.05)
    'a promise of 5 % needs 19 conversations, and there are 8'
    >>> lacking(19, 0.05)
    ''
    """
    fewest = needed(risk)
    if units >= fewest:
        return ""
    verb = "is" if units == 1 else "are"
    return f"a promise of {100 * risk:g} % needs {fewest:,} {kind}, and there {verb} {units:,}"


def range_of(units: int, risk: float, kind: str) -> str:
    """Describe an interval: a promise about the next unit, or the range seen.

    Parameters
    ----------
    units : int
        How many there are.
    risk : float
        Chance that the next one lies beyond one of its ends.
    kind : str
        Their noun, in the plural.

    Returns
    -------
    str
        Words without a full stop.

    Examples
    --------
    >>> range_of(17, 0.05, "projects"), range_of(40, 0.05, "projects")
    ('range seen in 17 projects', 'where 90 % of the next lie, by 40 projects')
    """
    if lacking(units, risk, kind):
        one = kind.removesuffix("s") if units == 1 else kind
        return f"range seen in {units:,} {one}"
    return f"where {100 - 200 * risk:g} % of the next lie, by {units:,} {kind}"


def allowed_misses(units: int, risk: float) -> int:
    """Return the number of units that may miss a bound.

    Parameters
    ----------
    units : int
        How many there are.
    risk : float
        Accepted chance that the next conversation breaks the promise.

    Returns
    -------
    int
        At most so many; -1 where they are too few for any bound.

    Examples
    --------
    >>> allowed_misses(19, 0.05), allowed_misses(39, 0.05), allowed_misses(8, 0.05)
    (0, 1, -1)
    """
    return floor((units + 1) * _checked(risk)) - 1


def upper(numbers: Sequence[float], risk: float) -> float | None:
    """Return the bound that the next number exceeds with at most this chance.

    Parameters
    ----------
    numbers : sequence of float
        One for each unit.
    risk : float
        Chance that the next one lies above.

    Returns
    -------
    float or None
        One of the numbers; None if they are too few.

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
    """Tell whether the next loss is at most the risk on average.

    Parameters
    ----------
    losses : sequence of float
        One for each unit, between 0 and 1: which share of a conversation's answers is cut short, say.
    risk : float
        The most that the next one may lose.

    Returns
    -------
    bool
        Whether the mean of the losses, with one whole loss added, is at most the risk.

    Examples
    --------
    >>> is_controlled([0.0] * 19, 0.05), is_controlled([0.0] * 18, 0.05), is_controlled([0.0] * 38 + [1.0], 0.05)
    (True, False, True)
    """
    mean = Fraction(sum(losses) + 1) / (len(losses) + 1)
    return float(mean) <= float(_checked(risk)) + 1e-12


def typical(ratios: Sequence[float], risk: float = 0.05) -> tuple[float, float] | None:
    """Return the bounds of a true ratio from the ratios of random parts.

    Parameters
    ----------
    ratios : sequence of float
        One per random part, where a coin decides whether each unit is in it; or one for every part but the empty one.
    risk : float
        Chance that the true ratio lies outside.

    Returns
    -------
    tuple of float, or None
        Two of the ratios; None if there are too few parts.

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


def _checked(risk: float) -> Fraction:
    exact = exact_number(risk)
    if exact is None or not 0 < exact < 1:
        raise ValueError(
            f"Invalid risk {brief(risk)}. Pass a chance between 0 and 1, such as 0.05."
        )
    return exact
