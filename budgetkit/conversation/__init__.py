"""The conversation that runs: the messages of its next request, one-off trimming, a plan as messages."""

from budgetkit.conversation.building import Built, build, build_async
from budgetkit.conversation.conversation import Conversation
from budgetkit.conversation.memory_tokens import MemoryTokens, memory_tokens
from budgetkit.conversation.request import Left, Request
from budgetkit.conversation.trimming import trim

__all__ = [
    "Built",
    "Conversation",
    "Left",
    "MemoryTokens",
    "Request",
    "build",
    "build_async",
    "memory_tokens",
    "trim",
]
