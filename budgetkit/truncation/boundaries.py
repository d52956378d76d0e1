"""Where a text may be cut: between characters as a reader sees them, between lines, between sentences.

A reader's character is a grapheme cluster: a letter with its accents, a flag, a family of emoji joined by
invisible joiners. Lines and sentences begin and end between such characters too. Each function looks at the
text around one place only, so that finding a cut in a large text costs no more than in a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal

import regex

__all__ = ["ENDS", "STARTS", "By", "character_end", "character_start"]

By = Literal["token", "line", "sentence"]

# Before a character of these scripts a cluster ends, whatever stands there, unless the two of them alone form
# one. After a letter or digit likewise. Other scripts (Devanagari) join letters over several characters.
_FREE = r"\x00-\x7f\p{Latin}\p{Greek}\p{Cyrillic}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Arabic}\p{Hebrew}\p{Thai}"
_BEFORE = regex.compile(rf"[{_FREE}]")
_AFTER = regex.compile(r"[\x00-\x7f\p{L}\p{N}]")
_NEAREST = regex.compile(rf"(?r)[{_FREE}\p{{L}}\p{{N}}]")
_CLUSTER = regex.compile(r"\X")
_TRIES = 64

_CLOSING = "[\"'”’»」』)\\]]*"
_SENTENCE_END = regex.compile(rf"(?r)(?:[.!?…]{_CLOSING}(?=\s)|[。！？]{_CLOSING}|(?<=\S)(?=\n))")
_SENTENCE_START = regex.compile(rf"(?:[.!?…]{_CLOSING}\s+|[。！？]{_CLOSING}\s*|\n\s*)")
_LOOK_BACK = 8


def character_end(text: str, place: int) -> int:
    r"""Return the last place up to the given one at which no character is split.

    Examples
    --------
    >>> character_end("cafe\u0301", 4), character_end("cafe\u0301", 5)
    (3, 5)
    """
    if place <= 0 or place >= len(text):
        return max(0, min(place, len(text)))
    end = _sure(text, place)
    if end == place:
        return place
    for cluster in _CLUSTER.finditer(text, end):
        if cluster.end() > place:
            return cluster.start()
        end = cluster.end()
    return end


def character_start(text: str, place: int) -> int:
    r"""Return the first place from the given one on at which no character is split.

    Examples
    --------
    >>> character_start("cafe\u0301 noir", 4)
    5
    """
    start = character_end(text, place)
    cluster = None if start >= min(place, len(text)) else _CLUSTER.match(text, start)
    return cluster.end() if cluster else start


def _sure(text: str, place: int) -> int:
    """Find a place up to the given one that is certainly between two clusters."""
    if _breaks(text, place):
        return place
    end = place
    for _ in range(_TRIES):
        near = _NEAREST.search(text, 0, end)
        if near is None or near.start() == 0:
            return 0
        if _breaks(text, near.start() + 1) and near.start() + 1 <= place:
            return near.start() + 1
        if _breaks(text, near.start()):
            return near.start()
        end = near.start()
    return 0


def _breaks(text: str, place: int) -> bool:
    """Tell whether two clusters certainly meet here, from the two characters that do."""
    pair = text[place - 1 : place + 1]
    if _AFTER.match(pair) is None and _BEFORE.match(pair, 1) is None:
        return False
    cluster = _CLUSTER.match(pair)
    return cluster is not None and cluster.end() == 1


def _line_end(text: str, place: int) -> int:
    """Leave the newline out, so that a marker after the cut has not to wonder whether there is one."""
    if place <= 0 or place >= len(text):
        return max(0, min(place, len(text)))
    return character_end(text, text.rfind("\n", 0, place + 1))  # \r\n is one character


def _line_start(text: str, place: int) -> int:
    if place <= 0:
        return 0
    newline = text.find("\n", place - 1) if place <= len(text) else -1
    return len(text) if newline < 0 else newline + 1


def _sentence_end(text: str, place: int) -> int:
    if place <= 0 or place >= len(text):
        return max(0, min(place, len(text)))
    found = _SENTENCE_END.search(text, 0, place)
    return character_end(text, found.end()) if found else 0


def _sentence_start(text: str, place: int) -> int:
    if place <= 0:
        return 0
    for found in _SENTENCE_START.finditer(text, max(0, place - _LOOK_BACK)):
        if found.end() >= place:
            return character_start(text, found.end())
    return len(text)


#: For each kind of cut: the last place up to a given one where kept text may end, and the first from a given one
#: on where it may begin.
ENDS: Final[Mapping[By, Callable[[str, int], int]]] = MappingProxyType(
    {"token": character_end, "line": _line_end, "sentence": _sentence_end}
)
STARTS: Final[Mapping[By, Callable[[str, int], int]]] = MappingProxyType(
    {"token": character_start, "line": _line_start, "sentence": _sentence_start}
)
