"""Key figures, compared policies and figures of the conversation explorer."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from budgetkit.budget import brief, many
from budgetkit.budget.html import GREY
from budgetkit.files import read_toml
from budgetkit.lab import figures
from budgetkit.lab.explorers.conversation.notices import source
from budgetkit.lab.explorers.conversation.results import ConversationResults, ConversationStage
from budgetkit.lab.explorers.folds import Kpi, figure, table_text
from budgetkit.lab.figures.question import dollars, short, table_rows
from budgetkit.lab.replay.figures import LINE_NOTES, LINES
from budgetkit.message import Data

_MARKS = "The conversation marks the earlier messages that a later one needs."
_GUESS = (
    "No messages are marked as needed, so budgetkit guesses: a message that repeats a rare word, such as a name or a "
    "number, needs the message that first contained it. The guess helps to compare policies but says nothing about "
    "answers."
)
FIGURES = ("timeline", "caching", "dropping", "fan", "spending")


def scene(stage: ConversationStage) -> Data:
    """Return the state of the view, with the shown policy's key figures."""
    results = stage.results
    kpis = [*_totals(results), _evidence(results), _now(results)]
    return {
        "source": source(stage),
        "kpis": [kpi.drawn for kpi in kpis],
        "figures": [*FIGURES],
        "tabs": read_toml("glossary.toml")["conversation"]["tabs"],
    }


def lanes(results: ConversationResults) -> list[Data]:
    """Return a row for each compared policy, cheapest first."""
    order = [*results.replays]
    drawn = []
    for row in table_rows(results.compared.ranking):
        name = row["policy"]
        replayed = results.replays[name]
        cost = f"{row['relative_cost']:.2f} x" if np.isnan(row["cost"]) else dollars(row["cost"])
        drawn.append(
            {
                "key": name,
                "color": LINES[order.index(name) % len(LINES)],
                "main": name == results.main,
                "sizes": replayed.outline,
                "usable": results.budget.usable,
                "here": results.request / results.requests,
                "cost": cost,
                "cuts": f"{np.count_nonzero(replayed.frame['dropped']):,}",
                "cached": f"{row['cached_share']:.0%}",
                "kept": "" if np.isnan(row["evidence"]) else f"{row['evidence']:.0%}",
            }
        )
    return drawn


def _totals(results: ConversationResults) -> list[Kpi]:
    first = results.shown.first_loss
    value = "none"
    change = ""
    if first is not None:
        value = f"turn {results.turn_of(first):,}"
        change = f"request {first:,}" if results.run.by == "request" else ""
    tip = f"The first request in which something is missing under {brief(results.main)}"
    totals = results.shown.totals
    sent = int(totals["sent"])
    cached = int(totals["cached"])
    cost = totals["cost"]
    is_known = cost == cost
    money = dollars(cost) if is_known else "unknown"
    what = "A required price is unknown"
    if is_known:
        what = "All requests with their answers and summaries"
    return [
        Kpi("first", "first loss", value, tip, change),
        Kpi("sent", "total sent", short(sent), f"{sent:,} tokens; requests: {results.requests:,}"),
        Kpi(
            "cached",
            "read from the cache",
            f"{totals['cached_share']:.1%}",
            f"{cached:,} of {sent:,} tokens sent",
        ),
        Kpi(
            "cost",
            "total cost",
            money,
            f"{what}; {results.run.prices.source}",
            level="" if is_known else "alarm",
        ),
    ]


def _evidence(results: ConversationResults) -> Kpi:
    needed, present = results.shown.evidence
    guessed = not needed or str(results.shown.pairs["source"].iloc[0]) != "marked"
    label, how = (
        ("needed messages kept (guess)", _GUESS) if guessed else ("needed messages kept", _MARKS)
    )
    if not needed:
        return Kpi(
            "evidence", label, "none found", f"{how} No needed messages were found.", short="none"
        )
    tip = f"{how} {present:,} of {needed:,} needed messages were in the window when needed."
    return Kpi("evidence", label, f"{present / needed:.0%}", tip)


def _now(results: ConversationResults) -> Kpi:
    row = results.shown.frame.iloc[results.request - 1]
    sent = int(row["sent"])
    change = f"{int(row['cached']):,} cached"
    tip = f"{results.named(results.request)}: {sent:,} tokens sent, {change}"
    label = f"sent at {results.run.by} {results.request:,}"
    return Kpi("now", label, f"{sent:,}", tip, change, short=short(sent))


MARKED = ("timeline", "caching", "dropping")
BY_REQUEST = (*MARKED, "spending")
MOST_ROWS = 1_000  # of a table on the page


def charts(stage: ConversationStage, opened: Collection[str]) -> dict[str, Data]:
    """Return the page's figures by name."""
    results = stage.results
    drawn = {}
    for name in FIGURES:
        table, spec = _drawn(name, results)
        note = _note(name, table, results)
        if name in MARKED:
            spec = marked(spec, results.request)
        shown = None
        if name in opened:
            shown = table_text(table.head(MOST_ROWS))
            if len(table) > MOST_ROWS:
                note += f" The table shows the first {MOST_ROWS:,} of its {len(table):,} rows."
        click = "request" if name in BY_REQUEST else None
        drawn[name] = figure(getattr(figures, name).title, note, spec, shown, click)
    return drawn


def _drawn(name: str, results: ConversationResults) -> tuple[pd.DataFrame, Data]:
    if name == "fan":
        budget = results.budget_results.plan.budget
        limits = {"usable": budget.usable, "window": budget.window}
        if budget.usable > 0.85 * budget.window:
            del limits["window"]  # two lines so close look like one
        table = results.drawn[1].assign(**{f"limit: {limit}": at for limit, at in limits.items()})
        return table, figures.fan.draw(table)
    if name == "spending":
        return results.compared.spending
    return results.shown.drawn(name)


def marked(spec: Data, request: int) -> Data:
    """Copy a figure and mark one request with a vertical line."""
    ends = {"x0": request, "x1": request, "y0": 0, "y1": 1, "yref": "paper"}
    line = {"color": GREY, "width": 1.5}
    here = {"type": "line", "name": "here", **ends, "line": line}
    layout = spec["layout"]
    return {**spec, "layout": {**layout, "shapes": [*layout.get("shapes", []), here]}}


def _note(name: str, table: pd.DataFrame, results: ConversationResults) -> str:
    """Return the sentence under a figure, which answers the figure's question."""
    here = results.named(results.request)
    match name:
        case "timeline":
            cuts = int((results.shown.frame["dropped"] > 0).sum())
            sent = int(results.shown.frame["sent"].iloc[results.request - 1])
            cut = f"cuts at {many(cuts, 'request')}" if cuts else "never cuts"
            sentence = f"{here.capitalize()} sends {sent:,} tokens; {brief(results.main)} {cut}"
            return f"{sentence}. Click to go to a {results.run.by}."
        case "caching":
            row = table.iloc[results.request - 1]
            parts = [f"{int(row[kind]):,} {kind}" for kind in ("cached", "written", "fresh")]
            timed = " The messages have no timestamps, so every pause counts as short."
            if results.timed:
                timed = ""
            return f"{here.capitalize()}: {', '.join(parts)} tokens.{timed}"
        case "dropping":
            gone = int((table["until"] <= results.request).sum())
            return f"Each line is a message while it is in the window; by {here}, {gone:,} messages are gone."
        case "spending":
            return _spending_note(table)
    return _fan_note(results)


def _spending_note(table: pd.DataFrame) -> str:
    ends = table.groupby("policy", sort=False)["spent"].last()
    if str(table["unit"].iloc[0]) != "US dollars":
        return "A price is unknown, so tokens are weighted by the cache: an uncached token counts as 1."
    if len(ends) == 1:
        return f"{ends.index[0]} costs {dollars(float(ends.iloc[0]))} in all."
    low = str(ends.idxmin())
    high = str(ends.idxmax())
    least, most = (dollars(float(ends[name])) for name in (low, high))
    if least == most:
        return f"{least} in total, with any policy."
    return f"{least} in total under {brief(low)}, {most} under {brief(high)}."


def _fan_note(results: ConversationResults) -> str:
    parts = []
    for row in results.ahead.to_dict("records"):
        if pd.isna(row["median"]):
            continue
        amount = dollars if row["event"] == "money spent" else short
        last = "later" if pd.isna(row["high"]) else f"{row['high']:,}"
        turns = f"turn {row['median']:,} ({row['low']:,} to {last})"
        parts.append(f"{row['event']} ({amount(row['limit'])}): {turns}")
    sizes, known = results.drawn[0], len(results.trace.turns)
    drawn = f"{len(sizes):,} continuations drawn from {many(known, 'turn')} of this conversation"
    drawn += " and from other conversations in its file" * (results.pace is not None)
    # The past is known, so the range covers the growth alone.
    low, high = np.quantile(sizes[:, -1] - sizes[:, known - 1], (0.05, 0.95))
    growth = (
        f"Over the next {sizes.shape[1] - known:,} turns, 90 % of these continuations add {low:,.0f} to "
        f"{high:,.0f} tokens."
    )
    sentence = "; ".join(parts).capitalize() or "No limit is reached in these turns"
    return f"{drawn}, without pruning. {growth} {sentence}. {LINE_NOTES[results.pace is not None]}"
