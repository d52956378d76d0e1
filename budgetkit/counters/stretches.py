"""Counts of long texts without a seam, such as a million blanks.

The text is read in windows. A window is counted up to the last place where the pattern splits it regardless of the
following text. If a single run of letters, marks or blanks fills a window, larger ones are read until its piece ends. A
piece larger than a window is encoded window by window. This is exact because of a property of byte-pair encodings:

    A sequence of tokens is the encoding of its bytes if every two adjacent tokens are the encoding of their bytes.

The reason is that the first merge across the border of two tokens would also happen in those two tokens alone. So the
windows overlap by some tokens, and are joined where both have the same token at the same place; any two adjacent tokens
are then together in one of the two windows.
"""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from budgetkit.counters import encodings
from budgetkit.counters.encodings import pattern, settled

#: Function that returns the bytes at an offset, up to a given size.
Read = Callable[[int, int], bytes]
_WINDOW: Final = 1 << 16  # bytes
_FEW: Final = 1 << 12  # bytes of a piece; an encoding takes longer for each byte of a larger one
_OVERLAP: Final = 64  # tokens


def count_seamless(name: str, text: str) -> int:
    """Count the tokens in a long text without seams, window by window.

    >>> count_seamless("cl100k_base", "ab" * 200_000 + "!")
    200001
    """
    data = encodings.replace_surrogates(text).encode()
    return count_stretch(name, lambda at, size: data[at : at + size])


def count_stretch(name: str, read: Read) -> int:
    """Count the tokens in the UTF-8 text that `read` returns.

    >>> text = ("ab" * 200_000 + "!").encode()
    >>> count_stretch("cl100k_base", lambda at, size: text[at : at + size])
    200001
    """
    at = total = 0
    while text := text_at(read, at):
        size = len(text.encode())
        cut, counted = _window(name, text, not read(at + size, 1))
        end = at + cut if cut else piece_end(encodings.pattern_of(name), read, at)
        total += counted if cut else _count_piece(name, read, at, end)
        at = end
    return total


@lru_cache(maxsize=64)
def _window(name: str, text: str, is_last: bool) -> tuple[int, int]:
    """Count the bytes and tokens of the whole pieces in a window."""
    cut = len(text) if is_last else settled(encodings.pattern_of(name), text)
    return len(text[:cut].encode()), encodings.counting_function(name)(text[:cut])


def piece_end(written: str, read: Read, at: int) -> int:
    """Return the end of the piece that starts at an offset.

    >>> text = "Hello  world".encode()
    >>> piece_end(encodings.pattern_of("o200k_base"), lambda at, size: text[at : at + size], 5)
    6
    """
    size = _WINDOW
    while not settled(written, text := text_at(read, at, size)) and read(at + size, 1):
        size *= 2
    match = pattern(written).match(text)
    assert match is not None, "every character belongs to a piece"
    return at + len(match[0].encode())


def _count_piece(name: str, read: Read, start: int, stop: int) -> int:
    """Count a piece's tokens in overlapping windows, to bound memory use."""
    at, total, window, overlap = start, 0, _FEW, _OVERLAP
    while at + window < stop:
        tokens = _tokens(name, read(at, window))
        if overlap >= len(tokens):
            window, overlap = 2 * window, _OVERLAP
            continue
        next_at = at + len(encodings.encoding(name).decode_bytes(tokens[:-overlap].tolist()))
        if _tokens(name, read(next_at, min(window, stop - next_at)))[0] == tokens[-overlap]:
            total, at, overlap = total + len(tokens) - overlap, next_at, _OVERLAP
        else:
            overlap *= 2
    return total + len(_tokens(name, read(at, stop - at)))


@lru_cache(maxsize=1_024)
def _tokens(name: str, piece: bytes) -> array[int]:
    # A search for a place to cut counts many prefixes of the same text, so the windows that they share are cached.
    return array("I", encodings.encoding(name)._core_bpe.encode_single_piece(piece))


def text_at(read: Read, at: int, size: int | None = None) -> str:
    """Read whole characters, starting at an offset.

    Invalid UTF-8 raises an error with its offset.
    """
    size = _WINDOW if size is None else size
    data = read(at, size)
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=len(data) < size)
    except UnicodeDecodeError as error:
        error.start += at
        raise
