"""Positions where a text may be cut: between graphemes, lines or sentences.

A grapheme cluster looks like one character to a reader: a letter with its accents, a flag, a family of emoji with
invisible joiners. Lines and sentences also start and end between clusters. A position is found from the text around it,
so that a cut in a large text takes no longer than in a small text. Long stretches, such as a million accents on one
letter, are cached, so that no text is read more than twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import regex

By = Literal["token", "line", "sentence"]

_CLUSTER = regex.compile(r"\X")
# Places that certainly lie between two clusters, judged by the characters on both sides. A character of the scripts
# named here always starts a cluster; a character of another script may be joined to the letter before it.
_FREE = r"\x20-\x7e\p{Latin}\p{Greek}\p{Cyrillic}\p{Han}\p{Hiragana}\p{Katakana}\p{Arabic}\p{Hebrew}\p{Thai}"
_OPENS = r"\p{GCB=Prepend}"
_JOINS = r"\p{GCB=Extend}\p{GCB=ZWJ}"
_FLAG = r"\p{GCB=RI}"
_JAMO = r"\p{GCB=L}"
_CERTAIN = (
    rf"(?<=[^{_OPENS}{_JOINS}])(?=\p{{GCB=Other}})",
    rf"(?<=[^{_OPENS}])(?=[{_FREE}])(?=\p{{GCB=Other}})",
    rf"(?<=[^{_OPENS}{_FLAG}])(?={_FLAG})",
    rf"(?<=[^{_OPENS}{_JAMO}])(?=[{_JAMO}\p{{GCB=LV}}\p{{GCB=LVT}}])",
    r"(?<=[\p{GCB=Control}\n])(?=.)",
    r"(?=[\p{GCB=Control}\r])",
    r"(?<=[^\r])(?=\n)",
)
_SURE = regex.compile(rf"(?rs)(?:{'|'.join(_CERTAIN)})")
_LAST_FLAG = regex.compile(rf"(?r){_FLAG}")
_FLAGS = regex.compile(rf"(?r){_FLAG}+")
_NEAR = 64  # code points, which are enough for most places
_FAR = 1_024  # code points; longer stretches are remembered

_CLOSING = "[\"'”’»」』)\\]]{0,16}"
_SENTENCE_END = regex.compile(rf"(?r)(?:[.!?…]{_CLOSING}(?=\s)|[。！？]{_CLOSING}|(?<=\S)(?=\n))")
_SENTENCE_START = regex.compile(rf"(?:[.!?…]{_CLOSING}\s+|[。！？]{_CLOSING}\s*|\n\s*)")
_LOOK_BACK = 20  # code points: a punctuation mark with its closing quotes and brackets
_CHUNK = 4_096  # code points


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The known cluster edges of a stretch, and its unread clusters."""

    edges: list[int]
    clusters: Iterator[regex.Match[str]]


class Boundaries:
    r"""The positions where one text may be cut.

    >>> accented = Boundaries("cafe\u0301 noir")
    >>> accented.end("token", 4), accented.start("token", 4), accented.end("token", 5)
    (3, 5, 5)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._stretches: list[_Stretch] = []
        self._ends: dict[int, int] = {}
        self._gaps: list[
            tuple[int, int, int]
        ] = []  # the place it was searched from, its start and its end

    def end(self, by: By, place: int) -> int:
        """Return the last position up to `place` where a text may end."""
        if place <= 0 or place >= len(self.text):
            return max(0, min(place, len(self.text)))
        if by == "token":
            return self._around(place)[0]
        # The newline is left out, so that every marker can begin with its own.
        if by == "line":
            boundary = self.text.rfind("\n", 0, place + 1)
        else:
            boundary = self._sentence_end(place)
        return self._around(boundary)[0] if boundary > 0 else 0  # \r\n is one character

    def start(self, by: By, place: int) -> int:
        """Return the first position at or after `place` where text may start."""
        size = len(self.text)
        if place <= 0 or place >= size:
            return max(0, min(place, size))
        if by == "line":
            newline = self.text.find("\n", place - 1)
            return size if newline < 0 else newline + 1
        boundary = place if by == "token" else self._sentence_start(place)
        if boundary < size:
            return self._around(boundary)[1]
        return size

    def _around(self, place: int) -> tuple[int, int]:
        """Return the nearest cluster edges on both sides of a position.

        A position that is an edge itself is returned twice.
        """
        if self.text[place - 1] < "\x7f" and " " <= self.text[place] < "\x7f":
            return place, place
        for stretch in self._stretches:
            if stretch.edges[0] <= place <= stretch.edges[-1]:
                return _neighbours(stretch.edges, place)
        sure = self._sure(place)
        if sure == place:
            return place, place
        begun = [
            known_stretch
            for known_stretch in self._stretches
            if known_stretch.edges[0] <= sure <= known_stretch.edges[-1]
        ]
        if begun:
            stretch = begun[0]
        else:
            stretch = _Stretch([sure], _CLUSTER.finditer(self.text, sure))
        while stretch.edges[-1] < place:
            stretch.edges.append(next(stretch.clusters).end())
        if not begun and stretch.edges[-1] - sure > _FAR:
            self._stretches.append(stretch)
        return _neighbours(stretch.edges, place)

    def _sure(self, place: int) -> int:
        """Return a position up to `place` that is certainly between clusters."""
        for begin in (max(0, place - _NEAR), 0):
            match = _SURE.search(self.text, begin, place + 1)
            sure = max(match.start() if match else 0, self._flag(begin, place))
            if sure:
                return sure
        return 0

    def _flag(self, begin: int, place: int) -> int:
        """Return the start of the last flag in a row of flags.

        Flags are pairs of code points, counted from the start of their row. The result is 0 for a single flag or none.
        """
        letter = _LAST_FLAG.search(self.text, begin, place)
        row = _FLAGS.match(self.text, 0, letter.end()) if letter else None
        if row and len(row[0]) > 2:
            return row.start() + (len(row[0]) - 1) // 2 * 2
        return 0

    def _sentence_end(self, place: int) -> int:
        """Return the last sentence end up to a position, or 0.

        Results are cached by chunk of the text.
        """
        chunk = place // _CHUNK
        match = _SENTENCE_END.search(self.text, max(0, chunk * _CHUNK - _LOOK_BACK), place)
        if match:
            return match.end()
        while chunk > 0:
            chunk -= 1
            if chunk not in self._ends:
                begin = max(0, chunk * _CHUNK - _LOOK_BACK)
                end = (chunk + 1) * _CHUNK
                match = _SENTENCE_END.search(self.text, begin, end)
                self._ends[chunk] = match.end() if match else 0
            if self._ends[chunk]:
                return self._ends[chunk]
        return 0

    def _sentence_start(self, place: int) -> int:
        """Return the sentence start at or after a position, or the end."""
        at = max(0, place - _LOOK_BACK)
        end = 0
        while at < len(self.text) and end < place:
            at = end = self._gap(at)
        return end if end >= place else len(self.text)

    def _gap(self, at: int) -> int:
        """Return the end of the next gap between sentences."""
        for first, begin, end in self._gaps:
            if first <= at <= begin:
                return end
        match = _SENTENCE_START.search(self.text, at)
        begin, end = match.span() if match else (len(self.text), len(self.text))
        self._gaps.append((at, begin, end))
        return end


def _neighbours(edges: list[int], place: int) -> tuple[int, int]:
    after = bisect_right(edges, place)
    before = edges[after - 1]
    return before, before if before == place else edges[after]
