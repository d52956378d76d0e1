"""Write ``data/encodings/golden.json``: strings that a tokenizer must count right, with tiktoken's counts.

    PYTHONPATH=. python scripts/build_golden.py

The strings are the short hostile cases of the tests and mixtures of them with words, the same at every run.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from budgetkit.counters.encodings import tokens
from tests.hostile import MIXED, SHORT

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "encodings" / "golden.json"
ENCODINGS = ("cl100k_base", "o200k_base", "o200k_harmony")
STRINGS = 320
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
    GOLDEN.write_text(json.dumps({"texts": texts, "counts": counts}) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
