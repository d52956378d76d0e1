r"""Token counts of long texts without seams, in bounded memory.

A seam is a position where the counts of both sides add up (see ``exact.py``). The text is read in windows. A window is
counted up to the last position where the pattern splits the window regardless of the following text. If a single run of
letters, marks or blanks fills a window, the following text is read to find the end of the piece. A piece larger than a
window is encoded window by window. This is exact because of a property of byte-pair encodings:

    A sequence of tokens is the encoding of its bytes if every two adjacent tokens are the encoding of their bytes.

The reason is that the first merge across the border of two tokens would also happen in those two tokens alone. The
windows therefore overlap by some tokens, and two windows are joined where both have the same token at the same
position. Any two adjacent tokens then appear together in at least one window.
"""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Final

from budgetkit.counters import encodings
from budgetkit.counters.encodings import pattern, settled
from budgetkit.counters.memory import Memo, digest
from budgetkit.message import replace_surrogates

#: Function that returns the bytes at an offset, up to a given size.
Read = Callable[[int, int], bytes]
# From the start of a part of a piece to its end, or None.
_Step = Callable[[Read, int], int | None]

_WINDOW: Final = 1 << 16  # bytes
_FEW: Final = 1 << 12  # bytes of a piece; an encoding takes longer for each byte of a larger one
_OVERLAP: Final = 64  # tokens
_LONGEST: Final = 4  # bytes of a character
_KNOWN: Final = Memo(1_024)  # where a run ends in a window
_NO_WORD: Final = r"^\r\n\p{L}\p{N}"
_MARK: Final = r"^\s\p{L}\p{N}"


def count_seamless(name: str, text: str) -> int:
    """Count the tokens in a long text without seams, window by window.

    >>> count_seamless("cl100k_base", "ab" * 200_000 + "!")
    200001
    """
    data = replace_surrogates(text).encode()
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
    for alternative in _alternatives(written):
        end: int | None = at
        for step in alternative:
            end = None if end is None else step(read, end)
        if end is not None and end > at:
            return end
    raise AssertionError(f"no piece begins at byte {at}, but every character belongs to a piece")


def _count_piece(name: str, read: Read, start: int, stop: int) -> int:
    """Count the tokens in a piece that may be larger than memory."""
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


@cache
def _alternatives(written: str) -> tuple[tuple[_Step, ...], ...]:
    """Return the alternatives of a shipped pattern, as sequences of steps."""
    last_blanks: tuple[tuple[_Step, ...], ...] = ((_all_but_one,), (_run(r"\s", 1, 1),))
    if r"\p{N}{1,3}" not in written:
        runs = [(_run(" ", 0, 1), _run(members, 1)) for members in (r"\p{L}", r"\p{N}", _MARK)]
        return ((_here("'(?:[sdmt]|ll|ve|re)"),), *runs, *last_blanks)
    numbers = (_run(r"\p{N}", 1, 3),)
    marks = (_run(" ", 0, 1), _run(_MARK, 1))
    lines = (_last(r"\s", r"\r\n"),)
    if r"\p{Lu}" in written:
        marks_to_line_end = (*marks, _run(r"\r\n/"))
        return (*_words_by_case(), numbers, marks_to_line_end, lines, *last_blanks)
    short = (_here("'(?i:[sdmt]|ll|ve|re)"),)
    word = (_run(_NO_WORD, 0, 1), _run(r"\p{L}", 1))
    marks_to_line_end = (*marks, _run(r"\r\n"))
    return (short, word, numbers, marks_to_line_end, (_to_the_end,), lines, *last_blanks)


def _words_by_case() -> Iterator[tuple[_Step, ...]]:
    """Yield o200k_base's word patterns: capitals, then lower-case letters.

    Letters without case count as capitals and as lower-case letters.
    """
    capitals, small, both = (
        r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}",
        r"\p{Ll}\p{Lm}\p{Lo}\p{M}",
        r"\p{Lm}\p{Lo}\p{M}",
    )
    short = _here("(?i:'s|'t|'re|'ve|'m|'ll|'d)?")
    openings: tuple[tuple[_Step, ...], ...] = ((_run(_NO_WORD, 1, 1),), ())
    for opening in openings:
        yield *opening, _run(capitals), _run(r"\p{Ll}", 1, 1), _run(small), short
        yield *opening, _last(capitals, both), short
    for opening in openings:
        yield *opening, _run(capitals, 1), _run(small), short


def _run(members: str, least: int = 0, most: int | None = None) -> _Step:
    """Return a step that matches a run of characters of a class."""

    def step(read: Read, at: int) -> int | None:
        end = at
        while text := text_at(read, end, None if most is None else _LONGEST * most):
            length, size = _inside(f"[{members}]{{0,{'' if most is None else most}}}+", text)
            end += size
            if most is not None or length < len(text):
                break
        return end if least == 0 or end > at else None

    return step


def _inside(run: str, text: str) -> tuple[int, int]:
    """Count the characters and bytes of a run that starts a text."""

    def make() -> tuple[int, int]:
        match = pattern(run).match(text)
        assert match is not None, "a run may be empty"
        return match.end(), len(match[0].encode())

    if len(text) < _FEW:
        return make()
    return _KNOWN.once((run, digest(text)), make)


def _last(members: str, last: str) -> _Step:
    """Return a step that matches a run up to its last delimiter.

    `members` is the class of the run, and `last` the class of the delimiters.
    """

    def step(read: Read, at: int) -> int | None:
        end = _run(members)(read, at) or at
        while end > at:
            begin = max(at, end - _WINDOW)
            # without the rest of a character that begins before the window
            whole = read(begin, end - begin).lstrip(bytes(range(0x80, 0xC0)))
            if match := pattern(f"(?s:.*)[{last}]").match(whole.decode()):
                return end - len(whole) + len(match[0].encode())
            end -= len(whole)
        return None

    return step


def _here(short: str) -> _Step:
    """Return a step that matches a pattern of a few characters."""

    def step(read: Read, at: int) -> int | None:
        match = pattern(short).match(text_at(read, at, 4 * _LONGEST))
        if match is None:
            return None
        return at + len(match[0].encode())

    return step


def _to_the_end(read: Read, at: int) -> int | None:
    end = _run(r"\s")(read, at)
    if end is None or read(end, 1):
        return None
    return end


def _all_but_one(read: Read, at: int) -> int | None:
    """Skip all blanks except the last, which belongs to the following text.

    At the end of the text, skip all of them.
    """
    end = _run(r"\s")(read, at) or at
    if not read(end, 1):
        return end
    before = read(max(at, end - _LONGEST), min(_LONGEST, end - at)).decode("utf-8", "ignore")
    return end - len(before[-1:].encode())


def text_at(read: Read, at: int, size: int | None = None) -> str:
    """Read whole characters, starting at an offset.

    Invalid UTF-8 raises an error with the offset of the invalid bytes.
    """
    size = _WINDOW if size is None else size
    data = read(at, size)
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=len(data) < size)
    except UnicodeDecodeError as error:
        error.start += at
        raise
