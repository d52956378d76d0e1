"""Budgets, their lines (reserves and sections) and amounts: whole numbers, no text.

- `amounts.py` defines `Share`, `allocation.py` the lines, and `budget.py` the budget with its allocation order.
- `validation.py` rejects contradictory lines.
- `errors.py` and `quoting.py` word errors and warnings, and `html.py` builds HTML and SVG, for all packages.
"""

from budgetkit.budget.allocation import Allocation, Line, Reserve, check_choice
from budgetkit.budget.amounts import Amount, Share, check_tokens
from budgetkit.budget.budget import Budget
from budgetkit.budget.html import block
from budgetkit.budget.quoting import (
    brief,
    many,
    one_line,
    printable,
    quoted,
    terminal_line,
    warn_caller,
)
from budgetkit.budget.validation import unknown_section

__all__ = ["Allocation", "Amount", "Budget", "Line", "Reserve", "Share"]
# Names for the packages that import this one.
__all__ += ["block", "brief", "check_choice", "check_tokens", "many", "one_line", "printable"]
__all__ += ["quoted", "terminal_line", "unknown_section", "warn_caller"]
