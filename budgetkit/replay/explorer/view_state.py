"""Scene: the key figures of a replay, and what can be taken back."""

from __future__ import annotations

from typing import Any

from budgetkit.explorer.undo import UndoStack
from budgetkit.figures.question import short
from budgetkit.replay.explorer.results import Results
from budgetkit.replay.explorer.settings import Settings

Data = dict[str, Any]
FIGURES = ("timeline", "caching", "dropping", "fan", "spending", "ranking")


def scene(history: UndoStack[Settings], found: Results, start: Settings, source: str) -> Data:
    """Return the state of the view."""
    now = history.now
    actions = {"undo": bool(history.past), "redo": bool(history.future), "reset": now != now.as_at(start)}
    return {"source": source, "kpis": kpis(found), "actions": actions, "figures": list(FIGURES)}


def kpis(found: Results) -> list[Data]:
    """Return the key figures of the policy that is shown."""
    return [_first(found), *_totals(found), _evidence(found), _now(found)]


def _kpi(key: str, label: str, value: str, tip: str, change: str = "", level: str = "") -> Data:
    return {"key": key, "label": label, "value": value, "change": change, "level": level, "tip": tip}


def _first(found: Results) -> Data:
    first = found.shown.first_loss
    value = "none" if first is None else f"turn {found.turn_of(first):,}"
    change = f"request {first:,}" if first is not None and found.run.by == "request" else ""
    tip = f"The first request from which something is missing under {found.main!r}"
    return _kpi("first", "first loss", value, tip, change)


def _totals(found: Results) -> list[Data]:
    totals = found.shown.totals
    sent, cached, cost = int(totals["sent"]), int(totals["cached"]), totals["cost"]
    known = cost == cost
    money = dollars(cost) if known else "unknown"
    what = "All requests with their answers and summaries" if known else "A price that is needed is not known"
    return [
        _kpi("sent", "sent in all", short(sent), f"{sent:,} tokens in {found.requests:,} requests"),
        _kpi("cached", "read from the cache", f"{totals['cached_share']:.1%}", f"{cached:,} of {sent:,} tokens sent"),
        _kpi("cost", "cost in all", money, f"{what}; {found.run.prices.source}", level="" if known else "alarm"),
    ]


def _evidence(found: Results) -> Data:
    needed, present = found.shown.evidence
    source = str(found.shown.pairs["source"].iloc[0]) if needed else ""
    proxy = source != "marked"
    label = "evidence present (proxy)" if proxy else "evidence present"
    if not needed:
        return _kpi("evidence", label, "none found", "No later message names what an earlier one introduced")
    how = "a later message names again" if proxy else "is marked as needed by a later message"
    tip = f"Of what {how}, {present:,} of {needed:,} were in the window then"
    return _kpi("evidence", label, f"{present / needed:.0%}", tip + ("; it compares policies, not answers" * proxy))


def _now(found: Results) -> Data:
    row = found.shown.frame.iloc[found.request - 1]
    change = f"{int(row['cached']):,} cached"
    tip = f"{found.named(found.request)}: {int(row['sent']):,} tokens sent, {change}"
    shown = _kpi("now", f"sent at {found.run.by} {found.request:,}", f"{int(row['sent']):,}", tip, change)
    return shown | {"short": short(int(row["sent"]))}


def dollars(cost: float) -> str:
    """Write a sum of money in few characters.

    Examples
    --------
    >>> [dollars(cost) for cost in (0.0, 0.01234, 0.456, 12.345, 4321.0)]
    ['$0', '$0.012', '$0.46', '$12.35', '$4,321']
    """
    if cost >= 1_000:
        return f"${cost:,.0f}"
    if cost >= 0.1:
        return f"${cost:,.2f}"
    return f"${cost:.2g}"
