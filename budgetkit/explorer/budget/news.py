"""News: the sentences on the page: whether it fits, what is lost, how to mend it, and where the numbers come from."""

from __future__ import annotations

from typing import Any

from budgetkit.explorer.budget.outcome import Outcome
from budgetkit.explorer.budget.settings import Settings
from budgetkit.explorer.library import Library
from budgetkit.plan import Grant, Plan

Data = dict[str, Any]


def status(found: Outcome) -> Data:
    """Return whether everything fits and, where it does not, how to mend it.

    Parameters
    ----------
    found : Outcome
        What follows from the settings.

    Returns
    -------
    dict
        Level "fits", "cut" or "over", a sentence, and more sentences.
    """
    plan = found.plan
    more = [found.note] if found.note else []
    if plan.warnings:
        over = plan.free < 0 or plan.budget.unclaimed < 0
        return {"level": "over" if over else "cut", "text": plan.warnings[0], "more": [*plan.warnings[1:], *more]}
    lost = [grant for grant in plan.grants if grant.cut > 0]
    if plan.budget.constrained_below is not None and plan.is_constrained:
        more.append(_constrained(plan))
    if lost:
        return {"level": "cut", "text": _lost(found, lost), "more": more}
    level = "cut" if more else "fits"
    return {"level": level, "text": _fits(found), "more": more}


def _constrained(plan: Plan) -> str:
    return (
        f"{plan.budget.remainder} is constrained: {plan.remainder:,} tokens, below "
        f"{plan.budget.constrained_below:,}; lower a reserve, shorten the conversation, or choose a larger window."
    )


def _fits(found: Outcome) -> str:
    if found.demand is None:
        return "Everything fits."
    if found.first_cut is None:
        return f"Everything fits, in all {len(found.demand):,} turns."
    turn, section = found.first_cut
    return f"Turn {found.turn:,} fits. The first cut comes at turn {turn:,}, in {section}."


def _lost(found: Outcome, lost: list[Grant]) -> str:
    where = f"Turn {found.turn:,} loses" if found.turn else "What is asked loses"
    parts = [_part(found.plan, grant) for grant in lost]
    return f"{where} {sum(g.cut for g in lost):,} tokens: {', '.join(parts)}. {_remedy(found.plan, lost)}"


def _part(plan: Plan, grant: Grant) -> str:
    decided = plan.decisions
    items = sum(decided[int(i)].outcome != "kept" for i in decided.columns.rows(grant.section)) if len(decided) else 0
    return f"{grant.section} {grant.cut:,}" + (f" ({items} {'item' if items == 1 else 'items'})" if items else "")


def _remedy(plan: Plan, lost: list[Grant]) -> str:
    worst = max(lost, key=lambda grant: grant.cut)
    cap = plan.budget.caps[worst.section]
    if cap is not None and worst.demand > cap and worst.limit >= cap:
        return f"Raise the cap of {worst.section}, or shorten it."
    if worst.limit >= worst.demand:  # there was room for all of it
        best = {a.section: a.limit_items for a in plan.budget.allocations}[worst.section]
        return f"There is room; {worst.section} keeps its best {best} items: raise limit_items, or bring fewer."
    return f"Lower a reserve or a cap to leave {worst.section} more, or choose a larger window."


def source(settings: Settings, found: Outcome, library: Library) -> str:
    """Return where the demands come from and how they were counted.

    Parameters
    ----------
    settings : Settings
        What is set.
    found : Outcome
        What follows from the settings.
    library : Library
        Where the conversations are.

    Returns
    -------
    str
        One line.
    """
    if settings.trace is None or found.demand is None:
        return "No conversation: the sections ask for the sizes typed in. Open one to see every turn."
    traces = library.conversations(settings.trace)
    trace = traces[settings.conversation]
    which = "" if len(traces) == 1 else f", conversation {settings.conversation + 1:,} of {len(traces):,} ({trace.id})"
    turns = f"turn {found.turn:,} of {len(found.demand):,}"
    left = f", without its {' and '.join(trace.uncounted)}" if trace.uncounted else ""
    return f"{settings.trace}{which}: {turns}, {len(trace.messages):,} messages, {_counted(found)}{left}."


def _counted(found: Outcome) -> str:
    own = found.model.encoding_is_own and getattr(found.counter, "encoding", "") == found.model.encoding
    if own:
        return f"counted exactly with {found.model.encoding}"
    return f"counted with {found.counter.name}, an estimate for {found.model.name}"
