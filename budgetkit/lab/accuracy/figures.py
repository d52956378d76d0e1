"""Figures of counting errors, buffers, languages, budgets and speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.html import ALARM, BLUE, GREEN, ORANGE, POOL, SLATE, colour
from budgetkit.budget.quoting import shortened
from budgetkit.lab.accuracy import buffer_for
from budgetkit.lab.figures.question import (
    TOKENS,
    Question,
    Spec,
    bars,
    extent,
    label,
    line,
    plain,
    points,
    short,
    signed,
    spec_of,
    table_rows,
)
from budgetkit.lab.figures.scales import INK
from budgetkit.plan import allocate

_OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", SLATE)
_MOST_POINTS = 3_000
_INVISIBLE = "\u200b"


def _by_class(errors: pd.DataFrame) -> pd.DataFrame:
    sample = errors if len(errors) <= _MOST_POINTS else errors.sample(_MOST_POINTS, random_state=0)
    columns = ["counter", "class", "language", "source", "document", "characters", "exact"]
    columns += ["estimate", "error"]
    return sample[columns].sort_values(["class", "counter"], kind="stable", ignore_index=True)


def _draw_by_class(table: pd.DataFrame) -> Spec:
    boxes: list[Spec] = []
    for (counter, rows), shade in zip(table.groupby("counter", sort=False), cycle(_OKABE_ITO)):
        name = plain(counter)
        tips = [
            f"{plain(str(row.document) or str(row.source))}, {plain(row.language)}<br>"
            f"{row.exact:,} tokens, counted {row.estimate:,}"
            for row in rows.itertuples()
        ]
        boxes.append(
            {
                "type": "box",
                "name": name,
                "x": [plain(value) for value in rows["class"]],
                "y": (100 * rows["error"]).round(1).tolist(),
                "text": tips,
                "hovertemplate": f"%{{text}}<br>%{{y:+.1f}} %<extra>{name}</extra>",
                "boxpoints": "all",
                "jitter": 0.5,
                "pointpos": 0,
                "marker": {"size": 4, "opacity": 0.55, "color": shade},
                "line": {"width": 1.5},
            }
        )
    y = {
        "title": "error, % of the exact count",
        "ticksuffix": " %",
        "zerolinewidth": 2,
        "nticks": 8,
    }
    legend = {"orientation": "h", "y": -0.15, "x": 0}
    return spec_of(boxes, 420, {}, y, boxmode="group", showlegend=True, legend=legend)


def _buffers(
    errors: pd.DataFrame, window: int, risks: tuple[float, ...] = (0.2, 0.1, 0.05, 0.02, 0.01)
) -> pd.DataFrame:
    rows = []
    for name, group in errors.groupby("counter", sort=False):
        for risk in risks:
            buffer = buffer_for(group, window, risk)
            tokens = round(buffer.share * window)
            shares = (buffer.share, buffer.low, buffer.high)
            rows.append((name, risk, *shares, tokens, buffer.warning))
    columns = ["counter", "risk", "buffer", "low", "high", "tokens", "warning"]
    return pd.DataFrame(rows, columns=columns)


def _draw_buffers(table: pd.DataFrame) -> Spec:
    lines = []
    for (name, rows), shade in zip(table.groupby("counter", sort=False), cycle(_OKABE_ITO)):
        buffer = rows["buffer"]
        up, down = (
            (100 * size).clip(lower=0).tolist()
            for size in (rows["high"] - buffer, buffer - rows["low"])
        )
        lines.append(
            line(
                100 * rows["risk"],
                (100 * buffer).round(2),
                mode="lines+markers",
                name=plain(name),
                error_y={"type": "data", "symmetric": False, "array": up, "arrayminus": down},
                line={"color": shade},
                customdata=rows["tokens"].tolist(),
                hovertemplate="%{y:.1f} %, %{customdata:,} tokens, at a risk of %{x} %<extra></extra>",
            )
        )
    risks = sorted(set(100 * table["risk"]))
    x_axis = {
        "type": "log",
        "title": "accepted risk of overflow",
        "tickvals": risks,
        "ticktext": [f"{risk:g} %" for risk in risks],
        "tickangle": 0,
        "minor": {"showgrid": False},
        "autorange": "reversed",
    }
    y_axis = {
        "title": "safety buffer, of the window",
        "ticksuffix": " %",
        "rangemode": "tozero",
    }
    legend = {"orientation": "h", "y": -0.25, "x": 0}
    return spec_of(lines, 340, x_axis, y_axis, showlegend=len(lines) > 1, legend=legend)


def _tax(errors: pd.DataFrame, window: int = 128_000) -> pd.DataFrame:
    groups = errors[errors["counter"] == errors["counter"].iloc[0]].groupby(
        ["class", "language"], sort=False
    )
    table: pd.DataFrame = (
        groups[["characters", "exact"]].sum().assign(documents=groups.size()).reset_index()
    )
    table["characters_a_token"] = table["characters"] / table["exact"]
    size = (table["characters_a_token"] * window).round().astype(int)
    english = size[table["language"] == "en"]
    base = english.iloc[0] if len(english) else size.max()
    table["characters_in_window"] = size
    table["of_base"] = size / base
    return table.sort_values("characters_in_window", ignore_index=True)


def _draw_tax(table: pd.DataFrame) -> Spec:
    sizes = table["characters_in_window"]
    y = [
        f"{label(row['language'], 20)} ({label(row['class'], 16)}, n = {row['documents']})"
        for row in table_rows(table)
    ]
    marker = {"color": [ALARM if share < 0.5 else SLATE for share in table["of_base"]]}
    hover = "%{x:,} characters<extra></extra>"
    texts = [f"{100 * share:.0f} %" for share in table["of_base"]]
    bar = bars(sizes, texts, hovertemplate=hover, marker=marker, y=y)
    x = {"title": "characters that fill the window", "tickformat": "~s", "showgrid": False}
    x |= {"range": [0, 1.09 * max(sizes)]}
    return spec_of([bar], max(300, 19 * len(table) + 80), x, {"showgrid": False})


def _say_by_class(table: pd.DataFrame) -> str:
    """Name the class with the largest median error for each counter."""
    medians = table.groupby(["counter", "class"], sort=False)["error"].median()
    places = medians.abs().groupby("counter", sort=False).idxmax()
    ends = [f"{place[0]}: {100 * medians[place]:+.0f} % ({place[1]})" for place in places]
    return f"Largest median error of {'; '.join(ends)}".replace("-", "\u2212")


def _say_buffers(table: pd.DataFrame) -> str:
    risks = sorted(set(table["risk"]))
    risk = risks[len(risks) // 2]
    rows = table_rows(table[table["risk"] == risk])
    shares = [f"{100 * row['buffer']:.1f} % for {row['counter']}" for row in rows]
    return f"At a risk of {100 * risk:g} %: {', '.join(shares)}"


def _say_tax(table: pd.DataFrame) -> str:
    least, most = (
        f"{short(row['characters_in_window'])} characters ({row['language']})"
        for row in table_rows(table.iloc[[0, -1]])
    )
    return f"From {least} to {most}"


#: Draw each document's error, by class and counter.
errors_by_class = Question(
    "On which texts is each counter wrong, and by how much?",
    _by_class,
    _draw_by_class,
    _say_by_class,
)

#: Draw the safety buffer over the accepted risk of an overflow.
buffers = Question("How large a buffer does each risk need?", _buffers, _draw_buffers, _say_buffers)

#: Draw how much text fills a window, by language.
language_tax = Question("How much text fills the window, by language?", _tax, _draw_tax, _say_tax)


def _table(
    budget: Budget, safe: Budget, demand: Mapping[str, int], ratios: Mapping[str, float]
) -> pd.DataFrame:
    cases = [("as counted", 1.0, budget), *((*case, budget) for case in ratios.items())]
    rows = []
    for case, ratio, lines in [*cases, ("with the buffer", 1.0, safe)]:
        caps = sum(filter(None, lines.caps.values()))
        rows.append((POOL, case, ratio, round(lines.usable - ratio * caps)))
        if lines.remainder is not None:
            demands = {section: round(ratio * tokens) for section, tokens in demand.items()}
            left = allocate(replace(lines, deficit="signed"), demands).remainder
            rows.append((lines.remainder, case, ratio, left))
    return pd.DataFrame(rows, columns=["line", "case", "ratio", "tokens"]).sort_values(
        "line", key=lambda lines: lines != POOL, kind="stable", ignore_index=True
    )


def _draw(table: pd.DataFrame) -> Spec:
    # The name, the tokens, their text and the colour of each bar; a line's title is a bar without tokens.
    rows: list[tuple[str, int | None, str, str]] = []
    for name, of_line in table.groupby("line", sort=False):
        title = str(name) if name == POOL else f"{name} budget"
        shade = colour(str(name))
        rows.append((f"<b>{label(title, 24)}</b>", None, "", shade))
        for case, tokens in zip(of_line["case"], map(int, of_line["tokens"]), strict=True):
            # Invisible signs keep the names of all bars different.
            rows.append((f"{plain(case)}{_INVISIBLE * len(rows)}", tokens, signed(tokens), shade))
    names, sizes, texts, colours = map(list, zip(*rows, strict=True))
    hover = "%{x:,} tokens<extra></extra>"
    bar = bars(sizes, texts, marker={"color": colours}, hovertemplate=hover, y=names)
    low, high = extent(table["tokens"])
    reach = max(1, high - low)
    x = {**TOKENS, "nticks": 6, "zerolinewidth": 2, "showgrid": False}
    x |= {"range": [low - 0.42 * reach if low else 0, high + 0.28 * reach]}
    y = {"autorange": "reversed", "showgrid": False}
    return spec_of([bar], max(190, 26 * len(rows) + 60), x, y, meta={"top": 6})


#: Draw the shared pool and the history budget as counted, by actual tokens, and with the buffer.
rooms = Question("What does the error do to the pool and the history?", _table, _draw)


_LINE = 0.065  # height of a line of a label, as a share of the figure's
_KINDS = {"estimate": BLUE, "chosen": ORANGE, "exact": GREEN}


def _table_speeds(
    errors: Mapping[str, float], speeds: Mapping[str, float], kinds: Mapping[str, str]
) -> pd.DataFrame:
    columns = {"kind": kinds, "error": errors, "megabytes_a_second": speeds}
    table = pd.DataFrame(columns, index=[*errors]).rename_axis("counter").reset_index()
    return table.sort_values("error", ignore_index=True)


_ARROW = {"ayref": "y", "showarrow": True, "yanchor": "middle", "arrowhead": 0}
_ARROW |= {"arrowwidth": 1, "arrowcolor": INK, "standoff": 6}


def _draw_speeds(table: pd.DataFrame) -> Spec:
    x = table["megabytes_a_second"].tolist()
    y = (100 * table["error"]).round(2).tolist()
    colours = [_KINDS[kind] for kind in table["kind"]]
    names = [plain(shortened(name, 38)) for name in table["counter"]]
    marker = {"size": 11, "color": colours, "line": {"color": INK, "width": 1}}
    hover = "<b>%{text}</b><br>%{x:,.3~g} MB a second<br>%{y:.1f} % off on average<extra></extra>"
    dots = points(x, y, text=names, cliponaxis=False, marker=marker, hovertemplate=hover)
    across, off = np.log10(x), np.array(y)
    low, high = float(across.min()), float(across.max())
    margin = max(1.0, high - low)
    left, right = low - 0.25 * margin, high + 0.1 * margin
    wide = right - left
    top = max(5.0, 1.12 * max(y))
    x_axis = {
        "type": "log",
        "range": [left, right],
        "title": "MB a second, on this machine",
        "tickformat": "~s",
        "dtick": 1,
        "showgrid": False,
    }
    y_axis = {"range": [-0.08 * top, top], "ticksuffix": " %", "title": "mean absolute error"}

    # Points whose labels would overlap share one label.
    heaps: list[list[int]] = []
    for place in np.argsort(off, kind="stable").tolist():
        for heap in heaps:
            distance = abs(across[heap[0]] - across[place]) / wide
            if distance < 0.1 and abs(off[heap[0]] - off[place]) / top < _LINE:
                heap.append(place)
                break
        else:
            heaps.append([place])
    notes = []
    is_far = across > (left + right) / 2
    for is_right in (False, True):
        side = [(float(off[heap].mean()), heap) for heap in heaps if is_far[heap[0]] == is_right]
        height = -np.inf
        for middle, heap in sorted(side):
            text = "<br>".join(
                ", ".join(names[name] for name in heap[i : i + 2]) for i in range(0, len(heap), 2)
            )
            half = _LINE * (text.count("<br>") + 1) / 2 * top
            height = max(middle, height + half)
            at = float(across[heap].min() if is_right else across[heap].max())
            arrow: Spec = {"x": at, "y": middle, "text": text, "ay": height, **_ARROW}
            if is_right:
                # Clear of the points that the label would cover.
                level = is_far & (np.abs(off - height) < 2 * _LINE * top)
                start = across[level].min(initial=at) - 0.06 * wide
                arrow |= {"ax": float(start), "axref": "x", "xanchor": "right", "align": "right"}
            else:
                arrow |= {"ax": 26, "xanchor": "left", "align": "left"}
            notes.append(arrow)
            height += half
    return spec_of([dots], 330, x_axis, y_axis, annotations=notes, meta={"top": 8})


#: Draw the speed and the error of counters.
speeds = Question("What does accuracy cost in time?", _table_speeds, _draw_speeds)
