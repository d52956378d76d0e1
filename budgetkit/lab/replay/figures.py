"""Figures of a replayed conversation: requests, cache reads and dropped messages."""

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
    layout,
    line,
    note,
    plain,
    points,
    short,
    table_rows,
    tick_format,
)
from budgetkit.lab.replay.forecast import fan as spread_of
from budgetkit.lab.replay.forecast import straight_line
from budgetkit.lab.replay.outcome import Replay
from budgetkit.message import Data
from budgetkit.plan import Ints

_BANDS = (("low", "high", 0.18), ("lower", "upper", 0.3))


#: The quality of the median, without and with other conversations, measured by ``python -m benchmarks.promised`` on
#: 2026-11-22.
LINE_NOTES = (
    "Dotted: a straight line at the mean so far. The middle of the fan has hardly smaller errors than this line.",
    "Dotted: a straight line at the mean so far. The middle of the fan has errors about a third smaller.",
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
    turns = table["turn"].tolist()
    traces = []
    for low, high, opacity in _BANDS:
        around = table[high].tolist() + table[low].tolist()[::-1]
        filled = {
            "fill": "toself",
            "fillcolor": translucent(BLUE, opacity),
            "line": {"width": 0},
            "hoverinfo": "skip",
        }
        traces.append(line(turns + turns[::-1], around, mode="lines", **filled))
    hover = "turn %{x}: %{y:,} in the middle<extra></extra>"
    traces.append(
        line(turns, table["median"], mode="lines", line={"color": BLUE}, hovertemplate=hover)
    )
    if "straight line" in table:
        dots = {"color": BLUE, "dash": "dot", "width": 1.5}
        hover = "turn %{x}: %{y:,} straight on<extra></extra>"
        traces.append(
            line(turns, table["straight line"], mode="lines", line=dots, hovertemplate=hover)
        )
    limits = {
        str(name): float(table[name].iloc[0])
        for name in table.columns
        if name.startswith("limit: ")
    }
    shapes = [across(at, ALARM) for at in limits.values()]
    texts = [f"{plain(name.removeprefix('limit: '))} {at:,.0f}" for name, at in limits.items()]
    # of two that lie close together the lower is named below its line
    close = 0.1 * max(float(table[name].max()) for name in table.columns if name != "turn")
    notes = []
    for text, at in zip(texts, limits.values(), strict=True):
        is_below = any(0 < other - at < close for other in limits.values())
        anchors = {"xanchor": "right", "yanchor": "top" if is_below else "bottom"}
        notes.append(note(text, 1, at, xref="paper", **anchors))
    x = {"title": "turn", "showgrid": False, "nticks": 8}
    y = {**TOKENS, "rangemode": "tozero"}
    return {"data": traces, "layout": layout(300, x, y, shapes=shapes, annotations=notes)}


#: Draw the middle half and the middle 90 % of simulated conversations, with the limits that they reach.
fan = Question("When will the window be full if this continues?", _table, _draw)


LINES = (GREY, BLUE, GREEN, ORANGE, PURPLE, SKY, WINE, OLIVE)
DASHES = ("solid", "dash", "dot", "dashdot")  # for the colours that come again
_KINDS = {"cached": GREEN, "written": ORANGE, "fresh": PALE}
_FATES = {"kept": GREY, "shrunk": ORANGE, "summarised": PURPLE, "dropped": ALARM}
LEGEND: Data = {"showlegend": True, "legend": {"orientation": "h", "y": -0.2}}
_MOST_WIDE = 400  # messages


def _timeline_table(outcome: Replay) -> pd.DataFrame:
    table = outcome.sections()
    frame = outcome.frame()
    left = frame["dropped"] + frame["summary_input"]
    by_request = pd.DataFrame(
        {"request": frame["request"], "limit": outcome.budget.usable, "dropped": left}
    )
    return table[["request", "turn", "section", "tokens", "cut"]].merge(by_request, on="request")


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
    more = {
        "annotations": [note(f"usable window {limit:,}", 0, limit, **place)],
        "shapes": [across(limit, ALARM)],
    }
    y = {**TOKENS, "range": [0, limit * 1.23], "showgrid": False}
    return {"data": traces, "layout": layout(340, _axis(table), y, **more, **LEGEND)}


def _layer(table: pd.DataFrame, column: str, name: str, fill: str) -> Spec:
    x = table["request"].tolist()
    y = table[column].tolist()
    # the last request is as wide as the others
    x = [*x, *(at + 1 for at in x[-1:])]
    y = [*y, *y[-1:]]
    hover = "%{y:,} " + plain(name) + "<extra></extra>"
    edge = {"width": 0, "shape": "hv"}
    more = {"stackgroup": "one", "line": edge, "fillcolor": fill, "hovertemplate": hover}
    return line(x, y, mode="lines", name=plain(name), **more)


def request_axis(last: int, every_turn: bool = False) -> Data:
    """Return the axis of requests, or of turns if each has one request."""
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
    return {
        "data": traces,
        "layout": layout(340, _axis(table), y, hovermode="x unified", **LEGEND),
    }


def _spending_table(replays: Mapping[str, Replay]) -> pd.DataFrame:
    """Add up the cost, or the weighted input if prices are unknown.

    The unit of the weighted input is an uncached token.
    """
    has_prices = all(
        outcome.prices is not None and not np.isnan(outcome.cost).any()
        for outcome in replays.values()
    )
    frames = []
    for name, outcome in replays.items():
        frame = outcome.frame()
        weighed = (
            frame["cached"] * outcome.cache.read
            + frame["written"] * outcome.cache.write
            + frame["fresh"]
        )
        spent = frame["cost"] if has_prices else weighed + frame["summary_input"]
        unit = "US dollars" if has_prices else "input tokens, weighed"
        at = {"request": frame["request"], "turn": frame["turn"]}
        rows = {"policy": name, **at, "spent": spent.cumsum(), "unit": unit}
        frames.append(pd.DataFrame(rows))
    return pd.concat(frames, ignore_index=True)


def _draw_spending(table: pd.DataFrame) -> Spec:
    policies = list(dict.fromkeys(table["policy"]))
    # A colour for each policy or, if all are used, another dash.
    styles = {}
    for number, policy in enumerate(policies):
        dash = DASHES[number // len(LINES) % len(DASHES)]
        styles[policy] = {"color": LINES[number % len(LINES)], "width": 2, "dash": dash}
    traces = []
    for policy, style in styles.items():
        rows = table[table["policy"] == policy]
        form = "%{y:,.4~g} " + plain(policy) + "<extra></extra>"
        more = {"name": plain(policy), "hovertemplate": form}
        traces.append(line(rows["request"], rows["spent"], line=style, **more))

    # The names at the ends of the lines, upwards from the cheapest.
    signs = {"solid": "\u25a0", "dash": "\u2505", "dot": "\u2508", "dashdot": "\u254d"}
    last = table[table["request"] == table["request"].max()].sort_values("spent", kind="stable")
    highest = float(table["spent"].max())
    top = 1.05 * highest
    gap = min(0.075, 1 / len(policies)) * highest
    notes: list[Spec] = []
    places = {"xanchor": "left", "xshift": 4, "yanchor": "middle"}
    for policy, end, at in last[["policy", "spent", "request"]].itertuples(index=False):
        style = styles[policy]
        swatch = f'<span style="color:{style["color"]}">{signs[str(style["dash"])]}</span>'
        height = max(float(end), notes[-1]["y"] + gap) if notes else float(end)
        notes.append(note(f"{swatch} {label(policy)}", int(at), height, **places))
    # They may have left the figure: what is too high comes down.
    for shown in reversed(notes):
        shown["y"] = min(shown["y"], highest)
        highest = shown["y"] - gap
    unit = str(table["unit"].iloc[0])
    y = {"title": unit, "range": [0, top or 1.0], "tickformat": tick_format(top)}
    tall = max(320, 16 * len(policies) + 100)  # so that each name has a line
    spec_layout = layout(tall, _axis(table), y, hovermode="x unified", annotations=notes)
    spec_layout["margin"]["r"] = 24 + 7 * max(len(label(name)) for name in policies)
    return {"data": traces, "layout": spec_layout}


def _dropping_table(outcome: Replay) -> pd.DataFrame:
    table = outcome.messages()
    table = table[table["first"].notna()].copy()
    last = len(outcome.placed.requests)
    table["until"] = table["gone"].fillna(last + 1).astype("int64")
    return table[
        ["message", "turn", "role", "section", "tokens", "first", "until", "fate"]
    ].reset_index(drop=True)


def _draw_dropping(table: pd.DataFrame) -> Spec:
    # Pixels; of very many lines none may cover its neighbours.
    width = 2.0 if len(table) <= _MOST_WIDE else 0.5
    fates = [fate for fate in _FATES if (table["fate"] == fate).any()]
    traces = []
    for fate in fates:
        # Each message's line from its first request to its removal.
        x: list[Any] = []
        y: list[Any] = []
        texts: list[Any] = []
        for row in table_rows(table[table["fate"] == fate]):
            text = f"message {row['message']}, {row['role']}, {row['tokens']:,} tokens: {fate}"
            x += [int(row["first"]), int(row["until"]), None]
            y += [int(row["message"])] * 2 + [None]
            texts += [plain(text)] * 2 + [None]
        style = {"color": _FATES[fate], "width": width}
        traces.append(line(x, y, mode="lines", name=fate, line=style, **hover(texts)))
    # Entries of the legend that are thick enough to see.
    traces += [
        line([None], [None], mode="lines", name=fate, line={"color": _FATES[fate], "width": 4})
        for fate in fates
    ]
    last = int(max(table["first"], default=1))
    every_turn = bool((table["first"] <= table["turn"] + 1).all())
    y_axis = {"title": "message", "autorange": "reversed", **counted(len(table))}
    return {
        "data": traces,
        "layout": layout(340, request_axis(last, every_turn), y_axis, **LEGEND),
    }


def _say_timeline(table: pd.DataFrame) -> str:
    once = table.drop_duplicates("request")
    cuts = once.loc[once["dropped"] > 0, "request"]
    largest = table.nlargest(1, "tokens").iloc[0]
    text = f"Mostly {largest['section']}, up to {largest['tokens']:,} tokens"
    if not len(cuts):
        return f"{text}; nothing is dropped in {len(once):,} requests"
    return f"{text}; messages are dropped at {len(cuts):,} of {len(once):,} requests, first at {cuts.iloc[0]:,}"


def _say_caching(table: pd.DataFrame) -> str:
    sent = int(table["sent"].sum())
    return f"{table['cached'].sum() / max(1, sent):.0%} of {short(sent)} tokens sent".replace(
        "%", " %"
    )


#: Draw each request by section, with the usable window and the requests that drop messages.
timeline = Question(
    "What fills the window, request by request?", _timeline_table, _draw_timeline, _say_timeline
)
#: Draw the tokens of each request that are read from the prompt cache, written to it, or neither.
caching = Question(
    "How much is read again from the cache?", _caching_table, _draw_caching, _say_caching
)
#: Draw the spending up to each request, for each policy.
spending = Question("What has it cost so far?", _spending_table, _draw_spending)
#: Draw each message from its first request to its last.
dropping = Question("Which messages are kept, and until when?", _dropping_table, _draw_dropping)
