"""Counter: what anything must offer that turns a text into a number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from budgetkit.budget.amounts import check_tokens

__all__ = ["Counter", "check_text"]


@runtime_checkable
class Counter(Protocol):
    """Anything that turns a text into a number of tokens."""

    @property
    def name(self) -> str:
        """Its name beside its numbers; it says if these are estimates, or counted with another model's tokenizer."""
        ...

    @property
    def exact(self) -> bool:
        """Whether its number is the one that the model itself would count."""
        ...

    def __call__(self, text: str) -> int:
        """Count one text, in tokens."""
        ...

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count several texts, in tokens each."""
        ...


def check_texts(texts: object, counter: Counter) -> None:
    """Refuse to count one text letter by letter, where several are meant, and what is no row of texts at all."""
    is_row = isinstance(texts, Iterable) and not hasattr(texts, "columns")
    if isinstance(texts, str | bytes) or not is_row:
        problem = f"asked to count many in {type(texts).__name__}"
        raise TypeError(f"{problem}; {counter.name}.many counts several texts; give a list of them")


def check_text(text: object, counter: Counter) -> None:
    """Refuse to count what is no text."""
    if not isinstance(text, str):
        raise TypeError(
            f"asked to count {type(text).__name__}; {counter.name} counts text; give a str, perhaps ''"
        )


Basis = Literal["exact", "reconstructed", "estimate"]


def basis_of(counter: Callable[[str], int]) -> Basis:
    """Return what a counter's numbers rest on; a counter or function that does not say is an estimate.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> basis_of(counter("gpt-4o")), basis_of(counter("chars/4")), basis_of(len)
    ('exact', 'estimate', 'estimate')
    """
    stated: Any = getattr(counter, "basis", None)
    if stated in ("exact", "reconstructed", "estimate"):
        basis: Basis = stated
        return basis
    if getattr(counter, "exact", False) is True:
        return "exact"
    return "estimate"


def spread_of(counter: Callable[[str], int]) -> tuple[float, float] | None:
    """Return how far nine in ten texts lie below and above a counter's number, as shares of it.

    Returns
    -------
    tuple of float or None
        ``(0.0, 0.0)`` for a count that is exact or reconstructed, None where nobody has measured it.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> spread_of(counter("gpt-4o")), spread_of(counter("chars/4"))
    ((0.0, 0.0), None)
    """
    if basis_of(counter) != "estimate":
        return 0.0, 0.0
    low = getattr(counter, "low", None)
    high = getattr(counter, "high", None)
    if low is None or high is None:
        return None
    return (low, high)


def interval_of(counter: Callable[[str], int], tokens: int) -> tuple[int, int] | None:
    """Return between which numbers a count of so many tokens lies, or None where nobody has measured it.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> interval_of(counter("gpt-4o"), 1_000), interval_of(counter("calibrated:gemini-2.5-pro"), 1_000)
    ((1000, 1000), (828, 1314))
    """
    spread = spread_of(counter)
    if spread is None:
        return None
    below, above = spread
    return max(0, round(tokens * (1 + below))), round(tokens * (1 + above))


def nearer_of(counter: Callable[[str], int]) -> str:
    """Return the one line that says how a count of this model would come nearer; empty where nothing would.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> nearer_of(counter("gpt-4o"))
    ''
    """
    return str(getattr(counter, "nearer", ""))


def nearer_sentence(source: object) -> str:
    """Return the sentence that says how a counter, or the count of a request, would come nearer; empty for none.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> nearer_sentence(counter("gpt-4o"))
    ''
    """
    nearer = str(getattr(source, "nearer", ""))
    return f"It could be {nearer}." if nearer else ""


@dataclass(frozen=True, slots=True, init=False)
class FunctionCounter:
    """Count with a function of one's own.

    Parameters
    ----------
    function : callable
        From text to tokens.
    name : str, optional
        What the counter is called; else the function's own name and, where it has one, the line that it begins on.

    Examples
    --------
    >>> FunctionCounter(len).many(["Hello", "world!"])
    [5, 6]
    """

    function: Callable[[str], int]
    name: str

    def __repr__(self) -> str:
        return f"FunctionCounter({self.name})"

    def __init__(self, function: Callable[[str], int], name: str = "") -> None:
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "name", name or function_name(function))

    @property
    def basis(self) -> Basis:
        """The basis "estimate": nobody knows how a function counts."""
        return "estimate"

    @property
    def exact(self) -> bool:
        """False: nobody knows how a function counts."""
        return False

    def __call__(self, text: str) -> int:
        """Count one text, in tokens."""
        return check_tokens(f"what {self.name} counts", self.function(text))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count several texts, in tokens each."""
        check_texts(texts, self)
        return [self(text) for text in texts]


def checked(count: Callable[[str], int]) -> Any:
    """Return a counter as it is, and a function as a counter that refuses what is no number of tokens.

    >>> checked(len).many(["Hello"])
    [5]
    """
    if hasattr(count, "many"):
        return count
    return FunctionCounter(count)


def function_name(function: Callable[[str], int]) -> str:
    """Name a function so that two of the same name can be told apart: by the line that it begins on."""
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return f"{name} (a function, line {code.co_firstlineno})"
