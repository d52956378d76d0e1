"""Base: what every explorer does with its settings, and how a change goes through.

There is one value, the settings, and one way to change it: a command gives the next settings, from which what is
shown follows. A widget, a handle in the page and a line of code send the same commands.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters.encodings import ForkSafeLock
from budgetkit.files import write_whole
from budgetkit.lab.explorers.commands import Data, F, Kind, S
from budgetkit.lab.explorers.folds import Folds, refusal
from budgetkit.lab.explorers.reach import Reach, arguments
from budgetkit.lab.explorers.report import Still, page, picture
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.view import Gesture, UndoStack, Uploads, View, sendable


class Explorer(Kind[S, F]):
    """Settings on widgets, and a view that draws what follows from them.

    Attributes
    ----------
    widget : Box
        Controls and view.
    """

    def __init__(self, settings: S, library: Library, view: View, controls: Any) -> None:
        self._lock = ForkSafeLock(threading.RLock)
        self._quiet = False
        self._serial = 0
        self._gesture = Gesture()
        # moves whose beginning or whose end alone has come
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        #: Which files commands may open; any where it is None.
        self.reach: Reach | None = None
        self.still = Still()
        self.view = view
        self.controls = controls
        #: What a reset goes back to.
        self._start = settings
        self._library = library
        self._history = UndoStack(settings)
        self._results = self._follow(settings)
        self._folds = Folds(self.folds, library, self._again)
        layout = widgets.Box([controls.widget, view]).add_class("bk-layout")
        self.widget = widgets.Box([layout]).add_class("bk-explorer")
        self._uploads = Uploads(view, self._do)
        view.on_msg(self._heard)
        view.observe(lambda change: self._open(), "opened")
        self._show(self._pictured(self._history, self._results))
        self._draw()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a report: one file of HTML with all that is shown, which needs neither a kernel nor a network.

        Parameters
        ----------
        path : str or path
            It ends with .html. The messages of the conversation stand in it, as far as there is room.

        Raises
        ------
        ValueError
            If it ends with something else.
        """
        if Path(path).suffix.lower() not in (".html", ".htm"):
            raise ValueError(
                f"a report was to be saved as {one_line(str(path))}; it is HTML; end the name with .html"
            )
        with self._lock:
            results = self._results
            # the status as it is, not what was refused last
            state = sendable(
                {**self.view.state, "door": self.view.door, "status": self._status(results)}
            )
            self._unfold()
            drawn = self._charts(results, list(state["figures"])) | self._folds.figures(
                self.view.opened
            )
            charts = sendable(drawn)
            texts = self._texts(results)
            requests = self._requests(results)
            html = page(self._heading(), state, charts, requests, texts.get("yaml", ""))
        write_whole(path, html.encode())

    @property
    def texts(self) -> dict[str, str]:
        """The set-up as text to copy, by "python", "yaml" and "json"."""
        with self._lock:
            return self._texts(self._results)

    def open(self, path: str | Path) -> None:
        """Show what is in a file.

        Parameters
        ----------
        path : str or path
            Conversations in any format that :func:`budgetkit.load_trace` reads, or the name of shipped ones; where
            texts are looked at, also a folder or a glob.
        """
        self._do("path", path=str(path))

    def load(self, text: str) -> None:
        """Take the budget of a saved state.

        Parameters
        ----------
        text : str
            YAML or JSON, as `texts` gives it.
        """
        self._do("load", text=text)

    def undo(self) -> None:
        """Take back the last change."""
        self._walk("undo")

    def redo(self) -> None:
        """Do again what was taken back."""
        self._walk("redo")

    def reset(self) -> None:
        """Go back to the beginning; what an explorer can lock stays locked."""
        self._do("reset")

    @property
    def settings(self) -> S:
        """The explorer's settings: one frozen value, from which all else follows."""
        return self._history.now

    @property
    def library(self) -> Library:
        """The conversations and texts that can be opened, each counted once."""
        return self._library

    def take(self, settings: S, afresh: bool = False) -> None:
        """Show other settings: as one step that can be taken back, or afresh, with nothing before them."""
        with self._turn():
            if afresh:
                self._start = settings
            self._go(UndoStack(settings) if afresh else self._history.then(settings), "")

    @property
    def status(self) -> str:
        """The sentence that the view shows: what holds, or what went wrong."""
        return str(self.view.state["status"]["text"])

    def _do(
        self,
        kind: str,
        ack: str = "",
        merge: str = "",
        *,
        beside: str = "",
        sent: Data | None = None,
        **values: Any,
    ) -> None:
        """Carry out a command; if it fails, change nothing and say why, beside the box it came from."""
        with self._turn(ack, beside):
            if self._quiet:
                return
            command = self._command(kind)
            settings = command(
                self._history.now,
                self._results,
                self._library,
                **arguments(kind, command, values if sent is None else sent, self.reach),
            )
            step = self._gesture.step(merge)
            self._go(self._history.then(settings, step), ack, self._gesture.held and bool(merge))

    @contextmanager
    def _turn(self, ack: str = "", beside: str = "") -> Iterator[None]:
        """Keep other threads out; what goes wrong inside is said, beside the box it came from."""
        with self._lock:
            try:
                yield
            except Exception as problem:
                notice = refusal(problem)
                if beside:
                    near = {
                        "note": notice["text"],
                        "beside": beside,
                        "holds": self._status(self._results),
                    }
                else:
                    near = {}
                self._say({**notice, **near}, ack)

    def _command(self, kind: str) -> Callable[..., S]:
        commands = {**self.commands, "reset": self._at_start}
        if kind not in commands:
            raise LookupError(
                f"no command {brief(kind)}; known are {quoted(commands)}; send one of them"
            )
        return commands[kind]

    def _at_start(self, settings: S, results: F, library: Library) -> S:
        """Return the settings with which the explorer began; a kind of explorer may keep some of the present ones."""
        first: S = settings.as_at(self._start)
        return first

    def _walk(self, direction: str, ack: str = "") -> None:
        with self._turn(ack):
            self._go(self._history.undo() if direction == "undo" else self._history.redo(), ack)

    def _go(self, history: UndoStack[S], ack: str, is_moving: bool = False) -> None:
        """Show a step of the history; if that fails or is interrupted, go back to what was shown before."""
        results = self._follow(history.now)
        state = self._pictured(history, results)
        before = self._history, self._results
        self._history = history
        self._results = results
        try:
            self._show(state, ack)
            self._draw(is_moving)
        except BaseException as problem:
            self._history, self._results = before
            if not isinstance(problem, Exception):  # an interrupt, of which nobody tells the page
                self._say(self._status(self._results))
                self._draw()
            raise

    def _open(self) -> None:
        """Draw again, with the tables that are open now and the texts as they are now."""
        with self._turn():
            self._unfold()
            self._draw()

    def _again(self, fold: str) -> None:
        """Work out a fold again that is open, and show it; any thread may call this."""
        with self._lock:
            self._folds.forget(fold)
            self._unfold()

    def _unfold(self) -> None:
        """Work out the folds that are open, and show them."""
        with self._lock:
            now = self._history.now
            opened = self.view.opened
            self._folds.refresh(now, self._results, opened)
            self.view.folds = self._folds.shown(now, opened)

    def _told(self, content: Data) -> None:
        """Hear what a hand does in a fold; other settings are one step that can be taken back."""
        with self._turn():
            to = self._folds.hear(self._history.now, self._results, content)
            if to is not None:
                self._go(self._history.then(to), "")
            self._unfold()

    def _heard(self, view: View, content: Data, buffers: list[Any]) -> None:
        """Carry out a message of the page: a command, a piece of a file, a key, a fold."""
        kind = str(content.get("kind", ""))
        if kind == "plotly":
            with self._turn():
                self.view.send_plotly()
        elif kind == "file":
            # Pieces of a file come in threads of their own, as other messages do.
            with self._turn():
                self._uploads.piece(content, b"".join(buffers))
        elif kind in ("grab", "release"):
            self._hold(kind == "grab", str(content.get("move", "")))
        elif kind == "fold":
            self._told(
                {name: value for name, value in content.items() if name not in ("kind", "gesture")}
            )
        elif kind in ("undo", "redo"):
            self._walk(kind, str(content.get("id", "")))
        else:
            values = {
                name: value
                for name, value in content.items()
                if name not in ("kind", "id", "gesture")
            }
            self._do(kind, str(content.get("id", "")), str(content.get("gesture", "")), sent=values)

    def _say(self, notice: Data, ack: str = "") -> None:
        self._show(self._pictured(self._history, self._results, notice), ack)

    def _pictured(self, history: UndoStack[S], results: F, notice: Data | None = None) -> Data:
        self._serial += 1
        shown = self._scene(history.now, results)
        changed = history.now != history.now.as_at(self._start)
        actions = {"undo": bool(history.past), "redo": bool(history.future), "reset": changed}
        actions |= shown.get("actions", {})
        return {
            **shown,
            "actions": actions,
            "serial": self._serial,
            "status": notice or self._status(results),
        }

    def _show(self, state: Data, ack: str = "") -> None:
        # First, so that key figures are painted before charts are made.
        self.view.state = {
            **state,
            "ack": ack,
        }
        self.view.door = self._door(self._history.now)
        self.still.change(self.view.state, repr(self))
        self._quiet = True
        try:
            self.controls.project(self._history.now, self._results)
        finally:
            self._quiet = False

    def _draw(self, is_moving: bool = False) -> None:
        with self._lock:
            drawn = self._charts(self._results, self.view.opened)
            reader = self._reader(self._results)
            # nobody reads or copies a text while the hand is on a slider; when it lets go, the text is written
            if is_moving:
                texts = self.view.texts
            else:
                texts = self._texts(self._results)
            # All is made by now: a failure above leaves the page as it was.
            with self.view.hold_sync():
                self.view.draw(drawn, self._serial)
                self.view.texts = texts
                self.view.reader = reader
                self.view.folds = self._folds.shown(self._history.now, self.view.opened)

    def _hold(self, on: bool, move: str = "") -> None:
        """Begin a move of a control, or end it.

        Messages come in threads of their own: the end of a move may overtake its beginning, which then never ends.
        """
        with self._lock:
            if on and move in self._ended:
                self._ended.discard(move)
                return
            if not on and move and move not in self._begun:
                self._ended.add(move)
            self._begun = {move} if on else set()
            self._gesture.hold(on)
            if not on:
                self._open()

    def _ipython_display_(self) -> None:
        """Show the explorer, and beside it the picture that stays when there is no kernel."""
        from IPython.display import display

        with self._lock:
            self.still.show(picture(self.view.state, repr(self)))
        display(self._repr_mimebundle_(), raw=True)  # type: ignore[no-untyped-call]

    def _repr_mimebundle_(self, **options: Any) -> Data:
        return {**self.widget._repr_mimebundle_(**options), "text/plain": repr(self)}
