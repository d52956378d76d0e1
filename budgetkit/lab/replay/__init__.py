"""A conversation over its turns: a trace through a budget, a pruning policy and a prompt cache.

- `replaying.py` has `replay`, `outcome.py` the `Replay` that it returns.
- `prefix.py` lists the requests of a conversation and how much of each is as it was, `prompt_cache.py` the tokens that
  are cached, `cost.py` what they cost.
- `losses.py` lists what was forgotten, `forecast.py` and `outlook.py` what comes next.
"""

from budgetkit.lab.replay.cost import Prices, prices, prices_of
from budgetkit.lab.replay.losses import evidence, losses
from budgetkit.lab.replay.outcome import Replay, rank_policies
from budgetkit.lab.replay.outlook import contexts, outlook, spent, turn_sizes
from budgetkit.lab.replay.prefix import requests_of
from budgetkit.lab.replay.replaying import replay

__all__ = [
    "Replay",
    "contexts",
    "losses",
    "outlook",
    "rank_policies",
    "replay",
    "requests_of",
    "spent",
    "turn_sizes",
]
__all__ += ["Prices", "evidence", "prices", "prices_of"]
