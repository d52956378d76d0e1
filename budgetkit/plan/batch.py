"""RequestBatch: many requests planned at once, for one or more budgets.

Allocation uses arrays with one number per request. A section that keeps whole items up to its limit needs one search
for all requests. A unit is an item, or a group of items that are kept or dropped together. The units of the requests
are stored in one array, request after request and in the order in which they are kept, next to the running sum of their
sizes. The search finds the position where the sum, counted from a request's first unit, exceeds the limit.

One search is not enough for requests with a call and its result in two sections, a fill that skips, a cut inside an
item, or competing items of several sections. Such requests are planned one by one, so a batch grants each request
exactly the same tokens as `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, product
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, check_all, check_choice
from budgetkit.budget.amounts import Amount
from budgetkit.budget.quoting import quoted
from budgetkit.plan.allocating import (
    SectionArrays,
    allocate_frame,
    allocate_in_order,
    grant_columns,
    with_undeclared,
)
from budgetkit.plan.fitting import Cut, allocate, fit
from budgetkit.plan.items import Flags, Ints, Items
from budgetkit.plan.plan import free_tokens

Columns = dict[str, dict[str, Ints]]
_KEPT = 2


@dataclass(frozen=True, eq=False)
class RequestBatch:
    """Many requests, such as the turns of one or more conversations.

    A batch caches its latest plans. A batch compares equal only to itself, and its arrays are read-only.
    """

    demand: pd.DataFrame
    items: Callable[[int], Items] | None = None
    cut: Cut | None = None
    # Several figures use the same two budgets: the current and the pinned budget.
    _kept: list[tuple[Budget, Columns]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @cached_property
    def demands(self) -> dict[str, Ints]:
        """Demand of each section, with one number per request, in tokens."""
        return {str(name): self.demand[name].to_numpy() for name in self.demand.columns}

    @cached_property
    def asked(self) -> Ints:
        """Total demand of each request, in tokens."""
        totals: Ints = self.demand.to_numpy().sum(axis=1)
        return totals

    @cached_property
    def _stacks(self) -> Stacks:
        assert self.items is not None, "only a batch of items has stacks"
        return Stacks([self.items(row) for row in range(len(self.demand))], self.cut is not None)

    def columns(self, budget: Budget) -> Columns:
        """Plan every request, without an error if the window overflows.

        Examples
        --------
        Two messages of 40 tokens cannot fill 70 tokens exactly, but plain numbers can.

        >>> from budgetkit import Allocation, Item
        >>> budget = Budget(100, (), [Allocation("history", 70, keep="newest")])
        >>> demand = pd.DataFrame({"history": [40, 80]})
        >>> RequestBatch(demand).columns(budget)["history"]["granted"].tolist()
        [40, 70]
        >>> messages = [Items([Item("history", 40)] * n) for n in (1, 2)]
        >>> RequestBatch(demand, messages.__getitem__).columns(budget)["history"]["granted"].tolist()
        [40, 40]
        """
        for planned, columns in self._kept:
            if planned == budget:
                return columns
        signed = replace(budget, deficit="signed")
        if self.items is None:
            columns = allocate_frame(signed, self.demand)
        else:
            columns = self._by_items(signed)
        for of_section in columns.values():
            for array in of_section.values():
                array.flags.writeable = False
        self._kept[:] = [*self._kept[1 - _KEPT :], (budget, columns)]
        return columns

    def _by_items(self, budget: Budget) -> Columns:
        stacks = self._stacks
        whole = with_undeclared(budget, self.demands, [self.demand.attrs.get("roles")])
        nothing = np.zeros(len(self.demand), dtype=np.int64)
        demands = {
            section: self.demands.get(section, nothing).astype(np.int64)
            for section in whole.sections
        }
        steps = allocate_in_order(whole, demands, stacks)
        columns = grant_columns(whole, demands, steps)

        # Some requests are planned by themselves, and their numbers are written into the columns. If something is lost,
        # a group may also lose its items in another section. Beyond the limit of items, even an item without tokens is
        # dropped, and its group with it.
        lines = whole.allocations
        is_lost = {section: column["cut"] > 0 for section, column in columns.items()}
        loses_something = np.logical_or.reduce([*is_lost.values(), nothing > 0])
        has_best_few = any(a.limit_items is not None for a in lines)
        is_single = stacks.has_split_groups & (loses_something | has_best_few)

        # Some sections choose unit by unit, or cut inside items. Undeclared sections are allocated in the order in
        # which a request's items name them.
        undeclared = [a for a in lines if a.section not in budget.sections]
        by_fit = [a for a in lines if stacks.is_special(a)]
        if len(undeclared) > 1:
            by_fit += undeclared
        for allocation in by_fit:
            is_single |= is_lost[allocation.section]

        # Sections that compete for the pool choose from one list of units.
        pooled = [a for a in lines if a.cap is None and not a.required]
        is_single |= whole.competes and len(pooled) > 1
        for row in np.flatnonzero(is_single).tolist():
            for grant in fit(budget, stacks.items[row], self.cut).grants:
                column = columns[grant.section]
                column["limit"][row] = grant.limit
                column["granted"][row] = grant.granted
                column["cut"][row] = grant.cut
        return columns


def batch_of(demand: pd.DataFrame | RequestBatch) -> RequestBatch:
    """Convert a frame of demands to a batch.

    A batch is returned unchanged.

    Examples
    --------
    >>> batch_of(pd.DataFrame({"history": [40], "system": [2]})).asked.tolist()
    [42]
    """
    if isinstance(demand, RequestBatch):
        return demand
    return RequestBatch(demand)


@dataclass(frozen=True, slots=True)
class Stack:
    """The units of one section in many requests, one request after another.

    Attributes
    ----------
    sums : int array, shape (units of all requests + 1,)
        Running sum of the tokens of the units.
    base, total, first : int array, shape (requests,)
        For each request, the running sum before its units, the tokens of all its units, and the tokens of its first
        non-empty unit.

    Examples
    --------
    One request has units of 30 and 20 tokens, and another request has a unit of 50 tokens.

    >>> stack = Stack(np.array([0, 30, 50, 100]), np.array([0, 50]), np.array([50, 50]), np.array([30, 50]))
    >>> stack.fitting(np.array([40, 40])).tolist()
    [30, 0]
    """

    sums: Ints
    base: Ints
    total: Ints
    first: Ints

    def fitting(self, limit: Ints | int) -> Ints:
        """Return each request's tokens in the leading units that fit."""
        goal = self.base + np.minimum(limit, self.total)
        last: Ints = self.sums[np.searchsorted(self.sums, goal, side="right") - 1]
        return last - self.base

    def reaching(self, floor: int) -> Ints:
        """Return each request's tokens in the leading units that reach a floor."""
        goal = self.base + np.minimum(floor, self.total)
        return np.asarray(self.sums[np.searchsorted(self.sums, goal)] - self.base)


class Stacks(SectionArrays):
    """The sections of many requests, with cached stacks of their units.

    Attributes
    ----------
    has_split_groups : bool array, shape (requests,)
        True if a group, such as a call and its result, has members in two sections.
    """

    def __init__(self, items: Sequence[Items], has_cut: bool = False) -> None:
        self.items = tuple(items)
        self.has_cut = has_cut
        self.has_split_groups: Flags = np.array(
            [request.has_split_groups for request in items], dtype=np.bool_
        )
        self._made: dict[tuple[object, ...], Stack] = {}

    def take(self, allocation: Allocation, limit: Any, cap: Any, _demand: Any) -> Ints:
        """Return the tokens that each request keeps of a section."""
        stack = self.stack(allocation)
        granted = stack.total
        if cap is not None:
            within = stack.fitting(cap) if allocation.overflow == "truncate" else 0
            granted = np.where(granted <= cap, granted, within)
        if not allocation.required:
            within = stack.fitting(limit) if allocation.when_full == "truncate" else 0
            granted = np.where(granted <= limit, granted, within)
        return granted

    def floor_of(self, allocation: Allocation, floor: int) -> Ints:
        """Return each request's tokens in the units that a floor guarantees."""
        return self.stack(allocation).reaching(floor)

    def is_special(self, allocation: Allocation) -> bool:
        """Return True if a section skips items or cuts inside them.

        Only `fit` can plan such a section.
        """
        is_cut = self.has_cut or allocation.required
        return allocation.fill != "prefix" or (allocation.granularity != "item" and is_cut)

    def required_cap(self, allocation: Allocation, cap: int) -> Any:
        """Return a required section's cap, raised to fit its first unit."""
        if self.is_special(allocation):
            return cap
        return np.maximum(self.stack(allocation).first, cap)

    def stack(self, allocation: Allocation) -> Stack:
        """Return a section's units for all requests, from the cache if possible."""
        key = (allocation.section, allocation.keep, allocation.importance, allocation.limit_items)
        if key not in self._made:
            self._made[key] = self._make(allocation)
        return self._made[key]

    def _make(self, allocation: Allocation) -> Stack:
        """Join a section's units from all requests in one array."""
        order = (allocation.section,), allocation.keep, (allocation.importance,)
        best = [request.units(*order).tokens[: allocation.limit_items] for request in self.items]
        sums = np.array([*accumulate(chain.from_iterable(best), initial=0)], np.int64)
        ends = np.cumsum([len(units) for units in best], dtype=np.int64)
        starts = np.concatenate(([0], ends[:-1])) if len(best) else ends
        first = [next(filter(None, units), 0) for units in best]
        return Stack(
            sums=sums,
            base=sums[starts],
            total=sums[ends] - sums[starts],
            first=np.array(first, dtype=np.int64),
        )


Demand: TypeAlias = "Mapping[str, int] | pd.DataFrame"
#: The key in `DataFrame.attrs` for the names of the lines that a sweep varies.
LINES = "lines"
Unit = Literal["turns", "conversations"]
_COLUMNS = ("section", "demand", "limit", "granted", "cut", "free", "shared_pool")


def allocate_many(budget: Budget, demands: pd.DataFrame) -> pd.DataFrame:
    """Grant tokens for many demands at once.

    Parameters
    ----------
    budget : Budget
        The window, its reserves and its sections.
    demands : DataFrame, shape (rows, sections)
        Demands in tokens, with one row per turn or conversation and one column per section. A section without a column
        has no demand.

    Returns
    -------
    DataFrame
        A tidy frame with one row for each row of `demands` and each section. Its columns are the levels of the index of
        `demands` (``row`` for an index without a name), section, demand, limit, granted and cut. The last four are in
        tokens (int64).

    Raises
    ------
    ValueError
        If two columns have the same name, a level of the index is named like a column of the result, or a row exceeds
        the window with ``deficit="raise"``.

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
    index = _index(demands)
    columns = allocate_frame(budget, demands)
    if budget.deficit == "raise":
        granted = np.add.reduce([column["granted"] for column in columns.values()])
        for row in np.flatnonzero(granted > budget.usable)[:1]:
            allocate(budget, demands.iloc[row].to_dict())  # raises the error
    return _tidy(index, columns)


def sweep(budget: Budget, demand: Demand, **lines: Iterable[Amount]) -> pd.DataFrame:
    """Plan a demand for each given value or pair of values.

    Parameters
    ----------
    budget : Budget
        The budget to change. If a value overcommits the window, the deficit is a negative number.
    demand : mapping of str to int, or DataFrame of shape (rows, sections)
        The demand of each section, in tokens. A frame has one row per turn or per conversation.
    **lines
        Values to try for ``window``, a reserve or a section, given by name. Each value is a number of tokens or a share
        of the window.

    Returns
    -------
    DataFrame
        A tidy frame with one row for each value (or pair of values), each row of `demand` and each section. Its columns
        are the varied lines, the levels of the index of `demand` if that is a frame, section, demand, limit, granted,
        cut, free and shared_pool. All except the index and the section are in tokens (int64); free and shared_pool may
        be negative. ``attrs["lines"]`` lists the names of the varied lines.

    Raises
    ------
    ValueError
        If there are no lines or more than two, if a line has no values, if two columns of `demand` have the same name,
        or if a line or a level of the index is named like a column of the result.
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
    values = {name: check_all(f"values of {name}", tried, object) for name, tried in lines.items()}
    if not 1 <= len(values) <= 2 or not all(values.values()):
        raise ValueError(
            f"Cannot sweep {quoted(values) or 'nothing'}. Pass one or two sizes, each with at least one value, as in "
            "sweep(budget, demand, output=range(0, 4_001, 500))."
        )
    if taken := [name for name in values if name in _COLUMNS]:
        raise ValueError(
            f"Cannot sweep {quoted(taken)}: the result has columns of these names: {quoted(_COLUMNS)}. "
            "Rename the reserve or section."
        )
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    frames = [_plan_point(budget, demand, point) for point in points]
    swept = pd.concat(frames, ignore_index=True)
    # Other columns, such as "conversation", come from the index of the demand.
    swept.attrs[LINES] = list(values)
    return swept


def _plan_point(budget: Budget, demand: Demand, point: Mapping[str, Any]) -> pd.DataFrame:
    changed = replace(with_undeclared(budget, ()), deficit="signed").assign(**point)
    if isinstance(demand, pd.DataFrame):
        frame, index = demand, _index(demand)
    else:
        frame, index = pd.DataFrame([demand]), pd.DataFrame(index=[0])
    columns = allocate_frame(changed, frame)
    free = free_tokens(changed, columns)
    rows = _tidy(index, columns, free=free, shared_pool=changed.unclaimed)
    tokens: dict[str, Any] = {line.name: line.tokens for line in changed}
    tokens["window"] = changed.window
    for place, name in enumerate(point):
        size: Any = pd.NA if tokens[name] is None else tokens[name]
        rows.insert(place, name, size)
    return rows


def _tidy(index: pd.DataFrame, columns: Columns, **more: Any) -> pd.DataFrame:
    """Return a frame with one row for each request and section."""
    frames = [index.assign(section=s, **column, **more) for s, column in columns.items()]
    if not frames:
        return pd.DataFrame(columns=[*index.columns, *_COLUMNS[:5], *more])
    return pd.concat(frames, ignore_index=True)


def _index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the index as a frame, and reject ambiguous names."""
    if len({*map(str, frame.columns)}) < frame.shape[1]:
        raise ValueError("Two columns of demands have the same name. Add them up, or rename one.")
    if taken := [name for name in frame.index.names if name in _COLUMNS]:
        raise ValueError(
            f"Index levels of demands are named like columns of the result: {quoted(taken)}. Rename them."
        )
    index = frame.index if any(frame.index.names) else frame.index.rename("row")
    return index.to_frame(index=False)


def cut_share(swept: pd.DataFrame, by: str | list[str], of: Unit = "turns") -> pd.DataFrame:
    """Return the share of turns or conversations with cuts, by section.

    Parameters
    ----------
    swept : DataFrame
        The result of `sweep` for a frame of many demands.
    by : str or list of str
        Names of the lines that the sweep varied.
    of : {"turns", "conversations"}
        The unit to count: rows of the demand, or conversations. A conversation counts as cut if any of its turns is
        cut. The levels of the demand's index other than "turn" identify the conversation. In a demand without the level
        "turn", each row is a conversation.

    Returns
    -------
    DataFrame
        A frame with one row for each value and section, and one row for each value with the section "any". Its columns
        are the varied lines, section, cut_share (from 0 to 1) and cut (the mean number of tokens cut, where a
        conversation counts with its worst turn).

    Raises
    ------
    ValueError
        If `of` is neither "turns" nor "conversations".

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
    check_all("swept", [swept], pd.DataFrame)
    keys = [by] if isinstance(by, str) else list(by)
    rows = [name for name in swept.columns if name not in _COLUMNS and name not in keys]
    whole = (
        swept.groupby([*keys, *rows], sort=False, as_index=False)["cut"].sum().assign(section="any")
    )
    both = pd.concat([whole, swept[[*keys, *rows, "section", "cut"]]])
    if of == "conversations":
        of_conversation = [name for name in both if name not in ("turn", "cut")]
        both = both.groupby(of_conversation, sort=False, as_index=False)["cut"].max()
    grouped = both.assign(cut_share=both["cut"] > 0).groupby([*keys, "section"])
    shares: pd.DataFrame = grouped[["cut_share", "cut"]].mean().reset_index()
    return shares
