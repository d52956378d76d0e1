"""Which of some texts a question asks for, by the words they share.

    score(text) = sum over words of the question of idf x tf (k + 1) / (tf + k (1 - b + b length / mean length))
    idf         = ln(1 + (n - df + 0.5) / (df + 0.5))

BM25 with k = 1.5 and b = 0.75 (S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
2009). A word is a run of letters and digits; where a script writes no gaps, a character.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import regex

Floats = npt.NDArray[np.float64]
_WORD: Final = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]|[\p{L}\p{M}\p{N}_]+", regex.V1
)
_K, _B = 1.5, 0.75


def words_of(text: str) -> list[str]:
    """Return the words of a text.

    Examples
    --------
    >>> words_of("Where is A-1734?"), words_of("在哪里")
    (['where', 'is', 'a', '1734'], ['在', '哪', '里'])
    """
    return [word.casefold() for word in _WORD.findall(text)]


class Index:
    """Texts by their words; of a growing list, any beginning can be asked.

    Examples
    --------
    >>> index = Index(["the parcel is late", "thank you", "which parcel"])
    >>> index.scores("my parcel", 2).round(2).tolist(), index.scores("my parcel", 3).round(2).tolist()
    ([0.6, 0.0], [0.38, 0.0, 0.53])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        found: dict[str, tuple[list[int], list[int]]] = {}
        lengths = []
        for number, text in enumerate(texts):
            words = words_of(text)
            lengths.append(len(words))
            for word, often in Counter(words).items():
                places, times = found.setdefault(word, ([], []))
                places.append(number)
                times.append(often)
        self._lengths = np.array(lengths, dtype=np.float64)
        self._found = {word: (np.array(places), np.array(times, float)) for word, (places, times) in found.items()}

    def scores(self, question: str, first: int) -> Floats:
        """Return a score for each of the first texts, 0 where no word is shared."""
        lengths = self._lengths[:first]
        total = np.zeros(first)
        if not first:
            return total
        long = _K * (1 - _B + _B * lengths / max(float(lengths.mean()), 1.0))
        for word in set(words_of(question)) & self._found.keys():
            places, times = self._found[word]
            known = int(np.searchsorted(places, first))
            at, often = places[:known], times[:known]
            rare = np.log(1 + (first - known + 0.5) / (known + 0.5))
            total[at] += rare * often * (_K + 1) / (often + long[at])
        return total
