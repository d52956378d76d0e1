"""Who gets how much: a grant for each section, a decision for each item.

- `allocating.py` grants tokens to one section after the other, by limits and caps.
- `fitting.py` makes a plan: `allocate` of plain numbers, `fit` of whole items, which `items.py` orders and selects.
- `plan.py` and `decisions.py` hold the records that come out; `batch.py` plans many times: `sweep`.
- `advice.py` puts these records into words: warnings, and findings about a budget. `reasons.py` says why something
  was lost, and which changes would keep it.
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
# What the packages above use.
__all__ += ["Flags", "Floats", "Ints", "allocate_columns", "with_undeclared"]
