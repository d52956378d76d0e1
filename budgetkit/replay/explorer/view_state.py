"""View state: the key figures of a replay, and what can be taken back."""

from __future__ import annotations

from typing import Any

from budgetkit.explorer.drawing import Kpi
from budgetkit.figures.question import dollars, short
from budgetkit.replay.explorer.results import Results

Data = dict[str, Any]
FIGURES = ("timeline", "caching", "dropping", "fan", "spending", "ranking")


def scene(found: Results, source: str) -> Data:
    """Return the state of the view, with the key figures of the policy that is shown."""
    kpis = [_first(found), *_totals(found), _evidence(found), _now(found)]
    return {"source": source, "kpis": [kpi.drawn for kpi in kpis], "figures": [*FIGURES], "plays": True}


def _first(found: Results) -> Kpi:
    first = found.shown.first_loss
    value = "none" if first is None else f"turn {found.turn_of(first):,}"
    change = f"request {first:,}" if first is not None and found.run.by == "request" else ""
    tip = f"The first request from which something is missing under {found.main!r}"
    return Kpi("first", "first loss", value, tip, change)


def _totals(found: Results) -> list[Kpi]:
    totals = found.shown.totals
    sent, cached, cost = int(totals["sent"]), int(totals["cached"]), totals["cost"]
    known = cost == cost
    money = dollars(cost) if known else "unknown"
    what = "All requests with their answers and summaries" if known else "A price that is needed is not known"
    return [
        Kpi("sent", "sent in all", short(sent), f"{sent:,} tokens in {found.requests:,} requests"),
        Kpi("cached", "read from the cache", f"{totals['cached_share']:.1%}", f"{cached:,} of {sent:,} tokens sent"),
        Kpi("cost", "cost in all", money, f"{what}; {found.run.prices.source}", level="" if known else "alarm"),
    ]


def _evidence(found: Results) -> Kpi:
    needed, present = found.shown.evidence
    source = str(found.shown.pairs["source"].iloc[0]) if needed else ""
    proxy = source != "marked"
    label = "evidence present (proxy)" if proxy else "evidence present"
    if not needed:
        return Kpi("evidence", label, "none found", "No later message names what an earlier one introduced")
    how = "a later message names again" if proxy else "is marked as needed by a later message"
    tip = f"Of what {how}, {present:,} of {needed:,} were in the window then"
    return Kpi("evidence", label, f"{present / needed:.0%}", tip + ("; it compares policies, not answers" * proxy))


def _now(found: Results) -> Kpi:
    row = found.shown.frame.iloc[found.request - 1]
    change = f"{int(row['cached']):,} cached"
    tip = f"{found.named(found.request)}: {int(row['sent']):,} tokens sent, {change}"
    label, sent = f"sent at {found.run.by} {found.request:,}", int(row["sent"])
    return Kpi("now", label, f"{sent:,}", tip, change, short=short(sent))
