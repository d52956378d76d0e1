"""The explorers: settings on widgets, and a view that draws what follows from them. The door to widgets."""

from budgetkit.files import extra

with extra("lab", "an explorer"):
    from budgetkit.lab.explorers.budget import BudgetExplorer

__all__ = ["BudgetExplorer"]
