"""Requests: tokens beyond the text, counted message by message.

`reading/` reads a request of any shape into messages and tools, and writes messages in a provider's form. `billing/`
counts what was read, and is never imported by it. There:

- Tool schemas: OpenAI's in `openai.py`; Claude's, Gemini's and chat templates' in `frames.py`, in `_claude_tools` and
  its like; all others in `estimates.py`.
- `framing.py` has the framing of each model, which counts messages, and the rules of its bill (`rules_for`).
- `images.py` prices images.
- `request_count.py` adds all of it up, as the provider bills it.
"""

from budgetkit.requests.billing.declarations import Charge, ToolConstants
from budgetkit.requests.billing.framing import (
    DEFAULT_FRAMING,
    FRAMINGS,
    Framing,
    framing_for,
    framing_of,
)
from budgetkit.requests.billing.images import image_price, patch_tokens, square_tokens, tile_tokens
from budgetkit.requests.billing.request_count import (
    LedgerRow,
    RequestCount,
    count_answer,
    count_request,
)
from budgetkit.requests.reading.request import ProviderRequest, read_request
from budgetkit.requests.reading.tools import Toolset, read_tools

__all__ = [
    "DEFAULT_FRAMING",
    "FRAMINGS",
    "Charge",
    "Framing",
    "LedgerRow",
    "ProviderRequest",
    "RequestCount",
    "ToolConstants",
    "Toolset",
    "count_answer",
    "count_request",
    "framing_for",
    "framing_of",
    "image_price",
    "patch_tokens",
    "read_request",
    "read_tools",
    "square_tokens",
    "tile_tokens",
]
