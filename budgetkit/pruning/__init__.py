"""Pruning: removing messages from a long history.

- `policies/` decides which messages to remove; `policies/pruners.py` has one small class per policy.
- `dropping.py` carries out the policies' cuts: it drops, shrinks and summarises messages.
- `history.py` records the remaining messages.
"""

from budgetkit.pruning.dropping import StartOn
from budgetkit.pruning.history import NEVER, SHRUNK, SUMMARISED, WHOLE, History, Slots
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.pruning.policies.systems import policy_of

__all__ = ["NEVER", "SHRUNK", "SUMMARISED", "WHOLE", "History", "OldestFirst", "Policy", "Slots"]
__all__ += ["StartOn", "policy_of"]
