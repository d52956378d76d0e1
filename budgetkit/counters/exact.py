"""Exact counts with an encoding, equal to tiktoken's for any string.

Text that looks like a special token, such as ``<|endoftext|>``, is counted as ordinary text. Lone surrogates are
replaced as tiktoken replaces them. A million blanks in a row, which tiktoken rejects, are counted piece by piece. An
encoding is exact for the models that use it; for any other model it is a substitute, and the counter's name says so. A
*seam* is a position in a text where the counts of both sides add up to the count of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from budgetkit.counters import encodings, speed
from budgetkit.counters.memory import CountMemory
from budgetkit.counters.protocol import Basis, CounterBase, check_text, check_texts
from budgetkit.counters.speed import LEAST, counted_in_threads, for_work
from budgetkit.counters.stretches import count_seamless

#: Maximum code points of a text that is counted in one part.
LARGE: Final = 65_536
# Code points per part.
_SHORTEST = 16_384
_LONGEST = 65_536
_LETTER = (  # Latin to Arabic, the scripts of India, Thai to Khmer, the scripts of East Asia
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
# A part ends at a rare beginning of a word, a phrase or a line, searched for in this order. Such a place depends only
# on the characters around it, so most parts stay the same after an edit.
_RARE = "079JQZjqzЖЭЮжэюψξغظ"
_ANCHORS = (
    re.compile(rf" [{_RARE}]"),
    re.compile("[\u3001\u3002\uff0c][\u4e0d\u4ed6\u4f46\u5979\u6211\u305d\u3053\uadf8]"),
    re.compile("\n[0AEQaeq/+{]"),
)


def is_seam(text: str, place: int) -> bool:
    """Return True if a position in a text is a seam.

    Examples
    --------
    >>> [is_seam("two words", place) for place in (2, 3, 4)]
    [False, True, False]
    """
    return place > 0 and _SEAM.match(text, place) is not None


def first_seam(text: str, place: int) -> int:
    """Return the first seam at or after a position, or the end.

    Examples
    --------
    >>> first_seam("three short words", 6)
    11
    """
    return next_seam(text, place, len(text)) or len(text)


def next_seam(text: str, start: int, stop: int) -> int | None:
    """Return the first seam between two positions, or None.

    Both positions are included. If `stop` reaches the end of the text, the end counts as a seam.

    Examples
    --------
    >>> next_seam("three short words", 6, 9), next_seam("three short words", 6, 12)
    (None, 11)
    """
    # A seam is recognised by the character after it, so one more character is searched.
    match = _SEAM.search(text, max(1, start), stop + 1)
    if match:
        return match.start()
    return len(text) if stop >= len(text) else None


def last_seam(text: str, start: int, stop: int) -> int:
    """Return the last seam between two positions, or `start` if none exists.

    Examples
    --------
    >>> last_seam("three short words", 0, 11)
    5
    """
    width = _WINDOW
    end = stop
    while end > start + 1:
        begin = max(start, end - width)
        if seams := [*_SEAM.finditer(text, begin + 1, end)]:
            return seams[-1].start()
        end = begin + 1
        width *= 4
    return start


def split_at_seams(text: str) -> Iterator[str]:
    """Split a text at seams into parts of similar size.

    A part ends at the first seam after 65,536 characters at the latest, so only text without seams gives longer parts.

    Examples
    --------
    >>> text = "So many words. " * 10_000
    >>> "".join(split_at_seams(text)) == text, max(map(len, split_at_seams(text))) <= 65_600
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


#: Maximum size of an encoding's count cache in bytes, enough for a few hundred thousand messages.
MEMORY_BYTES = 64 * 2**20


#: The count cache of an encoding, to inspect or clear it.
memory = cache(lambda _: CountMemory(MEMORY_BYTES))


def count_texts(
    encoding: str, texts: Sequence[str], one_thread: bool = False, ahead: int = 0
) -> list[int]:
    """Count the tokens in texts by the fastest method, without the cache."""
    if max(map(len, texts), default=0) > 2 * LARGE:
        seamless = {text: count_seamless(encoding, text) for text in texts if len(text) > 2 * LARGE}
        sizes = iter(
            count_texts(
                encoding, [text for text in texts if text not in seamless], one_thread, ahead
            )
        )
        return [seamless[text] if text in seamless else next(sizes) for text in texts]
    if one_thread:
        return speed.counting_many(encoding)(texts)
    characters = sum(map(len, texts))
    if faster := for_work(encoding, characters, ahead):
        return faster(texts)
    return counted_in_threads(speed.counting_many(encoding), texts)


@dataclass(frozen=True, slots=True)
class ExactCounter(CounterBase):
    """A counter whose counts equal those of a tiktoken encoding.

    Create one with :func:`budgetkit.counter`. The encoding is loaded at the first count.

    Parameters
    ----------
    encoding : str
        Name of a shipped encoding, such as ``"o200k_base"``.
    model : str, optional
        The model to count for.
    stand_in : bool
        If true, the encoding is not the model's own.

    Examples
    --------
    >>> ExactCounter("o200k_base")("Hello world")
    2
    >>> ExactCounter("o200k_base", model="some-model", stand_in=True).name
    'some-model (o200k_base stands in)'
    """

    encoding: str
    model: str | None = None
    stand_in: bool = False

    @property
    def basis(self) -> Basis:
        """``"exact"``, or ``"estimate"`` if the encoding is a substitute."""
        return "estimate" if self.stand_in else "exact"

    @property
    def name(self) -> str:
        """The counter's name: the model or encoding, with any substitute noted."""
        note = f" ({self.encoding} stands in)" if self.stand_in else ""
        return f"{self.model or self.encoding}{note}"

    def __call__(self, text: str) -> int:
        """Count the tokens in one text, using the cache."""
        if type(text) is not str:
            check_text(text, self)
        if len(text) >= LEAST:
            return self.many([text])[0]
        return memory(self.encoding).count(text, encodings.counting_function(self.encoding))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens in each of several texts, using cache and threads."""
        texts = check_texts(texts, self)
        if max(map(len, texts), default=0) <= LARGE:
            return self._counted(texts)
        cut = [[*split_at_seams(text)] if len(text) > LARGE else [text] for text in texts]
        sizes = iter(self._counted([part for pieces in cut for part in pieces]))
        return [sum(next(sizes) for _ in pieces) for pieces in cut]

    def _counted(self, texts: Sequence[str]) -> list[int]:
        return memory(self.encoding).count_many(texts, partial(count_texts, self.encoding))

    def fresh(self, text: str) -> int:
        """Count the tokens in a text, without the cache.

        Use this method for a text that is counted only once. A long text is split at seams, where counts add up.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        int
            Number of tokens.

        Examples
        --------
        >>> ExactCounter("o200k_base").fresh("Hello world")
        2
        """
        if len(text) > LARGE:
            return sum(count_texts(self.encoding, [*split_at_seams(text)], one_thread=True))
        return encodings.counting_function(self.encoding)(text)

    def tokens(self, text: str) -> list[int]:
        """Return the token numbers of a text.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        list of int
            Token numbers, one for each counted token.

        Examples
        --------
        >>> ExactCounter("o200k_base").tokens("Hello world")
        [13225, 2375]
        """
        return encodings.tokens(self.encoding, text)

    def pieces(self, text: str) -> list[bytes]:
        """Split a text into the bytes of its tokens.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        list of bytes
            The UTF-8 bytes of each token. Joined, the bytes are the text. A single token may be a part of a character.

        Examples
        --------
        >>> ExactCounter("o200k_base").pieces("Tokens aren't words")
        [b'Tokens', b" aren't", b' words']
        """
        return encodings.encoding(self.encoding).decode_tokens_bytes(self.tokens(text))
