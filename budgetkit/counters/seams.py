r"""Where a text falls apart into parts whose counts add up.

    count(text) == count(text[:seam]) + count(text[seam:])

An encoding first splits a text into pieces by a pattern and then each piece by itself. No piece of any shipped
pattern reaches across these places, and none looks across them:

- before a space that follows anything but a blank;
- between a letter or digit and a following mark of punctuation, tab or line end, except the apostrophe, for
  "don't" may be one piece. Letters here are those of ASCII, Chinese, Japanese and Korean.

So a large text is counted in parts: on several threads, from memory, only as far as needed. Both characters at a
seam decide about it and nothing else does, which is what lets any stretch of a text be looked at alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["LARGE", "first_seam", "is_seam", "last_seam", "next_seam", "parts"]

#: A longer text is counted in parts, in code points.
LARGE: Final = 65_536
_SHORTEST, _LONGEST = 16_384, 65_536  # code points a part
_LETTER = "0-9A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
_MARK = '\\t\\n\\r !"#$%&()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f'
_SEAM = re.compile(rf"(?<=\S) |(?<=[{_LETTER}])[{_MARK}]")
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
    found = next_seam(text, place, len(text))
    return len(text) if found is None else found


def next_seam(text: str, start: int, stop: int) -> int | None:
    """Return the first seam in a stretch of text, or the text's end if the stretch reaches it.

    Examples
    --------
    >>> next_seam("three short words", 6, 9), next_seam("three short words", 6, 12)
    (None, 11)
    """
    # One character more is read than may be returned, for a seam is seen by the character after it.
    found = _SEAM.search(text, max(1, start), stop + 1)
    if found:
        return found.start()
    return len(text) if stop >= len(text) else None


def last_seam(text: str, start: int, stop: int) -> int:
    """Return the last seam after `start` and before `stop`, or `start`.

    Examples
    --------
    >>> last_seam("three short words", 0, 11)
    5
    """
    width, end = _WINDOW, stop
    while end > start:
        begin = max(start + 1, end - width)
        for place in reversed([found.start() for found in _SEAM.finditer(text, begin, end)]):
            return place
        end, width = begin if begin > start + 1 else start, width * 4
    return start


def parts(text: str) -> Iterator[str]:
    """Cut a text at seams into parts of some ten thousand characters.

    Examples
    --------
    >>> text = "So many words. " * 10_000
    >>> "".join(parts(text)) == text, max(map(len, parts(text))) <= 65_600
    (True, True)
    """
    start = 0
    while len(text) - start > _LONGEST:
        end = _part_end(text, start)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _part_end(text: str, start: int) -> int:
    for anchor in _ANCHORS:
        for found in anchor.finditer(text, start + _SHORTEST, start + _LONGEST):
            if is_seam(text, found.start()):
                return found.start()
    return first_seam(text, start + _LONGEST)
