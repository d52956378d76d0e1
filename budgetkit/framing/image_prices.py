"""What an image costs for which model: the formula of :mod:`budgetkit.framing.images` that it is seen by.

Formulas and most constants are OpenAI's and Anthropic's, read on 2026-11-21 in their documentation on images and
vision. Those of gpt-5-mini, gpt-5-nano and gpt-5.4, and the one token that patches cost beyond it, were derived from
recorded calls of public projects (requests with the provider's usage; read 2026-11-21).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from budgetkit.framing.charges import Charge
from budgetkit.framing.image_sizes import size_in
from budgetkit.framing.images import patch_tokens, square_tokens, tile_tokens
from budgetkit.framing.openai_families import bare
from budgetkit.message import Image, Message

__all__ = ["ASSUMED_SIDE", "image_charges", "image_price", "sized"]

#: What an image is taken for whose size nobody can read: so many pixels, square.
ASSUMED_SIDE: Final = 1024
_MOST_PATCHES = 1536


def _tiles(base: int, tile: int) -> Callable[[int, int, str], int]:
    return lambda width, height, detail: tile_tokens(width, height, detail, base, tile)


def _patches(multiplier: float) -> Callable[[int, int, str], int]:
    return lambda width, height, _: patch_tokens(width, height, _MOST_PATCHES, multiplier) + 1


def _squares(width: int, height: int, _: str) -> int:
    """Price Anthropic's: an image of more than about 1,568 tokens is shrunk to that, as its documentation says."""
    return min(1_568, square_tokens(width, height)) + 4


# The first pattern that a model's name begins with decides.
_PRICES: Final = (
    (r"gpt-4o-mini", _tiles(2_833, 5_667)),
    (r"gpt-4\.1-mini", _patches(1.62)),
    (r"gpt-4\.1-nano", _patches(2.46)),
    (r"gpt-5-mini|gpt-5\.([4-9]|\d\d)|gpt-[6-9]", _patches(1.2)),
    (r"gpt-5-nano", _patches(1.5)),
    (r"o4-mini", _patches(1.72)),
    (r"gpt-5", _tiles(70, 140)),
    (r"o[13]", _tiles(75, 150)),
    (r".*claude", _squares),
    (r"gemini|gemma", lambda width, height, detail: 258),
)


def image_price(model: str, width: int, height: int, detail: str = "auto") -> int:
    """Price an image, in tokens; a model that no rule is known for prices it like gpt-4o.

    >>> [image_price(model, 640, 480) for model in ("gpt-4o", "gpt-4o-mini", "gpt-4.1-mini", "gpt-5-mini", "o4-mini")]
    [425, 14167, 488, 361, 517]
    """
    price = next((price for pattern, price in _PRICES if re.match(pattern, bare(model))), _tiles(85, 170))
    return price(width, height, detail)


def image_charges(message: Message, index: int, model: str) -> Iterator[Charge]:
    """Charge each image of a message."""
    for image in message.images:
        width, height = sized(image) or (ASSUMED_SIDE, ASSUMED_SIDE)
        part = f"{width:,} x {height:,}" if sized(image) else f"size unknown, taken as {ASSUMED_SIDE:,} square"
        yield Charge("image", part, fixed=image_price(model, width, height, image.detail), message=index)


def sized(image: Image) -> tuple[int, int] | None:
    """Return an image's size where the message says it or its bytes do."""
    return (image.width, image.height) if image.width and image.height else size_in(image.url)
