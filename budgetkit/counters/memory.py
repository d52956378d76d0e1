"""Caches of counts, limited in bytes, and of objects, limited in number.

Counting is slow, and the same messages are counted at every turn, so counts are cached in two dictionaries: a young
dictionary and an old dictionary. A text that is looked up moves to the young dictionary. When the young dictionary is
full, it becomes the old dictionary, and the previous old dictionary is discarded. Like an LRU cache, this scheme keeps
the texts in use, but most lookups are a single dictionary access and need no lock.
"""

from __future__ import annotations

import hashlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from budgetkit.counters.encodings import ForkSafeLock

Made = TypeVar("Made")

_ENTRY = 140  # bytes per entry besides its key: the count, and a slot of an almost empty dictionary
_WHOLE = 4_096  # code points; a longer text is cached by its digest, so that the text can be freed


class CountMemory:
    """A cache of the counts of texts, limited in bytes.

    When the cache is full, the least recently used counts are discarded.

    Examples
    --------
    >>> memory = CountMemory(limit=1_000_000)
    >>> memory.count("Hello world", len), memory.nbytes > 0
    (11, True)
    """

    __slots__ = ("_lock", "_old", "_old_bytes", "_young", "_young_bytes", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = ForkSafeLock()
        self.forget()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    @property
    def nbytes(self) -> int:
        """Upper bound for the size of cached texts and counts, in bytes."""
        return self._young_bytes + self._old_bytes

    def count(self, text: str, counting: Callable[[str], int]) -> int:
        """Return a text's cached count, or count it and cache the result."""
        key = text if len(text) <= _WHOLE else digest(text)
        size = self._young.get(key)
        if size is None:
            size = self._old.get(key)
            if size is None:
                size = counting(text)
            with self._lock:
                self._remember_one(key, size)
        return size

    def count_many(
        self, texts: Sequence[str], counting: Callable[[Sequence[str]], list[int]]
    ) -> list[int]:
        """Return the counts of texts, counting all uncached texts in one call.

        Examples
        --------
        >>> CountMemory(limit=1_000_000).count_many(["a", "bb", "a"], lambda new: [len(text) for text in new])
        [1, 2, 1]
        """
        keys: Sequence[str | bytes] = texts
        if max(map(len, texts), default=0) > _WHOLE:
            keys = [digest(text) if len(text) > _WHOLE else text for text in texts]
        sizes = [*map(self._young.get, keys)]
        if None not in sizes:
            return sizes  # type: ignore[return-value]  # none is None

        # old counts are looked up, new texts are counted, and both become young
        missing = {
            key: text for key, text, size in zip(keys, texts, sizes, strict=True) if size is None
        }
        old = self._old
        counts = {key: old[key] for key in missing if key in old}
        new = {key: text for key, text in missing.items() if key not in counts}
        counts |= zip(new, counting([*new.values()]), strict=True)
        with self._lock:  # if two threads count a text at once, its size is added twice and counts are discarded early
            for key, tokens in counts.items():
                self._remember_one(key, tokens)
        return [
            counts[key] if size is None else size for key, size in zip(keys, sizes, strict=True)
        ]

    def forget(self) -> None:
        """Discard all counts."""
        with self._lock:
            self._young: dict[str | bytes, int] = {}
            self._old: dict[str | bytes, int] = {}
            self._young_bytes = self._old_bytes = 0

    def _remember_one(self, key: str | bytes, tokens: int) -> None:
        size = sys.getsizeof(key) + _ENTRY
        if self._young_bytes + size > self.limit // 2:
            self._old = self._young
            self._old_bytes = self._young_bytes
            self._young = {}
            self._young_bytes = 0
        self._young[key] = tokens
        self._young_bytes += size


class Memo:
    """A cache of objects, limited in number.

    When the cache is full, the least recently used object is discarded.

    Examples
    --------
    >>> memo = Memo(most=2)
    >>> [memo.once(key, lambda: made) for made, key in enumerate("abacb")]
    [0, 1, 0, 3, 4]
    """

    __slots__ = ("_lock", "_made", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = ForkSafeLock()
        self._made: OrderedDict[Hashable, Any] = OrderedDict()

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return a key's cached value, making it if it is missing.

        If the key cannot be hashed, the value is made each time.
        """
        try:
            hash(key)
        except TypeError:  # a user's own counter may be a mutable dataclass
            return make()
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                remembered: Made = self._made[key]
                return remembered
        value = make()  # outside the lock, because it is slow and may look up other keys
        with self._lock:
            self._made[key] = value
            while len(self._made) > self.most:
                self._made.popitem(last=False)
        return value

    def __reduce__(self) -> tuple[type[Memo], tuple[int]]:
        return Memo, (self.most,)  # a copy, as for another process, starts empty


def digest(text: str) -> bytes:
    """Return the 16-byte key of a long text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
