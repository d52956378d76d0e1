"""BudgetExplorer: a budget on sliders, its split drawn, and what it cuts from a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import traitlets as t

from budgetkit.budget import Budget
from budgetkit.counters import Count
from budgetkit.explorer.base import Explorer
from budgetkit.explorer.budget.charts import charts
from budgetkit.explorer.budget.commands import COMMANDS, taken, with_its_model
from budgetkit.explorer.budget.controls import Controls
from budgetkit.explorer.budget.notices import source, status
from budgetkit.explorer.budget.results import Results, results
from budgetkit.explorer.budget.settings import DEFAULT_MODEL, Settings
from budgetkit.explorer.budget.texts import texts
from budgetkit.explorer.budget.view_state import scene, shown_figures
from budgetkit.explorer.budget.why import sections_told
from budgetkit.explorer.folds import Fold
from budgetkit.explorer.library import Library
from budgetkit.explorer.undo import UndoStack
from budgetkit.explorer.view import View
from budgetkit.plan import Plan
from budgetkit.state import to_dict
from budgetkit.trace import Trace

Data = dict[str, Any]
#: The files that can be opened.
OPENS = [
    {"purpose": "file", "label": "Open a conversation…", "accept": ".jsonl,.json,.ndjson,.txt"},
    {"purpose": "setup", "label": "Load a set-up…", "accept": ".yaml,.yml,.json"},
]


#: What can be opened below the figures.
FOLDS = {
    "why": Fold("Why is something lost?", "budgetkit.explorer.budget.why:WhyFold"),
    "billed": Fold("What is billed?", "budgetkit.explorer.billed:BilledFold"),
    "check": Fold("What does the check find?", "budgetkit.explorer.checked:CheckFold"),
    "decide": Fold("Which setting is best?", "budgetkit.deciding.fold:DecideFold"),
}


class BudgetView(View):
    """The window as a bar, and its figures."""

    figures = t.List(["waterfall", "sections", "turns", "errors", "conversations"]).tag(sync=True)
    opens = t.List(OPENS).tag(sync=True)
    figure_waterfall = t.Dict().tag(sync=True)
    figure_sections = t.Dict().tag(sync=True)
    figure_turns = t.Dict().tag(sync=True)
    figure_errors = t.Dict().tag(sync=True)
    figure_conversations = t.Dict().tag(sync=True)


class BudgetExplorer(Explorer[Settings, Results, Library]):
    """Explore a budget by hand.

    Parameters
    ----------
    budget : str or Budget, default "chat"
        A preset's name, or a budget to start from.
    trace : str, path, Trace, sequence of Trace or of messages, optional
        The conversations to plan: the name of a shipped one, a file, or loaded ones. Without them the sections
        ask for sizes that are typed in.
    model : str, optional
        The model; its window holds for a preset. Left out, it is the one that the conversation was held with, where
        that says so, else "gpt-4o".
    counter : str, Counter or callable, optional
        What to count with, by name or as it is; the model's own where it is left out.
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

    commands = COMMANDS
    folds: ClassVar[Mapping[str, Fold]] = FOLDS
    view_class: ClassVar[type[View]] = BudgetView

    def __init__(
        self,
        budget: str | Budget = "chat",
        trace: str | Path | Trace | Sequence[Any] | None = None,
        *,
        model: str | None = None,
        counter: str | Count | None = None,
        window: int | None = None,
    ) -> None:
        view = self.view_class()
        library = Library(view.report)
        name = None if trace is None else library.take(trace)
        settings = Settings(model=model or DEFAULT_MODEL, counter=library.given(counter), trace=name)
        settings = settings if model else with_its_model(settings, library)
        settings = taken(settings, budget) if isinstance(budget, Budget) else replace(settings, preset=budget)
        if window is not None:
            settings = replace(settings, window=window)
        library.start = settings
        super().__init__(settings, library, view, Controls(self._do, library))

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

    def _follow(self, settings: Settings) -> Results:
        return results(settings, self._library)

    def _scene(self, history: UndoStack[Settings], found: Results) -> Data:
        return scene(history, found, source(history.now, found, self._library), self._library.start)

    def _status(self, found: Results) -> Data:
        told = status(found)
        sentences = [told["text"], *told["more"]]
        return {**told, "asks": sections_told(found.plan, sentences)} if "why" in self.folds else told

    def _charts(self, found: Results, opened: list[str]) -> dict[str, Data]:
        return charts(found, shown_figures(found), opened)

    def _texts(self, found: Results) -> dict[str, str]:
        return texts(self._history.now, found.model, found.budget, found.counter.name)

    def __repr__(self) -> str:
        now = self._history.now
        name = now.preset if now.own is None else now.own.name or now.preset
        return f"{type(self).__name__}({name}, {now.model}, window={self.budget.window:,})"
