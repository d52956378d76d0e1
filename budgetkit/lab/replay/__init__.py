"""Replays of a trace under a budget, policy and prompt cache.

- `replaying.py` has `replay`, and `outcome.py` the `Replay` that it returns.
- `prefix.py` computes the requests of a conversation and their unchanged prefixes, `cost.py` the cached tokens and the
  cost.
- `losses.py` finds the needed messages that pruning lost.
- `outlook.py` and `forecast.py` forecast later turns.
"""
