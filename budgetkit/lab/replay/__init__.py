"""A conversation over its turns: a trace through a budget, a pruning policy and a prompt cache."""

from budgetkit.lab.replay.losses import evidence_shares, losses
from budgetkit.lab.replay.outlook import contexts, outlook, spent, turn_sizes
from budgetkit.lab.replay.replaying import replay
from budgetkit.lab.replay.requests import requests_of
from budgetkit.lab.replay.results import Replay, rank_policies

__all__ = [
    "Replay",
    "contexts",
    "evidence_shares",
    "losses",
    "outlook",
    "rank_policies",
    "replay",
    "requests_of",
    "spent",
    "turn_sizes",
]
