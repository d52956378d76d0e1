"""Reserves and allocations: the lines of a budget.

Terms that are easily confused:

- a *cap* limits, a *floor* guarantees, and a *weight* divides;
- in a full window, sections of the lowest *importance* are cut first, and a *required* section is never cut in favour
  of other sections; the order of the allocations is the order of the prompt;
- *overflow* applies to a section that exceeds its own cap, *when_full* to one that does not fit in the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

from budgetkit.budget.amounts import Amount, amount_of, check_tokens, whole_number
from budgetkit.budget.errors import out_of_range, unknown_name, wrong_choice, wrong_kind, wrong_type
from budgetkit.budget.quoting import brief

Overflow = Literal["truncate", "drop"]
Keep = Literal["first", "newest", "best"]
Fill = Literal["prefix", "skip", "knapsack"]
Granularity = Literal["item", "line", "token"]
MOST_WEIGHT = 2**16  # a product of a weight and a number of tokens fits in 64 bits
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reserve:
    """Tokens of the window set aside for one purpose.

    Parameters
    ----------
    name : str
        Name of the line, such as "output" or "safety".
    size : int or Share
        Size of the reserve, in tokens or as a share of the window.
    serves : str, optional
        Purpose of the reserve. "output" marks the reserve for the answer, which is subtracted only from a window that
        holds both prompt and answer (`Budget.kind` "shared"). A section's name reserves the tokens for that section
        alone.

    Examples
    --------
    >>> from budgetkit import Share
    >>> Reserve("output", Share(.15, 500, 4096), serves="output")
    Reserve('output', Share(0.15, 500, 4096), serves='output')
    """

    name: str
    size: Amount
    serves: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "size", amount_of(f"reserve {brief(self.name)}", self.size))
        if self.serves is not None:
            check_all(f"serves of reserve {brief(self.name)}", [self.serves], str)

    def __repr__(self) -> str:
        return f"Reserve({self.name!r}, {self.size!r}{f', serves={self.serves!r}' if self.serves else ''})"


@dataclass(frozen=True, slots=True)
class Allocation:
    """The limits of one section, and the rules for cutting it.

    Parameters
    ----------
    section : str
        Name of the section, such as "system" or "history".
    cap : int or Share, optional
        Maximum size, in tokens or as a share of the window. A cap of 0 switches the section off; a section without a
        cap draws on the shared pool.
    floor : int or Share, default 0
        Guaranteed size. While other sections are allocated, tokens up to the floor, or up to the section's demand if
        that is lower, are kept free for the section. If the section keeps whole items, it keeps items until their sum
        reaches the floor.
    weight : int, default 0
        Weight among the sections still to be allocated, at most 65,536. A weighted section may take its proportional
        part of the remaining tokens, and a section of weight 0 may take all of them.
    importance : int, default 5
        Sections are allocated from the highest importance to the lowest, so important sections keep their tokens.
    required : bool, default False
        If true, the section is allocated first and is never cut because the window is full. A required section that
        keeps whole items in order may even exceed its cap; any other required section keeps at least its first item.
    overflow : {"truncate", "drop"}
        Treatment of a section that exceeds its cap: cut it to the cap, or drop it entirely.
    when_full : {"truncate", "drop"}
        Treatment of a section that does not fit in the window.
    keep : {"first", "newest", "best"}
        Items to keep: the most important items and, among equally important items, the first, the newest, or those with
        the best score. If items compete for the pool (the budget's order ends in "by item"), the value of the first
        section without a cap, in allocation order, applies to all sections, and "first" ranks items by score.
    fill : {"prefix", "skip", "knapsack"}
        Filling rule: stop at the first item that does not fit, skip items that do not fit, or maximise the total score.
    granularity : {"item", "line", "token"}
        Treatment of the first item that does not fit: drop it, or cut it at a line or token.
    limit_items : int, optional
        Maximum number of items, chosen by `keep`. Items of one group, such as a call and its result, count as one.

    Raises
    ------
    ValueError
        If a choice is unknown, or a required section has ``overflow="drop"``.

    Examples
    --------
    >>> Allocation("retrieval", cap=3_200, importance=5, keep="best")
    Allocation('retrieval', cap=3200, keep='best')
    """

    section: str
    cap: Amount | None = None
    floor: Amount = 0
    weight: int = 0
    importance: int = 5
    required: bool = False
    overflow: Overflow = "truncate"
    when_full: Overflow = "truncate"
    keep: Keep = "first"
    fill: Fill = "prefix"
    granularity: Granularity = "item"
    limit_items: int | None = None

    def __post_init__(self) -> None:
        _check_name(self.section)
        of = f"of {brief(self.section)}"
        for name in ("floor", "cap", "weight", "limit_items"):
            value = getattr(self, name)
            check = amount_of if name in ("floor", "cap") else check_tokens
            if value is not None or name == "weight":
                object.__setattr__(self, name, check(f"{name} {of}", value))
        if self.weight > MOST_WEIGHT:
            raise ValueError(
                out_of_range(
                    f"weight {of}",
                    self.weight,
                    f"at most {MOST_WEIGHT:,}; divide all weights by the same number",
                )
            )
        if (importance := whole_number(self.importance)) is not None:
            object.__setattr__(self, "importance", importance)
        check_all(f"importance {of}", [self.importance], int)
        check_all(f"required {of}", [self.required], bool)
        for name, choices in _CHOICES.items():
            check_choice(f"{name} {of}", getattr(self, name), choices)
        if self.required and self.overflow == "drop":
            raise ValueError(
                f"Section {brief(self.section)} is required and has overflow='drop'. Use overflow='truncate' "
                "or required=False."
            )

    @property
    def is_off(self) -> bool:
        """True if a cap of 0 tokens switches the section off."""
        return self.cap == 0

    @property
    def stands_whole(self) -> bool:
        """True if the section is required and keeps whole items in order."""
        in_order = self.keep == "first" and self.granularity == "item" and self.limit_items is None
        return self.required and in_order

    def __repr__(self) -> str:
        defaults = type(self).__dataclass_fields__
        changed = [
            n for n in defaults if n != "section" and getattr(self, n) != defaults[n].default
        ]
        return f"Allocation({', '.join([repr(self.section), *(f'{n}={getattr(self, n)!r}' for n in changed)])})"


_CHOICES: dict[str, tuple[str, ...]] = {
    "overflow": get_args(Overflow),
    "when_full": get_args(Overflow),
    "keep": get_args(Keep),
    "fill": get_args(Fill),
    "granularity": get_args(Granularity),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A reserve or section of a budget, and its size in tokens.

    Parameters
    ----------
    name : str
        Name of the reserve or section.
    kind : {"reserve", "allocation"}
        Kind of the line: a reserve or a section.
    amount : int, Share or None
        The requested size, or None for a section without a cap.
    tokens : int or None
        Size of the line in this window, in tokens, or None for a section without a cap.

    Examples
    --------
    >>> from budgetkit import Share
    >>> Line("output", "reserve", Share(.15), 1228)
    Line(name='output', kind='reserve', amount=Share(0.15), tokens=1228)
    """

    name: str
    kind: Literal["reserve", "allocation"]
    amount: Amount | None
    tokens: int | None


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError(wrong_type("name of a line", name, "a non-empty string"))
    check_whole("name of a line", name)


def check_whole(what: str, name: str) -> None:
    """Check that a name contains no lone surrogate.

    Programs that count UTF-16 units may leave a lone surrogate where they cut a text.

    >>> check_whole("name of a line", "history")
    """
    if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
        raise ValueError(
            f"Invalid {what}: {brief(name)} contains half of a surrogate pair. Remove that half."
        )


def check_all(what: str, values: Iterable[object], kind: type[T]) -> tuple[T, ...]:
    """Return the values as a tuple, rejecting values of another type.

    Examples
    --------
    >>> check_all("sections", ["system"], str)
    ('system',)
    """
    if not isinstance(values, Iterable):
        raise TypeError(wrong_type(what, values, f"a list of {kind.__name__}"))
    checked = []
    for value in values:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(wrong_kind(what, value, kind.__name__))
        checked.append(value)
    return tuple(checked)


def check_choice(what: str, value: object, choices: tuple[str, ...]) -> None:
    """Reject a value that is not one of the choices.

    Examples
    --------
    >>> check_choice("fill", "skip", ("prefix", "skip"))
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(wrong_choice(what, value, choices))


LineT = TypeVar("LineT", Reserve, Allocation)


def line_with(line: LineT, what: str, value: object) -> LineT:
    """Return a line with changed fields, or the line that replaces it.

    A mapping gives new values by field, a reserve or an allocation replaces the line, and any other value is the new
    value of the field `what`.
    """
    if isinstance(value, type(line)):
        return value
    changes: dict[Any, Any] = dict(value) if isinstance(value, Mapping) else {what: value}
    field_names = [attribute.name for attribute in fields(line)]
    if unknown := [name for name in changes if name not in field_names]:
        raise LookupError(unknown_name(f"field of {brief(line)}:", unknown[0], field_names))
    return replace(line, **changes)


Order = Literal[
    "importance", "caps first", "pool together", "pool each", "pool by item", "open by item"
]
Pool = Literal["open", "together", "each"]

#: For each order: if capped sections come first, how uncapped sections draw on the pool, and if items compete for it.
ORDERS: dict[str, tuple[bool, Pool, bool]] = {
    "importance": (False, "open", False),
    "caps first": (True, "open", False),
    "pool together": (False, "together", False),
    "pool each": (False, "each", False),
    "pool by item": (True, "together", True),
    "open by item": (True, "open", True),
}
