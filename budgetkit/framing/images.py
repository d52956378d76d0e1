"""What an image costs, in tokens, from its size in pixels: three providers' rules.

    tiles      base + tile * ceil(w / 512) * ceil(h / 512)   after fitting into 2048 x 2048 and a short side of 768
    patches    ceil(m * ceil(w / 32) * ceil(h / 32))         after shrinking to a cap on the number of patches
    28-pixel   ceil(w / 28) * ceil(h / 28)                   Anthropic's, without its caps

The constants are OpenAI's and Anthropic's, read on 2026-11-21 in their documentation on images and vision, and
compared there with a public table of measured costs (huggingface.co/datasets/JOHNISKING/image-token-cost).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, sqrt

__all__ = ["patch_tokens", "square_tokens", "tile_tokens"]


def tile_tokens(width: int, height: int, detail: str = "high", base: int = 85, tile: int = 170) -> int:
    """Price an image for OpenAI's models that see it in tiles (gpt-4o, gpt-4.1 and their like).

    Parameters
    ----------
    width, height : int
        In pixels.
    detail : str
        ``"low"`` costs the base alone; anything else is looked at in full.
    base, tile : int
        In tokens: a whole image, and each tile of 512 pixels square.

    Returns
    -------
    int
        In tokens.

    Examples
    --------
    >>> tile_tokens(1024, 1024), tile_tokens(2048, 4096), tile_tokens(512, 512), tile_tokens(4096, 4096, "low")
    (765, 1105, 255, 85)
    """
    if detail == "low":
        return base
    # Fractions, so that a side that comes out at exactly 1024 is two tiles and never three.
    scale = min(Fraction(1), Fraction(2048, max(width, height)))
    scale *= min(Fraction(1), Fraction(768) / (min(width, height) * scale))
    return base + tile * ceil(width * scale / 512) * ceil(height * scale / 512)


def patch_tokens(width: int, height: int, cap: int | None = 1536, multiplier: float = 1) -> int:
    """Price an image for OpenAI's models that see it in patches of 32 pixels square.

    Parameters
    ----------
    width, height : int
        In pixels.
    cap : int or None
        Most patches; a larger image is shrunk until it has no more. ``None`` never shrinks.
    multiplier : float
        Tokens a patch, e.g. 1.62 for gpt-4.1-mini.

    Returns
    -------
    int
        In tokens.

    Examples
    --------
    >>> patch_tokens(1800, 2400)
    1452
    >>> [patch_tokens(4032, 3024, cap, 1.2) for cap in (None, 2_500, 10_000)]
    [14364, 2942, 11868]
    """
    columns, rows = ceil(width / 32), ceil(height / 32)
    if cap is not None and columns * rows > cap:
        shrink = sqrt(cap * 32 * 32 / (width * height))
        wide, high = width * shrink / 32, height * shrink / 32
        shrink *= min(floor(wide) / wide, floor(high) / high)
        columns, rows = ceil(round(width * shrink / 32, 6)), ceil(round(height * shrink / 32, 6))
    return ceil(columns * rows * float(multiplier))  # the provider rounds floats: 300 patches at 1.62 are 487


def square_tokens(width: int, height: int, side: int = 28) -> int:
    """Price an image for Anthropic's models, before any cap a model sets.

    Parameters
    ----------
    width, height : int
        In pixels.
    side : int
        Of the square that costs one token, in pixels.

    Returns
    -------
    int
        In tokens.

    Examples
    --------
    >>> square_tokens(256, 256), square_tokens(1280, 720)
    (100, 1196)
    """
    return ceil(width / side) * ceil(height / side)
