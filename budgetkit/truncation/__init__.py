"""Truncate texts to a number of tokens, also as the `cut` function for `budgetkit.fit`."""

from budgetkit.truncation.cutting import cutter, truncate

__all__ = ["cutter", "truncate"]
