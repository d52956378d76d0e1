"""What a count rests on, and how far it may lie from what the model's maker would count.

exact
    The maker's own public vocabulary: the number is the maker's.
reconstructed
    A vocabulary that somebody rebuilt from outside, such as Claude's by ctok: the number is the maker's on every text
    that was compared, and nobody can promise it for the next.
estimate
    Everything else: another vocabulary, times a slope that was measured, or a length over a ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

__all__ = ["Basis", "basis_of", "interval_of", "nearer_of", "nearer_sentence", "spread_of"]

Basis = Literal["exact", "reconstructed", "estimate"]


def basis_of(counter: Callable[[str], int]) -> Basis:
    """Return what a counter's numbers rest on; a counter or function that does not say is an estimate.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> basis_of(counter("gpt-4o")), basis_of(counter("chars/4")), basis_of(len)
    ('exact', 'estimate', 'estimate')
    """
    stated: Any = getattr(counter, "basis", None)
    if stated in ("exact", "reconstructed", "estimate"):
        basis: Basis = stated
        return basis
    if getattr(counter, "exact", False) is True:
        return "exact"
    return "estimate"


def spread_of(counter: Callable[[str], int]) -> tuple[float, float] | None:
    """Return how far nine in ten texts lie below and above a counter's number, as shares of it.

    Returns
    -------
    tuple of float or None
        ``(0.0, 0.0)`` for a count that is exact or reconstructed, None where nobody has measured it.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> spread_of(counter("gpt-4o")), spread_of(counter("chars/4"))
    ((0.0, 0.0), None)
    """
    if basis_of(counter) != "estimate":
        return 0.0, 0.0
    low = getattr(counter, "low", None)
    high = getattr(counter, "high", None)
    if low is None or high is None:
        return None
    return (low, high)


def interval_of(counter: Callable[[str], int], tokens: int) -> tuple[int, int] | None:
    """Return between which numbers a count of so many tokens lies, or None where nobody has measured it.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> interval_of(counter("gpt-4o"), 1_000), interval_of(counter("calibrated:gemini-2.5-pro"), 1_000)
    ((1000, 1000), (828, 1314))
    """
    spread = spread_of(counter)
    if spread is None:
        return None
    below, above = spread
    return max(0, round(tokens * (1 + below))), round(tokens * (1 + above))


def nearer_of(counter: Callable[[str], int]) -> str:
    """Return the one line that says how a count of this model would come nearer; empty where nothing would.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> nearer_of(counter("gpt-4o"))
    ''
    """
    return str(getattr(counter, "nearer", ""))


def nearer_sentence(source: object) -> str:
    """Return the sentence that says how a counter, or the count of a request, would come nearer; empty for none.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> nearer_sentence(counter("gpt-4o"))
    ''
    """
    nearer = str(getattr(source, "nearer", ""))
    return f"It could be {nearer}." if nearer else ""
