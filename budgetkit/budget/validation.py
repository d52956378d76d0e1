"""Whether the lines of a budget go together, and the errors that say why they do not.

    floor <= cap        of each section
    reserves < window,  reserves + caps <= window,  no share of it is 0 tokens

A budget checks itself while it is made, so that there is none whose lines do not go together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from budgetkit.budget.allocation import check_all, check_whole
from budgetkit.budget.amounts import Share
from budgetkit.budget.quoting import brief, one_line, quoted

Budget = Any  # of budget.py, which imports this module
OUTPUT = "output"


def check_lines(budget: Budget) -> None:
    """Refuse lines that do not go together.

    Examples
    --------
    >>> import budgetkit as bk
    >>> bk.Budget(5, (), [bk.Allocation("system", bk.Share(0.1))], name="mine")
    Traceback (most recent call last):
    ...
    ValueError: mine at a window of 5 leaves system 0 tokens; its parts need 10 or more; choose a larger window, \
or give the section a cap in tokens
    """
    # every line has a name of its own, and names only what is there
    sections = budget.sections
    names = ["window", *(r.name for r in budget.reserves), *sections]
    if len({*names}) < len(names):
        raise ValueError(
            f"{quoted(sorted({n for n in names if names.count(n) > 1}))} names more than one line; "
            f"the lines are window, {quoted(dict.fromkeys(names[1:]))}; rename one"
        )
    served = {OUTPUT, *sections}
    for reserve in budget.reserves:
        if reserve.serves is not None and reserve.serves not in served:
            raise ValueError(
                f"reserve {brief(reserve.name)} serves {brief(reserve.serves)}; known are {quoted(sorted(served))}; "
                "add an allocation for it or drop serves"
            )
    if budget.remainder is not None and budget.remainder not in sections:
        raise ValueError(
            f"remainder is {brief(budget.remainder)}; the sections are {quoted(sections)}; name one of them"
        )

    # no section is promised more than it may take, nor anything where its items compete with those of others
    caps = budget.caps
    for section, floor in budget.floors.items():
        cap = caps[section]
        if cap is not None and floor > cap:
            raise ValueError(
                f"floor of {brief(section)} ({floor:,}) is above its cap ({cap:,}); "
                "a promise cannot exceed the limit; lower the floor or raise the cap"
            )
    promised = [
        a.section
        for a in budget.allocations
        if a.cap is None
        and (a.floor or a.weight or (budget.held.get(a.section) and not a.required))
    ]
    if budget.competes and promised:
        raise ValueError(
            f"{quoted(promised)} has a floor, a weight or a reserve of its own while items compete for the pool; "
            "a promise to a section needs another order, such as 'pool together'; change one of them"
        )

    # no section's part of the window comes to nothing, and all that is claimed fits
    if budget.deficit != "raise":
        return
    shares = {a.section: a.cap for a in budget.allocations if isinstance(a.cap, Share)}
    for section, share in shares.items():
        if caps[section] == 0 and share.smallest_window:
            smallest = max(one_share.smallest_window for one_share in shares.values())
            raise ValueError(
                f"{one_line(budget.name) or 'a budget'} at a window of {budget.window:,} leaves {one_line(section)} 0 "
                "tokens; its parts need "
                f"{smallest:,} or more; choose a larger window, or give the section a cap in tokens"
            )
    check_room(budget.window, budget.reserved, budget.capped)


def check_room(window: int, reserved: int, capped: int) -> None:
    """Check that reserves and caps fit the window.

    Examples
    --------
    >>> check_room(1_000, 600, 500)
    Traceback (most recent call last):
    ...
    ValueError: reserves (600) and caps (500) exceed the window (1,000) by 100 tokens; lower a cap or a reserve
    """
    if not window:
        raise ValueError("Window is 0 tokens. Give 1 or more.")
    if reserved >= window:
        raise ValueError(
            f"reserves ({reserved:,}) leave nothing of the window ({window:,}); "
            "lower a reserve or choose a larger window"
        )
    if reserved + capped > window:
        raise ValueError(
            f"reserves ({reserved:,}) and caps ({capped:,}) exceed "
            f"the window ({window:,}) by {reserved + capped - window:,} tokens; lower a cap or a reserve"
        )


def other_roles(tables: Iterable[object], roles: Mapping[str, str], asking: Collection[str]) -> str:
    """Return a warning about items made with another role table, or an empty text.

    >>> other_roles([{"user": "history"}], {"user": "conversation"}, ["history"]).partition("; ")[0]
    "what asks was made for other roles: 'user' stands in 'history', this budget has it in 'conversation'"
    """
    moved = {
        f"{brief(role)} stands in {brief(section)}, this budget has it in {brief(roles[role])}": None
        for table in tables
        if isinstance(table, Mapping)
        for role, section in table.items()
        if section in asking and roles.get(role, section) != section
    }
    mend = "make it again with the budget's own, as in trace.items(turn, count, budget.roles)"
    if not moved:
        return ""
    return f"what asks was made for other roles: {', '.join(moved)}; {mend}"


def unknown_section(sections: Iterable[str], names: Iterable[str]) -> LookupError:
    """Return the error for sections that a budget does not declare.

    Examples
    --------
    >>> print(unknown_section(["memroy"], ["memory"]).args[0])
    no section 'memroy' in this budget; its sections are 'memory'; add an Allocation or set undeclared='pool'
    """
    return LookupError(
        f"no section {quoted(sections)} in this budget; its sections are {quoted(names)}; "
        "add an Allocation or set undeclared='pool'"
    )


def check_texts(name: str, remainder: str | None, roles: Mapping[str, str]) -> None:
    """Refuse names that are no text, or no whole text."""
    check_all("roles", [roles], Mapping)  # type: ignore[type-abstract]
    check_all("remainder", [] if remainder is None else [remainder], str)
    for what, texts in {"name": [name], "roles": [*roles.keys(), *roles.values()]}.items():
        for text in check_all(what, texts, str):
            check_whole("a budget or a role is named", text)
