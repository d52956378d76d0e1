"""Figures: each asks one question, and is drawn from one table that answers it.

Call a figure for plotly's; its ``spec`` is the same as plain data, its ``table`` what it is drawn from::

    figures.waterfall(plan)          plotly.graph_objects.Figure
    figures.waterfall.spec(plan)     {"data": [...], "layout": {...}}, without importing plotly
    figures.waterfall.table(plan)    DataFrame

The figures of accuracy and replay live with them; the stub beside this file says where, and they are imported
when they are first used.
"""

# ruff: noqa: F401 (the stub names what is public)
import sys

from budgetkit import homes, lazily
from budgetkit.budget.colours import colour
from budgetkit.figures.conversations import conversations
from budgetkit.figures.errors import counter_error
from budgetkit.figures.ledger import ledger
from budgetkit.figures.question import Question
from budgetkit.figures.sections import sections
from budgetkit.figures.sweeps import sweep_line, sweep_map
from budgetkit.figures.turns import turns
from budgetkit.figures.window import waterfall, window

__all__ = sorted(_HOMES := homes(sys.modules[__name__]))
__getattr__ = lazily(sys.modules[__name__], _HOMES)
