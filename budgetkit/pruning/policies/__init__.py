"""Pruning policies: what leaves a history that has grown too large, and how far down it is cut."""

from budgetkit.pruning.policies.policy import Cut, Floor, Policy, PruningContext, SummaryRule
from budgetkit.pruning.policies.pruners import (
    Chain,
    DropToolResults,
    Importance,
    OldestFirst,
    SlidingWindow,
    Step,
    Summarise,
    TriggerTarget,
)
from budgetkit.pruning.policies.returning import BringBack
from budgetkit.pruning.policies.systems import (
    NAMED,
    POLICIES,
    agent_framework,
    haystack,
    octopus,
    prompt_poet,
)

__all__ = [
    "NAMED",
    "POLICIES",
    "BringBack",
    "Chain",
    "Cut",
    "DropToolResults",
    "Floor",
    "Importance",
    "OldestFirst",
    "Policy",
    "PruningContext",
    "SummaryRule",
    "SlidingWindow",
    "Step",
    "Summarise",
    "TriggerTarget",
    "agent_framework",
    "haystack",
    "octopus",
    "prompt_poet",
]
