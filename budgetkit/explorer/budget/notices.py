"""Notices: the sentences on the page: whether it fits, what is lost, how to mend it, where the numbers come from."""

from collections.abc import Sequence
from typing import Any

from budgetkit.counters import Counter
from budgetkit.explorer.budget.results import Results, is_own
from budgetkit.explorer.budget.settings import Settings
from budgetkit.explorer.library import Library
from budgetkit.models import Model
from budgetkit.plan import Grant, Plan
from budgetkit.plan.losses import overcommitted
from budgetkit.trace import Trace

Data = dict[str, Any]


def status(found: Results) -> Data:
    """Return whether everything fits and, where it does not, how to mend it."""
    plan = found.plan
    if found.trace is not None and found.trace.is_silent:
        return silent(found.trace)
    lost = sorted((grant for grant in plan.grants if grant.cut > 0), key=lambda grant: -grant.cut)
    over = plan.free < 0 or plan.budget.unclaimed < 0
    warned = [*map(for_the_hand, plan.warnings)]
    claimed = [overcommitted(plan.budget)] if plan.budget.unclaimed < 0 else []
    said = [*dict.fromkeys([*warned[: plan.free < 0], *claimed, *warned])] or [_fits(found)]
    if lost:
        said.insert(int(over), _lost(found, lost))
    if plan.budget.constrained_below is not None and plan.is_constrained and not plan.warnings:
        said.append(_constrained(plan))
    more = [*said[1:], *([found.note] if found.note else [])]
    level = "over" if over else "cut" if plan.warnings or lost or more else "fits"
    return {"level": level, "text": said[0], "more": [*more, *left_out(found.trace)]}


def for_the_hand(warning: str) -> str:
    """Return a plan's warning without what only code can do about it.

    Examples
    --------
    >>> for_the_hand('raise the cap, shorten the text, or in code let it be cut inside, with granularity="line".')
    'raise the cap, or shorten the text.'
    """
    before, mark, _ = warning.replace("raise limit_items in code", "let it keep more").partition(", or in code ")
    if not mark:
        return before
    first, comma, last = before.rpartition(", ")
    return f"{first}, or {last}." if comma else f"{before}."


def silent(trace: Trace) -> Data:
    """Return the status of a conversation in which nothing can be counted: nobody knows what would fit."""
    first, *more = trace.warnings
    return {"level": "over", "text": _sentence(first), "more": [_sentence(each) for each in more]}


def left_out(trace: Trace | None) -> list[str]:
    """Return what reading a file left out or changed; kinds of content are named in the source line."""
    if trace is None:
        return []
    told = trace.warnings[:-1] if trace.uncounted else trace.warnings
    return [_sentence(each) for each in told]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _constrained(plan: Plan) -> str:
    return (
        f"{plan.budget.remainder} is constrained: {plan.remainder:,} tokens, below "
        f"{plan.budget.constrained_below:,}; lower a reserve, shorten the conversation, or choose a larger window."
    )


def _fits(found: Results) -> str:
    if found.demand is None:
        return "Everything fits."
    if found.first_cut is None:
        return f"Everything fits, in {'all ' if len(found.demand) > 1 else ''}{many(len(found.demand), 'turn')}."
    turn, section = found.first_cut
    return f"Turn {found.turn:,} fits. The first cut comes at turn {turn:,}, in {section}."


def _lost(found: Results, lost: list[Grant]) -> str:
    where = f"Turn {found.turn:,} loses" if found.turn else "What is asked loses"
    parts = [_part(found.plan, grant) for grant in lost]
    return f"{where} {sum(g.cut for g in lost):,} tokens: {', '.join(parts)}."


def _part(plan: Plan, grant: Grant) -> str:
    items = plan.decisions.lost(grant.section)
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


def many(number: int, what: str) -> str:
    """Return how many there are of something.

    >>> many(1, "turn"), many(1_200, "turn")
    ('1 turn', '1,200 turns')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def source(settings: Settings, found: Results, library: Library) -> str:
    """Return where the demands come from and how they were counted."""
    if settings.trace is None or found.demand is None:
        return "No conversation: the sections ask for the sizes typed in. Open one to see every turn."
    traces = library.conversations(settings.trace)
    trace = traces[settings.conversation]
    turns = f"turn {found.turn:,} of {len(found.demand):,}"
    counted = counted_with(found.counter, found.model, trace)
    return f"{called(settings, trace, len(traces))}: {turns}, {many(len(trace.messages), 'message')}, {counted}."


def called(settings: Settings, trace: Trace, many: int) -> str:
    """Return what a conversation is called, and which of a file's it is where that has many."""
    if many == 1:
        return Library.called(str(settings.trace), trace)
    return f"{settings.trace}, conversation {settings.conversation + 1:,} of {many:,} ({trace.title})"


def counted_with(counter: Counter, model: Model, trace: Trace) -> str:
    """Return how a conversation was counted, and what of it was not."""
    left = f", without its {' and '.join(trace.uncounted)}" if trace.uncounted else ""
    if is_own(counter, model):
        return f"counted exactly with {model.encoding}{left}"
    return f"counted with {counter.name}, an estimate for {model.name}{left}"
