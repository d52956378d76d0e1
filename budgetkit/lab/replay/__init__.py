"""Replays of a trace under a budget, policy and prompt cache.

- `replaying.py` has `replay`, and `outcome.py` the `Replay` that it returns, and the memory that it lost.
- `prefix.py` computes the requests of a conversation and their unchanged prefixes, `cost.py` the cached tokens and the
  cost.
- `outlook.py` forecasts later turns.
"""
