"""From looking to deciding: solve a budget backwards, tune it on conversations, put models side by side."""

from budgetkit.lab.deciding.answers import (
    AnswerReserve,
    TurnFloor,
    answer_reserve,
    turn_floor,
)
from budgetkit.lab.deciding.models import compare_models, token_prices
from budgetkit.lab.deciding.objectives import Gain
from budgetkit.lab.deciding.solving import (
    Condition,
    Solution,
    at_least,
    bill_at_most,
    cut_at_most,
    holds_turns,
    nothing_cut,
    solve,
    solve_models,
)
from budgetkit.lab.deciding.space import candidates
from budgetkit.lab.deciding.tuning import TuningResult, sensitivity, tune

__all__ = [
    "AnswerReserve",
    "Condition",
    "Gain",
    "Solution",
    "TuningResult",
    "TurnFloor",
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
    "turn_floor",
]


def __dir__() -> list[str]:
    return __all__
