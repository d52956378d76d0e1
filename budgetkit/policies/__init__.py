"""Pruning policies: what leaves a history that has grown too large, and how far down it is cut."""

from budgetkit.policies.cuts import Cut, Floor, Policy, Room, Rounds
from budgetkit.policies.pruners import (
    Chain,
    DropToolResults,
    Importance,
    OldestFirst,
    SlidingWindow,
    Step,
    Summarise,
    TriggerTarget,
)
from budgetkit.policies.registry import POLICIES, agent_framework, haystack, octopus, prompt_poet

__all__ = [
    "POLICIES",
    "Chain",
    "Cut",
    "DropToolResults",
    "Floor",
    "Importance",
    "OldestFirst",
    "Policy",
    "Room",
    "Rounds",
    "SlidingWindow",
    "Step",
    "Summarise",
    "TriggerTarget",
    "agent_framework",
    "haystack",
    "octopus",
    "prompt_poet",
]
