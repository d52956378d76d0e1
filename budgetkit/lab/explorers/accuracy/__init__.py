"""The accuracy explorer: a cheap count's error, and the buffer against it."""

from budgetkit.lab.explorers.accuracy.explorer import AccuracyExplorer

__all__ = ["AccuracyExplorer"]
