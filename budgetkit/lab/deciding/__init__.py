"""Decide on a budget: solve it backwards, tune it on conversations, compare models."""

from budgetkit.lab.deciding.answers import (
    AnswerReserve,
    answer_reserve,
)
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
from budgetkit.lab.deciding.space import candidates
from budgetkit.lab.deciding.tuning import TuningResult, sensitivity, tune

__all__ = [
    "AnswerReserve",
    "Condition",
    "Gain",
    "Solution",
    "TuningResult",
    "answer_reserve",
    "at_least",
    "bill_at_most",
    "candidates",
    "compare_models",
    "cut_at_most",
    "holds_turns",
    "nothing_cut",
    "sensitivity",
    "solve",
    "solve_models",
    "token_prices",
    "tune",
]


def __dir__() -> list[str]:
    return __all__
