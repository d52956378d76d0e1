"""Token counts of many texts, with threads, batches and gigatoken."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from budgetkit.budget.quoting import warn_caller
from budgetkit.counters import encodings
from budgetkit.counters.encodings import ForkSafeLock
from budgetkit.files import read_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_CALL = 32_768  # code points per call
FEW = 8  # fewer texts are not worth joining
_WIDTH = 4  # bytes of a token
_SEPARATOR = "<|endoftext|>"  # a special token of every shipped encoding


@cache
def counting_many(name: str) -> Callable[[Sequence[str]], list[int]]:
    """Return the fastest function that counts an encoding's tokens in many texts.

    Other threads can run while the function counts.

    Examples
    --------
    >>> counting_many("cl100k_base")(["Hello world", "", "<|endoftext|>"])
    [2, 0, 7]
    """
    built = encodings.encoding(name)
    count = encodings.counting_function(name)
    to_buffer = getattr(built._core_bpe, "encode_to_tiktoken_buffer", None)
    separator = built._special_tokens[_SEPARATOR]
    allowed = frozenset({_SEPARATOR})

    def count_call(texts: Sequence[str]) -> list[int]:
        # Texts that contain the separator, or that tiktoken rejects, cannot be joined.
        if to_buffer is not None and len(texts) >= FEW:
            joined = _SEPARATOR.join(texts)
            with suppress(ValueError):
                if joined.count(_SEPARATOR) == len(texts) - 1:
                    return sizes_between(separator, to_buffer(joined, allowed))
        return [*map(count, texts)]

    return lambda texts: [size for call in in_calls(texts) for size in count_call(call)]


def in_calls(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split texts into batches whose tokens fit in the processor's cache."""
    start = length = 0
    for end, text in enumerate(texts, start=1):
        length += len(text)
        if length >= _CALL or end == len(texts):
            yield texts[start:end]
            start = end
            length = 0


def sizes_between(separator: int, buffer: Any) -> list[int]:
    """Count the tokens between separators in a buffer of 32-bit tokens.

    >>> from array import array
    >>> sizes_between(9, array("I", [1, 9, 9, 2, 3]))
    [1, 0, 2]
    """
    written = bytes(buffer)
    sought = separator.to_bytes(_WIDTH, sys.byteorder)
    places = [-_WIDTH]
    place = written.find(sought)
    while place >= 0:
        if place % _WIDTH:  # these bytes belong to two adjacent tokens
            place = written.find(sought, place + 1)
            continue
        places.append(place)
        place = written.find(sought, place + _WIDTH)
    return [(after - before) // _WIDTH - 1 for before, after in pairwise([*places, len(written)])]


# Code points that one thread counts about as fast as two, which take time to start.
_ALONE: Final = 131_072
_MOST_THREADS: Final = 8


def counted_in_threads(
    count_many: Callable[[Sequence[str]], list[int]], texts: Sequence[str]
) -> list[int]:
    """Count the tokens in texts, with several threads if that is faster.

    Examples
    --------
    >>> counted_in_threads(lambda texts: [len(text) for text in texts], ["one", "three"])
    [3, 5]
    """
    if sum(map(len, texts)) < _ALONE or (threads := _cores()) < 2:
        return count_many(texts)
    calls = deque(enumerate(in_calls(texts)))
    sizes: list[list[int]] = [[]] * len(calls)

    def work() -> None:
        while True:
            try:
                place, few = calls.popleft()
            except IndexError:
                return
            sizes[place] = count_many(few)

    helpers = [_pool().submit(work) for _ in range(min(threads, len(calls)) - 1)]
    try:
        work()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    finally:
        calls.clear()  # after a failure, no thread goes on
    return [*chain.from_iterable(sizes)]


def _cores() -> int:
    available = getattr(os, "sched_getaffinity", None)
    return min(_MOST_THREADS, len(available(0)) if available else os.cpu_count() or 1)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, _cores() - 1), "budgetkit-count")


#: Code points that justify loading the faster tokenizer, even compared with four threads of tiktoken.
WORTH_LOADING: Final = 32_000_000
_EARNED: Final = 256_000_000  # code points counted so far that justify loading it
#: Minimum code points that justify an array.
LEAST: Final = 8_192
# In code points; the faster tokenizer caches every word, so it is rebuilt to free memory.
_FRESH_AFTER: Final = 100_000_000
_PACKAGE: Final = "gigatoken"
_PATTERNS: Final = {"cl100k_base": "gpt4", "o200k_base": "o200k", "o200k_harmony": "o200k"}
# U+FFFF is not a character; tiktoken counts the texts that contain it.
_FASTER_SEPARATOR = "\uffff|\uffff"
_SEPARATES = 1_000_000

CountMany = Callable[[Sequence[str]], list[int]]
_is_usable = True
# By encoding: the characters counted so far, and gigatoken's tokenizer.
_characters: Counter[str] = Counter()
_tokenizers: dict[str, CountMany | None] = {}
_lock = ForkSafeLock()


def for_work(name: str, characters: int, ahead: int = 0) -> CountMany | None:
    """Return gigatoken's counting function for a large amount of text.

    Return None if there is too little text to make gigatoken worthwhile, or if gigatoken cannot be used.

    >>> for_work("o200k_base", 11) is None
    True
    """
    _characters[name] += characters
    worth = max(characters, ahead) >= WORTH_LOADING or _characters[name] >= _EARNED
    if (worth or name in _tokenizers) and characters >= LEAST:
        return accelerated(name)
    return None


def accelerated(name: str) -> CountMany | None:
    """Load and test gigatoken's tokenizer for an encoding, once.

    Returns
    -------
    callable or None
        Function that counts the tokens in each of several texts, or None if the tokenizer is not installed, does not
        support the encoding or fails its test.

    Warns
    -----
    RuntimeWarning
        Once per encoding, if the installed tokenizer fails its test.
    """
    with _lock:
        if name not in _tokenizers:
            _tokenizers[name] = _load_tested(name)
        return _tokenizers[name]


def _start_anew() -> None:
    """Discard the parent's threads and gigatoken tokenizers after a fork."""
    global _is_usable
    _pool.cache_clear()
    _is_usable = _PACKAGE not in sys.modules
    _characters.clear()
    _tokenizers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


class Faster:
    """A counter that uses gigatoken, in one thread at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = ForkSafeLock()
        self.counted = 0
        self.known = _known_characters()
        self.encode = _encode(name)

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens in each text."""
        return [size for few in in_calls(texts) for size in self._few(few)]

    def _few(self, texts: Sequence[str]) -> list[int]:
        if self.covers("".join(texts)):
            if len(texts) < FEW:
                return [len(self._encoded(text)) for text in texts]
            tokens = self._encoded(_FASTER_SEPARATOR.join(texts))
            places = [-1, *(tokens == _SEPARATES).nonzero()[0].tolist(), len(tokens)]
            return [after - before - 1 for before, after in pairwise(places)]
        if len(texts) == 1:
            return [encodings.counting_function(self.name)(texts[0])]
        return [size for text in texts for size in self._few([text])]

    def covers(self, text: str) -> bool:
        """Return True if gigatoken's test covers every character of a text."""
        if text.isascii():
            return True
        import numpy as np

        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        return bool(self.known[points].all())

    def _encoded(self, text: str) -> Any:
        with self.lock:
            self.counted += len(text)
            if self.counted > _FRESH_AFTER:
                self.encode, self.counted = _encode(self.name), len(text)
            return self.encode(text)


def _encode(name: str) -> Callable[[str], Any]:
    """Build a gigatoken tokenizer from the shipped vocabulary, through a temporary file."""
    import tempfile  # needed only with gigatoken

    tokenizer = import_module(_PACKAGE).Tokenizer
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.tiktoken"
        path.write_bytes(encodings.vocabulary(name))
        encode: Callable[[str], Any] = tokenizer.from_tiktoken(
            path, _PATTERNS[name], {_FASTER_SEPARATOR: _SEPARATES}
        ).encode
    return encode


def _load_tested(name: str) -> CountMany | None:
    if not _is_usable or name not in _PATTERNS or find_spec(_PACKAGE) is None:
        return None
    try:
        faster = Faster(name)
        wrong = _first_difference(name, faster)
    except Exception as error:  # an optional package may raise anything; counting goes on
        wrong = f"it raised {type(error).__name__}: {str(error)[:80]}"
    if not wrong:
        return faster
    warn_caller(
        f"Cannot use {_PACKAGE} for {name}: {wrong}. Using tiktoken instead, which is slower but just as exact. "
        f"Install another version of {_PACKAGE}, or remove it.",
        RuntimeWarning,
    )
    return None


def _first_difference(name: str, faster: Faster) -> str:
    """Describe the first difference from tiktoken's tokens, or return ""."""
    expected = dict(zip(golden()["texts"], golden()["counts"][name], strict=True))
    for batch in ([*filter(faster.covers, expected)], *([text] for text in expected)):
        for text, tokens in zip(batch, faster(batch), strict=True):
            if tokens != expected[text]:
                return f"it counted {tokens} tokens in {text[:40]!r} instead of {expected[text]}"
    for context, text in in_contexts(golden()):
        if tokens_digest(faster.encode(text)) != golden()["digests"][name][context]:
            return f"it splits characters differently in the context {context!r}"
    return ""


@cache
def golden() -> dict[str, Any]:
    """Read the texts and tokens that gigatoken is tested with.

    The file has "texts" with tiktoken's "counts" for each encoding, and ranges of "characters" (first and last). For
    each encoding and context, "digests" has the SHA-256 of tiktoken's tokens for all these characters.
    """
    document: dict[str, Any] = json.loads(read_bytes("encodings/golden.json"))
    return document


def in_contexts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    r"""Yield each test context with a text of all test characters.

    >>> [*in_contexts({"characters": ["ac", "é"], "contexts": ["<{}>"]})]
    [('<{}>', '<a>\n<b>\n<c>\n<é>\n')]
    """
    every = [
        chr(point)
        for row in document["characters"]
        for point in range(ord(row[0]), ord(row[-1]) + 1)
    ]
    for context in document["contexts"]:
        before, _, behind = context.partition("{}")
        yield context, before + f"{behind}\n{before}".join(every) + f"{behind}\n"


def tokens_digest(tokens: Any) -> str:
    """Return the SHA-256 of token numbers, each stored in 32 bits."""
    import numpy as np

    return hashlib.sha256(np.asarray(tokens, "<u4").tobytes()).hexdigest()


@cache
def _known_characters() -> npt.NDArray[np.bool_]:
    """Return a table that marks the code points covered by gigatoken's test."""
    import numpy as np

    table = np.zeros(0x110000, bool)
    for row in golden()["characters"]:
        table[ord(row[0]) : ord(row[-1]) + 1] = True
    return table
