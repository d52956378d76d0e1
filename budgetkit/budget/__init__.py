"""Amounts and lines, and the budget that holds them: whole numbers only, no text."""

from budgetkit.budget.allocation import Allocation, Line, Reserve
from budgetkit.budget.amounts import Amount, Share
from budgetkit.budget.budget import Budget

__all__ = ["Allocation", "Amount", "Budget", "Line", "Reserve", "Share"]
