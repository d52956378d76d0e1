"""Search for the size of a line that meets a condition.

    size = the smallest n for which so_that(plan(budget with line = n)) holds

A line is the window, a reserve or a section of a budget. If more of a line can only help, or only harm, the size is
found by bisection. If sizes are shares, or a section is dropped whole, a larger window may cut more than a smaller one.
A grid of sizes is then tried first, and the result says so.

Windows are searched up to the size beyond which grants no longer grow
(:func:`budgetkit.plan.reasons.settled_window`). A failed search therefore proves that no window meets the
condition, unless the effect of a larger window on the condition is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, Share, brief, quoted
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.counters import basis_of
from budgetkit.counters import counter as counter_of
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, AnyModel, Setup, preset_of, setup_of
from budgetkit.inputs.conversations import AnyTrace, trace_of, traces_of
from budgetkit.lab.deciding.conditions import Condition, PlannedDemand, nothing_cut
from budgetkit.models import resolve
from budgetkit.plan import allocate_columns
from budgetkit.plan.allocating import allocate_frame
from budgetkit.plan.reasons import nearest_value, settled_window
from budgetkit.trace import DEFAULT_ROLES, Trace

Demands = Mapping[str, int] | pd.DataFrame | Trace | str | PathLike[str] | Iterable[Any]
Find = Literal["smallest", "largest"]
Method = Literal["bisection", "scan"]
_GRID = 1_025  # sizes that a scan tries


@dataclass(frozen=True)
class Solution:
    """The size of a line that meets a condition.

    Parameters
    ----------
    line : str
        The line that was solved for: "window", or the name of a reserve or section.
    value : int, optional
        The size, in tokens; None if no size was found.
    so_that : str
        The condition to meet, in words.
    find : {"smallest", "largest"}
        Whether the smallest or the largest size was searched for.
    method : {"bisection", "scan"}
        Search method: bisection, or a scan of a grid of sizes followed by bisection.
    step : int
        Tokens between two neighbouring sizes of the grid, or 1 for a bisection. A scan may miss a size that is not on
        the grid.
    budget : Budget, optional
        The budget with the size that was found; None if no size was found.
    binds : str
        The obstacle if no size was found, otherwise "".
    is_proved : bool
        Whether a search that finds no size proves that none exists.
    conversations : int
        Number of conversations that support a guarantee about the next conversation; 0 if there is no such guarantee.

    Examples
    --------
    >>> print(Solution("window", 1_110, "nothing is cut", "smallest", "bisection"))
    The smallest window in which nothing is cut is 1,110 tokens.
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
    conversations: int = 0

    @property
    def holds(self) -> bool:
        """True if a size meets the condition."""
        return self.value is not None

    def __str__(self) -> str:
        which = f"{self.line} {'in' if self.line == 'window' else 'with'} which {self.so_that}"
        if self.value is None:
            none = "There is no" if self.is_proved else "Found no"
            return f"{none} {which}: {self.binds}"
        sentence = f"The {self.find} {which} is {self.value:,} tokens"
        if self.conversations:
            sentence += f", judged by {self.conversations:,} conversations"
        if self.method == "scan":
            sentence += f", found by a scan in steps of {self.step:,} tokens"
        return f"{sentence}."


def solve(
    demands: Demands,
    budget: AnyBudget,
    line: str,
    so_that: Condition | None = None,
    *,
    counter: AnyCounter | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
) -> Solution:
    """Find the size of one line that meets a condition.

    Parameters
    ----------
    demands : mapping of str to int, DataFrame, Trace, messages, str, Path, or several of these
        The demand of each section, in tokens: one demand, the turns of a conversation, or several conversations. A
        conversation may also be given as messages, a path or the name of a shipped conversation.
    budget : Budget, str, Path or callable
        The budget to change, a preset, or the name of a preset.
    line : str
        The line to solve for: ``"window"``, a reserve, or a section (its cap).
    so_that : Condition, optional
        The condition; default: :func:`budgetkit.lab.deciding.nothing_cut`.
    counter : str, Model or callable, optional
        The counter of conversations; default: the counter of `model`, or o200k_base.
    model : str or Model, optional
        The model that answers, which determines the window of a preset, the counter and the framing.
    window : int, optional
        A window in tokens that replaces the window of the budget.

    Returns
    -------
    Solution
        The smallest size that meets the condition or, for a reserve, the largest. If a larger window harms the
        condition, the largest size is returned or, for a reserve, the smallest. If no size was found, or if a guarantee
        about the next conversation needs more conversations, `value` is None and `binds` describes the obstacle.

    Raises
    ------
    LookupError
        If the budget has no line with this name.
    ValueError
        If there are no demands, or a number is negative, missing, too large or not whole.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("system"), bk.Allocation("history")])
    >>> print(solve({"system": 500, "history": 9_000}, budget, "window"))
    The smallest window in which nothing is cut is 10,500 tokens.
    >>> solve({"system": 500, "history": 5_000}, budget, "output").value
    2500
    """
    setup = setup_of(budget, counter, None, model, window)
    frame = _frame(demands, setup)
    condition = so_that or nothing_cut()
    search = LineSearch(setup.budget, frame, line)

    # The end to search for, and the range.
    near, far = search.range(condition)
    find: Find = "smallest"
    if (search.kind == "reserve") != (condition.room == "harms"):
        find = "largest"
        if search.kind == "window":
            # The smallest window that holds the reserves and the required sections.
            near = (
                nearest_value(lambda size: search.plan_demands(size) is not None, near, far) or near
            )
        near, far = far, near

    conversations = frame.index.get_level_values(0).nunique()
    binds = condition.lacking(conversations)
    # With too few conversations for a promise, only the given ones are judged.
    value, step = search.size(nothing_cut() if binds else condition, near, far)
    is_proved = condition.room != "unknown" and not binds
    if binds:
        seen = ""
        if value is not None:
            seen = f". The {find} {line} that cuts none of these is {value:,} tokens"
        binds = f"{binds}{seen}."
        value = None
    elif value is None:
        binds = search.binds(far)
    return Solution(
        line=line,
        value=value,
        so_that=condition.name,
        find=find,
        method="bisection" if search.is_monotone else "scan",
        step=step,
        budget=None if value is None else setup.budget.assign(**{line: value}),
        binds=binds,
        is_proved=is_proved and (search.is_monotone or search.kind == "window"),
        conversations=0 if condition.risk is None else conversations,
    )


@dataclass(frozen=True)
class LineSearch:
    """The search for the size of a line, under many demands."""

    budget: Budget
    frame: pd.DataFrame
    line: str

    @cached_property
    def kind(self) -> str:
        """The kind of the line: "window", "reserve" or "allocation"."""
        kinds = {row.name: row.kind for row in self.budget} | {"window": "window"}
        if self.line not in kinds:
            raise LookupError(
                f"Unknown reserve or section {brief(self.line)}. Choose one of: {quoted(kinds)}."
            )
        return kinds[self.line]

    def plan_demands(self, size: int) -> PlannedDemand | None:
        """Plan all demands at one size of the line.

        If the size is invalid, or a request exceeds the window minus the reserves, return None.
        """
        by_section = {str(name): self.frame[name].to_numpy() for name in self.frame.columns}
        try:
            budget = self.budget.assign(**{self.line: size})
            columns = allocate_columns(budget, by_section, len(self.frame))
        except ValueError:  # an invalid size, for example smaller than the caps
            return None
        plans = PlannedDemand(budget, columns, self.frame.index)
        return None if plans.overrun else plans

    def range(self, condition: Condition) -> tuple[int, int]:
        """Return the smallest and the largest size to try."""
        budget = self.budget
        if self.kind == "window":
            largest = self.frame.max() + condition.tokens if len(self.frame) else self.frame.sum()
            needs = {str(name): int(tokens) for name, tokens in largest.items()}
            settled = settled_window(budget, needs)
            if condition.room != "unknown":
                return 1, settled
            return 1, min(MOST_TOKENS, 2 * (settled + budget.reserved + budget.capped))
        if self.kind == "reserve" or budget.deficit != "raise":
            return 0, max(1, budget.window)
        now = next(row.tokens or 0 for row in budget if row.name == self.line)
        return 0, max(1, now + max(0, budget.unclaimed))

    @cached_property
    def is_monotone(self) -> bool:
        """True if more of the line can only help, or only harm."""
        allocations = self.budget.allocations
        if any("drop" in (a.overflow, a.when_full) for a in allocations):
            return False
        if self.kind == "window":
            sizes: list[Any] = [reserve.size for reserve in self.budget.reserves]
            sizes += [size for a in allocations for size in (a.cap, a.floor)]
            return not any(isinstance(size, Share) for size in sizes)
        return self.kind == "reserve" or sum(a.cap is not None for a in allocations) <= 1

    def size(self, condition: Condition, near: int, far: int) -> tuple[int | None, int]:
        """Return the first size that meets a condition, and the grid step.

        Sizes are tried from `near` to `far`. If no size meets the condition, None is returned in place of the size.
        """

        def holds(size: int) -> bool:
            plans = self.plan_demands(size)
            return plans is not None and condition.holds(plans)

        if self.is_monotone:
            return (near if holds(near) else nearest_value(holds, near, far)), 1

        # Scan a grid of sizes from the near end; bisect the gap before the first size that holds.
        grid = np.unique(np.linspace(near, far, _GRID).round().astype("int64"))
        step = int(np.diff(grid).max())
        before = near
        for size in (grid if near <= far else grid[::-1]).tolist():
            if holds(size):
                return (size if size == near else nearest_value(holds, before, size)), step
            before = size
        return None, step

    def binds(self, far: int) -> str:
        """Describe why even the size `far` does not meet the condition."""
        at = f"with {self.line} = {far:,}"
        plans = self.plan_demands(far)
        if plans is None:
            return f"{at}, the reserves, caps and required sections claim more than the window."
        section, column = max(plans.columns.items(), key=lambda pair: int(pair[1]["cut"].sum()))
        if not column["cut"].any():
            return f"the condition is not met even {at}, although nothing is cut."
        cap = plans.budget.caps[section]
        limit = "the tokens left by other sections"
        if cap is not None and (column["limit"] >= cap).any():
            limit = f"its cap of {cap:,} tokens"
        rows = len(self.frame)
        unit = "turns" if "turn" in self.frame.index.names else "demands"
        over = f", summed over {rows:,} {unit}" if rows > 1 else ""
        return f"{at}, {section} still loses {int(column['cut'].sum()):,} tokens to {limit}{over}."


def solve_models(
    traces: AnyTrace,
    models: Iterable[AnyModel],
    preset: str | Callable[..., Budget],
    line: str,
    so_that: Condition | None = None,
) -> pd.DataFrame:
    """Find the size of one line for several models.

    Parameters
    ----------
    traces : sequence of Trace
        The conversations.
    models : iterable of str or Model
        The models or their names.
    preset : str or callable
        A preset's name, or a function that returns the budget for a model.
    line, so_that
        As in :func:`solve`.

    Returns
    -------
    DataFrame
        One row for each model, in the order given, with the columns model, window (of the model, in tokens), value
        (Int64, missing if no size was found), is_within (True if a size was found and, for a window, if it does not
        exceed the model's own window), exact (True if the model's tokens are counted exactly), basis (of the counts:
        "exact", "reconstructed" or "estimate") and sentence (the solution in words).

    Examples
    --------
    >>> import budgetkit as bk
    >>> chats = bk.load_traces("made-up-chats")[:5]
    >>> table = solve_models(chats, ["gpt-5.4", "claude-haiku-4-5"], bk.presets.working_memory, "window")
    >>> table[["model", "window", "value"]].values.tolist()
    [['gpt-5.4', 1050000, 4974], ['claude-haiku-4-5', 200000, 4992]]
    """
    rows = []
    make = preset_of(preset)
    for name in models:
        facts = resolve(name)
        count = counter_of(facts)
        budget = make(facts)
        demands = [
            trace.demand(count, roles=budget.roles or DEFAULT_ROLES) for trace in traces_of(traces)
        ]
        solution = solve(demands, budget, line, so_that)
        value = solution.value
        rows.append(
            {
                "model": facts.name,
                "window": facts.window,
                "value": pd.NA if value is None else value,
                "is_within": value is not None and (line != "window" or value <= facts.window),
                "exact": count.exact,
                "basis": basis_of(count),
                "sentence": str(solution),
            }
        )
    return pd.DataFrame(rows).astype({"value": "Int64"} if rows else {})


def _frame(demands: Demands, setup: Setup) -> pd.DataFrame:
    """Convert demands in any form to one frame."""
    demands = _opened(demands)
    if isinstance(demands, Mapping):
        demands = pd.DataFrame([dict(demands)])
    if isinstance(demands, pd.DataFrame):
        # Invalid numbers raise an error here, because the search takes an error for an invalid size.
        allocate_frame(replace(setup.budget, deficit="signed"), demands)
        if demands.empty:
            raise ValueError("No demands. Pass at least one.")
        return demands
    if isinstance(demands, Trace):
        framing = None if setup.model is None else setup.framing
        return demands.demand(setup.counter, setup.budget.roles or None, framing)
    several: Any = demands
    if not isinstance(several, Iterable):
        forms = "a mapping from section to tokens, a DataFrame of turns, a conversation, or a list of these"
        raise TypeError(f"Invalid demands {brief(demands)}. Pass {forms}.")
    frames = [_frame(demand, setup) for demand in several]
    if not frames:
        raise ValueError("No demands. Pass at least one.")
    together = pd.concat(frames, keys=range(len(frames)), names=["conversation"])
    return together.fillna(0).astype("int64")


def _opened(demands: Any) -> Any:
    """Load conversations that are given as paths, names or messages.

    Demands in any other form are returned unchanged.
    """
    if isinstance(demands, str | PathLike):
        traces = traces_of(demands)
        return traces[0] if len(traces) == 1 else traces
    if isinstance(demands, pd.DataFrame):
        is_conversation = "role" in demands.columns
    elif isinstance(demands, Mapping):
        is_conversation = isinstance(demands.get("messages"), list | tuple)
    else:
        is_list = isinstance(demands, list | tuple) and bool(demands)
        is_conversation = is_list and all(map(_is_message, demands))
    return trace_of(demands) if is_conversation else demands


def _is_message(value: Any) -> bool:
    """Return True if a value looks like a message."""
    if isinstance(value, Mapping):
        return "role" in value or isinstance(value.get("type"), str)
    return hasattr(value, "role") or hasattr(value, "content")
