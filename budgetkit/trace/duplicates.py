"""near_duplicates(): messages and passages that say again what stands there already, found before they are budgeted.

    similarity = 1 - insertions and deletions / length of both

which is 1.0 for equal texts. Each item is compared with the earlier ones that repeat nothing themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from budgetkit.files import extra
from budgetkit.message import Message
from budgetkit.plan.item import Item

__all__ = ["near_duplicates"]


def near_duplicates(items: Sequence[Item], at_least: float = 0.9, from_tokens: int = 16) -> pd.DataFrame:
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
        raise ValueError(f"near-duplicates from a similarity of {at_least}; it is above 0 and at most 1; give 0.9, say")
    with extra("duplicates", "finding near-duplicates"):
        from rapidfuzz import fuzz, process
    own: dict[int, str] = {}
    rows = []
    for index, item in enumerate(items):
        text = item.payload.text if isinstance(item.payload, Message) else item.payload
        if not isinstance(text, str) or not text or item.tokens < from_tokens:
            continue
        found = process.extractOne(text, own, scorer=fuzz.ratio, score_cutoff=100 * at_least)
        if found is None:
            own[index] = text
        else:
            rows.append((index, found[2], item.section, found[1] / 100, item.tokens, item.group is not None))
    types = {"item": "int64", "of": "int64", "similarity": "float64", "tokens": "int64", "paired": "bool"}
    return pd.DataFrame(rows, columns=["item", "of", "section", "similarity", "tokens", "paired"]).astype(types)
