"""Running conversations, one-off trimming, and plans as messages.

- `conversation.py` has `Conversation`, `trimming.py` has `trim`, `building.py` has `build`.
- `reading.py` reads messages in any format and joins passages in one message.
- `engine.py` makes the next request, a `SentRequest` of `sent.py`, from the messages counted by `running_tally.py`. A
  policy decides which messages to drop; `pruning/dropping.py` drops them.
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
