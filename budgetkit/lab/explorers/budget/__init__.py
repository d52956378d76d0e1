"""The budget on sliders, its split drawn, and what it cuts from a conversation."""

from budgetkit.lab.explorers.budget.explorer import BudgetExplorer

__all__ = ["BudgetExplorer"]
