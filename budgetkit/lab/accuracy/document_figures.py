"""Figures of documents: errors, tokens, and excess tokens by language.

    error = estimate / exact - 1

An undercount can make a window overflow, and an overcount wastes tokens, so undercounts and overcounts have different
colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import printable
from budgetkit.budget.html import (
    ALARM,
    BLUE,
    GREEN,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,
    ink,
)
from budgetkit.counters import counter
from budgetkit.lab.accuracy.kinds import language_of
from budgetkit.lab.figures.question import (
    TOKENS,
    Question,
    Spec,
    bars,
    label,
    note,
    plain,
    points,
    short,
    spec_of,
    table_rows,
)
from budgetkit.lab.figures.scales import INK, LETTER, width_of
from budgetkit.message import Data
from budgetkit.plan import Item, Plan

MOST = 600  # points; more would overlap
_FIRST = ("document", "class", "language", "exact", "estimate", "error", "characters", "begins")
_BEGINNING = 60  # characters
_GOLDEN = 0.6180339887498949
_SIDES = "← undercount: overflow · overcount: waste →"


def _table(
    errors: pd.DataFrame, texts: Sequence[str] = (), read: int | None = None
) -> pd.DataFrame:
    """Choose up to 600 documents to draw.

    The worst document of each class and the current document are always included.
    """
    by_class = errors["error"].abs().groupby(errors["class"])
    table = errors.assign(
        class_error=by_class.transform("mean"),
        class_documents=by_class.transform("size"),
        number=errors.index,
        begins="",
        read=errors.index == read,
    )
    if len(table) > MOST:
        always = [*({*by_class.idxmax(), read} & {*table.index})]
        others = table.drop(index=always).sample(MOST - len(always), random_state=0)
        table = pd.concat([table.loc[always], others])
    numbers = table.index[table.index < len(texts)]
    table.loc[numbers, "begins"] = [beginning(texts[number]) for number in numbers]
    first = [name for name in _FIRST if name in table]
    table = table[[*dict.fromkeys([*first, *table])]]
    return table.sort_values(
        ["class_error", "class", "error"], ascending=[False, True, True], ignore_index=True
    )


def beginning(text: str) -> str:
    r"""Return the first 60 characters of a text on one line.

    If the text is longer, an ellipsis follows.

    Examples
    --------
    >>> beginning("Dear Ann,\n\n  thank you"), len(beginning("word " * 100))
    ('Dear Ann, thank you', 61)
    """
    shown = printable(" ".join(text[: 4 * _BEGINNING].split()))
    if len(shown) <= _BEGINNING:
        return shown
    return f"{shown[:_BEGINNING]}…"


def signed_percent(share: float, digits: int = 1) -> str:
    """Format a share as a signed percentage.

    Examples
    --------
    >>> signed_percent(0.123), signed_percent(12.3), signed_percent(0.0), signed_percent(-0.2474, digits=0)
    ('+12.3 %', '+1,230 %', '0 %', '−25 %')
    """
    rounded = round(100 * share, digits)
    if not rounded:
        return "0 %"
    if abs(rounded) >= 100:
        digits = 0
    return f"{rounded:+,.{digits}f} %".replace("-", "\u2212")


def _draw_strip(table: pd.DataFrame) -> Spec:
    classes = list(dict.fromkeys(table["class"]))
    row = {name: len(classes) - 1 - place for place, name in enumerate(classes)}

    # Errors in percent; those beyond the end of the axis are drawn at its end.
    error = 100 * table["error"].to_numpy(float)
    far = min(error.max(), max(100.0, 1.5 * np.quantile(error, 0.95)))
    end = max(20.0, float(np.ceil(far / 10) * 10))
    low = min(-5.0, float(np.floor(error.min() / 10) * 10))
    x = np.minimum(error, end).round(2)
    y = table["class"].map(row) + 0.62 * (np.arange(len(table)) * _GOLDEN % 1 - 0.5)

    # The documents with tips, and a ring around the current document.
    tips = []
    for document in table_rows(table):
        name = label(document["document"] or document["source"], 44)
        begins = f"<br>\u2068{plain(document['begins'])}\u2069" if document["begins"] else ""
        tips.append(
            f"<b>{name}</b>, {plain(document['language'])}{begins}<br>{document['exact']:,} tokens; "
            f"{label(document['counter'], 44)} estimates {document['estimate']:,}: {signed_percent(document['error'])}"
        )
    mark = {
        "size": 7,
        "opacity": 0.72,
        "color": np.where(error < 0, ALARM, BLUE).tolist(),
        "symbol": np.where(error > end, "triangle-right", "circle").tolist(),
    }
    more = {"text": tips, "hovertemplate": "%{text}<extra></extra>", "cliponaxis": False}
    drawn = points(x.tolist(), y, marker=mark, customdata=table["number"].tolist(), **more)
    around = {"size": 14, "symbol": "circle-open", "color": INK, "line": {"width": 2}}
    is_read = table["read"].to_numpy(bool)
    ring = points(
        x[is_read].tolist(), y[is_read], hoverinfo="skip", marker=around, cliponaxis=False
    )

    # A class on each line, with its mean error.
    ticks = []
    notes = []
    place = {"xref": "paper", "xanchor": "left", "yref": "y"}
    for first in table_rows(table.drop_duplicates("class")):
        ticks.append(f"{label(first['class'], 20)} ({first['class_documents']:,})")
        off = f"{100 * first['class_error']:,.{int(first['class_error'] < 1)}f} % off"
        notes.append(note(off, 1, row[first["class"]], **place))
    reach = 0.03 * (end - low)
    x_axis = {"range": [low - reach, end + reach], "ticksuffix": " %", "nticks": 5}
    x_axis |= {"tickangle": 0, "zerolinewidth": 2, "title": _SIDES}
    y_axis: Spec = {"tickvals": [*row.values()], "ticktext": ticks}
    y_axis |= {"showgrid": False, "zeroline": False, "range": [-0.6, len(classes) - 0.4]}
    height = max(190, 44 * len(classes) + 70)
    more = {"annotations": notes, "meta": {"top": 6}, "margin": {"r": 72}}
    return spec_of([drawn, ring], height, x_axis, y_axis, **more)


#: Draw each document's error, class by class.
document_errors = Question("On which documents is the count wrong?", _table, _draw_strip)


CHARACTERS = "chars/4"
_CYCLE = (SKY, YELLOW, GREEN, PURPLE)
_INSIDE = {"textposition": "inside", "textangle": 0, "insidetextanchor": "start"}
_LEAST_WIDTH = 88  # letters across the figure
_ROW = 22  # pixels
_LANGUAGES = {"zh hans": "Chinese", "zh hant": "Chinese", "ja": "Japanese", "ko": "Korean"}
_LATIN, _OTHER = "Latin letters", "other scripts"
_COLOURS = {_LATIN: SKY, _OTHER: PALE, "Korean": YELLOW, "Japanese": ORANGE, "Chinese": PURPLE}


def _pieces(texts: Mapping[str, str], model: str = "gpt-5.4") -> pd.DataFrame:
    """Cut texts into a model's tokens and into groups of four characters."""
    exact: Any = counter(model)
    rough = counter(CHARACTERS)
    lines = []
    for name, text in texts.items():
        tokens = [piece.decode("utf-8", "replace") for piece in exact.pieces(text)]
        fours = [text[i : i + 4] for i in range(0, len(text), 4)]
        for way, count, parts in ((model, exact, tokens), (CHARACTERS, rough, fours)):
            lines += [(name, way, count(text), place, part) for place, part in enumerate(parts)]
    return pd.DataFrame(lines, columns=["text", "counter", "tokens", "place", "piece"])


def _draw_pieces(table: pd.DataFrame) -> Spec:
    y = -1
    start = 0.0
    widest: float = _LEAST_WIDTH
    notes = []
    data: list[Spec] = []
    for shade in _CYCLE:
        more: Data = {
            "textfont": {"color": ink(shade), "size": 12},
            "hoverinfo": "text",
            **_INSIDE,
        }
        bar = bars([], width=0.8, marker={"color": shade}, constraintext="none", **more)
        data.append(bar | {"base": [], "text": []})
    for row in table_rows(table):
        if row["place"] == 0:
            start = 0
            y += 1
            if row["counter"] != CHARACTERS:
                y += 1
                notes.append(note(f"<b>{plain(row['text'])}</b>", 0, y - 1, xanchor="left"))
            notes.append(note(f"{row['counter']}: {row['tokens']}", 0, y, xanchor="left"))
        # Blanks and line ends are shown as signs.
        text = plain(row["piece"].replace(" ", "·").replace("\n", "⏎"))
        width = width_of(text) / LETTER + 1.3
        bar = data[row["place"] % len(_CYCLE)]
        for key, value in {"x": width, "y": y, "base": 15 + start, "text": text}.items():
            bar[key].append(value)
        start += width
        widest = max(widest, 15 + start)
    across = {"range": [0, widest], "visible": False}
    down = {"range": [y + 0.6, -0.7], "visible": False}
    return spec_of(data, (y + 1) * _ROW + 70, across, down, annotations=notes, barmode="overlay")


def _say_pieces(table: pd.DataFrame) -> str:
    # The first piece of each text, by the model and by chars/4.
    first = table_rows(table[table["place"] == 0])
    return ", ".join(
        f"{exact['text']}: {exact['tokens']} tokens, not {rough['tokens']}"
        for exact, rough in zip(first[::2], first[1::2], strict=True)
    )


def _overrun(plan: Plan, exact: Sequence[Item]) -> pd.DataFrame:
    """Sum the remainder section's counted and actual tokens by language.

    Only the items that were kept are summed.
    """
    name = plan.budget.remainder
    rows = []
    for decision, item in zip(plan.decisions, exact, strict=True):
        if decision.section == name and decision.kept:
            text = item.payload.text
            last = max(map(ord, filter(str.isalpha, text)), default=0)
            group = _LANGUAGES.get(language_of(text), _LATIN if last < 0x250 else _OTHER)
            rows.append((group, 1, decision.kept, item.tokens))
    table = pd.DataFrame(rows, columns=["language", "messages", "counted", "actual"])
    sums = table.groupby("language").sum().reindex([*_COLOURS], fill_value=0)
    return sums.assign(limit=plan[str(name)].limit).reset_index()


def _draw_overrun(table: pd.DataFrame) -> Spec:
    limit = int(table["limit"][0])
    totals = table[["counted", "actual"]].sum().tolist()
    data = []
    for row in table_rows(table):
        language = row["language"]
        sizes = [row["counted"], row["actual"]]
        shade = _COLOURS[language]
        texts = [short(size) if size > 0.05 * max(totals) else "" for size in sizes]
        tips = [f"{language}: {size:,} tokens" for size in sizes]
        more = {"textfont": {"color": ink(shade)}, "hoverinfo": "text", **_INSIDE}
        bar = bars(sizes, name=language, marker={"color": shade}, text=texts, hovertext=tips)
        data.append(bar | more)
    line = {"color": VERMILLION, "width": 3}
    mark = {"type": "line", "x0": limit, "x1": limit, "y0": -0.6, "y1": 1.5, "line": line}
    notes = [note(f"budget: {limit:,}", limit, -0.6, yanchor="bottom")]
    reach = [0, 1.05 * max(*totals, limit)]
    across = {**TOKENS, "range": reach}
    names = [f"counted<br>{totals[0]:,}", f"actual<br>{totals[1]:,}"]
    down = {"range": [1.6, -0.9], "tickvals": [0, 1], "ticktext": names}
    down |= {"showgrid": False, "zeroline": False}
    more = {"barmode": "stack", "shapes": [mark], "annotations": notes, "showlegend": True}
    legend = {"orientation": "h", "y": -0.35, "traceorder": "normal"}
    return spec_of(data, 260, across, down, legend=legend, **more)


def _say_overrun(table: pd.DataFrame) -> str:
    over = table["actual"].sum() - table["limit"][0]
    if over <= 0:
        return "The actual tokens fit the budget"
    missed = table["actual"] - table["counted"]
    share = missed[table["language"].isin(_LANGUAGES.values())].sum() / max(1, missed.sum())
    return (
        f"{over:,} tokens more than the budget; Chinese, Japanese and Korean cause {100 * share:.0f} % "
        "of the undercount"
    )


#: Draw texts cut into a model's tokens and, below, into the groups of four characters that chars/4 counts.
tokens = Question("Where does a text break into tokens?", _pieces, _draw_pieces, _say_pieces)

#: Draw the counted and the actual tokens that a cheap count lets into a section, by language.
overrun = Question(
    "How many actual tokens does the cheap count let in?", _overrun, _draw_overrun, _say_overrun
)
