"""Replays of a trace under a budget, policy and prompt cache.

- `replaying.py` has the function `replay`, and `outcome.py` has its result, `Replay`.
- `prefix.py` lists the requests of a conversation and finds the prefixes that they share.
- `prompt_cache.py` computes the cached tokens of each request, and `cost.py` computes the cost of each request.
- `losses.py` finds the needed messages that pruning removed.
- `forecast.py` and `outlook.py` forecast later turns.
- `figures.py` draws replays and forecasts.
"""
