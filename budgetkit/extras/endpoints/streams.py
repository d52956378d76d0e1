"""Streams of answers, passed on event by event, and told whole once they have ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self


def is_stream(answer: Any) -> bool:
    """Tell whether an answer comes in events.

    >>> is_stream(iter([])), is_stream({"choices": []})
    (True, False)
    """
    return hasattr(answer, "__next__") or hasattr(answer, "__anext__")


def watched_stream(answer: Any, done: Callable[[list[Any]], None]) -> _Stream:
    """Return a stream that is passed on as what it is: synchronous, asynchronous or, as litellm's are, both."""
    if not hasattr(answer, "__anext__"):
        return WatchedStream(answer, done)
    return (_EitherStream if hasattr(answer, "__next__") else _AsynchronousStream)(answer, done)


class _Stream:
    """What streams of both kinds share; what else the client's own has is reached through it."""

    def __init__(self, inner: Any, done: Callable[[list[Any]], None]) -> None:
        self._inner, self._done, self._events = inner, done, list[Any]()
        self._is_told = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def close(self) -> Any:
        """Close the stream; what has come is told. For an asynchronous one there is something to wait for."""
        self._end()
        return self._inner.close()

    def __del__(self) -> None:
        if "_is_told" in vars(self):
            self._end()

    def _end(self) -> None:
        if not self._is_told:
            self._is_told = True
            self._done(self._events)


class WatchedStream(_Stream):
    """A stream as its client made it, which tells its events when it ends, is closed, breaks off or is let go.

    Examples
    --------
    >>> told = []
    >>> stream = WatchedStream(iter("abc"), told.append)
    >>> next(stream), [*stream], told
    ('a', ['b', 'c'], [['a', 'b', 'c']])
    """

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            self._events.append(next(self._inner))
        except BaseException:
            self._end()
            raise
        return self._events[-1]

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(self, *problem: Any) -> Any:
        self._end()
        return self._inner.__exit__(*problem)


class _AsynchronousStream(_Stream):
    """The same of a stream that is waited for."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            self._events.append(await self._inner.__anext__())
        except BaseException:
            self._end()
            raise
        return self._events[-1]

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> Any:
        self._end()
        return await self._inner.__aexit__(*problem)


class _EitherStream(WatchedStream, _AsynchronousStream):
    """One that may be used both ways."""
