"""The common base class of all explorers, which applies changes.

The state of an explorer is a single value, its settings. Only commands change it, by returning the next settings, and
everything that is shown follows from the settings. Controls, handles on the page and code send the same commands.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from budgetkit.budget import Budget, brief
from budgetkit.budget.errors import check_html, unknown_name
from budgetkit.counters.encodings import ForkSafeLock
from budgetkit.files import read_toml, write_whole
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.commands import Command
from budgetkit.lab.explorers.folds import Fold, Folds, refusal
from budgetkit.lab.explorers.panel import Panel
from budgetkit.lab.explorers.reach import Reach, arguments, parameters
from budgetkit.lab.explorers.report import Still, page, report_html, saved_settings
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.undo import Gesture, UndoStack
from budgetkit.lab.explorers.view import Shown, Uploads, View, sendable
from budgetkit.message import Data


def nothing(_stage: BudgetStage) -> Data:
    """Return empty data for a part that an explorer lacks."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of explorer: its commands, panels, results and page."""

    #: The name of its words in ``data/glossary.toml``.
    name: str
    #: Functions that take a stage and named values, and return the next settings.
    commands: Mapping[str, Command]
    #: The results of its settings.
    stage: type[BudgetStage]
    view: type[View]
    #: Return key figures, bar, source, and the names of the figures.
    scene: Callable[[Any], Data]
    #: Return the controls.
    controls: Callable[[Any], Panel]
    #: Return the sentences under the key figures.
    status: Callable[[Any], Data]
    #: Return the title of a report.
    heading: Callable[[Any], str]
    #: Return the figures, with the tables of those that are open.
    charts: Callable[[Any, list[str]], dict[str, Data]] = lambda *_: {}
    #: Return the form for opening a file, and facts about the shown one.
    entry: Callable[[Any], Data] = nothing
    #: Return the set-up as text to copy, by format.
    texts: Callable[[Any], dict[str, str]] = nothing
    #: Return the text to read next to the figures, in blocks.
    reader: Callable[[Any], Data] = nothing
    #: Return the requests for a report's slider.
    requests: Callable[[Any], Data] = nothing

    @property
    def words(self) -> Data:
        """The words of this kind: its panels, files and tabs."""
        words: Data = read_toml("glossary.toml")[self.name]
        return words

    @property
    def folds(self) -> dict[str, Fold]:
        """The panels that can be opened beside the figures."""
        return {name: Fold(*row) for name, row in self.words["panels"].items()}


class Explorer(Shown):
    """The base class of explorers, which have settings and a view.

    Attributes
    ----------
    view : View
        The widget of the page.
    panel : Panel
        The controls; the keys of `panel.inputs` are the keys that `set` takes.
    stage : BudgetStage
        The settings, their results and the library.
    """

    view: View
    #: Commands, results and page of this kind of explorer.
    kind: ClassVar[Kind]
    stage: Any

    def __init__(
        self,
        settings: BudgetSettings,
        library: Library,
        view: View,
        reach: Reach | None = None,
        still: Still | None = None,
    ) -> None:
        self._lock = ForkSafeLock(threading.RLock)
        self._serial = 0
        self._gesture = Gesture()
        #: The files that commands may open; None for any file.
        self.reach = reach
        self.still = still or Still()
        self.view = view
        self.panel = Panel()
        #: The settings after a reset.
        self._start = settings
        self._history = UndoStack(settings)
        self.stage = self.kind.stage(settings, library)
        self._folds = Folds(self.kind.folds, self._update_folds)
        self._uploads = Uploads(view, self._run_command)
        view.opens = self.kind.words["files"]
        view.on_msg(self._receive)
        view.observe(lambda _: self._redraw(), "opened")
        state = self._page_state()
        self._values = self.panel.values
        self._send_state(state)
        self._send_charts()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save a report as a self-contained HTML file.

        Parameters
        ----------
        path : str or path
            Path that ends in .html. The file contains all messages of the conversation, shortened if necessary, or none
            if even that exceeds its limit.

        Raises
        ------
        ValueError
            If the path does not end in .html.
        """
        check_html(path)
        with self._lock:
            # the current status, not the last error
            status = self.kind.status(self.stage)
            state = sendable({**self.view.state, "entry": self.view.entry, "status": status})
            self._update_folds()
            charts = self.kind.charts(self.stage, list(state["figures"]))
            html = page(
                self.kind.heading(self.stage),
                state,
                sendable(charts | self._folds.figures(self.view.opened)),
                self.kind.requests(self.stage),
                self.texts.get("yaml", ""),
            )
        write_whole(path, html.encode())

    @property
    def texts(self) -> dict[str, str]:
        """The set-up as text, under the keys "python", "yaml" and "json"."""
        with self._lock:
            return self.kind.texts(self.stage)

    def open(self, path: str | Path) -> None:
        """Show the content of a file.

        Parameters
        ----------
        path : str or path
            A file of conversations in any format that :func:`budgetkit.load_trace` reads, or the name of a shipped
            conversation. The accuracy explorer takes a file, a folder or a glob of texts.
        """
        self._run_command("path", path=str(path))

    def load(self, text: str) -> None:
        """Load the budget of a saved state.

        Parameters
        ----------
        text : str
            The saved state in YAML or JSON, as in `texts`.
        """
        self._run_command("load", text=text)

    def set(self, **values: Any) -> None:
        """Set controls by their keys, in order.

        Parameters
        ----------
        **values
            Values by keys of `panel.inputs`; numbers may be texts such as "25%" or "100k".

        Raises
        ------
        LookupError
            If the control is unknown. An invalid value is reported in `status`, as on the page.
        """
        for key, value in values.items():
            self.panel[key]
            self._set(key, value)

    def move(self, line: str, size: int | str | None) -> None:
        """Set the size of a reserve or a section.

        Parameters
        ----------
        line : str
            A section or a reserve of the budget.
        size : int, str or None
            Size in tokens, or a text such as "25%" or "100k"; None for no cap.

        Raises
        ------
        LookupError
            If the budget has no reserve or section with this name.
        """
        self.set(**{f"line_{line}": size})

    def undo(self) -> None:
        """Undo the last change."""
        self._step("undo")

    def redo(self) -> None:
        """Redo the last undone change."""
        self._step("redo")

    def reset(self) -> None:
        """Return to the initial settings, keeping the conversation or texts.

        The turn, the locks and the pins of the budget are kept too, and so is the request of the conversation explorer.
        """
        self._step("reset")

    @property
    def settings(self) -> Any:
        """The current settings, an immutable value that determines everything else."""
        return self.stage.settings

    @property
    def budget(self) -> Budget:
        """The current budget, with a signed deficit if it exceeds the window."""
        budget: Budget = self.stage.budget
        return budget

    @property
    def library(self) -> Library:
        """The available conversations and texts, with their counts."""
        library: Library = self.stage.library
        return library

    def take(self, settings: BudgetSettings, afresh: bool = False) -> None:
        """Apply settings as one undo step, or as a new initial state."""
        with self._reporting_problems():
            if afresh:
                self._start = settings
            self._apply(UndoStack(settings) if afresh else self._history.then(settings))

    @property
    def status(self) -> str:
        """The status sentence: the state of the budget, or the last error."""
        return str(self.view.state["status"]["text"])

    def _run_command(
        self,
        kind: str,
        ack: str = "",
        merge: str = "",
        *,
        beside: str = "",
        sent: Data | None = None,
        **values: Any,
    ) -> None:
        """Run a command, or show its error and change nothing."""
        with self._reporting_problems(ack, beside):
            commands = self.kind.commands
            if kind not in commands:
                raise LookupError(unknown_name("command", kind, commands))
            command = commands[kind]
            named = arguments(kind, command, values if sent is None else sent, self.reach)
            settings = command(self.stage, **named)
            step = self._gesture.step(merge)
            self._apply(self._history.then(settings, step), ack, merge.startswith("drag "))

    def _set(self, key: str, value: Any, ack: str = "", gesture: str = "") -> None:
        """Run a control's command, with the given value as the missing argument."""
        with self._reporting_problems(ack, key):
            entry = self.panel[key]
            names = parameters(self.kind.commands[entry.kind])
            name = next(name for name in names if name not in entry.values)
            sent = {**entry.values, name: entry.read(value)}
            self._run_command(entry.kind, ack, gesture, beside=key, sent=sent)

    @contextmanager
    def _reporting_problems(self, ack: str = "", beside: str = "") -> Iterator[None]:
        """Take the lock, and show an error as the status."""
        with self._lock:
            try:
                yield
            except Exception as problem:
                self._send_state(self._page_state({**refusal(problem), "beside": beside}), ack)

    def _step(self, kind: str, ack: str = "", sent: Collection[str] = ()) -> None:
        """Undo or redo a change, or reset the settings.

        None of these commands takes an argument.
        """
        with self._reporting_problems(ack):
            for name in sent:
                raise TypeError(f"Invalid argument {brief(name)} of the command {brief(kind)}.")
            history = self._history
            if kind == "reset":
                history = history.then(self.settings.as_at(self._start))
            else:
                history = getattr(history, kind)()
            self._apply(history, ack)

    def _apply(
        self, history: UndoStack[BudgetSettings], ack: str = "", is_moving: bool = False
    ) -> None:
        """Show the current step of an undo stack.

        If this fails, the previous step is restored.
        """
        before = self._history, self.stage
        self._history = history
        self.stage = replace(self.stage, settings=history.now)
        try:
            self._send_state(self._page_state(), ack)
            self._send_charts(is_moving)
        except BaseException as problem:
            self._history, self.stage = before
            if not isinstance(problem, Exception):  # an interrupt is reported nowhere else
                self._send_state(self._page_state())
                self._send_charts()
            raise

    def _redraw(self) -> None:
        """Redraw the view with its open tables and panels."""
        with self._reporting_problems():
            self._update_folds()
            self._send_charts()

    def _update_folds(self, fold: str = "") -> None:
        """Show the open panels, after recomputing outdated panels and the panel `fold`."""
        with self._lock:
            self._folds.forget(fold)
            self._folds.refresh(self.stage, self.view.opened)
            self.view.folds = self._folds.shown(self.settings, self.view.opened)

    def _receive_fold_event(self, content: Data) -> None:
        """Handle user input in a panel.

        A change of the settings is one undo step.
        """
        with self._reporting_problems():
            settings = self._folds.hear(self.stage, content)
            if settings is not None:
                self._apply(self._history.then(settings))
            self._update_folds()

    def _receive(self, _view: View, content: Data, buffers: list[Any]) -> None:
        """Handle a message from the page."""
        values = dict(content)
        kind, gesture, ack = (str(values.pop(name, "")) for name in ("kind", "gesture", "id"))
        if kind == "plotly":
            with self._reporting_problems():
                self.view.send_plotly()
        elif kind == "file":
            # Pieces of a file arrive in threads of their own, as other messages do.
            with self._reporting_problems():
                self._uploads.piece(content, b"".join(buffers))
        elif kind == "set":
            self._set(str(values.get("key")), values.get("value"), ack, gesture)
        elif kind == "rest":
            # A drag has ended, so the texts to copy are written.
            with self._reporting_problems():
                self._send_state(self.view.state, ack)
                self._send_charts()
        elif kind == "fold":
            self._receive_fold_event(values)
        elif kind in ("undo", "redo", "reset"):
            self._step(kind, ack, values)
        else:
            self._run_command(kind, ack, gesture, sent=values)

    def _page_state(self, notice: Data | None = None) -> Data:
        """Return the page's state, with a notice or the current status."""
        scene = self.kind.scene(self.stage)
        self.panel = self.kind.controls(self.stage)
        self._serial += 1
        if self.reach and not (self.reach.root and self.reach.root.is_dir()):
            self.panel.drop("path")  # no path can be entered
        actions = {
            "undo": bool(self._history.past),
            "redo": bool(self._history.future),
            "reset": self.settings != self.settings.as_at(self._start),
        }
        return {
            **scene,
            "controls": self.panel.groups,
            "actions": actions | scene.get("actions", {}),
            "serial": self._serial,
            "status": notice or self.kind.status(self.stage),
        }

    def _send_state(self, state: Data, ack: str = "") -> None:
        self.view.choices = self.panel.choices
        # Before the charts, so that key figures are painted first.
        self.view.state = {**state, "ack": ack}
        self.view.entry = self.kind.entry(self.stage)
        self.still.change(self.view.state, repr(self), self._kept)

    def _send_charts(self, is_moving: bool = False) -> None:
        with self._lock:
            drawn = self.kind.charts(self.stage, self.view.opened)
            reader = self.kind.reader(self.stage)
            # Nobody copies a text during a move; it is written when the move ends.
            texts = self.view.texts if is_moving else self.kind.texts(self.stage)
            # Everything is computed by now, so a failure above leaves the page unchanged.
            with self.view.hold_sync():
                self.view.draw(drawn, self._serial)
                self.view.texts = texts
                self.view.reader = reader
                self.view.folds = self._folds.shown(self.settings, self.view.opened)

    @property
    def _kept(self) -> str | None:
        """The initial and changed values to store; None if nothing has changed."""
        now = self.panel.values
        changed = {key: now[key] for key in now if now[key] != self._values.get(key)}
        return json.dumps([self._values, changed], default=list) if changed else None

    def _go_on(self, kept: str) -> None:
        """Restore a notebook's saved settings if the initial settings are the same."""
        if not kept:
            return
        first, changed = json.loads(kept)
        if first != json.loads(json.dumps(self._values, default=list)):
            return  # the cell was edited
        for key, value in [*changed.items()] * 2:  # a control may set another one after it
            if key in self.panel.controls and self.panel.values[key] != value:
                self._set(key, value)
        # A value that no longer exists, such as an uploaded file, is left out.
        self._send_state(self._page_state())

    def _display_(self) -> View:
        """Show the explorer in marimo."""
        return self.view

    def show_still(self) -> None:
        """Show the static picture and store the settings in the notebook."""
        with self._lock:
            self._go_on(saved_settings())
            self.still.show(report_html(self.view.state, repr(self), self._kept))
