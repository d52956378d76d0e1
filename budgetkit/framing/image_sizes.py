"""The size of an image in pixels, read from the first bytes of a PNG, JPEG, GIF or WebP in a data URL."""

from __future__ import annotations

from binascii import Error, a2b_base64
from struct import unpack

__all__ = ["size_in"]

_LOOKED_AT = 1_000_000  # characters: a camera's JPEG may hold a preview before it states its size
_PNG, _GIF, _JPEG = b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a"), b"\xff\xd8"
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # the JPEG segments that state a size
_BARE = {0x01, 0xFF, *range(0xD0, 0xD9)}  # the JPEG markers that have no length


def size_in(url: str) -> tuple[int, int] | None:
    """Return width and height of the image that a data URL holds, or None where they cannot be read.

    >>> size_in("data:image/gif;base64,R0lGODlhAgADAAAAACw=")
    (2, 3)
    """
    if not url.startswith("data:"):
        return None
    start = url.index(",") + 1 if "," in url else len(url)
    try:
        encoded = url[start : start + _LOOKED_AT].encode("ascii")
        found = _size(a2b_base64(encoded + b"=" * (-len(encoded) % 4)))
    except (Error, ValueError, IndexError):
        return None
    return found if found and min(found) > 0 else None


def _size(data: bytes) -> tuple[int, int] | None:
    if data.startswith(_PNG) and len(data) >= 24:
        return unpack(">II", data[16:24])
    if data.startswith(_GIF) and len(data) >= 10:
        return unpack("<HH", data[6:10])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data.startswith(_JPEG) else None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk from segment to segment until one states the size."""
    at = 2
    while at + 9 <= len(data):
        marker = data[at + 1] if data[at] == 0xFF else None
        if marker in _FRAMES:
            height, width = unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 1 if marker in (None, 0xFF) else 2 if marker in _BARE else 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    """Read one of WebP's three kinds: lossy, lossless, extended."""
    kind = data[12:16]
    if len(data) < 30:
        return None
    if kind == b"VP8 ":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None
