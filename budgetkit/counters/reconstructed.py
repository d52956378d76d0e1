"""Counts of Claude's tokens with ctok's reconstructed tokenizer.

ctok (MIT, the extra ``claude``) is unofficial. Its author reconstructed the tokenizer from the public endpoint that
counts tokens. Only this module imports ctok, and none of its code is copied here. ctok writes a text as a stream of
words with marks at their borders, and finds the fewest pieces of its vocabulary that cover the stream::

    "Hello, world"  ->  ^hello$ ,$ ^world$  ->  3 pieces         (^ a word begins, $ a word ends)

Two facts make counting fast enough for sliders. No piece mixes white space with other characters, and no piece crosses
the start or end of a word. A text can therefore be split at white space. The tokens of a chunk depend only on the chunk
and the adjacent blanks, so they are cached. Both facts are tested when a vocabulary is loaded. If a test fails, or if
ctok's internals have changed, ctok's public function counts instead.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby, pairwise
from typing import Any, Final

from budgetkit.budget.quoting import brief
from budgetkit.counters.memory import CountMemory
from budgetkit.counters.protocol import Basis, CounterBase, check_text, check_texts

CTOK: Final = "ctok"
_MEMORY_BYTES: Final = 32 * 2**20  # of whole texts
_MOST_CHUNKS: Final = 200_000  # in each cache
_LONG_CHUNK: Final = 200  # characters; a longer chunk rarely occurs twice
# Characters: in longer streams, long runs are shortened without changing the count (see `_shortened`).
_LONG_STREAM: Final = 20_000

_BLANKS: Final = " \t\n\u3000"  # all white space that is left in a normalised text
_SEAM: Final = re.compile(f"(?<=[^{_BLANKS}]) (?=[^{_BLANKS}])")
_BLANK_RUN: Final = re.compile(f"([{_BLANKS}]+)")
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_PLAIN_WORD: Final = re.compile(r"([A-Z]?)([a-z]+)([,.?!:;]?)")
_WORD_ENDS: Final = re.compile(r"(?<=[A-Za-z])(?=[0-9!-&(-/:-@\[-`{-~])")

# The left context of a chunk.
_OTHER = 0
_BLANK = 1
_MESSAGE = 2

# A text that exercises many of ctok's rules; counting by chunks must agree with ctok's public function.
_PROBE: Final = (
    "Hello, world! it's 12,345 of 'em \u2014 NASA\u2019s  caf\u00e9 na\u0308ive\n\n\t\u5b57\u5178\u3002 x=\"y\"; "
    "\u0661\u0662 \u00bd \u0e01\u0e33 \u2163 \U0001f600 \ufdd0 end \n\n\n"
)


@dataclass(frozen=True, slots=True)
class ReconstructedCounter(CounterBase):
    """A counter of Claude's tokens that uses ctok's reconstructed tokenizer.

    Create one with :func:`budgetkit.counter`; the extra ``claude`` must be installed.

    Parameters
    ----------
    model : str
        The model to count for.
    family : str
        ctok's version of the vocabulary: ``"3.0"``, ``"4.7"`` or ``"4.8"``.

    Examples
    --------
    >>> ReconstructedCounter("claude-haiku-4-5", "3.0").basis
    'reconstructed'
    """

    model: str
    family: str

    @property
    def basis(self) -> Basis:
        """The basis of the counts: always ``"reconstructed"``."""
        return "reconstructed"

    @property
    def name(self) -> str:
        """The name of the model and of its reconstructed tokenizer."""
        return f"{self.model} (reconstructed by ctok, family {self.family})"

    def __call__(self, text: str) -> int:
        """Count the tokens in one text, using the cache."""
        check_text(text, self)
        return _memory(self.family).count(text, rebuilt(self.family))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens in each of several texts."""
        texts = check_texts(texts, self)
        count = rebuilt(self.family)
        return _memory(self.family).count_many(texts, lambda new: [count(text) for text in new])


_memory = cache(lambda _: CountMemory(_MEMORY_BYTES))  # by family


@cache
def rebuilt(family: str) -> Callable[[str], int]:
    """Return a counting function for one tokenizer family.

    The function counts chunk by chunk, or calls ctok's public function if counting by chunks is not reliable.

    Raises
    ------
    ImportError
        If ctok is not installed.
    """
    ctok = import_module(CTOK)
    frame = ctok.tokenize("", family).count("\u27e8pad\u27e9")

    def public(text: str) -> int:
        return int(ctok.token_count(text, family)) - frame if text else 0

    try:
        tiling = _Tiling(family)
        probes = [_PROBE, *(_PROBE[start:] for start in range(0, len(_PROBE), 7))]
        agrees = all(tiling.count(probe) == public(probe) for probe in probes)
    except Exception:  # whatever has changed inside ctok
        agrees = False
    return tiling.count if agrees else public


@cache
def is_usable() -> bool:
    """Return True if ctok is installed and counts as expected."""
    if find_spec(CTOK) is None:
        return False
    try:
        counts = [
            import_module(CTOK).token_count("hello, world", family)
            for family in ("3.0", "4.7", "4.8")
        ]
    except Exception:  # another version may raise anything; an estimate is used instead
        return False
    return counts == [10, 15, 10]


class _Tiling:
    """A counter that splits texts into chunks, for one ctok family.

    A text is split into units at its single blanks, and a unit is split into chunks at all other blanks.

    The cost of a chunk is one number: the number of its pieces times 4, plus 2 if the chunk's stream begins with a word
    start, plus 1 if the stream ends with a word end. A single blank between a word end and a word start costs nothing.
    """

    def __init__(self, family: str) -> None:
        main = import_module(f"{CTOK}.main")
        constants = import_module(f"{CTOK}.constants")
        normalize = import_module(f"{CTOK}.normalize")
        model = main._model(main._family(family))

        self._begin = constants.BOW_G
        self._end = constants.EOW_G
        self._shift = constants.SHIFT_G
        self._cases = frozenset({constants.SHIFT_G, constants.CAPS_G})
        self._marks = constants.MARKER_GLYPHS

        self._normalized = normalize.nfc
        self._stream = normalize.stream_norm
        self._character_cost = import_module(f"{CTOK}.engine").char_cost
        self._model = model
        self._vocabulary = model.vocab
        self._backwards = model.trie.root  # from a piece's last character to its first
        self._complete = model.trie._END
        self._frame_begins_word = bool(model.frame_bow)
        self._longest = max(map(len, model.vocab))
        self._check()

        # caches of words, of chunks, and of units between two blanks
        remember = lru_cache(_MOST_CHUNKS)
        self._cached_tokens = remember(self._tokens)
        self._cached_cost = remember(self._cost)
        self._cached_unit = remember(lambda unit: self._unit(unit, _BLANK, right=True))

    def _check(self) -> None:
        """Raise ValueError if a piece crosses a position where texts are split."""
        blanks = frozenset(_BLANKS)
        for piece in self._vocabulary:
            mixed = not blanks.isdisjoint(piece) and bool(piece.strip(_BLANKS))
            begin = piece.find(self._begin)
            inner_begin = begin > 0 and not self._cases.issuperset(piece[:begin])
            if mixed or self._end in piece[:-1] or inner_begin:
                raise ValueError(f"Piece {brief(piece)} crosses a seam. Count with ctok itself.")

    def count(self, text: str) -> int:
        """Count the tokens in one text, without message framing."""
        if not text:
            return 0
        normal = self._normal(text)
        body = normal.rstrip("\n")

        # The frame ends in two line breaks of its own; pieces join them with the text's line breaks.
        breaks = len(normal) - len(body)
        total = self._tokens("\n" * (breaks + 2)) - 1 if breaks else 0

        # The frame's last mark absorbs a single leading blank; before anything but a word it is a separate token.
        if self._frame_begins_word:
            if text[0] == " " and body[:1] == " " and body[1:2] != " ":
                body = body[1:]
            if not body or body[0] in _BLANKS[1:]:
                total += 1
        if not body:
            return total

        units = _SEAM.split(body)
        costs = [self._unit(units[0], _MESSAGE, right=len(units) > 1)]
        for unit in units[1:-1]:
            if len(unit) > _LONG_CHUNK:
                costs.append(self._unit(unit, _BLANK, right=True))
            else:
                costs.append(self._cached_unit(unit))
        if len(units) > 1:
            costs.append(self._unit(units[-1], _BLANK, right=False))
        total += sum(cost >> 2 for cost in costs)
        # A blank is a token, unless a word ends before it and another begins after it.
        return total + sum(not (left & 1 and right & 2) for left, right in pairwise(costs))

    def _normal(self, text: str) -> str:
        """Normalise lines with non-ASCII or control characters, as ctok does."""
        if text.isascii() and _CONTROL.search(text) is None:
            return text
        fold = self._model.fold_quotes
        lines = text.split("\n")
        for index, line in enumerate(lines):
            if not line.isascii() or _CONTROL.search(line) is not None:
                # Sort long rows of marks here, because normalising would take quadratic time.
                marks_sorted = _many_marks().sub(lambda row: _sorted_row(row[0]), line)
                lines[index] = self._normalized(marks_sorted, fold_quotes=fold)
        return "\n".join(lines)

    def _unit(self, unit: str, left: int, right: bool) -> int:
        """Return the cost of a unit's chunks and the blanks between them."""
        parts = _BLANK_RUN.split(unit)
        if len(parts) == 1:
            return self._chunk(unit, left, right)

        # Chunks are at even positions, runs of blanks at odd ones.
        tokens = 0
        begins = 0
        ends = 0
        for place in range(0, len(parts), 2):
            chunk = parts[place]
            if place:
                run = parts[place - 1]
                tokens += self._tokens(run)
                left = _BLANK if run[-1] == " " else _OTHER
            ends = 0
            if not chunk:
                continue
            before_blank = right
            if place + 1 < len(parts):
                run = parts[place + 1]
                before_blank = run[0] == " " and run[1:2] != " "
            cost = self._chunk(chunk, left, before_blank)
            tokens += cost >> 2
            ends = cost & 1
            if place == 0:
                begins = cost & 2
        return tokens << 2 | begins | ends

    def _chunk(self, chunk: str, left: int, right: bool) -> int:
        """Return the cost of a chunk without blanks, using the cache."""
        if len(chunk) > _LONG_CHUNK:  # in parts, split where a word ends before a digit or sign
            cuts = [0]
            while (match := _WORD_ENDS.search(chunk, cuts[-1] + _LONG_STREAM)) is not None:
                cuts.append(match.end())
            last = len(chunk)
            costs = [
                self._cost(chunk[start:stop], _OTHER if start else left, right and stop == last)
                for start, stop in pairwise([*cuts, last])
            ]
            tokens = sum(cost >> 2 for cost in costs)
            return tokens << 2 | costs[0] & 2 | costs[-1] & 1
        return self._cached_cost(chunk, left, right)

    def _cost(self, chunk: str, left: int, right: bool) -> int:
        """Compute the cost of a chunk without blanks."""
        plain = _PLAIN_WORD.fullmatch(chunk)
        if plain is not None:
            capital, small, sign = plain.groups()
            tokens = self._cached_tokens(
                f"{self._shift if capital else ''}{self._begin}{capital.lower()}{small}{self._end}"
            )
            if not sign:
                return tokens << 2 | 3
            tokens += self._cached_tokens(sign + self._end if right else sign)
            return tokens << 2 | 2 | right

        # A tab before the chunk keeps ctok from treating it as the start of a message. The tab is removed again.
        before = {_OTHER: "\t", _BLANK: "\t ", _MESSAGE: ""}[left]
        after = " \t" if right else ""
        stream = self._stream(before + chunk + after, self._model, raw_head_space=False)
        written_before = len(before) + (1 if before and self._frame_begins_word else 0)
        stream = stream[written_before : len(stream) - len(after)]
        opening = stream.lstrip("".join(self._cases))[:1]
        begins = 2 if opening == self._begin else 0
        ends = 1 if stream[-1:] == self._end else 0
        return self._tokens(stream) << 2 | begins | ends

    def _tokens(self, stream: str) -> int:
        """Return the smallest number of pieces that cover a stream."""
        if stream in self._vocabulary:
            return 1
        saved = 0
        if len(stream) > _LONG_STREAM:
            stream, saved = self._shortened(stream)

        # fewest[i] covers the first i characters. Of "ab" with pieces a, b, ab: [0], [0, 1], [0, 1, 1].
        fewest = [0]
        complete = self._complete
        for end, character in enumerate(stream):
            node = self._backwards.get(character)
            is_piece = node is not None and complete in node
            least = fewest[end] + 1
            if not is_piece and character not in self._marks:
                least = fewest[end] + int(self._character_cost(self._model, character))
            start = end - 1
            while node is not None and start >= 0:
                node = node.get(stream[start])
                if node is None:
                    break
                if complete in node and fewest[start] + 1 < least:
                    least = fewest[start] + 1
                start -= 1
            fewest.append(least)
        return saved + fewest[-1]

    def _shortened(self, stream: str) -> tuple[str, int]:
        """Remove whole pieces from long runs, and count the removed pieces.

        A run repeats one character. Let m be the length of the longest piece made only of that character. Among m
        shorter pieces, the lengths of some adjacent pieces add up to a multiple of m, and pieces of length m can
        replace them. So fewer than m shorter pieces are needed, and a run longer than m x m, plus a piece at either
        edge, contains a piece of length m. Removing that piece leaves a text that needs one piece fewer.
        """
        parts = []
        taken = 0
        for character, members in groupby(stream):
            length = sum(1 for _ in members)
            runs = (
                size for size in range(self._longest, 1, -1) if character * size in self._vocabulary
            )
            unit = next(runs, 1)  # the longest piece made of this character
            edge = unit * unit + 2 * self._longest
            if length > edge + unit:
                pieces = (length - edge) // unit
                length -= pieces * unit
                taken += pieces * (1 if unit > 1 else self._tokens(character))
            parts.append(character * length)
        return "".join(parts), taken


@cache
def _many_marks() -> Any:
    """Return a pattern for a long row of combining marks.

    The library that the pattern needs is imported at the first count.
    """
    import regex  # takes 20 ms, so it is imported only for counting

    return regex.compile(r"\p{M}{64,}")


def _sorted_row(row: str) -> str:
    # Marks are sorted by class, but never across a mark of class 0.
    marks = "".join(unicodedata.normalize("NFD", mark) for mark in row)
    runs = groupby(marks, lambda mark: unicodedata.combining(mark) > 0)
    return "".join(mark for _, run in runs for mark in sorted(run, key=unicodedata.combining))
