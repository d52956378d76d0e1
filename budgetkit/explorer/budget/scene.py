"""Scene: what the view shows of an outcome, as plain data: key figures, status, bar, and where it all comes from.

Every number and every sentence on the page is written here; the page only places them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from budgetkit.amounts import Amount, Share
from budgetkit.explorer.budget.outcome import Outcome
from budgetkit.explorer.budget.settings import Settings, amounts_of, usual, with_reserves
from budgetkit.explorer.steps import History
from budgetkit.figures.palette import HATCHED, colour, ink
from budgetkit.figures.question import short
from budgetkit.figures.window import Claim, claims, takes_the_rest
from budgetkit.plan import Plan

Data = dict[str, Any]


def scene(history: History[Settings], found: Outcome, source: str) -> Data:
    """Return the state of the view.

    Parameters
    ----------
    history : History
        The settings and what can be taken back.
    found : Outcome
        What follows from the settings.
    source : str
        Where the demands come from.

    Returns
    -------
    dict
        Ready for JSON.
    """
    settings = history.now
    changed = bool(settings.lines or settings.window is not None or settings.demand)
    actions = {"undo": bool(history.past), "redo": bool(history.future), "reset": changed}
    return {
        "source": source,
        "kpis": kpis(found),
        "bar": bar(settings, found),
        "actions": actions | {"pinned": settings.pinned is not None},
        "figures": shown_figures(found),
    }


def shown_figures(found: Outcome) -> list[str]:
    """Return which figures there is something to draw for.

    Parameters
    ----------
    found : Outcome
        What follows from the settings.

    Returns
    -------
    list of str
        Names out of `FIGURES`.
    """
    names = ["waterfall", "sections"]
    if found.demand is not None:
        names += ["turns", "errors"]
    if found.conversations is not None:
        names.append("conversations")
    return names


def kpis(found: Outcome) -> list[Data]:
    """Return the key figures.

    Parameters
    ----------
    found : Outcome
        What follows from the settings.

    Returns
    -------
    list of dict
        Key, label, value, and where something is pinned the change.
    """
    rows = [_kpi("window", "context window", found, lambda plan: plan.budget.window)]
    rows.append(_kpi("usable", "usable", found, lambda plan: plan.budget.usable))
    rows.append(_kpi("pool", "shared pool", found, lambda plan: plan.budget.shared_pool))
    name = found.plan.budget.remainder
    if name is not None:
        rows.append(_kpi("remainder", f"{name} budget", found, lambda plan: plan.remainder))
    return rows + _first_cut(found)


def _kpi(key: str, label: str, found: Outcome, number: Callable[[Plan], int]) -> Data:
    value, pinned = number(found.plan), found.pinned
    comparable = pinned is not None and (key != "remainder" or pinned.budget.remainder is not None)
    before = number(pinned) if pinned is not None and comparable else None
    change = "" if before is None else f"{value - before:+,} to pinned" if value != before else "as pinned"
    text = f"{value:,}".replace("-", "\u2212")
    return {
        "key": key,
        "label": label,
        "value": text,
        "change": change.replace("-", "\u2212"),
        "level": "alarm" if value < 0 else "",
        "tip": f"{label}: {text} tokens",
    }


def _first_cut(found: Outcome) -> list[Data]:
    if found.demand is None:
        return []
    value = "none" if found.first_cut is None else f"turn {found.first_cut[0]:,}"
    tip = "The first turn at which something is cut"
    tip += "" if found.first_cut is None else f"; {found.first_cut[1]} loses most there"
    return [{"key": "first", "label": "first cut", "value": value, "change": "", "level": "", "tip": tip}]


def bar(settings: Settings, found: Outcome) -> Data:
    """Return the bar of the window.

    Parameters
    ----------
    settings : Settings
        For what is locked.
    found : Outcome
        What follows from the settings.

    Returns
    -------
    dict
        Segments, handles and texts.
    """
    plan = found.plan
    budget = plan.budget
    rest = budget.remainder if takes_the_rest(budget) else None
    segments = [_segment(settings, plan, claim, rest) for claim in claims(plan)]
    pool = next(c.tokens for c in claims(plan) if c.kind == "pool")
    over = -budget.unclaimed if rest is None and budget.unclaimed < 0 else -pool
    return {
        "window": budget.window,
        "pool": pool,
        "rest": rest,
        "segments": segments,
        "usable_text": f"usable {budget.usable:,}".replace("-", "\u2212"),
        "reserved_text": f"reserved {budget.reserved:,}",
        "end_text": f"the window ends at {budget.window:,}; {over:,} too many",
        "ticks": [{"at": at, "text": short(at)} for at in _ticks(budget.window)],
        "pinned": None if found.pinned is None else _pinned(found.pinned),
        "hint": _hint(rest),
    }


def _ticks(window: int) -> list[int]:
    step = nice_step(window * 50)
    return [at for at in range(0, window, step) if window - at > 0.07 * window] + [window]


def _hint(rest: str | None) -> str:
    claimed = f"Each section claims what it takes; {rest} has the rest." if rest else "Each section claims its cap."
    return f"{claimed} Drag a handle, or focus it and press the arrow keys; Shift takes larger steps."


def _pinned(plan: Plan) -> Data:
    segments = [
        {"key": c.line, "tokens": max(0, c.tokens), "color": colour(c.line)} for c in claims(plan) if c.tokens > 0
    ]
    name = plan.budget.name or "own budget"
    return {"text": f"pinned: {name}, {plan.budget.window:,} tokens", "segments": segments}


def _segment(settings: Settings, plan: Plan, claim: Claim, rest: str | None) -> Data:
    line, tokens = claim.line, max(0, claim.tokens)
    hatched = line in HATCHED
    share = f"{tokens:,} tokens, {100 * tokens / max(1, plan.budget.window):.1f} % of the window"
    name = line if claim.kind != "pool" or rest is None else "free"
    gauge = None if claim.kind != "section" or rest is not None else claim.granted / max(1, tokens)
    return {
        "key": line,
        "name": name,
        "kind": claim.kind,
        "tokens": tokens,
        "text": f"{tokens:,}",
        "short": short(tokens),
        "tip": f"{name}: {share}{_asked(plan, claim)}",
        "color": colour(line),
        "ink": "var(--bk-ink)" if hatched else ink(colour(line)),
        "hatch": hatched,
        "used": gauge,
        "cut": _cut(plan, claim),
        "reach": plan[line].demand if claim.kind == "section" and rest is not None else None,
        "handle": None if claim.kind == "pool" else _handle(settings, plan, claim),
    }


def _asked(plan: Plan, claim: Claim) -> str:
    if claim.kind != "section":
        return ""
    grant = plan[claim.line]
    return f"; asks for {grant.demand:,} and gets {grant.granted:,}"


def _cut(plan: Plan, claim: Claim) -> str:
    if claim.kind != "section" or plan[claim.line].cut <= 0:
        return ""
    return f"{plan[claim.line].cut:,} cut"


def _handle(settings: Settings, plan: Plan, claim: Claim) -> Data:
    budget, line = plan.budget, claim.line
    window = max(1, budget.window)
    cap = budget.sizes[line] if claim.kind == "reserve" else budget.caps[line]
    value = window if cap is None else cap
    step = nice_step(window)
    kind = "reserve" if claim.kind == "reserve" else "cap"
    said = f"{value:,} tokens, {100 * value / window:.1f} % of the window" if cap is not None else "no cap of its own"
    return {
        "label": f"{line}, {kind}",
        "min": budget.floors.get(line, 0),
        "max": max(window, value),
        "value": value,
        "from": max(0, claim.tokens),
        "step": step,
        "page": 10 * step,
        "text": said,
        "locked": line in settings.locks,
    }


def nice_step(window: int) -> int:
    """Return a round number of tokens near half a percent of the window.

    Parameters
    ----------
    window : int
        In tokens.

    Returns
    -------
    int
        1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> nice_step(128_000), nice_step(8_192), nice_step(100)
    (500, 20, 1)
    """
    step, goal = 1, window / 200
    for factor in (2, 2.5, 2) * 12:
        if step * factor > goal:
            break
        step = int(step * factor)
    return step


def lines_of(settings: Settings, found: Outcome) -> list[tuple[str, str, Amount | None, bool]]:
    """Return the lines that have a slider: the budget's own, and the usual reserves.

    Parameters
    ----------
    settings : Settings
        What is set.
    found : Outcome
        What follows from the settings.

    Returns
    -------
    list of (str, str, amount, bool)
        Name, "reserve" or "allocation", the amount, and whether a move sets a share of the window.
    """
    budget = found.plan.budget
    kept = amounts_of(budget, settings.base(found.model))
    whole = with_reserves(budget, dict.fromkeys(usual()))
    return [(line.name, line.kind, line.amount, isinstance(kept[line.name], Share)) for line in whole]
