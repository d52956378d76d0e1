"""The conversation that runs: the messages of its next request, one-off trimming, a plan as messages.

- `conversation.py` has `Conversation`, `trimming.py` has `trim`, `building.py` has `build`.
- `reading.py` reads messages in any form and lists passages in one message; `newest.py` trims without the engine.
- `engine.py` makes each next request, a `SentRequest` of `sent.py`, from the messages that `running_tally.py` counts.
  A policy decides which messages leave; `pruning/dropping.py` drops them.
- `assembly.py` writes a plan as messages; `saving.py` and `saved_settings.py` save a conversation.
"""

from budgetkit.conversation.building import Built, build, build_async
from budgetkit.conversation.conversation import Conversation
from budgetkit.conversation.reading import MemoryTokens, memory_tokens
from budgetkit.conversation.sent import Removal, Request
from budgetkit.conversation.trimming import trim

__all__ = [
    "Built",
    "Conversation",
    "Removal",
    "MemoryTokens",
    "Request",
    "build",
    "build_async",
    "memory_tokens",
    "trim",
]
