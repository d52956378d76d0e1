"""Item: one thing that may stand in the window: its section, its size in tokens, and what speaks for keeping it.

An item carries a payload: the message, passage or tool schema that it stands for. Budgets and plans never open it;
they decide by the numbers alone. The payload is used again when the prompt is assembled.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from budgetkit.budget.amounts import MOST_TOKENS, whole_number
from budgetkit.budget.quoting import brief


@dataclass(frozen=True, slots=True)
class Item:
    """Hold one candidate for the context window.

    Parameters
    ----------
    section : str
        Name of the section the item belongs to, e.g. ``"history"``.
    tokens : int
        Size of the item in tokens, framing included. At least 0.
    score : float
        How relevant the item is; among items of equal importance the higher score is kept first.
    importance : int or None
        How much the item matters; higher survives. ``None`` takes its section's importance.
    group : Hashable or None
        Items of one group are kept or dropped together (a tool call and its results). ``None`` stands alone.
    payload : object
        What the item stands for, e.g. a message. Passed through untouched.
    roles : mapping of str to str or None
        The role table that put it into its section, so that a plan for another table is found out. It is no part
        of what makes two items equal.

    Raises
    ------
    ValueError
        If ``tokens`` is negative, not a whole number, or above `budgetkit.budget.amounts.MOST_TOKENS`.

    Examples
    --------
    >>> Item("history", 12)
    Item(section='history', tokens=12, score=0.0, importance=None, group=None, payload=None)
    >>> Item("history", -1)
    Traceback (most recent call last):
        ...
    ValueError: an item of section 'history' was given -1 tokens; tokens are whole numbers of at least 0; \
count the item's text with a counter and pass that number
    """

    section: str
    tokens: int
    score: float = 0.0
    importance: int | None = None
    group: Hashable | None = None
    payload: Any = None
    roles: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The exact type is tested, not isinstance: True is an int, and True tokens are a mistake.
        if type(self.tokens) is not int and (number := whole_number(self.tokens)) is not None:
            object.__setattr__(self, "tokens", number)  # a number of numpy's, from a frame
        if type(self.tokens) is not int or not 0 <= self.tokens <= MOST_TOKENS:
            if type(self.tokens) is int and self.tokens > 0:
                allowed = f"at most {MOST_TOKENS:,}"
            else:
                allowed = "at least 0"
            raise ValueError(
                f"an item of section {brief(self.section)} was given {brief(self.tokens)} tokens; "
                f"tokens are whole numbers of {allowed}; count the item's text with a counter and pass that number"
            )
