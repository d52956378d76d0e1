"""Solve a budget backwards: the smallest window, the largest reserve, the least cap for which something holds.

    smallest n with  so_that(plan(budget with line = n))      and not with n - 1

Where more of a line can only help, or only harm, the place is found by halving. Where sizes are shares, or a section
is dropped whole, a larger window may cut more; then every size on a grid is tried first, and the answer says so.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, Share
from budgetkit.budget.quoting import brief, quoted
from budgetkit.deciding.conditions import Condition, Planned, nothing_cut, planned
from budgetkit.plan.why import nearest

Demands = Mapping[str, int] | pd.DataFrame | Iterable[pd.DataFrame]
Find = Literal["smallest", "largest"]
_GRID = 1_025  # sizes that a scan tries


@dataclass(frozen=True)
class Solution:
    """The size of a line for which a condition holds.

    Parameters
    ----------
    line : str
        "window", a reserve or a section.
    value : int, optional
        The size, in tokens; None where no size will do.
    so_that : str
        The condition, in words.
    find : {"smallest", "largest"}
        Which end was looked for.
    method : {"bisection", "scan"}
        How: by halving, or by trying a grid of sizes and halving where it flips.
    step : int
        Tokens between two sizes of the grid; between them a scan may have missed a size that does. 1 by bisection.
    budget : Budget, optional
        The budget with that size.
    binds : str
        Where no size will do: what is in the way.
    """

    line: str
    value: int | None
    so_that: str
    find: Find
    method: Literal["bisection", "scan"]
    step: int = 1
    budget: Budget | None = None
    binds: str = ""

    @property
    def holds(self) -> bool:
        """Whether there is such a size."""
        return self.value is not None

    def __str__(self) -> str:
        if self.value is None:
            return f"No {self.line} will do so that {self.so_that}: {self.binds}"
        said = f"{self.line} {self.value:,} is the {self.find} so that {self.so_that}"
        return f"{said}." if self.method == "bisection" else f"{said}, of a scan in steps of {self.step:,} tokens."


def solve(
    demands: Demands,
    budget: Budget,
    line: str,
    so_that: Condition | None = None,
    *,
    find: Find | None = None,
    between: tuple[int, int] | None = None,
) -> Solution:
    """Find the size of one line for which a condition holds.

    Parameters
    ----------
    demands : mapping of str to int, DataFrame, or several DataFrames
        What each section asks for, in tokens: one demand, the turns of a conversation, or several conversations.
    budget : Budget
        The budget to change.
    line : str
        ``"window"``, a reserve or a section, whose cap is solved for.
    so_that : Condition, optional
        What must hold; :func:`budgetkit.deciding.nothing_cut` when left out.
    find : {"smallest", "largest"}, optional
        Which end to look for: the largest reserve, else the smallest.
    between : tuple of int, optional
        The sizes to look among, in tokens; up to what all sections ask for together when left out.

    Returns
    -------
    Solution
        Its value holds, and the next size toward the other end does not; None comes with what binds.

    Raises
    ------
    LookupError
        If there is no line of that name.
    ValueError
        If the range is empty.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("system"), bk.Allocation("history")])
    >>> print(solve({"system": 500, "history": 9_000}, budget, "window"))
    window 10,500 is the smallest so that nothing is cut.
    >>> solve({"system": 500, "history": 5_000}, budget, "output").value
    2500
    """
    frame, condition = _frame(demands), so_that or nothing_cut()
    kinds = {each.name: each.kind for each in budget} | {"window": "window"}
    if line not in kinds:
        raise LookupError(f"no line {brief(line)} in this budget; its lines are {quoted(kinds)}; name one of them")
    ends: Find = find or ("largest" if kinds[line] == "reserve" else "smallest")
    low, high = between or _range(budget, frame, line, kinds[line])
    if not 0 <= low < high:
        raise ValueError(f"sizes between {low:,} and {high:,}; the first is the smaller, from 0 on; give (0, 8_000)")

    def holds(size: int) -> bool:
        found = _planned(budget, frame, line, size)
        return found is not None and not found.overrun and condition.holds(found)

    near, far = (low, high) if ends == "smallest" else (high, low)
    if _is_monotone(budget, line, kinds[line]):
        value, method, step = (near if holds(near) else nearest(holds, near, far)), "bisection", 1
    else:
        value, step = _scan(holds, near, far)
        method = "scan"
    changed = None if value is None else budget.assign(**{line: value})
    binds = "" if value is not None else _binds(budget, frame, line, far, condition)
    return Solution(line, value, condition.name, ends, method, step, changed, binds)  # type: ignore[arg-type]


def _frame(demands: Demands) -> pd.DataFrame:
    """Put demands into one frame; of several conversations the first level of the index is their number."""
    if isinstance(demands, pd.DataFrame):
        return demands
    if isinstance(demands, Mapping):
        return pd.DataFrame([dict(demands)])
    frames = [_frame(each) for each in demands]
    return pd.concat(frames, keys=range(len(frames)), names=["conversation"]).fillna(0).astype(np.int64)


def _range(budget: Budget, frame: pd.DataFrame, line: str, kind: str) -> tuple[int, int]:
    """Return the sizes among which something can change: a cap may grow by what no other line claims."""
    most = int(frame.sum(axis=1).max()) if len(frame) else 0
    if kind == "window":
        return 1, 2 * (most + budget.reserved + budget.capped + 1)
    if kind == "reserve" or budget.deficit != "raise":
        return 0, max(1, budget.window)
    now = next(each.tokens or 0 for each in budget if each.name == line)
    return 0, max(1, now + max(0, budget.unclaimed))


def _planned(budget: Budget, frame: pd.DataFrame, line: str, size: int) -> Planned | None:
    try:
        return planned(budget.assign(**{line: size}), frame)
    except ValueError:  # the budget refuses such a size: its caps do not fit, say
        return None


def _is_monotone(budget: Budget, line: str, kind: str) -> bool:
    """Say whether more of a line can only help one side: whole numbers of tokens, and sections cut anywhere."""
    sizes = [r.size for r in budget.reserves] + [size for a in budget.allocations for size in (a.cap, a.floor)]
    whole = not any(isinstance(size, Share) for size in sizes) or kind != "window"
    anywhere = all(a.overflow == "truncate" and a.when_full == "truncate" for a in budget.allocations)
    return whole and anywhere and (kind != "allocation" or sum(a.cap is not None for a in budget.allocations) <= 1)


def _scan(holds: Callable[[int], bool], near: int, far: int) -> tuple[int | None, int]:
    """Try a grid of sizes from the near end on, and halve the first gap at whose far side the condition holds."""
    grid = np.unique(np.linspace(near, far, _GRID).round().astype(np.int64))
    ordered = [int(size) for size in (grid if near <= far else grid[::-1])]
    step = max(abs(b - a) for a, b in zip(ordered, ordered[1:], strict=False))
    for place, size in enumerate(ordered):
        if holds(size):
            return (size if place == 0 else nearest(holds, ordered[place - 1], size)), step
    return None, step


def _binds(budget: Budget, frame: pd.DataFrame, line: str, far: int, condition: Condition) -> str:
    """Say which section still loses most at the most favourable end, and to which limit."""
    found: Any = _planned(budget, frame, line, far)
    if found is None or found.overrun:
        return f"with {line} at {far:,} the reserves, caps and required sections claim more than the window."
    section, column = max(found.columns.items(), key=lambda each: int(each[1]["cut"].sum()))
    if not column["cut"].any():
        return f"even with {line} at {far:,} it does not hold, though nothing is cut."
    cap = found.budget.caps[section]
    is_capped = cap is not None and (column["limit"] >= cap).any()
    limit = f"its cap of {cap:,} tokens" if is_capped else "what others leave it"
    return f"with {line} at {far:,} {section} still loses {int(column['cut'].sum()):,} tokens to {limit}."
