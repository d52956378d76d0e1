"""Framing: what a message, a name, a tool schema, an image and a request cost beyond their text."""

from budgetkit.framing.images import patch_tokens, square_tokens, tile_tokens
from budgetkit.framing.messages import Framing
from budgetkit.framing.registry import DEFAULT_FRAMING, FRAMINGS, framing_for
from budgetkit.framing.tools import ToolConstants

__all__ = [
    "DEFAULT_FRAMING",
    "FRAMINGS",
    "Framing",
    "ToolConstants",
    "framing_for",
    "patch_tokens",
    "square_tokens",
    "tile_tokens",
]
