"""What an image costs for which model: the formula of :mod:`budgetkit.framing.images` that it is seen by.

Formulas and most constants are OpenAI's and Anthropic's, read on 2026-11-21 in their documentation on images and
vision. Those of gpt-5-mini, gpt-5-nano and gpt-5.4, and the one token that patches cost beyond it, were derived from
recorded calls of public projects (requests with the provider's usage; read 2026-11-21).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from budgetkit.files import read_toml
from budgetkit.framing.charges import Charge
from budgetkit.framing.image_sizes import size_in
from budgetkit.framing.images import patch_tokens, square_tokens, tile_tokens
from budgetkit.message import Image, Message
from budgetkit.models.names import bare

__all__ = ["image_charges", "image_price", "priced", "sized"]

# What an image is taken for whose size nobody can read: so many pixels, square.
_ASSUMED_SIDE: Final = 1024
# The rules that data/framings.toml names, each with the numbers of its row.
_RULES: Final[Mapping[str, Callable[..., int]]] = {
    "tiles": tile_tokens,
    "patches": lambda width, height, _, multiplier: patch_tokens(width, height, 1536, multiplier) + 1,
    # Anthropic shrinks an image of more than about 1,568 tokens to that, as its documentation says.
    "squares": lambda width, height, _: min(1_568, square_tokens(width, height)) + 4,
    "fixed": lambda width, height, _, tokens: tokens,
}


def image_price(model: str, width: int, height: int, detail: str = "auto") -> int:
    """Price an image, in tokens; an unknown model prices it like gpt-4o.

    >>> [image_price(model, 640, 480) for model in ("gpt-4o", "gpt-4o-mini", "gpt-4.1-mini", "gpt-5-mini", "o4-mini")]
    [425, 14167, 488, 361, 517]
    """
    rows = read_toml("framings.toml")["models"]["images"]
    rule, *numbers = next(rule for pattern, *rule in rows if re.match(pattern, bare(model)))
    return _RULES[rule](width, height, detail, *numbers)


def priced(image: Image, model: str) -> int:
    """Price an image of a message, in tokens; one of unknown size is taken as a square."""
    width, height = sized(image) or (_ASSUMED_SIDE, _ASSUMED_SIDE)
    return image_price(model, width, height, image.detail)


def image_charges(message: Message, index: int, model: str) -> Iterator[Charge]:
    """Charge each image of a message."""
    for image in message.images:
        size = sized(image)
        part = f"{size[0]:,} x {size[1]:,}" if size else f"size unknown, taken as {_ASSUMED_SIDE:,} square"
        yield Charge("image", part, fixed=priced(image, model), message=index)


def sized(image: Image) -> tuple[int, int] | None:
    """Return an image's width and height, if the message or the image's bytes tell them."""
    return (image.width, image.height) if image.width and image.height else size_in(image.url)
