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
from budgetkit.lab.explorers.conversation.results import ConversationStage
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
    return {
        "source": source(stage),
        "kpis": [kpi.drawn for kpi in kpis(stage)],
        "figures": [*FIGURES],
        "tabs": read_toml("glossary.toml")["conversation"]["tabs"],
    }


def lanes(stage: ConversationStage) -> list[Data]:
    """Return a row for each compared policy, cheapest first."""
    order = [*stage.replays]
    drawn = []
    for row in table_rows(stage.compared.ranking):
        name = row["policy"]
        replayed = stage.replays[name]
        cost = f"{row['relative_cost']:.2f} x" if np.isnan(row["cost"]) else dollars(row["cost"])
        drawn.append(
            {
                "key": name,
                "color": LINES[order.index(name) % len(LINES)],
                "main": name == stage.settings.main,
                "sizes": replayed.outline,
                "usable": stage.budget.usable,
                "here": stage.request / stage.request_count,
                "cost": cost,
                "cuts": f"{np.count_nonzero(replayed.frame['dropped']):,}",
                "cached": f"{row['cached_share']:.0%}",
                "kept": "" if np.isnan(row["evidence"]) else f"{row['evidence']:.0%}",
            }
        )
    return drawn


def kpis(stage: ConversationStage) -> list[Kpi]:
    """Return the key figures of the shown policy."""
    first = stage.shown.first_loss
    loss = "none"
    loss_request = ""
    if first is not None:
        loss = f"turn {stage.turn_of(first):,}"
        loss_request = f"request {first:,}" if stage.by == "request" else ""
    loss_tip = f"The first request in which something is missing under {brief(stage.settings.main)}"

    totals = stage.shown.totals
    sent = int(totals["sent"])
    money = "unknown"
    money_tip = "A required price is unknown"
    if totals["cost"] == totals["cost"]:
        money = dollars(totals["cost"])
        money_tip = "All requests with their answers and summaries"

    # The needed messages that were in the window, marked or guessed.
    needed, present = stage.shown.evidence
    label = "needed messages kept"
    how = _MARKS
    if not needed or str(stage.shown.pairs["source"].iloc[0]) != "marked":
        label = f"{label} (guess)"
        how = _GUESS
    kept = Kpi(
        "evidence", label, "none found", f"{how} No needed messages were found.", short="none"
    )
    if needed:
        tip = f"{how} {present:,} of {needed:,} needed messages were in the window when needed."
        kept = Kpi("evidence", label, f"{stage.shown.evidence_share:.0%}", tip)

    row = stage.shown.frame.iloc[stage.request - 1]
    here = int(row["sent"])
    cached = f"{int(row['cached']):,} cached"
    return [
        Kpi("first", "first loss", loss, loss_tip, loss_request),
        Kpi(
            "sent", "total sent", short(sent), f"{sent:,} tokens; requests: {stage.request_count:,}"
        ),
        Kpi(
            "cached",
            "read from the cache",
            f"{totals['cached_share']:.1%}",
            f"{int(totals['cached']):,} of {sent:,} tokens sent",
        ),
        Kpi(
            "cost",
            "total cost",
            money,
            f"{money_tip}; {stage.prices.source}",
            level="alarm" if money == "unknown" else "",
        ),
        kept,
        Kpi(
            "now",
            f"sent at {stage.by} {stage.request:,}",
            f"{here:,}",
            f"{stage.request_name(stage.request)}: {here:,} tokens sent, {cached}",
            cached,
            short=short(here),
        ),
    ]


MARKED = ("timeline", "caching", "dropping")
BY_REQUEST = (*MARKED, "spending")
MOST_ROWS = 1_000  # of a table on the page


def charts(stage: ConversationStage, opened: Collection[str]) -> dict[str, Data]:
    """Return the page's figures under their names."""
    drawn = {}
    for name in FIGURES:
        table, spec = _figure(name, stage)
        note = _note(name, table, stage)
        if name in MARKED:
            spec = marked(spec, stage.request)
        shown = None
        if name in opened:
            shown = table_text(table.head(MOST_ROWS))
            if len(table) > MOST_ROWS:
                note += f" The table shows the first {MOST_ROWS:,} of its {len(table):,} rows."
        click = "request" if name in BY_REQUEST else None
        drawn[name] = figure(getattr(figures, name).title, note, spec, shown, click)
    return drawn


def _figure(name: str, stage: ConversationStage) -> tuple[pd.DataFrame, Data]:
    if name == "fan":
        budget = stage.plan.budget
        limits = {"usable": budget.usable, "window": budget.window}
        if budget.usable > 0.85 * budget.window:
            del limits["window"]  # two lines so close look like one
        table = stage.continuations[1].assign(
            **{f"limit: {limit}": at for limit, at in limits.items()}
        )
        return table, figures.fan.draw(table)
    if name == "spending":
        return stage.compared.spending
    return stage.shown.figure(name)


def marked(spec: Data, request: int) -> Data:
    """Copy a figure and mark one request with a vertical line."""
    ends = {"x0": request, "x1": request, "y0": 0, "y1": 1, "yref": "paper"}
    line = {"color": GREY, "width": 1.5}
    here = {"type": "line", "name": "here", **ends, "line": line}
    layout = spec["layout"]
    return {**spec, "layout": {**layout, "shapes": [*layout.get("shapes", []), here]}}


def _note(name: str, table: pd.DataFrame, stage: ConversationStage) -> str:
    """Return the sentence under a figure, which answers the figure's question."""
    here = stage.request_name(stage.request)
    match name:
        case "timeline":
            cuts = int((stage.shown.frame["dropped"] > 0).sum())
            sent = int(stage.shown.frame["sent"].iloc[stage.request - 1])
            cut = f"cuts at {many(cuts, 'request')}" if cuts else "never cuts"
            sentence = (
                f"{here.capitalize()} sends {sent:,} tokens; {brief(stage.settings.main)} {cut}"
            )
            return f"{sentence}. Click to go to a {stage.by}."
        case "caching":
            row = table.iloc[stage.request - 1]
            parts = [f"{int(row[kind]):,} {kind}" for kind in ("cached", "written", "fresh")]
            sentence = f"{here.capitalize()}: {', '.join(parts)} tokens."
            if stage.timed:
                return sentence
            return f"{sentence} The messages have no timestamps, so every pause counts as short."
        case "dropping":
            gone = int((table["until"] <= stage.request).sum())
            return f"Each line is a message while it is in the window; gone by {here}: {many(gone, 'message')}."
        case "spending":
            return _spending_note(table)
    return _fan_note(stage)


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


def _fan_note(stage: ConversationStage) -> str:
    parts = []
    for row in stage.ahead.to_dict("records"):
        if pd.isna(row["median"]):
            continue
        amount = dollars if row["event"] == "money spent" else short
        last = "later" if pd.isna(row["high"]) else f"{row['high']:,}"
        turns = f"turn {row['median']:,} ({row['low']:,} to {last})"
        parts.append(f"{row['event']} ({amount(row['limit'])}): {turns}")
    sizes, known = stage.continuations[0], len(stage.trace.turns)
    drawn = f"{len(sizes):,} continuations drawn from {many(known, 'turn')} of this conversation"
    drawn += " and from other conversations in its file" * (stage.pace is not None)
    # The past is known, so the range covers the growth alone.
    low, high = np.quantile(sizes[:, -1] - sizes[:, known - 1], (0.05, 0.95))
    growth = (
        f"Over the next {many(sizes.shape[1] - known, 'turn')}, 90 % of these continuations add {low:,.0f} to "
        f"{high:,.0f} tokens."
    )
    sentence = "; ".join(parts).capitalize() or "No limit is reached in these turns"
    return f"{drawn}, without pruning. {growth} {sentence}. {LINE_NOTES[stage.pace is not None]}"
