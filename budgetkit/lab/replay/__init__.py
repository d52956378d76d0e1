"""Replays: a trace under a budget, a pruning policy and a prompt cache.

- `replaying.py` has `replay`, and `outcome.py` the `Replay` that it returns.
- `prefix.py` computes the requests of a conversation and their unchanged prefixes, `prompt_cache.py` the cached tokens,
  and `cost.py` the cost.
- `losses.py` measures lost memory; `forecast.py` and `outlook.py` forecast later turns.
"""
