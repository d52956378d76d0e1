"""Sentences about a budget's fit, its losses and the counted conversation.

The module also writes the set-up as text to copy.
"""

from __future__ import annotations

import re
from collections.abc import Sized
from dataclasses import fields

from budgetkit.budget import Amount, Budget, Share, many, one_line
from budgetkit.counters import basis_for
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import BudgetSettings, longest_window
from budgetkit.lab.explorers.shelves import advice, title_of, vocabulary_name
from budgetkit.message import Data
from budgetkit.models import Model
from budgetkit.plan.advice import overcommitted, two_sentences, unused_answers
from budgetkit.state import to_json, to_yaml
from budgetkit.trace import Trace, shipped_traces


def status(stage: BudgetStage) -> Data:
    """Return the status: whether everything fits, and fixes if not."""
    plan = stage.plan
    budget = plan.budget
    if stage.trace is not None and stage.trace.is_silent:
        return silent(stage.trace)

    # Impossible budgets come first: an overflow, reserves and caps above the window, a window that the model lacks.
    is_overrun = plan.free < 0
    warnings = [for_the_hand(warning) for warning in plan.warnings]
    impossible = warnings[:1] if is_overrun else []
    if budget.unclaimed < 0:
        impossible.append(overcommitted(budget))
    impossible += beyond_window(stage)

    # Then the losses, without duplicates: the plan's sentence already states the size of a single loss.
    losses = [loss for loss in plan.losses if loss.tokens]
    sentences = [*impossible]
    if len(losses) > 1:
        cut = sum(grant.cut for grant in plan.grants)
        where = f"are cut at turn {stage.turn:,}" if stage.turn else "of the demand are cut"
        sentences.append(f"{cut:,} tokens {where}.")
    elif losses and stage.turn:
        section = one_line(losses[0].allocation.section)
        warnings = [
            f"At turn {stage.turn:,}, {text}" if text.startswith(section) else text
            for text in warnings
        ]
    sentences += warnings
    sentences += beyond_output(stage)
    if budget.constrained_below is not None and plan.is_constrained and not plan.warnings:
        below = f"{plan.remainder:,} tokens, below {budget.constrained_below:,}"
        sentences.append(
            f"{budget.remainder} is constrained: {below}. Lower a reserve, shorten the conversation, "
            "or choose a larger window."
        )

    level = "fits"
    if sentences or stage.model.notice:
        level = "cut"
    if impossible:
        level = "over"
    if not sentences:
        sentences = ["Everything fits."]
        if stage.first_cut is not None:
            turn, section = stage.first_cut
            first = f"The first cut comes at turn {turn:,}, in {section}."
            sentences = [f"Turn {stage.turn:,} fits. {first}"]
        elif stage.demand is not None:
            turns = len(stage.demand)
            sentences = [f"All {turns:,} turns fit." if turns > 1 else "The only turn fits."]
    sentences += [missing_window(stage), stage.model.notice]
    text, *more = dict.fromkeys(filter(None, sentences))
    return {"level": level, "text": text, "more": more}


def beyond_window(stage: BudgetStage) -> list[str]:
    """List a warning if the window is larger than the model's window."""
    budget = stage.plan.budget
    longest = longest_window(stage.model, budget.kind)
    if longest is None or budget.window <= longest:
        return []
    return [
        f"{stage.model.name} takes at most {longest:,} tokens, but the window is set to {budget.window:,}. "
        f"Set it to {longest:,}, or choose another model."
    ]


def beyond_output(stage: BudgetStage) -> list[str]:
    """List a warning if the output reserve exceeds the model's longest answer."""
    unused = unused_answers(stage.plan.budget, stage.model.max_output)
    return [two_sentences(problem, mend) for problem, mend in unused]


def missing_window(stage: BudgetStage) -> str:
    """Return a notice if the chosen window exceeds the model's window."""
    chosen = stage.settings.missing_window
    if chosen is None:
        return ""
    window = stage.plan.budget.window
    return f"A window of {chosen:,} tokens was chosen, but {stage.model.name} has only {window:,}, which is used."


def for_the_hand(warning: str) -> str:
    """Remove the fixes that need code from a plan's warning.

    Examples
    --------
    >>> for_the_hand('Raise the cap, shorten the text, or in code allow cuts inside it: granularity="line".')
    'Raise the cap, or shorten the text.'
    """
    before, mark, _ = warning.replace("Raise limit_items in code", "Let it keep more").partition(
        ", or in code "
    )
    if not mark:
        return before
    first, comma, last = before.rpartition(", ")
    if comma:
        return f"{first}, or {last}."
    return f"{before}."


def silent(trace: Trace) -> Data:
    """Return the status of a conversation that contains nothing to count.

    It is unknown whether the budget fits.
    """
    first, *more = map(sentence, trace.warnings)
    return {"level": "over", "text": first, "more": more}


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def source(stage: BudgetStage) -> str:
    """Describe the counted conversation and the counter."""
    settings = stage.settings
    if settings.trace is None or stage.demand is None:
        sizes = "the typed sizes" if settings.demand else "typical sizes"
        return f"No conversation is open, so {sizes} are used. Open one to see every turn."
    traces = stage.library.conversations(settings.trace)
    trace = traces[settings.conversation]
    turns = f"turn {stage.turn:,} of {len(stage.demand):,}"
    counted = counted_with(stage, trace)
    better = advice(stage.counter)
    return (
        f"{conversation_label(settings, trace, len(traces))}: {turns}, "
        f"{many(len(trace.messages), 'message')}, {counted}.{better}"
    )


def conversation_label(settings: BudgetSettings, trace: Trace, many: int) -> str:
    """Return a conversation's name, with its number if the file has several."""
    if many == 1:
        return title_of(str(settings.trace), trace)
    number = f"conversation {settings.conversation + 1:,} of {many:,}"
    return f"{settings.trace}, {number} ({trace.title})"


def counted_with(stage: BudgetStage, trace: Trace) -> str:
    """Describe the counter of a conversation, and any uncounted content."""
    counter = stage.counter
    model = stage.model
    left = ""
    if trace.uncounted:
        left = f", without its {' and '.join(trace.uncounted)}"
    if basis_for(counter, model) == "exact":
        return f"counted exactly with {vocabulary_name(counter)}{left}"
    if model.name in counter.name:  # its name includes its basis and its model
        return f"counted with {counter.name}{left}"
    return f"counted with {counter.name}, an estimate for {model.name}{left}"


def texts(stage: BudgetStage) -> dict[str, str]:
    """Return the budget and its set-up in Python, YAML and JSON."""
    settings = stage.settings
    budget = stage.budget
    counter = stage.counter.name
    # The lines that count and read the conversation.
    program = f"{budget_program(settings, stage.model, budget)}\ncount = {counter_of(settings)}"
    # The set-up in one line; reports are shared, so the folders of the file are left out.
    tokenizer = "its own tokenizer" if counter == settings.model else counter
    beside = f"{settings.model}, counted with {tokenizer}"
    if settings.trace is not None:
        beside += f"; {settings.trace}"
        if settings.conversation:
            beside += f", conversation {settings.conversation + 1:,}"
        program += f"\n{load_line(settings)}"
    return {
        "python": program,
        "yaml": f"# {one_line(beside)}\n{to_yaml(budget)}",
        "json": to_json(budget),
    }


def load_line(settings: BudgetSettings) -> str:
    """Return the Python line that loads the conversation.

    If the path of its file is unknown, the line is a comment to complete.
    """
    which = f", conversation={settings.conversation}" if settings.conversation else ""
    line = f"trace = bk.load_trace({settings.path or settings.trace!r}{which})"
    if settings.path or settings.trace in shipped_traces():
        return line
    return f"# Write the path of the file here: {line}"


def counter_of(settings: BudgetSettings) -> str:
    """Return the Python call that makes the counter."""
    if settings.counter:
        return f"bk.counter({settings.counter!r})"
    return f"bk.counter(bk.model({settings.model!r}))"


def budget_program(settings: BudgetSettings, model: Model, budget: Budget) -> str:
    """Return a program that makes the budget.

    Examples
    --------
    >>> import budgetkit as bk
    >>> model = bk.model("gpt-5.4")
    >>> budget = bk.presets.chat(model).assign(conversation=2_000)
    >>> print(budget_program(BudgetSettings("chat", lines={"conversation": 2_000}), model, budget))
    import budgetkit as bk
    <BLANKLINE>
    budget = bk.presets.chat(bk.model('gpt-5.4')).assign(conversation=2000)
    """
    base = settings.base
    names = {line.name for line in budget}
    has_base_rules = (budget.deficit, budget.undeclared) == (base.deficit, base.undeclared)
    if settings.own is not None or not has_base_rules or names != {line.name for line in base}:
        return _own_program(budget)
    opening = "import budgetkit as bk"
    sized = f"bk.model({settings.model!r})"
    if settings.window is not None and model.kind == "shared":
        sized = str(settings.window)
    elif settings.window is not None:
        sized = f"replace({sized}, window={settings.window}, max_output=None)"
        opening = f"from dataclasses import replace\n\n{opening}"

    # A line whose name is no identifier is assigned from a dictionary.
    arguments = []
    other = []
    for name, amount in {**settings.lines, **settings.locks}.items():
        if name not in names:
            continue
        if re.fullmatch(r"[A-Za-z_]\w*", name):
            arguments.append(f"{name}={_amount(amount)}")
        else:
            other.append(f"{name!r}: {_amount(amount)}")
    if other:
        arguments.append(f"**{{{', '.join(other)}}}")
    assigned = f".assign({', '.join(arguments)})" if arguments else ""
    return f"{opening}\n\nbudget = bk.presets.{settings.preset}({sized}){assigned}"


def _amount(amount: Amount | None) -> str:
    return f"bk.{amount!r}" if isinstance(amount, Share) else repr(amount)


def _own_program(budget: Budget) -> str:
    """Return a program that makes a budget from its reserves and allocations."""
    lines = []
    for f in fields(budget):
        value = getattr(budget, f.name)
        code = repr(value)
        if isinstance(value, tuple):
            code = "[\n" + "".join(f"        {part!r},\n" for part in value) + "    ]"
        is_empty = isinstance(value, Sized) and not value
        if f.init and not is_empty and value != f.default:
            lines.append(f"    {f.name}={code},\n")
    names = "from budgetkit import Allocation, Reserve, Share"
    return f"import budgetkit as bk\n{names}\n\nbudget = bk.Budget(\n{''.join(lines)})"
