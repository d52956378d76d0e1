"""The linear relation between counted and billed tokens, fitted to readings.

    billed = constant + slope * counted

A reading is a request with its counted and its billed tokens.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from budgetkit.plan import Floats

Numbers = Sequence[int] | Sequence[float] | Floats
_MOST = 400  # readings that are paired, spread evenly over their sizes
_MOST_LEFT_OUT = 40
_FAR = 8  # robust standard deviations


@dataclass(frozen=True)
class Bill:
    """A linear relation between counted and billed tokens.

    Parameters
    ----------
    constant : float
        Billed tokens of a request in addition to its counted tokens.
    slope : float
        Billed tokens per counted token.
    low, high : float
        The 5 % and 95 % quantiles of the residuals, in tokens. Each residual is from a line fitted to other readings.
    readings : int
        Number of readings (requests with a count and a bill), including outliers.

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
        """Estimate the billed tokens of a request.

        Parameters
        ----------
        counted : int
            Number of tokens counted in the request.

        Returns
        -------
        int
            Number of tokens that the provider is expected to bill.
        """
        return round(self.constant + self.slope * counted)

    def interval(self, counted: int) -> tuple[int, int]:
        """Return a 90 % interval of the billed tokens of a request.

        Parameters
        ----------
        counted : int
            Number of tokens counted in the request.

        Returns
        -------
        tuple of int
            The lower and the upper end, in tokens.
        """
        estimate = self.constant + self.slope * counted
        return round(estimate + self.low), round(estimate + self.high)


def fit_bill(counted: Numbers, billed: Numbers, projects: Sequence[Hashable] | None = None) -> Bill:
    """Fit a constant and a slope to counts and bills.

    Parameters
    ----------
    counted : sequence of float, shape (readings,)
        Number of tokens counted in each request.
    billed : sequence of float, shape (readings,)
        Tokens that the provider billed for each request, including cached tokens.
    projects : sequence, shape (readings,), optional
        The project of each reading. If given, the interval is cross-validated over projects, so it holds for a new
        project; otherwise, it is cross-validated over single readings.

    Returns
    -------
    Bill
        The least-squares fit. Outliers, which are far from the Theil-Sen median line, are left out.

    Raises
    ------
    ValueError
        If there are fewer than three readings, all counts are equal, or the lengths differ.

    Examples
    --------
    >>> fit_bill([100, 200, 300], [230, 360, 490])
    Bill(constant=100.0, slope=1.3, low=0.0, high=0.0, readings=3)
    """
    x = np.asarray(counted, "float64")
    y = np.asarray(billed, "float64")
    if len(x) != len(y) or len(x) < 3 or np.ptp(x) == 0:
        readings = f"counts: {len(x)}, different counts: {len(set(x.tolist()))}, bills: {len(y)}"
        raise ValueError(
            f"Cannot fit a line ({readings}). Pass at least three counts, not all equal, with a bill each."
        )
    constant, slope = _fitted(x, y)

    # The distance of each reading from a line fitted without its group; of many groups, several are left out at a time.
    groups = list(range(len(x))) if projects is None else list(projects)
    order = {group: at for at, group in enumerate(dict.fromkeys(groups))}
    parts = min(len(order), _MOST_LEFT_OUT)
    part = np.array([order[group] % parts for group in groups])
    left_out = np.zeros(len(x))
    for number in range(parts):
        out = part == number
        rest = _fitted(x[~out], y[~out]) if np.ptp(x[~out]) > 0 else (constant, slope)
        left_out[out] = y[out] - rest[0] - rest[1] * x[out]

    low, high = (float(end) for end in np.quantile(left_out, [0.05, 0.95]))
    constant, slope, low, high = (round(number, 9) + 0.0 for number in (constant, slope, low, high))
    return Bill(constant, slope, low, high, len(x))


def theil_sen(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the intercept and slope of a Theil-Sen median line.

    If there are more than 400 points, an even sample of 400 determines the slope.

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
    """Fit a line by least squares, without outliers.

    An outlier is far from the Theil-Sen median line. If all other readings have the same count, the median line is
    returned.
    """
    constant, slope = theil_sen(x, y)
    off = np.abs(y - constant - slope * x)
    near = off <= max(_FAR * 1.4826 * float(np.median(off)), 1e-9 * float(np.abs(y).max()))
    if np.ptp(x[near]) == 0:
        return constant, slope
    slope, constant = np.polyfit(x[near], y[near], 1).tolist()
    return constant, slope
