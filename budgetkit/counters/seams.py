r"""Seams: places where a text may be divided so that the counts of its parts add up.

    count(text) == count(text[:seam]) + count(text[seam:])

An encoding first splits a text into pieces by a pattern, and then makes tokens of each piece by itself. With the
patterns of all shipped encodings, no piece reaches across these places, and no pattern looks across them:

- before a space that follows anything but a blank;
- between a letter or digit and a following mark of punctuation, tab or line end, except the apostrophe, for
  "don't" may be one piece, and between a letter and a digit. Letters here are those that every version of Unicode
  since 3.2 (2002) knows, in the scripts that are written most.

So a large text can be counted in parts: on several threads, with parts that are known already, and only as far as
needed. Whether a place is a seam depends only on the character before it and the one after it. So seams can be found
in any part of a text, without reading the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["LARGE", "first_seam", "is_seam", "last_seam", "next_seam", "parts", "seams_between"]

#: A longer text is counted in parts, in code points.
LARGE: Final = 65_536
# code points a part
_SHORTEST = 16_384
_LONGEST = 65_536
_LETTER = (  # Latin to Arabic, the scripts of India, Thai to Khmer, those of East Asia
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01c4\u0386\u0388-\u038a\u038e-\u03a1\u03a3-\u03ce"
    "\u0400-\u0481\u048a-\u04ce\u0531-\u0556\u0561-\u0587\u05d0-\u05ea\u0621-\u063a\u0641-\u064a\u0671-\u06d3"
    "\u0905-\u0939\u0993-\u09a8\u0a13-\u0a28\u0a93-\u0aa8\u0b13-\u0b28\u0b95\u0bae-\u0bb5\u0c12-\u0c28\u0c92-\u0ca8"
    "\u0d12-\u0d28\u0d2a-\u0d39\u0d9a-\u0db1\u0e01-\u0e30\u1000-\u1021\u10d0-\u10f0\u1208-\u1246\u1780-\u17a2"
    "\u1e00-\u1e9b\u1ea0-\u1ef9\u3041-\u3096\u30a1-\u30fa\u3400-\u4db5\u4e00-\u9fa5\uac00-\ud7a3"
)
_MARK = (
    '\\t\\n\\r !"#$%&()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~\u00ab\u00bb\u2013\u2014\u2018\u2019\u201c\u201d\u2026'
    "\u060c\u061b\u061f\u06d4\u0964\u3001\u3002\u300c\u300d\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
)
_SEAM = re.compile(rf"(?<=\S) |(?<=[0-9{_LETTER}])[{_MARK}]|(?<=[{_LETTER}])[0-9]")
_WINDOW = 32
# A part ends at a place that a few characters of the text itself single out, so that after an edit the same
# parts come again. Rare beginnings of a word, of a line and of a phrase; looked for in this order.
_RARE = "079JQZjqzЖЭЮжэюψξغظ"
_ANCHORS = (
    re.compile(rf" [{_RARE}]"),
    re.compile("[\u3001\u3002\uff0c][\u4e0d\u4ed6\u4f46\u5979\u6211\u305d\u3053\uadf8]"),
    re.compile("\n[0AEQaeq/+{]"),
)


def is_seam(text: str, place: int) -> bool:
    """Tell whether the counts of what is before and after a place add up.

    Examples
    --------
    >>> [is_seam("two words", place) for place in (2, 3, 4)]
    [False, True, False]
    """
    return place > 0 and _SEAM.match(text, place) is not None


def first_seam(text: str, place: int) -> int:
    """Return the first seam from a place on, or the end of the text.

    Examples
    --------
    >>> first_seam("three short words", 6)
    11
    """
    seam = next_seam(text, place, len(text))
    return len(text) if seam is None else seam


def next_seam(text: str, start: int, stop: int) -> int | None:
    """Return the first seam in a stretch of text, or the text's end if the stretch reaches it.

    Examples
    --------
    >>> next_seam("three short words", 6, 9), next_seam("three short words", 6, 12)
    (None, 11)
    """
    # One character more is read than may be returned, for a seam is seen by the character after it.
    match = _SEAM.search(text, max(1, start), stop + 1)
    if match:
        return match.start()
    return len(text) if stop >= len(text) else None


def last_seam(text: str, start: int, stop: int) -> int:
    """Return the last seam after `start` and before `stop`, or `start`.

    Examples
    --------
    >>> last_seam("three short words", 0, 11)
    5
    """
    width = _WINDOW
    end = stop
    while end > start:
        begin = max(start + 1, end - width)
        for place in reversed([match.start() for match in _SEAM.finditer(text, begin, end)]):
            return place
        end = begin if begin > start + 1 else start
        width = width * 4
    return start


def seams_between(text: str, start: int, stop: int) -> list[int]:
    """Return all seams between two places of a text.

    Examples
    --------
    >>> seams_between("three short words", 0, 11)
    [5]
    """
    return [match.start() for match in _SEAM.finditer(text, start + 1, stop)]


def parts(text: str) -> Iterator[str]:
    """Cut a text at seams into parts of some ten thousand characters.

    Examples
    --------
    >>> text = "So many words. " * 10_000
    >>> "".join(parts(text)) == text, max(map(len, parts(text))) <= 65_600
    (True, True)
    """
    start = 0
    while len(text) - start > 2 * _SHORTEST:
        end = _part_end(text, start)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _part_end(text: str, start: int) -> int:
    for anchor in _ANCHORS:
        for match in anchor.finditer(text, start + _SHORTEST, start + _LONGEST):
            if is_seam(text, match.start()):
                return match.start()
    return first_seam(text, start + _LONGEST)
