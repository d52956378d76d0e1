"""The budget explorer: sliders, the split as a bar, and a conversation's cuts."""

from budgetkit.lab.explorers.budget.explorer import BudgetExplorer

__all__ = ["BudgetExplorer"]
