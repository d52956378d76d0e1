"""A faster tokenizer for large work, where one is installed and passes its test: ``pip install budgetkit[fast]``.

quicktok counts several times as fast as tiktoken and lets other threads run. It is young, so it is used only if it
counts every string of ``data/encodings/golden.json`` as tiktoken did. If it does not, one warning says so, and
tiktoken counts. One fault is known: in quicktok, U+017F (an old form of s) does not end a contraction. So tiktoken
counts every text with that character.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Final

from budgetkit.counters import batches, encodings
from budgetkit.files import read_bytes

__all__ = ["WORTH_LOADING", "accelerated", "counting_many", "golden"]

#: Less than this many code points at once are counted before a second tokenizer would be loaded.
WORTH_LOADING: Final = 1_000_000
_PACKAGE = "quicktok"
_LONG_S = "\u017f"
_SHORT: Final = 2_000  # code points

CountMany = Callable[[Sequence[str]], list[int]]


def counting_many(name: str, characters: int) -> CountMany:
    """Return the fastest exact way to count texts of so many characters in all.

    Examples
    --------
    >>> counting_many("o200k_base", 11)(["Hello world"])
    [2]
    """
    faster = accelerated(name) if characters >= WORTH_LOADING else None
    return faster or batches.counting_many(name)


@cache
def accelerated(name: str) -> CountMany | None:
    """Load the faster tokenizer of an encoding, once, and test it.

    Warns
    -----
    RuntimeWarning
        Once for an encoding, if it is installed and fails.
    """
    if find_spec(_PACKAGE) is None or name not in golden()["counts"]:
        return None
    try:
        count_many = _counting(name, import_module(_PACKAGE).get_encoding(name))
        wrong = _wrong(name, count_many)
    except Exception as error:  # whatever an optional package does, counting goes on without it
        wrong = f"it raised {type(error).__name__}: {error}"
    if not wrong:
        return count_many
    warnings.warn(
        f"{_PACKAGE} was to count {name}, and {wrong}; tiktoken counts instead, as exactly and slower; "
        f"install another version of {_PACKAGE} or remove it",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


@cache
def golden() -> dict[str, Any]:
    """Read the strings that a tokenizer must count right, and tiktoken's counts of them."""
    document: dict[str, Any] = json.loads(read_bytes("encodings/golden.json"))
    return document


def _counting(name: str, tokenizer: Any) -> CountMany:
    count, in_batch = tokenizer.count, getattr(tokenizer, "encode_batch", None)

    def one(text: str) -> int:
        if _LONG_S in text:
            return encodings.counting(name)(text)
        try:
            return int(count(text))
        except TypeError:  # lone surrogates
            return int(count(encodings.replace_surrogates(text)))

    def many(texts: Sequence[str]) -> list[int]:
        # One call for many short ones, as one for each costs as much as counting it; long ones gain nothing by it.
        joined = "".join(texts)
        if in_batch is None or len(joined) > _SHORT * len(texts) or _LONG_S in joined:
            return [*map(one, texts)]
        try:
            ends: list[int] = in_batch(texts, 1, False)[1].tolist()
        except TypeError:  # lone surrogates
            return [*map(one, texts)]
        return [end - start for start, end in pairwise(ends)]

    return many


def _plain(text: str) -> bool:
    return _LONG_S not in text and encodings.replace_surrogates(text) == text


def _wrong(name: str, count_many: CountMany) -> str:
    texts, counts = golden()["texts"], golden()["counts"][name]
    expected = dict(zip(texts, counts, strict=True))
    plain = [*filter(_plain, texts)]
    for batch in (plain, *([text] for text in texts), *([text, text] for text in texts)):
        for text, found in zip(batch, count_many(batch), strict=True):
            if found != expected[text]:
                return f"it found {found} tokens in {text[:40]!r}, where there are {expected[text]}"
    return ""
