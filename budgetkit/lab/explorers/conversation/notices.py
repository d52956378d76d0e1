"""Sentences about losses, unmet floors, cost and pauses."""

from __future__ import annotations

from collections import Counter

import numpy as np

from budgetkit.budget import brief, many
from budgetkit.lab.explorers.budget.notices import (
    beyond_output,
    beyond_window,
    conversation_label,
    counted_with,
    missing_window,
    silent,
)
from budgetkit.lab.explorers.budget.settings import enough_window
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.folds import button, set_line
from budgetkit.lab.explorers.shelves import advice
from budgetkit.lab.figures.question import dollars
from budgetkit.lab.figures.window import takes_the_rest
from budgetkit.message import Data
from budgetkit.plan.allocating import allocate_frame


def status(stage: ConversationStage) -> Data:
    """Describe the effect of the shown policy, with warnings."""
    if stage.trace.is_silent:
        return silent(stage.trace)
    over = [*beyond_window(stage), *_floors(stage)]
    more = [*over, *beyond_output(stage), missing_window(stage), *_recorded(stage)]

    # A required price is unknown.
    prices = stage.prices
    if np.isnan(stage.shown.totals["cost"]):
        wanted = ("input", "output", "cache_read")
        missing = [name.replace("_", " ") for name in wanted if getattr(prices, name) is None]
        more.append(
            f"{prices.model} has no known price for {', '.join(missing)} ({prices.source}), so the cost cannot be "
            "computed. Type it in dollars per million tokens."
        )

    # Requests whose cache has expired.
    cache = stage.cache
    if cache.lifetime is not None and cache.breakpoints != ():
        late = int((stage.pauses > cache.lifetime).sum())
        if late:
            come = f"sent more than {cache.lifetime:,.0f} s after the previous one"
            more.append(f"The cache has expired at {many(late, 'request')}, {come}.")

    first = stage.shown.first_loss
    level = "fits" if first is None else "cut"
    if over:
        level = "over"
    notice: Data = {
        "level": level,
        "text": _lost(stage),
        "more": [*filter(None, more), *stage.notes],
    }
    if first is None:
        return notice

    # The limit that the pruned section exceeds at the first loss, if it does.
    name = stage.section
    demand = int(stage.shown.demand[name].iloc[first - 1])
    limit = stage.outcome.columns[name]["limit"][first - 1]
    if demand <= limit:
        return notice
    whose = f"the {limit:,} that the window leaves it"
    if limit == stage.budget.caps[name]:
        whose = f"its cap of {limit:,}"
    excess = f"There, {name} asks for {demand:,} tokens, above {whose}."
    return {**notice, "more": [excess, *notice["more"]], "remedies": _remedies(stage)}


def _remedies(stage: ConversationStage) -> list[Data]:
    """Return single changes that make the pruned section fit every request."""
    name = stage.section
    demand = stage.shown.demand
    buttons = []

    def fits(line: str, size: int) -> bool:
        try:
            budget = stage.settings.resize(line, size).planned_budget
        except (ValueError, LookupError):
            return False
        columns = allocate_frame(budget, demand)
        sent = np.sum([column["granted"] for column in columns.values()], axis=0)
        if sent.max() > budget.usable or (budget.unclaimed < 0 and not takes_the_rest(budget)):
            return False
        return bool((columns[name]["granted"] == demand[name]).all())

    def offer(label: str, line: str, size: int) -> None:
        if fits(line, size):
            tip = f"Then {name} fits in every request, and no message is dropped."
            buttons.append(button(f"{label} {size:,}", set_line(line, size), tip=tip))

    offer(f"Raise {name} to", name, int(demand[name].max()))
    for window in enough_window(stage.budget, stage.model, lambda size: fits("window", size)):
        offer("Set window to", "window", window)
    return buttons


def _lost(stage: ConversationStage) -> str:
    under = f"under {brief(stage.settings.main)}"
    if stage.shown.first_loss is None:
        requests = f"all {stage.request_count:,} requests hold"
        if stage.request_count == 1:
            requests = "its one request holds"
        left = " that the session's own compactions left" if stage.shown.taken_out else ""
        return f"Nothing is ever lost {under}: {requests} everything{left}."
    fates = Counter(stage.shown.fates)
    words = {"dropped": "dropped", "summarised": "summarised", "shrunk": "cut to a placeholder"}
    parts = [f"{fates[fate]:,} {word}" for fate, word in words.items() if fates[fate]]
    start = f"From {stage.request_name(stage.shown.first_loss)} on"
    if not parts:
        return f"{start}, the budget cuts other sections; no message is missing {under}."
    lost = f"{', '.join(parts)} of {len(stage.trace.messages):,} messages"
    return f"{start}, something is missing {under}: {lost} by the end."


def _recorded(stage: ConversationStage) -> list[str]:
    """Compare a recorded session with its replay: removed messages, requests and cost."""
    session = stage.session
    if session is None:
        return []
    sentences = []
    if taken_out := len(stage.shown.taken_out):
        sentences.append(
            f"The session's own compactions took out {many(taken_out, 'message')} that had been sent."
        )
    totals = session.totals()
    billed = many(totals["requests"], "request")
    if not np.isnan(totals["cost"]):
        billed = f"{billed} for {dollars(totals['cost'])}"
    replayed = many(stage.request_count, "request")
    if stage.by == "turn":
        replayed += ", one per turn"
    else:
        messages = stage.trace.messages
        ends = [request.sent for request in stage.outcome.placed.requests]
        answered = sum(at < len(messages) and messages[at].role == "assistant" for at in ends)
        unanswered = len(ends) - answered
        if unanswered:
            replayed += f", {unanswered:,} without an answer in the record"
    sentences.append(f"The replay makes {replayed}; the record says {billed}.")
    return sentences


def _floors(stage: ConversationStage) -> list[str]:
    """Return warnings about floors and requests that do not fit."""
    sentences = []
    for name, replayed in stage.replays.items():
        requests, most = replayed.over
        if requests:
            floor = stage.policies[name].floor
            least = many(floor.least, floor.unit.removesuffix("s"))
            sentences.append(
                f"{name}: the floor of the {stage.section} ({least}) does not fit in {requests:,} of "
                f"{stage.request_count:,} requests, by up to {many(most, 'token')}. Lower it, or choose a larger "
                "window."
            )
    requests, most = stage.shown.too_large
    if requests and not stage.shown.over[0]:
        sentences.append(
            f"{requests:,} of {stage.request_count:,} requests are larger than the usable window, by up to "
            f"{many(most, 'token')}: a message that cannot be pruned does not fit. Choose a larger window or a "
            "smaller reserve."
        )
    return sentences


def source(stage: ConversationStage) -> str:
    """Describe the sources of the counts, the cache rules and the prices."""
    which = conversation_label(stage.settings, stage.trace, len(stage.traces))
    sizes = {
        "message": len(stage.trace.messages),
        "turn": len(stage.trace.turns),
        "request": stage.request_count,
    }
    size = ", ".join(many(number, what) for what, number in sizes.items())
    counted = counted_with(stage, stage.trace)
    prices = stage.prices
    day = f" of {prices.date}" if prices.date else ""
    money = f"Prices{day}: {prices.source}." if prices.source else ""
    cache = stage.cache
    kept = ""
    if cache.breakpoints != ():
        kept = f", from {cache.minimum:,} tokens" if cache.minimum else ""
        if cache.lifetime is not None:
            kept += f", kept {cache.lifetime:,.0f} s"
    window = stage.budget.window
    model = stage.model
    within = ""
    if window < model.window:
        within = f", in a window of {window:,} tokens ({model.name} takes {model.window:,})"
    better = advice(stage.counter)
    return (
        f"{which}: {size}, {counted}{within}.{better} Cache: {stage.rules}{kept}. {money}".strip()
    )
