"""The conversation that runs: the messages of its next request, one-off trimming, a plan as messages."""

from budgetkit.live.conversation import Conversation
from budgetkit.live.request import Left, Request
from budgetkit.live.trimming import trim

__all__ = ["Conversation", "Left", "Request", "trim"]
