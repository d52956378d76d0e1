"""The conversation that runs: the messages of its next request, one-off trimming, a plan as messages.

- `conversation.py` has `Conversation`, `trimming.py` has `trim`, `building.py` has `build`.
- `engine.py` makes each next request, of what `running_tally.py` holds; `shortening.py` cuts inside messages. What
  leaves is decided by a policy and carried out in `pruning/dropping.py`.
- `assembly.py` writes a plan as messages, `listing.py` several passages as one.
- `saving.py` and `saved_settings.py` save a conversation.
"""

from budgetkit.conversation.building import Built, build, build_async
from budgetkit.conversation.conversation import Conversation
from budgetkit.conversation.reading import MemoryTokens, memory_tokens
from budgetkit.conversation.running_tally import Left, Request
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
