"""An estimate of an encoding's count, looked up in a table that was learned from text."""

from budgetkit.counters.estimate.estimate import EstimateCounter
from budgetkit.counters.estimate.windows import table_names

__all__ = ["EstimateCounter", "table_names"]
