"""Recorded sessions as figures: rules in lanes, the cache as foretold and as recorded, and where the order turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pandas as pd

from budgetkit.budget import many
from budgetkit.budget.html import ALARM, BLUE, GREEN, GREY, ORANGE, PALE, SLATE
from budgetkit.lab.figures.question import (
    Question,
    Spec,
    counted,
    dollars,
    layout,
    line,
    note,
    plain,
    points,
    rows,
    short,
)
from budgetkit.lab.replay.figures.replays import LINES
from budgetkit.lab.replay.losses import needed_there
from budgetkit.lab.sessions.comparing import AS_IT_WAS, Comparison
from budgetkit.lab.sessions.session import Session
from budgetkit.plan import Flags, Ints

_MOST_PLACES: Final = 400  # of a lane; a page is not wider
_LANE: Final = 0.5  # of the distance between two lanes, that the largest prompt takes; its name stands above it
_PIXELS: Final = 58  # of a lane
_LEGEND: dict[str, Any] = {"showlegend": True, "legend": {"orientation": "h", "y": -0.2}}


def cost_text(least: float, most: float) -> str:
    """Write what a rule costs, as a range where it is one; "" where no price is known.

    The sign stands once: plotly takes what stands between two of them for a formula.

    >>> cost_text(10.9, 12.4), cost_text(3.0, 3.0), cost_text(float("nan"), float("nan"))
    ('$10.90 to 12.40', '$3.00', '')
    """
    if np.isnan(least):
        return ""
    if dollars(least) == dollars(most):
        return dollars(least)
    return f"{dollars(least)} to {dollars(most)[1:]}"


def _rules_table(comparison: Comparison, followed: int | None = None) -> pd.DataFrame:
    """List for each rule some of its requests: what is sent, whether it acts, and whether a message is still there.

    `followed` is a message of the compared conversation, by index.
    """
    frames = []
    for row in rows(comparison.table):
        if row["system"] not in comparison.outcomes:
            continue  # what was recorded is no replay
        outcome = comparison.outcomes[row["system"]].most
        retention = outcome.kept
        sent = outcome.sent
        compacts = np.array(retention.summaries) > 0
        clears = ~compacts & (
            np.array(retention.shrunk_messages) + np.array(retention.dropped_messages) > 0
        )
        places = _places(len(sent), compacts)
        there = np.zeros(len(sent), dtype=np.bool_)
        needed = np.zeros(len(sent), dtype=np.bool_)
        if followed is not None:
            ends = [at for at in (retention.gone[followed], retention.shrunk[followed]) if at >= 0]
            there[int(outcome.placed.entry[followed]) : min(ends, default=len(sent))] = True
            at, needs, _ = needed_there(outcome, comparison.pairs)
            needed[at[needs == followed]] = True
            places = np.union1d(
                places, np.flatnonzero(needed | (np.diff(there, prepend=there[:1]) != 0))
            )
        frame = {
            "system": row["system"],
            "label": row["label"],
            "cost": cost_text(row["least"], row["most"]),
            "compactions": row["compactions"],
            "capped": row["capped"],
            "request": places + 1,
            "sent": sent[places],
            "compacts": compacts[places],
            "clears": clears[places],
            "followed": there[places],
            "needed": needed[places],
        }
        frames.append(pd.DataFrame(frame))
    return pd.concat(frames, ignore_index=True)


def _places(requests: int, marked: Flags) -> Ints:
    """Return places of requests that show a line's shape: evenly spaced, and those around each mark."""
    evenly = np.linspace(0, requests - 1, min(requests, _MOST_PLACES)).astype(np.int64)
    at = np.flatnonzero(marked)[:_MOST_PLACES]
    return np.unique(np.concatenate([evenly, at, np.maximum(at - 1, 0)]))


def _draw_rules(table: pd.DataFrame) -> Spec:
    """Draw each rule as a lane: the prompt, request by request, with a mark where the rule acts."""
    systems = list(dict.fromkeys(table["system"]))
    pruned = table.loc[table["system"] != AS_IT_WAS, "sent"]
    tallest = max(1, int(pruned.max())) if len(pruned) else 1
    last = int(table["request"].max())
    traces: list[Spec] = []
    notes: list[Spec] = []
    for lane, name in enumerate(systems):
        part = table[table["system"] == name]
        # A session that nothing shortens may be far larger than all others: each lane shows its own size in words.
        top = tallest if name != AS_IT_WAS else max(1, int(part["sent"].max()))
        height = -lane + _LANE * part["sent"] / top
        title = str(part["label"].iloc[0])
        texts = [
            f"{plain(title)}, request {at:,}: {size:,} tokens"
            for at, size in part[["request", "sent"]].values
        ]
        shown = {"text": texts, "hoverinfo": "text", "name": plain(title), "showlegend": False}
        traces.append(line(part["request"], height, line={"color": SLATE, "width": 1.3}, **shown))
        traces += _acts(part, height, plain(title))
        traces += _followed(part, lane, plain(title))
        cost = part["cost"].iloc[0]
        did = _did(part)
        words = ", ".join(filter(None, (str(cost), did)))
        above = {"xanchor": "left", "yanchor": "bottom", "xref": "paper", "font": {"size": 12}}
        notes.append(note(f"<b>{plain(title)}</b> {words}", 0, -lane + _LANE + 0.05, **above))
    legend = _legend(table)
    height = _PIXELS * len(systems) + 130
    x = {
        "title": {"text": "request", "standoff": 4},
        "range": [1, max(2, last)],
        "showgrid": False,
        **counted(last),
    }
    y = {
        "visible": False,
        "range": [-len(systems) + 0.8, 1.05],
        "showgrid": False,
        "zeroline": False,
    }
    below = {"showlegend": True, "legend": {"orientation": "h", "y": -52 / height}}
    return {"data": [*traces, *legend], "layout": layout(height, x, y, annotations=notes, **below)}


def _did(part: pd.DataFrame) -> str:
    """Say in a few words what a rule did."""
    first = part.iloc[0]
    if first["compactions"]:
        return many(int(first["compactions"]), "compaction")
    if part["clears"].any():
        return "clears results"
    if first["capped"]:
        return "only cuts results"
    if first["system"] == AS_IT_WAS:
        return ""
    return "does not act"


def _acts(part: pd.DataFrame, height: Any, title: str) -> list[Spec]:
    """Mark where a rule summarises, and where it clears results or drops messages."""
    traces = []
    for column, symbol, colour, word in (
        ("compacts", "triangle-down", ALARM, "compaction"),
        ("clears", "circle", ORANGE, "results cleared"),
    ):
        here = part[part[column]]
        if here.empty:
            continue
        texts = [
            f"{title}: {word} at request {at:,}, {size:,} tokens after" for at, size in _pairs(here)
        ]
        mark = {"symbol": symbol, "color": colour, "size": 8 if column == "compacts" else 4}
        shown = {"text": texts, "hoverinfo": "text", "showlegend": False, "name": word}
        traces.append(points(here["request"], height[here.index], marker=mark, **shown))
    return traces


def _followed(part: pd.DataFrame, lane: int, title: str) -> list[Spec]:
    """Draw for how long the followed message is in the prompts, and the requests whose call needs it."""
    base = -lane - 0.07
    there = part[part["followed"]]
    traces = []
    if not there.empty:
        ends = [int(there["request"].min()), int(there["request"].max())]
        shown: dict[str, Any] = {
            "text": [f"{title}: there from request {ends[0]:,} to {ends[1]:,}"] * 2
        }
        shown |= {"hoverinfo": "text", "showlegend": False}
        traces.append(line(ends, [base, base], line={"color": GREEN, "width": 5}, **shown))
    needed = part[part["needed"]]
    if not needed.empty:
        colours = [GREEN if is_there else ALARM for is_there in needed["followed"]]
        words = ["and is there" if is_there else "and is gone" for is_there in needed["followed"]]
        texts = [
            f"{title}: needed at request {at:,} {word}"
            for at, word in zip(needed["request"], words, strict=True)
        ]
        mark = {"symbol": "x", "color": colours, "size": 8}
        shown = {"text": texts, "hoverinfo": "text", "showlegend": False}
        traces.append(points(needed["request"], [base] * len(needed), marker=mark, **shown))
    return traces


def _legend(table: pd.DataFrame) -> list[Spec]:
    """Return the entries of the legend for what the table holds."""
    entries = [line([None], [None], name="prompt", line={"color": SLATE, "width": 2})]
    marks = (
        ("compacts", "compaction", "triangle-down", ALARM),
        ("clears", "results cleared", "circle", ORANGE),
        ("followed", "the message is there", "square", GREEN),
        ("needed", "a call needs it", "x", ALARM),
    )
    for column, words, symbol, colour in marks:
        if table[column].any():
            entries.append(
                points(
                    [None],
                    [None],
                    name=words,
                    marker={"symbol": symbol, "color": colour, "size": 9},
                )
            )
    return entries


def _pairs(part: pd.DataFrame) -> Iterable[tuple[int, int]]:
    return zip(part["request"].tolist(), part["sent"].tolist(), strict=True)


def _reads_table(session: Session) -> pd.DataFrame:
    """List for some requests what was read from the cache and what was foretold; every miss is among them."""
    frame = session.requests()
    places = _places(len(frame), frame["missed"].to_numpy() > 0)
    columns = ["request", "prompt", "read", "written", "fresh", "answered"]
    columns += ["counted", "unlogged", "difference", "mark"]
    columns += ["foretold", "missed", "cause", "cost"]
    return frame[columns].iloc[places].reset_index(drop=True)


def _draw_reads(table: pd.DataFrame) -> Spec:
    at = table["request"]
    shades: list[tuple[str, str, Spec]] = [
        ("prompt", "prompt", {"color": GREY, "width": 1.5}),
        ("read", "read, as recorded", {"color": BLUE, "width": 2}),
        ("foretold", "read, as foretold", {"color": ORANGE, "width": 2, "dash": "dot"}),
    ]
    traces = [
        line(
            at,
            table[column],
            name=name,
            line=style,
            hovertemplate="%{y:,} " + name + "<extra></extra>",
        )
        for column, name, style in shades
    ]
    missed = table[table["missed"] > 0]
    texts = []
    for row in rows(missed):
        if np.isnan(row["cost"]):
            cost = ""
        else:
            cost = f"; the request cost {dollars(row['cost'])}"
        texts.append(
            f"request {row['request']:,}: {row['missed']:,} tokens missed, {plain(row['cause'])}{cost}"
        )
    mark = {"symbol": "x", "color": ALARM, "size": 8}
    traces.append(
        points(
            missed["request"],
            missed["read"],
            name="miss",
            marker=mark,
            text=texts,
            hoverinfo="text",
        )
    )
    last = int(at.max())
    x = {
        "title": {"text": "request", "standoff": 4},
        "range": [1, max(2, last)],
        "showgrid": False,
        **counted(last),
    }
    return {
        "data": traces,
        "layout": layout(320, x, {"tickformat": "~s", "rangemode": "tozero"}, **_LEGEND),
    }


def _turning_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each window and price the rule that costs least."""
    cheapest = table[table["cheapest"]]
    return cheapest[["window", "read", "system", "change", "turns"]].reset_index(drop=True)


def _draw_turning(table: pd.DataFrame) -> Spec:
    """Draw which rule is cheapest by price and window, with a line where the order turns."""
    reads = sorted(set(table["read"]), reverse=True)
    windows = sorted(set(table["window"]))
    names = list(dict.fromkeys(table["system"]))
    shades = {
        name: PALE if name == AS_IT_WAS else LINES[place % len(LINES)]
        for place, name in enumerate(names)
    }
    cells = {(row["read"], row["window"]): row for row in rows(table)}
    traces: list[Spec] = []
    for name in names:
        here = [(read, window) for (read, window), row in cells.items() if row["system"] == name]
        texts = [
            f"a read costs {read:g}, window {window:,}: {plain(name)}, {cells[read, window]['change']:+.0%}"
            for read, window in here
        ]
        mark = {"symbol": "square", "size": 26, "color": shades[name]}
        x = [reads.index(read) for read, _ in here]
        y = [windows.index(window) for _, window in here]
        traces.append(points(x, y, name=plain(name), marker=mark, text=texts, hoverinfo="text"))
    notes = [
        note(
            f"{row['change']:+.0%}".replace("-", "\u2212"),
            reads.index(read),
            windows.index(window),
            yshift=-22,
        )
        for (read, window), row in cells.items()
    ]
    edge = {"type": "line", "line": {"color": ALARM, "width": 3}}
    edges = []
    for place, read in enumerate(reads):
        for level, window in enumerate(windows):
            name = cells[read, window]["system"]
            if place and cells[reads[place - 1], window]["system"] != name:
                edges.append(
                    {
                        **edge,
                        "x0": place - 0.5,
                        "x1": place - 0.5,
                        "y0": level - 0.5,
                        "y1": level + 0.5,
                    }
                )
            if level and cells[read, windows[level - 1]]["system"] != name:
                edges.append(
                    {
                        **edge,
                        "x0": place - 0.5,
                        "x1": place + 0.5,
                        "y0": level - 0.5,
                        "y1": level - 0.5,
                    }
                )
    x_axis = {
        "title": {"text": "what reading a cached token costs, of the input price"},
        "showgrid": False,
    }
    x_axis |= {
        "tickvals": [*range(len(reads))],
        "ticktext": [f"{read:g}" for read in reads],
        "zeroline": False,
    }
    x_axis |= {"range": [-0.6, len(reads) - 0.4]}
    y_axis = {
        "title": {"text": "window"},
        "showgrid": False,
        "zeroline": False,
        "range": [-0.6, len(windows) - 0.4],
    }
    y_axis |= {
        "tickvals": [*range(len(windows))],
        "ticktext": [short(window) for window in windows],
    }
    more = {"annotations": notes, "shapes": edges, **_LEGEND}
    return {"data": traces, "layout": layout(90 + 62 * len(windows), x_axis, y_axis, **more)}


#: Draw rules in lanes, the cheapest first: each prompt, where the rule acts, and how long one message stays.
rules_compared = Question(
    "Which rule would have been cheaper, and where does it act?", _rules_table, _draw_rules
)
#: Draw what each request read from the cache beside what was foretold, with the misses.
cache_reads = Question(
    "What was read from the cache, and what was foretold?", _reads_table, _draw_reads
)
#: Draw which rule is cheapest by the price of a cached token and by window, with a line where the order turns.
order_turns = Question("Where does the order of rules turn?", _turning_table, _draw_turning)
