"""Folds: an explorer's collapsible panels, each computed when opened.

The content of a fold (a panel) is a list of parts: texts, lists, rows with a button, choices, figures and texts to
copy. When the settings change, the open folds are marked as outdated, and the page requests them again once the
slider rests, so that slow work never delays a slider.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import brief
from budgetkit.budget.errors import unknown_name
from budgetkit.lab.figures.question import Columns, Question, frame_of
from budgetkit.message import Data

# RuntimeError: a provider's endpoint that does not answer; ImportError: an extra that is not installed.
FORESEEN = (ValueError, TypeError, LookupError, OSError, ArithmeticError, ImportError, RuntimeError)


@dataclass(frozen=True)
class Kpi:
    """A key figure: its value in words, its change and its meaning.

    Examples
    --------
    >>> Kpi("pool", "shared pool", "-300", "Unclaimed tokens", level="alarm").drawn["label"]
    'shared pool'
    """

    key: str
    label: str
    value: str
    tip: str
    change: str = ""
    level: str = ""
    #: The short value for narrow displays, and a highlight colour.
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
    shown = table_text(frame_of(table)) if opened else None
    return figure(question.title, note, question.draw(table), shown, click)


def figure(title: str, note: str, spec: Data, table: Data | None, click: str | None = None) -> Data:
    """Return a figure as plain data.

    `click` is the command that a click sends.
    """
    return {"title": title, "note": note, "spec": spec, "table": table, "click": click}


def table_text(table: pd.DataFrame) -> Data:
    """Return a table as text, cell by cell."""
    columns = [
        {
            "name": str(name).replace("_", " "),
            "number": bool(pd.api.types.is_numeric_dtype(kind) and kind != np.bool_),
        }
        for name, kind in table.dtypes.items()
    ]
    rows = [[_cell_text(value) for value in row] for row in table.itertuples(index=False)]
    return {"columns": columns, "rows": rows}


def _cell_text(value: Any) -> str:
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
    """Return an error as the view's status.

    An unexpected error includes its location, for a bug report.
    """
    sentence = str(problem)
    if len(problem.args) == 1 and isinstance(problem.args[0], str):
        sentence = problem.args[0]  # str() of a KeyError adds quotes
    if not isinstance(problem, FORESEEN):
        place = extract_tb(problem.__traceback__)[-1]
        sentence = (
            f"budgetkit itself failed: {type(problem).__name__} in {Path(place.filename).name}, line {place.lineno}: "
            f"{brief(sentence)}. The settings are as before. Please report this message, and what you did."
        )
    text = sentence or type(problem).__name__
    return {"level": "error", "text": text, "more": [], "picks": getattr(problem, "picks", [])}


@dataclass(frozen=True)
class Fold:
    """The title of a panel, and the class that makes its content.

    `home` names the class and its module. The module is imported when the panel opens, so packages in layers above
    the explorers can add panels, too.
    """

    title: str
    home: str


class Content:
    """The content of a collapsible panel.

    Parameters
    ----------
    again : callable
        Function that shows the panel again; any thread may call it.
    """

    def __init__(self, again: Callable[[], None]) -> None:
        self._again = again

    def parts(self, stage: Any) -> list[Data]:
        """Return the parts of an open panel: sentences, tables, figures and buttons."""
        raise NotImplementedError

    def hear(self, _stage: Any, _event: Data) -> Any:
        """Handle user input, and return the changed settings or None."""
        return None


class Folds:
    """The collapsible panels of one explorer."""

    def __init__(self, folds: Mapping[str, Fold], again: Callable[[str], None]) -> None:
        self._folds = folds
        self._again = again
        self._contents: dict[str, Content] = {}
        self._parts: dict[str, list[Data]] = {}
        self._settings: Data = {}

    def shown(self, settings: Any, opened: Collection[str]) -> list[Data]:
        """Return all panels, with the parts of the open panels."""
        return [
            {
                "name": name,
                "title": fold.title,
                "open": name in opened,
                "parts": self._parts.get(name, []) if name in opened else [],
                "stale": name in opened and self._settings.get(name) is not settings,
            }
            for name, fold in self._folds.items()
        ]

    def refresh(self, stage: Any, opened: Collection[str]) -> None:
        """Recompute the open panels whose parts are outdated."""
        for name in self._folds:
            if name in opened and self._settings.get(name) is not stage.settings:
                try:
                    self._parts[name] = self._content(name).parts(stage)
                except FORESEEN as problem:
                    self._parts[name] = [text_part(refusal(problem)["text"], "error")]
                self._settings[name] = stage.settings

    def figures(self, opened: Collection[str]) -> dict[str, Data]:
        """Return the figures of the open panels for a report.

        The texts of a panel are put before the notes of its figures.
        """
        charts = {}
        for name in self._folds:
            parts = self._parts.get(name, []) if name in opened else []
            texts = [part["text"] for part in parts if part["is"] == "text"]
            for part in parts:
                if part["is"] == "figure":
                    note = " ".join([*texts, part["figure"]["note"]])
                    charts[part["name"]] = {**part["figure"], "note": note}
        return charts

    def hear(self, stage: Any, event: Data) -> Any:
        """Handle user input in a panel, and return changed settings or None."""
        name = str(event.get("fold"))
        if len(event) <= 1:  # the page asks for it again
            return None
        settings = self._content(name).hear(stage, event)
        self.forget(name)
        return settings

    def forget(self, name: str) -> None:
        """Discard a panel's parts, so that `refresh` recomputes them."""
        self._settings.pop(name, None)

    def _content(self, name: str) -> Content:
        if name not in self._folds:
            raise LookupError(unknown_name("fold", name, self._folds))
        if name not in self._contents:
            module, _, class_name = self._folds[name].home.partition(":")
            self._contents[name] = getattr(import_module(module), class_name)(
                lambda: self._again(name)
            )
        return self._contents[name]


def text_part(sentence: str, level: str = "") -> Data:
    """Return a sentence as a part of a panel."""
    return {"is": "text", "text": sentence, "level": level}


def choice(label: str, name: str, options: Mapping[str, str], value: str) -> Data:
    """Return a part for choosing a value, which is sent under `name`."""
    choices = [{"value": key, "label": text} for key, text in options.items()]
    return {"is": "choice", "label": label, "name": name, "options": choices, "value": value}


def figure_part(name: str, *parts: Any) -> Data:
    """Return a figure as a part of a panel."""
    return {"is": "figure", "name": name, "figure": figure(*parts)}


def button(label: str, tells: Data, **more: Any) -> Data:
    """Return a button as plain data.

    `more` may contain a tip, and a bar to show on hover.
    """
    return {"is": "button", "text": label, "tells": tells, **more}


def set_line(line: str, size: int) -> Data:
    """Return a button's message that resizes a reserve, section or window."""
    key = line if line == "window" else f"line_{line}"
    return {"kind": "set", "key": key, "value": f"{size:,}"}
