"""A counter as somebody gives it: a name, a model, a counter, or any function from text to tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from budgetkit.budget.amounts import check_tokens
from budgetkit.counters.basis import Basis
from budgetkit.counters.protocol import check_texts

__all__ = ["FunctionCounter", "checked"]


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
