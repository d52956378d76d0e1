"""Checks that the lines of a budget do not contradict each other.

    floor <= cap        of each section
    reserves < window,  reserves + caps <= window,  and no share of the window is 0 tokens

A budget checks itself on creation, so an inconsistent budget cannot exist. The conditions in the second line apply only
with ``deficit="raise"``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from budgetkit.budget.allocation import check_all, check_whole
from budgetkit.budget.amounts import Share
from budgetkit.budget.errors import unknown_name
from budgetkit.budget.quoting import brief, many, quoted

Budget = Any  # of budget.py, which imports this module
OUTPUT = "output"
#: The fix for an unknown section, beside choosing another name.
NEW_SECTION = "Give a new section its own Allocation in the Budget"


def check_lines(budget: Budget) -> None:
    """Reject lines that contradict each other or the window.

    Examples
    --------
    >>> import budgetkit as bk
    >>> bk.Budget(5, (), [bk.Allocation("system", bk.Share(0.1))], name="mine")
    Traceback (most recent call last):
    ...
    ValueError: The window of 'mine' (5 tokens) leaves 'system' 0 tokens. Choose a window of 10 or more, \
or give the section a cap in tokens.
    """
    # Names of lines are unique, and each reference is to a section of the budget.
    sections = budget.sections
    names = ["window", *(r.name for r in budget.reserves), *sections]
    if len({*names}) < len(names):
        raise ValueError(
            f"Duplicate reserve or section name: {quoted(sorted({n for n in names if names.count(n) > 1}))}. Use each "
            "name once, and do not use 'window'."
        )
    served = {OUTPUT, *sections}
    for reserve in budget.reserves:
        if reserve.serves is not None and reserve.serves not in served:
            raise ValueError(
                f"{unknown_name(f'section for reserve {brief(reserve.name)}:', reserve.serves, sorted(served))} "
                f"{NEW_SECTION}."
            )
    if budget.remainder is not None and budget.remainder not in sections:
        raise ValueError(f"{unknown_name('remainder', budget.remainder, sections)} {NEW_SECTION}.")

    # No floor exceeds its cap; a section whose items compete for the pool has no floor, weight or reserve.
    caps = budget.caps
    for section, floor in budget.floors.items():
        cap = caps[section]
        if cap is not None and floor > cap:
            raise ValueError(
                f"The floor of {brief(section)} ({floor:,}) is above its cap ({cap:,}). Lower the floor or "
                "raise the cap."
            )
    promised = [
        a.section
        for a in budget.allocations
        if a.cap is None
        and (a.floor or a.weight or (budget.held.get(a.section) and not a.required))
    ]
    if budget.competes and promised:
        raise ValueError(
            f"Items compete for the pool, so a section without a cap cannot have a floor, a weight or a reserve: "
            f"{quoted(promised)}. Remove it, or choose another order, such as 'pool together'."
        )

    # No share comes to 0 tokens, and all claims fit in the window.
    if budget.deficit != "raise":
        return
    shares = {a.section: a.cap for a in budget.allocations if isinstance(a.cap, Share)}
    for section, share in shares.items():
        if caps[section] == 0 and share.smallest_window:
            smallest = max(one_share.smallest_window for one_share in shares.values())
            raise ValueError(
                f"The window of {brief(budget.name or 'the budget')} ({budget.window:,} tokens) leaves "
                f"{brief(section)} 0 tokens. "
                f"Choose a window of {smallest:,} or more, or give the section a cap in tokens."
            )
    check_window(budget.window, budget.reserved, budget.capped)


def check_window(window: int, reserved: int, capped: int) -> None:
    """Check that reserves and caps fit in the window.

    Examples
    --------
    >>> check_window(1_000, 600, 500)
    Traceback (most recent call last):
    ...
    ValueError: Reserves (600) and caps (500) exceed the window (1,000) by 100 tokens. Lower a cap or a reserve.
    """
    if not window:
        raise ValueError("The window is 0 tokens. Use at least 1.")
    if reserved >= window:
        raise ValueError(
            f"Reserves ({reserved:,}) fill the window ({window:,}). Lower a reserve or choose a larger window."
        )
    if reserved + capped > window:
        raise ValueError(
            f"Reserves ({reserved:,}) and caps ({capped:,}) exceed "
            f"the window ({window:,}) by {many(reserved + capped - window, 'token')}. Lower a cap or a reserve."
        )


def other_roles(tables: Iterable[object], roles: Mapping[str, str], asking: Collection[str]) -> str:
    """Return a warning if items were made with a different role table.

    A role table maps message roles to sections. The warning is "" if the tables agree with the budget's roles.

    >>> other_roles([{"user": "history"}], {"user": "conversation"}, ["history"]).partition(". ")[0]
    "The items were made with other roles: 'user' goes to 'history', but to 'conversation' in this budget"
    """
    moved = {
        f"{brief(role)} goes to {brief(section)}, but to {brief(roles[role])} in this budget": None
        for table in tables
        if isinstance(table, Mapping)
        for role, section in table.items()
        if section in asking and roles.get(role, section) != section
    }
    if not moved:
        return ""
    return (
        f"The items were made with other roles: {', '.join(moved)}. "
        "Make them with the budget's roles, as in trace.items(turn, count, budget.roles)."
    )


def unknown_section(sections: Iterable[str], names: Iterable[str]) -> LookupError:
    """Return the error for the first section without an allocation.

    Examples
    --------
    >>> print(unknown_section(["memroy"], ["memory"]).args[0].partition(" Give ")[0])
    Unknown section 'memroy'. Did you mean 'memory'? Choose one of: 'memory'.
    """
    wrong = next(iter(sections))
    return LookupError(
        f"{unknown_name('section', wrong, names)} {NEW_SECTION}, or set undeclared='pool'."
    )


def check_budget_names(name: str, remainder: str | None, roles: Mapping[str, str]) -> None:
    """Reject names that are not text or contain lone surrogates."""
    check_all("roles", [roles], Mapping)  # type: ignore[type-abstract]
    check_all("remainder", [] if remainder is None else [remainder], str)
    for what, texts in {"name": [name], "roles": [*roles.keys(), *roles.values()]}.items():
        for text in check_all(what, texts, str):
            check_whole("name of a budget or a role", text)
