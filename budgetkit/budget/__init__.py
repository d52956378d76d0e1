"""Amounts and lines, and the budget that holds them: whole numbers only, no text.

- `amounts.py` has `Share`, `allocation.py` the lines, `budget.py` the budget and the allocation order.
- `validation.py` refuses lines that do not go together.
- `errors.py` and `quoting.py` word errors and warnings for all packages, `html.py` writes HTML and SVG for them.
"""

from budgetkit.budget.allocation import Allocation, Line, Reserve
from budgetkit.budget.amounts import Amount, Share
from budgetkit.budget.budget import Budget

__all__ = ["Allocation", "Amount", "Budget", "Line", "Reserve", "Share"]
