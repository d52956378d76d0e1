"""Text that has broken tokenizers, parsers and views: what every reader of text here is held against.

Each case is made, not stored. The largest are made by functions of their own, so that a test takes them by name.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from io import RawIOBase

from hypothesis import strategies as st

#: A million of each in a row: letters, marks, digits, blanks, syllables without spaces, emoji, controls.
RUNS = (
    *("a", "Z", "0", " ", "\n", "\t", "\r", "=", ".", "/", "'", '"', "<", "\\", "-"),
    *("\x00", "\u00a0", "é", "\u0301", "\u200d", "的", "ก", "한", "🎉", "\u202e"),
)
MILLION = 1_000_000

SPECIAL = (
    *("<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|im_start|>", "<|end|>"),
    *("<|endoftext", "|>"),
)
CONTRACTIONS = (
    *("'s", "'S", "'\u017f", "'ll", "'LL", "'re", "\u2019s", "''t", "don't", "DON'T", "l'été"),
)
CLUSTERS = (
    *(
        "e\u0301",
        "e" + "\u0301" * 40,
        "👩‍👩‍👧‍👦",
        "👩🏽‍🚀",
        "🏳️‍🌈",
        "🇩🇰",
        "🇩🇰🇩",
        "क्ष",
        "กำ",
        "각",
        "\r\n",
        "ﷺ",
    ),
    *("\u1112\u1161\u11ab", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞"),
)
BIDI = (
    *("\u202ehidden\u202c", "\u2066isolated\u2069", "abc\u202e\u2066"),
    *("שלום \u200fעולם", "مرحبا\u061c!"),
)
ODD = (
    *(
        "\x00",
        "\x00" * 9,
        "\ufeff",
        "a\ufeffb",
        "\ufffe",
        "\uffff",
        "\U0010ffff",
        "\x1c",
        "\x85",
        "\u2028",
        "\u180e",
    ),
    *(
        *("\ud800", "\udc00", "\ud83d", "\ude00", "\ude00\ud83d", "a\ud83d b"),
        *("\ud83d\ud83d\ude00", "\x7f", "\x1b[31m"),
    ),
)
MARKUP = (
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "javascript:alert(1)"),
    *("${7*7}", "{{7*7}}", "%s%n"),
)
MIXED = (
    "Hello, мир, 世界, 안녕, שלום, नमस्ते, สวัสดี!",
    "function f(){return '的'.repeat(3)}//ок",
    "１２３ⅷ½³ ǅ ﬁ ẞß İı ΣΣς",
    "a,b;c:d、e。f，g！h？i",
    " \t \r\n\r \n  x  \n",
    "0123456789" * 7,
    "    " * 30 + "}",
    "A" * 300 + " " + "=" * 80 + "\n",
    "aGVsbG8gd29ybGQ=" * 20,
)
#: Every short case; each is also worth meeting in the middle of others.
SHORT = ("", *SPECIAL, *CONTRACTIONS, *CLUSTERS, *BIDI, *ODD, *MARKUP, *MIXED)

#: Any string that Python can hold, lone surrogates among them.
any_text = st.text(st.characters(codec=None, exclude_categories=()))
#: Hostile cases, blanks, letters and any characters, mixed in any order.
hostile_text = st.lists(
    st.sampled_from(
        [*SHORT, " ", "  ", "\n", "word", "Word", "7", "1234", "的", "。", ",", "'", "_"]
    )
    | any_text.map(lambda text: text[:4]),
    max_size=40,
).map("".join)


def long_text(size: int, seed: int = 20261121) -> str:
    """Mix every short case and ordinary words to at least `size` characters, the same for the same seed."""
    chance = random.Random(seed)
    words = [
        *("the", "of", "return", "self", "naïve", "слово", "語", "。", "\n", "\n\n", "42", "{"),
        *("}", "    ", "x=1"),
    ]
    made, length = [], 0
    while length < size:
        made.append(chance.choice(SHORT) if chance.random() < 0.05 else chance.choice(words))
        made.append(" " if chance.random() < 0.8 else "")
        length += len(made[-1]) + len(made[-2])
    return "".join(made)


def one_line(megabytes: int) -> bytes:
    """Make one conversation whose only message is a line of that many megabytes."""
    said = b"All of it stands on one line. "
    content = said * (megabytes * 1_000_000 // len(said) + 1)
    return b'{"messages": [{"role": "user", "content": "' + content + b'"}]}\n'


def deep_json(depth: int) -> Iterator[str]:
    """Give JSON nested so deep in each of the ways in which it can be."""
    yield "[" * depth
    yield "[" * depth + "]" * depth
    yield '{"messages":' * depth
    yield '{"a":' * depth + "1" + "}" * depth


class Padding(RawIOBase):
    """A file of blanks, a gigabyte or more, without the memory or the disk: `read_so_far` says how far one went."""

    def __init__(self, size: int, start: bytes = b"", fill: bytes = b" ") -> None:
        self.size, self.start, self.fill, self.read_so_far, self.name = (
            size,
            start,
            fill,
            0,
            "padding.jsonl",
        )

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.read_so_far

    def seek(self, offset: int, whence: int = 0) -> int:
        self.read_so_far = offset + {0: 0, 1: self.read_so_far, 2: self.size}[whence]
        return self.read_so_far

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        size = max(0, min(len(view), self.size - self.read_so_far))
        head = self.start[self.read_so_far : self.read_so_far + size]
        view[:size] = head + self.fill * (size - len(head))
        self.read_so_far += size
        return size
