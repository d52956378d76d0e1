"""What a provider bills against what was counted: a constant and a slope, and how far they can be trusted.

    billed = constant + slope * counted

The constant is what a request holds that nobody can see (a hidden system prompt, schemas that were not
recorded), the slope how much finer the provider's tokenizer cuts than the one that was counted with. Both are
fitted to readings, by least squares, and tell nothing about content unlike that of the readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetkit.plan.items import Floats

Numbers = Sequence[int] | Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class Bill:
    """Estimate what is billed from what was counted.

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
        """Return the estimate."""
        return round(self.constant + self.slope * counted)

    def interval(self, counted: int) -> tuple[int, int]:
        """Return between which numbers 90 % of the readings lay."""
        estimate = self.constant + self.slope * counted
        return round(estimate + self.low), round(estimate + self.high)


def fit_bill(counted: Numbers, billed: Numbers) -> Bill:
    """Fit a constant and a slope to readings.

    Examples
    --------
    >>> fit_bill([100, 200, 300], [230, 360, 490])
    Bill(constant=100.0, slope=1.3, low=0.0, high=0.0, readings=3)
    """
    x, y = np.asarray(counted, dtype=np.float64), np.asarray(billed, dtype=np.float64)
    if len(x) < 3 or np.ptp(x) == 0:
        raise ValueError(
            f"{len(x)} readings of {len(set(x.tolist()))} different sizes; a constant and a slope need three of "
            "different sizes; give more readings"
        )
    middle = x - x.mean()
    slope = float(middle @ (y - y.mean()) / (middle @ middle))
    constant = float(y.mean() - slope * x.mean())
    # The error of a reading under the fit to all others follows from its leverage.
    leverage = 1 / len(x) + middle**2 / (middle @ middle)
    left_out = (y - constant - slope * x) / np.maximum(1 - leverage, 1e-9)
    low, high = (float(end) for end in np.quantile(left_out, [0.05, 0.95]))
    constant, slope, low, high = (round(number, 9) + 0.0 for number in (constant, slope, low, high))
    return Bill(constant, slope, low, high, len(x))
