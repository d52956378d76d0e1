"""Plans: a grant for each section and a decision for each item.

- `allocating.py` grants tokens to the sections in allocation order, within their limits and caps.
- `fitting.py` makes plans: `allocate` plans plain numbers, and `fit` plans whole items. `items.py` orders and selects
  the items.
- `plan.py` and `decisions.py` hold the results; `batch.py` plans many requests or budgets at once, as in `sweep`.
- `advice.py` words warnings and findings about a budget. `reasons.py` explains losses, and the changes that would
  prevent them.
"""

from budgetkit.plan.allocating import allocate_columns, with_undeclared
from budgetkit.plan.batch import allocate_many, cut_share, sweep
from budgetkit.plan.decisions import Decision, Grant
from budgetkit.plan.fitting import allocate, fit
from budgetkit.plan.items import Flags, Floats, Ints, Item
from budgetkit.plan.plan import Plan

__all__ = [
    "Decision",
    "Grant",
    "Item",
    "Plan",
    "allocate",
    "allocate_many",
    "cut_share",
    "fit",
    "sweep",
]
# Names for the packages that import this one.
__all__ += ["Flags", "Floats", "Ints", "allocate_columns", "with_undeclared"]
