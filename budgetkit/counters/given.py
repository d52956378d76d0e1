"""A counter as somebody gives it: a name, a model, a counter, or any function from text to tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from budgetkit.budget.amounts import check_tokens

__all__ = ["FunctionCounter"]


@dataclass(frozen=True, slots=True)
class FunctionCounter:
    """Count with a function of one's own.

    Parameters
    ----------
    function : callable
        From text to tokens.

    Examples
    --------
    >>> FunctionCounter(len).many(["Hello", "world!"])
    [5, 6]
    """

    function: Callable[[str], int]

    @property
    def name(self) -> str:
        """The function's own name and, where it has one, the line that it begins on."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        code = getattr(self.function, "__code__", None)
        return name if code is None else f"{name} (a function, line {code.co_firstlineno})"

    @property
    def exact(self) -> bool:
        """Nobody knows; it is taken for an estimate."""
        return False

    def __call__(self, text: str) -> int:
        """Count one text, in tokens."""
        return check_tokens(f"what {self.name} counts", self.function(text))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count several texts, in tokens each."""
        return [self(text) for text in texts]
