"""Explorers: interactive pages about budgets, conversations and counters.

The settings, the library and all results of an explorer are in its stage. The `Kind` of an explorer (`base.py`) is a
table of functions of the stage. `base.py` also applies commands to the settings and sends the state of the page, which
the scripts in `view/` draw.

=============== ============================================================================
in each folder
=============== ============================================================================
`settings.py`   the settings as one value (in `results.py` for accuracy)
`results.py`    everything that follows from the settings
`charts.py`     key figures, bar and figures
`notices.py`    sentences, and the set-up as text
`controls.py`   the controls, and the commands that they send (in `explorer.py` for accuracy)
`folds.py`      the explorer's own panels (in `why.py` for budget; accuracy has none)
`explorer.py`   the class and its reading panel
=============== ============================================================================
"""

from budgetkit.files import extra

with extra("lab", "an explorer"):
    from budgetkit.lab.explorers.budget import BudgetExplorer

__all__ = ["BudgetExplorer"]
