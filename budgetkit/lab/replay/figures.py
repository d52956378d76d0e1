"""Figures of replays: requests, cached tokens, cost, messages and forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget.html import (
    ALARM,
    BLUE,
    GREEN,
    GREY,
    OLIVE,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    WINE,
    colour,
    translucent,
)
from budgetkit.lab.figures.question import (
    TOKENS,
    Question,
    Spec,
    across,
    counted,
    hover,
    label,
    line,
    named_line,
    note,
    plain,
    points,
    short,
    spec_of,
    table_rows,
    tick_format,
)
from budgetkit.lab.replay.forecast import fan as spread_of
from budgetkit.lab.replay.forecast import straight_line
from budgetkit.lab.replay.outcome import Replay
from budgetkit.message import Data
from budgetkit.plan import Ints

_BANDS = (("low", "high", 0.18), ("lower", "upper", 0.3))
_LINES: tuple[tuple[str, str, Spec], ...] = (
    ("median", "tokens (median)", {}),
    ("straight line", "tokens (straight line)", {"dash": "dot", "width": 1.5}),
)

#: The quality of the median, without and with other conversations, measured by ``python -m benchmarks.promised`` on
#: 2026-11-22.
LINE_NOTES = (
    "Dotted line: growth at the mean so far. The fan's median has only slightly smaller errors than this line.",
    "Dotted line: growth at the mean so far. The fan's median has errors about a third smaller than this line.",
)


def _table(drawn: Ints, limits: Mapping[str, int] | None = None, known: int = 0) -> pd.DataFrame:
    table = spread_of(drawn)
    if known > 1:
        seen = drawn[0, :known]
        ahead = drawn.shape[1] - known
        table["straight line"] = np.concatenate(
            (seen, straight_line(np.diff(seen), ahead, int(seen[-1])))
        )
    for name, limit in (limits or {}).items():
        table[f"limit: {name}"] = limit
    return table


def _draw(table: pd.DataFrame) -> Spec:
    turns = table["turn"]
    traces = [
        line(
            [*turns, *turns[::-1]],
            [*table[high], *table[low][::-1]],
            mode="lines",
            fill="toself",
            fillcolor=translucent(BLUE, opacity),
            line={"width": 0},
            hoverinfo="skip",
        )
        for low, high, opacity in _BANDS
    ]
    for column, place, style in _LINES:
        if column in table:
            tip = f"turn %{{x}}: %{{y:,}} {place}<extra></extra>"
            style = {"color": BLUE, **style}
            traces.append(line(turns, table[column], mode="lines", line=style, hovertemplate=tip))
    limits = {
        name.removeprefix("limit: "): float(table[name].iloc[0])
        for name in table.columns
        if name.startswith("limit: ")
    }
    shapes = [across(at, ALARM) for at in limits.values()]
    # Of two limits that lie close together, the lower is named below its line.
    close = 0.1 * float(table.drop(columns="turn").to_numpy().max())
    notes = []
    for name, at in limits.items():
        is_below = any(0 < other - at < close for other in limits.values())
        anchors = {"xanchor": "right", "yanchor": "top" if is_below else "bottom"}
        notes.append(note(f"{plain(name)} {at:,.0f}", 1, at, xref="paper", **anchors))
    x = {"title": "turn", "showgrid": False, "nticks": 8}
    y = {**TOKENS, "rangemode": "tozero"}
    return spec_of(traces, 300, x, y, shapes=shapes, annotations=notes)


#: Draw the middle half and the middle 90 % of simulated conversations, with the limits that they reach.
fan = Question("When will the window be full if this continues?", _table, _draw)


LINES = (GREY, BLUE, GREEN, ORANGE, PURPLE, SKY, WINE, OLIVE)
DASHES = ("solid", "dash", "dot", "dashdot")  # for repeated colours
_KINDS = {"cached": GREEN, "written": ORANGE, "fresh": PALE}
_FATES = {"kept": GREY, "shrunk": ORANGE, "summarised": PURPLE, "dropped": ALARM}
LEGEND: Data = {"showlegend": True, "legend": {"orientation": "h", "y": -0.2}}
_MOST_WIDE = 400  # messages


def _timeline_table(outcome: Replay) -> pd.DataFrame:
    frame = outcome.frame()[["request", "dropped", "summary_input"]]
    frame["dropped"] += frame.pop("summary_input")
    frame.insert(1, "limit", outcome.budget.usable)
    columns = ["request", "turn", "section", "tokens", "cut"]
    return outcome.sections()[columns].merge(frame, on="request")


def _draw_timeline(table: pd.DataFrame) -> Spec:
    used = table.groupby("section", sort=False)["tokens"].max()
    sections = [str(section) for section in used.index[used > 0]]
    traces = [
        _layer(table[table["section"] == section], "tokens", section, colour(section))
        for section in sections
    ]
    once = table.drop_duplicates("request")
    limit = int(once["limit"].iloc[0])
    cuts = once[once["dropped"] > 0]
    texts = [
        f"request {at}: {short(size)} tokens dropped"
        for size, at in cuts[["dropped", "request"]].values
    ]
    mark = {"symbol": "triangle-down", "color": ALARM, "size": 7}
    height = [limit * 1.17] * len(cuts)
    traces.append(
        points(cuts["request"], height, name="dropped", marker=mark, text=texts, hoverinfo="text")
    )
    place = {"xref": "paper", "yanchor": "bottom", "xanchor": "left"}
    notes = [note(f"usable window {limit:,}", 0, limit, **place)]
    shapes = [across(limit, ALARM)]
    y = {**TOKENS, "range": [0, limit * 1.23], "showgrid": False}
    return spec_of(traces, 340, _axis(table), y, annotations=notes, shapes=shapes, **LEGEND)


def _layer(table: pd.DataFrame, column: str, name: str, fill: str) -> Spec:
    x, y = table["request"], table[column]
    return line(
        # The last request is as wide as the others.
        [*x, *(x[-1:] + 1)],
        [*y, *y[-1:]],
        mode="lines",
        name=plain(name),
        stackgroup="one",
        line={"width": 0, "shape": "hv"},
        fillcolor=fill,
        hovertemplate=f"%{{y:,}} {plain(name)}<extra></extra>",
    )


def request_axis(last: int, every_turn: bool = False) -> Data:
    """Return an axis of requests, or of turns if `every_turn` is True."""
    title = "turn" if every_turn else "request"
    return {"title": title, "range": [1, max(1, last) + 1], "showgrid": False, **counted(last)}


def _axis(table: pd.DataFrame) -> Data:
    return request_axis(
        int(table["request"].max()), bool((table["request"] == table["turn"]).all())
    )


def _caching_table(outcome: Replay) -> pd.DataFrame:
    return outcome.frame()[["request", "turn", "cached", "written", "fresh", "sent"]]


def _draw_caching(table: pd.DataFrame) -> Spec:
    kinds = [kind for kind in _KINDS if kind != "fresh" or table["fresh"].any()]
    traces = [_layer(table, kind, kind, _KINDS[kind]) for kind in kinds]
    y = {**TOKENS, "rangemode": "tozero"}
    return spec_of(traces, 340, _axis(table), y, hovermode="x unified", **LEGEND)


def _spending_table(replays: Mapping[str, Replay]) -> pd.DataFrame:
    """Add up the cost of each policy, request by request.

    If a price is unknown, the input is added up in place of the cost. Cached and written tokens are then weighted by
    their prices relative to the price of an uncached token.
    """
    has_prices = all(
        outcome.prices is not None and not np.isnan(outcome.cost).any()
        for outcome in replays.values()
    )
    frames = []
    for name, outcome in replays.items():
        frame = outcome.frame()
        spent = frame["cost"]
        if not has_prices:
            read, written = outcome.cache.read, outcome.cache.write
            spent = frame["cached"] * read + frame["written"] * written + frame["fresh"]
            spent += frame["summary_input"]
        rows = frame[["request", "turn"]].assign(spent=spent.cumsum())
        rows.insert(0, "policy", name)
        frames.append(rows)
    unit = "US dollars" if has_prices else "weighted input tokens"
    return pd.concat(frames, ignore_index=True).assign(unit=unit)


def _draw_spending(table: pd.DataFrame) -> Spec:
    # Each policy has its own colour; repeated colours get another dash.
    styles: dict[Any, Spec] = {}
    traces = []
    for number, (policy, rows) in enumerate(table.groupby("policy", sort=False)):
        dash = DASHES[number // len(LINES) % len(DASHES)]
        style: Spec = {"color": LINES[number % len(LINES)], "width": 2, "dash": dash}
        styles[policy] = style
        form = "%{y:,.4~g}"
        traces.append(named_line(rows["request"], rows["spent"], plain(policy), form, line=style))

    # The names at the ends of the lines, upwards from the cheapest.
    signs = {"solid": "\u25a0", "dash": "\u2505", "dot": "\u2508", "dashdot": "\u254d"}
    last = table[table["request"] == table["request"].max()].sort_values("spent", kind="stable")
    highest = float(table["spent"].max())
    top = 1.05 * highest
    gap = min(0.075, 1 / len(styles)) * highest
    notes: list[Spec] = []
    places = {"xanchor": "left", "xshift": 4, "yanchor": "middle"}
    for policy, end, at in last[["policy", "spent", "request"]].itertuples(index=False):
        style = styles[policy]
        swatch = f'<span style="color:{style["color"]}">{signs[style["dash"]]}</span>'
        height = max(float(end), notes[-1]["y"] + gap) if notes else float(end)
        notes.append(note(f"{swatch} {label(policy)}", int(at), height, **places))
    # Labels above the figure move down.
    for shown in reversed(notes):
        shown["y"] = min(shown["y"], highest)
        highest = shown["y"] - gap
    y = {
        "title": str(table["unit"].iloc[0]),
        "range": [0, top or 1.0],
        "tickformat": tick_format(top),
    }
    tall = max(320, 16 * len(styles) + 100)  # so that each name has a line
    margin = {"r": 24 + 7 * max(len(label(policy)) for policy in styles)}
    more = {"hovermode": "x unified", "annotations": notes, "margin": margin}
    return spec_of(traces, tall, _axis(table), y, **more)


def _dropping_table(outcome: Replay) -> pd.DataFrame:
    table = outcome.messages().dropna(subset="first", ignore_index=True)
    end = len(outcome.placed.requests) + 1
    until = table.pop("gone").fillna(end).astype("int64")
    table.insert(6, "until", until)
    return table.drop(columns="shrunk")


def _draw_dropping(table: pd.DataFrame) -> Spec:
    # In pixels; thin enough that many lines do not overlap.
    width = 2.0 if len(table) <= _MOST_WIDE else 0.5
    traces = []
    entries = []
    for fate, shade in _FATES.items():
        rows = table_rows(table[table["fate"] == fate])
        if not rows:
            continue
        # Each message's line from its first request to its removal.
        x: list[Any] = []
        y: list[Any] = []
        texts: list[Any] = []
        for row in rows:
            text = f"message {row['message']}, {row['role']}, {row['tokens']:,} tokens: {fate}"
            x += [int(row["first"]), row["until"], None]
            y += [row["message"]] * 2 + [None]
            texts += [plain(text)] * 2 + [None]
        style = {"color": shade, "width": width}
        traces.append(line(x, y, mode="lines", name=fate, line=style, **hover(texts)))
        # A thicker line for the legend.
        entries.append(line([None], [None], mode="lines", name=fate, line={**style, "width": 4}))
    last = int(max(table["first"], default=1))
    every_turn = bool((table["first"] <= table["turn"] + 1).all())
    y_axis = {"title": "message", "autorange": "reversed", **counted(len(table))}
    return spec_of(traces + entries, 340, request_axis(last, every_turn), y_axis, **LEGEND)


def _say_timeline(table: pd.DataFrame) -> str:
    once = table.drop_duplicates("request")
    cuts = once.loc[once["dropped"] > 0, "request"]
    largest = table.nlargest(1, "tokens").iloc[0]
    text = f"Mostly {largest['section']}, up to {largest['tokens']:,} tokens"
    if not len(cuts):
        return f"{text}; nothing is dropped in {len(once):,} requests"
    return f"{text}; from request {cuts.iloc[0]:,} on, messages are dropped in {len(cuts):,} of {len(once):,} requests"


def _say_caching(table: pd.DataFrame) -> str:
    sent = int(table["sent"].sum())
    return f"{100 * table['cached'].sum() / max(1, sent):.0f} % of {short(sent)} tokens sent"


#: Draw each request by section, with the usable window and the requests that drop messages.
timeline = Question(
    "What fills the window, request by request?", _timeline_table, _draw_timeline, _say_timeline
)
#: Draw the tokens of each request that are read from the prompt cache, written to it, or neither.
caching = Question("How much is read from the cache?", _caching_table, _draw_caching, _say_caching)
#: Draw the spending up to each request, for each policy.
spending = Question("What has it cost so far?", _spending_table, _draw_spending)
#: Draw each message from its first request to its last.
dropping = Question("Which messages are kept, and until when?", _dropping_table, _draw_dropping)
