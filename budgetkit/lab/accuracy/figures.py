"""Figures of errors by class, of buffers, of languages and of speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.html import ALARM, BLUE, GREEN, ORANGE, POOL, SLATE, colour
from budgetkit.lab.accuracy import buffer_for
from budgetkit.lab.figures.question import (
    TOKENS,
    Question,
    Spec,
    bars,
    label,
    layout,
    line,
    plain,
    points,
    short,
    signed,
)
from budgetkit.lab.figures.scales import INK
from budgetkit.plan import allocate

_OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", SLATE)
_MOST_POINTS = 3_000


def _by_class(errors: pd.DataFrame) -> pd.DataFrame:
    sample = errors if len(errors) <= _MOST_POINTS else errors.sample(_MOST_POINTS, random_state=0)
    columns = ["counter", "class", "language", "source", "document", "characters", "exact"]
    columns += ["estimate", "error"]
    return sample[columns].sort_values(["class", "counter"], kind="stable", ignore_index=True)


def _draw_by_class(table: pd.DataFrame) -> Spec:
    boxes: list[Spec] = []
    for number, (counter, rows) in enumerate(table.groupby("counter", sort=False)):
        name = plain(str(counter))
        tips = [
            f"{plain(str(row.document) or str(row.source))}, {plain(str(row.language))}<br>"
            f"{row.exact:,} tokens, counted {row.estimate:,}"
            for row in rows.itertuples()
        ]
        boxes.append(
            {
                "type": "box",
                "name": name,
                "x": [plain(str(value)) for value in rows["class"]],
                "y": (100 * rows["error"]).round(1).tolist(),
                "text": tips,
                "hovertemplate": f"%{{text}}<br>%{{y:+.1f}} %<extra>{name}</extra>",
                "boxpoints": "all",
                "jitter": 0.5,
                "pointpos": 0,
                "marker": {
                    "size": 4,
                    "opacity": 0.55,
                    "color": _OKABE_ITO[number % len(_OKABE_ITO)],
                },
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
    drawn = layout(420, {}, y, boxmode="group", showlegend=True, legend=legend)
    return {"data": boxes, "layout": drawn}


def _buffers(
    errors: pd.DataFrame, window: int, risks: tuple[float, ...] = (0.2, 0.1, 0.05, 0.02, 0.01)
) -> pd.DataFrame:
    rows = []
    for name, group in errors.groupby("counter", sort=False):
        for risk in risks:
            buffer = buffer_for(group, window, risk)
            row = {"counter": name, "risk": risk, "buffer": buffer.share}
            row |= {"low": buffer.low, "high": buffer.high}
            rows.append(row | {"tokens": round(buffer.share * window), "warning": buffer.warning})
    return pd.DataFrame(rows)


def _draw_buffers(table: pd.DataFrame) -> Spec:
    hover = "%{y:.1f} %, %{customdata:,} tokens, at a risk of %{x} %<extra></extra>"
    lines = []
    for number, (name, rows) in enumerate(table.groupby("counter", sort=False)):
        style = {"color": _OKABE_ITO[number % len(_OKABE_ITO)]}
        buffer = rows["buffer"]
        up, down = (
            (100 * end).clip(lower=0).tolist()
            for end in (rows["high"] - buffer, buffer - rows["low"])
        )
        spread = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
        more = {"line": style, "customdata": rows["tokens"].tolist(), "hovertemplate": hover}
        x, y = 100 * rows["risk"], (100 * buffer).round(2)
        named = plain(str(name))
        lines.append(line(x, y, mode="lines+markers", name=named, error_y=spread) | more)
    risks = sorted({100 * risk for risk in table["risk"]})
    x_axis = {
        "type": "log",
        "title": "accepted chance of an overflow",
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
    drawn = layout(340, x_axis, y_axis, showlegend=len(lines) > 1, legend=legend)
    return {"data": lines, "layout": drawn}


def _tax(errors: pd.DataFrame, window: int = 128_000) -> pd.DataFrame:
    one = errors[errors["counter"] == errors["counter"].iloc[0]]
    sums = (
        one.groupby(["class", "language"], sort=False)
        .agg(characters=("characters", "sum"), exact=("exact", "sum"), documents=("exact", "size"))
        .reset_index()
    )
    sums["characters_a_token"] = sums["characters"] / sums["exact"]
    sums["characters_in_window"] = (sums["characters_a_token"] * window).round().astype(int)
    size = sums["characters_in_window"]
    english = size[sums["language"] == "en"]
    sums["of_base"] = size / (english.iloc[0] if len(english) else size.max())
    table: pd.DataFrame = sums.sort_values("characters_in_window", ignore_index=True)
    return table


def _draw_tax(table: pd.DataFrame) -> Spec:
    names = [label(str(language), 20) for language in table["language"]]
    y = [
        f"{name} ({label(str(kind), 16)}, n = {n})"
        for name, kind, n in zip(names, table["class"], table["documents"], strict=True)
    ]
    marker = {"color": [ALARM if share < 0.5 else SLATE for share in table["of_base"]]}
    hover = "%{x:,} characters<extra></extra>"
    texts = [f"{100 * share:.0f} %" for share in table["of_base"]]
    bar = bars(table["characters_in_window"], texts, hovertemplate=hover, marker=marker, y=y)
    x = {
        "title": "characters that fill the window",
        "tickformat": "~s",
        "range": [0, 1.09 * max(table["characters_in_window"])],
        "showgrid": False,
    }
    return {"data": [bar], "layout": layout(max(300, 19 * len(table) + 80), x, {"showgrid": False})}


def _say_by_class(table: pd.DataFrame) -> str:
    """Name the class with the largest median error for each counter."""
    medians = table.groupby(["counter", "class"], sort=False)["error"].median().reset_index()
    places = medians["error"].abs().groupby(medians["counter"], sort=False).idxmax()
    ends = [
        f"{row['counter']}: {100 * row['error']:+.0f} % ({row['class']})"
        for row in medians.loc[places].to_dict("records")
    ]
    return f"Largest median error of {'; '.join(ends)}".replace("-", "\u2212")


def _say_buffers(table: pd.DataFrame) -> str:
    risks = sorted(set(table["risk"]))
    risk = risks[len(risks) // 2]
    shares = [
        f"{100 * row.buffer:.1f} % for {row.counter}"
        for row in table[table["risk"] == risk].itertuples()
    ]
    return f"At a risk of {100 * risk:g} %: {', '.join(shares)}"


def _say_tax(table: pd.DataFrame) -> str:
    least, most = (
        f"{short(row['characters_in_window'])} characters ({row['language']})"
        for row in table.iloc[[0, -1]].to_dict("records")
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
buffers = Question("What buffer does a risk need?", _buffers, _draw_buffers, _say_buffers)

#: Draw how much text fills a window, by language.
language_tax = Question("How much text fills the window, by language?", _tax, _draw_tax, _say_tax)


def _table(
    budget: Budget, safe: Budget, demand: Mapping[str, int], ratios: Mapping[str, float]
) -> pd.DataFrame:
    cases = {"as counted": 1.0, **ratios}
    rows = [row for case, ratio in cases.items() for row in _rooms(budget, demand, ratio, case)]
    rows += _rooms(safe, demand, 1.0, "with the buffer")
    return pd.DataFrame(rows).sort_values(
        "line", key=lambda lines: lines != POOL, kind="stable", ignore_index=True
    )


def _rooms(
    budget: Budget, demand: Mapping[str, int], ratio: float, case: str
) -> list[dict[str, object]]:
    caps = sum(cap for cap in budget.caps.values() if cap is not None)
    rows: list[dict[str, object]] = [
        {"line": POOL, "case": case, "ratio": ratio, "tokens": round(budget.usable - ratio * caps)}
    ]
    if budget.remainder is not None:
        demands = {section: round(ratio * tokens) for section, tokens in demand.items()}
        left = allocate(replace(budget, deficit="signed"), demands).remainder
        rows.append({"line": budget.remainder, "case": case, "ratio": ratio, "tokens": left})
    return rows


def _draw(table: pd.DataFrame) -> Spec:
    names = list[str]()
    colours = list[str]()
    texts = list[str]()
    sizes = list[int | None]()
    for name, rows in table.groupby("line", sort=False):
        title = str(name) if name == POOL else f"{name} budget"
        names.append(f"<b>{label(title, 24)}</b>")
        sizes.append(None)
        texts.append("")
        colours.append(colour(str(name)))
        for case, tokens in zip(rows["case"], rows["tokens"].astype(int), strict=True):
            # Unseen, so that each bar has a row of its own.
            names.append(plain(str(case)) + "\u200b" * len(names))
            sizes.append(int(tokens))
            texts.append(signed(int(tokens)))
            colours.append(colour(str(name)))
    hover = "%{x:,} tokens<extra></extra>"
    bar = bars(sizes, texts, marker={"color": colours}, hovertemplate=hover, y=names)
    low = min(0, *table["tokens"])
    high = max(0, *table["tokens"])
    reach = max(1, high - low)
    x = {
        **TOKENS,
        "nticks": 6,
        "zerolinewidth": 2,
        "range": [low - 0.42 * reach if low else 0, high + 0.28 * reach],
        "showgrid": False,
    }
    y = {"autorange": "reversed", "showgrid": False}
    return {"data": [bar], "layout": layout(max(190, 26 * len(names) + 60), x, y, meta={"top": 6})}


#: Draw the shared pool and the history budget as counted, by actual tokens, and with the buffer.
rooms = Question("What does the error do to the pool and the history?", _table, _draw)


_LINE = 0.065  # height of a line of a label, of the figure's
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
    names = [plain(f"{name:.37}…" if len(name) > 38 else name) for name in table["counter"]]
    marker = {"size": 11, "color": colours, "line": {"color": INK, "width": 1}}
    hover = "<b>%{text}</b><br>%{x:,.3~g} MB a second<br>%{y:.1f} % off on average<extra></extra>"
    dots = points(x, y, text=names, cliponaxis=False, marker=marker, hovertemplate=hover)
    low = float(np.log10(min(x)))
    high = float(np.log10(max(x)))
    reach = [low - 0.25 * max(1.0, high - low), high + 0.1 * max(1.0, high - low)]
    top = max(5.0, 1.12 * max(y))
    x_axis = {
        "type": "log",
        "range": reach,
        "title": "MB a second, on this machine",
        "tickformat": "~s",
        "dtick": 1,
        "showgrid": False,
    }
    y_axis = {
        "range": [-0.08 * top, top],
        "ticksuffix": " %",
        "title": "mean absolute error",
    }

    # One label for each group of points, without overlaps.
    across, off = np.log10(x), np.array(y)
    # Points whose labels would lie over each other share one.
    heaps: list[list[int]] = []
    wide = reach[1] - reach[0]
    for place in np.argsort(off, kind="stable").tolist():
        for heap in heaps:
            distance = abs(across[heap[0]] - across[place]) / wide
            if distance < 0.1 and abs(off[heap[0]] - off[place]) / top < _LINE:
                heap.append(place)
                break
        else:
            heaps.append([place])
    middle = sum(reach) / 2
    notes = []
    for is_right in (False, True):
        side = [heap for heap in heaps if (across[heap[0]] > middle) == is_right]
        height = -np.inf
        for heap in sorted(side, key=lambda heap: float(off[heap].mean())):
            text = "<br>".join(
                ", ".join(names[name] for name in heap[i : i + 2]) for i in range(0, len(heap), 2)
            )
            half = _LINE * (text.count("<br>") + 1) / 2 * top
            height = max(float(off[heap].mean()), height + half)
            at = float(across[heap].min() if is_right else across[heap].max())
            level = (across > middle) & (across < at) & (np.abs(off - height) < 2 * _LINE * top)
            # Clear of the points that the label would cover.
            left = min([at, *across[level].tolist()]) - 0.06 * wide
            arrow: Spec = {"x": at, "y": float(off[heap].mean()), "text": text, "ay": height}
            if is_right:
                arrow |= {"ax": left, "axref": "x", "xanchor": "right", "align": "right"}
            else:
                arrow |= {"ax": 26, "xanchor": "left", "align": "left"}
            notes.append(arrow | _ARROW)
            height += half
    drawn = layout(330, x_axis, y_axis, annotations=notes, meta={"top": 8})
    return {"data": [dots], "layout": drawn}


#: Draw the speed and the error of counters.
speeds = Question("What does accuracy cost in time?", _table_speeds, _draw_speeds)
