r"""Filler: meaningless words with the same token counts as the originals.

Punctuation, blanks and line breaks are kept, so that lines, sentences, JSON and code keep their structure. Between
them, each sequence of letters and digits is replaced with filler that has the same token count in its context::

    'Dear Ms. Okafor, your order is A-1734.'  ->  'Q X. Xxxxxx a, xxxx x xx X-1111.'

Each name, such as a field's in JSON, gets filler of its own.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from itertools import count as counting

import regex

from budgetkit.budget import brief
from budgetkit.counters import Count
from budgetkit.requests.billing.openai import compact
from budgetkit.requests.reading.request import parsed

# Letters include pictographs, Braille, flags, invisible and private characters, and lone surrogates.
_LETTER = r"[\p{L}\p{M}\p{N}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{So}\p{Emoji_Modifier}]"
_WORD = regex.compile(rf"{_LETTER}+(?:['’]{_LETTER}+)*")
# In JSON, also an escaped surrogate, and any other escape (which is kept).
_JSON_PIECE = regex.compile(rf'\\u[0-9a-fA-F]{{4}}|\\[bfnrt"\\/]|{_WORD.pattern}')
# A string before a colon; any other string is skipped as a whole.
_KEY = regex.compile(r'"((?:[^"\\]|\\.)*+)(?:"(?=\s*+:)|"?(*SKIP)(*FAIL))')
_STAYS = {"true", "false", "null"}
_LETTERS = "xabcdefghijklmnopqrstuvwyz"
_BEFORE_NAMES = ("", " ", ".", '"', "\n")
# Other contexts of a word, by the character before it: the start of a description, and JSON, which escapes characters.
_ELSEWHERE = {
    "": (" ", '"', ":"),
    '"': ("",),
    "\n": (" ", "\\n"),
    "\r": ("\\r",),
    "\t": ("\\t",),
}
# Replacements for a single word, if the text's count is not the sum of its words' counts.
_OTHERS = (
    "x",
    "X",
    "a",
    "A",
    "xx",
    "Xx",
    "x a",
    "X a",
)
_MENDED = 16  # last words of a text to try with other replacements
_TRIED = 700  # names of the word's own length to try before shorter ones


@dataclass
class Filler:
    """A generator of filler text with the original's token counts."""

    count: Count
    words: dict[tuple[str, ...], str] = field(default_factory=dict)
    names: dict[tuple[str, ...], str] = field(default_factory=dict)
    # Used names by the preceding text.
    used: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    # Unused names for words of one kind.
    free: dict[Hashable, Iterator[str]] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """Replace the words of a text with filler.

        In JSON, field names stay distinct.
        """
        is_json = _is_json(text)
        pieces = _KEY.split(text) if is_json else [text]
        filler: list[str] = []
        for place, piece in enumerate(pieces):
            filler += (
                [f'"{self.name(piece, is_json)}"']
                if place % 2
                else _replaced(piece, self._word, is_json)
            )
        if self._sizes(whole := "".join(filler)) == self._sizes(text):
            return whole
        return self._mended(filler, text)

    def joined(self, filler: str, after: str, text: str) -> str:
        """Adjust the last filler word for the text that follows it.

        `after` is the filler that follows, and `text` is the original of both parts together. If no other word gives
        the same counts, the filler is returned unchanged.
        """
        *_, word = (None, *_WORD.finditer(filler))
        wanted = self._sizes(filler), self._sizes(text)
        # Providers join the parts of a message without a separator.
        if word and word.end() == len(filler) and self._sizes(filler + after) != wanted[1]:
            for name in chain(_short(1), _short(2)):
                for other in (name.capitalize(), name):
                    changed = filler[: word.start()] + other
                    if (self._sizes(changed), self._sizes(changed + after)) == wanted:
                        return changed
        return filler

    def name(self, name: str, is_json: bool = False) -> str:
        """Replace a name with unique filler."""
        return "".join(_replaced(name, self._named, is_json))

    def _word(self, word: str, before: str) -> str:
        if (filler := self.words.get((before, word))) is None:
            contexts = (before, *_ELSEWHERE.get(before[-1:], ()))
            short_words = (
                _cased(candidate, word)
                for candidate in chain(_short(1), _short(2), islice(_short(3), _TRIED))
            )
            candidates = chain([alike(word)], short_words) if word[0] != "\\" else _escapes()
            filler = next(self._fitting(self._counts(word, contexts), contexts, candidates, " a"))
            self.words[before, word] = filler
        return filler

    def _named(self, word: str, before: str) -> str:
        if (filler := self.names.get((before, word))) is None:
            contexts = (before,) if before else _BEFORE_NAMES
            used = self.used[before]
            wanted = self._counts(word, contexts)
            like = alike(word)
            kind = before, like, word[0] == "\\", *wanted
            if (free := self.free.get(kind)) is None:
                # Variants differ in the first three characters.
                choices = ("123456789" if letter.isdecimal() else _LETTERS for letter in like[:3])
                variants = ("".join(letters) + like[3:] for letters in product(*choices))
                near = islice(variants, _TRIED)
                candidates = (
                    chain(near, _short(2), islice(_short(3), 4 * _TRIED))
                    if word[0] != "\\"
                    else _escapes()
                )
                free = self.free[kind] = self._fitting(wanted, contexts, candidates, "_a")
            filler = self.names[before, word] = next(name for name in free if name not in used)
            used.add(filler)
        return filler

    def _counts(self, text: str, contexts: Sequence[str]) -> list[int]:
        return [self.count(context + text) for context in contexts]

    def _fitting(
        self, wanted: Sequence[int], contexts: Sequence[str], candidates: Iterable[str], more: str
    ) -> Iterator[str]:
        """Yield candidates with the wanted counts.

        Candidates that fit all contexts come first, then those that fit only the first context. Last come variants of
        one candidate with numbers added, and these may have other counts.
        """
        nearest = []
        for candidate in candidates:
            longer = candidate + more * max(0, wanted[0] - self.count(contexts[0] + candidate))
            if self._counts(longer, contexts) == wanted:
                yield longer
            elif self.count(contexts[0] + longer) == wanted[0]:
                nearest.append(longer)
        yield from nearest
        yield from (f"{candidate}{number or ''}" for number in counting())

    def _sizes(self, text: str) -> tuple[int, int, int]:
        """Count the tokens of a text in three forms.

        The forms are the text itself, its compact JSON, and a JSON list that contains it.
        """
        as_list = json.dumps([parsed(text)], ensure_ascii=False)
        return self.count(text), self.count(compact(text)), self.count(as_list)

    def _mended(self, pieces: list[str], text: str) -> str:
        """Change one filler word to correct the count of the whole text.

        If that fails, return other filler with the text's token count.
        """
        sizes = self._sizes(text)
        whole = "".join(pieces)
        # Try each line separately, which is quicker for long texts.
        if text.count("\n") > 1 and not _is_json(text):
            lines = [self.text(f"\n{line}") for line in text.split("\n")]
            if (
                all(line[:1] == "\n" for line in lines)
                and self._sizes(apart := "".join(lines)[1:]) == sizes
            ):
                return apart
        longer = " a" * (sizes[0] - self.count(whole))
        places = (at for at in range(len(pieces) - 2, 0, -1) if pieces[at][-1:].isalpha())
        for place in islice(places, _MENDED):
            for other in (pieces[place] + longer, *_OTHERS):
                changed = "".join([*pieces[:place], other, *pieces[place + 1 :]])
                if (changed_sizes := self._sizes(changed)) == sizes:
                    return changed
                if changed_sizes[0] == sizes[0] != self.count(whole):
                    whole = changed
        if self.count(whole) == sizes[0]:
            return whole

        # The words of the text cannot be replaced one by one.
        size = sizes[0]
        words = max(
            0, bisect_right(range(4 * size + 8), size, key=lambda n: self.count("a" + " a" * n)) - 1
        )
        fewer = range(words if _is_json(text) else 0)
        lists = (f'["{"a" * less}{" a" * (words - less)}"]' for less in fewer)
        for filler in (*lists, "", *("a" + " a" * words + "1" * more for more in range(24))):
            if self.count(filler) == size:
                return filler
        raise ValueError(
            f"Cannot make filler of {size:,} tokens with {brief(getattr(self.count, 'name', self.count))}. Redact with "
            "another counter, such as 'o200k_base' or 'chars/4'."
        )


def _replaced(text: str, replace: Callable[[str, str], str], is_json: bool) -> list[str]:
    """Return the pieces of a text with each word replaced.

    The words true, false and null are kept, and so are JSON's escapes of single characters.
    """
    pieces = []
    end = 0
    for match in (_JSON_PIECE if is_json else _WORD).finditer(text):
        before = text[max(0, match.start() - 2) : match.start()]
        if len(before) == 2 and before[0] == "\\":
            before = text[max(0, match.start() - 3) : match.start()]
        word = match[0]
        # A character that JSON escapes, such as a line break, stays.
        stays = word in _STAYS or (word[0] == "\\" and len(word) == 2)
        pieces += [text[end : match.start()], word if stays else replace(word, before)]
        end = match.end()
    return [*pieces, text[end:]]


def alike(word: str) -> str:
    """Replace letters and digits with others of the same kind.

    >>> alike("Zoë9"), alike("1e5")
    ('Xxé1', '1e1')
    """
    if word[:1].isdecimal() and regex.fullmatch(r"[0-9]+[eE][0-9]*", word):
        return regex.sub("[0-9]", "1", word)
    return "".join(map(_letter, word))


def _cased(filler: str, word: str) -> str:
    """Give filler the same capital letters as the original word."""
    if word.isupper():
        return filler.upper()
    if word[0].isupper():
        return filler.capitalize()
    return filler


def _letter(letter: str) -> str:
    if letter in "'’":
        return letter
    if letter.isascii():
        if letter.isdecimal():
            return "1"
        return "X" if letter.isupper() else "x"
    return ("é", "一", "𠀀")[len(letter.encode("utf-8", "surrogatepass")) - 2]


def _escapes() -> Iterator[str]:
    return (f"\\u{place:04x}" for place in range(0x1111, 0xD7FF))


def _short(length: int) -> Iterator[str]:
    return map("".join, product(_LETTERS, repeat=length))


def _is_json(text: str) -> bool:
    """Return True if a text is a JSON object or list."""
    return isinstance(parsed(text), dict | list)
