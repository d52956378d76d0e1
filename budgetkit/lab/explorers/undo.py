"""Undo: the settings now, those before, and those taken back.

The widgets are projections of the settings and hold nothing of their own. A change takes one value to the next;
undo and redo walk among those that were.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

STEPS_BACK = 200
ONE_MOVE = 1.0  # seconds between two moves of a slider that are still one step back
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
        """Return the history with a new value; what was taken back before is gone."""
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


class Gesture:
    """Tells which moves belong to one step back: those of one control in quick succession, or while it is held."""

    def __init__(self) -> None:
        self.held = False
        self._last = ""
        self._when = 0.0
        self._count = 0

    def hold(self, on: bool) -> None:
        """Begin a move of a control, or end it: until the next one begins, all of it is one step."""
        self.held = on
        if on:
            self._last = ""
            self._when = 0.0

    def step(self, name: str) -> str:
        """Name the step that a move belongs to; no name for what is a step of its own."""
        if not name:
            return ""
        now = time.monotonic()
        is_held = self.held or name.startswith("drag ")  # a hand may rest in the middle of a move
        self._count += name != self._last or (now - self._when > ONE_MOVE and not is_held)
        self._last = name
        self._when = now
        return f"{name} {self._count}"
