"""Drawing: a figure, its table, a key figure and an error as the plain data that the page shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget.quoting import brief
from budgetkit.lab.figures.question import Columns, Question, frame_of

Data = dict[str, Any]
# RuntimeError: a provider's endpoint that does not answer; ImportError: an extra that is not installed.
FORESEEN = (ValueError, TypeError, LookupError, OSError, ArithmeticError, ImportError, RuntimeError)


@dataclass(frozen=True)
class Kpi:
    """A key figure: its value in words, what changed, and what it means.

    Examples
    --------
    >>> Kpi("pool", "shared pool", "-300", "What no cap claims", level="alarm").drawn["label"]
    'shared pool'
    """

    key: str
    label: str
    value: str
    tip: str
    change: str = ""
    level: str = ""
    #: The value where there is little room, and the colour of one that stands out.
    short: str | None = None
    color: str | None = None

    @property
    def drawn(self) -> Data:
        """The key figure as plain data for the page."""
        return {**vars(self)}


def chart(
    question: Question[...],
    table: pd.DataFrame | Columns,
    note: str,
    opened: bool,
    click: str | None = None,
) -> Data:
    """Return one figure as the page draws it."""
    drawn: Data = {"title": question.title, "note": note, "spec": question.draw(table)}
    return {**drawn, "table": listed(frame_of(table)) if opened else None, "click": click}


def listed(table: pd.DataFrame) -> Data:
    """Return a table as text, cell by cell."""
    numbers = [
        bool(pd.api.types.is_numeric_dtype(kind) and kind != np.bool_) for kind in table.dtypes
    ]
    columns = [
        {"name": str(name).replace("_", " "), "number": number}
        for name, number in zip(table.columns, numbers, strict=True)
    ]
    rows = [[_written(value) for value in row] for row in table.itertuples(index=False)]
    return {"columns": columns, "rows": rows}


def _written(value: Any) -> str:
    if value is None or pd.isna(value):
        return ""  # not known
    if isinstance(value, bool | np.bool_):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return str(value)


def refusal(problem: Exception) -> Data:
    """Return an error as the status of the view; what nobody foresaw with its place, so that it can be reported."""
    if len(problem.args) == 1 and isinstance(problem.args[0], str):
        sentence = problem.args[0]
    else:
        sentence = str(problem)
    if not isinstance(problem, FORESEEN):
        *_, place = [
            ("?", 0),
            *((walked.filename, walked.lineno) for walked in extract_tb(problem.__traceback__)),
        ]
        sentence = (
            f"budgetkit itself failed: {type(problem).__name__} in {Path(place[0]).name}, line {place[1]}: "
            f"{brief(sentence)}; what was set before still holds; please report this sentence, and what you did"
        )
    return {"level": "error", "text": sentence or type(problem).__name__, "more": []}
