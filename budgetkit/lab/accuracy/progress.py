"""Progress: a bar of tqdm's while something takes long; without tqdm (extra `lab`) there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any


@contextmanager
def progress_bar(shown: bool, **options: Any) -> Iterator[Callable[[int], object]]:
    """Give a function that moves a bar on by a number of steps; it does nothing where no bar is shown.

    >>> with progress_bar(False, total=2) as advance:
    ...     advance(1)
    """
    bar: Any = nullcontext()
    if shown:
        with suppress(ModuleNotFoundError):
            from tqdm.auto import tqdm

            bar = tqdm(**options)
    with bar:
        yield getattr(bar, "update", lambda steps: None)
