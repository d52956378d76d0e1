"""Undo: the settings now, those before, and those taken back.

The widgets are projections of the settings and hold nothing of their own. A change takes one value to the next;
undo and redo walk among those that were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

STEPS_BACK = 200
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class UndoStack(Generic[S]):
    """The settings now, those before, and those taken back.

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
        """Return the history with one more value."""
        if settings == self.now:
            return self
        if merge and merge == self.merge:
            return replace(self, now=settings, future=())
        return UndoStack(settings, (*self.past, self.now)[-STEPS_BACK:], (), merge)

    def undo(self) -> UndoStack[S]:
        """Return the history one step back, or the same at its beginning."""
        if not self.past:
            return self
        return UndoStack(self.past[-1], self.past[:-1], (self.now, *self.future))

    def redo(self) -> UndoStack[S]:
        """Return the history one step forward, or the same at its end."""
        if not self.future:
            return self
        return UndoStack(self.future[0], (*self.past, self.now), self.future[1:])
