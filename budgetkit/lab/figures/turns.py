"""Figures of a conversation's turns, and of a counted request.

The figures follow the budget's remainder, such as the history. For a budget without a remainder, they compare the total
demand with the usable window. Demands in a frame can be cut at any token. A `budgetkit.plan.batch.RequestBatch` has
items, so its turns are planned item by item, as by `fit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.html import (
    ALARM,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    SLATE,
    colour,
    translucent,
)
from budgetkit.lab.figures.question import (
    TOKENS,
    Columns,
    Question,
    Spec,
    bars,
    counted,
    end_labels,
    extent,
    label,
    named_line,
    named_rows,
    note,
    plain,
    signed,
    spec_of,
    table_rows,
)
from budgetkit.plan import Ints, with_undeclared
from budgetkit.plan.batch import Columns as Planned
from budgetkit.plan.batch import RequestBatch, batch_of
from budgetkit.plan.plan import remainder

if TYPE_CHECKING:
    from typing import Protocol

    class Counted(Protocol):
        """The result of `budgetkit.count_request`."""

        def frame(self) -> pd.DataFrame:
            """Return the billed items as a frame."""
            ...


ROW = 34  # pixels for a bar
_COLOURS = {"message": PURPLE, "image": SKY, "tools": ORANGE}
_COLOURS |= {"answer schema": GREEN, "hidden prompt": BLUE, "framing": GREY}


def _table(counted: Counted) -> pd.DataFrame:
    """Add up a counted request's tokens for each message.

    Tokens that belong to no message are added up for each kind and part.
    """
    ledger = counted.frame()
    first = ledger.groupby("message")["part"].transform("first")
    ledger["part"] = ledger["part"].where(ledger["message"].isna(), first)
    ledger["place"] = ledger["message"].astype("Int64").astype("string").fillna("")
    keys = ["kind", "part", "place"]
    table = ledger.groupby(keys, sort=False)["tokens"].sum().reset_index()
    return table.assign(share=(100 * table["tokens"] / max(1, int(table["tokens"].sum()))).round(1))


def _draw(table: pd.DataFrame) -> Spec:
    tokens = table["tokens"].tolist()
    texts = []
    hover = []
    for row in table_rows(table):
        # A message is named by its place and role, all else by kind and part.
        name = f"{row['place']} {row['part']}"
        if row["kind"] != "message":
            where = f" in {row['place']}" if row["place"] else ""
            name = f"{row['kind']}{where}{': ' if row['part'] else ''}{row['part']}"
        texts.append(f"<b>{label(name, 28)}</b>  {signed(row['tokens'])}")
        hover.append(f"{plain(name)}: {row['tokens']:,} tokens")
    marker = {"color": [_COLOURS.get(kind, SLATE) for kind in table["kind"]]}
    bar = bars(tokens, texts, hover, customdata=table["kind"].tolist(), marker=marker)
    low = min([0, *tokens])
    high = max([1, *tokens])
    x = {
        **TOKENS,
        "range": [low * 1.1, low + (high - low) * 1.75],
        "nticks": 6,
        "showgrid": False,
    }
    y = {"range": [len(table) - 0.4, -0.6], "visible": False}
    place = {"xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "bottom"}
    notes = [note(f"{sum(tokens):,} tokens in all", 1, 1, **place)]
    return spec_of([bar], len(table) * ROW + 80, x, y, annotations=notes, meta={"top": 20})


#: Draw the ledger of a counted request, with a bar for each message, tool, schema, image and hidden prompt.
ledger = Question("What is this request billed for?", _table, _draw)


ALL = "all sections"
_NAMES = {"granted": "kept", "limit": "limit", "demand": "demand", "pinned_limit": "pinned limit"}


def remainder_columns(budget: Budget, columns: Planned) -> dict[str, Ints]:
    """Return the demand, limit and grant of the remainder in each row.

    The remainder is the section that takes the remaining tokens. If the budget has no remainder, the total demand, the
    usable window and the total grant are returned.
    """
    if budget.remainder is not None:
        left: Ints = remainder(with_undeclared(budget, columns), columns)
        return columns[budget.remainder] | {"limit": left}
    demand, granted = (
        sum((c[name] for c in columns.values()), np.zeros(1, "int64"))
        for name in ("demand", "granted")
    )
    return {"demand": demand, "limit": np.full(len(demand), budget.usable), "granted": granted}


def first_cut_row(columns: Planned) -> tuple[int, str] | None:
    """Return the first row with a cut and the section cut most.

    If nothing is cut, return None.
    """
    cuts = {section: c["cut"] for section, c in columns.items()}
    rows = [int(np.argmax(cut > 0)) for cut in cuts.values() if (cut > 0).any()]
    if not rows:
        return None
    row = min(rows)
    return row, max(cuts, key=lambda section: int(cuts[section][row]))


def _answer(
    budget: Budget,
    demand: pd.DataFrame | RequestBatch,
    turn: int | None = None,
    pinned: Budget | None = None,
    pinned_demand: pd.DataFrame | RequestBatch | None = None,
) -> Columns:
    batch = batch_of(demand)
    columns = batch.columns(budget)
    shown = remainder_columns(budget, columns)
    first = first_cut_row(columns)
    places = batch.demand.index.tolist()
    table: dict[str, list[Any]] = {
        "turn": places,
        "line": [budget.remainder or ALL] * len(places),
        **{name: shown[name].tolist() for name in ("demand", "limit", "granted")},
        "cut": sum((c["cut"] for c in columns.values()), np.zeros(len(places), "int64")).tolist(),
        "chosen": [place == turn for place in places],
        "first_cut": [""] * len(places),
    }
    if first is not None:
        table["first_cut"][first[0]] = first[1]
    if pinned is not None:
        others = batch_of(batch if pinned_demand is None else pinned_demand).columns(pinned)
        table["pinned_limit"] = remainder_columns(pinned, others)["limit"].tolist()
    return table


def _draw_turns(table: Columns) -> Spec:
    section = str(table["line"][0])
    turns = table["turn"]
    section_colour = SLATE if section == ALL else colour(section)
    looks = {
        "granted": (section_colour, "solid"),
        "limit": ("#0072B2", "dash"),
        "demand": (ALARM, "dot"),
        "pinned_limit": (SLATE, "dashdot"),
    }
    names = [name for name in looks if name in table]
    lines = []
    for name in names:
        shade, dash = looks[name]
        style = {"color": shade, "dash": dash, "width": 2}
        lines.append(named_line(turns, table[name], _NAMES[name], line=style))
    lines[0]["line"]["width"] = 2.5
    lines[0] |= {"fill": "tozeroy", "fillcolor": translucent(section_colour, 0.22)}
    low, high = extent(tokens for name in names for tokens in table[name])
    top = max(1, high) * 1.16
    first, last = (turns[0], turns[-1]) if len(turns) > 1 else (turns[0] - 0.5, turns[0] + 0.5)
    x = {"title": "turn", "range": [first, last], "showgrid": False, **counted(len(turns))}
    y = {**TOKENS, "range": [low * 1.1, top], "nticks": 6}
    # Lines that end at the same number share one label.
    ends: dict[int, list[str]] = {}
    for column in names:
        ends.setdefault(table[column][-1], []).append(column)
    texts = {
        columns[0]: f"{' and '.join(_NAMES[c] for c in columns)}: {signed(end)}"
        for end, columns in ends.items()
    }
    notes = end_labels(table, texts, (top - low) * 0.12)

    # Upright lines at the chosen turn and at the first cut, which has a note.
    upright = {"type": "line", "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
    shapes: list[Spec] = []
    for turn, is_chosen, cut in zip(turns, table["chosen"], table["first_cut"], strict=True):
        place = {**upright, "x0": turn, "x1": turn}
        if is_chosen:
            look = {"color": SLATE, "dash": "solid", "width": 1}
            shapes.insert(0, {**place, "name": "here", "line": look})
        if cut:
            shapes.append({**place, "line": {"color": ALARM, "dash": "dash", "width": 1.5}})
            share = (turn - first) / max(1, last - first)
            anchor = ("left", "center", "right")[(share >= 0.35) + (share > 0.65)]
            corner = {"xanchor": anchor, "yref": "paper", "yanchor": "bottom"}
            notes.append(note(f"first cut: turn {turn:,}", turn, 1, **corner))
    more = {"hovermode": "x unified", "annotations": notes, "shapes": shapes, "meta": {"top": 20}}
    return spec_of(lines, 280, x, y, **more)


def _say(table: Columns) -> str:
    for turn, section in zip(table["turn"], table["first_cut"], strict=True):
        if section:
            return f"The first cut comes at turn {turn:,}, in {section}"
    return f"Nothing is cut in {len(table['turn']):,} turns"


#: Draw the history budget and the demand for it, turn by turn, with the first turn that loses something.
turns = Question("How many turns does it last?", _answer, _draw_turns, _say)


LINE = 30  # pixels for one bar and the space around it


def _answer_conversations(budget: Budget, demands: pd.DataFrame | RequestBatch) -> Columns:
    batch = batch_of(demands)
    codes, names = pd.factorize(batch.demand.index.get_level_values(0))
    count = len(names)
    columns = batch.columns(budget)
    hit = {section: np.bincount(codes, c["cut"] > 0, count) > 0 for section, c in columns.items()}
    hit = {ALL: np.logical_or.reduce([*hit.values(), np.zeros(count, dtype=bool)]), **hit}
    cut = [int(h.sum()) for h in hit.values()]
    share = [round(n / max(1, count), 4) for n in cut]
    return {"section": list(hit), "conversations": [count] * len(hit), "cut": cut, "share": share}


def _draw_conversations(table: Columns) -> Spec:
    sections = ["anything", *table["section"][1:]]
    texts = [
        f"{row['cut']:,} of {row['conversations']:,} ({row['share']:.0%})"
        for row in table_rows(table)
    ]
    marker = {"color": [SLATE, *map(colour, sections[1:])]}
    hover = [
        f"{plain(section)} is cut in {text} conversations"
        for section, text in zip(sections, texts, strict=True)
    ]
    bar = bars(table["share"], texts, hover, customdata=table["section"], marker=marker)
    x = {
        "range": [0, 1.45],
        "tickformat": ".0%",
        "tickvals": [0, 0.25, 0.5, 0.75, 1],
        "title": "share of the conversations",
        "showgrid": False,
    }
    meta = {"top": 4, "beside": max(map(len, texts)), "reach": 1}
    return spec_of([bar], len(sections) * LINE + 70, x, named_rows(sections), meta=meta)


#: Draw the number of conversations with cuts, for a frame of demands by conversation and turn.
conversations = Question(
    "How many conversations lose something?", _answer_conversations, _draw_conversations
)


def _answer_counts(
    budget: Budget, exact: pd.DataFrame | RequestBatch, rough: pd.DataFrame | RequestBatch
) -> Columns:
    """Return a cheap counter's error and its effect, turn by turn.

        error = rough - exact            tokens of the whole request
        shift = limit(rough) - limit(exact)

    Here `limit` is the limit of the remainder in a plan of these counts. A count that is too low makes this limit look
    larger than it is, so the request can overflow the window.
    """
    both = batch_of(exact), batch_of(rough)
    sums = [batch.asked for batch in both]
    limits = [remainder_columns(budget, batch.columns(budget))["limit"] for batch in both]
    error = sums[1] - sums[0]
    rows = {
        "exact": sums[0],
        "rough": sums[1],
        "error": error,
        "error_percent": (100 * error / sums[0].clip(min=1)).round(1),
        "exact_limit": limits[0],
        "rough_limit": limits[1],
        "shift": limits[1] - limits[0],
    }
    turns = both[0].demand.index.tolist()
    columns = {name: column.tolist() for name, column in rows.items()}
    return {"turn": turns, "line": [budget.remainder or ALL] * len(turns), **columns}


def _draw_counts(table: Columns) -> Spec:
    section = str(table["line"][0])
    names = {"error": "count"}
    dots = {"color": ALARM, "width": 2, "dash": "dot"}
    text = "cheap count minus best count"
    lines = [named_line(table["turn"], table["error"], text, "%{y:+,}", line=dots)]
    if section != ALL:  # the usable window does not depend on any count
        names["shift"] = f"{plain(section)} budget"
        text = f"{names['shift']} by the cheap count, minus that by the best count"
        solid = {"color": colour(section), "width": 2.5, "dash": "solid"}
        lines.append(named_line(table["turn"], table["shift"], text, "%{y:+,}", line=solid))
    low, high = extent(tokens for name in names for tokens in table[name])
    height = max(1, high - low)
    ends = {name: f"{text} {signed(table[name][-1], always=True)}" for name, text in names.items()}
    notes = end_labels(table, ends, height * 0.11)
    x = {"title": "turn", "showgrid": False, **counted(len(table["turn"]))}
    y = {
        **TOKENS,
        "range": [low - height * (0.14 if low < 0 else 0.08), high + height * 0.22],
        "nticks": 6,
        "zerolinewidth": 2,
    }
    return spec_of(lines, 280, x, y, hovermode="x unified", annotations=notes, meta={"top": 8})


def _say_counts(table: Columns) -> str:
    error = table["error"][-1]
    way = "too low" if error < 0 else "too high"
    return f"At turn {table['turn'][-1]:,}, the count is {abs(error):,} tokens {way}"


#: Draw a cheap counter's error in a conversation, and its effect on the history budget.
counter_error = Question("What does a cheap count cost?", _answer_counts, _draw_counts, _say_counts)
