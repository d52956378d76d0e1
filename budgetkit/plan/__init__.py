"""Who gets how much: a grant for each section, a decision for each item.

- `allocating.py` grants tokens to one section after the other, by limits and caps: `allocate`.
- `fitting.py` keeps, cuts or drops whole items: `fit`. `items.py` orders and selects them.
- `plan.py` and `decisions.py` hold the records that come out; `batch.py` plans many times: `sweep`.
- Words about these records: `advice.py` (warnings), `why.py` (changes that keep a loss), `findings.py` (a budget before
  any plan).
"""

from budgetkit.plan.allocating import allocate, allocate_columns, with_undeclared
from budgetkit.plan.batch import allocate_many, cut_share, sweep
from budgetkit.plan.decisions import Decision, Grant
from budgetkit.plan.fitting import fit
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
