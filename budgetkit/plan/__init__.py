"""Who gets how much: a grant for each section, a decision for each item.

- `limits.py` asks the sections one after the other and applies each cap; `allocating.py` does so for demands in
  tokens: `allocate`.
- `fitting.py` keeps, cuts or drops whole items: `fit`. `items.py` and `selection.py` say which come first.
- `plan.py` is what comes out; `losses.py` and `why.py` put it into words.
- `sweeps.py` and `batch.py` plan many times, `findings.py` looks a budget over before any plan.
"""

from budgetkit.plan.allocating import allocate, allocate_many
from budgetkit.plan.batch import cut_share, sweep
from budgetkit.plan.decisions import Decision, Grant
from budgetkit.plan.fitting import fit
from budgetkit.plan.items import Item
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
