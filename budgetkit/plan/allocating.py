"""Grants in tokens: the window divided among sections in allocation order.

`allocate_in_order` divides the window for every kind of section, for a single demand or for arrays of demands. This
module defines the sections that can be cut anywhere; `fitting.py` and `batch.py` define sections of whole items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.budget.errors import wrong_type
from budgetkit.budget.quoting import brief
from budgetkit.budget.validation import other_roles, unknown_section
from budgetkit.plan.items import Ints, Item, Items


class Sections:
    """Sections that can be cut anywhere, with integer demands, limits and grants."""

    least: Any = staticmethod(min)
    most: Any = staticmethod(max)
    choose: Any = staticmethod(lambda condition, yes, no: yes if condition else no)

    def take(self, allocation: Allocation, limit: Any, cap: Any, demand: Any) -> Any:
        """Return the tokens that a section takes within its limit.

        A section that does not fit takes no tokens if its `overflow` or `when_full` is "drop".
        """
        if cap is not None and allocation.overflow == "drop":
            demand = self.choose(demand > cap, 0, demand)
        if allocation.when_full == "drop" and not allocation.required:
            wanted = demand if cap is None else self.least(demand, cap)
            return self.choose(wanted > limit, 0, wanted)
        return self.least(demand, limit)  # a limit is never above the cap

    def required_cap(self, _allocation: Allocation, cap: Any) -> Any:
        """Return the cap of a required section.

        Subclasses for whole items may raise the cap.
        """
        return cap

    def floor_of(self, _allocation: Allocation, floor: Any) -> Any:
        """Return the floor of a section.

        Subclasses for whole items raise the floor to the end of an item.
        """
        return floor


class SectionArrays(Sections):
    """Sections that can be cut anywhere, with arrays of demands and grants."""

    least = staticmethod(np.minimum)
    most = staticmethod(np.maximum)
    choose = staticmethod(np.where)


def allocate_in_order(
    budget: Budget, demand: Mapping[str, Any], sections: Sections
) -> Iterator[tuple[Allocation, Any, Any]]:
    """Yield each section in allocation order, with its limit and grant."""
    least = sections.least
    most = sections.most
    caps = budget.caps
    lines = budget.allocation_order
    is_together = budget.pool == "together"

    def capped_demand(section: str) -> Any:
        """Return a section's demand, up to its cap."""
        cap = caps[section]
        return demand[section] if cap is None else least(demand[section], cap)

    # The tokens left in the window and in the shared pool.
    remaining: Any = budget.window - budget.reserved
    pool: Any = max(0, budget.unclaimed)
    # The floor of each section that has one, up to its demand and its cap. The sums of these floors are those of the
    # sections still to be allocated, and of the uncapped sections among them.
    floors: dict[str, Any] = {
        a.section: least(sections.floor_of(a, floor), capped_demand(a.section))
        for a, _, floor, _ in lines
        if floor
    }
    later_floors: Any = sum(floors.values())
    later_uncapped_floors: Any = sum([floor for s, floor in floors.items() if caps[s] is None])
    later_weighted = [a for a, *_ in lines if a.weight]

    for allocation, own_cap, _, held_tokens in lines:
        cap: Any = own_cap
        asks = demand[allocation.section]
        floor = floors.get(allocation.section, 0)
        # 1. The section may take everything left, less the floors of later sections, plus its own reserve.
        later_floors = later_floors - floor
        limit = remaining - later_floors + held_tokens
        # 2. Without a cap, it may take no more than the shared pool has. If the sections without a cap share the pool,
        # the floors of later sections stay in it.
        if cap is None and budget.pool != "open":
            later_uncapped_floors = later_uncapped_floors - floor
            limit = least(limit, pool - later_uncapped_floors if is_together else pool)
        # 3. With a weight, it may take its floor, its own reserve and its part of the remaining tokens. Tokens that
        # another weighted section does not want are divided among the remaining sections; a deficit is not divided.
        if allocation.weight:
            later_weighted.remove(allocation)
            free = limit - floor - held_tokens
            others = [
                (a.weight, most(capped_demand(a.section) - floors.get(a.section, 0), 0))
                for a in later_weighted
            ]
            part = least(free, by_weight(free, allocation.weight, others))
            limit = floor + held_tokens + part
        # 4. In any case it may take its floor, and if it is required, its whole demand, even beyond the tokens left.
        limit = most(limit, floor)
        if allocation.required:
            limit = most(limit, asks)
            # A required section must not be dropped: if whole items cannot be cut to the cap, the cap is raised.
            if cap is not None and not allocation.is_off:
                if allocation.stands_whole:
                    cap = most(cap, asks)
                else:
                    cap = sections.required_cap(allocation, cap)
        # 5. The cap is applied last, so that neither a requirement nor a floor can exceed it.
        if cap is not None:
            limit = least(limit, cap)
        # 6. The section takes its tokens, from its own reserve first; only tokens beyond that reserve reduce the tokens
        # of later sections.
        granted = sections.take(allocation, limit, cap, asks)
        taken = most(granted - held_tokens, 0) if held_tokens else granted
        remaining = remaining - taken
        if own_cap is None and is_together:
            pool = pool - taken
        yield allocation, limit, granted


def by_weight(remaining: Any, weight: int, others: Sequence[tuple[int, Any]]) -> Any:
    """Return a section's share of the free tokens, according to its weight.

    `others` has the weight and the demand of each other section. A section takes at most its demand.

    Examples
    --------
    A section shares 100 tokens equally with a section that asks for 10 tokens, and with one that asks for 100 tokens.

    >>> by_weight(100, 1, [(1, 10)]), by_weight(100, 1, [(1, 100)])
    (90, 50)
    """
    # A section that wants less than its part takes only that and leaves more for other sections; after one round for
    # each section nothing changes. Conditions are 1 or 0, so that arrays of windows can be divided at once.
    left = remaining
    weights_left = weight + sum(other_weight for other_weight, _ in others)
    for _ in others:
        before = weights_left
        is_content = [
            1 * (wanted * weights_left <= other_weight * left) for other_weight, wanted in others
        ]
        left = remaining
        weights_left = weight
        for (other_weight, wanted), content in zip(others, is_content, strict=True):
            left = left - wanted * content
            weights_left = weights_left + other_weight * (1 - content)
        if np.array_equal(weights_left, before):
            break  # no other section wants less than its part

    # its part, rounded to the nearest token
    return (2 * left * weight + weights_left) // (2 * weights_left)


def with_undeclared(
    budget: Budget, sections: Iterable[str], tables: Iterable[object] = ()
) -> Budget:
    """Add undeclared sections, which draw on the pool, to a budget.

    In a budget with ``undeclared="error"``, an undeclared section raises LookupError.

    Examples
    --------
    >>> with_undeclared(Budget(100, undeclared="pool"), ["memory"]).sections
    ('memory',)
    """
    if not isinstance(budget, Budget):
        raise TypeError(
            wrong_type("budget", budget, "a Budget, such as budgetkit.presets.chat(8_192)")
        )
    caps = budget.caps
    new = [s for s in sections if s not in caps]
    if not new:
        return budget
    if moved := other_roles(tables, budget.roles, new):
        raise LookupError(moved)
    if budget.undeclared == "error":
        raise unknown_section(new, budget.sections)
    return replace(budget, allocations=(*budget.allocations, *(Allocation(s) for s in new)))


def allocate_frame(budget: Budget, demands: pd.DataFrame) -> dict[str, dict[str, Ints]]:
    """Grant tokens for a frame of demands, respecting item limits.

    For an item limit, the frame's ``attrs["passages"]`` must list the score and the tokens of each passage.

    >>> from budgetkit import Allocation, Budget
    >>> demands = pd.DataFrame({"knowledge": [60]})
    >>> demands.attrs["passages"] = {"knowledge": {0: [(0.2, 10), (0.9, 20), (0.5, 30)]}}
    >>> best = Budget(100, (), [Allocation("knowledge", keep="best", limit_items=2)])
    >>> allocate_frame(best, demands)["knowledge"]["granted"].tolist()
    [50]
    """
    columns = {str(name): demands[name].to_numpy() for name in demands.columns}
    budget = with_undeclared(budget, columns, [demands.attrs.get("roles")])
    most: dict[str, Ints] = {}
    for line in budget.allocations:
        by_row = demands.attrs.get("passages", {}).get(line.section)
        if not by_row or line.limit_items is None or line.section not in columns:
            continue
        column = most[line.section] = np.array(columns[line.section])
        for place, row in enumerate(demands.index):
            passages = [Item(line.section, size, score) for score, size in by_row.get(row, ())]
            units = Items(passages).units((line.section,), line.keep, (line.importance,))
            if units.total == column[place]:  # nothing but passages
                column[place] = units.sums[: line.limit_items + 1][-1]
    return allocate_columns(budget, columns, len(demands), most)


def allocate_columns(
    budget: Budget,
    demands: Mapping[str, Ints],
    rows: int = 0,
    most: Mapping[str, Ints] | None = None,
) -> dict[str, dict[str, Ints]]:
    """Grant tokens for many demands at once, as arrays.

    Examples
    --------
    >>> from budgetkit import Allocation, Budget
    >>> budget = Budget(100, (), [Allocation("history", 80)])
    >>> allocate_columns(budget, {"history": np.array([50, 150])})["history"]["granted"].tolist()
    [50, 80]
    """
    budget = with_undeclared(budget, demands)
    rows = max((len(column) for column in demands.values()), default=rows)
    columns = {s: np.asarray(demands.get(s, np.zeros(rows, np.int64))) for s in budget.sections}
    for section, column in columns.items():
        if not _all_tokens(column):
            raise ValueError(
                f"Invalid demand of {brief(section)}: a number is negative, missing, too large or not whole. "
                f"Use whole numbers from 0 to {MOST_TOKENS:,} in that column."
            )
    whole_demands = {section: column.astype(np.int64) for section, column in columns.items()}
    # A section with a limit of items demands only the items that it may keep.
    limited = {s: np.minimum(whole_demands[s], few) for s, few in (most or {}).items()}
    steps = allocate_in_order(budget, whole_demands | limited, SectionArrays())
    return grant_columns(budget, whole_demands, steps)


def grant_columns(
    budget: Budget, demands: Mapping[str, Ints], steps: Iterable[tuple[Allocation, Any, Any]]
) -> dict[str, dict[str, Ints]]:
    """Return the grants for many demands as columns, by section."""
    grants: dict[str, dict[str, Ints]] = {}
    for allocation, limit, granted in steps:
        demand = demands[allocation.section]
        grants[allocation.section] = {
            "demand": demand,
            "limit": np.array(np.broadcast_to(np.asarray(limit, np.int64), demand.shape)),
            "granted": np.array(granted),
            "cut": demand - granted,
        }
    return {section: grants[section] for section in budget.sections}


def _all_tokens(column: Ints) -> bool:
    if column.dtype == object and any(map(np.ndim, column)):
        return False  # a column of arrays, which cannot be compared with a number
    try:
        inside = bool(np.isrealobj(column) and ((column >= 0) & (column <= MOST_TOKENS)).all())
        return inside and bool((column.astype(np.int64) == column).all())
    except (
        TypeError,
        ValueError,
        ArithmeticError,
    ):  # a column of texts, missing values or invalid decimals
        return False
