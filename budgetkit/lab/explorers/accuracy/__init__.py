"""The accuracy explorer: a cheap count's error and its cost to a budget."""

from budgetkit.lab.explorers.accuracy.explorer import AccuracyExplorer

__all__ = ["AccuracyExplorer"]
