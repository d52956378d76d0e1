"""The conversation explorer: what is kept of a conversation, what is read again from the cache, what it costs."""

from budgetkit.explorer.conversation.explorer import ConversationExplorer

__all__ = ["ConversationExplorer"]
