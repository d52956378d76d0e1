"""Requests in providers' formats: reading, writing and token bills.

`reading/` reads the messages and tools of a request in any supported format, and writes messages in a provider's
format. `billing/` counts the tokens that a provider bills for a request:

- Tool schemas are counted in `openai.py` for OpenAI, in `frames.py` for Claude, Gemini and chat templates, and in
  `estimates.py` for all other models.
- `declarations.py` counts tools as OpenAI's models of 2023 did, or by the constants of OpenAI's cookbook.
- `framing.py` has each model's framing, which is used to count messages, and each model's billing rules (`rules_for`).
- `images.py` counts the tokens of images, and `media.py` those of documents, audio and video.
- `charges.py` defines the charges that these modules return, and lists the content that no charge covers.
- `request_count.py` adds up the bill. `evidence.py` says how many recorded calls were counted exactly.
"""

from budgetkit.requests.billing.charges import Charge
from budgetkit.requests.billing.declarations import ToolConstants
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
