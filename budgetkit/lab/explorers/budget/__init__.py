"""The budget explorer: sliders, window bar and cuts of a conversation."""

from budgetkit.lab.explorers.budget.explorer import BudgetExplorer

__all__ = ["BudgetExplorer"]
