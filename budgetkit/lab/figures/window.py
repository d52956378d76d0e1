"""Figures of a plan: its sections, and the claims on the window.

    remainder = window - reserves - claims of the other sections

A section claims its cap, or the tokens that it is granted if these exceed the cap. If the budget's remainder is a
section without a cap, such as the history, all other sections claim the tokens that they are granted, and the remainder
is the limit of the uncapped section.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Literal

from budgetkit.budget import Budget
from budgetkit.budget.html import ALARM, HATCHED, POOL, WINDOW, colour, ink, translucent
from budgetkit.lab.figures.question import (
    TOKENS,
    Columns,
    Question,
    Spec,
    bars,
    label,
    named_rows,
    note,
    plain,
    points,
    short,
    signed,
    spec_of,
    table_rows,
)
from budgetkit.plan import Plan, allocate

ROW = 40  # pixels for a line of text and the bar below it


def _answer(plan: Plan) -> Columns:
    names = ("section", "demand", "limit", "granted", "cut")
    return {
        **{name: [getattr(grant, name) for grant in plan.grants] for name in names},
        "items": [len(plan.decisions.columns.rows(grant.section)) for grant in plan.grants],
        "items_cut": [plan.decisions.lost(grant.section) for grant in plan.grants],
    }


def _draw(table: Columns) -> Spec:
    sections = list(table["section"])
    every = table_rows(table)
    hover = [f"{plain(row['section'])}: {_sentence(row)}" for row in every]
    colours = [colour(section) for section in sections]
    common: Spec = {"customdata": sections, "tips": hover, "width": 0.32}
    edges = {"width": [int(tokens > 0) for tokens in table["demand"]], "color": colours}
    shades = {"color": [translucent(c, 0.28) for c in colours], "line": edges}
    demand_bars = bars(table["demand"], marker=shades, **common)
    granted = bars(table["granted"], marker={"color": colours}, **common)
    names = [f"<b>{plain(row['section'])}</b>  {_sentence(row)}" for row in every]
    few = []
    for row in every:
        words = short(row["demand"])
        if row["granted"] != row["demand"]:
            words = f"{short(row['granted'])} of {words}"
        few.append(f"<b>{label(row['section'], 16)}</b>  {words}")
    above = [place - 0.42 for place in demand_bars["y"]]
    texts = points([0] * len(names), above, text=names, meta={"short": few}, hoverinfo="skip")
    texts |= {"mode": "text", "textposition": "middle right", "cliponaxis": False}
    cut = [place for place in demand_bars["y"] if table["cut"][place] > 0]
    mark = {"symbol": "line-ns-open", "size": 18, "color": ALARM, "line": {"width": 3}}
    ends = points([table["granted"][place] for place in cut], cut, hoverinfo="skip", marker=mark)
    most = max(table["demand"], default=0)
    x = {
        **TOKENS,
        "range": [0, max(1, most) * 1.04],
        "nticks": 5,
        "showticklabels": most >= 5,
        "showgrid": False,
    }
    y = {"range": [len(names) - 0.6, -0.8], "visible": False}
    height = len(names) * ROW + 60
    return spec_of(
        [demand_bars, granted, texts, ends], height, x, y, barmode="overlay", meta={"top": 2}
    )


def _sentence(row: dict[str, Any]) -> str:
    demand = f"{row['demand']:,}"
    if row["granted"] == row["demand"]:
        return demand
    items = row["items_cut"]
    lost = f"{items} {'item' if items == 1 else 'items'} cut" if items else "cut"
    return f"{row['granted']:,} of {demand}, {lost}"


def _say(table: Columns) -> str:
    cut = [tokens for tokens in table["cut"] if tokens]
    if not cut:
        return "Every section gets what it asks for"
    return f"{sum(cut):,} tokens are cut, in {len(cut)} of {len(table['cut'])} sections"


#: Draw each section's demand and grant, with the number of items that were cut.
sections = Question("How much does each section ask for, and get?", _answer, _draw, _say)


LINE = 26  # pixels for one bar and the space around it


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a section, reserve or pool on the window."""

    line: str
    kind: Literal["section", "pool", "reserve"]
    tokens: int
    granted: int


def takes_the_rest(budget: Budget) -> bool:
    """Return True if the budget's remainder is a section without a cap."""
    return budget.remainder is not None and budget.caps[budget.remainder] is None


def window_claims(plan: Plan) -> tuple[Claim, ...]:
    """Return all claims on the window, whose sum is the window.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(1000, [bk.Reserve("output", 200)], [bk.Allocation("system", 300)])
    >>> [(claim.line, claim.tokens) for claim in window_claims(bk.allocate(budget, {"system": 250}))]
    [('system', 300), ('shared pool', 500), ('output', 200)]
    """
    budget = plan.budget
    by_cap = not takes_the_rest(budget)
    least = {section: (cap or 0) if by_cap else 0 for section, cap in budget.caps.items()}
    sections = [
        Claim(g.section, "section", max(g.granted, least[g.section]), g.granted)
        for g in plan.grants
    ]
    claimed = {claim.line: claim.tokens for claim in sections}
    reserves = []
    for reserve in budget.reserves:
        size = budget.sizes[reserve.name]
        if reserve.serves == "output" and budget.kind != "shared":
            size = 0
        if reserve.serves in claimed:
            overlap = min(size, claimed[reserve.serves])
            claimed[reserve.serves] -= overlap
            size -= overlap
        reserves.append(Claim(reserve.name, "reserve", size, size))
    left = budget.window - sum(claim.tokens for claim in (*sections, *reserves))
    return (*sections, Claim(POOL, "pool", left, 0), *reserves)


def left_of_pool(plan: Plan) -> int:
    """Return the window's unclaimed tokens, negative if too many are claimed.

    Examples
    --------
    A required section may exceed its cap; the extra tokens come from the pool first.

    >>> import budgetkit as bk
    >>> budget = bk.Budget(500, [], [bk.Allocation("system", 100, required=True), bk.Allocation("history", 300)])
    >>> [left_of_pool(bk.allocate(budget, {"system": tokens})) for tokens in (50, 150, 350)]
    [100, 50, -150]
    """
    return next(claim.tokens for claim in window_claims(plan) if claim.kind == "pool")


def too_many(plan: Plan) -> int:
    """Return the number of tokens that the window lacks, or 0.

    The number is the first of three excesses that is not 0: the plan's overflow, then the caps and reserves beyond the
    window, then all claims beyond the window. The second excess is skipped if the remainder is a section without a cap.
    Claims can exceed the window without an overflow, because a required section above its cap may use tokens that other
    caps leave unused.

    Examples
    --------
    >>> import budgetkit as bk
    >>> lines = [bk.Allocation("system", 100, required=True), bk.Allocation("history", 300)]
    >>> budget = bk.Budget(500, [], lines, deficit="signed")
    >>> [too_many(bk.allocate(budget, {"system": tokens})) for tokens in (50, 350, 600)]
    [0, 150, 100]
    """
    budget = plan.budget
    if plan.free < 0:
        return -plan.free
    if budget.unclaimed < 0 and not takes_the_rest(budget):
        return -budget.unclaimed
    return max(0, -left_of_pool(plan))


def _window_answer(plan: Plan | Budget) -> Columns:
    lines = window_claims(allocate(plan, {}) if isinstance(plan, Budget) else plan)
    names = ("line", "kind", "tokens", "granted")
    return {name: [getattr(claim, name) for claim in lines] for name in names}


def _draw_window(table: Columns) -> Spec:
    sizes = [max(0, tokens) for tokens in table["tokens"]]
    total = sum(sizes)
    window = sum(table["tokens"])
    segments = []
    for line, size in zip(table["line"], sizes, strict=True):
        tokens = f"{size:,}"
        fits = size > total * 0.0115 * max(len(line), len(tokens))
        segments.append(
            bars(
                [size],
                width=[0.8],
                customdata=[line],
                marker={
                    "color": colour(line),
                    "pattern": {"shape": "/" if line in HATCHED else ""},
                },
                text=[f"{plain(line)}<br>{tokens}" if fits else ""],
                textposition="inside",
                textangle=0,
                insidetextanchor="start",
                textfont={"color": ink(colour(line))},
                tips=[f"{plain(line)}: {tokens} tokens"],
            )
        )
    x = {**TOKENS, "range": [0, total]}
    drawn = spec_of(segments, 170, x, {"visible": False, "range": [-0.6, 0.75]}, barmode="stack")
    if total > window:
        ends = {"x0": window, "x1": window, "y0": -0.5, "y1": 0.5}
        mark = {"type": "line", "line": {"color": ALARM, "width": 3}, **ends}
        words = f"window ends: {window:,}"
        end = note(words, window, 0.5, yanchor="bottom", xanchor="right")
        drawn["layout"] |= {"shapes": [mark], "annotations": [end]}
    return drawn


def _say_window(table: Columns) -> str:
    sums = dict.fromkeys(("section", "pool", "reserve"), 0)
    for kind, tokens in zip(table["kind"], table["tokens"], strict=True):
        sums[kind] += tokens
    if sums["pool"] < 0:
        return f"{-sums['pool']:,} tokens too many are claimed"
    return f"{sums['reserve']:,} reserved, {sums['section']:,} claimed, {sums['pool']:,} in the shared pool"


def _waterfall_answer(plan: Plan | Budget) -> Columns:
    if isinstance(plan, Budget):
        plan = allocate(plan, {})
    budget = plan.budget
    rest = budget.remainder if takes_the_rest(budget) else None
    lines = window_claims(plan)
    reserves = [c for c in lines if c.kind == "reserve" and c.tokens]
    sections = [c for c in lines if c.kind == "section" and c.line != rest]
    if not rest:
        sections = [c for c in sections if budget.caps[c.line] is not None]
    steps = [(WINDOW, "window", budget.window, 0, budget.window)]
    left = budget.window
    for claim in (*reserves, *sections):
        steps.append((claim.line, claim.kind, -claim.tokens, left, left - claim.tokens))
        left -= claim.tokens
    steps.append((rest or POOL, "remainder", left, 0, left))
    names = ("line", "kind", "tokens", "start", "end")
    return {name: [*column] for name, column in zip(names, zip(*steps, strict=True), strict=True)}


def _draw_waterfall(table: Columns) -> Spec:
    lines = table["line"]
    ends = [sorted(pair) for pair in zip(table["start"], table["end"], strict=True)]
    texts = [*map(signed, table["tokens"])]
    hover = [f"{plain(line)}: {text} tokens" for line, text in zip(lines, texts, strict=True)]
    colours = [*map(colour, lines)]
    if table["tokens"][-1] < 0:  # what remains
        colours[-1] = ALARM
    marker = {
        "color": colours,
        "pattern": {"shape": ["/" if line in HATCHED else "" for line in lines]},
        "line": {"width": 0.5, "color": "rgba(128,128,128,0.6)"},
    }
    low, high = ([*side] for side in zip(*ends, strict=True))
    sizes = map(operator.sub, high, low)
    bar = bars(sizes, texts, hover, base=low, customdata=lines, marker=marker)
    widest = float(max(high))
    x = {
        **TOKENS,
        "range": [min(0.0, float(min(low))) * 1.15, widest * 1.24],
        "nticks": 5,
        "showgrid": False,
    }
    y = {**named_rows(lines), "zeroline": False}
    meta = {"top": 4, "beside": max(map(len, texts)), "reach": widest}
    return spec_of([bar], len(lines) * LINE + 84, x, y, meta=meta)


def _say_waterfall(table: Columns) -> str:
    return f"{signed(table['tokens'][-1])} tokens: the {table['line'][-1]}"


#: Draw a plan's window as one bar of sections, shared pool and reserves, which add up to the window.
window = Question("What fills the window?", _window_answer, _draw_window, _say_window)

#: Draw the subtraction from the window, through the reserves and the other claims, to the remainder.
waterfall = Question(
    "What is left of the window?", _waterfall_answer, _draw_waterfall, _say_waterfall
)
