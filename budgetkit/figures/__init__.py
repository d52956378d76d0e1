"""Figures: each asks one question, and is drawn from one table that answers it.

Call a figure for plotly's; its ``spec`` is the same as plain data, its ``table`` what it is drawn from::

    figures.waterfall(plan)          plotly.graph_objects.Figure
    figures.waterfall.spec(plan)     {"data": [...], "layout": {...}}, without importing plotly
    figures.waterfall.table(plan)    DataFrame
"""

from budgetkit.figures.accuracy import buffers, errors_by_class, errors_by_length, language_tax
from budgetkit.figures.conversations import conversations
from budgetkit.figures.documents import agreement, document_errors, error_by_length
from budgetkit.figures.errors import counter_error
from budgetkit.figures.outlook import fan
from budgetkit.figures.palette import colour
from budgetkit.figures.question import Question
from budgetkit.figures.replays import caching, dropping, ranking, spending, timeline
from budgetkit.figures.rooms import rooms
from budgetkit.figures.sections import sections
from budgetkit.figures.speeds import speeds
from budgetkit.figures.sweeps import sweep_line, sweep_map
from budgetkit.figures.turns import turns
from budgetkit.figures.window import waterfall, window

__all__ = [
    "Question",
    "agreement",
    "buffers",
    "caching",
    "colour",
    "conversations",
    "counter_error",
    "document_errors",
    "dropping",
    "error_by_length",
    "errors_by_class",
    "errors_by_length",
    "fan",
    "language_tax",
    "ranking",
    "rooms",
    "sections",
    "speeds",
    "spending",
    "sweep_line",
    "sweep_map",
    "timeline",
    "turns",
    "waterfall",
    "window",
]
