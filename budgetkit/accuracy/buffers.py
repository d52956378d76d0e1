"""Buffers: what share of a window a counter's errors ask to hold back, and what happens without.

ratio  = sum of exact / sum of estimates            of a window filled with documents
safety = 1 - 1 / (quantile of the ratio at 1 - risk)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.accuracy.simulation import FilledWindows, filled_windows, ratios
from budgetkit.budget import Budget
from budgetkit.budget.allocation import Reserve
from budgetkit.budget.amounts import Share, check_tokens
from budgetkit.budget.quoting import brief, quoted

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A safety buffer that a risk asks for.

    Parameters
    ----------
    share : float
        Smallest share of the window to hold back.
    low, high : float
        Its 95 % interval, from resampling the documents.
    risk : float
        Chance of an overflow that was accepted.
    window : int
        In tokens.
    documents : int
        On how many it rests.
    counter : str
        The counter it is for.
    warning : str
        Why it cannot be relied on; empty if it can.

    Examples
    --------
    >>> Buffer(0.0512, 0.04, 0.06, 0.05, 8_192, 500, "chars/4").reserve
    Reserve('safety', Share(0.052))
    """

    share: float
    low: float
    high: float
    risk: float
    window: int
    documents: int
    counter: str
    warning: str = ""

    @property
    def reserve(self) -> Reserve:
        """The buffer as the safety reserve of a budget, rounded up to a thousandth of the window."""
        return Reserve("safety", Share(math.ceil(round(self.share * 1_000, 6)) / 1_000))


def buffer_for(
    errors: pd.DataFrame, window: int, risk: float = 0.05, together: str | None = None, seed: int = 0
) -> Buffer:
    """Find the smallest safety share under which a window overflows with at most that chance.

    Parameters
    ----------
    errors : DataFrame
        What :func:`budgetkit.accuracy.compare` returns, of one counter.
    window : int
        In tokens.
    risk : float
        Accepted chance of an overflow, between 0 and 1.
    together : str, optional
        A column, such as "class" or "source": every window is filled from one value of it, as a window of one
        conversation or project is. By default documents of all kinds mix, and their errors cancel most.
    seed : int
        Of the random windows.

    Returns
    -------
    Buffer
        With its interval, and a warning if the documents are too few to say.

    Raises
    ------
    ValueError
        If the errors are of several counters or none, or the risk is not between 0 and 1.

    Examples
    --------
    >>> rows = {"counter": "mine", "exact": [110, 100, 90] * 40, "estimate": [100] * 120}
    >>> buffer_for(pd.DataFrame(rows), window=100, risk=0.05).share.__round__(3)
    0.091
    """
    _check_risk(risk)
    names = errors["counter"].unique()
    if len(names) != 1:
        raise ValueError(f"errors of {len(names)} counters ({quoted(names)}); a buffer is for one; choose its rows")
    check_tokens("window", window)
    filled = filled_windows(errors, window, together, seed)
    return read_off(filled, errors, window, risk, together)


def read_off(
    filled: FilledWindows, errors: pd.DataFrame, window: int, risk: float, together: str | None = None
) -> Buffer:
    """Read the buffer of a risk off windows that are filled already; see :func:`buffer_for`.

    Parameters
    ----------
    filled : FilledWindows
        Filled with these errors, this window and `together`.
    errors, window, risk, together
        As in :func:`buffer_for`.

    Returns
    -------
    Buffer
        The same that :func:`buffer_for` finds.

    Raises
    ------
    ValueError
        If the risk is not between 0 and 1.

    Examples
    --------
    >>> errors = pd.DataFrame({"counter": "mine", "exact": [110, 100, 90] * 40, "estimate": [100] * 120})
    >>> filled = filled_windows(errors, 100)
    >>> [read_off(filled, errors, 100, risk).share.__round__(3) for risk in (0.05, 0.5)]
    [0.091, 0.0]
    """
    _check_risk(risk)
    warning = _doubt(errors, window, risk, together)
    name = str(errors["counter"].iloc[0])
    return Buffer(filled.share(risk), *filled.interval(risk), risk, window, len(errors), name, warning)


def _check_risk(risk: float) -> None:
    if not 0 < risk < 1:
        raise ValueError(
            f"a risk of {brief(risk)}; a risk is a chance between 0 and 1; give 0.05 for one window in twenty"
        )


def _doubt(errors: pd.DataFrame, window: int, risk: float, together: str | None) -> str:
    """Say when documents are too few: a tail needs some ten cases beyond it, a sum of many at least thirty."""
    n = len(errors) if together is None else errors[together].nunique()
    in_window = 1 if together else max(1, round(window / max(errors["estimate"].mean(), 1)))
    needed = max(30, math.ceil(10 / risk)) if in_window < 5 else 30
    what = "documents" if together is None else f"values of {brief(together)}"
    return "" if n >= needed else f"{n} {what} are too few for a risk of {risk:g}; {needed} are needed; add texts"


def consequences(
    budgets: Budget | Mapping[str, Budget], errors: pd.DataFrame, together: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """Say what counting with each counter does to a budget's window.

    The window is filled until the counter says that the usable part is full.

    Parameters
    ----------
    budgets : Budget or mapping of str to Budget
        One budget, or several by name. A reserve named "safety" may be used up before anything overflows.
    errors : DataFrame
        What :func:`budgetkit.accuracy.compare` returns, of one counter or several.
    together : str, optional
        As in :func:`buffer_for`.
    seed : int
        Of the random windows.

    Returns
    -------
    DataFrame
        One row a budget and counter: window, usable, safety and filled (the mean of what is really used) in
        tokens, wasted (mean tokens of the usable part that stay empty), overflow (the chance of one),
        over (mean tokens above, when there is one).

    Examples
    --------
    >>> rows = {"counter": "mine", "exact": [50] * 9, "estimate": [100] * 9}
    >>> consequences(Budget(1_000), pd.DataFrame(rows))[["filled", "wasted", "overflow"]].to_dict("list")
    {'filled': [500.0], 'wasted': [500.0], 'overflow': [0.0]}
    """
    named = {budgets.name or "budget": budgets} if isinstance(budgets, Budget) else budgets
    rows = []
    for budget_name, budget in named.items():
        for counter_name, group in errors.groupby("counter", observed=True):
            filled = ratios(group, max(budget.usable, 1), together, seed)
            rows.append({"budget": budget_name, "counter": counter_name} | _outcome(budget, filled))
    return pd.DataFrame(rows)


def _outcome(budget: Budget, ratio: Floats) -> dict[str, float]:
    usable, safety = max(budget.usable, 0), budget.sizes.get("safety", 0)
    used = usable * ratio
    over = used - usable - safety
    sizes = {"window": budget.window, "usable": usable, "safety": safety, "filled": used.mean()}
    above = over[over > 0].mean() if (over > 0).any() else 0.0
    return sizes | {"wasted": np.maximum(usable - used, 0).mean(), "overflow": (over > 0).mean(), "over": above}
