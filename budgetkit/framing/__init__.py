"""What a request costs beyond its text: this is counted here, message by message.

- `tools.py` counts tool schemas, `messages.py` messages and their names, `images.py` images.
- `request_count.py` adds all of it up, as the provider bills it.
- `registry.py` and `providers.py` say which rules a model goes by.
"""

from budgetkit.framing.charges import Charge
from budgetkit.framing.images import image_price, patch_tokens, square_tokens, tile_tokens
from budgetkit.framing.messages import Framing
from budgetkit.framing.registry import DEFAULT_FRAMING, FRAMINGS, framing_for
from budgetkit.framing.request import Request
from budgetkit.framing.request_count import LedgerRow, RequestCount, count_answer, count_request
from budgetkit.framing.requests import read_request
from budgetkit.framing.tools import ToolConstants

__all__ = ["DEFAULT_FRAMING", "FRAMINGS", "Charge", "Framing", "LedgerRow", "Request", "RequestCount", "ToolConstants"]
__all__ += ["count_answer", "count_request", "framing_for", "image_price", "patch_tokens", "read_request"]
__all__ += ["square_tokens", "tile_tokens"]
