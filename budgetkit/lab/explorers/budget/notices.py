"""Notices: the sentences on the page: whether it fits, what is lost, how to mend it, where the numbers come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.quoting import many, one_line
from budgetkit.counters import Counter, basis_for
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.explorers.budget.settings import BudgetSettings, longest_window
from budgetkit.lab.explorers.shelves import Library, advice, title_of, vocabulary_name
from budgetkit.models import Model
from budgetkit.plan import Plan
from budgetkit.plan.advice import overcommitted, unused_answers
from budgetkit.trace import Trace

Data = dict[str, Any]


def status(results: BudgetResults) -> Data:
    """Return whether everything fits and, where it does not, how to mend it."""
    plan = results.plan
    budget = plan.budget
    if results.trace is not None and results.trace.is_silent:
        return silent(results.trace)

    # What cannot be at all comes first: an overrun, promises that the window does not hold, a window that is not there.
    is_overrun = plan.free < 0
    warnings = [for_the_hand(warning) for warning in plan.warnings]
    impossible = warnings[:1] if is_overrun else []
    if budget.unclaimed < 0:
        impossible.append(overcommitted(budget))
    impossible += beyond_window(budget, results.model)

    # Then what is lost, each loss once: the plan's sentence has its size.
    losses = [loss for loss in plan.losses if loss.tokens]
    sentences = [*impossible]
    if len(losses) > 1:
        if results.turn:
            what = f"Turn {results.turn:,} loses"
        else:
            what = "What is asked loses"
        sentences.append(f"{what} {sum(grant.cut for grant in plan.grants):,} tokens.")
    elif losses and results.turn:
        section = one_line(losses[0].allocation.section)
        warnings = [
            f"At turn {results.turn:,} {text}" if text.startswith(section) else text
            for text in warnings
        ]
    sentences += warnings
    sentences += beyond_output(budget, results.model)
    if budget.constrained_below is not None and plan.is_constrained and not plan.warnings:
        sentences.append(_constrained(plan))

    level = "fits"
    if sentences or results.note:
        level = "cut"
    if impossible:
        level = "over"
    sentences = sentences or [_fits(results)]
    text, *more = dict.fromkeys(
        [*sentences, *missing_window(results), *filter(None, [results.note])]
    )
    return {"level": level, "text": text, "more": more}


def beyond_window(budget: Budget, model: Model) -> list[str]:
    """Say so where the window is longer than the model's."""
    longest = longest_window(model, budget.kind)
    if longest is None or budget.window <= longest:
        return []
    return [
        f"The window is set to {budget.window:,} tokens, and {model.name} takes at most {longest:,}; "
        f"set it to {longest:,}, or choose another model."
    ]


def beyond_output(budget: Budget, model: Model) -> list[str]:
    """Say so where more is kept for the answer than the model writes."""
    return [f"{finding}; {mend}." for finding, mend in unused_answers(budget, model.max_output)]


def missing_window(results: BudgetResults) -> list[str]:
    """Say so where the model does not have the window that was chosen."""
    chosen = results.missing_window
    if chosen is None:
        return []
    window = results.plan.budget.window
    return [
        f"A window of {chosen:,} tokens was chosen; {results.model.name} has {window:,}, and that is planned."
    ]


def for_the_hand(warning: str) -> str:
    """Return a plan's warning without what only code can do about it.

    Examples
    --------
    >>> for_the_hand('raise the cap, shorten the text, or in code let it be cut inside, with granularity="line".')
    'raise the cap, or shorten the text.'
    """
    before, mark, _ = warning.replace("raise limit_items in code", "let it keep more").partition(
        ", or in code "
    )
    if not mark:
        return before
    first, comma, last = before.rpartition(", ")
    if comma:
        return f"{first}, or {last}."
    return f"{before}."


def silent(trace: Trace) -> Data:
    """Return the status of a conversation in which nothing can be counted: nobody knows what would fit."""
    first, *more = trace.warnings
    return {
        "level": "over",
        "text": _sentence(first),
        "more": [_sentence(notice) for notice in more],
    }


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _constrained(plan: Plan) -> str:
    return (
        f"{plan.budget.remainder} is constrained: {plan.remainder:,} tokens, below "
        f"{plan.budget.constrained_below:,}; lower a reserve, shorten the conversation, or choose a larger window."
    )


def _fits(results: BudgetResults) -> str:
    if results.demand is None:
        return "Everything fits."
    if results.first_cut is None:
        return f"Everything fits, in {'all ' if len(results.demand) > 1 else ''}{many(len(results.demand), 'turn')}."
    turn, section = results.first_cut
    return f"Turn {results.turn:,} fits. The first cut comes at turn {turn:,}, in {section}."


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them.

    Examples
    --------
    >>> listed(["history"]), listed(["system", "memory", "history"])
    ('history', 'system, memory and history')
    """
    *others, last = names
    if not others:
        return last
    return f"{', '.join(others)} and {last}"


def source(settings: BudgetSettings, results: BudgetResults, library: Library) -> str:
    """Return where the demands come from and how they were counted."""
    if settings.trace is None or results.demand is None:
        return (
            "No conversation: the sections ask for the sizes typed in. Open one to see every turn."
        )
    traces = library.conversations(settings.trace)
    trace = traces[settings.conversation]
    turns = f"turn {results.turn:,} of {len(results.demand):,}"
    counted = counted_with(results.counter, results.model, trace)
    better = advice(results.counter)
    return (
        f"{called(settings, trace, len(traces))}: {turns}, "
        f"{many(len(trace.messages), 'message')}, {counted}.{better}"
    )


def called(settings: BudgetSettings, trace: Trace, many: int) -> str:
    """Return what a conversation is called, and which of a file's it is where that has many."""
    if many == 1:
        return title_of(str(settings.trace), trace)
    return (
        f"{settings.trace}, conversation {settings.conversation + 1:,} of {many:,} ({trace.title})"
    )


def counted_with(counter: Counter, model: Model, trace: Trace) -> str:
    """Return how a conversation was counted, and what of it was not."""
    if trace.uncounted:
        left = f", without its {' and '.join(trace.uncounted)}"
    else:
        left = ""
    if basis_for(counter, model) == "exact":
        return f"counted exactly with {vocabulary_name(counter)}{left}"
    if model.name in counter.name:  # its name says already what it rests on, and for which model
        return f"counted with {counter.name}{left}"
    return f"counted with {counter.name}, an estimate for {model.name}{left}"
