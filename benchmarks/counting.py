"""Counting: one large document, 10,000 messages, a conversation that grew, beside tiktoken and other counters."""

from __future__ import annotations

import os
import random
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.measure import Row, interleaved, rows_beside
from budgetkit import files
from budgetkit.counters import ExactCounter, encodings, speed
from budgetkit.counters.exact import memory

ENCODING = "o200k_base"
CHARACTERS = 2_000_000
MESSAGES = 10_000
IN_A_ROW = 3
BASELINE = "tiktoken, len(encode)"
OWN, FASTER, AGAIN = (
    "budgetkit",
    "budgetkit, with gigatoken",
    "budgetkit, with gigatoken, words seen before",
)
UNSEEN = 500_000
#: How many times as fast as tiktoken with so many cores, and with the faster tokenizer.
ON_CORES = {1: 0.95, 2: 1.6, 3: 1.6}
TARGETS = {OWN: ON_CORES.get(len(os.sched_getaffinity(0)), 2.2), FASTER: 4.0, AGAIN: 8.0}


def rows(repeats: int = 11) -> Iterator[Row]:
    """Give each counter's time and how many times as fast as tiktoken it is; different counts are said.

    Each is run several times in a row, as somebody does who counts many: a single run among those of others finds
    its tables gone from the processor's caches. gigatoken remembers the words that it saw, so the same text again is
    one thing, and documents that are counted once are another.
    """
    text = document()
    yield from _beside("a document of 2 million characters", [text], repeats)
    yield from _unseen(document(10**9)[CHARACTERS:])
    yield from _beside(f"{MESSAGES:,} messages", messages(text), repeats)
    yield from _grown(messages(text))


def document(characters: int = CHARACTERS) -> str:
    """Join code and prose that are on every machine, the same on machines with the same Python."""
    library = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    corpora = [
        files.data_path(name) for name in files.data_files("corpora") if name.endswith(".txt")
    ]
    parts = [path.read_text(encoding="utf-8", errors="replace") for path in (*corpora, *library)]
    random.Random(20261121).shuffle(parts)
    return "".join(parts)[:characters]


def messages(text: str, number: int = MESSAGES) -> list[str]:
    """Cut a text into messages of 50 to 350 characters."""
    chance, found, start = random.Random(20261121), [], 0
    while len(found) < number:
        size = chance.randint(50, 350)
        found.append(text[start : start + size] or "the end")
        start += size
    return found


def _beside(group: str, texts: list[str], repeats: int) -> Iterator[Row]:
    built = encodings.encoding(ENCODING)
    ways: dict[str, Callable[[], list[int]]] = {
        BASELINE: lambda: [len(built.encode(text, disallowed_special=())) for text in texts],
        OWN: partial(_fresh, texts),
        "budgetkit, counted before": lambda: ExactCounter(ENCODING).many(texts),
    }
    if speed.accelerated(ENCODING) is not None:
        ways[AGAIN] = partial(_fresh, texts, faster=True)
    ways |= _litellm(texts) | _langchain(texts) | _tokenizers(texts)
    exact, found = ways[BASELINE](), {name: way() for name, way in ways.items()}
    notes = {name: _note(exact, counted) for name, counted in found.items()}
    yield from rows_beside(group, interleaved(ways, repeats, IN_A_ROW), BASELINE, TARGETS, notes)


def _unseen(text: str) -> Iterator[Row]:
    """Count documents, each of them once in every way."""
    built = encodings.encoding(ENCODING)
    ways: dict[str, Callable[[str], object]] = {
        BASELINE: lambda text: built.encode(text, disallowed_special=()),
        OWN: lambda text: _fresh([text]),
    }
    if speed.accelerated(ENCODING) is not None:
        ways[FASTER] = lambda text: _fresh([text], faster=True)
    documents = [text[at : at + UNSEEN] for at in range(0, len(text) - UNSEEN + 1, UNSEEN)]
    cases = {name: partial(next, map(way, documents)) for name, way in ways.items()}
    found = interleaved(cases, len(documents) - 1)
    yield from rows_beside(
        f"documents of {UNSEEN:,} characters, counted once", found, BASELINE, TARGETS, {}
    )


def _fresh(texts: list[str], faster: bool = False) -> list[int]:
    """Count as if for the first time."""
    memory(ENCODING).forget()
    if faster:
        return ExactCounter(ENCODING).many(texts)
    with mock.patch.object(speed, "accelerated", return_value=None):
        return ExactCounter(ENCODING).many(texts)


def _note(exact: list[int], counted: list[int]) -> str:
    if counted == exact:
        return "same counts"
    return f"{100 * (sum(counted) / sum(exact) - 1):+.2f} % of tokens"


def _grown(texts: list[str]) -> Iterator[Row]:
    """Count a conversation of 10,000 messages again and again, each time with two messages more."""
    built, number = encodings.encoding(ENCODING), iter(range(10**9))
    counter = ExactCounter(ENCODING)
    counter.many(texts)

    def grow() -> list[int]:
        texts.extend((f"and what of {next(number)}?", "That depends on the budget."))
        return counter.many(texts)

    ways: dict[str, Callable[[], Any]] = {
        BASELINE: lambda: [len(built.encode(text, disallowed_special=())) for text in texts],
        "budgetkit": grow,
    }
    yield from rows_beside("a conversation grown by a turn", interleaved(ways, 5), BASELINE, {}, {})


def _litellm(texts: list[str]) -> dict[str, Callable[[], list[int]]]:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network first
    try:
        from litellm import token_counter
    except ImportError:
        return {}
    return {
        "litellm, token_counter": lambda: [token_counter("gpt-4o", text=text) for text in texts]
    }


def _langchain(texts: list[str]) -> dict[str, Callable[[], list[int]]]:
    try:
        from langchain_core.messages import HumanMessage
        from langchain_core.messages.utils import count_tokens_approximately as approximately
    except ImportError:
        return {}
    said = [HumanMessage(text) for text in texts]
    return {"langchain-core, approximately": lambda: [approximately([message]) for message in said]}


def _tokenizers(texts: list[str]) -> dict[str, Callable[[], list[int]]]:
    try:
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    except ImportError:
        return {}
    built = encodings.encoding(ENCODING)
    letters = dict(zip(range(256), _byte_letters(), strict=True))
    ranks = built._mergeable_ranks

    def written(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    vocabulary = {written(token): rank for token, rank in ranks.items()}
    by_rank = sorted((token for token in ranks if len(token) > 1), key=ranks.__getitem__)
    merges = [
        tuple(map(written, parts)) for token in by_rank if len(parts := _merged(ranks, token)) == 2
    ]
    model = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    split = pre_tokenizers.Split(Regex(built._pat_str), "isolated")
    model.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    model.decoder = decoders.ByteLevel()
    return {
        "tokenizers, encode_batch": lambda: [len(each) for each in model.encode_batch_fast(texts)]
    }


def _merged(ranks: dict[bytes, int], token: bytes) -> list[bytes]:
    """Split a token into the two that it is merged from."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        pairs = [(ranks.get(parts[i] + parts[i + 1], 10**9), i) for i in range(len(parts) - 1)]
        rank, i = min(pairs)
        if rank >= ranks[token]:
            break
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def _byte_letters() -> Iterator[str]:
    """Give the letter that stands for each byte in byte-level vocabularies (GPT-2's table)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unseen = iter(range(256, 512))
    for byte in range(256):
        yield chr(byte if byte in shown else next(unseen))
