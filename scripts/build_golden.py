"""Write ``data/encodings/golden.json``: strings that a tokenizer must count right, with tiktoken's counts.

    PYTHONPATH=. python scripts/build_golden.py

The strings are the short hostile cases of the tests and mixtures of them with words, the same at every run. The
characters are all that tiktoken's version of Unicode assigns, but for those of the two planes of private use; what
tiktoken makes of them in each context is kept as a digest.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

from budgetkit.counters.encodings import characters, tokens
from budgetkit.counters.speed import in_contexts, tokens_digest
from tests.hostile import MIXED, SHORT

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "encodings" / "golden.json"
ENCODINGS = ("cl100k_base", "o200k_base", "o200k_harmony")
STRINGS = 320
CONTEXTS = ["{}'s", "a{}B'S", "1{}1", " {}x", "!{}"]
PRIVATE = 0xF0000
WORDS = (
    "the",
    "I'd",
    "We'LL",
    "return",
    "naïve",
    "слово",
    "語",
    "한국어",
    "ไทย",
    "🎉",
    "  ",
    "\n",
    "\t",
    "123",
    "_x1",
    "{}",
)


def main() -> None:
    """Make the strings and count them."""
    chance = random.Random(20261121)
    texts = list(dict.fromkeys(SHORT))
    while len(texts) < STRINGS:
        words = chance.choices([*WORDS, *SHORT, *MIXED], k=chance.randint(2, 12))
        texts.append(chance.choice(("", " ", "  ", "\n")).join(words))
    counts = {name: [len(tokens(name, text)) for text in texts] for name in ENCODINGS}
    document: dict[str, Any] = {
        "texts": texts,
        "counts": counts,
        "characters": assigned(),
        "contexts": CONTEXTS,
    }
    document["digests"] = {
        name: {
            context: tokens_digest(tokens(name, text)) for context, text in in_contexts(document)
        }
        for name in ENCODINGS
    }
    GOLDEN.write_text(json.dumps(document) + "\n", encoding="ascii")


def assigned() -> list[str]:
    """Give the first and the last of each row of characters that tiktoken does not take for unassigned."""
    rows = re.findall(r"\\U(\w{8})-\\U(\w{8})", characters(r"[^\p{Cn}\p{Cs}]"))
    kept = [(int(first, 16), int(last, 16)) for first, last in rows if int(first, 16) < PRIVATE]
    return [chr(first) + (chr(last) if last > first else "") for first, last in kept]


if __name__ == "__main__":
    main()
