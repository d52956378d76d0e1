"""Key figures, window bar and figures of the budget explorer."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from budgetkit.budget import Budget, brief, many
from budgetkit.budget.html import HATCHED, colour, ink
from budgetkit.lab import figures
from budgetkit.lab.explorers.budget.notices import source
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.folds import Kpi, chart
from budgetkit.lab.explorers.panel import explained, word_meaning
from budgetkit.lab.figures.question import Columns, Question, short, signed
from budgetkit.lab.figures.turns import ALL
from budgetkit.lab.figures.window import (
    Claim,
    left_of_pool,
    takes_the_rest,
    too_many,
    window_claims,
)
from budgetkit.message import Data
from budgetkit.plan import Plan
from budgetkit.plan.batch import RequestBatch

#: The name of each kind of window, and the place of the answer.
WINDOWS = {"shared": "context window", "input": "input window", "usable": "usable window"}
BESIDE = {
    "shared": "",
    "input": "the answer comes on top of the window",
    "usable": "the answer has its own space outside the window",
}
BESIDE_SHORT = {"input": "on top", "usable": "beside it"}


def bar(stage: BudgetStage, plan: Plan) -> Data:
    """Return a plan's window bar as data for the page."""
    budget = plan.budget
    rest = budget.remainder if takes_the_rest(budget) else None
    segments = [_segment(stage.settings, plan, claim, rest) for claim in window_claims(plan)]

    claimed = "Each section claims its cap."
    if rest:
        claimed = f"Each section claims what it uses; {rest} gets the rest."
    if beside := BESIDE[budget.kind]:
        claimed += f" {beside[0].upper()}{beside[1:]}."
    keys = "Drag a handle, or focus it and press an arrow key; hold Shift for larger steps."

    pinned = None
    before = stage.pinned
    if before is not None:
        name = before.budget.name or "own budget"
        parts = [
            {"key": c.line, "tokens": c.tokens, "color": colour(c.line)}
            for c in window_claims(before)
            if c.tokens > 0
        ]
        text = f"pinned: {name}, {before.budget.window:,} tokens"
        pinned = {"text": text, "segments": parts}

    # The bar in one line: tokens used, unused, free and cut.
    over = too_many(plan)
    free = f"over by {over:,}" if over else f"free {left_of_pool(plan):,}"
    caps = sum(c.tokens - c.granted for c in window_claims(plan) if c.kind == "section")
    unused = f" · unused caps {caps:,}" if caps else ""
    cut = sum(grant.cut for grant in plan.grants)

    window = budget.window
    ends = [at for at in range(0, window, nice_step(window * 50)) if window - at > 0.07 * window]
    return {
        "window": window,
        "pool": left_of_pool(plan),
        "rest": rest,
        "segments": segments,
        "usable_text": f"usable {signed(budget.usable)}",
        "reserved_text": f"reserved {budget.reserved:,}",
        "end_text": f"Window ends at {window:,}; over by {over:,}",
        "ticks": [{"at": at, "text": short(at)} for at in (*ends, window)],
        "pinned": pinned,
        "hint": f"{claimed} {keys}",
        "sums": f"used {plan.used:,}{unused} · {free} · cut {cut:,}",
    }


def _segment(settings: BudgetSettings, plan: Plan, claim: Claim, rest: str | None) -> Data:
    line = claim.line
    tokens = max(0, claim.tokens)
    hatched = line in HATCHED
    name = claim_name(plan, claim, rest)
    handle = None if claim.kind == "pool" else _handle(settings, plan, claim)
    size = f"{tokens:,}"
    if _is_beside(plan.budget, claim):
        size = f"{plan.budget.sizes[line]:,} {BESIDE_SHORT[plan.budget.kind]}"
    cut = ""
    gauge: float | None = None
    reach: int | None = None
    if claim.kind == "section":
        grant = plan[line]
        if grant.cut > 0:
            cut = f"{grant.cut:,} cut"
        if rest is None:
            gauge = claim.granted / max(1, tokens)
        else:
            reach = grant.demand
    return {
        "key": line,
        "name": name,
        "kind": claim.kind,
        "tokens": tokens,
        "text": size,
        "tip": _tip(plan, claim, name),
        "color": colour(line),
        "ink": "var(--bk-ink)" if hatched else ink(colour(line)),
        "hatch": hatched,
        "used": gauge,
        "cut": cut,
        "reach": reach,
        "handle": handle,
    }


def _is_beside(budget: Budget, claim: Claim) -> bool:
    """Return True for an answer's reserve outside the window."""
    serves = {reserve.name: reserve.serves for reserve in budget.reserves}
    return claim.kind == "reserve" and serves[claim.line] == "output" and budget.kind != "shared"


def claim_name(plan: Plan, claim: Claim, rest: str | None) -> str:
    """Return the bar's name for a claim, or for unclaimed tokens."""
    # Sections without a cap draw on the shared pool; the bar shows the rest of it.
    if claim.kind != "pool" or (rest is None and claim.tokens == plan.budget.shared_pool):
        return claim.line
    if rest is not None:
        return "free"
    return "left in pool"


def _tip(plan: Plan, claim: Claim, name: str) -> str:
    tokens = max(0, claim.tokens)
    if _is_beside(plan.budget, claim):
        return f"{name}: {many(plan.budget.sizes[claim.line], 'token')}; {BESIDE[plan.budget.kind]}"
    share = (
        f"{many(tokens, 'token')}, {100 * tokens / max(1, plan.budget.window):.1f} % of the window"
    )
    if name == "left in pool":
        pool = plan.budget.shared_pool
        drawn = [
            f"{g.section} took {g.granted:,}"
            for g in plan.grants
            if plan.budget.caps[g.section] is None and g.granted
        ]
        if drawn:
            share += f"; {', '.join(drawn)} of {signed(pool)} in the shared pool"
    if claim.kind == "section":
        grant = plan[claim.line]
        share += f"; it asks for {grant.demand:,} and gets {grant.granted:,}"
    return explained(f"{name}: {share}", name)


def _handle(settings: BudgetSettings, plan: Plan, claim: Claim) -> Data:
    budget = plan.budget
    line = claim.line
    window = max(1, budget.window)
    cap = budget.sizes[line] if claim.kind == "reserve" else budget.caps[line]
    value = window if cap is None else cap
    step = nice_step(window)
    kind = "reserve" if claim.kind == "reserve" else "cap"
    label = "no cap"
    if cap is not None:
        label = f"{many(value, 'token')}, {100 * value / window:.1f} % of the window"
    return {
        "label": f"{line}, {kind}",
        "min": budget.floors.get(line, 0),
        "max": max(window, value),
        "value": value,
        "from": max(0, claim.tokens),
        "step": step,
        "page": 10 * step,
        "text": label,
        "locked": line in settings.locks,
    }


def nice_step(window: int) -> int:
    """Return a round number of tokens near 0.5 % of the window.

    Examples
    --------
    >>> nice_step(128_000), nice_step(8_192), nice_step(100)
    (500, 20, 1)
    """
    step = 1
    goal = window / 200
    for factor in (2, 2.5, 2) * 12:
        if step * factor > goal:
            break
        step = int(step * factor)
    return step


def scene(stage: BudgetStage) -> Data:
    """Return the state of the page: source, key figures, bar and figures."""
    return {
        "source": source(stage),
        "kpis": [kpi.drawn for kpi in kpis(stage)],
        "bar": bar(stage, stage.plan),
        "actions": {"pinned": stage.pinned is not None},
        "figures": shown_figures(stage),
    }


def shown_figures(stage: BudgetStage) -> list[str]:
    """Return the names of the figures that have data."""
    names = ["waterfall", "sections"]
    if stage.demand is not None:
        # The figure that users look for comes first.
        names = ["turns", "sections", "waterfall", "errors"]
    if stage.requests is not None and len(stage.requests.traces) > 1:
        names.append("conversations")
    return names


def kpis(stage: BudgetStage) -> list[Kpi]:
    """Return the key figures of the budget, including its first cut."""
    kind = stage.plan.budget.kind
    rows = [_kpi("window", WINDOWS[kind], stage, lambda plan: plan.budget.window, BESIDE[kind])]
    rows.append(_kpi("usable", "usable", stage, lambda plan: plan.budget.usable))
    pool = _kpi("pool", "shared pool", stage, lambda plan: plan.budget.shared_pool)
    name = stage.plan.budget.remainder
    if takes_the_rest(stage.plan.budget):
        inside = f"inside the {name} budget"
        change = "; ".join(filter(None, [pool.change, inside]))
        pool = replace(pool, change=change, tip=f"{pool.tip} It is {inside}.")
    rows.append(pool)
    if name is not None:
        rows.append(_kpi("remainder", f"{name} budget", stage, lambda plan: plan.remainder))
    if stage.demand is not None:
        tip = word_meaning("first cut")
        first = Kpi("first", "first cut", "none", tip)
        if stage.first_cut is not None:
            turn, section = stage.first_cut
            tip = f"{tip} There, {section} loses most."
            first = Kpi("first", "first cut", f"turn {turn:,}", tip, f"in {section}")
        rows.append(first)
    return rows


def _kpi(
    key: str, label: str, stage: BudgetStage, number: Callable[[Plan], int], more: str = ""
) -> Kpi:
    value = number(stage.plan)
    pinned = stage.pinned
    change = ""
    if pinned is not None and (key != "remainder" or pinned.budget.remainder is not None):
        moved = value - number(pinned)
        change = f"{signed(moved, always=True)} vs. pinned" if moved else "same as pinned"
    tip = f"{label}: {signed(value)} tokens{f'; {more}' if more else ''}"
    level = "alarm" if value < 0 else ""
    narrow = short(value).replace("-", "−")
    return Kpi(key, label, signed(value), explained(tip, label), change, level, narrow)


def charts(stage: BudgetStage, opened: Collection[str]) -> dict[str, Data]:
    """Return the figures under their names, as data for the page."""
    drawn = {}
    for name in shown_figures(stage):
        question, table, note = _figure(name, stage)
        drawn[name] = chart(
            question, table, note, name in opened, "turn" if name == "turns" else None
        )
    return drawn


def _figure(name: str, stage: BudgetStage) -> tuple[Question[...], Columns, str]:
    """Return a figure, its table, and the sentence that answers the question."""
    budget = stage.plan.budget
    if name == "waterfall":
        table = figures.waterfall.answer(stage.plan)
        left = signed(table["tokens"][-1])
        shares = f"caps leaves {left} tokens in the shared pool"
        if takes_the_rest(budget):
            shares = f"the other sections' demand leaves {left} tokens for {table['line'][-1]}"
        return figures.waterfall, table, f"The window minus reserves and {shares}."

    if name == "sections":
        table = figures.sections.answer(stage.plan)
        demand, granted = sum(table["demand"]), sum(table["granted"])
        at = f" at turn {stage.turn:,}" if stage.turn else ""
        note = f"{granted:,} of the {demand:,} tokens asked for are granted{at}."
        if granted == demand:
            note = f"All {demand:,} tokens asked for are granted{at}."
        if not demand:
            note = "No section asks for tokens. Type sizes in, or open a conversation."
        return figures.sections, table, note

    if name == "turns" and stage.turns is not None:
        pinned = stage.pinned.budget if stage.pinned else None
        turns = (stage.turns, stage.turn, pinned, stage.pinned_turns)
        table = figures.turns.answer(budget, *turns)
        line = table["line"][0]
        limit = table["limit"][stage.turn - 1]
        note = f"{line} may take {signed(limit)} tokens at turn {stage.turn:,}; "
        if limit < 0:
            note = f"Nothing is left for {line} at turn {stage.turn:,}: {-limit:,} tokens are missing; "
        if stage.first_cut is None:
            note += "nothing is ever cut."
        else:
            turn, section = stage.first_cut
            note += f"the first cut comes at turn {turn:,}, in {section}. Click a turn to go there."
        return figures.turns, table, note + _cut_anywhere(stage.turns)

    if name == "errors" and stage.requests is not None:
        best, cheap = (
            replace(stage.requests, counter=counter).turns(stage.settings.conversation)
            for counter in (stage.best, stage.cheap)
        )
        table = figures.counter_error.answer(budget, best, cheap)
        line, error, percent, shift = (
            table[column][stage.turn - 1] for column in ("line", "error", "error_percent", "shift")
        )
        size = "the same as"
        if error:
            size = f"{abs(percent):.1f} % {'more' if error > 0 else 'less'} than"
        note = f"At turn {stage.turn:,}, {stage.cheap.name} counts {size} {stage.best.name}"
        if line != ALL:
            moved = f"does not change the {line} budget"
            if shift:
                moved = f"makes the {line} budget {many(abs(shift), 'token')} too {'large' if shift > 0 else 'small'}"
            note += f", which {moved}"
        return figures.counter_error, table, f"{note}."

    if name == "conversations" and stage.requests is not None:
        batch = stage.requests.all_turns()
        table = figures.conversations.answer(budget, batch)
        lost = f"{table['cut'][0]:,} of {table['conversations'][0]:,} conversations"
        note = f"{lost} lose something in at least one turn.{_cut_anywhere(batch)}"
        return figures.conversations, table, note
    raise LookupError(f"These settings have no figure {brief(name)}. Open a conversation.")


def _cut_anywhere(requests: RequestBatch) -> str:
    """Return a note if cuts may split messages, or else ""."""
    if requests.items is not None:
        return ""
    return f" {len(requests.demand):,} turns are too many to plan message by message, so a cut may split a message."
