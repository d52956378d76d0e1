"""Sweeps: plans for many values of one line of a budget, or of two, for one demand or many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.allocation import check_choice
from budgetkit.budget.amounts import Amount
from budgetkit.budget.quoting import quoted
from budgetkit.plan.allocating import allocate_columns
from budgetkit.plan.limits import with_undeclared

Demand = Mapping[str, int] | pd.DataFrame
#: Where a sweep's table keeps the names of the lines that were moved, in `DataFrame.attrs`.
LINES = "lines"
Unit = Literal["turns", "conversations"]
_COLUMNS = ("section", "demand", "limit", "granted", "cut", "free", "shared_pool")


def sweep(budget: Budget, demand: Demand, **lines: Iterable[Amount]) -> pd.DataFrame:
    """Plan again for every value of one line or of two.

    Parameters
    ----------
    budget : Budget
        The budget to change. Over-committed values are planned too, with a signed deficit.
    demand : mapping of str to int, or DataFrame of shape (rows, sections)
        What each section asks for, in tokens; a frame asks for many at once: the turns of a conversation,
        or one row a conversation.
    **lines
        ``window``, a reserve or a section, with the sizes to try, in tokens or shares.

    Returns
    -------
    DataFrame
        Tidy: one row for each value (or pair of values), row of `demand` and section. Columns: the lines
        (tokens, int64; ``attrs["lines"]`` has their names), the names of the index of a frame, section, demand,
        limit, granted, cut (int64, tokens), free and shared_pool (int64, tokens, signed).

    Raises
    ------
    ValueError
        If no line is named, more than two are, one has no values, or one is named as a column of the result.
    LookupError
        If a line or a section is unknown.

    Examples
    --------
    >>> from budgetkit import Allocation, Budget, Reserve
    >>> budget = Budget(1_000, [Reserve("output", 200)], [Allocation("history")])
    >>> sweep(budget, {"history": 900}, output=[0, 100, 200])[["output", "granted", "cut"]]
       output  granted  cut
    0       0      900    0
    1     100      900    0
    2     200      800  100
    """
    values = {name: list(amounts) for name, amounts in lines.items()}
    if not 1 <= len(values) <= 2 or not all(values.values()):
        raise ValueError(
            f"sweep was given {len(values)} lines of {[len(v) for v in values.values()]} values; "
            "it moves one line or two, each with values; write sweep(budget, demand, output=range(0, 4_001, 500))"
        )
    if taken := [name for name in values if name in _COLUMNS]:
        raise ValueError(
            f"sweep was to move {quoted(taken)}; its table has columns {quoted(_COLUMNS)} of its own; rename the line"
        )
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    frames = [_planned(budget, demand, point) for point in points]
    swept = pd.concat(frames, ignore_index=True)
    # A column such as "conversation" may as well be one of the demand's.
    swept.attrs[LINES] = list(values)
    return swept


def _planned(budget: Budget, demand: Demand, point: Mapping[str, Any]) -> pd.DataFrame:
    changed = replace(with_undeclared(budget, ()), deficit="signed").assign(**point)
    if isinstance(demand, pd.DataFrame):
        frame = demand
    else:
        frame = pd.DataFrame([demand])
    demand_columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    columns = allocate_columns(changed, demand_columns, len(frame), [frame.attrs.get("roles")])
    index = _index(demand, frame)
    sizes = _sizes(changed, point)
    held_tokens = changed.held
    used = sum(
        (np.maximum(c["granted"] - held_tokens.get(s, 0), 0) for s, c in columns.items()),
        np.zeros(len(frame), int),
    )
    free = changed.usable - used
    tidy = [
        index.assign(section=section, **column, free=free, shared_pool=changed.unclaimed)
        for section, column in columns.items()
    ]
    rows = pd.concat(tidy, ignore_index=True)
    for place, (name, size) in enumerate(sizes.items()):
        rows.insert(place, name, size)
    return rows


def _index(demand: Demand, frame: pd.DataFrame) -> pd.DataFrame:
    if not isinstance(demand, pd.DataFrame):
        return pd.DataFrame(index=frame.index)
    if any(frame.index.names):
        index = frame.index
    else:
        index = frame.index.rename("row")
    return index.to_frame(index=False)


def _sizes(budget: Budget, point: Mapping[str, Any]) -> dict[str, Any]:
    tokens = {line.name: line.tokens for line in budget} | {"window": budget.window}
    return {name: tokens[name] if tokens[name] is not None else pd.NA for name in point}


def cut_share(swept: pd.DataFrame, by: str | list[str], of: Unit = "turns") -> pd.DataFrame:
    """Return in what share of the turns, or of the conversations, something is cut, and in which section.

    Parameters
    ----------
    swept : DataFrame
        What `sweep` returned for a frame of many demands.
    by : str or list of str
        The lines that were moved.
    of : {"turns", "conversations"}
        What is counted: every row of the demand, or every conversation once, which is cut where any of its turns is.
        A conversation is what the demand's index says beside "turn"; a frame without turns has one a row.

    Returns
    -------
    DataFrame
        One row for each value and section, and one with section "any". Columns: the lines, section, cut_share
        (float64, 0 to 1), cut (float64, mean tokens; of a conversation, what the turn that loses most loses).

    Raises
    ------
    ValueError
        If `of` is neither.

    Examples
    --------
    >>> from budgetkit import Allocation, Budget
    >>> demands = pd.DataFrame({"history": [500, 1_500]})
    >>> swept = sweep(Budget(1_000, (), [Allocation("history")]), demands, window=[1_000, 2_000])
    >>> cut_share(swept, "window").query("section == 'any'")[["window", "cut_share"]]
       window  cut_share
    0    1000        0.5
    2    2000        0.0
    """
    check_choice("of", of, get_args(Unit))
    keys = [by] if isinstance(by, str) else list(by)
    rows = [name for name in swept.columns if name not in _COLUMNS and name not in keys]
    whole = (
        swept.groupby([*keys, *rows], sort=False, as_index=False)["cut"].sum().assign(section="any")
    )
    both = pd.concat([whole, swept[[*keys, *rows, "section", "cut"]]])
    if of == "conversations":
        keys_of_a_row = [*keys, *(name for name in rows if name != "turn"), "section"]
        both = both.groupby(keys_of_a_row, sort=False, as_index=False)["cut"].max()
    grouped = both.assign(is_cut=both["cut"] > 0).groupby([*keys, "section"], sort=True)
    shares: pd.DataFrame = grouped.agg(
        cut_share=("is_cut", "mean"), cut=("cut", "mean")
    ).reset_index()
    return shares
