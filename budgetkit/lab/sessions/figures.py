"""Figures of recorded sessions: rules, predicted and recorded cache reads, and rankings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import many
from budgetkit.budget.html import ALARM, BLUE, GREEN, GREY, ORANGE, PALE, SLATE, translucent
from budgetkit.lab.figures.question import (
    TOKENS,
    Question,
    Spec,
    across,
    dollars,
    hover,
    line,
    named_line,
    note,
    plain,
    points,
    short,
    spec_of,
    table_rows,
)
from budgetkit.lab.replay.figures import LEGEND, LINES, request_axis
from budgetkit.lab.replay.losses import needed_there
from budgetkit.lab.sessions.comparing import AS_IT_WAS, Comparison
from budgetkit.lab.sessions.sentences import action_text, cost_text, sentences_of, value_text
from budgetkit.lab.sessions.session import Session
from budgetkit.plan import Flags, Ints

_MOST_PLACES = 400  # points of a lane; a page shows no more
_LANE = 0.5  # height of the largest prompt, as a share of the lane; the rule's name is above it
_PIXELS = 58  # height of a lane
# Marks of a lane: the table's column, the name, symbol, colour and size.
_MARKS = (
    ("compacts", "compaction", "triangle-down", ALARM, 8),
    ("clears", "results cleared", "circle", ORANGE, 4),
    ("needed", "needed by a call", "x", ALARM, 8),
)


def _rules_table(comparison: Comparison, followed: int | None = None) -> pd.DataFrame:
    """List each rule's requests to draw, with tokens and actions.

    `followed` is the index of a message of the compared conversation. Each row also tells whether the prompt
    contained this message, and whether a call needed the message.
    """
    frames = []
    for row in table_rows(comparison.table):
        if row["system"] not in comparison.outcomes:
            continue  # what was recorded is no replay
        outcome = comparison.outcomes[row["system"]].most
        retention = outcome.kept
        sent = outcome.sent
        compacts = np.array(retention.summaries) > 0
        clears = ~compacts & outcome.acts
        places = _places(len(sent), compacts)
        there = np.zeros(len(sent), "bool")
        needed = np.zeros(len(sent), "bool")
        if followed is not None:
            ends = [at for at in (retention.gone[followed], retention.shrunk[followed]) if at >= 0]
            there[int(outcome.placed.entry[followed]) : min(ends, default=len(sent))] = True
            at, needs, _ = needed_there(outcome, comparison.setup.pairs)
            needed[at[needs == followed]] = True
            places = np.union1d(
                places, np.flatnonzero(needed | (np.diff(there, prepend=there[:1]) != 0))
            )
        frame = {
            "system": row["system"],
            "label": row["label"],
            "cost": cost_text(row["least"], row["most"]),
            "action": action_text(row),
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
    """Return the indices of requests to draw: evenly spaced or marked.

    The request before each marked request is also drawn.
    """
    evenly = np.linspace(0, requests - 1, min(requests, _MOST_PLACES)).astype("int64")
    at = np.flatnonzero(marked)[:_MOST_PLACES]
    return np.unique(np.concatenate([evenly, at, np.maximum(at - 1, 0)]))


def _draw_rules(table: pd.DataFrame) -> Spec:
    """Draw each rule's prompt sizes in a row, with symbols for actions."""
    systems = list(dict.fromkeys(table["system"]))
    pruned = table.loc[table["system"] != AS_IT_WAS, "sent"]
    tallest = max(1, int(pruned.max())) if len(pruned) else 1
    traces = []
    notes = []
    for lane, name in enumerate(systems):
        part = table[table["system"] == name]
        # A session without pruning may be far larger than all others, so its lane has its own scale.
        top = tallest if name != AS_IT_WAS else max(1, int(part["sent"].max()))
        height = -lane + _LANE * part["sent"] / top
        title = plain(part["label"].iloc[0])
        texts = [
            f"{title}, request {at:,}: {size:,} tokens"
            for at, size in part[["request", "sent"]].values
        ]
        style = {"color": SLATE, "width": 1.3}
        traces.append(line(part["request"], height, line=style, name=title, **hover(texts)))

        # The requests that contain the followed message.
        base = -lane - 0.07
        there = part.loc[part["followed"], "request"]
        if not there.empty:
            ends = [int(there.min()), int(there.max())]
            shown = hover([f"{title}: in the prompts of requests {ends[0]:,} to {ends[1]:,}"] * 2)
            traces.append(line(ends, [base, base], line={"color": GREEN, "width": 5}, **shown))

        # The requests at which the rule summarises, clears or drops, and those that need the message.
        for column, word, symbol, colour, size in _MARKS:
            here = part[part[column]]
            if here.empty:
                continue
            at = height[here.index]
            ends = here["sent"].map("{:,} tokens after".format)
            colours = [colour] * len(here)
            if column == "needed":
                at = [base] * len(here)
                ends = here["followed"].map({True: "in the prompt", False: "not in the prompt"})
                colours = [GREEN if is_there else colour for is_there in here["followed"]]
            texts = [
                f"{title}: {word} at request {request:,}, {end}"
                for request, end in zip(here["request"], ends, strict=True)
            ]
            mark = {"symbol": symbol, "color": colours, "size": size}
            traces.append(points(here["request"], at, marker=mark, name=word, **hover(texts)))
        words = ", ".join(filter(None, map(str, part[["cost", "action"]].iloc[0])))
        above = {"xanchor": "left", "yanchor": "bottom", "xref": "paper", "font": {"size": 12}}
        notes.append(note(f"<b>{title}</b> {words}", 0, -lane + _LANE + 0.05, **above))
    height = _PIXELS * len(systems) + 130
    x = request_axis(int(table["request"].max()) - 1)
    y = {
        "visible": False,
        "range": [-len(systems) + 0.8, 1.05],
        "showgrid": False,
        "zeroline": False,
    }
    below = {"showlegend": True, "legend": {"orientation": "h", "y": -52 / height}}

    # The legend has entries for what the table contains.
    traces.append(line([None], [None], name="prompt", line={"color": SLATE, "width": 2}))
    marks = (*_MARKS, ("followed", "message in prompt", "square", GREEN, 0))
    for column, name, symbol, colour, _ in marks:
        if table[column].any():
            mark = {"symbol": symbol, "color": colour, "size": 9}
            traces.append(points([None], [None], name=name, marker=mark))
    return spec_of(traces, height, x, y, annotations=notes, **below)


def _reads_table(session: Session) -> pd.DataFrame:
    """List actual and predicted cache reads for some requests, with every miss."""
    frame = session.requests()
    places = _places(len(frame), frame["missed"].to_numpy() > 0)
    return (
        frame.drop(columns=["message_index", "model", "time"]).iloc[places].reset_index(drop=True)
    )


def _draw_reads(table: pd.DataFrame) -> Spec:
    at = table["request"]
    area: Spec = {"fill": "tozeroy", "fillcolor": translucent(GREY, 0.3), "line": {"width": 0}}
    # The prediction is the wider line; where it is right, it borders the recorded line.
    wide = {"color": ORANGE, "width": 5}
    thin = {"color": BLUE, "width": 1.5}
    traces = [
        named_line(at, table["prompt"], "prompt", **area),
        named_line(at, table["foretold"], "predicted read", line=wide),
        named_line(at, table["read"], "recorded read", line=thin),
    ]
    missed = table[table["missed"] > 0]
    texts = [
        f"request {row['request']:,}: {row['missed']:,} tokens missed, {plain(row['cause'])}"
        for row in table_rows(missed)
    ]
    mark = {"symbol": "x", "color": ALARM, "size": 8}
    shown = {"text": texts, "hoverinfo": "text"}
    traces.append(points(missed["request"], missed["read"], name="miss", marker=mark, **shown))
    x = request_axis(int(at.max()) - 1)  # lines end at the last request, areas after it
    y = {**TOKENS, "rangemode": "tozero"}
    return spec_of(traces, 320, x, y, **LEGEND)


def _say_reads(table: pd.DataFrame) -> str:
    missed = table.loc[table["missed"] > 0, "missed"]
    if not len(missed):
        return "No request missed the cache"
    return f"At {many(len(missed), 'request')}, for {missed.sum():,} tokens in all"


def _turning_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return the cheapest rule for each window and price."""
    cheapest = table[table["cheapest"]]
    return cheapest[["window", "read", "system", "change", "turns"]].reset_index(drop=True)


def _draw_turning(table: pd.DataFrame) -> Spec:
    """Draw the cheapest rule at each price and window.

    Lines mark the prices at which another rule becomes the cheapest.
    """
    reads = sorted(set(table["read"]), reverse=True)
    windows = sorted(set(table["window"]))
    names = list(dict.fromkeys(table["system"]))
    shades = {
        name: PALE if name == AS_IT_WAS else LINES[place % len(LINES)]
        for place, name in enumerate(names)
    }
    table = table.assign(x=table["read"].map(reads.index), y=table["window"].map(windows.index))
    traces = []
    for name in names:
        part = table[table["system"] == name]
        texts = [
            f"cached token at {row['read']:g}, window {row['window']:,}: {plain(name)}, {row['change']:+z.0%}"
            for row in table_rows(part)
        ]
        mark = {"symbol": "square", "size": 26, "color": shades[name]}
        shown = {"name": plain(name), "text": texts, "hoverinfo": "text"}
        traces.append(points(part["x"], part["y"], marker=mark, **shown))
    notes = []
    edges: list[Spec] = []
    for row in table_rows(table):
        change = f"{row['change']:+z.0%}".replace("-", "\u2212")
        notes.append(note(change, row["x"], row["y"], yshift=-22))
        if row["turns"]:
            x, y = row["x"] - 0.5, row["y"]
            edges.append({"x0": x, "x1": x, "y0": y - 0.5, "y1": y + 0.5})
    style = {"type": "line", "line": {"color": ALARM, "width": 3}}
    x_axis = _steps(
        "price of a cached token, as a share of the input price", map("{:g}".format, reads)
    )
    y_axis = _steps("window, in tokens", map(short, windows))
    more = {"annotations": notes, "shapes": [style | edge for edge in edges], **LEGEND}
    return spec_of(traces, 90 + 62 * len(windows), x_axis, y_axis, **more)


def _steps(title: str, names: Iterable[str]) -> Spec:
    """Return an axis with a name at each whole number."""
    texts = [*names]
    return {
        "title": title,
        "showgrid": False,
        "zeroline": False,
        "range": [-0.6, len(texts) - 0.4],
        "tickvals": [*range(len(texts))],
        "ticktext": texts,
    }


def _draw_settings(table: pd.DataFrame) -> Spec:
    """Draw each value's cost range, and a line for the recorded session."""
    values = table.iloc[1:]
    middle = (values["least"] + values["most"]) / 2
    names = [*map(value_text, values["value"])]
    texts = [
        f"{name}: {cost_text(row['low'], row['high'])}, {many(row['compactions'], 'compaction')}, "
        f"{many(row['used_later'], 'message')} dropped and used later"
        for name, row in zip(names, table_rows(values), strict=True)
    ]
    places = [*range(len(values))]
    spread = {
        "type": "data",
        "symmetric": False,
        "array": (values["high"] - middle).tolist(),
        "arrayminus": (middle - values["low"]).tolist(),
    }
    colours = [GREEN if is_flat else SLATE for is_flat in values["flat"]]
    shown = {"text": texts, "hoverinfo": "text", "error_y": spread}
    marks = points(places, middle.tolist(), marker={"size": 9, "color": colours}, **shown)
    billed = table.attrs["billed"]
    ends = [billed, *values["low"].dropna(), *values["high"].dropna()]
    right = 1.2 * len(places) - 0.5  # with space for a name beside the last point
    x: Spec = {"tickvals": places, "ticktext": names, "range": [-0.5, right]}
    is_size = isinstance(values["value"].iloc[0], int)
    setting = str(table.at[0, "setting"]).replace("_", " ")
    x |= {"title": f"{setting}, in tokens" if is_size else setting, "zeroline": False}
    # The axis does not begin at zero, or every range would be smaller than its dot.
    y = {"title": "US dollars", "range": [0.95 * min(ends), 1.05 * max(ends)]}
    as_recorded = note("as recorded", right, billed, xanchor="right", yshift=9)
    more = {"shapes": [across(billed, ORANGE)], "annotations": [as_recorded]}
    joined = [line(places, middle.tolist(), line={"color": PALE})] if is_size else []
    return spec_of([*joined, marks], 300, x, y, **more)


#: Draw each rule's prompts, actions and the presence of one message in a lane, cheapest first.
rules_compared = Question(
    "Which rule would have been cheaper, and where does it act?", _rules_table, _draw_rules
)
#: Draw each request's actual and predicted cache read, with the misses.
cache_reads = Question("When did the cache miss?", _reads_table, _draw_reads, _say_reads)
#: Draw the cheapest rule by price of a cached token and by window, with lines where the ranking changes.
order_turns = Question("Where does the ranking of the rules change?", _turning_table, _draw_turning)
#: Draw the cost of each value of a setting, with the error of the replay, from a table of :func:`bk.what_if`.
settings_compared = Question(
    "What would another setting have cost?",
    lambda table: table,
    _draw_settings,
    say=lambda table: f"As recorded: {dollars(table.attrs['billed'])}. {sentences_of(table)[0]}",
)
