"""View state: the key figures of a replay, and what can be taken back."""

from __future__ import annotations

from typing import Any

from budgetkit.budget.quoting import brief
from budgetkit.lab.explorers.conversation.results import ConversationResults
from budgetkit.lab.explorers.drawing import Kpi
from budgetkit.lab.figures.question import dollars, short

Data = dict[str, Any]
_MARKS = "The conversation marks which earlier messages a later one needs."
_GUESS = (
    "Nobody marked which messages are needed, so it is guessed: a message that repeats a rare word, such as a name or "
    "a number, needs the one that said it first. Good to compare policies; it says nothing about answers."
)
FIGURES = ("timeline", "caching", "dropping", "fan", "spending", "ranking")


def scene(results: ConversationResults, source: str) -> Data:
    """Return the state of the view, with the key figures of the policy that is shown."""
    kpis = [_first(results), *_totals(results), _evidence(results), _now(results)]
    return {
        "source": source,
        "kpis": [kpi.drawn for kpi in kpis],
        "figures": [*FIGURES],
    }


def _first(results: ConversationResults) -> Kpi:
    first = results.shown.first_loss
    if first is None:
        value = "none"
    else:
        value = f"turn {results.turn_of(first):,}"
    if first is not None and results.run.by == "request":
        change = f"request {first:,}"
    else:
        change = ""
    tip = f"The first request from which something is missing under {brief(results.main)}"
    return Kpi("first", "first loss", value, tip, change)


def _totals(results: ConversationResults) -> list[Kpi]:
    totals = results.shown.totals
    sent = int(totals["sent"])
    cached = int(totals["cached"])
    cost = totals["cost"]
    is_known = cost == cost
    money = dollars(cost) if is_known else "unknown"
    if is_known:
        what = "All requests with their answers and summaries"
    else:
        what = "A price that is needed is not known"
    return [
        Kpi(
            "sent", "sent in all", short(sent), f"{sent:,} tokens in {results.requests:,} requests"
        ),
        Kpi(
            "cached",
            "read from the cache",
            f"{totals['cached_share']:.1%}",
            f"{cached:,} of {sent:,} tokens sent",
        ),
        Kpi(
            "cost",
            "cost in all",
            money,
            f"{what}; {results.run.prices.source}",
            level="" if is_known else "alarm",
        ),
    ]


def _evidence(results: ConversationResults) -> Kpi:
    needed, present = results.shown.evidence
    guessed = not needed or str(results.shown.pairs["source"].iloc[0]) != "marked"
    label, how = ("needed kept (a guess)", _GUESS) if guessed else ("needed messages kept", _MARKS)
    if not needed:
        return Kpi("evidence", label, "none found", f"{how} None was found.", short="none")
    tip = f"{how} {present:,} of {needed:,} were in the window when they were needed."
    return Kpi("evidence", label, f"{present / needed:.0%}", tip)


def _now(results: ConversationResults) -> Kpi:
    row = results.shown.frame.iloc[results.request - 1]
    change = f"{int(row['cached']):,} cached"
    tip = f"{results.named(results.request)}: {int(row['sent']):,} tokens sent, {change}"
    label = f"sent at {results.run.by} {results.request:,}"
    sent = int(row["sent"])
    return Kpi("now", label, f"{sent:,}", tip, change, short=short(sent))
