"""The accuracy explorer: a cheap count's error and its cost to a budget."""

from budgetkit.files import extra

with extra("lab", "an explorer"):
    from budgetkit.lab.explorers.accuracy.explorer import AccuracyExplorer

__all__ = ["AccuracyExplorer"]
