"""The conversation explorer: kept messages, cache reads and cost."""

from budgetkit.files import extra

with extra("lab", "an explorer"):
    from budgetkit.lab.explorers.conversation.explorer import ConversationExplorer

__all__ = ["ConversationExplorer"]
