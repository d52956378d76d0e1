"""The walk: each section is asked once, in order, how many of the tokens that are left it takes.

    limit   = min(cap, room less the floors of the sections that are asked later, the pool)
    granted = what the section takes of its limit; the next section may use the rest

A limit is never below the section's own floor. Sections with a weight share the room: each takes its floor and, beyond
it, tokens in proportion to its weight, but no more than it wants (water-filling). The level is the number at which the
room is just used up:

    sum over the weighted sections not asked yet of min(what it wants, weight * level) = room

`allocate_in_order` is the walk, and here every cap is applied. Three functions use it: `allocate` for sections that can
be cut anywhere, `fit` for whole items, and `allocate_many` for many demands at once. They differ only in how a section
answers.

Property tests check that

- ``0 <= granted <= min(demand, limit)``;
- used + free + reserved is the window, to the token;
- only required sections and floors can take more than the window has, and then `Plan.free` is negative;
- every item has exactly one decision.

A larger window does not always grant every section more: shares grow with the window, what one section leaves
goes to the next, and ``drop`` and ``skip`` decide item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, check_all
from budgetkit.budget.amounts import MOST_TOKENS, check_tokens
from budgetkit.budget.quoting import brief
from budgetkit.budget.validation import other_roles, unknown_section
from budgetkit.plan.grant import Grant
from budgetkit.plan.items import Ints
from budgetkit.plan.plan import Plan


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
    check_all("demand", [demand], Mapping)  # type: ignore[type-abstract]
    budget = with_undeclared(budget, demand)
    asked = {s: _tokens(s, demand.get(s, 0)) for s in budget.sections}
    grants: dict[str, Grant] = {}
    for allocation, limit, granted in allocate_in_order(budget, asked, _granted()):
        section = allocation.section
        grants[section] = Grant(section, asked[section], limit, granted)
    return raise_if_overrun(Plan(budget, tuple(grants[s] for s in budget.sections), replan=allocate))


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
    >>> budget = Budget(100, (), [Allocation("system", 30), Allocation("history")])
    >>> allocate_many(budget, pd.DataFrame({"history": [50, 150]})).query("section == 'history'")
       row  section  demand  limit  granted  cut
    2    0  history      50    100       50    0
    3    1  history     150    100      100   50
    """
    check_all("demands", [demands], pd.DataFrame)
    given = {str(name): demands[name].to_numpy() for name in demands.columns}
    if len(given) < demands.shape[1]:
        raise ValueError("two columns of demands have one name; a section has one column; add them up or rename one")
    columns = allocate_columns(budget, given, len(demands), [demands.attrs.get("roles")])
    index = demands.index if any(demands.index.names) else demands.index.rename("row")
    frames = [pd.DataFrame({"section": s, **columns[s]}, index=index).reset_index() for s in columns]
    if not frames:
        return pd.DataFrame(columns=[*index.names, "section", "demand", "limit", "granted", "cut"])
    return pd.concat(frames, ignore_index=True)


def allocate_columns(
    budget: Budget, demands: Mapping[str, Ints], rows: int = 0, tables: Iterable[object] = ()
) -> dict[str, dict[str, Ints]]:
    """Grant tokens for many demands at once, in arrays and out arrays.

    Examples
    --------
    >>> budget = Budget(100, (), [Allocation("history", 80)])
    >>> allocate_columns(budget, {"history": np.array([50, 150])})["history"]["granted"].tolist()
    [50, 80]
    """
    budget = with_undeclared(budget, demands, tables)
    rows = max((len(column) for column in demands.values()), default=rows)
    given = {s: np.asarray(demands.get(s, np.zeros(rows, np.int64))) for s in budget.sections}
    for section, column in given.items():
        if not _all_tokens(column):
            raise ValueError(
                f"the demand of {brief(section)} has a number that is negative, missing, not whole or too large; "
                f"demands are tokens from 0 to {MOST_TOKENS:,}; check that column of the frame"
            )
    asked = {section: column.astype(np.int64) for section, column in given.items()}
    found: dict[str, dict[str, Ints]] = {}
    steps = allocate_in_order(budget, asked, _granted(np.minimum, np.where), least=np.minimum, most=np.maximum)
    for allocation, limit, granted in steps:
        demand = asked[allocation.section]
        limit = np.broadcast_to(np.asarray(limit, dtype=np.int64), demand.shape)
        found[allocation.section] = {"demand": demand, "limit": limit, "granted": granted, "cut": demand - granted}
    return {section: found[section] for section in budget.sections}


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
    except (TypeError, ValueError, ArithmeticError):  # a column of texts, of what is missing, of a Decimal that is none
        return False


def allocate_in_order(
    budget: Budget,
    demand: Mapping[str, Any],
    take: Callable[[Allocation, Any, Any, Any], Any],
    required_cap: Callable[[Allocation, Any], Any] = lambda allocation, cap: cap,
    floor_of: Callable[[Allocation, int], Any] = lambda allocation, floor: floor,
    least: Callable[[Any, Any], Any] = min,
    most: Callable[[Any, Any], Any] = max,
) -> Iterator[tuple[Allocation, Any, Any]]:
    """Ask every section once, and give each with its limit and what it was granted.

    Numbers may be int or arrays, with `least` and `most` to match. `required_cap` and `floor_of` say what a cap and a
    floor come to where a section is made of whole items.
    """
    # Before anyone is asked: room is the window less its reserves, pool is what is left of it after all caps.
    room: Any = budget.window - budget.reserved
    pool: Any = max(0, budget.unclaimed)
    shares_pool, together = budget.pool != "open", budget.pool == "together"
    lines = budget.walked

    def wanted(section: str) -> Any:
        cap = budget.caps[section]
        return demand[section] if cap is None else least(demand[section], cap)

    # A floor promises tokens, but never more than the section asks for or its cap lets it take.
    promised = {a.section: least(floor_of(a, floor), wanted(a.section)) for a, _, floor, _ in lines if floor}
    weighted = [a for a, *_ in lines if a.weight]
    # What is promised to sections that have not been asked yet: to all of them, and to those without a cap.
    waiting: Any = sum(promised.values())
    waiting_uncapped: Any = sum(promised[a.section] for a, cap, floor, _ in lines if floor and cap is None)
    # A reserve may serve one section; then its tokens are held for that section, beside the room.
    for allocation, own_cap, _, held in lines:
        cap: Any = own_cap
        section, uncapped = allocation.section, cap is None
        asks, own = demand[section], promised.get(section, 0)
        # 1. The section may take what is left, less what is promised to those asked later.
        waiting = waiting - own
        limit = room - waiting + held
        # 2. Without a cap it may take no more than the shared pool has. Where the sections without a cap share
        #    the pool together, what is promised to the others of them stays in it.
        if uncapped and shares_pool:
            waiting_uncapped = waiting_uncapped - own
            limit = least(limit, pool - (waiting_uncapped if together else 0))
        # 3. With a weight it may take what is its own (its floor, and what is held for it) and its part of the
        #    rest. What another weighted section does not want is divided among those that want more.
        if allocation.weight:
            weighted.remove(allocation)
            others = [(a.weight, most(wanted(a.section) - promised.get(a.section, 0), 0)) for a in weighted]
            limit = own + held + by_weight(limit - own - held, allocation.weight, others)
        # 4. Whatever was said so far, it may take its floor; and if it is required, all that it asks for.
        limit = most(limit, own)
        if allocation.required:
            limit = most(limit, asks)
            # What is required must not vanish: where whole items cannot be cut to the cap, the cap is raised for them.
            if cap is not None and not allocation.is_off:
                cap = most(cap, asks) if allocation.stands_whole else required_cap(allocation, cap)
        # 5. The cap is applied last, so that neither a requirement nor a floor can pass it.
        limit = most(limit if cap is None else least(limit, cap), 0)
        # 6. The section answers. What was held for it is used first; only the rest lowers the room and the pool.
        granted = take(allocation, limit, cap, asks)
        taken = most(granted - held, 0)
        room = room - taken
        if uncapped and together:
            pool = pool - taken
        yield allocation, limit, granted


def by_weight(room: Any, weight: int, others: Sequence[tuple[int, Any]]) -> Any:
    """Return one section's part of a room by weight, where others, (weight, wanted), take no more than they want.

    Examples
    --------
    Of 100 tokens by 1 to 1, where the other wants 10, and where it wants all of it.

    >>> by_weight(100, 1, [(1, 10)]), by_weight(100, 1, [(1, 100)])
    (90, 50)
    """
    left, parts = room, weight + sum(each for each, _ in others)
    for _ in others:  # whoever wants less than its part takes that, which raises the level for the rest
        satisfied = [1 * (wanted * parts <= each * left) for each, wanted in others]
        left = room - sum(wanted * yes for (_, wanted), yes in zip(others, satisfied, strict=True))
        parts = weight + sum(each * (1 - yes) for (each, _), yes in zip(others, satisfied, strict=True))
    return (2 * left * weight + parts) // (2 * parts)


def _granted(
    least: Callable[[Any, Any], Any] = min,
    choose: Callable[[Any, Any, Any], Any] = lambda condition, yes, no: yes if condition else no,
) -> Callable[[Allocation, Any, int | None, Any], Any]:
    def take(allocation: Allocation, limit: Any, cap: int | None, demand: Any) -> Any:
        if cap is not None:
            demand = choose(demand > cap, 0, demand) if allocation.overflow == "drop" else least(demand, cap)
        if allocation.when_full == "drop" and not allocation.required:
            return choose(demand > limit, 0, demand)
        return least(demand, limit)

    return take


def with_undeclared(budget: Budget, sections: Iterable[str], tables: Iterable[object] = ()) -> Budget:
    """Return the budget with the sections it does not name as sections of the pool.

    Examples
    --------
    >>> with_undeclared(Budget(100, undeclared="pool"), ["memory"]).sections
    ('memory',)
    """
    if not isinstance(budget, Budget):
        raise TypeError(f"budget is {brief(budget)}; known is Budget; give one, such as budgetkit.presets.chat(8_192)")
    known = budget.caps
    new = [s for s in sections if s not in known]
    if not new:
        return budget
    if moved := other_roles(tables, budget.roles, new):
        raise LookupError(moved)
    if budget.undeclared == "error":
        raise unknown_section(new, budget.sections)
    return replace(budget, allocations=(*budget.allocations, *(Allocation(s) for s in new)))


def raise_if_overrun(plan: Plan) -> Plan:
    """Return a plan, unless it overruns the window of a budget that forbids it.

    Examples
    --------
    >>> raise_if_overrun(Plan(Budget(100), ())).free
    100
    """
    if plan.budget.deficit == "raise" and plan.free < 0:
        raise ValueError(plan.warnings[0])
    return plan
