"""What a token of each line is worth: what some tokens more for it would keep, found by planning again."""

from dataclasses import replace

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation
from budgetkit.plan.fitting import fit
from budgetkit.plan.items import Items
from budgetkit.plan.plan import Plan


def token_prices(plan: Plan, more: int = 100) -> pd.DataFrame:
    """Say for every line what a few tokens more for it would keep.

    Parameters
    ----------
    plan : Plan
        A plan of items, or of plain numbers.
    more : int, default 100
        How many tokens: a larger window, a smaller reserve, a larger cap.

    Returns
    -------
    DataFrame
        One row a line, the one that keeps most first. Columns line, change (tokens), tokens (int64, kept beyond
        the present plan), items (int64), score (float64, sum over kept items) and gap (float64: score that the
        best choice for each section of that plan would hold beyond it; 0 for plans of numbers).

    Raises
    ------
    ValueError
        If the plan was loaded and cannot be planned again, or `more` is not above 0.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(1_000, [bk.Reserve("output", 200)], [bk.Allocation("notes", 300), bk.Allocation("history")])
    >>> plan = bk.allocate(budget, {"notes": 500, "history": 600})
    >>> token_prices(plan)[["line", "change", "tokens"]].values.tolist()
    [['window', 100, 100], ['output', -100, 100], ['notes', 100, 0]]
    """
    if plan.replan is None or more < 1:
        raise ValueError(
            f"prices of {more} tokens of a plan; a plan that was loaded cannot be planned again, and tokens are at "
            "least 1; fit its items again, and ask for 100"
        )
    what = plan.decisions.columns if len(plan.decisions) else {g.section: g.demand for g in plan.grants}
    rows = []
    for line, change, budget in _changes(plan.budget, more):
        other = plan.replan(budget, what)
        kept = [_kept(each) for each in (plan, other)]
        rows.append((line, change, *(after - before for before, after in zip(*kept, strict=True)), _gap(other)))
    table = pd.DataFrame(rows, columns=["line", "change", "tokens", "items", "score", "gap"])
    return table.sort_values(["tokens", "score"], ascending=False, kind="stable", ignore_index=True)


def _changes(budget: Budget, more: int) -> list[tuple[str, int, Budget]]:
    """List each line with the change that gives it room."""
    free = replace(budget, deficit="signed")
    found = [("window", more, free.assign(window=budget.window + more))]
    for line in budget:
        if line.kind == "reserve" and line.tokens:
            change = -min(more, line.tokens)
            found.append((line.name, change, free.assign(**{line.name: line.tokens + change})))
        elif line.tokens is not None and line.kind == "allocation":
            found.append((line.name, more, free.assign(**{line.name: line.tokens + more})))
    return found


def _kept(plan: Plan) -> tuple[int, int, float]:
    kept = plan.decisions.kept
    scores = np.array([item.score for item in plan.decisions.columns.items], dtype=np.float64)
    return plan.used, int((kept > 0).sum()), float(scores[kept > 0].sum())


def _gap(plan: Plan) -> float:
    """Return the score that a knapsack of each section's own limit would hold beyond what stays."""
    gap = 0.0
    for grant in plan.grants:
        rows = plan.decisions.columns.rows(grant.section)
        items = [plan.decisions.columns.items[row] for row in rows]
        if len(items) < 2 or not any(item.score for item in items):
            continue
        alone = Allocation(grant.section, keep="best", fill="knapsack")
        best = fit(Budget(max(grant.limit, 1), (), [alone]), Items(items))
        now = sum(item.score for item, row in zip(items, rows, strict=True) if plan.decisions.kept[row])
        gap += max(0.0, _kept(best)[2] - now)
    return round(gap, 9)
