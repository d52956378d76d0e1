"""The conversation that runs: the messages of its next request, one-off trimming, a plan as messages."""

from budgetkit.live.building import Built, build, build_async
from budgetkit.live.conversation import Conversation
from budgetkit.live.memory_tokens import MemoryTokens, memory_tokens
from budgetkit.live.request import Left, Request
from budgetkit.live.trimming import trim

__all__ = ["Built", "Conversation", "Left", "MemoryTokens", "Request", "build", "build_async", "memory_tokens", "trim"]
