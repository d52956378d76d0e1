"""The explorers: settings on widgets, and a view that draws what follows from them. The door to widgets.

The files here are the stage that all share, see `base.py`; the page is in `view/`. Each explorer has a folder, with
files of the same names: `settings.py` (what is set), `commands.py` (what changes it), `results.py` (what follows),
`charts.py` and `view_state.py` (what the page draws), `controls.py` (its widgets), `texts.py` (what is taken away).
"""

from budgetkit.files import extra

with extra("lab", "an explorer"):
    from budgetkit.lab.explorers.budget import BudgetExplorer

__all__ = ["BudgetExplorer"]
