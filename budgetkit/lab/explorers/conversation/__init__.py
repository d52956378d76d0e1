"""The conversation explorer: kept messages, cache reads and cost."""

from budgetkit.lab.explorers.conversation.explorer import ConversationExplorer

__all__ = ["ConversationExplorer"]
