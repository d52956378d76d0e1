"""News: the sentences on the page: whether it fits, what is lost, how to mend it, and where the numbers come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budgetkit.explorer.budget.results import Results
from budgetkit.explorer.budget.settings import Settings
from budgetkit.explorer.library import Library
from budgetkit.plan import Grant, Plan
from budgetkit.plan.losses import overcommitted

Data = dict[str, Any]


def status(found: Results) -> Data:
    """Return whether everything fits and, where it does not, how to mend it."""
    plan = found.plan
    lost = sorted((grant for grant in plan.grants if grant.cut > 0), key=lambda grant: -grant.cut)
    over = plan.free < 0 or plan.budget.unclaimed < 0
    claimed = [overcommitted(plan.budget)] if plan.budget.unclaimed < 0 else []
    said = [*dict.fromkeys([*plan.warnings[: plan.free < 0], *claimed, *plan.warnings])] or [_fits(found)]
    if lost:
        said.insert(int(over), _lost(found, lost))
    if plan.budget.constrained_below is not None and plan.is_constrained and not plan.warnings:
        said.append(_constrained(plan))
    more = [*said[1:], *([found.note] if found.note else [])]
    level = "over" if over else "cut" if plan.warnings or lost or more else "fits"
    return {"level": level, "text": said[0], "more": more}


def _constrained(plan: Plan) -> str:
    return (
        f"{plan.budget.remainder} is constrained: {plan.remainder:,} tokens, below "
        f"{plan.budget.constrained_below:,}; lower a reserve, shorten the conversation, or choose a larger window."
    )


def _fits(found: Results) -> str:
    if found.demand is None:
        return "Everything fits."
    if found.first_cut is None:
        return f"Everything fits, in all {len(found.demand):,} turns."
    turn, section = found.first_cut
    return f"Turn {found.turn:,} fits. The first cut comes at turn {turn:,}, in {section}."


def _lost(found: Results, lost: list[Grant]) -> str:
    where = f"Turn {found.turn:,} loses" if found.turn else "What is asked loses"
    parts = [_part(found.plan, grant) for grant in lost]
    return f"{where} {sum(g.cut for g in lost):,} tokens: {', '.join(parts)}."


def _part(plan: Plan, grant: Grant) -> str:
    decided = plan.decisions
    items = sum(decided[int(i)].outcome != "kept" for i in decided.columns.rows(grant.section)) if len(decided) else 0
    return f"{grant.section} {grant.cut:,}" + (f" ({items} {'item' if items == 1 else 'items'})" if items else "")


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them.

    Examples
    --------
    >>> listed(["history"]), listed(["system", "memory", "history"])
    ('history', 'system, memory and history')
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def source(settings: Settings, found: Results, library: Library) -> str:
    """Return where the demands come from and how they were counted."""
    if settings.trace is None or found.demand is None:
        return "No conversation: the sections ask for the sizes typed in. Open one to see every turn."
    traces = library.conversations(settings.trace)
    trace = traces[settings.conversation]
    which = "" if len(traces) == 1 else f", conversation {settings.conversation + 1:,} of {len(traces):,} ({trace.id})"
    turns = f"turn {found.turn:,} of {len(found.demand):,}"
    left = f", without its {' and '.join(trace.uncounted)}" if trace.uncounted else ""
    return f"{settings.trace}{which}: {turns}, {len(trace.messages):,} messages, {_counted(found)}{left}."


def _counted(found: Results) -> str:
    own = found.model.encoding_is_own and getattr(found.counter, "encoding", "") == found.model.encoding
    if own:
        return f"counted exactly with {found.model.encoding}"
    return f"counted with {found.counter.name}, an estimate for {found.model.name}"
