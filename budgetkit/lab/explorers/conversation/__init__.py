"""The conversation explorer: what is kept of a conversation, what is read again from the cache, what it costs."""

from budgetkit.files import extra

with extra("lab", "an explorer"):
    from budgetkit.lab.explorers.conversation.explorer import ConversationExplorer

__all__ = ["ConversationExplorer"]
