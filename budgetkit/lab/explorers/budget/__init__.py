"""The budget explorer: sliders, a drawn split, and a conversation's cuts."""

from budgetkit.lab.explorers.budget.explorer import BudgetExplorer

__all__ = ["BudgetExplorer"]
