"""Decisions about a budget: solving for a size, tuning, and comparing models."""

from budgetkit.lab.deciding.conditions import (
    Condition,
    at_least,
    bill_at_most,
    cut_at_most,
    holds_turns,
    nothing_cut,
)
from budgetkit.lab.deciding.models import compare_models, token_prices
from budgetkit.lab.deciding.objectives import Gain
from budgetkit.lab.deciding.solving import Solution, solve, solve_models
from budgetkit.lab.deciding.space import (
    AnswerReserve,
    answer_reserve,
    candidates,
)
from budgetkit.lab.deciding.tuning import TuningResult, sensitivity, tune
from budgetkit.lab.replay.losses import evidence, losses
from budgetkit.lab.replay.outcome import Replay, rank_policies
from budgetkit.lab.replay.outlook import outlook

__all__ = [
    "AnswerReserve",
    "Condition",
    "Gain",
    "Replay",
    "Solution",
    "TuningResult",
    "answer_reserve",
    "at_least",
    "bill_at_most",
    "candidates",
    "compare_models",
    "cut_at_most",
    "evidence",
    "holds_turns",
    "losses",
    "nothing_cut",
    "outlook",
    "rank_policies",
    "sensitivity",
    "solve",
    "solve_models",
    "token_prices",
    "tune",
]


__dir__ = __all__.copy  # completion shows no other names
