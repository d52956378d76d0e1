"""The explorers: settings, and a view of their controls and results.

`stage.py` and `base.py` are shared by all; the page is in `view/`. Each explorer is a `Kind`, a table of functions of
its stage, in a folder with files of the same names: `results.py` (what follows from the settings), `charts.py`,
`notices.py` (sentences, and the set-up as text), `controls.py` (the panel, and its commands) and `explorer.py`.
"""

from budgetkit.files import extra

with extra("lab", "an explorer"):
    from budgetkit.lab.explorers.budget import BudgetExplorer

__all__ = ["BudgetExplorer"]
