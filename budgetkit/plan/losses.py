"""What a plan loses and why: by section and reason, each a sentence that says what would mend it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation
from budgetkit.budget.quoting import nearest_name, one_line
from budgetkit.budget.validation import OUTPUT
from budgetkit.plan.decisions import BEYOND_BEST, OVER_CAP, POOL_FULL, UNCUT, WINDOW_FULL, Decisions
from budgetkit.plan.grant import Grant


@dataclass(frozen=True, slots=True)
class Loss:
    """What one section loses for one reason; `items` are those that are gone, `cut` those that are shorter."""

    allocation: Allocation
    demand: int
    reason: int
    tokens: int
    items: int = 0
    cut: int = 0


def full(budget: Budget, allocation: Allocation, free: int) -> int:
    """Tell a full window from a full pool beside which there is room: room that caps claim.

    Examples
    --------
    >>> chat = Budget(100, (), [Allocation("system", 80), Allocation("notes")], order="pool together")
    >>> full(chat, Allocation("notes"), free=70) == POOL_FULL, full(chat, Allocation("notes"), free=0) == WINDOW_FULL
    (True, True)
    """
    in_pool = allocation.cap is None and budget.pool != "open"
    if in_pool and free > 0:
        return POOL_FULL
    return WINDOW_FULL


def losses(budget: Budget, grants: Iterable[Grant], decisions: Decisions, free: int) -> list[Loss]:
    """List what is lost, the most tokens first."""
    lines = {a.section: a for a in budget.allocations}
    section_losses: list[Loss] = []
    for grant in grants:
        allocation = lines[grant.section]
        if len(decisions):
            section_losses += _of_items(allocation, grant, decisions)
        elif grant.cut:
            section_losses += _of_numbers(
                allocation, grant, budget.caps[grant.section], full(budget, allocation, free)
            )
    return sorted(section_losses, key=lambda loss: -loss.tokens)


def _of_numbers(allocation: Allocation, grant: Grant, cap: int | None, full: int) -> Iterator[Loss]:
    over = 0 if cap is None else max(0, grant.demand - cap)
    if over and allocation.overflow == "drop":
        over = grant.cut
    else:
        over = min(over, grant.cut)
    for reason, tokens in ((OVER_CAP, over), (full, grant.cut - over)):
        if tokens:
            yield Loss(allocation, grant.demand, reason, tokens)


def _of_items(allocation: Allocation, grant: Grant, decisions: Decisions) -> Iterator[Loss]:
    rows = decisions.columns.rows(allocation.section)
    reasons = decisions.reasons[rows]
    lost = decisions.columns.tokens[rows] - decisions.kept[rows]
    is_cut = np.isin(rows, list(decisions.cuts))
    for reason in np.unique(reasons[reasons != 0]).tolist():
        mine = reasons == reason
        cut = int((mine & is_cut).sum())
        yield Loss(
            allocation, grant.demand, reason, int(lost[mine].sum()), int(mine.sum()) - cut, cut
        )


def sentence(loss: Loss, budget: Budget, grants: Iterable[Grant]) -> str:
    """Say what is lost, why, and what would mend it."""
    allocation = loss.allocation
    cap = budget.caps[loss.allocation.section]
    rules = {
        OVER_CAP: allocation.overflow,
        WINDOW_FULL: allocation.when_full,
        POOL_FULL: allocation.when_full,
    }
    if loss.reason == OVER_CAP and cap == 0:
        why = f"it is switched off by its cap of 0; give it a cap of {loss.demand:,}"
    elif loss.reason == OVER_CAP:
        why = f"it is over its cap ({cap:,}); {_raised(loss.demand, cap or 0, max(0, budget.shared_pool))}"
    elif loss.reason == WINDOW_FULL:
        why = (
            f"the window ({budget.window:,}) has no room for it; lower a reserve, shorten another section, "
            f"or choose a window larger by {loss.tokens:,}"
        )
    elif loss.reason == POOL_FULL:
        why = f"the shared pool ({budget.shared_pool:,}) is full; {_idle(budget, grants)}"
    elif loss.reason == BEYOND_BEST:
        if allocation.limit_items == 1:
            best = "item alone"
        else:
            best = f"{allocation.limit_items} items"
        why = f"it keeps its best {best}; raise limit_items in code, or bring fewer"
    elif loss.reason == UNCUT:
        why = "it may be cut inside, and no cut was given; pass one, as in fit(budget, items, bk.cutter(count))"
    else:
        why = "what it is grouped with was dropped; mend that section"
    if rules.get(loss.reason) == "drop":
        whole = " whole, as drop says,"
    else:
        whole = ""
    needed = " is required and" if allocation.required else ""
    return f"{one_line(allocation.section)}{needed} loses {_amount(loss)}{whole} because {why}."


def _raised(demand: int, cap: int, pool: int) -> str:
    """Say how far a cap can be raised: to the demand, or by what the shared pool holds."""
    if demand <= cap + pool:
        return f"raise the cap to {demand:,}, or shorten it"
    if pool:
        room = f"it can be raised to {cap + pool:,}"
    else:
        room = "no room is left to raise it"
    return f"{room}; lower other caps or a reserve, choose a larger window, or shorten it"


def _amount(loss: Loss) -> str:
    parts = [
        _items(number, ending)
        for number, ending in ((loss.items, ""), (loss.cut, " cut"))
        if number
    ]
    tokens = f"{loss.tokens:,} of {loss.demand:,} tokens"
    if not parts:
        return tokens
    return f"{tokens} ({', '.join(parts)})"


def _items(number: int, ending: str) -> str:
    return f"{number:,} {'item' if number == 1 else 'items'}{ending}"


def _idle(budget: Budget, grants: Iterable[Grant]) -> str:
    """Name the caps whose room nobody uses, the largest first."""
    left = {g.section: (budget.caps[g.section] or 0) - g.granted for g in grants}
    idle = [
        f"{one_line(s)} ({tokens:,})"
        for s, tokens in sorted(left.items(), key=lambda entry: -entry[1])
        if tokens > 0
    ]
    if not idle:
        return "lower a cap or a reserve"
    return f"unused under their caps stand {', '.join(idle)}; lower one of these caps, or give it a cap of its own"


def unused_answers(budget: Budget, most: int | None) -> Iterator[tuple[str, str]]:
    """Say which reserve for an answer is longer than the model's longest, and the mend."""
    for reserve in budget.reserves:
        size = budget.sizes[reserve.name]
        if reserve.serves == OUTPUT and most is not None and size > most:
            problem = f"{one_line(reserve.name)} holds {size:,} tokens, and the model writes at most {most:,}"
            yield f"{problem}: {size - most:,} of them are never used", f"lower it to {most:,}"


def overcommitted(budget: Budget) -> str:
    """Say by how much reserves and caps exceed the window."""
    return (
        f"Reserves ({budget.reserved:,}) and caps ({budget.capped:,}) exceed the window "
        f"({budget.window:,}) by {-budget.unclaimed:,} tokens; lower a cap or a reserve."
    )


def misspelt(budget: Budget, grants: Iterable[Grant]) -> Iterator[str]:
    """Name sections that draw on the pool because nobody declared them, and are called almost as one that is."""
    plain = {
        a.section
        for a in budget.allocations
        if budget.undeclared == "pool" and a == Allocation(a.section)
    }
    declared = [section for section in budget.sections if section not in plain]
    for grant in grants:
        if grant.section in plain and grant.demand:
            near = nearest_name(grant.section, declared)
        else:
            near = ""
        if near:
            yield (
                f"{one_line(grant.section)} is declared nowhere and draws on the shared pool with {grant.demand:,} "
                f"tokens; there is a section {one_line(near)}; rename it if that is meant."
            )
