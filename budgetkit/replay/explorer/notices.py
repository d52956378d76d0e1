"""Notices: the sentences on the page: what is lost, what was not honoured, what is not known, what it is made of."""

from __future__ import annotations

from typing import Any

from budgetkit.budget.quoting import brief
from budgetkit.explorer.budget.notices import called, counted_with, left_out, many, silent
from budgetkit.explorer.budget.settings import Settings as BudgetSettings
from budgetkit.replay.explorer.results import Results

Data = dict[str, Any]


def status(found: Results) -> Data:
    """Return what the shown policy does to the conversation, and what to beware of."""
    if found.trace.is_silent:
        return silent(found.trace)
    over = [*_floors(found), *_too_large(found)]
    more = [*over, *_money(found), *_pauses(found), *left_out(found.trace), *found.notes]
    level = "over" if over else "fits" if found.shown.first_loss is None else "cut"
    return {"level": level, "text": _lost(found), "more": more}


def _lost(found: Results) -> str:
    under = f"under {brief(found.main)}"
    if found.shown.first_loss is None:
        requests = "its one request holds" if found.requests == 1 else f"all {found.requests:,} requests hold"
        return f"Nothing is ever lost {under}: {requests} everything."
    fates = found.shown.messages["fate"].value_counts()
    words = {"dropped": "dropped", "summarised": "summarised", "shrunk": "cut to a placeholder"}
    parts = [f"{int(fates[fate]):,} {word}" for fate, word in words.items() if fates.get(fate, 0)]
    lost = f"{', '.join(parts)} of {len(found.trace.messages):,} messages" if parts else "other sections are cut short"
    return f"From {found.named(found.shown.first_loss)} on something is missing {under}: {lost} by the end."


def _floors(found: Results) -> list[str]:
    sentences = []
    for name, each in found.replays.items():
        requests, most = each.over
        if requests:
            sentences.append(
                f"{name}: the floor of the {found.section} ({_floor(found, name)}) does not fit at {requests:,} of "
                f"{found.requests:,} requests, by up to {most:,} tokens; lower it, or leave more room."
            )
    return sentences


def _floor(found: Results, name: str) -> str:
    floor = found.policies[name].floor
    unit = floor.unit.removesuffix("s") if floor.least == 1 else floor.unit
    return f"{floor.least:,} {unit}"


def _too_large(found: Results) -> list[str]:
    requests, most = found.shown.too_large
    if not requests or found.shown.over[0]:
        return []
    return [
        f"{requests:,} of {found.requests:,} requests are larger than the usable window, by up to {most:,} tokens: "
        "a message that cannot be pruned does not fit. Choose a larger window or a smaller reserve."
    ]


def _money(found: Results) -> list[str]:
    prices = found.run.prices
    if found.shown.totals["cost"] == found.shown.totals["cost"]:
        return []
    wanted = ("input", "output", "cache_read")
    missing = [name.replace("_", " ") for name in wanted if getattr(prices, name) is None]
    return [
        f"The price for {' and '.join(missing)} of {prices.model} is not known ({prices.source}), so the cost is not; "
        "type it in, in dollars for a million tokens."
    ]


def _pauses(found: Results) -> list[str]:
    lifetime = found.run.cache.lifetime
    if lifetime is None or found.run.cache.breakpoints == ():
        return []
    late = int((found.pauses > lifetime).sum())
    if not late:
        return []
    return [f"The cache is gone at {late:,} requests, which come more than {lifetime:,.0f} s after the one before."]


def source(base: BudgetSettings, found: Results) -> str:
    """Return what the numbers are made of."""
    which = called(base, found.trace, len(found.conversations))
    sizes = {"message": len(found.trace.messages), "turn": len(found.trace.turns), "request": found.requests}
    size = ", ".join(many(number, what) for what, number in sizes.items())
    counted = counted_with(found.run.count, found.bare.model, found.trace)
    day = f" of {found.run.prices.date}" if found.run.prices.date else ""
    money = f"Prices{day}: {found.run.prices.source}." if found.run.prices.source else ""
    room, most = found.budget.window, found.bare.model.window
    within = f", in a window of {room:,} tokens ({found.bare.model.name} takes {most:,})" if room < most else ""
    return f"{which}: {size}, {counted}{within}. Cache: {found.rules}{_kept(found)}. {money}".strip()


def _kept(found: Results) -> str:
    cache = found.run.cache
    if cache.breakpoints == ():
        return ""
    lifetime = "" if cache.lifetime is None else f", kept {cache.lifetime:,.0f} s"
    return f", from {cache.minimum:,} tokens{lifetime}" if cache.minimum else lifetime
