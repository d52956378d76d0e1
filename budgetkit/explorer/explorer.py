"""BudgetExplorer: a budget on sliders, its split drawn, and what it cuts from a conversation.

There is one value, the settings, and one way to change it: a command gives the next settings, from which the
budget, the plan and the picture follow. A widget, a handle in the page and a line of code send the same commands.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from budgetkit.budget import Budget
from budgetkit.explorer.charts import charts
from budgetkit.explorer.commands import command, taken
from budgetkit.explorer.controls import Controls
from budgetkit.explorer.library import Library
from budgetkit.explorer.news import error, source, status
from budgetkit.explorer.outcome import Outcome, outcome
from budgetkit.explorer.scene import scene, shown_figures
from budgetkit.explorer.settings import History, Settings
from budgetkit.explorer.texts import texts
from budgetkit.explorer.uploads import Uploads
from budgetkit.explorer.view import FIGURES, View
from budgetkit.plan import Plan
from budgetkit.state import to_dict
from budgetkit.trace import Trace

PROBLEMS = (ValueError, TypeError, LookupError, OSError, ArithmeticError)
ONE_MOVE = 1.0  # seconds between two moves of a slider that are still one step back


class BudgetExplorer:
    """Explore a budget by hand.

    Parameters
    ----------
    budget : str or Budget, default "chat"
        A preset's name, or a budget to start from.
    trace : str, path, Trace or sequence of Trace, optional
        The conversations to plan: the name of a shipped one, a file, or loaded ones. Without them the sections
        ask for sizes that are typed in.
    model : str, default "gpt-4o"
        The model; its window holds for a preset.
    counter : str, optional
        What to count with; the model's own where it is left out.
    window : int, optional
        Another window than the model's, in tokens.

    Raises
    ------
    ValueError, LookupError, OSError
        If one of them is unknown or cannot be read.

    Examples
    --------
    >>> explorer = BudgetExplorer("chat", window=8_192)
    >>> explorer
    BudgetExplorer(chat, gpt-4o, window=8,192)
    >>> explorer.controls.lines["conversation"].box.value = 2_000
    >>> explorer.budget.cap("conversation"), explorer.budget.shared_pool
    (2000, 1278)
    """

    def __init__(
        self,
        budget: str | Budget = "chat",
        trace: str | Path | Trace | Sequence[Trace] | None = None,
        *,
        model: str = "gpt-4o",
        counter: str | None = None,
        window: int | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self._quiet = False
        self._serial = 0
        self._burst = ("", 0.0, 0)
        self.view = View()
        self._library = Library(self._report)
        settings = Settings(model=model, counter=counter)
        settings = taken(settings, budget) if isinstance(budget, Budget) else replace(settings, preset=budget)
        if window is not None:
            settings = replace(settings, window=window)
        self._history = History(replace(settings, trace=self._taken_in(trace)))
        self._found = outcome(self._history.now, self._library)
        self.controls = Controls(self._do, self._library)
        layout = widgets.Box([self.controls.widget, self.view]).add_class("bk-layout")
        self.widget = widgets.Box([layout]).add_class("bk-explorer")
        self._uploads = Uploads(self.view, self._library, self._do, self._refuse)
        self.view.on_msg(self._heard)
        self.view.observe(lambda change: self._draw(), "opened")
        self._show(self._pictured(self._history, self._found))
        self._draw()

    def _taken_in(self, trace: str | Path | Trace | Sequence[Trace] | None) -> str | None:
        if trace is None:
            return None
        if isinstance(trace, Trace):
            return self._library.add(trace.id, [trace])
        if isinstance(trace, str | Path):
            return self._library.open(str(trace))
        return self._library.add(Path(trace[0].source.split(", line")[0]).name or trace[0].id, trace)

    @property
    def budget(self) -> Budget:
        """The budget as it is set; with a signed deficit where it claims more than there is."""
        return self._found.budget

    @property
    def plan(self) -> Plan:
        """The plan of the chosen turn, or of the sizes typed in; its budget has a signed deficit."""
        return self._found.plan

    @property
    def config(self) -> dict[str, Any]:
        """All that is set, as plain data."""
        now = self._history.now
        return {
            "model": now.model,
            "preset": now.preset,
            "counter": self._found.counter.name,
            "trace": now.trace,
            "conversation": now.conversation if now.trace else None,
            "turn": self._found.turn or None,
            "locked": sorted({line.name for line in self.budget} & set(now.locks)),
            **to_dict(self.budget),
        }

    @property
    def texts(self) -> dict[str, str]:
        """The budget as text to copy, by "python", "yaml" and "json"."""
        return dict(self.view.texts)

    def undo(self) -> None:
        """Take back the last change."""
        self._walk("undo")

    def redo(self) -> None:
        """Do again what was taken back."""
        self._walk("redo")

    def reset(self) -> None:
        """Go back to the preset as it was; locked lines stay."""
        self._do("reset")

    def pin(self) -> None:
        """Keep the budget to compare the next one with; again, let it go."""
        self._do("pin")

    def load(self, text: str) -> None:
        """Show the budget of a saved state.

        Parameters
        ----------
        text : str
            JSON or YAML, as `budgetkit.state` writes it.
        """
        self._do("load", text=text)

    def open(self, path: str | Path) -> None:
        """Show the conversations of a file.

        Parameters
        ----------
        path : str or path
            JSONL or JSON, or the name of a shipped trace.
        """
        self._do("path", path=str(path))

    @property
    def status(self) -> str:
        """The sentence that the view shows: whether it fits, what is lost, or what went wrong."""
        return str(self.view.state["status"]["text"])

    def _do(self, kind: str, ack: str = "", merge: str = "", **values: Any) -> None:
        """Carry out a command; where it cannot be, keep what holds and show why."""
        with self._lock:
            if self._quiet:
                return
            try:
                settings = command(kind)(self._history.now, self._found, self._library, **values)
                self._go(self._history.then(settings, self._merged(merge)), ack)
            except PROBLEMS as problem:
                self._refuse(problem, ack)

    def _walk(self, direction: str, ack: str = "") -> None:
        with self._lock:
            try:
                self._go(self._history.undo() if direction == "undo" else self._history.redo(), ack)
            except PROBLEMS as problem:
                self._refuse(problem, ack)

    def _go(self, history: History, ack: str) -> None:
        """Take a step: all of it is worked out and pictured before anything that holds is let go."""
        found = outcome(history.now, self._library)
        state = self._pictured(history, found)
        self._history, self._found = history, found
        self._show(state, ack)
        self._draw()

    def _merged(self, merge: str) -> str:
        """Name the step that a move belongs to: moves of one slider in quick succession are one."""
        if not merge:
            return ""
        last, when, count = self._burst
        now = time.monotonic()
        count += merge != last or now - when > ONE_MOVE
        self._burst = (merge, now, count)
        return f"{merge} {count}"

    def _heard(self, view: View, content: dict[str, Any], buffers: list[Any]) -> None:
        """Answer what the page sends."""
        kind = content.get("kind", "")
        if kind == "plotly":
            view.send_plotly()
        elif kind == "file" and buffers:
            self._uploads.piece(content, bytes(buffers[0]))
        elif kind in ("undo", "redo"):
            self._walk(kind, str(content.get("id", "")))
        else:
            values = {name: value for name, value in content.items() if name not in ("kind", "id", "gesture")}
            self._do(kind, str(content.get("id", "")), str(content.get("gesture", "")), **values)

    def _refuse(self, problem: Exception, ack: str = "") -> None:
        with self._lock:
            self._show(self._pictured(self._history, self._found, error(problem)), ack)

    def _report(self, text: str, progress: float) -> None:
        self.view.send({"kind": "status", "status": {"level": "busy", "text": text, "progress": progress}})

    def _pictured(self, history: History, found: Outcome, told: dict[str, Any] | None = None) -> dict[str, Any]:
        self._serial += 1
        said = told or status(found)
        return scene(history, found, self._serial, said, source(history.now, found, self._library))

    def _show(self, state: dict[str, Any], ack: str = "") -> None:
        self.view.state = {**state, "ack": ack}  # first, so that the bar is painted before the charts are made
        self._quiet = True
        try:
            self.controls.project(self._history.now, self._found)
        finally:
            self._quiet = False

    def _draw(self) -> None:
        with self._lock, self.view.hold_sync():
            made = charts(self._found, shown_figures(self._found), self.view.opened)
            for name in FIGURES:
                drawn = getattr(self.view, f"figure_{name}")
                new = made.get(name, {})
                if {**drawn, "serial": 0} != {**new, "serial": 0}:
                    setattr(self.view, f"figure_{name}", {**new, "serial": self._serial})
            self.view.texts = texts(self._history.now, self._found.model, self._found.budget)

    def __repr__(self) -> str:
        now = self._history.now
        name = now.preset if now.own is None else now.own.name or now.preset
        return f"BudgetExplorer({name}, {now.model}, window={self.budget.window:,})"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        return {**self.widget._repr_mimebundle_(**options), "text/plain": repr(self)}
