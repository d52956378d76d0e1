"""Truncate texts to a number of tokens, also within `budgetkit.fit`."""

from budgetkit.truncation.cutting import cutter, truncate

__all__ = ["cutter", "truncate"]
