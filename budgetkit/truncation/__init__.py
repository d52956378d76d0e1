"""Text cut to a number of tokens, marker inside, and the cut inside an item that `budgetkit.fit` can be handed."""

from budgetkit.truncation.cutting import cutter, truncate

__all__ = ["cutter", "truncate"]
