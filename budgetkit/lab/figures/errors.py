"""A cheap counter's error on one conversation, and its effect on the history.

    error = rough - exact            tokens of the whole request
    shift = limit(rough) - limit(exact)

A count that is too low makes the budget look larger than it is, and the request overflows the window.
"""

from __future__ import annotations

import pandas as pd

from budgetkit.budget import Budget, quoted
from budgetkit.budget.html import ALARM, colour
from budgetkit.lab.figures.question import (
    TOKENS,
    Columns,
    Question,
    Spec,
    counted,
    end_labels,
    layout,
    named_line,
    plain,
    signed,
)
from budgetkit.lab.figures.turns import ALL, remainder_columns
from budgetkit.plan.batch import LINES, RequestBatch, batch_of


def _answer(
    budget: Budget, exact: pd.DataFrame | RequestBatch, rough: pd.DataFrame | RequestBatch
) -> Columns:
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


def _draw(table: Columns) -> Spec:
    section = str(table["line"][0])
    names = {"error": "count"}
    dots = {"color": ALARM, "width": 2, "dash": "dot"}
    text = "rough count minus exact count"
    lines = [named_line(table["turn"], table["error"], text, "%{y:+,}", line=dots)]
    if section != ALL:  # what is usable does not depend on any count
        names["shift"] = f"{plain(section)} budget"
        text = f"{names['shift']} by the rough count, minus the exact one"
        solid = {"color": colour(section), "width": 2.5, "dash": "solid"}
        lines.append(named_line(table["turn"], table["shift"], text, "%{y:+,}", line=solid))
    low = min(0, *(min(table[name]) for name in names))
    high = max(0, *(max(table[name]) for name in names))
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
    return {
        "data": lines,
        "layout": layout(280, x, y, hovermode="x unified", annotations=notes, meta={"top": 8}),
    }


def _say(table: Columns) -> str:
    error = table["error"][-1]
    way = "too low" if error < 0 else "too high"
    return f"At turn {table['turn'][-1]:,} the count is {abs(error):,} tokens {way}"


#: Draw a rough counter's error on a conversation, and how far it moves the history budget.
counter_error = Question("What does a rough count cost?", _answer, _draw, _say)


CUT = "cut in all"


def _moved(swept: pd.DataFrame) -> list[str]:
    # A table from elsewhere does not say which of its columns were moved: all that stand where lines stand.
    names = [str(name) for name in swept.columns]
    return list(swept.attrs.get(LINES, names[: names.index("section")]))


def _line_table(swept: pd.DataFrame) -> pd.DataFrame:
    moved = _moved(swept)
    if len(moved) != 1:
        raise ValueError(
            f"sweep_line needs exactly one varied line of the budget, not {len(moved)} ({quoted(moved)}). "
            "Give the others a single size, as in sweep(budget, demand, output=[...]), or use sweep_map."
        )
    return _means(swept, [*moved, "section"], ["demand", "granted", "cut"]).sort_values(
        moved, kind="stable", ignore_index=True
    )


def _means(swept: pd.DataFrame, keys: list[str], columns: list[str]) -> pd.DataFrame:
    """Return the mean over the demands, and their number."""
    by_key = swept.groupby(keys, sort=False)[columns]
    demands = by_key.size()
    means = by_key.mean() if (demands > 1).any() else by_key.sum()
    return means.assign(demands=demands).reset_index()


def _unit(table: pd.DataFrame) -> str:
    """Return the unit of a table's numbers.

    The unit is tokens, or mean tokens for several demands.
    """
    most = int(table["demands"].max())
    if most == 1:
        return "tokens"
    return f"tokens, mean of {most:,} demands"


def _draw_line(table: pd.DataFrame) -> Spec:
    by = str(table.columns[0])
    lines = []
    shown = []
    for section in dict.fromkeys(map(str, table["section"])):
        rows = table[table["section"] == section]
        if rows["demand"].any():
            shown.append(section)
            style = {"color": colour(section), "width": 2.5}
            line = named_line(rows[by], rows["granted"], plain(section), line=style, mode="lines")
            lines.append(line)
    whole = table.groupby(by, as_index=False)["cut"].sum()
    dots = {"color": ALARM, "dash": "dot", "width": 2}
    total = named_line(whole[by], whole["cut"], CUT, line=dots, mode="lines")
    x = {
        "title": f"{by}, in tokens",
        "tickformat": "~s",
        "showgrid": False,
        "nticks": 8,
    }
    y = {"rangemode": "tozero", "tickformat": "~s", "nticks": 6, "title": _unit(table)}
    wide = table.pivot(index=by, columns="section", values="granted")[shown]
    wide = wide.assign(**{CUT: whole["cut"].to_numpy()})
    ends = {name: plain(name) for name in (*shown, CUT)}
    notes = end_labels(wide.reset_index(), ends, wide.to_numpy().max() * 0.09, along=by)
    return {
        "data": [*lines, total],
        "layout": layout(340, x, y, hovermode="x unified", annotations=notes),
    }


def _map_table(swept: pd.DataFrame) -> pd.DataFrame:
    moved = _moved(swept)
    if len(moved) < 2:
        raise ValueError(
            f"sweep_map needs exactly two varied lines of the budget, not {len(moved)}. "
            "Write sweep(budget, demand, window=[...], output=[...]), or draw sweep_line."
        )
    # The other columns before the section tell one demand from another.
    names = [*map(str, swept.columns)]
    keys = [*dict.fromkeys([*moved, *names[: names.index("section")]])]
    whole = swept.groupby(keys, sort=False, as_index=False)[["cut"]].sum()
    return _means(whole, moved, ["cut"]).sort_values(moved, ignore_index=True)


def _draw_map(table: pd.DataFrame) -> Spec:
    across = str(table.columns[0])
    up = str(table.columns[1])
    grid = table.pivot(index=up, columns=across, values="cut")
    hover = f"{plain(across)} %{{x:,}}<br>{plain(up)} %{{y:,}}<br>%{{z:,}} {_unit(table)}, cut<extra></extra>"
    scale = [[0, "rgba(0,158,115,0.35)"], [1e-9, "#fde0c5"], [1, ALARM]]
    bar = {
        "title": {"text": f"cut, {_unit(table)}", "side": "right"},
        "tickformat": "~s",
        "thickness": 12,
    }
    heat = {
        "type": "heatmap",
        "x": grid.columns.tolist(),
        "y": grid.index.tolist(),
        "z": grid.to_numpy().tolist(),
        "hovertemplate": hover,
        "colorscale": scale,
        "zmin": 0,
        "colorbar": bar,
    }
    x = {"title": f"{across}, in tokens", "tickformat": "~s", "showgrid": False}
    y = {"title": f"{up}, in tokens", "tickformat": "~s", "showgrid": False}
    return {"data": [heat], "layout": layout(400, x, y)}


def _say_line(table: pd.DataFrame) -> str:
    by = str(table.columns[0])
    granted = table.pivot_table("granted", by, "section", sort=False)
    changes = (granted.iloc[-1] - granted.iloc[0]).round().astype(int)
    texts = [f"{name} {signed(change, True)}" for name, change in changes.items() if change]
    first, last = granted.index[[0, -1]]
    return f"From {by} {first:,} to {last:,}: {', '.join(texts) or 'no change'}"


def _say_map(table: pd.DataFrame) -> str:
    across, up = map(str, table.columns[:2])
    whole = table[table["cut"] == 0]
    if whole.empty:
        return "Something is cut in every combination"
    row = whole.nsmallest(1, across).iloc[0]
    return f"In the green area; its smallest {across} is {row[across]:,}, at {up} {row[up]:,}"


#: Draw what each section is granted, and what is cut in all, while one line of a sweep moves.
sweep_line = Question("Which sections gain or lose tokens?", _line_table, _draw_line, _say_line)

#: Draw what is cut while two lines of a sweep move, with the line where the first token is cut.
sweep_map = Question("Where is nothing cut?", _map_table, _draw_map, _say_map)
