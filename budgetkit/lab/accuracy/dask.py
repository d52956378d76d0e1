"""Tasks in order, a few at a time: in this process, or on a Dask cluster where a client is given.

Dask is an extra (``pip install budgetkit[cluster]``) and nothing here imports it; this module is the one place that
talks to its client. A task that was on a worker that died is done again by another, and each gives one answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_FEWEST = 4


class Client(Protocol):
    """What of ``dask.distributed.Client`` is used."""

    def submit(self, function: Callable[..., Any], *values: Any, **options: Any) -> Any:
        """Call a function on a worker, and return the future of its result."""
        ...

    def ncores(self) -> dict[str, int]:
        """Return the threads of each worker."""
        ...


def answers(
    function: Callable[[T], R], tasks: Iterable[T], client: Client | None = None
) -> Iterator[R]:
    """Answer tasks one after the other.

    Examples
    --------
    >>> list(answers(len, iter(["one", "three"])))
    [3, 5]
    """
    if client is None:
        yield from map(function, tasks)
        return
    waiting = iter(tasks)
    ahead = max(_FEWEST, 2 * sum(client.ncores().values()))
    futures = deque(client.submit(function, task, pure=False) for task in islice(waiting, ahead))
    while futures:
        yield futures.popleft().result()
        futures.extend(client.submit(function, task, pure=False) for task in islice(waiting, 1))
