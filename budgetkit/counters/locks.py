"""Locks that a forked process finds open.

A fork copies memory and one thread. A lock that another thread held at that moment is copied locked, and nobody is left
to open it: whoever asks for it in the child waits for ever. So every lock of this package is one of these, and in a
child all of them begin anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

__all__ = ["ForkSafeLock"]


class ForkSafeLock:
    """A lock, or one that its thread may take again, that is open after a fork.

    Parameters
    ----------
    make : callable, default threading.Lock
        Makes the lock; `threading.RLock` for one that its thread may take again.

    Examples
    --------
    >>> lock = ForkSafeLock()
    >>> with lock:
    ...     lock.acquire(blocking=False)
    False
    """

    __slots__ = ("__weakref__", "_lock", "_make")

    def __init__(self, make: Callable[[], Any] = threading.Lock) -> None:
        self._make = make
        self._lock = make()
        _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; say whether it was taken."""
        taken: bool = self._lock.acquire(blocking)
        return taken

    def release(self) -> None:
        """Give the lock back."""
        try:
            self._lock.release()
        except (
            RuntimeError
        ):  # the fork happened while this thread held it, and the child's lock is a new one
            return

    def renew(self) -> None:
        """Replace the lock by an open one, in a process that was forked."""
        self._lock = self._make()


_ALL: WeakSet[ForkSafeLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_ALL):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
