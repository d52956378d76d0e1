"""Undo: previous and undone settings, and the grouping of moves into steps."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

STEPS_BACK = 200
ONE_MOVE = 1.0  # longest pause within one undo step, in seconds
S = TypeVar("S")


@dataclass(frozen=True)
class UndoStack(Generic[S]):
    """The current, the previous and the undone settings.

    Examples
    --------
    >>> history = UndoStack("a").then("b").then("c")
    >>> history.undo().now, history.undo().redo().now
    ('b', 'c')
    """

    now: S
    past: tuple[S, ...] = ()
    future: tuple[S, ...] = ()
    merge: str = ""

    def then(self, settings: S, merge: str = "") -> UndoStack[S]:
        """Return the undo stack with new settings and without the undone steps.

        If `merge` is the name of the current step, the new settings belong to that step.
        """
        if settings == self.now:
            return self
        if merge and merge == self.merge:
            return replace(self, now=settings, future=())
        return UndoStack(settings, (*self.past, self.now)[-STEPS_BACK:], (), merge)

    def undo(self) -> UndoStack[S]:
        """Return the undo stack one step earlier, or unchanged at its beginning."""
        if not self.past:
            return self
        return UndoStack(self.past[-1], self.past[:-1], (self.now, *self.future))

    def redo(self) -> UndoStack[S]:
        """Return the undo stack one step later, or unchanged at its end."""
        if not self.future:
            return self
        return UndoStack(self.future[0], (*self.past, self.now), self.future[1:])


class Gesture:
    """A grouping of moves into undo steps.

    All moves of a drag, for example, are one step.
    """

    def __init__(self) -> None:
        self._last = ""
        self._when = 0.0
        self._count = 0

    def step(self, name: str) -> str:
        """Return the name of a move's undo step.

        If the move has no name, the result is "".
        """
        if not name:
            return ""
        now = time.monotonic()
        is_held = name.startswith("drag ")  # a drag may pause
        self._count += name != self._last or (now - self._when > ONE_MOVE and not is_held)
        self._last = name
        self._when = now
        return f"{name} {self._count}"
