"""Truncation of texts to a number of tokens, and the `cut` function for `budgetkit.fit`."""

from budgetkit.truncation.cutting import cutter, truncate

__all__ = ["cutter", "truncate"]
