"""The Counter protocol, and the basis of a counter's counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.errors import wrong_kind


@runtime_checkable
class Counter(Protocol):
    """A callable that returns the number of tokens in a text."""

    @property
    def name(self) -> str:
        """The name shown with counts, which marks estimates and substitutes."""
        ...

    @property
    def exact(self) -> bool:
        """True if the counts equal the model's own counts."""
        ...

    def __call__(self, text: str) -> int:
        """Count the tokens in one text."""
        ...

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens in each of several texts."""
        ...


def check_texts(texts: Any, counter: Counter) -> Sequence[str]:
    """Check a collection of texts, and return it as a sequence."""
    is_row = isinstance(texts, Iterable) and not hasattr(texts, "columns")
    if isinstance(texts, str | bytes) or not is_row:
        raise TypeError(wrong_kind(f"texts for {counter.name}", texts, "a list of texts"))
    several = texts if isinstance(texts, list | tuple) else list(texts)
    for text in () if {*map(type, several)} <= {str} else several:
        check_text(text, counter)
    return several


def check_text(text: Any, counter: Counter) -> str:
    """Check that a value is a string, and return it."""
    if not isinstance(text, str):
        raise TypeError(wrong_kind(f"text for {counter.name}", text, "a string"))
    return text


Basis = Literal["exact", "reconstructed", "estimate"]


def basis_of(counter: Callable[[str], int]) -> Basis:
    """Return the basis of a counter's counts.

    Counts by counters and functions that do not state a basis are estimates.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> basis_of(counter("gpt-5.4")), basis_of(counter("chars/4")), basis_of(len)
    ('exact', 'estimate', 'estimate')
    """
    stated: Any = getattr(counter, "basis", None)
    if stated not in get_args(Basis):
        stated = "exact" if getattr(counter, "exact", False) is True else "estimate"
    basis: Basis = stated
    return basis


def spread_of(counter: Callable[[str], int]) -> tuple[float, float] | None:
    """Return a counter's error range.

    The range covers 9 of 10 new texts. If it was measured on fewer than 19 texts or projects, it is the observed range.

    Returns
    -------
    tuple of float or None
        Lower and upper error as fractions of the count. The range is ``(0.0, 0.0)`` for exact and reconstructed counts,
        and None if the error was never measured.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> spread_of(counter("gpt-5.4")), spread_of(counter("chars/4"))
    ((0.0, 0.0), None)
    """
    if basis_of(counter) != "estimate":
        return 0.0, 0.0
    low = getattr(counter, "low", None)
    high = getattr(counter, "high", None)
    if low is None or high is None:
        return None
    return low, high


def nearer_of(counter: object) -> str:
    """Return a counter's hint on a more accurate count, or "".

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> nearer_of(counter("gpt-5.4"))
    ''
    """
    return str(getattr(counter, "nearer", ""))


def nearer_sentence(source: object) -> str:
    """Return a counter's hint on a more accurate count as a sentence.

    The sentence is "" if there is no hint.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> nearer_sentence(counter("gpt-5.4"))
    ''
    """
    nearer = nearer_of(source)
    return f"It could be {nearer}." if nearer else ""


class CounterBase:
    """The base class of counters.

    A subclass defines `name`, and either `__call__` or `many`.
    """

    __slots__ = ()
    name: Any

    @property
    def basis(self) -> Basis:
        """The basis of the counts: ``"exact"``, ``"reconstructed"`` or ``"estimate"``."""
        return "estimate"

    @property
    def exact(self) -> bool:
        """True if the counts equal the model's own counts."""
        return self.basis == "exact"

    def __call__(self, text: str) -> int:
        """Count the tokens in one text."""
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens in each of several texts."""
        return [self(text) for text in check_texts(texts, self)]


@dataclass(frozen=True, slots=True)
class FunctionCounter(CounterBase):
    """A counter that calls your own function.

    Parameters
    ----------
    function : callable
        Function that counts the tokens in a text.
    name : str, optional
        Name of the counter. Default: the function's name and, if known, its line number.

    Examples
    --------
    >>> FunctionCounter(len).many(["Hello", "world!"])
    [5, 6]
    """

    function: Callable[[str], int]
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or function_label(self.function))

    def __repr__(self) -> str:
        return f"FunctionCounter({self.name})"

    def __call__(self, text: str) -> int:
        """Count the tokens in one text."""
        return check_tokens(f"count of {self.name}", self.function(text))


def as_counter(count: Callable[[str], int]) -> Any:
    """Return a counter unchanged, or wrap a function as a counter.

    >>> as_counter(len).many(["Hello"])
    [5]
    """
    if hasattr(count, "many"):
        return count
    return FunctionCounter(count)


def function_label(function: Callable[[str], int]) -> str:
    """Return a function's name with its line number, if known.

    The number distinguishes functions of the same name.
    """
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return f"{name} (a function, line {code.co_firstlineno})"
