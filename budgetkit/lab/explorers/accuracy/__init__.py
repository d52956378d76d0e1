"""How wrong a cheap token count is on somebody's texts, and what that costs a budget."""

from budgetkit.files import extra

with extra("lab", "an explorer"):
    from budgetkit.lab.explorers.accuracy.explorer import AccuracyExplorer

__all__ = ["AccuracyExplorer"]
