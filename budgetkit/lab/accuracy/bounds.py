"""Bounds: the fewest and most tokens that a text can have, found without tokenising it."""

from __future__ import annotations

import re
from typing import Final, Literal

_LONGEST_TOKEN: Final = 128  # bytes, in o200k_base and in cl100k_base; a test measures it
_WORD_END: Final = re.compile(r"\S ")
# Mended to U+FFFD, it has three bytes where `replace` writes one.
_HALF: Final = re.compile("[\ud800-\udfff]")


def bounds(text: str) -> tuple[int, int]:
    """Enclose a text's count without tokenising it, for certain.

    A byte-level token has at least one byte, so tokens <= bytes of UTF-8; it has at most 128 in o200k_base and
    cl100k_base, and in both one ends before every blank that follows a word.

    Parameters
    ----------
    text : str
        Any string.

    Returns
    -------
    tuple of int
        Fewest and most tokens.

    Examples
    --------
    >>> bounds("Hello world")
    (2, 11)
    """
    size = len(text.encode("utf-8", "replace"))
    if text:
        words = sum(1 for _ in _WORD_END.finditer(text)) + 1
    else:
        words = 0
    return max(words, -(-size // _LONGEST_TOKEN)), size if text.isascii() else size + 2 * len(
        _HALF.findall(text)
    )


def certify(text: str, limit: int) -> Literal["fits", "too long", "count"]:
    """Decide without tokenising whether a text fits.

    Parameters
    ----------
    text : str
        Any string.
    limit : int
        The most tokens that it may have.

    Returns
    -------
    {"fits", "too long", "count"}
        "count" where only counting can say.

    Examples
    --------
    >>> [certify("Hello world", limit) for limit in (1, 5, 11)]
    ['too long', 'count', 'fits']
    """
    fewest, most = bounds(text)
    if most <= limit:
        return "fits"
    if fewest > limit:
        return "too long"
    return "count"
