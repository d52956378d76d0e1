"""What a request is billed for: its messages, tools, schemas, images and all that nobody sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from budgetkit.budget.colours import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, SLATE
from budgetkit.lab.figures.marks import bars, note, written
from budgetkit.lab.figures.question import Question, Spec, label, layout, plain, rows, signed

if TYPE_CHECKING:
    from typing import Protocol

    class Counted(Protocol):
        """What `budgetkit.count_request` returns."""

        def frame(self) -> pd.DataFrame:
            """Return the ledger as a table."""
            ...


ROW = 34  # pixels for a bar
_COLOURS = {"message": PURPLE, "image": SKY, "tools": ORANGE}
_COLOURS |= {"answer schema": GREEN, "hidden prompt": BLUE, "framing": GREY}


def _table(counted: Counted) -> pd.DataFrame:
    """Sum up the ledger by message, and by part where a part belongs to none."""
    ledger = counted.frame()
    part = ledger["part"].where(
        ledger["message"].isna(), ledger.groupby("message")["part"].transform("first")
    )
    place = ledger["message"].astype("Int64").astype("string").fillna("")
    keys = ["kind", "part", "place"]
    table = (
        ledger.assign(part=part, place=place)
        .groupby(keys, sort=False)["tokens"]
        .sum()
        .reset_index()
    )
    return table.assign(share=(100 * table["tokens"] / max(1, int(table["tokens"].sum()))).round(1))


def _draw(table: pd.DataFrame) -> Spec:
    named = [_named(row) for row in rows(table)]
    tokens = table["tokens"].tolist()
    texts = [
        f"<b>{label(name, 28)}</b>  {signed(size)}"
        for name, size in zip(named, tokens, strict=True)
    ]
    hover = [f"{plain(name)}: {size:,} tokens" for name, size in zip(named, tokens, strict=True)]
    marker = {"color": [_COLOURS.get(kind, SLATE) for kind in table["kind"]]}
    bar = written(bars(tokens, customdata=table["kind"].tolist(), marker=marker), texts)
    bar |= {"hovertext": hover, "hoverinfo": "text"}
    low = min([0, *tokens])
    high = max([1, *tokens])
    x = {"range": [low * 1.1, low + (high - low) * 1.75], "tickformat": "~s", "nticks": 6}
    y = {"range": [len(table) - 0.4, -0.6], "visible": False}
    place = {"xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "bottom"}
    notes = [note(f"{sum(tokens):,} tokens in all", 1, 1, **place)]
    return {
        "data": [bar],
        "layout": layout(len(table) * ROW + 80, x, y, annotations=notes, meta={"top": 20}),
    }


def _named(row: dict[str, Any]) -> str:
    """Name a bar: a message by its place and role, all else by kind and part."""
    if row["kind"] == "message":
        return f"{row['place']} {row['part']}"
    where = f" in {row['place']}" if row["place"] else ""
    return f"{row['kind']}{where}{': ' if row['part'] else ''}{row['part']}"


#: Draw the ledger of a counted request, a bar for every message, tool, schema, image and hidden prompt.
ledger = Question("What is this request billed for?", _table, _draw)
