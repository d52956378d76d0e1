"""Tokens as an encoding really makes them: tiktoken's count of any string.

Text that looks like a special token, such as ``<|endoftext|>``, is counted as ordinary text. Lone surrogates are
replaced as tiktoken replaces them. A million blanks in a row, which tiktoken refuses, are counted piece by piece. An
encoding is exact for the models that use it. For another model it stands in, and the counter's name says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

from budgetkit.counters import batches, encodings
from budgetkit.counters.accelerated import LEAST, for_work
from budgetkit.counters.basis import Basis
from budgetkit.counters.memory import CountMemory
from budgetkit.counters.protocol import check_text, check_texts
from budgetkit.counters.seams import LARGE, parts
from budgetkit.counters.stretches import count_seamless
from budgetkit.counters.threads import counted_in_threads

__all__ = ["MEMORY_BYTES", "ExactCounter", "counted", "memory"]

#: What the remembered counts of one encoding may take: a few hundred thousand messages.
MEMORY_BYTES = 64 * 2**20


@cache
def memory(encoding: str) -> CountMemory:
    """Return what is remembered of one encoding's counts, for whoever wants to look or to forget."""
    return CountMemory(MEMORY_BYTES)


def counted(
    encoding: str, texts: Sequence[str], one_thread: bool = False, ahead: int = 0
) -> list[int]:
    """Count texts anew, the fastest way for them and for as many code points as lie ahead."""
    if max(map(len, texts), default=0) > 2 * LARGE:
        seamless = {text: count_seamless(encoding, text) for text in texts if len(text) > 2 * LARGE}
        sizes = iter(
            counted(encoding, [text for text in texts if text not in seamless], one_thread, ahead)
        )
        return [seamless[text] if text in seamless else next(sizes) for text in texts]
    if one_thread:
        return batches.counting_many(encoding)(texts)
    characters = sum(map(len, texts))
    if faster := for_work(encoding, characters, ahead):
        return faster(texts)
    return counted_in_threads(batches.counting_many(encoding), texts)


@dataclass(frozen=True, slots=True)
class ExactCounter:
    """Count tokens as one encoding makes them.

    Made by :func:`budgetkit.counter`. Nothing is loaded before the first count.

    Parameters
    ----------
    encoding : str
        Name of a shipped encoding, such as ``"o200k_base"``.
    model : str, optional
        The model that is counted for.
    stand_in : bool
        Whether the encoding is not the model's own.

    Examples
    --------
    >>> ExactCounter("o200k_base")("Hello world")
    2
    >>> ExactCounter("o200k_base", model="some-model", stand_in=True).name
    'some-model (o200k_base stands in)'
    """

    encoding: str
    model: str | None = None
    stand_in: bool = False

    @property
    def exact(self) -> bool:
        """Whether this is the number that the model itself would count."""
        return not self.stand_in

    @property
    def basis(self) -> Basis:
        """What its number rests on: the maker's own encoding, or another's that stands in."""
        return "exact" if self.exact else "estimate"

    @property
    def name(self) -> str:
        """The model or encoding, and whether another's encoding stands in."""
        if self.stand_in:
            note = f" ({self.encoding} stands in)"
        else:
            note = ""
        return f"{self.model or self.encoding}{note}"

    def __call__(self, text: str) -> int:
        """Count one text, in tokens; a text counted before is remembered."""
        if type(text) is not str:
            check_text(text, self)
        if len(text) >= LEAST:
            return self.many([text])[0]
        return memory(self.encoding).count(text, encodings.counting(self.encoding))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count several texts, in tokens each; on several threads, each new text once."""
        check_texts(texts, self)
        for text in () if {*map(type, texts)} <= {str} else texts:
            check_text(text, self)
        if max(map(len, texts), default=0) <= LARGE:
            return self._counted(texts)
        cut = [[*parts(text)] if len(text) > LARGE else [text] for text in texts]
        sizes = iter(self._counted([part for pieces in cut for part in pieces]))
        return [sum(next(sizes) for _ in pieces) for pieces in cut]

    def _counted(self, texts: Sequence[str]) -> list[int]:
        return memory(self.encoding).count_many(texts, partial(counted, self.encoding))

    def fresh(self, text: str) -> int:
        """Count one text without the memory of counts; for callers that try many texts only once.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        int
            In tokens; adds up at seams.

        Examples
        --------
        >>> ExactCounter("o200k_base").fresh("Hello world")
        2
        """
        if len(text) > LARGE:
            return sum(counted(self.encoding, [*parts(text)], one_thread=True))
        return encodings.counting(self.encoding)(text)

    def tokens(self, text: str) -> list[int]:
        """Encode a text.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        list of int
            Token numbers; as many as the counter counts.

        Examples
        --------
        >>> ExactCounter("o200k_base").tokens("Hello world")
        [13225, 2375]
        """
        return encodings.tokens(self.encoding, text)

    def pieces(self, text: str) -> list[bytes]:
        """Cut a text into its tokens.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        list of bytes
            The UTF-8 bytes of each token. Joined they are the text; one alone may be a part of a character.

        Examples
        --------
        >>> ExactCounter("o200k_base").pieces("Tokens aren't words")
        [b'Tokens', b" aren't", b' words']
        """
        return encodings.encoding(self.encoding).decode_tokens_bytes(self.tokens(text))
