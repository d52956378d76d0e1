"""once: a property that is worked out when it is first read, and then kept."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class once(cached_property[T]):  # noqa: N801  # it is written as what it extends
    """A `functools.cached_property` without the lock that Python 3.11 takes, in which most of its time goes.

    Two threads may work a value out at once; so it is for what comes out the same.

    Examples
    --------
    >>> class Window:
    ...     @once
    ...     def tokens(self): return 8_192
    >>> Window().tokens
    8192
    """

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> T:  # type: ignore[override]
        if instance is None:
            return self  # type: ignore[return-value]  # asked of the class, as a reader of docstrings does
        value: T = self.func(instance)
        instance.__dict__[self.attrname] = value
        return value
