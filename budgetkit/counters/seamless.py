r"""Long text without a seam, counted in windows: a row of flags, a file that is one word, a million blanks.

A window is counted up to the last place where the pattern divides it, whatever comes after the window:

    window "ab cd ef"  ->  "ab cd" is settled, the next window begins with " ef"

Where nothing is settled, one piece fills the window. The window is doubled until the piece ends, and the piece is
encoded in short windows of its own. This is exact, because of one fact about byte-pair encodings:

    A row of tokens is what the encoding makes of its bytes, if each two neighbours are what it makes of theirs.

The reason: the first merge across the border of two tokens would also happen if these two stood alone. So the windows
overlap by some tokens. Where both windows have the same token at the same place, the rows are joined there; then any
two neighbours stand together in one of the two windows.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from budgetkit.counters import encodings
from budgetkit.counters.pieces import pattern, settled

__all__ = ["Read", "count_bytes", "count_piece", "count_seamless", "text_at"]

#: From an offset and a size to the bytes there, fewer at the end.
Read = Callable[[int, int], bytes]

_WINDOW: Final = 1 << 16  # bytes
_PIECE_WINDOW: Final = 1 << 12  # bytes of a piece; an encoding takes longer for each byte of a larger one
_OVERLAP: Final = 64  # tokens


def count_seamless(name: str, text: str) -> int:
    """Count a long text without a seam.

    >>> count_seamless("cl100k_base", "ab" * 200_000 + "!")
    200001
    """
    data = encodings.replace_surrogates(text).encode()
    return count_bytes(name, lambda at, size: data[at : at + size])


def count_bytes(name: str, read: Read) -> int:
    """Count the valid UTF-8 that `read` reads, from offset 0 to the end; in memory for one window or one piece.

    >>> text = ("ab" * 200_000 + "!").encode()
    >>> count_bytes("cl100k_base", lambda at, size: text[at : at + size])
    200001
    """
    tokens = 0
    at = 0
    window = _WINDOW
    while text := text_at(read, at, window):
        size = len(text.encode())
        is_last = not read(at + size, 1)
        end, count = _settled(name, text, is_last, in_pieces=window > _WINDOW)
        if end == 0:
            window *= 2  # one piece fills it
            continue
        tokens += count
        at += end
        window = _WINDOW
    return tokens


@lru_cache(maxsize=64)
def _settled(name: str, text: str, is_last: bool, in_pieces: bool) -> tuple[int, int]:
    """Return how many bytes of a window are certainly whole pieces, and their tokens."""
    # Whoever looks for a place to cut counts the same text up to many places; the windows in common are known.
    written = encodings.pattern_of(name)
    whole_pieces = text if is_last else text[: settled(written, text)]
    if in_pieces:
        pieces = pattern(written).finditer(whole_pieces)
        tokens = sum(count_piece(name, piece.group().encode()) for piece in pieces)
    else:
        tokens = encodings.counting(name)(whole_pieces)
    return len(whole_pieces.encode()), tokens


def count_piece(name: str, piece: bytes) -> int:
    """Count one piece of the pattern, in windows that overlap where it is long.

    >>> count_piece("cl100k_base", b"ab" * 200_000)
    200000
    """
    built = encodings.encoding(name)
    encode = built._core_bpe.encode_single_piece
    tokens = 0
    at = 0
    window = _PIECE_WINDOW
    overlap = _OVERLAP
    while at + window < len(piece):
        row = encode(piece[at : at + window])
        if overlap >= len(row):
            window *= 2
            overlap = _OVERLAP
            continue

        # The next window begins with the token that is `overlap` from this window's end, if both agree on it.
        next_at = at + len(built.decode_bytes(row[:-overlap]))
        next_row = encode(piece[next_at : next_at + window])
        if next_row[0] == row[-overlap]:
            tokens += len(row) - overlap
            at = next_at
            overlap = _OVERLAP
        else:
            overlap *= 2
    return tokens + len(encode(piece[at:]))


def text_at(read: Read, at: int, size: int) -> str:
    """Read whole characters from an offset on; what is no UTF-8 raises with its offset."""
    data = read(at, size)
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=len(data) < size)
    except UnicodeDecodeError as error:
        error.start += at
        raise
