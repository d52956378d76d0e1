"""Running conversations, one-off trimming, and plans as messages.

- `conversation.py` has `Conversation`, `trimming.py` has `trim`, `building.py` has `build`. All three use the
  settings in `rules.py` and the code in `engine.py`, which makes the next request.
- `reading.py` reads messages in any format; `running_tally.py` counts messages and places them in sections.
- A policy decides which messages to drop, and `pruning/dropping.py` drops them. `sent.py` writes the request in the
  provider's format and counts its tokens.
- `assembly.py` converts a plan to messages; `saving.py` and `saved_settings.py` save a conversation.
"""

from budgetkit.conversation.building import Built, build, build_async
from budgetkit.conversation.conversation import Conversation
from budgetkit.conversation.reading import MemoryTokens, memory_tokens
from budgetkit.conversation.sent import Removal, Request
from budgetkit.conversation.trimming import trim

__all__ = [
    "Built",
    "Conversation",
    "MemoryTokens",
    "Removal",
    "Request",
    "build",
    "build_async",
    "memory_tokens",
    "trim",
]
