"""Sections that can be cut anywhere: what each is granted of a demand in tokens, of one demand or of many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.allocation import check_all
from budgetkit.budget.amounts import MOST_TOKENS, check_tokens
from budgetkit.budget.quoting import brief
from budgetkit.plan.grant import grants_of
from budgetkit.plan.items import Ints
from budgetkit.plan.limits import TAKE, allocate_in_order, granted_by, with_undeclared
from budgetkit.plan.plan import Plan, raise_if_overrun


def allocate(budget: Budget, demand: Mapping[str, int]) -> Plan:
    """Grant tokens to sections that can be cut anywhere.

    Parameters
    ----------
    budget : Budget
        The window and its lines.
    demand : mapping of str to int
        What each section asks for, in tokens; a section that is not named asks for none.

    Returns
    -------
    Plan
        One grant a section.

    Raises
    ------
    LookupError
        If a section is not declared and the budget does not send such sections to the pool.
    ValueError
        If a demand is negative, or the window is overrun and ``deficit="raise"``.

    Examples
    --------
    >>> import budgetkit as bk
    >>> sections = [bk.Allocation("system", required=True), bk.Allocation("history")]
    >>> budget = bk.Budget(1000, [bk.Reserve("output", 200)], sections)
    >>> bk.allocate(budget, {"system": 300, "history": 900})
    Plan(system=300/300, history=500/900, free=0, reserved=200, window=1000)
    """
    if type(demand) is not dict:
        check_all("demand", [demand], Mapping)  # type: ignore[type-abstract]
    budget = with_undeclared(budget, demand)
    demands = {s: _tokens(s, demand.get(s, 0)) for s in budget.sections}
    steps = allocate_in_order(budget, demands, TAKE)
    return raise_if_overrun(Plan(budget, grants_of(budget, demands, steps), replan=allocate))


def allocate_many(budget: Budget, demands: pd.DataFrame) -> pd.DataFrame:
    """Grant tokens for many demands at once: turns of a conversation, or many conversations.

    Parameters
    ----------
    budget : Budget
        The window and its lines.
    demands : DataFrame, shape (rows, sections)
        Demands in tokens, a column a section; sections without a column ask for nothing.

    Returns
    -------
    DataFrame
        Tidy: one row for each row of `demands` and section. Columns: the names of the index of `demands`
        (``row`` where it has none), section, demand, limit, granted, cut (int64, tokens).

    Examples
    --------
    >>> from budgetkit import Allocation, Budget
    >>> budget = Budget(100, (), [Allocation("system", 30), Allocation("history")])
    >>> allocate_many(budget, pd.DataFrame({"history": [50, 150]})).query("section == 'history'")
       row  section  demand  limit  granted  cut
    2    0  history      50    100       50    0
    3    1  history     150    100      100   50
    """
    check_all("demands", [demands], pd.DataFrame)
    demand_columns = {str(name): demands[name].to_numpy() for name in demands.columns}
    if len(demand_columns) < demands.shape[1]:
        raise ValueError(
            "two columns of demands have one name; a section has one column; add them up or rename one"
        )
    columns = allocate_columns(budget, demand_columns, len(demands), [demands.attrs.get("roles")])
    if any(demands.index.names):
        index = demands.index
    else:
        index = demands.index.rename("row")
    frames = [
        pd.DataFrame({"section": s, **columns[s]}, index=index).reset_index() for s in columns
    ]
    if not frames:
        return pd.DataFrame(columns=[*index.names, "section", "demand", "limit", "granted", "cut"])
    return pd.concat(frames, ignore_index=True)


def allocate_columns(
    budget: Budget, demands: Mapping[str, Ints], rows: int = 0, tables: Iterable[object] = ()
) -> dict[str, dict[str, Ints]]:
    """Grant tokens for many demands at once, in arrays and out arrays.

    Examples
    --------
    >>> from budgetkit import Allocation, Budget
    >>> budget = Budget(100, (), [Allocation("history", 80)])
    >>> allocate_columns(budget, {"history": np.array([50, 150])})["history"]["granted"].tolist()
    [50, 80]
    """
    budget = with_undeclared(budget, demands, tables)
    rows = max((len(column) for column in demands.values()), default=rows)
    columns = {s: np.asarray(demands.get(s, np.zeros(rows, np.int64))) for s in budget.sections}
    for section, column in columns.items():
        if not _all_tokens(column):
            raise ValueError(
                f"the demand of {brief(section)} has a number that is negative, missing, not whole or too large; "
                f"demands are tokens from 0 to {MOST_TOKENS:,}; check that column of the frame"
            )
    whole_demands = {section: column.astype(np.int64) for section, column in columns.items()}
    grants: dict[str, dict[str, Ints]] = {}
    steps = allocate_in_order(
        budget, whole_demands, granted_by(np.minimum, np.where), least=np.minimum, most=np.maximum
    )
    for allocation, limit, granted in steps:
        demand = whole_demands[allocation.section]
        limit = np.broadcast_to(np.asarray(limit, dtype=np.int64), demand.shape)
        grants[allocation.section] = {
            "demand": demand,
            "limit": limit,
            "granted": granted,
            "cut": demand - granted,
        }
    return {section: grants[section] for section in budget.sections}


def _tokens(section: str, value: object) -> int:
    """Return what a section asks for; most often it is a plain int, and no sentence is needed."""
    if type(value) is int and 0 <= value <= MOST_TOKENS:
        return value
    return check_tokens(f"demand of {brief(section)}", value)


def _all_tokens(column: Ints) -> bool:
    if column.dtype == object and any(map(np.ndim, column)):
        return False  # a column of arrays, of which numpy would ask whether all of each is true
    try:
        inside = bool(np.isrealobj(column) and ((column >= 0) & (column <= MOST_TOKENS)).all())
        return inside and bool((column.astype(np.int64) == column).all())
    except (
        TypeError,
        ValueError,
        ArithmeticError,
    ):  # a column of texts, of what is missing, of a Decimal that is none
        return False
