"""Counter: what anything must offer that turns a text into a number of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

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
