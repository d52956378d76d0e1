"""Amounts and lines, and the budget that holds them: whole numbers only, no text.

- `amounts.py` has `Share`, `allocation.py` the lines, `budget.py` the budget, `orders.py` who is asked first.
- `validation.py` refuses lines that do not go together.
- `html.py`, `colours.py`, `quoting.py` and `notices.py` serve all rooms: how something is shown, quoted or warned of.
"""

from budgetkit.budget.allocation import Allocation, Line, Reserve
from budgetkit.budget.amounts import Amount, Share
from budgetkit.budget.budget import Budget

__all__ = ["Allocation", "Amount", "Budget", "Line", "Reserve", "Share"]
