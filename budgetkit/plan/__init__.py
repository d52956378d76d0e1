"""What a budget makes of a demand: a grant for each section, a decision for each item."""

from budgetkit.plan.decisions import Decision
from budgetkit.plan.fitting import fit
from budgetkit.plan.grant import Grant
from budgetkit.plan.item import Item
from budgetkit.plan.plan import Plan
from budgetkit.plan.sweeps import cut_share, sweep
from budgetkit.plan.walk import allocate, allocate_many

__all__ = ["Decision", "Grant", "Item", "Plan", "allocate", "allocate_many", "cut_share", "fit", "sweep"]
