"""Amount edits: what a hand moves in a budget: the amounts of its lines, and a line's next amount of the same kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Reserve
from budgetkit.budget.amounts import Amount, Share

#: Reserves that have a slider even where the budget holds none: they claim nothing until they are moved.
USUAL_RESERVES = (Reserve("output", 0, serves="output"), Reserve("safety", 0))


def amounts_of(budget: Budget, base: Budget) -> dict[str, Amount | None]:
    """Return the amount of each line, of a section that lost its cap the one it had."""
    before = {line.name: line.amount for line in base}
    now = {line.name: line.amount for line in with_reserves(budget, dict.fromkeys(usual()))}
    return {name: before.get(name) if amount is None else amount for name, amount in now.items()}


def usual() -> tuple[str, ...]:
    """Return the names of the reserves that always have a slider."""
    return tuple(reserve.name for reserve in USUAL_RESERVES)


def names(budget: Budget, moved: Mapping[str, Any]) -> set[str]:
    """Return the lines of a budget once the usual reserves that were moved are in it."""
    return {line.name for line in with_reserves(budget, moved)}


def with_reserves(budget: Budget, moved: Mapping[str, Any]) -> Budget:
    """Return the budget with those of the usual reserves that were moved and that it lacks."""
    names = {line.name for line in budget}
    new = [
        reserve for reserve in USUAL_RESERVES if reserve.name in moved and reserve.name not in names
    ]
    if not new:
        return budget
    return replace(budget, reserves=(*budget.reserves, *new))


def moved(amount: Amount | None, tokens: int, window: int, is_section: bool) -> Amount | None:
    """Return an amount of another size and the same kind.

    Examples
    --------
    >>> moved(Share(.1), 2_048, 8_192, True), moved(800, 900, 8_192, True), moved(800, 8_192, 8_192, True)
    (Share(0.25), 900, None)
    """
    if is_section and tokens >= window:
        return None
    if isinstance(amount, Share):
        if amount.at_most is None:
            highest = None
        else:
            highest = max(amount.at_most, tokens)
        return Share(shortest_ratio(tokens, window), min(amount.at_least, tokens), highest)
    return tokens


def shortest_ratio(tokens: int, window: int) -> Decimal:
    """Return the shortest decimal whose share of the window, rounded down, is so many tokens.

    Examples
    --------
    >>> shortest_ratio(819, 8_192), shortest_ratio(1_000, 128_000)
    (Decimal('0.1'), Decimal('0.00782'))
    """
    if tokens >= window:
        return Decimal(1)
    exact = Fraction(tokens, window)
    for digits in range(0, 40):
        scaled = -(-exact.numerator * 10**digits // exact.denominator)  # rounded up
        if scaled * window // 10**digits == tokens:
            return Decimal(scaled).scaleb(-digits)
    raise ArithmeticError(f"{tokens:,} of {window:,} tokens has no decimal of 40 digits")
