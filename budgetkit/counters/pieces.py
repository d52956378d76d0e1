r"""How an encoding's pattern cuts a text, with tiktoken's own tables of Unicode.

Python, its library `regex` and tiktoken each know a version of Unicode of their own. A character that only one of them
knows as a letter would be cut differently. So the installed tiktoken is asked which characters belong to `\p{L}` and
the other classes: an encoding whose pattern is just that class encodes these characters and no others. With the
classes written out, Python's `re` finds the same pieces as tiktoken, also in a million blanks in a row, where
tiktoken's own search stops with an error.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from typing import Final

__all__ = ["PLANES", "characters", "pattern", "settled"]

_CLASS = re.compile(r"\[[^]]*\\[psPS][^]]*\]|\\p\{\w+\}|\\[sS]")
#: Where letters, marks, numbers and blanks may be, and one character of the planes where none is: those that are
#: unassigned or for private use.
PLANES: Final = (range(0xD800), range(0xE000, 0x40001), range(0xE0000, 0xF0000))
_OTHER_PLANES: Final = r"\U00040001-\U000dffff\U000f0000-\U0010ffff"
_BYTES: Final = {bytes([byte]): byte for byte in range(256)}
_SLACK: Final = (
    4  # characters that a pattern may look at behind a run: a contraction, or what follows a blank
)


@cache
def characters(unicode_class: str) -> str:
    r"""Return the inside of a bracket of `re` with the characters that tiktoken counts to a class.

    >>> titles = characters(r"\p{Lt}")
    >>> re.findall(f"[{titles}]", "A \u01c5 a") == ["\u01c5"]
    True
    """
    import numpy as np
    import tiktoken

    probe = tiktoken.Encoding(
        "probe", pat_str=f"{unicode_class}+", mergeable_ranks=_BYTES, special_tokens={}
    )
    decoded = probe.decode(probe.encode(_everything(), disallowed_special=()))
    members = np.frombuffer(decoded.encode("utf-32-le"), "<u4").astype(np.int64)
    starts = members[np.diff(members, prepend=-9) != 1].tolist()
    ends = members[np.diff(members, append=-9) != 1].tolist()
    # As characters, which `re` reads in half the time that it takes for their numbers.
    ranges = "".join(
        f"{re.escape(chr(start))}-{re.escape(chr(end))}"
        for start, end in zip(starts, ends, strict=True)
    )
    if 0x40000 in ends:
        return ranges + _OTHER_PLANES
    return ranges


@cache
def _everything() -> str:
    return "".join(map(chr, chain(*PLANES)))


@cache
def pattern(written: str) -> re.Pattern[str]:
    r"""Spell out the classes of an encoding's pattern, and its end of text, so that `re` finds tiktoken's pieces.

    >>> pattern(r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+$").findall("Title 1234 (x)  ")
    ['Title', '123', '4', ' (', 'x', ')', '  ']
    """
    # A class is spelled out by what it holds, also where it is written by what it does not: `re` looks that up faster.
    return re.compile(
        _CLASS.sub(lambda match: f"[{characters(match[0])}]", written.replace("$", r"\Z"))
    )


def settled(written: str, text: str) -> int:
    r"""Return the last place where a pattern surely cuts a text, whatever follows, even nothing; 0 if there is none.

    >>> words = r"\p{L}+|\s+(?!\S)|\s"
    >>> settled(words, "two words"), settled(words, "two words and mo"), settled(words, "words")
    (4, 10, 0)
    """
    backwards = text[::-1]
    last = 0
    longest = max(
        run.match(backwards, skipped).end()  # type: ignore[union-attr]
        for run in _runs(written)
        for skipped in range(_SLACK)
    )
    for piece in pattern(written).finditer(text):
        if piece.start() >= len(text) - longest - 1 or piece.end() > len(text) - _SLACK:
            break
        # Else both would be one at a text's end.
        if not (piece[0].isspace() and text[max(0, piece.start() - 1) : piece.start()].isspace()):
            last = piece.end()
    return last


@cache
def _runs(written: str) -> tuple[re.Pattern[str], ...]:
    """Match, backwards, what a pattern may look through beyond the end of a piece: blanks, capitals before small."""
    blanks = pattern(r"\s*+")
    if r"\p{Lu}" not in written:
        return (blanks,)
    return blanks, pattern(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*+[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*+")
