"""Extras: libraries that not everybody needs, and the sentence that says which extra brings one that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["extra", "missing"]


@contextmanager
def extra(name: str, asked: str) -> Iterator[None]:
    """Import in a `with` block what an extra brings; where it is not installed, say what was asked for, and which.

    >>> with extra("lab", "a figure"):
    ...     import a_library_that_nobody_has
    Traceback (most recent call last):
    ImportError: a figure needs a_library_that_nobody_has, which is not installed; run: pip install 'budgetkit[lab]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library == "budgetkit":
            raise
        raise ImportError(missing(library, name, asked), name=library) from None


def missing(library: str, name: str, asked: str) -> str:
    """Say that a library is not installed, and which extra brings it."""
    return f"{asked} needs {library}, which is not installed; run: pip install 'budgetkit[{name}]'"
