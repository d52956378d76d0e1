"""The explorers: settings on widgets, and a view that draws what follows from them. The door to widgets."""

from budgetkit.explorer.accuracy import AccuracyExplorer
from budgetkit.explorer.budget import BudgetExplorer
from budgetkit.explorer.conversation import ConversationExplorer

__all__ = ["AccuracyExplorer", "BudgetExplorer", "ConversationExplorer"]
