"""Charge: one thing that a request bills, as texts still to be counted and tokens that are known.

    tokens = fixed + times * (texts, counted - texts that others have counted already)

Rules of all providers end in charges, so a message's size, a request's total and its ledger cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from budgetkit.counters import count_of
from budgetkit.counters.given import checked

Count = Callable[[str], int] | str


@dataclass(frozen=True, slots=True)
class Charge:
    """Hold one thing that a request bills.

    Parameters
    ----------
    kind : str
        ``"framing"``, ``"message"``, ``"image"``, ``"media"``, ``"tools"``, ``"answer schema"`` or ``"hidden prompt"``.
    part : str
        What it is: a message's role, a tool's name.
    texts : tuple of str
        To be counted.
    fixed : int
        Known without counting, in tokens.
    without : tuple of str
        Counted and taken off: what other charges hold of the texts.
    message : int or None
        Index of the message it belongs to.
    times : float
        How many tokens of this kind of text the provider makes of one counted.
    """

    kind: str
    part: str
    texts: tuple[str, ...] = ()
    fixed: int = 0
    without: tuple[str, ...] = ()
    message: int | None = None
    times: float = 1.0


def sizes(charges: Sequence[Charge], count: Count) -> list[int]:
    """Count all texts in one go, and return each charge in tokens.

    >>> sizes([Charge("message", "user", ("Hello world",), 4), Charge("framing", "request", fixed=3)], len)
    [15, 3]
    """
    texts = [text for charge in charges for text in (*charge.texts, *charge.without)]
    counted = iter(checked(count_of(count)).many(texts))
    totals = []
    for charge in charges:
        tokens = sum(next(counted) for _ in charge.texts) - sum(
            next(counted) for _ in charge.without
        )
        totals.append(
            charge.fixed + (tokens if charge.times == 1 else round(charge.times * tokens))
        )
    return totals
