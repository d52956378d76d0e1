"""Token counts of images, computed from their size in pixels.

The rules are in ``data/images.toml``.

    tiles      base + tile * ceil(w / 512) * ceil(h / 512)    OpenAI's, after fitting into 2048 x 2048 and a short
                                                              side of 768
    patches    ceil(m * ceil(w / 32) * ceil(h / 32)) + 1      OpenAI's, after shrinking to a cap on the patches
    squares    ceil(w / s) * ceil(h / s) + rows + more        Anthropic's, Mistral's and Qwen's, after shrinking
    grid       floor(sqrt(T w / h)) * floor(sqrt(T h / w))    Gemini 3's, at most T tokens
    crops      258 per crop and 258 for the whole image,      Gemini 2's
               but only 258 for up to 384 pixels

Each row of the file states its models, source and date. The additional token for patches was derived from recorded
calls of public projects (read 2026-11-21).
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, sqrt
from struct import error, unpack

from budgetkit.files import read_toml
from budgetkit.message import Image, Message, Raw
from budgetkit.models import Model, model_name
from budgetkit.models.names import bare
from budgetkit.requests.billing.charges import Charge, Charges


def tile_tokens(
    width: int, height: int, detail: str = "high", base: int = 85, tile: int = 170
) -> int:
    """Return an image's tokens for OpenAI models with tiles, such as gpt-4o.

    Parameters
    ----------
    width, height : int
        Size of the image, in pixels.
    detail : str
        Level of detail; ``"low"`` costs the base alone.
    base, tile : int
        Tokens for the whole image, and for each tile of 512 x 512 pixels.

    Returns
    -------
    int
        Number of tokens.

    Examples
    --------
    >>> tile_tokens(1024, 1024), tile_tokens(2048, 4096), tile_tokens(512, 512), tile_tokens(4096, 4096, "low")
    (765, 1105, 255, 85)
    """
    if detail == "low":
        return base
    # Fractions ensure that a scaled side of exactly 1024 pixels is two tiles, not three.
    scale = min(Fraction(1), Fraction(2048, max(width, height)))
    scale *= min(Fraction(1), Fraction(768) / (min(width, height) * scale))
    return base + tile * ceil(width * scale / 512) * ceil(height * scale / 512)


def patch_tokens(
    width: int, height: int, cap: int | None = 1536, multiplier: float = 1, longest: int = 0
) -> int:
    """Return an image's tokens for OpenAI models with patches, such as gpt-5-mini.

    Parameters
    ----------
    width, height : int
        Size of the image, in pixels.
    cap : int or None
        Maximum number of patches of 32 x 32 pixels; an image with more patches is scaled down. ``None`` disables
        scaling.
    multiplier : float
        Tokens per patch, such as 1.62 for gpt-4.1-mini.
    longest : int
        Maximum length of a side, in pixels; an image with a longer side is scaled down before its patches are counted.
        0 disables scaling.

    Returns
    -------
    int
        Number of tokens.

    Examples
    --------
    >>> patch_tokens(1800, 2400)
    1452
    >>> [patch_tokens(4032, 3024, cap, 1.2) for cap in (None, 2_500, 10_000)]
    [14364, 2942, 11868]
    >>> patch_tokens(60_000, 20)
    1536
    """
    fit = min(1, longest / max(width, height)) if longest else 1
    width, height = max(1, round(width * fit)), max(1, round(height * fit))
    patches = ceil(width / 32) * ceil(height / 32)
    if cap is not None and patches > cap:
        shrink = sqrt(cap * 32 * 32 / (width * height))
        wide = width * shrink / 32
        high = height * shrink / 32
        shrink *= min(max(1, floor(side)) / side for side in (wide, high))
        patches = ceil(round(width * shrink / 32, 6)) * ceil(round(height * shrink / 32, 6))
        patches = min(cap, patches)  # a strip thinner than a patch has at least one row
    # The provider computes with floats: 300 patches times 1.62 are 487 tokens.
    return ceil(patches * float(multiplier))


@lru_cache(maxsize=1024)
def square_tokens(
    width: int, height: int, side: int = 28, cap: int = 0, longest: int = 0, row: int = 0
) -> int:
    """Return an image's tokens for models with squares, such as Anthropic's.

    Parameters
    ----------
    width, height : int
        Size of the image, in pixels.
    side : int
        Side of a square, in pixels; each square costs one token.
    cap : int
        Maximum number of squares; an image with more squares is scaled down. 0 disables scaling.
    longest : int
        Maximum length of a side, in pixels; an image with a longer side is scaled down. 0 disables scaling.
    row : int
        Additional tokens for each row of squares.

    Returns
    -------
    int
        Number of tokens.

    Examples
    --------
    >>> square_tokens(256, 256), square_tokens(1280, 720)
    (100, 1196)
    >>> square_tokens(1800, 1200, cap=1_568, longest=1_568), square_tokens(1800, 1200, cap=4_784, longest=2_576)
    (1536, 2795)
    """
    most = max(width, height)
    for edge in range(min(most, longest or most), 0, -1):
        columns = ceil(max(1, round(width * edge / most)) / side)
        rows = ceil(max(1, round(height * edge / most)) / side)
        if not cap or columns * rows <= cap:
            break
    return (columns + row) * rows


_ONE_CROP = 384  # longest side of an image that is a single crop, in pixels
_ASSUMED_SIDE = 1024  # side of the square assumed for an image of unknown size, in pixels
# sizes of images that cost least and most, in pixels
_EXTREMES = ((1, 1), (2_048, 768), (5_472, 5_472))


def image_price(model: str | Model, width: int, height: int, detail: str = "auto") -> int:
    """Return the tokens that a model bills for an image.

    For an unknown model, these are the tokens of gpt-4o.

    >>> [image_price(model, 640, 480) for model in ("gpt-4o", "gpt-4o-mini", "gpt-4.1-mini", "gpt-5-mini", "o4-mini")]
    [425, 14167, 488, 361, 517]
    """
    row = _row_of(model_name(model))
    sizes = row.get(detail, row.get("auto"))
    match row["rule"]:
        case "tiles":
            return tile_tokens(width, height, detail, row["base"], row["tile"])
        case "patches":
            cap, longest = sizes
            return patch_tokens(width, height, cap or None, row["multiplier"], longest) + 1
        case "squares":
            squares = square_tokens(width, height, row["side"], *sizes, row.get("row", 0))
            return squares + int(row.get("more", 0))
        case "grid":
            # the largest grid of the image's shape within the maximum tokens
            columns = floor(sqrt(sizes[0] * width / height))
            return max(1, columns) * max(1, floor(sqrt(sizes[0] * height / width)))
        case "crops":
            tile = int(row["base"])
            if sizes or max(width, height) <= _ONE_CROP:
                return int(sizes or tile)
            # crops whose side is two thirds of the short side, and the whole image
            side = min(768, max(256, floor(min(width, height) / 1.5)))
            return tile * (ceil(width / side) * ceil(height / side) + 1)
    return int(row["base"])


def _row_of(model: str) -> Raw:
    plain = bare(model)
    rows: list[Raw] = read_toml("images.toml")["image"]
    return next(row for row in rows if re.search(row["models"], plain))


def least_priced(image: Image, model: str) -> int:
    """Return the lowest number of tokens measured for an image.

    If the model has no measurements, or if the image's size is unknown, the documented number is returned.
    """
    size = sized(image)
    if size is None or "least" not in _row_of(model):
        return priced(image, model)
    return image_price(model, *size, "least")


def priced(image: Image, model: str) -> int:
    """Return the tokens that a model bills for an image.

    An image of unknown size is assumed to be 1024 pixels square.
    """
    width, height = sized(image) or (_ASSUMED_SIDE, _ASSUMED_SIDE)
    return image_price(model, width, height, image.detail)


def image_charges(message: Message, index: int, model: str) -> Charges:
    """Yield the charge for each image of a message."""
    for image in message.images:
        size = sized(image)
        part = f"size unknown, {_ASSUMED_SIDE:,} x {_ASSUMED_SIDE:,} assumed"
        if size:
            part = f"{size[0]:,} x {size[1]:,}"
        yield Charge("image", part, fixed=priced(image, model), message=index)


def sizes_by_price(image: Image, model: str) -> dict[int, tuple[int, int]]:
    """Return possible sizes of an image by price, in tokens.

    The sizes include the cheapest and the most expensive one.
    """
    return {image_price(model, *size, image.detail): size for size in _EXTREMES}


def at_largest(message: Message, model: str) -> Message:
    """Give each image of unknown size the most expensive size."""
    if all(map(sized, message.images)):
        return message
    parts = [*message.parts]
    for place, part in enumerate(parts):
        for image in Message({"role": "user", "content": [part]}).images:
            if sized(image) is None:
                _, (width, height) = max(sizes_by_price(image, model).items())
                size = {"width": width, "height": height}
                parts[place] = {"type": "image_url", "detail": image.detail, **size}
    return Message({**message.raw, "content": parts})


def sized(image: Image) -> tuple[int, int] | None:
    """Return an image's width and height, or None if they are unknown."""
    if image.width and image.height:
        return (image.width, image.height)
    return size_in(image.url)


_LOOKED_AT = 1_000_000  # characters; a camera's JPEG may have a preview before its size
_PNG = b"\x89PNG\r\n\x1a\n"
_GIF = (b"GIF87a", b"GIF89a")
_JPEG = b"\xff\xd8"
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # JPEG segments with the size
_BARE = {0x01, 0xFF, *range(0xD0, 0xD9)}  # JPEG markers without a length


def size_in(url: str) -> tuple[int, int] | None:
    """Read an image's width and height from its data URL.

    Return None if they cannot be read.

    >>> size_in("data:image/gif;base64,R0lGODlhAgADAAAAACw=")
    (2, 3)
    """
    if not url.startswith("data:"):
        return None
    start = url.find(",") + 1 or len(url)
    try:
        encoded = url[start : start + _LOOKED_AT].encode("ascii")
        data = a2b_base64(encoded + b"=" * (-len(encoded) % 4))
        size: tuple[int, int] | None = None
        if data.startswith(_PNG):
            size = unpack(">II", data[16:24])
        elif data.startswith(_GIF):
            size = unpack("<HH", data[6:10])
        elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            size = _webp(data)
        elif data.startswith(_JPEG):
            size = _jpeg(data)
    except (ValueError, error):  # not base64, or cut off
        return None
    return size if size and min(size) > 0 else None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Read a JPEG's size from its segments.

    Return None if no segment has the size.
    """
    at = 2
    while at + 9 <= len(data):
        marker = data[at + 1] if data[at] == 0xFF else None
        if marker in _FRAMES:
            height, width = unpack(">HH", data[at + 5 : at + 9])
            return width, height
        # No segment starts here: it is a stray byte, or padding before a marker.
        if marker in (None, 0xFF):
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    """Return a WebP image's size, or None if it cannot be read.

    The image may be lossy, lossless or extended.
    """
    kind = data[12:16]
    if len(data) < 30:
        return None
    if kind == b"VP8 ":
        width, height = unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None
