"""A conversation over its turns: a trace through a budget, a pruning policy and a prompt cache.

- `replaying.py` has `replay`, `outcome.py` the `Replay` that it returns.
- `prefix.py` lists the requests of a conversation and how much of each is as it was, `prompt_cache.py` the tokens that
  are cached, `cost.py` what they cost.
- `losses.py` lists what was forgotten, `forecast.py` and `outlook.py` what comes next.
"""
