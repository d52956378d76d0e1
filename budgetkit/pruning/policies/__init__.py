"""Pruning policies, which choose the messages to drop from a history."""

from budgetkit.pruning.policies.policy import (
    Compaction,
    Cut,
    Floor,
    Policy,
    PruningContext,
    SummaryCall,
    SummaryRule,
)
from budgetkit.pruning.policies.pruners import (
    CapResults,
    Chain,
    ClearResults,
    Compact,
    DropToolResults,
    Importance,
    OldestFirst,
    SlidingWindow,
    Step,
    Summarise,
    Trigger,
    TriggerTarget,
)
from budgetkit.pruning.policies.systems import (
    NAMED,
    SYSTEMS,
    System,
    system,
)

__all__ = [
    "NAMED",
    "SYSTEMS",
    "CapResults",
    "Chain",
    "ClearResults",
    "Compact",
    "Compaction",
    "Cut",
    "DropToolResults",
    "Floor",
    "Importance",
    "OldestFirst",
    "Policy",
    "PruningContext",
    "SlidingWindow",
    "Step",
    "Summarise",
    "SummaryCall",
    "SummaryRule",
    "System",
    "Trigger",
    "TriggerTarget",
    "system",
]


__dir__ = __all__.copy  # completion shows no other names
