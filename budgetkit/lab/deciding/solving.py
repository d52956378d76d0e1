"""Solve a budget backwards: the smallest window, the largest reserve, the least cap for which something holds.

    smallest n with  so_that(plan(budget with line = n))      and not with n - 1

Where more of a line can only help, or only harm, the place is found by halving. Where sizes are shares, or a section
is dropped whole, a larger window may cut more; then every size on a grid is tried first, and the answer says so.

Windows are looked for up to the one beyond which none grants more (:func:`budgetkit.plan.why.settled_window`), so
that "no window will do" is said only where it is so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, Share
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.budget.quoting import brief, quoted
from budgetkit.counters import basis_of
from budgetkit.counters import counter as counter_of
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, AnyModel, Setup, preset_of, setup_of
from budgetkit.inputs.conversations import AnyTrace, trace_of, traces_of
from budgetkit.lab.deciding.conditions import (
    Condition,
    Planned,
    conversations_of,
    nothing_cut,
    planned,
)
from budgetkit.models.resolved import resolve
from budgetkit.plan.why import nearest, settled_window
from budgetkit.trace import DEFAULT_ROLES, Trace

Demands = Mapping[str, int] | pd.DataFrame | Trace | str | PathLike[str] | Iterable[Any]
Find = Literal["smallest", "largest"]
Method = Literal["bisection", "scan"]
_GRID = 1_025  # sizes that a scan tries


@dataclass(frozen=True)
class Solution:
    """The size of a line for which a condition holds.

    Parameters
    ----------
    line : str
        "window", a reserve or a section.
    value : int, optional
        The size, in tokens; None where no size was found.
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
        Where no size was found: what is in the way.
    is_proved : bool
        Where no size was found: whether there is none.

    Examples
    --------
    >>> print(Solution("window", 1_110, "nothing is cut", "smallest", "bisection"))
    window 1,110 is the smallest so that nothing is cut.
    """

    line: str
    value: int | None
    so_that: str
    find: Find
    method: Method
    step: int = 1
    budget: Budget | None = None
    binds: str = ""
    is_proved: bool = True

    @property
    def holds(self) -> bool:
        """Whether some size satisfies the condition."""
        return self.value is not None

    def __str__(self) -> str:
        if self.value is None:
            if self.is_proved:
                none = f"No {self.line} will do"
            else:
                none = f"No {self.line} was found"
            return f"{none} so that {self.so_that}: {self.binds}"
        sentence = f"{self.line} {self.value:,} is the {self.find} so that {self.so_that}"
        if self.method == "bisection":
            return f"{sentence}."
        return f"{sentence}, of a scan in steps of {self.step:,} tokens."


def solve(
    demands: Demands,
    budget: AnyBudget,
    line: str,
    so_that: Condition | None = None,
    *,
    counter: AnyCounter | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    find: Find | None = None,
    between: tuple[int, int] | None = None,
) -> Solution:
    """Find the size of one line for which a condition holds.

    Parameters
    ----------
    demands : mapping of str to int, DataFrame, Trace, messages, str, Path, or several of these
        What each section asks for, in tokens: one demand, the turns of a conversation, or several conversations; a
        conversation also as its messages, its file or the name of a shipped one.
    budget : Budget, str, Path or callable
        The budget to change, or a preset or its name.
    line : str
        ``"window"``, a reserve or a section, whose cap is solved for.
    so_that : Condition, optional
        What must hold; :func:`budgetkit.lab.deciding.nothing_cut` when left out.
    find : {"smallest", "largest"}, optional
        Which end to look for: the largest reserve, the largest of what more room harms, else the smallest.
    counter : str, Model or callable, optional
        What counts conversations; that of `model`, else o200k_base, when left out.
    model : str or Model, optional
        The model that answers: its window for a preset, its counter and its framing.
    window : int, optional
        Another window to begin with, in tokens.
    between : tuple of int, optional
        The sizes to look among, in tokens; when left out, windows up to the one beyond which none grants more.

    Returns
    -------
    Solution
        Its value holds, and the next size toward the other end does not; None comes with what binds. A condition
        that promises something of the next conversation has no value where there are too few of them.

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
    setup = setup_of(budget, counter, None, model, window)
    budget = setup.budget
    frame = _frame(demands, setup)
    condition = so_that or nothing_cut()
    kinds = {line_of_budget.name: line_of_budget.kind for line_of_budget in budget} | {
        "window": "window"
    }
    if line not in kinds:
        raise LookupError(
            f"no line {brief(line)} in this budget; its lines are {quoted(kinds)}; name one of them"
        )

    # Which end is looked for, and up to where.
    harms = condition.room == "harms"
    ends: Find = find or ("largest" if (kinds[line] == "reserve") != harms else "smallest")
    low, high = between or _range(budget, frame, line, kinds[line], condition)
    if not 0 <= low < high:
        raise ValueError(
            f"sizes between {low:,} and {high:,}; the first is the smaller, from 0 on; give (0, 8_000)"
        )
    if ends == "largest" and kinds[line] == "window" and between is None:
        # The smallest window that holds the reserves and what is required; below it nothing can be planned.
        low = nearest(lambda size: _can_be_planned(budget, frame, line, size), low, high) or low
    near, far = (low, high) if ends == "smallest" else (high, low)
    is_monotone = _is_monotone(budget, line, kinds[line])

    def search(wanted: Condition) -> tuple[int | None, int]:
        """Return the size for which a condition holds, and the step of the grid."""

        def holds(size: int) -> bool:
            plans = _planned(budget, frame, line, size)
            return plans is not None and not plans.overrun and wanted.holds(plans)

        if not is_monotone:
            return _scan(holds, near, far)
        return (near if holds(near) else nearest(holds, near, far)), 1

    lacking = condition.lacking(len(np.unique(conversations_of(frame.index))))
    if lacking:
        # No promise; what can be said is of the conversations that there are.
        value, step = search(nothing_cut())
        if value is None:
            seen = ""
        else:
            seen = f"; the {ends} {line} that cuts none of these is {value:,}"
        return Solution(
            line=line,
            value=None,
            so_that=condition.name,
            find=ends,
            method="bisection" if is_monotone else "scan",
            step=step,
            binds=f"{lacking}{seen}.",
            is_proved=False,
        )

    value, step = search(condition)
    is_whole = between is None and (is_monotone or kinds[line] == "window")
    return Solution(
        line=line,
        value=value,
        so_that=condition.name,
        find=ends,
        method="bisection" if is_monotone else "scan",
        step=step,
        budget=None if value is None else budget.assign(**{line: value}),
        binds="" if value is not None else _binds(budget, frame, line, far),
        is_proved=is_whole and condition.room != "unknown",
    )


def solve_models(
    traces: AnyTrace,
    models: Iterable[AnyModel],
    preset: str | Callable[..., Budget],
    line: str,
    so_that: Condition | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Find the size of one line for several models, each of which counts the conversations with its own tokenizer.

    Parameters
    ----------
    traces : sequence of Trace
        The conversations.
    models : iterable of str or Model
        By name.
    preset : str or callable
        A preset's name, or a function from a model to its budget.
    line, so_that
        As :func:`solve` takes them.
    **options
        What else :func:`solve` takes: find, between.

    Returns
    -------
    DataFrame
        One row a model, in the order given: model, window (of the model, in tokens), value (Int64, missing where no
        size was found), is_within (whether a window that was found is within the model's own), exact (whether the
        model's tokens are counted exactly), basis (what they rest on: "exact", "reconstructed" or "estimate") and
        sentence.

    Examples
    --------
    >>> import budgetkit as bk
    >>> chats = bk.load_traces("made-up-chats")[:5]
    >>> table = solve_models(chats, ["gpt-4o", "gpt-4.1"], bk.presets.working_memory, "window")
    >>> table[["model", "window", "value"]].values.tolist()
    [['gpt-4o', 128000, 4952], ['gpt-4.1', 1047576, 4952]]
    """
    rows = []
    make = preset_of(preset)
    for name in models:
        facts = resolve(name).facts
        count = counter_of(facts)
        budget = make(facts)
        demands = [
            trace.demand(count, roles=budget.roles or DEFAULT_ROLES) for trace in traces_of(traces)
        ]
        solution = solve(demands, budget, line, so_that, **options)
        rows.append(
            {
                "model": facts.name,
                "window": facts.window,
                "value": pd.NA if solution.value is None else solution.value,
                "is_within": solution.value is not None
                and (line != "window" or solution.value <= facts.window),
                "exact": count.exact,
                "basis": basis_of(count),
                "sentence": str(solution),
            }
        )
    if rows:
        return pd.DataFrame(rows).astype({"value": "Int64"})
    return pd.DataFrame(rows)


def _frame(demands: Demands, setup: Setup) -> pd.DataFrame:
    """Put demands into one frame; of several conversations the first level of the index is their number."""
    demands = _opened(demands)
    if isinstance(demands, pd.DataFrame):
        return demands
    if isinstance(demands, Trace):
        framing = None if setup.model is None else setup.framing
        return demands.demand(setup.counter, setup.budget.roles or None, framing)
    if isinstance(demands, Mapping):
        return pd.DataFrame([dict(demands)])
    several: Any = demands
    if not isinstance(several, Iterable):
        forms = "a mapping from section to tokens, a DataFrame of turns, a conversation, and a list of these"
        raise TypeError(f"demands of {brief(demands)}; known are {forms}; give one of these")
    frames = [_frame(demand, setup) for demand in several]
    if not frames:
        raise ValueError(
            "no demands; what is solved for is read off what sections ask for; give at least one"
        )
    return (
        pd.concat(frames, keys=range(len(frames)), names=["conversation"])
        .fillna(0)
        .astype(np.int64)
    )


def _opened(demands: Any) -> Any:
    """Return the conversations of a file or of a shipped name, and those that are passed as messages; others as are."""
    if isinstance(demands, str | PathLike):
        traces = traces_of(demands)
        return traces[0] if len(traces) == 1 else traces
    if isinstance(demands, pd.DataFrame):
        is_conversation = "role" in demands.columns
    elif isinstance(demands, Mapping):
        is_conversation = isinstance(demands.get("messages"), list | tuple)
    else:
        is_conversation = bool(demands) and isinstance(demands, list | tuple)
        is_conversation = is_conversation and all(map(_is_spoken, demands))
    return trace_of(demands) if is_conversation else demands


def _is_spoken(value: Any) -> bool:
    """Say whether a value is a message: it says who speaks, or of which type it is."""
    if isinstance(value, Mapping):
        return "role" in value or isinstance(value.get("type"), str)
    return hasattr(value, "role") or hasattr(value, "content")


def _range(
    budget: Budget, frame: pd.DataFrame, line: str, kind: str, condition: Condition
) -> tuple[int, int]:
    """Return the sizes among which something can change: a cap may grow by what no other line claims."""
    if kind == "window":
        needs = {
            str(name): int(frame[name].max()) + condition.tokens if len(frame) else 0
            for name in frame.columns
        }
        settled = settled_window(budget, needs)
        if condition.room != "unknown":
            return 1, settled
        return 1, min(MOST_TOKENS, 2 * (settled + budget.reserved + budget.capped))
    if kind == "reserve" or budget.deficit != "raise":
        return 0, max(1, budget.window)
    now = next(
        line_of_budget.tokens or 0 for line_of_budget in budget if line_of_budget.name == line
    )
    return 0, max(1, now + max(0, budget.unclaimed))


def _planned(budget: Budget, frame: pd.DataFrame, line: str, size: int) -> Planned | None:
    try:
        return planned(budget.assign(**{line: size}), frame)
    except ValueError:  # the budget refuses such a size: its caps do not fit, say
        return None


def _can_be_planned(budget: Budget, frame: pd.DataFrame, line: str, size: int) -> bool:
    plans = _planned(budget, frame, line, size)
    return plans is not None and not plans.overrun


def _is_monotone(budget: Budget, line: str, kind: str) -> bool:
    """Say whether more of a line can only help one side: whole numbers of tokens, and sections cut anywhere."""
    sizes = [reserve.size for reserve in budget.reserves]
    sizes += [
        size
        for allocation in budget.allocations
        for size in (allocation.cap, allocation.floor)
        if size
    ]
    has_shares = any(isinstance(size, Share) for size in sizes)
    is_cut_anywhere = all(
        a.overflow == "truncate" and a.when_full == "truncate" for a in budget.allocations
    )
    if kind == "window":
        return is_cut_anywhere and not has_shares
    capped = [allocation for allocation in budget.allocations if allocation.cap is not None]
    return is_cut_anywhere and (kind != "allocation" or len(capped) <= 1)


def _scan(holds: Callable[[int], bool], near: int, far: int) -> tuple[int | None, int]:
    """Try a grid of sizes from the near end on, and halve the first gap at whose far side the condition holds."""
    grid = np.unique(np.linspace(near, far, _GRID).round().astype(np.int64))
    ordered = [int(size) for size in (grid if near <= far else grid[::-1])]
    step = max(abs(b - a) for a, b in zip(ordered, ordered[1:], strict=False))
    for place, size in enumerate(ordered):
        if holds(size):
            return (size if place == 0 else nearest(holds, ordered[place - 1], size)), step
    return None, step


def _binds(budget: Budget, frame: pd.DataFrame, line: str, far: int) -> str:
    """Say which section still loses most at the most favourable end, and to which limit."""
    plans: Any = _planned(budget, frame, line, far)
    if plans is None or plans.overrun:
        return f"with {line} at {far:,} the reserves, caps and required sections claim more than the window."
    section, column = max(plans.columns.items(), key=lambda pair: int(pair[1]["cut"].sum()))
    if not column["cut"].any():
        return f"even with {line} at {far:,} it does not hold, though nothing is cut."
    cap = plans.budget.caps[section]
    is_capped = cap is not None and (column["limit"] >= cap).any()
    if is_capped:
        limit = f"its cap of {cap:,} tokens"
    else:
        limit = "what others leave it"
    return f"with {line} at {far:,} {section} still loses {int(column['cut'].sum()):,} tokens to {limit}."
