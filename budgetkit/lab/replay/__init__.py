"""A conversation over its turns: a trace through a budget, a pruning policy and a prompt cache.

- `replaying.py` has `replay`, `outcome.py` the `Replay` that comes out, `requests.py` the requests of a conversation.
- `prefix.py` says how much of a request is as it was, `prompt_cache.py` what is cached, `cost.py` what it costs.
- `losses.py` and `evidence.py` ask what was forgotten, `forecast.py` and `outlook.py` what comes next.
"""

from budgetkit.lab.replay.losses import losses
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
