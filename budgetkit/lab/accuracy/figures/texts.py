"""Texts cut into tokens, and the tokens that a cheap count lets in without counting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from budgetkit.budget.html import GREEN, ORANGE, PALE, PURPLE, SKY, VERMILLION, YELLOW, ink
from budgetkit.counters import counter
from budgetkit.lab.accuracy.kinds import language_of
from budgetkit.lab.figures.question import (
    Columns,
    Question,
    Spec,
    bars,
    layout,
    note,
    plain,
    rows,
    short,
)
from budgetkit.lab.figures.svg.scales import LETTER, width_of
from budgetkit.plan import Item, Plan

CHARACTERS = "chars/4"
_CYCLE = (SKY, YELLOW, GREEN, PURPLE)
_LEAST_WIDTH = 88  # letters across the figure
_ROW = 22  # pixels
_LANGUAGES = {"zh hans": "Chinese", "zh hant": "Chinese", "ja": "Japanese", "ko": "Korean"}
_LATIN, _OTHER = "Latin letters", "other scripts"
_COLOURS = {_LATIN: SKY, _OTHER: PALE, "Korean": YELLOW, "Japanese": ORANGE, "Chinese": PURPLE}


def _pieces(texts: Mapping[str, str], model: str = "gpt-4o") -> Columns:
    """Cut each text into a model's tokens, and into fours of characters."""
    exact = counter(model)
    rough = counter(CHARACTERS)
    lines = []
    for name, text in texts.items():
        tokens = [piece.decode("utf-8", "replace") for piece in exact.pieces(text)]  # type: ignore[attr-defined]
        fours = [text[i : i + 4] for i in range(0, len(text), 4)]
        lines += [(name, model, exact(text), i, piece) for i, piece in enumerate(tokens)]
        lines += [(name, CHARACTERS, rough(text), i, piece) for i, piece in enumerate(fours)]
    names = ("text", "counter", "tokens", "place", "piece")
    return {
        name: list(column) for name, column in zip(names, zip(*lines, strict=True), strict=True)
    }


def _draw_pieces(table: Columns) -> Spec:
    y = -1
    start = widest = 0.0
    notes = []
    cells: list[list[tuple[float, float, int, str]]] = [[] for _ in _CYCLE]
    for row in rows(table):
        if row["place"] == 0:
            start = 0
            y += 1
            if row["counter"] != CHARACTERS:
                y += 1
                notes.append(note(f"<b>{plain(row['text'])}</b>", 0, y - 1, xanchor="left"))
            notes.append(note(f"{row['counter']}: {row['tokens']}", 0, y, xanchor="left"))
        # Blanks and line ends are seen, and half a character is one sign.
        shown = row["piece"].replace(" ", "·").replace("\n", "⏎")
        wide = width_of(plain(shown)) / LETTER + 1.3
        cells[row["place"] % len(_CYCLE)].append((15 + start, wide, y, plain(shown)))
        start += wide
        widest = max(widest, 15 + start)
    data = []
    for shade, marks in zip(_CYCLE, cells, strict=True):
        bar = bars([wide for _, wide, _, _ in marks], width=0.8, marker={"color": shade})
        bar |= {"base": [mark[0] for mark in marks], "y": [mark[2] for mark in marks]}
        bar |= {"text": [mark[3] for mark in marks], "textposition": "inside", "textangle": 0}
        bar |= {"insidetextanchor": "start", "constraintext": "none", "hoverinfo": "text"}
        data.append(bar | {"textfont": {"color": ink(shade), "size": 12}})
    across = {"range": [0, max(_LEAST_WIDTH, widest)], "visible": False}
    down = {"range": [y + 0.6, -0.7], "visible": False}
    drawn = layout((y + 1) * _ROW + 70, across, down, annotations=notes, barmode="overlay")
    return {"data": data, "layout": drawn}


def _say_pieces(table: Columns) -> str:
    exact, rough = (
        {
            row["text"]: row["tokens"]
            for row in rows(table)
            if (row["counter"] == CHARACTERS) is is_rough
        }
        for is_rough in (False, True)
    )
    return ", ".join(f"{name}: {exact[name]} tokens, not {rough[name]}" for name in exact)


def _overrun(plan: Plan, exact: Sequence[Item], section: str | None = None) -> Columns:
    """Sum what was counted and what it takes, by language, of the items that a section keeps."""
    name = section or plan.budget.remainder
    sums = {group: [0, 0, 0] for group in _COLOURS}
    for decision, item in zip(plan.decisions, exact, strict=True):
        if decision.section != name or not decision.kept:
            continue
        language = language_of(item.payload.text)
        if language in _LANGUAGES:
            group = _LANGUAGES[language]
        elif (
            item.payload.text.isascii()
            or max(map(ord, filter(str.isalpha, item.payload.text))) < 0x250
        ):
            group = _LATIN
        else:
            group = _OTHER
        for place, size in enumerate((1, decision.kept, item.tokens)):
            sums[group][place] += size
    columns = dict(
        zip(("messages", "counted", "actual"), zip(*sums.values(), strict=True), strict=True)
    )
    limit = plan[str(name)].limit
    return {
        "language": list(sums),
        **{k: list(v) for k, v in columns.items()},
        "limit": [limit] * len(sums),
    }


def _draw_overrun(table: Columns) -> Spec:
    limit = table["limit"][0]
    totals = [sum(table[column]) for column in ("counted", "actual")]
    data = []
    for row in rows(table):
        sizes = [row["counted"], row["actual"]]
        shade = _COLOURS[row["language"]]
        text = [short(size) if size > 0.05 * max(totals) else "" for size in sizes]
        bar = bars(sizes, name=row["language"], marker={"color": shade}, text=text)
        bar |= {"textposition": "inside", "textangle": 0, "insidetextanchor": "start"}
        bar |= {"hovertext": [f"{row['language']}: {size:,} tokens" for size in sizes]}
        data.append(bar | {"textfont": {"color": ink(shade)}, "hoverinfo": "text"})
    line = {"color": VERMILLION, "width": 3}
    mark = {"type": "line", "x0": limit, "x1": limit, "y0": -0.6, "y1": 1.5, "line": line}
    notes = [note(f"budget: {limit:,}", limit, -0.6, yanchor="bottom")]
    across = {
        "range": [0, 1.05 * max(*totals, limit)],
        "tickformat": "~s",
        "title": {"text": "tokens"},
    }
    names = [f"counted<br>{totals[0]:,}", f"actual<br>{totals[1]:,}"]
    down = {
        "range": [1.6, -0.9],
        "tickvals": [0, 1],
        "ticktext": names,
        "showgrid": False,
        "zeroline": False,
    }
    more = {"barmode": "stack", "shapes": [mark], "annotations": notes, "showlegend": True}
    legend = {"orientation": "h", "y": -0.35, "traceorder": "normal"}
    return {"data": data, "layout": layout(260, across, down, legend=legend, **more)}


def _say_overrun(table: Columns) -> str:
    over = sum(table["actual"]) - table["limit"][0]
    missed = {row["language"]: row["actual"] - row["counted"] for row in rows(table)}
    east = sum(missed[language] for language in set(_LANGUAGES.values()))
    share = east / max(1, sum(missed.values()))
    if over <= 0:
        return "The budget still holds it"
    return f"Over by {over:,} tokens; {share:.0%} of those missed are Chinese, Japanese and Korean"


#: Draw texts cut into a model's tokens, and below each the fours of characters that chars/4 takes for tokens.
tokens = Question("Where does a text break into tokens?", _pieces, _draw_pieces, _say_pieces)

#: Draw what a cheap count let into a section and what that really takes, by language.
overrun = Question("What does the cheap count let in?", _overrun, _draw_overrun, _say_overrun)
