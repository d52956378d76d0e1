"""near_duplicates(): messages and passages that say again what stands there already, found before they are budgeted.

    similarity = 1 - insertions and deletions / length of both

which is 1.0 for equal texts. Each item is compared with the earlier ones that repeat nothing themselves, and of these
only with those that share enough pieces of q characters. For a deletion takes at most q pieces out of a text and an
insertion breaks at most q - 1 (E. Ukkonen, "Approximate string-matching with q-grams and maximal matches", 1992), so
two texts of so many characters together, that are as similar as is asked, have at least so many pieces in common:

    together / 2 * (1 - (2 q - 1) * (1 - similarity)) - q + 1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.files import extra
from budgetkit.message import Message
from budgetkit.plan.items import Item


def near_duplicates(
    items: Sequence[Item], at_least: float = 0.9, from_tokens: int = 16
) -> pd.DataFrame:
    """Find items whose text is nearly that of an earlier one.

    Parameters
    ----------
    items : sequence of Item
        What stands to be kept, in order, each with a text or a message as its payload, as :meth:`Trace.items` gives.
    at_least : float
        Least similarity, above 0 and at most 1.
    from_tokens : int
        Items smaller than this, in tokens, are left alone: "thank you" may be said twice.

    Returns
    -------
    DataFrame
        One row a near-duplicate: item and of (indices in the list; the earlier one), section, similarity (float64),
        tokens (int64; saved where it is left out) and paired (bool; a tool call or its result, which cannot leave
        without the other).

    Raises
    ------
    ValueError
        If the similarity is out of its range.
    ImportError
        If rapidfuzz is not installed.

    Examples
    --------
    >>> import budgetkit as bk
    >>> said = ["Refunds are paid back in five days.", "Parcels leave at noon.", "Refunds are paid in five days."]
    >>> items = [bk.Item("retrieval", 9, payload=text) for text in said]
    >>> near_duplicates(items, from_tokens=5)[["item", "of", "similarity", "tokens"]].round(2).values.tolist()
    [[2.0, 0.0, 0.92, 9.0]]
    """
    if not 0 < at_least <= 1:
        raise ValueError(
            f"near-duplicates from a similarity of {at_least}; it is above 0 and at most 1; give 0.9, say"
        )
    with extra("duplicates", "finding near-duplicates"):
        from rapidfuzz import fuzz, process
    texts = dict(_texts(items, from_tokens))
    places = list(texts)
    originals: dict[int, str] = {}
    rows = []
    for (index, text), near in zip(
        texts.items(), _near(list(texts.values()), at_least), strict=True
    ):
        earlier = {places[at]: originals[places[at]] for at in near if places[at] in originals}
        match = process.extractOne(text, earlier, scorer=fuzz.ratio, score_cutoff=100 * at_least)
        if match is None:
            originals[index] = text
        else:
            item = items[index]
            rows.append(
                (index, match[2], item.section, match[1] / 100, item.tokens, item.group is not None)
            )
    types = {
        "item": "int64",
        "of": "int64",
        "similarity": "float64",
        "tokens": "int64",
        "paired": "bool",
    }
    return pd.DataFrame(
        rows, columns=["item", "of", "section", "similarity", "tokens", "paired"]
    ).astype(types)


def _texts(items: Sequence[Item], from_tokens: int) -> Iterator[tuple[int, str]]:
    """Give the text of each item that has one and is large enough."""
    for index, item in enumerate(items):
        if isinstance(item.payload, Message):
            text = item.payload.text
        else:
            text = item.payload
        if isinstance(text, str) and text and item.tokens >= from_tokens:
            yield index, text


def _near(texts: Sequence[str], at_least: float) -> Iterator[list[int]]:
    """Give for each text the earlier ones that share enough pieces with it to be so similar, and a few more.

    >>> list(_near(["Parcels leave at noon.", "Refunds take five days.", "Parcels leave at noon!"], 0.9))
    [[], [], [0]]
    """
    apart = 1 - at_least
    # The longest with which the share stays well above 0.
    length = max(1, min(8, int(0.35 / max(apart, 0.04) + 0.5)))
    share = (1 - (2 * length - 1) * apart) / 2
    sizes = np.array([len(text) for text in texts])
    pieces_and_times = [np.unique(_pieces(text, length), return_counts=True) for text in texts]
    # An index: each piece gets a number, and each number the places of the texts that hold the piece.
    all_pieces = np.concatenate(
        [np.zeros(0, np.uint64), *(pieces for pieces, _ in pieces_and_times)]
    )
    numbers = np.unique(all_pieces, return_inverse=True)[1]
    of_text = np.repeat(np.arange(len(texts)), [len(pieces) for pieces, _ in pieces_and_times])
    holders = of_text[np.argsort(numbers, kind="stable")]
    spread = np.bincount(numbers)
    starts = np.cumsum(spread) - spread
    ends = np.cumsum([len(pieces) for pieces, _ in pieces_and_times])
    for place, ((_, times), end) in enumerate(zip(pieces_and_times, ends, strict=True)):
        piece_numbers = numbers[end - len(times) : end]
        order = np.argsort(-spread[piece_numbers], kind="stable")
        # 1 less than the formula: similarities are rounded.
        needed = share * (sizes[:place] + sizes[place]) - length
        # The pieces that most texts hold are taken as shared, as long as enough must be shared beside them.
        least = share * 2 * sizes[place] / (1 + apart) - length
        common = np.searchsorted(np.cumsum(times[order]), 0.5 * least)
        taken = int(times[order[:common]].sum())
        rare = order[common:]
        many = spread[piece_numbers[rare]]
        at = np.repeat(starts[piece_numbers[rare]] - np.cumsum(many) + many, many) + np.arange(
            many.sum()
        )
        shared = np.bincount(holders[at], np.repeat(times[rare], many), len(texts))[:place]
        yield np.flatnonzero(shared + taken >= needed).tolist()


def _pieces(text: str, length: int) -> npt.NDArray[np.uint64]:
    """Give a number for each piece of so many characters; that two pieces share one does no harm."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    if len(points) < length:
        return points[:0]
    numbers = np.zeros(len(points) - length + 1, np.uint64)
    for at in range(length):
        numbers = numbers * np.uint64(1_000_003) + points[at : at + len(numbers)]
    return numbers
