"""Advice: the sentences about a plan's losses and about reserves and caps that do not go together.

The arithmetic gives records (`Grant`, `Loss`, `Budget`); these functions put them into words, each with its fix. They
stand in the package of the plan, whose warnings they are: a package above it could not be asked by `Plan.warnings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from budgetkit.budget import Allocation, Budget
from budgetkit.budget.quoting import many, nearest_name, one_line
from budgetkit.budget.validation import OUTPUT, other_roles
from budgetkit.plan.decisions import (
    BEYOND_BEST,
    OVER_CAP,
    POOL_FULL,
    UNCUT,
    WINDOW_FULL,
    Grant,
    Loss,
)

Plan = Any  # of plan.py, which imports this module


def warnings_of(plan: Plan) -> Iterator[str]:
    """Yield warnings about losses and conflicts, each with a fix.

    Losses are sorted by tokens, the largest first.
    """
    budget = plan.budget
    lost: list[Loss] = plan.losses
    if plan.free < 0:
        needs = ", ".join(f"{one_line(g.section)} {g.granted:,}" for g in plan.grants if g.granted)
        yield (
            f"The window ({budget.window:,}) is overrun by {-plan.free:,} tokens: {needs}, "
            f"reserves {plan.reserved:,}; lower a reserve or a floor, or choose a larger window."
        )
    if budget.unclaimed < 0 and any(loss.reason in (WINDOW_FULL, POOL_FULL) for loss in lost):
        yield overcommitted(budget)
    for loss in lost:
        yield sentence(loss, budget, plan.grants)

    for grant in plan.grants:
        cap = budget.caps[grant.section]
        if cap is not None and grant.granted > cap:
            yield (
                f"{one_line(grant.section)} is required and needs {grant.granted:,} tokens, "
                f"{grant.granted - cap:,} above its cap ({cap:,}); raise the cap, shorten the text, "
                'or in code let it be cut inside, with granularity="line" and a cut for fit.'
            )
    most = budget.max_output
    for problem, mend in (*missing_answer(budget, most), *unused_answers(budget, most)):
        yield f"{problem}; {mend}."
    yield from misspelt(budget, plan.grants)
    if moved := other_roles(plan.decisions.columns.roles, budget.roles, budget.sections):
        yield f"{moved[0].upper()}{moved[1:]}."


def sentence(loss: Loss, budget: Budget, grants: Iterable[Grant]) -> str:
    """Describe a loss: its size, its reason and a fix."""
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
        why = "no cut was given for it; pass one, as in fit(budget, items, bk.truncation.cutter(count))"
    else:
        why = "what it is grouped with was dropped; mend that section"
    if rules.get(loss.reason) == "drop":
        whole = " whole, as drop says,"
    else:
        whole = ""
    needed = " is required and" if allocation.required else ""
    return f"{one_line(allocation.section)}{needed} loses {_amount(loss)}{whole} because {why}."


def _raised(demand: int, cap: int, pool: int) -> str:
    """Describe how far a cap can rise: to the demand, or by the pool."""
    if demand <= cap + pool:
        return f"raise the cap to {demand:,}, or shorten it"
    if pool:
        room = f"it can be raised to {cap + pool:,}"
    else:
        room = "no room is left to raise it"
    return f"{room}; lower other caps or a reserve, choose a larger window, or shorten it"


def _amount(loss: Loss) -> str:
    tokens = f"{loss.tokens:,} of {loss.demand:,} tokens"
    parts = [many(loss.items, "item")] if loss.items else []
    if loss.cut:
        parts.append(f"{many(loss.cut, 'item')} cut")
    return f"{tokens} ({', '.join(parts)})" if parts else tokens


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
    """Yield each reserve longer than the model's longest answer, or the lack of one, with its fix."""
    answers = [reserve for reserve in budget.reserves if reserve.serves == OUTPUT]
    for reserve in answers:
        size = budget.sizes[reserve.name]
        if most is not None and size > most:
            problem = f"{one_line(reserve.name)} holds {size:,} tokens, and the model writes at most {most:,}"
            yield f"{problem}: {size - most:,} of them are never used", f"lower it to {most:,}"


def missing_answer(budget: Budget, most: int | None) -> Iterator[tuple[str, str]]:
    """Yield the lack of a reserve for the answer of a model whose window holds it, with its fix."""
    reserved = sum(budget.sizes[r.name] for r in budget.reserves if r.serves == OUTPUT)
    if most and not reserved and budget.kind == "shared":
        yield (
            "No tokens are reserved for the answer, and the window holds both prompt and answer",
            f"add an output reserve of up to {most:,} tokens",
        )


def overcommitted(budget: Budget) -> str:
    """Say by how much reserves and caps exceed the window."""
    return (
        f"Reserves ({budget.reserved:,}) and caps ({budget.capped:,}) exceed the window "
        f"({budget.window:,}) by {-budget.unclaimed:,} tokens; lower a cap or a reserve."
    )


def misspelt(budget: Budget, grants: Iterable[Grant]) -> Iterator[str]:
    """Warn of undeclared sections whose names resemble a declared one."""
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
