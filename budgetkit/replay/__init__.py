"""A conversation over its turns: a trace through a budget, a pruning policy and a prompt cache."""

from budgetkit.replay.outcome import Replay, rank_policies
from budgetkit.replay.replaying import replay
from budgetkit.replay.requests import requests_of

__all__ = ["Replay", "rank_policies", "replay", "requests_of"]
