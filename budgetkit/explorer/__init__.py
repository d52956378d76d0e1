"""The explorer: a budget on sliders, its split drawn, and what it cuts from a conversation. The door to widgets."""

from budgetkit.explorer.explorer import BudgetExplorer

__all__ = ["BudgetExplorer"]
