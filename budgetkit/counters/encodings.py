"""OpenAI's byte-pair encodings, built in memory from ``data/encodings/``.

This is the only module that imports tiktoken, which would download a vocabulary on first use. Here the published file
is stored compressed in ``data/``. That file is unpacked, checked against tiktoken's published SHA-256, and passed to
tiktoken's own ``Encoding``. No file is written, and no environment variable is read or set. An encoding is built only
once, even if several threads request it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import zlib
from binascii import a2b_base64
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from budgetkit.budget.errors import unknown_name
from budgetkit.files import data_path, read_bytes
from budgetkit.message import Data, replace_surrogates

if TYPE_CHECKING:
    import tiktoken


_CLASS = re.compile(r"\[[^]]*\\[psPS][^]]*\]|\\p\{\w+\}|\\[sS]")
#: Ranges that may contain letters, marks, numbers and blanks, and one character for the planes without any (unassigned
#: or private use).
PLANES: Final = (range(0xD800), range(0xE000, 0x40001), range(0xE0000, 0xF0000))
_OTHER_PLANES: Final = r"\U00040001-\U000dffff\U000f0000-\U0010ffff"
_BYTES: Final = {bytes([byte]): byte for byte in range(256)}
_SLACK: Final = 4  # characters that a pattern may read after a run, such as a contraction


@cache
def characters(unicode_class: str) -> str:
    r"""Return a Unicode class of tiktoken as character ranges for `re`.

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
    # Written as characters, which `re` reads in half the time that it takes for escapes.
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
    r"""Rewrite an encoding's pattern as an equivalent pattern for `re`.

    >>> pattern(r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+$").findall("Title 1234 (x)  ")
    ['Title', '123', '4', ' (', 'x', ')', '  ']
    """
    # A class is written as its members, even if the pattern uses its complement, because `re` is faster then.
    return re.compile(
        _CLASS.sub(lambda match: f"[{characters(match[0])}]", written.replace("$", r"\Z"))
    )


def settled(written: str, text: str) -> int:
    r"""Return the end of the last piece that further text cannot change.

    Return 0 if there is no such piece.

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
        # Two pieces of blanks would be one piece if the text ended here.
        if not (piece[0].isspace() and text[max(0, piece.start() - 1) : piece.start()].isspace()):
            last = piece.end()
    return last


@cache
def _runs(written: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns for runs that an encoding's lookahead can cross.

    The runs are blanks, and capitals before lower-case letters. Both kinds of runs are matched backwards.
    """
    blanks = pattern(r"\s*+")
    if r"\p{Lu}" not in written:
        return (blanks,)
    return blanks, pattern(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*+[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*+")


class ForkSafeLock:
    """A lock that is released in the child process after a fork.

    Parameters
    ----------
    make : callable, default threading.Lock
        Function that makes the lock. Pass `threading.RLock` for a reentrant lock.

    Examples
    --------
    >>> lock = ForkSafeLock()
    >>> with lock:
    ...     lock.acquire(blocking=False)
    False
    """

    __slots__ = ("__weakref__", "_lock", "_make")

    def __init__(self, make: Callable[[], Any] = threading.Lock) -> None:
        self._make = make
        self._lock = make()
        _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Acquire the lock, and return True on success."""
        taken: bool = self._lock.acquire(blocking)
        return taken

    def release(self) -> None:
        """Release the lock."""
        try:
            self._lock.release()
        except (
            RuntimeError
        ):  # the process forked while this thread had the lock; the child's lock is a new one
            return

    def renew(self) -> None:
        """Replace the lock with a new, free lock in a forked process."""
        self._lock = self._make()


_ALL: WeakSet[ForkSafeLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_ALL):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


_BUILDING = ForkSafeLock()
_ALL_KINDS = "Word word 12 it's?!\n\n  的 \u0301"  # of pieces that the patterns match
_SHORT = 256  # code points
_GZIP = 31  # zlib's window bits for "a gzip header and the largest window"


def encoding_names() -> tuple[str, ...]:
    """List the encodings shipped with budgetkit.

    Returns
    -------
    tuple of str
        Sorted names.

    Examples
    --------
    >>> encoding_names()
    ('cl100k_base', 'o200k_base', 'o200k_harmony', 'p50k_base', 'p50k_edit', 'r50k_base')
    """
    return tuple(sorted(_definitions()))


def encoding(name: str) -> tiktoken.Encoding:
    """Return tiktoken's object for an encoding, building it only once.

    Examples
    --------
    >>> encoding("o200k_base").n_vocab
    200019
    """
    if name not in _definitions():
        raise ValueError(unknown_name("encoding", name, encoding_names()))
    with _BUILDING:  # functools.cache alone would let two threads build the same encoding twice
        return _build_shipped(name)


def tokens(name: str, text: str) -> list[int]:
    """Encode a text, treating special tokens as plain text.

    Examples
    --------
    >>> tokens("cl100k_base", "Hello world")
    [9906, 1917]
    """
    built = encoding(name)
    try:
        return built.encode(text, disallowed_special=())
    except ValueError:  # tiktoken's pattern gives up on about a million blanks in a row
        return [
            token for piece in _tokens_by_piece(built, replace_surrogates(text)) for token in piece
        ]


@cache
def counting_function(name: str) -> Callable[[str], int]:
    """Return the fastest function that counts an encoding's tokens in one text.

    Examples
    --------
    >>> counting_function("cl100k_base")("<|endoftext|>")
    7
    """
    return _counting_with(encoding(name))


def _counting_with(built: tiktoken.Encoding) -> Callable[[str], int]:
    # tiktoken counts only by making the tokens. A list is fastest for short texts, and its private buffer for others;
    # unlike encode_ordinary, the buffer raises no BaseException. Without a buffer, the list is used.
    public = partial(built.encode, disallowed_special=())
    to_list = getattr(built._core_bpe, "encode_ordinary", public)
    to_buffer = getattr(built._core_bpe, "encode_to_tiktoken_buffer", None)
    nothing_special: frozenset[str] = frozenset()

    def count(text: str) -> int:
        try:
            if len(text) < _SHORT:
                return len(to_list(text))
            if to_buffer is None:
                return len(public(text))
            return memoryview(to_buffer(text, nothing_special)).nbytes >> 2
        except UnicodeEncodeError:
            return count(replace_surrogates(text))
        except ValueError:
            return sum(map(len, _tokens_by_piece(built, replace_surrogates(text))))

    return count


def pattern_of(name: str) -> str:
    """Return an encoding's published pattern for splitting texts into pieces."""
    published: str = _definitions()[name]["pattern"]
    return published


def _tokens_by_piece(built: tiktoken.Encoding, text: str) -> Iterator[list[int]]:
    """Yield the tokens of each match of an encoding's pattern.

    Python's `re` finds the matches.
    """
    for piece in pattern(pattern_of(built.name)).finditer(text):
        yield built._core_bpe.encode_single_piece(piece.group().encode())


@cache
def _definitions() -> dict[str, Data]:
    """Map the name of each tiktoken encoding to its published definition."""
    document: dict[str, dict[str, Data]] = json.loads(read_bytes("encodings/encodings.json"))
    return document["encodings"]


@cache
def _build_shipped(name: str) -> tiktoken.Encoding:
    """Build tiktoken's object from the shipped vocabulary."""
    return _build_encoding(name, _ranks(**_definitions()[name]))


def _build_encoding(name: str, ranks: dict[bytes, int]) -> tiktoken.Encoding:
    import tiktoken

    definition = _definitions()[name]
    encoding = tiktoken.Encoding(
        name,
        pat_str=definition["pattern"],
        mergeable_ranks=ranks,
        special_tokens=definition["special_tokens"],
    )
    # The first thread that uses a pattern needs no lock for it from then on, so this thread uses it now.
    for times in (1, _SHORT):
        _counting_with(encoding)(_ALL_KINDS * times)
    return encoding


def pair_encoder(ranks: dict[bytes, int]) -> Callable[[bytes], list[int]]:
    """Return a function that encodes single pieces with given ranks.

    Examples
    --------
    >>> encode = pair_encoder({b"a": 0, b"b": 1, b"ab": 2})
    >>> encode(b"abb")
    [2, 1]
    """
    import tiktoken

    built = tiktoken.Encoding("other", pat_str=r"(?s:.+)", mergeable_ranks=ranks, special_tokens={})
    encode: Callable[[bytes], list[int]] = built._core_bpe.encode_single_piece
    return encode


def vocabulary(name: str) -> bytes:
    """Return an encoding's vocabulary as the bytes of a tiktoken file."""
    return _vocabulary(**_definitions()[name])


def _ranks(**definition: Any) -> dict[bytes, int]:
    # Tokens and ranks alternate. Reading whole columns takes half the time of tiktoken's line by line. Ranks rise (a
    # test checks this), so if the last one equals its line number, no rank is missing and none has to be read.
    columns = _vocabulary(**definition).split()
    tokens = columns[0::2]
    ranks = columns[1::2]
    rising = range(len(ranks)) if int(ranks[-1]) == len(ranks) - 1 else map(int, ranks)
    return dict(zip(map(a2b_base64, tokens), rising, strict=True))


def _vocabulary(file: str, lines: int | None, sha256: str, **_: object) -> bytes:
    """Read a vocabulary and check its digest (2 ms for the largest)."""
    vocabulary = zlib.decompress(read_bytes(f"encodings/{file}"), wbits=_GZIP)
    if lines is not None:
        vocabulary = b"".join(vocabulary.splitlines(keepends=True)[:lines])
    digest = hashlib.sha256(vocabulary).hexdigest()
    if digest != sha256:
        raise ValueError(
            f"Corrupt file {data_path(f'encodings/{file}')}: its SHA-256 is {digest}, but tiktoken publishes "
            f"{sha256}. Reinstall budgetkit."
        )
    return vocabulary
