"""What room a wrong count leaves: the shared pool and the history budget, as counted and as they are.

    pool    = usable - ratio x caps                     sections filled to their caps by the estimate
    history = its limit where the others really ask for ratio x what the estimate says

The ratio is the exact tokens for an estimated one, of a window in the middle and of one at the accepted risk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.colours import POOL, colour
from budgetkit.lab.figures.marks import bars, written
from budgetkit.lab.figures.question import Question, Spec, label, layout, plain, signed
from budgetkit.plan.allocating import allocate


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
    for line, rows in table.groupby("line", sort=False):
        title = str(line) if line == POOL else f"{line} budget"
        names.append(f"<b>{label(title, 24)}</b>")
        sizes.append(None)
        texts.append("")
        colours.append(colour(str(line)))
        for case, tokens in zip(rows["case"], rows["tokens"].astype(int), strict=True):
            # Unseen, so that each bar has a row of its own.
            names.append(plain(str(case)) + "\u200b" * len(names))
            sizes.append(int(tokens))
            texts.append(signed(int(tokens)))
            colours.append(colour(str(line)))
    bar = bars(sizes, marker={"color": colours}, hovertemplate="%{x:,} tokens<extra></extra>")
    bar = written(bar, texts) | {"y": names}
    low = min(0, *table["tokens"])
    high = max(0, *table["tokens"])
    reach = max(1, high - low)
    x = {
        "title": {"text": "tokens", "standoff": 4},
        "tickformat": "~s",
        "nticks": 6,
        "zerolinewidth": 2,
    }
    x |= {"range": [low - 0.42 * reach if low else 0, high + 0.28 * reach]}
    y = {"autorange": "reversed", "showgrid": False}
    return {"data": [bar], "layout": layout(max(190, 26 * len(names) + 60), x, y, meta={"top": 6})}


#: Draw the shared pool and the history budget as counted, as they really are, and with the buffer.
rooms = Question("What does the error do to the pool and the history?", _table, _draw)
