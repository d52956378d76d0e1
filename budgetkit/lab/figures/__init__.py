"""Figures that each answer one question and are drawn from one table.

Call a question, such as `waterfall`, to get a plotly figure. The method ``spec`` returns the same figure as plain
data, and the method ``table`` returns the numbers as a frame::

    figures.waterfall(plan)          plotly.graph_objects.Figure
    figures.waterfall.spec(plan)     {"data": [...], "layout": {...}}, without importing plotly
    figures.waterfall.table(plan)    DataFrame

The figures of tables, accuracy, replay and sessions are imported on first use.
"""

from importlib import import_module
from typing import Any

from budgetkit.budget.html import colour
from budgetkit.lab.figures.question import Question
from budgetkit.lab.figures.turns import conversations, counter_error, ledger, turns
from budgetkit.lab.figures.window import sections, waterfall, window

#: The figures of other packages, by module; the stub next to this file lists them for type checkers.
_ELSEWHERE = {
    "budgetkit.lab.accuracy.figures": (
        "buffers",
        "errors_by_class",
        "language_tax",
        "rooms",
        "speeds",
    ),
    "budgetkit.lab.accuracy.document_figures": (
        "document_errors",
        "overrun",
        "tokens",
    ),
    "budgetkit.lab.figures.tables": (
        "bars",
        "frontier",
        "sweep_line",
        "sweep_map",
    ),
    "budgetkit.lab.replay.figures": (
        "caching",
        "dropping",
        "fan",
        "spending",
        "timeline",
    ),
    "budgetkit.lab.sessions.figures": (
        "cache_reads",
        "order_turns",
        "rules_compared",
        "settings_compared",
    ),
}
_MODULE_OF = {name: module for module, names in _ELSEWHERE.items() for name in names}

__all__ = [
    "Question",
    "colour",
    "conversations",
    "counter_error",
    "ledger",
    "sections",
    "turns",
    "waterfall",
    "window",
]
__all__ += [*_MODULE_OF]


def __getattr__(name: str) -> Any:
    """Import a figure from its module on first use."""
    if name not in _MODULE_OF:
        message = f"{__name__} has no {name!r}. Choose one of: {', '.join(sorted(__all__))}."
        raise AttributeError(message, name=name)
    figure = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = figure
    return figure


__dir__ = __all__.copy  # completion shows no other names
