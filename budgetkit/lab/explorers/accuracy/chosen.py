"""CorpusSelection: which texts are looked at, and in what portions they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BATCH = 400_000  # characters counted between two reports


@dataclass(frozen=True, slots=True)
class CorpusSelection:
    """Which texts, cut to which length: what counts depend on beside the counter."""

    corpus: str
    pieces: int | None


def batches(texts: Sequence[str]) -> list[Sequence[str]]:
    """Cut a list of texts into lists of about so many characters.

    Examples
    --------
    >>> [len(batch) for batch in batches(["a" * 300_000] * 5)]
    [1, 1, 1, 2]
    """
    ends = np.cumsum([len(text) for text in texts]) // BATCH
    places = [*np.flatnonzero(np.diff(ends, prepend=ends[:1])).tolist(), len(texts)]
    return [texts[a:b] for a, b in zip([0, *places[:-1]], places, strict=True) if a < b]
