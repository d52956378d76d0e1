"""Framing: what a message, a name, a tool schema, an image and a request cost beyond their text."""

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
