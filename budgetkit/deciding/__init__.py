"""From looking to deciding: solve a budget backwards, tune it on conversations, put models side by side."""

from budgetkit.deciding.conditions import Condition, cut_at_most, holds_turns, nothing_cut, sent_at_most
from budgetkit.deciding.models import answer_lengths, compare_models
from budgetkit.deciding.prices import token_prices
from budgetkit.deciding.sensitivity import sensitivity
from budgetkit.deciding.solving import Solution, solve
from budgetkit.deciding.tuned import Tuned
from budgetkit.deciding.tuning import tune

__all__ = [
    "Condition",
    "Solution",
    "Tuned",
    "answer_lengths",
    "compare_models",
    "cut_at_most",
    "holds_turns",
    "nothing_cut",
    "sensitivity",
    "sent_at_most",
    "solve",
    "token_prices",
    "tune",
]
