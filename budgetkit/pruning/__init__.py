"""Pruning: how messages leave a long history.

- `policies/` say what is to go: `policies/pruners.py` has one small class for each.
- `dropping.py` carries that out: here a message is dropped, shrunk, or put into a summary.
- `history.py` knows what is still there.
"""

from budgetkit.pruning.dropping import StartOn
from budgetkit.pruning.history import NEVER, SHRUNK, SUMMARISED, WHOLE, History, Slots
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.pruning.policies.systems import policy_of

__all__ = ["NEVER", "SHRUNK", "SUMMARISED", "WHOLE", "History", "OldestFirst", "Policy", "Slots"]
__all__ += ["StartOn", "policy_of"]
