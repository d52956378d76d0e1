"""Reserves and allocations: the lines of a budget.

Words that are easily confused:

- a *cap* limits, a *floor* promises, a *weight* divides;
- *importance* says which section keeps its tokens when there is too little room (the higher one), the order of the
  allocations says where a section stands in the prompt, and a *required* section never shrinks to make room for others;
- *overflow* says what happens to a section over its own cap, *when_full* what happens to it in a full window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

from budgetkit.budget.amounts import Amount, amount_of, check_tokens, whole_number
from budgetkit.budget.errors import out_of_range, unknown_name, wrong_choice, wrong_type
from budgetkit.budget.quoting import brief

Overflow = Literal["truncate", "drop"]
Keep = Literal["first", "newest", "best"]
Fill = Literal["prefix", "skip", "knapsack"]
Granularity = Literal["item", "line", "token"]
MOST_WEIGHT = 2**16  # times a number of tokens it is still counted in 64 bits
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reserve:
    """Tokens held back from the window.

    Parameters
    ----------
    name : str
        Name of the line, such as "output" or "safety".
    size : int or Share
        How much is held back, in tokens or as a share of the window.
    serves : str, optional
        "output" marks the answer's reserve, which claims nothing where the window does not hold the answer
        (`Budget.kind` "input" or "usable"). The name of a section holds the tokens for that section alone.

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
    """The limits of one section, and its behaviour when it asks for more.

    Parameters
    ----------
    section : str
        Name of the section, such as "system" or "history".
    cap : int or Share, optional
        The most it may take; 0 switches it off; without a cap it draws on the pool.
    floor : int or Share, default 0
        A guarantee: at least this much of its demand is kept free while earlier sections are asked. Whole items are
        kept until their sum reaches the floor.
    weight : int, default 0
        Above 0, it may take its part by weight among the weighted sections still waiting, none of them more than it
        asks for; at 0, everything left. At most 65,536.
    importance : int, default 5
        Higher is asked earlier and so survives.
    required : bool, default False
        Never shrinks because the window is full, and is asked first. One that keeps its first whole items stands
        whole, over its cap as well; of others the first item stays.
    overflow : {"truncate", "drop"}
        Treatment of a section over its own cap: cut to it, or left out whole.
    when_full : {"truncate", "drop"}
        Treatment of a section if the window is too small for it.
    keep : {"first", "newest", "best"}
        Which items stay: the most important ones, and among equals the first, the latest, or by score. Where items
        compete (an order "... by item"), the section without a cap that is asked first decides for all of them, and the
        default "first" is by score.
    fill : {"prefix", "skip", "knapsack"}
        Stop at the first item that does not fit, go on past it, or choose the best total score.
    granularity : {"item", "line", "token"}
        Whether the first item that does not fit is dropped whole or may be cut.
    limit_items : int, optional
        At most so many items, the best by `keep`.

    Raises
    ------
    ValueError
        If a choice is unknown, or a required section is to be dropped.

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
                    f"at most {MOST_WEIGHT:,}; divide all weights by one number",
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
        """Whether it is switched off, by a cap of 0 tokens."""
        return self.cap == 0

    @property
    def stands_whole(self) -> bool:
        """Whether the section always stays whole: required, in order and not cut inside."""
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
    """One line of a budget as a slider sees it.

    Parameters
    ----------
    name : str
        Name of the reserve or section.
    kind : {"reserve", "allocation"}
        Whether it is a reserve or a section.
    amount : int, Share or None
        The requested size; None is a section without a cap.
    tokens : int or None
        The size in this window, in tokens.

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
        raise ValueError(wrong_type("name of a line", name, "a text of at least one character"))
    check_whole("name of a line", name)


def check_whole(what: str, name: str) -> None:
    """Check that a name holds no half of a surrogate pair.

    A text that another language cut in two may end in one.

    >>> check_whole("name of a line", "history")
    """
    if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
        raise ValueError(
            f"Invalid {what}: {brief(name)} ends in half a character. Remove that half."
        )


def check_all(what: str, values: Iterable[object], kind: type[T]) -> tuple[T, ...]:
    """Return values unchanged as a tuple, if all are of one kind.

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
            raise TypeError(wrong_type(what, value, kind.__name__))
        checked.append(value)
    return tuple(checked)


def check_choice(what: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the choices.

    Examples
    --------
    >>> check_choice("fill", "skip", ("prefix", "skip"))
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(wrong_choice(what, value, choices))


LineT = TypeVar("LineT", Reserve, Allocation)


def line_with(line: LineT, what: str, value: object) -> LineT:
    """Return a changed line: one field, several fields, or the whole line replaced."""
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

#: Whether sections with a cap are asked first, what those without may take, and whether their items compete for it.
ORDERS: dict[str, tuple[bool, Pool, bool]] = {
    "importance": (False, "open", False),
    "caps first": (True, "open", False),
    "pool together": (False, "together", False),
    "pool each": (False, "each", False),
    "pool by item": (True, "together", True),
    "open by item": (True, "open", True),
}
